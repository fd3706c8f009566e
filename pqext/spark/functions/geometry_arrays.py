"""Geometries in Spark's Arrow arrays: conversion from and to WKB and shapely, and functions on them.

The functions are those of the table in :mod:`pqext.geo.functions.table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from pqext.geo.functions.table import FUNCTIONS, GeometryFunction
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.types import GeospatialType
from pqext.spark.base.types import crs_of_srid, exchange_type
from pqext.spark.functions.udf import FLAT, GEOMETRIES, NUMBER, ArrowFunction

GEOMETRY = T.GeometryType("ANY")
"""Type of computed geometries. Each row has the SRID of its argument."""
_TYPE = exchange_type(GEOMETRY)
_TYPES: dict[str, T.DataType] = {
    "double": T.DoubleType(), "int64": T.LongType(), "bool": T.BooleanType(), "string": T.StringType(),
    "geometry": GEOMETRY,
}  # fmt: skip


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


def table_function(name: str) -> ArrowFunction:
    """Return a function of the table.

    Its required parameters are columns, and its optional parameters are constants.
    """
    function = FUNCTIONS[name]
    geometries = FLAT if function.is_planar else GEOMETRIES
    required = [parameter for parameter in function.parameters if not parameter.is_optional]
    takes = tuple(geometries if parameter.type == "geometry" else NUMBER for parameter in required)
    return ArrowFunction(name, takes, _TYPES[function.result], partial(_evaluate, function))


def _evaluate(function: GeometryFunction, *arrays: pa.Array, **constants: Any) -> pa.Array:
    """Evaluate a function on Spark's arrays. Constructed geometries have the SRID of the first argument."""
    arguments: list[Any] = []
    srid = None
    for parameter, array in zip(function.parameters, arrays, strict=False):
        if parameter.type != "geometry":
            arguments.append(array.fill_null(np.nan).to_numpy(zero_copy_only=False))
            continue
        column = Geometries.from_arrow(array)
        if function.is_planar:
            column.require_planar(function.sql_name)
        if not arguments:
            srid = column.srid
        # Rows of GEOMETRY(ANY) have their own SRIDs, so CRSs are not compared.
        type = GeospatialType() if column.type.planar else column.type
        arguments.append(GeometryColumn(column.wkb, type))
    options = [constants[parameter.name] for parameter in function.parameters if parameter.name in constants]
    result = function(*arguments, *options)
    return geometry_array(result, srid) if function.result == "geometry" else result
