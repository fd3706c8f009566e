"""Spatial query: an operation, a box or a geometry, and a distance if the operation requires one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np

from pqext.core.base.threads import ThreadLocalValue
from pqext.geo.box import BoundingBox
from pqext.geo.predicates.boxes import OPERATIONS, Operation
from pqext.geo.wkb import copy_geometry, without_empty_parts

T = TypeVar("T")
Query: TypeAlias = Any
"""Box, as a :class:`BoundingBox` or a sequence ``(xmin, ymin, xmax, ymax)``, or a shapely geometry."""


def as_box(box: Query) -> BoundingBox:
    """Convert ``box`` to a :class:`BoundingBox`.

    A sequence is ``(xmin, ymin, xmax, ymax)``, as in other geospatial software.

    A Thrift bounding box from a file's statistics is also accepted.

    A box with xmin > xmax wraps around the antimeridian. Raises ValueError unless the bounds are four finite numbers
    with ymin <= ymax, and for xmin > xmax beyond the range of longitudes. Raises TypeError for bounds that are not
    numbers.
    """
    if isinstance(box, BoundingBox):
        result = box
    else:
        try:
            in_file = hasattr(box, "xmin")
            bounds = (box.xmin, box.ymin, box.xmax, box.ymax) if in_file else box
            xmin, ymin, xmax, ymax = (float(value) for value in bounds)
        except OverflowError:
            raise ValueError(f"the bounds of a query box must be finite, not {box}") from None
        except (AttributeError, TypeError, ValueError) as error:
            kind = ValueError if isinstance(error, ValueError) else TypeError
            raise kind("a query box must be four numbers (xmin, ymin, xmax, ymax)") from None
        result = BoundingBox(xmin, xmax, ymin, ymax)
    if result.ymin > result.ymax:
        raise ValueError(
            f"ymin {result.ymin} is greater than ymax {result.ymax}; pass a query box as (xmin, ymin, xmax, ymax)"
        )
    if not result.usable:
        sides = (result.xmin, result.ymin, result.xmax, result.ymax)
        if not all(map(math.isfinite, sides)):
            raise ValueError(f"the bounds of a query box must be finite, not {sides}")
        raise ValueError(
            f"a query box with xmin > xmax must contain longitudes, not x from {result.xmin} to {result.xmax}"
        )
    return result


@dataclass(frozen=True, slots=True)
class SpatialQuestion:
    """Operation, geometry and distance of a :class:`pqext.geo.SpatialPredicate`, validated."""

    operation: Operation
    geometry: Query
    distance: float | None = None
    box: BoundingBox | None = field(init=False, repr=False, compare=False)
    """Box around the query's coordinates; None if the query is an empty geometry."""
    _private: ThreadLocalValue[Query] = field(init=False, repr=False, compare=False)
    _unrolled: ThreadLocalValue[dict[Any, Any]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.operation not in OPERATIONS:
            raise ValueError(f"unknown spatial operation {self.operation!r}; known operations: {', '.join(OPERATIONS)}")
        if isinstance(self.geometry, (tuple, list, np.ndarray)) or hasattr(self.geometry, "xmin"):
            object.__setattr__(self, "geometry", as_box(self.geometry))
        elif not isinstance(getattr(self.geometry, "geom_type", None), str):  # a GeoSeries returns a series
            hint = "; shapely.from_wkt reads WKT" if isinstance(self.geometry, str) else ""
            raise TypeError(f"a query must be a box or a shapely geometry, not {type(self.geometry).__name__}{hint}")
        else:
            # Other threads may use the caller's object, and preparing would change it.
            (mended,) = without_empty_parts(np.array([copy_geometry(self.geometry)], dtype=object))
            object.__setattr__(self, "geometry", mended)
        object.__setattr__(self, "distance", as_distance(self.operation, self.distance))
        box = self.geometry
        if not isinstance(box, BoundingBox):
            box = None if box.is_empty else as_box(box.bounds)
        object.__setattr__(self, "box", box)
        object.__setattr__(self, "_private", ThreadLocalValue(partial(copy_geometry, self.geometry)))
        object.__setattr__(self, "_unrolled", ThreadLocalValue(dict))

    @property
    def private_geometry(self) -> Query:
        """Copy of the query that only the calling thread uses and may prepare."""
        return self._private.get()

    def unrolled(self, key: Any, unroll: Callable[[Query], T]) -> T:
        """Return ``unroll(private_geometry)``, which each thread computes once for each ``key``."""
        known = self._unrolled.get()
        if key not in known:
            known[key] = unroll(self.private_geometry)
        result: T = known[key]
        return result


def as_distance(operation: str, distance: Any) -> float | None:
    """Validate the distance of an operation. Returns a float for ``dwithin`` and None for all other operations.

    Raises TypeError if the distance is missing or not accepted, and ValueError unless it is finite and not negative.
    """
    if operation != "dwithin":
        if distance is not None:
            raise TypeError(f"{operation} does not accept a distance; omit it, or use dwithin")
        return None
    if isinstance(distance, bool) or not isinstance(distance, (int, float, np.integer, np.floating)):
        raise TypeError(f"the distance of dwithin must be a number, not {distance!r}")
    try:
        result = float(distance)
    except OverflowError:
        result = math.inf
    if not 0 <= result < math.inf:
        raise ValueError(f"distance must be finite and at least 0, not {distance!r}")
    return result
