"""Extract values at paths of VARIANT columns, explode arrays and objects, and set, delete or merge values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import VariantError
from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text
from pqext.spark.base.arrays import conform, variant_from_spark, variant_to_spark
from pqext.spark.base.settings import active_timezone, task_timezone
from pqext.spark.base.types import parse_type, to_exchange_type, variant_target
from pqext.spark.functions.udf import (
    ANYTHING,
    VARIANTS,
    ArrowFunction,
    ColumnOrName,
    arrow_udf,
    check_argument,
    display_name,
    name_column,
)
from pqext.variant.access.nested import CAST_FAILED
from pqext.variant.access.path import as_path, as_wildcard_path, format_path
from pqext.variant.access.targets import depends_on_timezone, target_type

Steps = str | Sequence[str | int]


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
    """Extract a value like :func:`variant_get`, with null for values that cannot be cast.

    Example:
        >>> df.select(try_variant_get("event", "$.mag", "double"))  # doctest: +SKIP
    """
    return get_in_timezone(column, path, type)


def variant_explode(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """Explode the array or object at ``path`` into rows with columns ``pos``, ``key`` and ``value``.

    Use it in ``select``, like ``F.inline``. Paths may have wildcards, and values that cannot be cast to ``type`` are
    null, as in :func:`pqext.variant.explode`.

    Example:
        >>> df.select("id", variant_explode("event", "$.items"))  # doctest: +SKIP
    """
    return F.inline(_entries(column, path, type))


def variant_explode_outer(column: ColumnOrName, path: str = "$", type: str | T.DataType = "variant") -> Column:
    """Explode like :func:`variant_explode`, with a row of nulls for rows without an array or object.

    Example:
        >>> df.select("id", variant_explode_outer("event", "$.items", "string"))  # doctest: +SKIP
    """
    return F.inline_outer(_entries(column, path, type))


def get_in_timezone(
    column: ColumnOrName,
    path: str | Sequence[str | int],
    type: str | T.DataType,
    timezone: str | None = None,
    strict: bool = False,
) -> Column:
    """Extract a value like :func:`try_variant_get`, or :func:`variant_get` if ``strict``, in an explicit time zone."""
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_path(path))
    target = target_type(variant_target(spark_type))
    zone = timezone or _timezone_for(target)

    def get(values: pa.Array) -> pa.Array:
        try:
            return _get(values, text, target, to_exchange_type(spark_type), zone, strict)
        except VariantError as error:
            raise _cast_error(error, values, text, spark_type) from None

    name = "variant_get" if strict else "try_variant_get"
    result = arrow_udf(get, spark_type, f"{name}[{text}]")(check_argument(name, VARIANTS, column))
    return name_column(result, name, [display_name(column), text, spark_type.simpleString()], spark_type.simpleString())


def _entries(column: ColumnOrName, path: str, type: str | T.DataType) -> Column:
    spark_type = parse_type(type) if isinstance(type, str) else type
    text = format_path(as_wildcard_path(path))
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
        return conform(pa.ListArray.from_arrays(offsets, structs), to_exchange_type(entries))

    return arrow_udf(explode, entries, f"variant_explode[{text}]")(check_argument("variant_explode", VARIANTS, column))


def get_from_group(
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
    exchange = to_exchange_type(type)
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
    """Return the time zone of the active session; None if values of ``target`` do not depend on a time zone."""
    return active_timezone() if depends_on_timezone(target) else None


def _cast_error(error: VariantError, values: pa.Array, path: str, type: T.DataType) -> VariantError:
    """Return the error of a failed strict cast. Its message states the value, the Spark type name and the remedy.

    Other errors are returned unchanged.
    """
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


def variant_set(
    variant: ColumnOrName, path: Steps, value: ColumnOrName | Any, *, create: bool = True, strict: bool = False
) -> Column:
    """Set the value at a path of a VARIANT, or add it if the path does not exist. Return null for null.

    Args:
        variant: A column or its name.
        path: A path such as ``$.a.b[0]``, or its steps.
        value: A column (``F.col("x")``) of VARIANT or a type that converts to it, or a Python value for all rows,
            including ``str``. Nulls of a column set the variant null.
        create: Whether to add missing fields and elements, as in :func:`pqext.variant.set`.
        strict: Whether to fail the query if the value cannot be set, as in :func:`pqext.variant.set`.

    Returns:
        A VARIANT column.

    Raises:
        ValueError: If the path is invalid.

    Example:
        >>> df.select(variant_set("v", "$.state", "closed"))  # doctest: +SKIP
    """
    text = format_path(as_path(path, from_end=True))
    if isinstance(value, Column):
        return VARIANT_SET(variant, value, path=text, create=create, strict=strict)
    return VARIANT_SET_CONSTANT(variant, path=text, value=_constant(value), create=create, strict=strict)


def variant_delete(variant: ColumnOrName, *paths: Steps, strict: bool = False) -> Column:
    """Delete the fields and elements at ``paths`` of a VARIANT, in order. Return null for null.

    Rows without a value at a path are unchanged, or fail the query with ``strict=True``. Raises ``ValueError`` for an
    invalid path and for ``"$"``.

    Example:
        >>> df.withColumn("event", variant_delete("event", "$.user.email", "$.token"))  # doctest: +SKIP
    """
    if not paths:
        raise ValueError("variant_delete requires a path, such as '$.a'")
    texts = tuple(format_path(as_path(path, from_end=True)) for path in paths)
    if "$" in texts:
        raise ValueError("the root value cannot be deleted; use F.lit(None) for null")
    return VARIANT_DELETE(variant, paths=texts, strict=strict)


def variant_merge(variant: ColumnOrName, patch: ColumnOrName | Any) -> Column:
    """Apply a JSON merge patch (RFC 7396) to a VARIANT, as :func:`pqext.variant.merge` does. Return null for null.

    ``patch`` is a column of VARIANT or a struct, or a Python value for all rows, usually a dict. Nulls in a
    patch delete fields. A null row of a column changes nothing.

    Example:
        >>> df.withColumn("event", variant_merge("event", {"status": "closed", "note": None}))  # doctest: +SKIP
    """
    if isinstance(patch, Column):
        return VARIANT_MERGE(variant, patch)
    if isinstance(patch, str):
        raise TypeError("a patch must be a column or a dict, not a str: use F.col for a column's name")
    return VARIANT_MERGE_CONSTANT(variant, value=_constant(patch))


def variant_strip_nulls(variant: ColumnOrName, include_arrays: bool = True) -> Column:
    """Remove null fields at any depth of a VARIANT, and null elements of arrays unless ``include_arrays`` is false.

    Null for null. The variant null is unchanged.

    Example:
        >>> df.withColumn("event", variant_strip_nulls("event"))  # doctest: +SKIP
    """
    return VARIANT_STRIP_NULLS(variant, include_arrays=include_arrays)


class _Value:
    """Constant value that plans display as its ``repr``."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return repr(self.value)


def _constant(value: Any) -> _Value:
    from pqext import variant

    if not isinstance(value, variant.Variant):
        variant.from_python([value], none_is_null=False)  # raises for an unsupported value
    return _Value(value)


def _to_storage(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and values.type.get_field_index("metadata") >= 0:
        return variant_from_spark(values)
    return values


def _set(variants: pa.Array, values: pa.Array, path: str, create: bool = True, strict: bool = False) -> pa.Array:
    from pqext import variant

    changed = variant.set(variant_from_spark(variants), path, _to_storage(values), create=create, strict=strict)
    return variant_to_spark(changed)


def _set_constant(variants: pa.Array, path: str, value: _Value, create: bool, strict: bool) -> pa.Array:
    from pqext import variant

    return variant_to_spark(variant.set(variant_from_spark(variants), path, value.value, create=create, strict=strict))


def _delete(variants: pa.Array, paths: tuple[str, ...], strict: bool = False) -> pa.Array:
    from pqext import variant

    result = variant_from_spark(variants)
    for path in paths:
        result = variant.delete(result, path, strict=strict)
    return variant_to_spark(result)


def _merge(variants: pa.Array, patches: pa.Array) -> pa.Array:
    from pqext import variant

    return variant_to_spark(variant.merge(variant_from_spark(variants), _to_storage(patches)))


def _merge_constant(variants: pa.Array, value: _Value) -> pa.Array:
    from pqext import variant

    return variant_to_spark(variant.merge(variant_from_spark(variants), value.value))


def _strip_nulls(variants: pa.Array, include_arrays: bool = True) -> pa.Array:
    from pqext import variant

    return variant_to_spark(variant.strip_nulls(variant_from_spark(variants), arrays=include_arrays))


VARIANT_SET = ArrowFunction("variant_set", (VARIANTS, ANYTHING), T.VariantType(), _set)
VARIANT_SET_CONSTANT = ArrowFunction("variant_set", (VARIANTS,), T.VariantType(), _set_constant)
VARIANT_DELETE = ArrowFunction("variant_delete", (VARIANTS,), T.VariantType(), _delete)
VARIANT_MERGE = ArrowFunction("variant_merge", (VARIANTS, ANYTHING), T.VariantType(), _merge)
VARIANT_MERGE_CONSTANT = ArrowFunction("variant_merge", (VARIANTS,), T.VariantType(), _merge_constant)
VARIANT_STRIP_NULLS = ArrowFunction("variant_strip_nulls", (VARIANTS,), T.VariantType(), _strip_nulls)
