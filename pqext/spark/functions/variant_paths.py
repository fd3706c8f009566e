"""Values at paths of VARIANT columns, and what lies in them as rows of their own."""

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
from pqext.spark.base.arrays import conform
from pqext.spark.base.timezones import active_timezone, task_timezone
from pqext.spark.base.types import exchange_type, parse_type, variant_target
from pqext.spark.functions.udf import VARIANTS, ColumnOrName, arrow_udf, named, taken, text_of
from pqext.spark.functions.variant_arrays import normal_variant
from pqext.variant.access.nested import CAST_FAILED
from pqext.variant.access.path import as_many_path, as_path, format_path
from pqext.variant.access.targets import depends_on_timezone, target_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def variant_get(column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant") -> Column:
    """The value at ``path`` (``$.a.b[0]``) of a VARIANT or of a shredded struct, cast to ``type``.

    Null where the path leads nowhere or to JSON null; a value that does not cast fails the query, as in Spark's own
    function of this name. Plans show the path, as ``variant_get[$.a.b[0]](v)``. ``type`` is a Spark type or its name,
    nested ones (``ARRAY<STRUCT<a: INT>>``, ``MAP<STRING, DOUBLE>``) among them, ``variant`` for the value as it is.
    Local times are those of the session's time zone when the column is made.
    Raises ``ValueError`` for a path or an unknown type.
    """
    return get_in_timezone(column, path, type, strict=True)


def try_variant_get(
    column: ColumnOrName, path: str | Sequence[str | int], type: str | T.DataType = "variant"
) -> Column:
    """As :func:`variant_get`, but null where a value does not cast, as in Spark's ``try_variant_get``."""
    return get_in_timezone(column, path, type)


def variant_explode(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """The elements of the array, or the fields of the object, at ``path``: the columns ``pos``, ``key``, ``value``.

    To be selected, as ``F.inline`` is: ``df.select("id", functions.variant_explode("v", "$.items"))``. Paths may
    have wildcards, and values that do not cast to ``type`` are null, as in :func:`pqext.variant.explode`.
    """
    return F.inline(_entries(column, path, type))


def variant_explode_outer(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """As :func:`variant_explode`, with a row of nulls where there is nothing to explode."""
    return F.inline_outer(_entries(column, path, type))


def get_in_timezone(
    column: ColumnOrName,
    path: str | Sequence[str | int],
    type: str | T.DataType,
    timezone: str | None = None,
    strict: bool = False,
) -> Column:
    """:func:`try_variant_get`, or :func:`variant_get` if ``strict``, in a time zone other than the active session's."""
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_path(path))
    wanted = target_type(variant_target(spark_type))
    zone = timezone or _timezone_for(wanted)

    def get(values: pa.Array) -> pa.Array:
        try:
            return _get(values, text, wanted, exchange_type(spark_type), zone, strict)
        except VariantError as error:
            raise _cast_error(error, values, text, spark_type) from None

    name = "variant_get" if strict else "try_variant_get"
    found = arrow_udf(get, spark_type, f"{name}[{text}]")(taken(name, VARIANTS, column))
    return named(found, name, [text_of(column), text, spark_type.simpleString()], spark_type.simpleString())


def _entries(column: ColumnOrName, path: str, type: str | T.DataType) -> Column:
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_many_path(path))
    wanted = target_type(variant_target(spark_type))
    zone = _timezone_for(wanted)
    fields = {"pos": T.IntegerType(), "key": T.StringType(), "value": spark_type}
    entries = T.ArrayType(T.StructType([T.StructField(name, type) for name, type in fields.items()]))

    def explode(values: pa.Array) -> pa.Array:
        from pqext import variant

        table = variant.explode(normal_variant(values), text, wanted, timezone=task_timezone(zone))
        counts = np.bincount(table.column("row").to_numpy(), minlength=len(values))
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
        members = [table.column(name).combine_chunks() for name in fields]
        structs = pa.StructArray.from_arrays(members, names=list(fields))
        return conform(pa.ListArray.from_arrays(offsets, structs), exchange_type(entries))

    return arrow_udf(explode, entries, f"variant_explode[{text}]")(taken("variant_explode", VARIANTS, column))


def group_get(
    metadata: Column,
    value: Column | None,
    typed_value: Column | None,
    path: str,
    type: T.DataType,
    timezone: str | None = None,
) -> Column:
    """:func:`try_variant_get` on one group of a shredded struct, so that Spark reads that group's columns only."""
    members = {"metadata": metadata, "value": value, "typed_value": typed_value}
    names = tuple(name for name, column in members.items() if column is not None)
    exchange = exchange_type(type)
    wanted = target_type(variant_target(type))
    zone = timezone or _timezone_for(wanted)

    def get(arrays: tuple[pa.Array, ...]) -> pa.Array:
        struct = pa.StructArray.from_arrays(list(arrays), names=list(names), mask=arrays[0].is_null())
        return _get(struct, path, wanted, exchange, zone)

    def of_two(metadata: pa.Array, other: pa.Array) -> pa.Array:
        return get((metadata, other))

    def of_three(metadata: pa.Array, value: pa.Array, typed_value: pa.Array) -> pa.Array:
        return get((metadata, value, typed_value))

    present = [column for column in members.values() if column is not None]
    return arrow_udf(of_two if len(present) == 2 else of_three, type, f"try_variant_get[{path}]")(*present)


def _timezone_for(wanted: pa.DataType) -> str | None:
    """The active session's time zone where values of a type depend on it."""
    return active_timezone() if depends_on_timezone(wanted) else None


def _cast_error(error: VariantError, values: pa.Array, path: str, type: T.DataType) -> VariantError:
    """The error of a strict cast with the value, Spark's name of the type, and the remedy; other errors as they are."""
    from pqext import variant

    if error.row is None or CAST_FAILED not in error.message:
        return error
    value = variant.to_json(variant.get(normal_variant(values.slice(error.row, 1)), path, "variant"))[0]
    return VariantError(
        f"the value {excerpt(escape_text(str(value)), limit=100)} at {path} does not cast to "
        f"{type.simpleString().upper()}; "
        "try_variant_get gives null for it",
        row=error.row,
    )


def _get(
    values: pa.Array, path: str, wanted: pa.DataType, exchange: pa.DataType, zone: str | None, strict: bool = False
) -> pa.Array:
    from pqext import variant

    found = variant.get(normal_variant(values), path, wanted, strict, timezone=task_timezone(zone))
    return conform(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, exchange)
