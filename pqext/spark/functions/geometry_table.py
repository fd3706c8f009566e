"""Functions of the table in :mod:`pqext.geo.functions.table` as functions on Spark columns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from pqext.geo.functions.table import FUNCTIONS, GeometryFunction
from pqext.geo.joins.geometry_column import GeometryColumn
from pqext.geo.types import GeospatialType
from pqext.spark.functions.geometry_arrays import GEOMETRY, Geometries, geometry_array
from pqext.spark.functions.udf import FLAT, GEOMETRIES, NUMBER, ArrowFunction

_TYPES: dict[str, T.DataType] = {
    "double": T.DoubleType(), "int64": T.LongType(), "bool": T.BooleanType(), "string": T.StringType(),
    "geometry": GEOMETRY,
}  # fmt: skip


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
