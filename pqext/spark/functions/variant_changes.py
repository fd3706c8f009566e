"""Variants changed: a value set or deleted at a path, merged, or rid of nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.udf import ANYTHING, VARIANTS, ArrowFunction, ColumnOrName
from pqext.spark.functions.variant_arrays import normal_variant, to_spark
from pqext.variant.access.path import as_path, format_path

Steps = str | Sequence[str | int]


def variant_set(
    variant: ColumnOrName, path: Steps, value: ColumnOrName | Any, *, create: bool = True, strict: bool = False
) -> Column:
    """The VARIANT with the value at ``path`` replaced, or added where there is none.

    ``value`` is a column (``F.col("x")``), VARIANT or of any type that has one as VARIANT, whose nulls set the variant
    null, or one Python value for all rows, ``str`` among them: ``variant_set("v", "$.state", "closed")``. ``create``
    and ``strict`` are those of :func:`pqext.variant.set`. Null on null. Raises ``ValueError`` for a bad path.
    """
    text = format_path(as_path(path, from_end=True))
    if isinstance(value, Column):
        return VARIANT_SET(variant, value, path=text, create=create, strict=strict)
    return VARIANT_SET_ONE(variant, path=text, value=_one(value), create=create, strict=strict)


def variant_delete(variant: ColumnOrName, *paths: Steps, strict: bool = False) -> Column:
    """The VARIANT without the fields and elements at ``paths``, one path behind the other. Null on null.

    Rows that have nothing at a path keep their value, or fail the query with ``strict=True``. Raises ``ValueError`` for
    a bad path, and for the whole value, ``"$"``.
    """
    if not paths:
        raise ValueError("variant_delete needs a path")
    texts = tuple(format_path(as_path(path, from_end=True)) for path in paths)
    if "$" in texts:
        raise ValueError("the whole value cannot be deleted; F.lit(None) is null")
    return VARIANT_DELETE(variant, paths=texts, strict=strict)


def variant_merge(variant: ColumnOrName, patch: ColumnOrName | Any) -> Column:
    """The VARIANT changed by a JSON merge patch (RFC 7396), as :func:`pqext.variant.merge` does.

    ``patch`` is a column, VARIANT or a struct, or one Python value for all rows, usually a dict. Nulls in it delete
    fields; a null row of a column changes nothing. Null on null.
    """
    if isinstance(patch, Column):
        return VARIANT_MERGE(variant, patch)
    if isinstance(patch, str):
        raise TypeError("a patch is a column or a dict, not a str: F.col for a column's name")
    return VARIANT_MERGE_ONE(variant, value=_one(patch))


def variant_strip_nulls(variant: ColumnOrName, include_arrays: bool = True) -> Column:
    """The VARIANT without null fields, at any depth, and without null elements of arrays.

    ``include_arrays=False`` keeps null elements. Null on null; the variant null stays.
    """
    return VARIANT_STRIP_NULLS(variant, include_arrays=include_arrays)


class _Value:
    """One value for all rows, which plans show as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __str__(self) -> str:
        return repr(self.value)


def _one(value: Any) -> _Value:
    from pqext import variant

    if not isinstance(value, variant.Variant):
        variant.from_python([value], none_is_null=False)  # what is no value is told here
    return _Value(value)


def _others(values: pa.Array) -> pa.Array:
    if pa.types.is_struct(values.type) and values.type.get_field_index("metadata") >= 0:
        return normal_variant(values)
    return values


def _set(variants: pa.Array, values: pa.Array, path: str, create: bool = True, strict: bool = False) -> pa.Array:
    from pqext import variant

    changed = variant.set(normal_variant(variants), path, _others(values), create=create, strict=strict)
    return to_spark(changed)


def _set_one(variants: pa.Array, path: str, value: _Value, create: bool, strict: bool) -> pa.Array:
    from pqext import variant

    return to_spark(variant.set(normal_variant(variants), path, value.value, create=create, strict=strict))


def _delete(variants: pa.Array, paths: tuple[str, ...], strict: bool = False) -> pa.Array:
    from pqext import variant

    found = normal_variant(variants)
    for path in paths:
        found = variant.delete(found, path, strict=strict)
    return to_spark(found)


def _merge(variants: pa.Array, patches: pa.Array) -> pa.Array:
    from pqext import variant

    return to_spark(variant.merge(normal_variant(variants), _others(patches)))


def _merge_one(variants: pa.Array, value: _Value) -> pa.Array:
    from pqext import variant

    return to_spark(variant.merge(normal_variant(variants), value.value))


def _stripped(variants: pa.Array, include_arrays: bool = True) -> pa.Array:
    from pqext import variant

    return to_spark(variant.strip_nulls(normal_variant(variants), arrays=include_arrays))


VARIANT_SET = ArrowFunction("variant_set", (VARIANTS, ANYTHING), T.VariantType(), _set)
VARIANT_SET_ONE = ArrowFunction("variant_set", (VARIANTS,), T.VariantType(), _set_one)
VARIANT_DELETE = ArrowFunction("variant_delete", (VARIANTS,), T.VariantType(), _delete)
VARIANT_MERGE = ArrowFunction("variant_merge", (VARIANTS, ANYTHING), T.VariantType(), _merge)
VARIANT_MERGE_ONE = ArrowFunction("variant_merge", (VARIANTS,), T.VariantType(), _merge_one)
VARIANT_STRIP_NULLS = ArrowFunction("variant_strip_nulls", (VARIANTS,), T.VariantType(), _stripped)
