"""Minimum and maximum of Arrow values, and bounds converted to Arrow values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.predicate import Value
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.dataset.expressions.literals import NANOSECONDS

_COMPARED = {
    pa.float16(): pa.float32(), pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary(),
}  # fmt: skip
"""Types that Arrow cannot sort, with sortable types for the same values."""


def extreme(array: pa.Array, side: str) -> pa.Array:
    """Return an array with one value: the minimum of ``array`` if ``side`` is ``min``, otherwise its maximum.

    A dictionary array gives an array of its values' type. Nulls and NaN are ignored; the result is null if no other
    values remain.
    """
    if pa.types.is_dictionary(array.type):
        return extreme(decode_dictionary(array.unique()), side)
    kind = array.type
    array = to_sortable(array)
    if pa.types.is_floating(array.type):
        array = array.filter(pc.invert(pc.is_nan(array)), null_selection_behavior="drop")
    try:
        return pa.repeat(pc.min_max(array)[side], 1).cast(kind) if len(array) else pa.nulls(1, kind)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"values of type {kind} have no minimum and maximum") from error


def to_sortable(array: pa.Array) -> pa.Array:
    """Cast an array to a type that Arrow can sort; return it unchanged if that is not necessary or not possible."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return to_sortable(decode_dictionary(array))
    compared = _COMPARED.get(kind)
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        compared = pa.decimal128(kind.precision, kind.scale)
    return array if compared is None else array.cast(compared)


def has_nan(array: pa.Array) -> bool:
    """Return whether any value is NaN."""
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def as_arrow(value: Value, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a comparison value to an Arrow scalar of type ``type_``.

    Return None for a type without a conversion, and for a timestamp that is not a multiple of the type's unit.
    Raises ``ValueError`` or ``OverflowError`` if the type cannot hold the value.
    """
    types = pa.types
    if types.is_boolean(type_) or types.is_floating(type_) or types.is_decimal(type_) or types.is_binary(type_):
        return pa.scalar(value, type_)
    if types.is_integer(type_):
        return pa.scalar(value, type_)
    if types.is_string(type_) and isinstance(value, bytes):
        return pa.scalar(value.decode(), type_)
    if types.is_date32(type_):
        return pa.scalar(value, pa.int32()).cast(type_)
    if types.is_timestamp(type_) and isinstance(value, int):
        unit = NANOSECONDS[type_.unit]
        return pa.scalar(value // unit, pa.int64()).cast(type_) if value % unit == 0 else None
    return None
