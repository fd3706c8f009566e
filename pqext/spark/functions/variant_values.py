"""Convert VARIANT values from and to JSON, inspect, validate and compare them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.base.arrays import variant_from_spark, variant_to_spark
from pqext.spark.base.settings import active_timezone, task_timezone
from pqext.spark.functions.udf import TEXT_OR_BYTES, VARIANTS, ArrowFunction, ColumnOrName
from pqext.variant.encoding import BasicType, PrimitiveType
from pqext.variant.types import plain_binary

Numbers = Literal["decimal", "double"]
Duplicates = Literal["error", "first", "last"]

_LONG_NAMES = {PrimitiveType.TRUE: "boolean", PrimitiveType.FALSE: "boolean", PrimitiveType.TIME_NTZ: "time"}


def _name_of(head: int) -> str | None:
    basic = BasicType(head & 3)
    if basic != BasicType.PRIMITIVE:
        return "string" if basic == BasicType.SHORT_STRING else basic.name.lower()
    try:
        type = PrimitiveType(head >> 2)
    except ValueError:
        return None
    return _LONG_NAMES.get(type, type.name.lower())


_NAMES = [_name_of(head) for head in range(256)]
_NAMED = pa.array(sorted({name for name in _NAMES if name}), pa.string())
_NUMBERS = pa.array([None if name is None else _NAMED.index(name).as_py() for name in _NAMES], pa.int32())


def parse_json(json: ColumnOrName, *, numbers: Numbers = "decimal", duplicate_keys: Duplicates = "error") -> Column:
    """Parse JSON text in a STRING or BINARY column to VARIANT. Return null for null.

    Unlike Spark's function of this name, it preserves decimals of up to 38 digits exactly. See
    :func:`pqext.variant.parse_json` for the options. Invalid JSON fails the query, and the error states the row in its
    batch and the byte; :func:`try_parse_json` returns null instead.

    Example:
        >>> df.withColumn("event", parse_json("text", numbers="double"))  # doctest: +SKIP
    """
    return PARSE_JSON(json, numbers=numbers, duplicate_keys=duplicate_keys)


def try_parse_json(json: ColumnOrName, *, numbers: Numbers = "decimal", duplicate_keys: Duplicates = "error") -> Column:
    """Parse JSON text like :func:`parse_json`, with null for invalid JSON.

    Example:
        >>> df.where(try_parse_json("text").isNull())  # doctest: +SKIP
    """
    return TRY_PARSE_JSON(json, numbers=numbers, duplicate_keys=duplicate_keys)


def to_json(variant: ColumnOrName) -> Column:
    """Format VARIANT values as JSON text, like :func:`pqext.variant.to_json`. Return null for null.

    Instants are in the session's time zone, as in Spark.

    Example:
        >>> df.select("id", to_json("event"))  # doctest: +SKIP
    """
    return replace(TO_JSON, evaluate=partial(_to_json, timezone=active_timezone()))(variant)


def variant_type(variant: ColumnOrName) -> Column:
    """Return the name of each value's type in the format, in lower case: ``object``, ``array``, ``int8``.

    Booleans are ``boolean``, short strings are ``string``, and the variant null is ``null``. Return null for null and
    for unknown types.

    Example:
        >>> df.groupBy(variant_type("event")).count()  # doctest: +SKIP
    """
    return VARIANT_TYPE(variant)


def is_variant_null(variant: ColumnOrName) -> Column:
    """Return whether the value is the variant null; false for null, as in Spark.

    Example:
        >>> df.where(~is_variant_null("event"))  # doctest: +SKIP
    """
    return IS_VARIANT_NULL(variant)


def is_valid_variant(variant: ColumnOrName) -> Column:
    """Return whether a VARIANT satisfies all rules of the encoding and of shredding; null for null.

    It checks every byte, like :func:`pqext.variant.validate`, and never fails the query.

    Example:
        >>> df.where(~is_valid_variant("event")).count()  # doctest: +SKIP
    """
    return IS_VALID_VARIANT(variant)


def variant_equals(variant: ColumnOrName, other: ColumnOrName) -> Column:
    """Return whether two VARIANT columns are equal by value, as in :func:`pqext.variant.equals`; null for null.

    1 equals 1.00, and objects with the same fields are equal regardless of their encoding.

    Example:
        >>> df.where(~variant_equals("event", "old_event"))  # doctest: +SKIP
    """
    return VARIANT_EQUALS(variant, other)


def variant_hash(variant: ColumnOrName) -> Column:
    """Return a BIGINT hash for grouping and joining. Equal variants have equal hashes. Return null for null.

    Different variants collide with a probability of 1 in 2^64. Compare them with :func:`variant_equals` after a join,
    or group by :func:`variant_key`. Do not store the hash, which may differ in other versions.

    Example:
        >>> old.join(new, variant_hash("old_event") == variant_hash("event"))  # doctest: +SKIP
    """
    return VARIANT_HASH(variant)


def variant_key(variant: ColumnOrName) -> Column:
    """Return a BINARY key for grouping, joining and deduplicating. Keys are equal only for equal variants.

    The key is the metadata followed by the value of :func:`pqext.variant.canonical`. Return null for null.

    Example:
        >>> df.groupBy(variant_key("event")).count()  # doctest: +SKIP
    """
    return VARIANT_KEY(variant)


def _parse_json(
    texts: pa.Array, on_error: Any = "raise", numbers: Any = "decimal", duplicate_keys: Any = "error"
) -> pa.Array:
    from pqext import variant

    values = variant.parse_json(texts, on_error=on_error, numbers=numbers, duplicate_keys=duplicate_keys)
    return variant_to_spark(values)


def _try_parse_json(texts: pa.Array, numbers: Any = "decimal", duplicate_keys: Any = "error") -> pa.Array:
    return _parse_json(texts, "null", numbers, duplicate_keys)


def _to_json(values: pa.Array, timezone: str | None = None) -> pa.Array:
    from pqext import variant

    return variant.to_json(variant_from_spark(values), timezone=task_timezone(timezone))


def _type_names(values: pa.Array) -> pa.Array:
    heads = _heads(values)
    numbers = _NUMBERS.take(heads)
    return _NAMED.take(numbers)


def _heads(values: pa.Array) -> pa.Array:
    """Return the first byte of each value; null for null and for an empty value."""
    from pqext import variant

    variants = variant_from_spark(values)
    variants = variant.unshred(variants) if variants.type.get_field_index("typed_value") >= 0 else variants
    member = plain_binary(pc.struct_field(variants, "value"))
    width = np.int64 if pa.types.is_large_binary(member.type) else np.int32
    _, ends, data = member.buffers()
    offsets = np.frombuffer(ends, width)[member.offset : member.offset + len(member) + 1]
    lengths = np.diff(offsets)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    absent = member.is_null().to_numpy(zero_copy_only=False) | (lengths == 0)
    return pa.array(bytes_[np.where(absent, 0, offsets[:-1])].astype(np.int32), mask=absent)


def _is_null_value(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(_heads(values), 0), False)


def _is_valid(values: pa.Array) -> pa.Array:
    from pqext import variant

    variants = variant_from_spark(values)
    valid = np.ones(len(variants), np.bool_)
    valid[variant.find_faults(variants).column("row").to_numpy()] = False
    return pa.array(valid, mask=variants.is_null().to_numpy(zero_copy_only=False))


def _equal(values: pa.Array, other_values: pa.Array) -> pa.Array:
    from pqext import variant

    return variant.equals(variant_from_spark(values), variant_from_spark(other_values))


def _hash(values: pa.Array) -> pa.Array:
    from pqext import variant

    return variant.hash(variant_from_spark(values)).view(pa.int64())


def _key(values: pa.Array) -> pa.Array:
    from pqext import variant

    canonical = variant.canonical(variant_from_spark(values))
    parts = (pc.struct_field(canonical, "metadata"), pc.struct_field(canonical, "value"))
    return pc.binary_join_element_wise(*parts, b"")


PARSE_JSON = ArrowFunction("parse_json", (TEXT_OR_BYTES,), T.VariantType(), _parse_json)
TRY_PARSE_JSON = ArrowFunction("try_parse_json", (TEXT_OR_BYTES,), T.VariantType(), _try_parse_json)
TO_JSON = ArrowFunction("to_json", (VARIANTS,), T.StringType(), _to_json)
VARIANT_TYPE = ArrowFunction("variant_type", (VARIANTS,), T.StringType(), _type_names)
IS_VARIANT_NULL = ArrowFunction("is_variant_null", (VARIANTS,), T.BooleanType(), _is_null_value)
IS_VALID_VARIANT = ArrowFunction("is_valid_variant", (VARIANTS,), T.BooleanType(), _is_valid)
VARIANT_EQUALS = ArrowFunction("variant_equals", (VARIANTS, VARIANTS), T.BooleanType(), _equal)
VARIANT_HASH = ArrowFunction("variant_hash", (VARIANTS,), T.LongType(), _hash)
VARIANT_KEY = ArrowFunction("variant_key", (VARIANTS,), T.BinaryType(), _key)
