"""Storage of a geometry column in a file, and of its covering column.

As in GeoParquet 1.1, a covering is a plain struct ``xmin, ymin, xmax, ymax`` that accompanies the geometry, for engines
that prune with plain columns. It is null if the geometry is null. The bounds of a geometry without coordinates are
null. Engines compare the bounds directly and do not support boxes that wrap, so a geometry that crosses the
antimeridian has a box from -180 to 180.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.schema.annotations import Storage
from pqext.geo.crs import LONGITUDES
from pqext.geo.geoarrow import as_wkb
from pqext.geo.summary import bounds
from pqext.geo.types import GeospatialType

if TYPE_CHECKING:
    from pqext.geo.coordinates import CheckRange
    from pqext.geo.wkb import GeometryArray

Curve = Literal["hilbert", "zorder"]
"""Curves along which rows can be ordered."""
COVERING_FIELDS = ("xmin", "ymin", "xmax", "ymax")
"""Names of the fields of a covering column."""
SUFFIX = "_bbox"
Width = Literal["double", "float"]
_KEYS = ("name", "type")


@dataclass(frozen=True, slots=True)
class GeometryStorage(Storage):
    """Storage of a geometry column.

    ``check_range`` selects whether coordinates out of range are rejected, clamped or written unchanged.

    ``order`` is the curve along which the rows of the file are ordered by this column. ``encoding`` is the GeoArrow
    layout of the input, if it is not WKB. ``is_oriented`` makes outer rings counterclockwise. ``epoch`` is the decimal
    year of coordinates in a dynamic CRS.
    """

    type: GeospatialType
    check_range: CheckRange
    order: Curve | None = None
    encoding: str | None = None
    is_oriented: bool = False
    epoch: float | None = None

    def wkb(self, values: GeometryArray) -> GeometryArray:
        """Return the values as WKB, converting the input layout."""
        return as_wkb(values, self.encoding)

    @classmethod
    def from_storage(cls, storage: Storage) -> GeometryStorage:
        """Return ``storage`` as a GeometryStorage. Raises TypeError if another handler created it."""
        if not isinstance(storage, cls):
            raise TypeError(f"expected the GeometryStorage of a geometry column, not {type(storage).__name__}")
        return storage


@dataclass(frozen=True, slots=True)
class Covering:
    """Covering column: its name, and the type of its bounds. Bounds of type ``float`` are rounded outward."""

    name: str
    type: Width = "double"

    @classmethod
    def from_option(cls, option: Any, column: str) -> Covering | None:
        """Parse the option ``covering`` of ``column``: a bool, a name, or a mapping with ``name`` and ``type``.

        Raises:
            TypeError: If the option has another type or other keys, or the name is empty or not a string.
            ValueError: If the type of the bounds is unknown.
        """
        if option is None or option is False:
            return None
        if option is True or isinstance(option, str):
            option = {} if option is True else {"name": option}
        if not isinstance(option, Mapping) or not option.keys() <= set(_KEYS):
            raise TypeError(f"covering must be a bool, a name, or a mapping with {' and '.join(_KEYS)}, not {option!r}")
        name, width = option.get("name", column + SUFFIX), option.get("type", "double")
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of a covering column must be a non-empty str, not {name!r}")
        if width not in get_args(Width):
            raise ValueError(f"the type of covering bounds must be {' or '.join(get_args(Width))}, not {width!r}")
        return cls(name, width)

    def field(self, geometry: pa.Field) -> pa.Field:
        """Return the Arrow field of the covering column."""
        number = pa.float64() if self.type == "double" else pa.float32()
        return pa.field(self.name, pa.struct([pa.field(name, number) for name in COVERING_FIELDS]), geometry.nullable)

    def values(self, geometries: pa.ChunkedArray, type: GeospatialType) -> pa.ChunkedArray:
        """Compute the covering column. Raises GeometryError with the row and byte if WKB is invalid."""
        boxes = bounds(geometries, type.edges, type.crs)
        box_type = self.field(pa.field("", pa.binary())).type
        return pa.chunked_array([self._chunk(chunk, box_type) for chunk in boxes.chunks], type=box_type)

    def _chunk(self, boxes: pa.StructArray, type: pa.StructType) -> pa.StructArray:
        sides = {name: boxes.field(boxes.type.get_field_index(name)) for name in COVERING_FIELDS}
        wraps = pc.greater(sides["xmin"], sides["xmax"])
        for name, limit in zip(("xmin", "xmax"), LONGITUDES, strict=True):
            sides[name] = pc.if_else(pc.fill_null(wraps, False), limit, sides[name])
        children = list(sides.values())
        if self.type == "float":
            children = [
                _round_outward(child, is_upward=name.endswith("max"))
                for name, child in zip(COVERING_FIELDS, children, strict=True)
            ]
        mask = boxes.is_null() if boxes.null_count else None
        return pa.StructArray.from_arrays(children, fields=list(type), mask=mask)


def _round_outward(values: pa.Array, is_upward: bool) -> pa.Array:
    """Round doubles to floats: upward if ``is_upward``, otherwise downward."""
    doubles = values.fill_null(0.0).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        floats = doubles.astype(np.float32)
    short = floats < doubles if is_upward else floats > doubles
    limit = np.float32(np.inf if is_upward else -np.inf)
    floats = np.where(short, np.nextafter(floats, limit), floats)
    return pc.if_else(values.is_valid(), pa.array(floats, pa.float32()), pa.scalar(None, pa.float32()))
