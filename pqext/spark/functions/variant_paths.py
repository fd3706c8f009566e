"""Extract values at paths of VARIANT columns, and explode arrays and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import VariantError
from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text
from pqext.spark.base.arrays import conform, variant_from_spark
from pqext.spark.base.settings import active_timezone, task_timezone
from pqext.spark.base.types import exchange_type, parse_type, variant_target
from pqext.spark.functions.udf import VARIANTS, ColumnOrName, arrow_udf, check_argument, display_name, with_name
from pqext.variant.access.nested import CAST_FAILED
from pqext.variant.access.path import as_many_path, as_path, format_path
from pqext.variant.access.targets import depends_on_timezone, target_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def variant_get(column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant") -> Column:
    """Extract the value at a path of a VARIANT or a shredded struct, cast to a type.

    Null if the path does not exist or the value is JSON null. A value that cannot be cast fails the query, as in
    Spark's function of this name. Local times are in the time zone that the session has when this function is called.
    Plans display the path: ``variant_get[$.a.b[0]](v)``.

    Args:
        column: A column or its name.
        path: A path such as ``$.a.b[0]``, or its steps.
        type: A Spark type or its name, including nested types (``ARRAY<STRUCT<a: INT>>``, ``MAP<STRING, DOUBLE>``), or
            ``variant``.

    Returns:
        A column of the type.

    Raises:
        ValueError: If the path is invalid or the type is unknown.

    Example:
        >>> df.select(variant_get("event", "$.user.id", "bigint"))  # doctest: +SKIP
    """
    return get_in_timezone(column, path, type, strict=True)


def try_variant_get(
    column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant"
) -> Column:
    """Extract a value like :func:`variant_get`, with null for values that cannot be cast."""
    return get_in_timezone(column, path, type)


def variant_explode(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """Explode the array or object at ``path`` into rows with columns ``pos``, ``key`` and ``value``.

    Use it in ``select``, like ``F.inline``: ``df.select("id", functions.variant_explode("v", "$.items"))``. Paths may
    have wildcards, and values that cannot be cast to ``type`` are null, as in :func:`pqext.variant.explode`.
    """
    return F.inline(_entries(column, path, type))


def variant_explode_outer(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """Explode like :func:`variant_explode`, with a row of nulls for rows without an array or object."""
    return F.inline_outer(_entries(column, path, type))


def get_in_timezone(
    column: ColumnOrName,
    path: str | Sequence[str | int],
    type: str | T.DataType,
    timezone: str | None = None,
    strict: bool = False,
) -> Column:
    """Return :func:`try_variant_get`, or :func:`variant_get` if ``strict``, with an explicit time zone."""
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_path(path))
    target = target_type(variant_target(spark_type))
    zone = timezone or _timezone_for(target)

    def get(values: pa.Array) -> pa.Array:
        try:
            return _get(values, text, target, exchange_type(spark_type), zone, strict)
        except VariantError as error:
            raise _cast_error(error, values, text, spark_type) from None

    name = "variant_get" if strict else "try_variant_get"
    result = arrow_udf(get, spark_type, f"{name}[{text}]")(check_argument(name, VARIANTS, column))
    return with_name(result, name, [display_name(column), text, spark_type.simpleString()], spark_type.simpleString())


def _entries(column: ColumnOrName, path: str, type: str | T.DataType) -> Column:
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_many_path(path))
    target = target_type(variant_target(spark_type))
    zone = _timezone_for(target)
    fields = {"pos": T.IntegerType(), "key": T.StringType(), "value": spark_type}
    entries = T.ArrayType(T.StructType([T.StructField(name, type) for name, type in fields.items()]))

    def explode(values: pa.Array) -> pa.Array:
        from pqext import variant

        table = variant.explode(variant_from_spark(values), text, target, timezone=task_timezone(zone))
        counts = np.bincount(table.column("row").to_numpy(), minlength=len(values))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        members = [table.column(name).combine_chunks() for name in fields]
        structs = pa.StructArray.from_arrays(members, names=list(fields))
        return conform(pa.ListArray.from_arrays(offsets, structs), exchange_type(entries))

    return arrow_udf(explode, entries, f"variant_explode[{text}]")(check_argument("variant_explode", VARIANTS, column))


def group_get(
    metadata: Column,
    value: Column | None,
    typed_value: Column | None,
    path: str,
    type: T.DataType,
    timezone: str | None = None,
) -> Column:
    """Apply :func:`try_variant_get` to a group of a shredded struct, so that Spark reads only the group's columns."""
    members = {"metadata": metadata, "value": value, "typed_value": typed_value}
    names = tuple(name for name, column in members.items() if column is not None)
    exchange = exchange_type(type)
    target = target_type(variant_target(type))
    zone = timezone or _timezone_for(target)

    def get(arrays: tuple[pa.Array, ...]) -> pa.Array:
        struct = pa.StructArray.from_arrays(list(arrays), names=list(names), mask=arrays[0].is_null())
        return _get(struct, path, target, exchange, zone)

    def get_two(metadata: pa.Array, other: pa.Array) -> pa.Array:
        return get((metadata, other))

    def get_three(metadata: pa.Array, value: pa.Array, typed_value: pa.Array) -> pa.Array:
        return get((metadata, value, typed_value))

    present = [column for column in members.values() if column is not None]
    return arrow_udf(get_two if len(present) == 2 else get_three, type, f"try_variant_get[{path}]")(*present)


def _timezone_for(target: pa.DataType) -> str | None:
    """Return the time zone of the active session if values of a type depend on it, or None."""
    return active_timezone() if depends_on_timezone(target) else None


def _cast_error(error: VariantError, values: pa.Array, path: str, type: T.DataType) -> VariantError:
    """Return the error of a strict cast with the value, Spark's name of the type and the remedy."""
    from pqext import variant

    if error.row is None or CAST_FAILED not in error.message:
        return error
    value = variant.to_json(variant.get(variant_from_spark(values.slice(error.row, 1)), path, "variant"))[0]
    text, name = excerpt(escape_text(str(value)), limit=100), type.simpleString().upper()
    return VariantError(
        f"the value {text} at {path} does not cast to {name}; try_variant_get returns null for it",
        row=error.row,
    )


def _get(
    values: pa.Array, path: str, target: pa.DataType, exchange: pa.DataType, zone: str | None, strict: bool = False
) -> pa.Array:
    from pqext import variant

    result = variant.get(variant_from_spark(values), path, target, strict, timezone=task_timezone(zone))
    return conform(result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result, exchange)
