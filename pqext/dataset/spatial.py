"""What spatial expressions are asked about: a box or a geometry, in canonical form.

``pqext.geo`` is imported when a spatial expression is made: shapely is slow to load.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import pyarrow as pa

if TYPE_CHECKING:
    from pqext.geo.predicates import SpatialPredicate

Operation = Literal["intersects", "disjoint", "within", "contains"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

Box: TypeAlias = tuple[float, float, float, float]
Geometry: TypeAlias = Box | bytes
"""A box ``(xmin, ymin, xmax, ymax)``, crossing the antimeridian when ``xmin > xmax``, or ISO WKB."""


def canonical_geometry(operation: str, geometry: Any) -> Geometry:
    """The canonical form of four numbers, a ``pqext.geo.BoundingBox``, WKB bytes or a shapely geometry.

    Raises ``ValueError`` for boxes that are not finite or upside down, for bytes that are not WKB and for
    unknown operations, ``TypeError`` for anything else.
    """
    from pqext.geo.wkb import from_shapely, to_iso, to_shapely

    if operation not in OPERATIONS:
        raise ValueError(f"{operation!r} is not one of {', '.join(OPERATIONS)}")
    if isinstance(geometry, bytes | bytearray | memoryview):
        iso = to_iso(pa.array([bytes(geometry)], pa.binary()))
        to_shapely(iso)
        return bytes(iso[0].as_py())
    if hasattr(geometry, "geom_type"):
        return bytes(from_shapely([geometry])[0].as_py())
    return _box(geometry)


def _box(geometry: Any) -> Box:
    from pqext.geo.box import BoundingBox
    from pqext.geo.predicates import as_box

    if not isinstance(geometry, BoundingBox):
        try:
            geometry = tuple(map(float, geometry))
        except (TypeError, ValueError):
            geometry = ()
        except OverflowError:
            raise ValueError("a box needs finite bounds") from None
        if len(geometry) != 4:
            raise TypeError("expected a box (xmin, ymin, xmax, ymax), WKB or a shapely geometry")
    box = as_box(geometry)
    return (float(box.xmin), float(box.ymin), float(box.xmax), float(box.ymax))


def geometry_text(geometry: Geometry) -> str:
    """A box or geometry for people to read, long ones cut short."""
    if not isinstance(geometry, bytes):
        return f"box ({', '.join(map(repr, geometry))})"
    import shapely

    text = str(shapely.to_wkt(shapely.from_wkb(geometry), rounding_precision=6))
    return text if len(text) <= 80 else text[:77] + "..."


@lru_cache(maxsize=256)
def predicate(operation: Operation, geometry: Geometry) -> SpatialPredicate:
    """The question as ``pqext.geo`` answers it, of rows and of row groups."""
    from pqext.geo.predicates import SpatialPredicate
    from pqext.geo.wkb import to_shapely

    query = to_shapely(pa.array([geometry], pa.binary()))[0] if isinstance(geometry, bytes) else geometry
    return SpatialPredicate(operation, query)
