"""Convert between Spark's Arrow arrays of geometries, WKB and shapely geometries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.types import GeospatialType
from pqext.spark.base.types import crs_of_srid, exchange_type

GEOMETRY = T.GeometryType("ANY")
"""Type of computed geometries. Each row has the SRID of its argument."""
_TYPE = exchange_type(GEOMETRY)


@dataclass(frozen=True)
class Geometries(GeometryColumn):
    """Geometry column with the SRID of each row."""

    srid: pa.Array | None = None

    @classmethod
    def from_arrow(cls, array: pa.Array) -> Geometries:
        """Parse an array that Spark passes for GEOMETRY, GEOGRAPHY or BINARY. Raises ``TypeError`` for other types."""
        if pa.types.is_struct(array.type) and array.type.get_field_index("wkb") >= 0:
            marks = array.type.field("wkb").metadata or {}
            srid = int(marks.get(b"srid", b"-1"))
            crs = crs_of_srid(srid) if srid >= 0 else None
            type = GeospatialType(crs, "spherical" if b"geography" in marks else "planar")
            return cls(pc.struct_field(array, "wkb"), type, pc.struct_field(array, "srid"))
        if pa.types.is_null(array.type):
            array = array.cast(pa.binary())
        if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
            raise TypeError(f"expected GEOMETRY, GEOGRAPHY or BINARY of WKB, not {array.type}")
        return cls(array, GeospatialType())

    def require_planar(self, function: str) -> Geometries:
        """Return self if the geometries are planar. Raises ``TypeError`` for GEOGRAPHY."""
        if not self.type.planar:
            raise TypeError(f"{function} requires planar geometries: cast the GEOGRAPHY to GEOMETRY(4326)")
        return self


def geometry_array(wkb: pa.Array, srid: pa.Array | int | None) -> pa.Array:
    """Convert WKB to a column of GEOMETRY(ANY). If ``srid`` is None or null, SRID 0 states an unknown CRS."""
    if srid is None or isinstance(srid, int):
        srid = pa.repeat(pa.scalar(srid or 0, pa.int32()), len(wkb))
    elif srid.null_count:
        srid = srid.fill_null(0)
    mask = wkb.is_null() if wkb.null_count else None
    return pa.StructArray.from_arrays([srid, wkb.cast(pa.binary())], fields=list(_TYPE), mask=mask)


def from_shapes(shapes: Any, srid: pa.Array | int | None) -> pa.Array:
    """Convert shapely geometries to a column of GEOMETRY(ANY)."""
    from pqext.geo.wkb import from_shapely

    return geometry_array(from_shapely(shapes), srid)


def geometry_pair(function: str, array: pa.Array, other: pa.Array) -> tuple[Geometries, Geometries, bool]:
    """Parse two arrays of geometries. Returns the parsed arrays and whether the geometries are planar.

    Raises ``TypeError`` if one array is planar and the other is GEOGRAPHY.
    """
    left, right = Geometries.from_arrow(array), Geometries.from_arrow(other)
    if left.type.planar != right.type.planar:
        raise TypeError(f"{function} requires two GEOMETRY or two GEOGRAPHY columns, not one of each")
    return left, right, left.type.planar
