"""Geometries in Spark's Arrow arrays: conversion from and to WKB and shapely, and functions on them.

The functions are listed in the table in :mod:`pqext.geo.functions.table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from pqext.geo.functions.table import FUNCTIONS, GeometryFunction
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.types import GeospatialType
from pqext.spark.base.types import crs_of_srid, to_exchange_type
from pqext.spark.functions.udf import CONVERT_EDGES, FLAT, GEOMETRIES, NUMBER, ArrowFunction

GEOMETRY = T.GeometryType("ANY")
"""Type of computed geometries. Each row has the SRID of its argument."""
_TYPE = to_exchange_type(GEOMETRY)
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
            remedy = "; use pq_st_geomfromwkt for well-known text" if pa.types.is_string(array.type) else ""
            raise TypeError(f"expected GEOMETRY, GEOGRAPHY or BINARY with WKB, not {array.type}{remedy}")
        return cls(array, GeospatialType())

    def require_planar(self) -> Geometries:
        """Return self if the geometries are planar. Raises ``TypeError`` for GEOGRAPHY."""
        if not self.type.planar:
            raise TypeError("expected planar geometries, not GEOGRAPHY: convert it with CAST(... AS GEOMETRY(4326))")
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


def geometry_columns(arrays: Sequence[pa.Array]) -> list[Geometries]:
    """Parse the geometry arguments of a function. BINARY arguments adopt the edges and CRS of GEOGRAPHY arguments.

    Raises ``TypeError`` if one argument is GEOMETRY and another is GEOGRAPHY.
    """
    columns = [Geometries.from_arrow(array) for array in arrays]
    globe = next((column.type for column in columns if not column.type.planar), None)
    if globe is not None:
        columns = [column if column.srid is not None else replace(column, type=globe) for column in columns]
        if any(column.type.planar for column in columns):
            raise TypeError(f"expected two GEOMETRY or two GEOGRAPHY arguments, not one of each: {CONVERT_EDGES}")
    return columns


def create_function(name: str) -> ArrowFunction:
    """Create the Spark function for the geometry function ``name``.

    Its required parameters are columns, and its optional parameters are constants.
    """
    function = FUNCTIONS[name]
    geometries = FLAT if function.is_planar else GEOMETRIES
    required = [parameter for parameter in function.parameters if not parameter.is_optional]
    types = tuple(geometries if parameter.type == "geometry" else NUMBER for parameter in required)
    return ArrowFunction(name, types, _TYPES[function.result], partial(_evaluate, function))


def _evaluate(function: GeometryFunction, *arrays: pa.Array, **constants: Any) -> pa.Array:
    """Evaluate a function on Spark's arrays. Constructed geometries have the SRID of the first argument."""
    are_geometries = [parameter.type == "geometry" for parameter in function.parameters]
    columns = geometry_columns(list(compress(arrays, are_geometries)))
    if function.is_planar:
        for column in columns:
            column.require_planar()
    # Rows of GEOMETRY(ANY) have their own SRIDs, so CRSs are not compared.
    types = [GeospatialType() if column.type.planar else column.type for column in columns]
    geometries = (GeometryColumn(column.wkb, type) for column, type in zip(columns, types, strict=True))
    arguments = [
        next(geometries) if is_geometry else array.fill_null(np.nan).to_numpy(zero_copy_only=False)
        for is_geometry, array in zip(are_geometries, arrays, strict=False)
    ]
    options = [constants[parameter.name] for parameter in function.parameters if parameter.name in constants]
    result = function(*arguments, *options)
    return geometry_array(result, columns[0].srid) if function.result == "geometry" else result
