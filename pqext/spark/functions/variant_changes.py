"""Functions that modify VARIANT values: set, delete, merge and strip nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.base.arrays import variant_from_spark, variant_to_spark
from pqext.spark.functions.udf import ANYTHING, VARIANTS, ArrowFunction, ColumnOrName
from pqext.variant.access.path import as_path, format_path

Steps = str | Sequence[str | int]


def variant_set(
    variant: ColumnOrName, path: Steps, value: ColumnOrName | Any, *, create: bool = True, strict: bool = False
) -> Column:
    """Set the value at a path of a VARIANT, or add it if the path does not exist. Null for null.

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
    """Delete the fields and elements at ``paths`` of a VARIANT, in order. Null for null.

    Rows without a value at a path are unchanged, or fail the query with ``strict=True``. Raises ``ValueError`` for an
    invalid path and for ``"$"``.
    """
    if not paths:
        raise ValueError("variant_delete requires a path, such as '$.a'")
    texts = tuple(format_path(as_path(path, from_end=True)) for path in paths)
    if "$" in texts:
        raise ValueError("the root value cannot be deleted; use F.lit(None) for null")
    return VARIANT_DELETE(variant, paths=texts, strict=strict)


def variant_merge(variant: ColumnOrName, patch: ColumnOrName | Any) -> Column:
    """Apply a JSON merge patch (RFC 7396) to a VARIANT, as :func:`pqext.variant.merge` does. Null for null.

    ``patch`` is a column of VARIANT or a struct, or a Python value for all rows, usually a dict. Nulls in a
    patch delete fields. A null row of a column changes nothing.
    """
    if isinstance(patch, Column):
        return VARIANT_MERGE(variant, patch)
    if isinstance(patch, str):
        raise TypeError("a patch must be a column or a dict, not a str: use F.col for a column's name")
    return VARIANT_MERGE_CONSTANT(variant, value=_constant(patch))


def variant_strip_nulls(variant: ColumnOrName, include_arrays: bool = True) -> Column:
    """Remove null fields at any depth of a VARIANT, and null elements of arrays unless ``include_arrays`` is false.

    Null for null. The variant null is unchanged.
    """
    return VARIANT_STRIP_NULLS(variant, include_arrays=include_arrays)


class _Value:
    """Constant value, which plans display by its ``repr``."""

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
