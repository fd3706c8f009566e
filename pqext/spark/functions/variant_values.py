"""Variants from and to JSON, what they hold, and whether they are equal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.base.timezones import active_timezone, task_timezone
from pqext.spark.functions.udf import TEXT_OR_BYTES, VARIANTS, ArrowFunction, ColumnOrName
from pqext.spark.functions.variant_arrays import normal_variant, to_spark
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
    """VARIANT of JSON text, a STRING or BINARY column.

    As Spark's function of this name, but exact for decimals of up to 38 digits, as :func:`pqext.variant.parse_json`,
    whose options these are. Null on null. Text that is not JSON fails the query, with the row in its batch and the
    byte; :func:`try_parse_json` makes it null.
    """
    return PARSE_JSON(json, numbers=numbers, duplicate_keys=duplicate_keys)


def try_parse_json(json: ColumnOrName, *, numbers: Numbers = "decimal", duplicate_keys: Duplicates = "error") -> Column:
    """As :func:`parse_json`, but null where the text is not JSON."""
    return TRY_PARSE_JSON(json, numbers=numbers, duplicate_keys=duplicate_keys)


def to_json(variant: ColumnOrName) -> Column:
    """The JSON text of a VARIANT, as :func:`pqext.variant.to_json` writes it, for all types of values. Null on null.

    Instants are in the session's time zone, as in Spark.
    """
    return replace(TO_JSON, evaluate=partial(_json, timezone=active_timezone()))(variant)


def variant_type(variant: ColumnOrName) -> Column:
    """The type of each value by its name in the format, in small letters: ``object``, ``array``, ``int8``, ``string``.

    Both booleans are ``boolean`` and short strings ``string``; the variant null is ``null``. Null on null, and for a
    type that the format got later.
    """
    return VARIANT_TYPE(variant)


def is_variant_null(variant: ColumnOrName) -> Column:
    """Is the value the variant null? False on null, as in Spark."""
    return IS_VARIANT_NULL(variant)


def is_valid_variant(variant: ColumnOrName) -> Column:
    """Do metadata and value keep every rule of the encoding, and of shredding? Null on null.

    Checks every byte, as :func:`pqext.variant.validate` does, and never fails.
    """
    return IS_VALID_VARIANT(variant)


def variant_equals(left: ColumnOrName, right: ColumnOrName) -> Column:
    """Are two VARIANT columns equal by value, as :func:`pqext.variant.equals` says? Null where either is null.

    1 equals 1.00, and objects with the same fields are equal in whatever form they are stored.
    """
    return VARIANT_EQUALS(left, right)


def variant_hash(variant: ColumnOrName) -> Column:
    """A BIGINT that equal variants share, to group and join by; null on null.

    Variants that differ may share it too, with a probability of 1 in 2^64, so compare with :func:`variant_equals`
    behind a join, or group by :func:`variant_key`. Do not store it: another version may compute another.
    """
    return VARIANT_HASH(variant)


def variant_key(variant: ColumnOrName) -> Column:
    """BINARY that is the same for equal variants and for no others: an exact key to group, join and deduplicate by.

    Metadata and value of :func:`pqext.variant.canonical`, one behind the other. Null on null.
    """
    return VARIANT_KEY(variant)


def _parsed(
    texts: pa.Array, on_error: Any = "raise", numbers: Any = "decimal", duplicate_keys: Any = "error"
) -> pa.Array:
    from pqext import variant

    return to_spark(variant.parse_json(texts, on_error=on_error, numbers=numbers, duplicate_keys=duplicate_keys))


def _parsed_or_null(texts: pa.Array, numbers: Any = "decimal", duplicate_keys: Any = "error") -> pa.Array:
    return _parsed(texts, "null", numbers, duplicate_keys)


def _json(values: pa.Array, timezone: str | None = None) -> pa.Array:
    from pqext import variant

    return variant.to_json(normal_variant(values), timezone=task_timezone(timezone))


def _types(values: pa.Array) -> pa.Array:
    heads = _heads(values)
    numbers = _NUMBERS.take(heads)
    return _NAMED.take(numbers)


def _heads(values: pa.Array) -> pa.Array:
    """The first byte of each value; null for null, and for a value that has none."""
    from pqext import variant

    whole = normal_variant(values)
    whole = variant.unshred(whole) if whole.type.get_field_index("typed_value") >= 0 else whole
    member = plain_binary(pc.struct_field(whole, "value"))
    width = np.int64 if pa.types.is_large_binary(member.type) else np.int32
    _, ends, data = member.buffers()
    offsets = np.frombuffer(ends, width)[member.offset : member.offset + len(member) + 1]
    lengths = np.diff(offsets)
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    absent = member.is_null().to_numpy(zero_copy_only=False) | (lengths == 0)
    return pa.array(bytes_[np.where(absent, 0, offsets[:-1])].astype(np.int32), mask=absent)


def _is_null_value(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(_heads(values), 0), False)


def _valid(values: pa.Array) -> pa.Array:
    from pqext import variant

    whole = normal_variant(values)
    valid = np.ones(len(whole), np.bool_)
    valid[variant.find_faults(whole).column("row").to_numpy()] = False
    return pa.array(valid, mask=whole.is_null().to_numpy(zero_copy_only=False))


def _equal(left: pa.Array, right: pa.Array) -> pa.Array:
    from pqext import variant

    return variant.equals(normal_variant(left), normal_variant(right))


def _hash(values: pa.Array) -> pa.Array:
    from pqext import variant

    return variant.hash(normal_variant(values)).view(pa.int64())


def _key(values: pa.Array) -> pa.Array:
    from pqext import variant

    form = variant.canonical(normal_variant(values))
    parts = (pc.struct_field(form, "metadata"), pc.struct_field(form, "value"))
    return pc.binary_join_element_wise(*parts, b"")


PARSE_JSON = ArrowFunction("parse_json", (TEXT_OR_BYTES,), T.VariantType(), _parsed)
TRY_PARSE_JSON = ArrowFunction("try_parse_json", (TEXT_OR_BYTES,), T.VariantType(), _parsed_or_null)
TO_JSON = ArrowFunction("to_json", (VARIANTS,), T.StringType(), _json)
VARIANT_TYPE = ArrowFunction("variant_type", (VARIANTS,), T.StringType(), _types)
IS_VARIANT_NULL = ArrowFunction("is_variant_null", (VARIANTS,), T.BooleanType(), _is_null_value)
IS_VALID_VARIANT = ArrowFunction("is_valid_variant", (VARIANTS,), T.BooleanType(), _valid)
VARIANT_EQUALS = ArrowFunction("variant_equals", (VARIANTS, VARIANTS), T.BooleanType(), _equal)
VARIANT_HASH = ArrowFunction("variant_hash", (VARIANTS,), T.LongType(), _hash)
VARIANT_KEY = ArrowFunction("variant_key", (VARIANTS,), T.BinaryType(), _key)
