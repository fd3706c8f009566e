"""Register the functions for SQL in a session. SQL names have a prefix, as in ``pq_st_area``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from inspect import signature
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from pqext.spark.base.arrays import variant_from_spark, variant_to_spark
from pqext.spark.functions import (
    geometry_accessors,
    geometry_formats,
    geometry_operations,
    geometry_predicates,
    variant_paths,
    variant_schemas,
    variant_values,
)
from pqext.spark.functions.geometry_arrays import GEOMETRY, Geometries, from_shapes
from pqext.spark.functions.udf import NUMBER, ArrowFunction, arrow_udf, wrap_evaluation
from pqext.variant.access.path import as_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MODULES = (
    geometry_accessors,
    geometry_formats,
    geometry_accessors,
    geometry_operations,
    variant_paths,
    variant_schemas,
    variant_values,
)


def register_functions(spark: SparkSession) -> list[str]:
    """Register all functions and their aliases under names with the prefix ``pq_``, and return these names.

    Options are additional arguments that must have the same value in all rows: paths, ``precision``, ``zoom`` and CRSs.
    Geometries are returned as GEOMETRY(ANY), and ``pq_variant_get`` returns VARIANT. An argument of the wrong type
    fails when the query runs.
    """
    names = []
    for name, type, evaluate, returns in _iter_functions():
        sql_name = f"pq_{name}"
        call = wrap_evaluation(_check_count(evaluate), sql_name)
        spark.udf.register(sql_name, arrow_udf(call, type, sql_name, returns))
        names.append(sql_name)
    return names


def _iter_functions() -> Iterator[tuple[str, T.DataType, Callable[..., Any], Any]]:
    """Yield each function's SQL name, Spark type, implementation and annotated return type."""
    functions = [function for module in _MODULES for function in _functions(module)]
    table: dict[str, tuple[T.DataType, Callable[..., Any], Any]] = {
        function.name: (function.type, _DoubleArguments(function), pa.Array)
        for function in [*functions, *geometry_predicates.PAIRS.values()]
    } | _SQL_FUNCTIONS
    aliases = {alias: name for module in _MODULES for alias, name in _aliases(module)}
    for name, function_name in (dict(zip(table, table, strict=True)) | aliases).items():
        yield name, *table[function_name]


def _functions(module: Any) -> list[ArrowFunction]:
    return [value for value in vars(module).values() if isinstance(value, ArrowFunction)]


def _aliases(module: Any) -> Iterator[tuple[str, str]]:
    """Yield each alias that a module defines for a function, and the name of the function."""
    for alias, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__ and alias != function.__name__:
            yield alias, function.__name__


def _check_count(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``evaluate`` to raise ``TypeError`` for a wrong number of arguments."""
    least, most = evaluate.counts if isinstance(evaluate, _DoubleArguments) else _argument_counts(evaluate)

    def call(*arrays: pa.Array) -> Any:
        if not least <= len(arrays) <= most:
            counts = f"{least} or more" if most == math.inf else " or ".join(map(str, sorted({least, int(most)})))
            raise TypeError(f"expected {counts} argument{'s' * (counts != '1')}, not {len(arrays)}")
        return evaluate(*arrays)

    return call


def _argument_counts(evaluate: Callable[..., Any]) -> tuple[int, float]:
    """Return the minimum and maximum number of arguments of a function."""
    parameters = signature(evaluate).parameters.values()
    least = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    return least, math.inf if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)


class _DoubleArguments:
    """Function wrapper that converts numeric arguments to doubles."""

    def __init__(self, function: ArrowFunction) -> None:
        self.counts = (len(function.argument_types),) * 2
        self.numbers = [type is NUMBER for type in function.argument_types]
        self.evaluate = function.evaluate

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        arguments = [
            array.cast(pa.float64()) if is_number else array
            for array, is_number in zip(arrays, self.numbers, strict=True)
        ]
        return self.evaluate(*arguments)


def _constant_value(array: pa.Array, name: str) -> Any:
    """Return the constant value of an option; None if there are no rows. Raises ``ValueError`` if rows differ."""
    if not len(array):
        return None
    first = array[0]
    if array.null_count or not pc.all(pc.equal(array, first)).as_py():
        raise ValueError(f"{name} must have the same value, which is not null, in all rows")
    return first.as_py()


def _get(variants: pa.Array, paths: pa.Array) -> pa.Array:
    return _get_values(variants, paths, True)


def _try_get(variants: pa.Array, paths: pa.Array) -> pa.Array:
    return _get_values(variants, paths, False)


def _get_values(variants: pa.Array, paths: pa.Array, strict: bool) -> pa.Array:
    from pqext import variant

    path = _constant_value(paths, "the path")
    as_path(path or "$")
    return variant_to_spark(variant.get(variant_from_spark(variants), path or "$", variant.variant_type(), strict))


def _set(variants: pa.Array, paths: pa.Array, values: pa.Array) -> pa.Array:
    return variant_paths.VARIANT_SET.evaluate(variants, values, path=_constant_value(paths, "the path") or "$")


def _delete(variants: pa.Array, path: pa.Array, *paths: pa.Array) -> pa.Array:
    steps = tuple(_constant_value(step, "the path") for step in (path, *paths))
    return variant_paths.VARIANT_DELETE.evaluate(variants, paths=() if None in steps else steps)


def _point(x: pa.Array, y: pa.Array, z: pa.Array | None = None) -> pa.Array:
    numbers = [array.cast(pa.float64()) for array in (x, y, z) if array is not None]
    return geometry_formats.set_default_srid(geometry_formats.POINT.evaluate(*numbers))


def _from_wkb(wkb: pa.Array) -> pa.Array:
    return geometry_formats.set_default_srid(geometry_formats.AS_WKB.evaluate(wkb))


def _from_wkt(texts: pa.Array) -> pa.Array:
    return geometry_formats.set_default_srid(geometry_formats.FROM_WKT.evaluate(texts))


def _from_geojson(texts: pa.Array) -> pa.Array:
    return geometry_formats.set_default_srid(geometry_formats.FROM_GEOJSON.evaluate(texts))


def _geohash(array: pa.Array, precision: pa.Array) -> pa.Array:
    return geometry_accessors.GEOHASH.evaluate(array, precision=_constant_value(precision, "precision") or 1)


def _quadkey(array: pa.Array, zoom: pa.Array) -> pa.Array:
    return geometry_accessors.QUADKEY.evaluate(array, zoom=_constant_value(zoom, "zoom") or 1)


def _envelope_agg(array: pa.Array) -> Any:
    import shapely

    column = Geometries.from_arrow(array).require_planar()
    shapes = column.shapes()
    bounds = shapely.total_bounds(shapes)
    if column.missing.all() or shapely.is_empty(shapes[~column.missing]).all():
        return None
    srid = 0 if column.srid is None else pc.max(column.srid).as_py()
    return from_shapes([shapely.envelope(shapely.box(*bounds.tolist()))], srid)[0].as_py()


_VARIANT = T.VariantType()
_SQL_FUNCTIONS: dict[str, tuple[T.DataType, Callable[..., Any], Any]] = {
    "variant_get": (_VARIANT, _get, pa.Array),
    "try_variant_get": (_VARIANT, _try_get, pa.Array),
    "variant_set": (_VARIANT, _set, pa.Array),
    "variant_delete": (_VARIANT, _delete, pa.Array),
    "variant_merge": (_VARIANT, variant_paths.VARIANT_MERGE.evaluate, pa.Array),
    "st_transform": (GEOMETRY, geometry_operations.transform_rows, pa.Array),
    "st_point": (GEOMETRY, _point, pa.Array),
    "st_geomfromwkb": (GEOMETRY, _from_wkb, pa.Array),
    "st_geomfromwkt": (GEOMETRY, _from_wkt, pa.Array),
    "st_geomfromgeojson": (GEOMETRY, _from_geojson, pa.Array),
    "st_geohash": (T.StringType(), _geohash, pa.Array),
    "st_quadkey": (T.StringType(), _quadkey, pa.Array),
    "st_envelope_agg": (GEOMETRY, _envelope_agg, dict),
    "st_union_agg": (GEOMETRY, geometry_operations.union_all, dict),
    "schema_of_variant_agg": (T.StringType(), variant_schemas.infer_common_schema, str),
}
