"""Minimum and maximum of Arrow values, and bounds converted to Arrow values."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.predicate import Value
from pqext.core.schema.types.arrow_compute import dictionary_decoded
from pqext.dataset.expressions.literals import NANOSECONDS

_COMPARED = {
    pa.float16(): pa.float32(), pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary(),
}  # fmt: skip
"""Types without an order in Arrow, and types that hold the same values in order."""


def extreme(array: pa.Array, side: str) -> pa.Array:
    """Return an array of the minimum (``min``) or maximum, ignoring nulls and NaN; null if there is none."""
    kind = array.type
    array = sortable(array)
    if pa.types.is_floating(array.type):
        array = array.filter(pc.invert(pc.is_nan(array)), null_selection_behavior="drop")
    try:
        return pa.repeat(pc.min_max(array)[side], 1).cast(kind) if len(array) else pa.nulls(1, kind)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"values of type {kind} have no least and no greatest") from error


def sortable(array: pa.Array) -> pa.Array:
    """Cast an array to a type that Arrow orders, if there is one."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return sortable(dictionary_decoded(array))
    compared = _COMPARED.get(kind)
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        compared = pa.decimal128(kind.precision, kind.scale)
    return array if compared is None else array.cast(compared)


def has_nan(array: pa.Array) -> bool:
    """Test whether any value is NaN."""
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def as_arrow(value: Value, kind: pa.DataType) -> pa.Scalar | None:
    """Convert a comparison value to an Arrow scalar of type ``kind``; None if the conversion is ambiguous.

    Raises ``ValueError`` or ``OverflowError`` if the type cannot hold the value.
    """
    types = pa.types
    if types.is_boolean(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_binary(kind):
        return pa.scalar(value, kind)
    if types.is_integer(kind):
        return pa.scalar(value, kind)
    if types.is_string(kind) and isinstance(value, bytes):
        return pa.scalar(value.decode(), kind)
    if types.is_date32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if types.is_timestamp(kind) and isinstance(value, int):
        unit = NANOSECONDS[kind.unit]
        return pa.scalar(value // unit, pa.int64()).cast(kind) if value % unit == 0 else None
    return None
