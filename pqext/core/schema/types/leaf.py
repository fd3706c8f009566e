"""Convert leaf values between their stored and their Arrow layout. Equal layouts share buffers.

Values are validated on reads and writes. An integer, decimal or time outside the range of its type raises an error that
names the column; otherwise the value would wrap around, or Arrow would reject it later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, allocate, view
from pqext.core.base.errors import CorruptFileError, InvalidValueError, UnsupportedError
from pqext.core.format.metadata import Type
from pqext.core.kernels.encodings.byte_array import is_ascii
from pqext.core.kernels.encodings.decimals import narrow, widen, widen_integers
from pqext.core.schema.types import int96
from pqext.core.schema.types.logical import LeafType
from pqext.core.schema.types.utf8 import find_invalid_text

_STORED_INTERVALS = np.dtype([("months", "<u4"), ("days", "<u4"), ("milliseconds", "<u4")])
_ARROW_INTERVALS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_NANOSECONDS = 1_000_000


def intervals_to_arrow(values: NDArray[np.uint8]) -> NDArray[Any]:
    """Convert stored intervals of 12 bytes each to Arrow's layout of 16 bytes.

    Raises ``UnsupportedError`` for months or days that exceed Arrow's 31 bits.
    """
    stored = values.view(_STORED_INTERVALS)
    if any((stored[part] >= 1 << 31).any() for part in ("months", "days")):
        raise UnsupportedError("an INTERVAL has more months or days than Arrow can represent", feature="long intervals")
    out = np.empty(len(stored), _ARROW_INTERVALS)
    out["months"], out["days"] = stored["months"], stored["days"]
    out["nanoseconds"] = stored["milliseconds"].astype(np.int64) * _NANOSECONDS
    return out.view(np.uint8)


def intervals_from_arrow(array: pa.Array) -> pa.Array:
    """Convert intervals without nulls to their stored representation.

    Raises ``ValueError`` for an interval that is negative, too long, or not in whole milliseconds.
    """
    data = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.empty(0, np.uint8)
    values = data[array.offset * 16 : (array.offset + len(array)) * 16].view(_ARROW_INTERVALS)
    milliseconds, finer = np.divmod(values["nanoseconds"], _NANOSECONDS)
    if (values["months"] < 0).any() or (values["days"] < 0).any() or (milliseconds < 0).any():
        raise ValueError("a negative interval cannot be stored as INTERVAL")
    if finer.any():
        raise ValueError("an interval has a fraction of a millisecond, the unit of INTERVAL; round it to milliseconds")
    if (milliseconds >= 1 << 32).any():
        raise ValueError("an interval has more milliseconds than fit into the 32 bits of INTERVAL")
    out = np.empty(len(values), _STORED_INTERVALS)
    out["months"], out["days"], out["milliseconds"] = values["months"], values["days"], milliseconds
    return pa.Array.from_buffers(pa.binary(12), len(out), [None, pa.py_buffer(out.view(np.uint8))])


_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


_NUMBERS = {Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE}
"""Physical types that are Arrow types."""


def from_fixed_width(
    leaf: LeafType, slot_count: int, validity: pa.Buffer | None, values: NDArray[np.uint8]
) -> pa.Array:
    """Build an Arrow array of ``slot_count`` slots from stored values of a fixed width. Booleans take one byte each.

    INT96 values remain 12 bytes; :func:`show` converts them to the unit of the reader. Slots without a value must be
    zero.
    """
    if leaf.logical is None and leaf.physical in _NUMBERS:  # the common case
        return pa.Array.from_buffers(leaf.physical_arrow_type(), slot_count, [validity, pa.py_buffer(values)])
    arrow = _decoded_type(leaf)
    data: Any = values
    if pa.types.is_boolean(arrow):
        data = np.packbits(values, bitorder="little")
    elif pa.types.is_decimal(arrow):
        data = _build_decimals(leaf, arrow, slot_count, values)
    elif pa.types.is_integer(arrow) and arrow.bit_width < 32:
        data = _narrow_integers(arrow, values.view(np.int32))
    elif pa.types.is_time(arrow):
        counts = values.view(np.int32 if leaf.physical == Type.INT32 else np.int64)
        _check_range(counts, 0, _DAY[arrow.unit], "a TIME is not between 00:00 and 24:00")
    elif pa.types.is_interval(arrow):
        data = intervals_to_arrow(values)
    elif leaf.calendar is not None and pa.types.is_date32(arrow):
        data = leaf.calendar.convert_days(values.view(np.int32))
    elif leaf.calendar is not None and pa.types.is_timestamp(arrow):
        data = leaf.calendar.convert_instants(values.view(np.int64), 10**9 // leaf.nanoseconds)
    elif pa.types.is_null(arrow):
        return _build_nulls(slot_count, validity)
    return pa.Array.from_buffers(arrow, slot_count, [validity, pa.py_buffer(data)])


def from_byte_arrays(leaf: LeafType, slot_count: int, validity: pa.Buffer | None, offsets: Any, data: Any) -> pa.Array:
    """Build an Arrow array of ``slot_count`` slots from byte arrays.

    Raises ``InvalidValueError`` for strings that are not valid UTF-8 and decimals with too many digits.
    """
    arrow = leaf.arrow_type()
    if pa.types.is_decimal(arrow):
        out = allocate(slot_count * arrow.byte_width)
        _widen(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32), 0, slot_count, arrow.precision, out)
        return pa.Array.from_buffers(arrow, slot_count, [validity, pa.py_buffer(out)])
    if pa.types.is_null(arrow):
        return _build_nulls(slot_count, validity)
    array = pa.Array.from_buffers(arrow, slot_count, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
    return _validate_text(leaf, array, data) if pa.types.is_string(arrow) else array


def _validate_text(leaf: LeafType, array: pa.Array, data: Any) -> pa.Array:
    if not is_ascii(data):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            raise InvalidValueError(f"a {leaf.member} column contains bytes that are not UTF-8") from None
    return array


def _decoded_type(leaf: LeafType) -> pa.DataType:
    """Return the Arrow type of decoded values: the type of the leaf, or the 12 stored bytes of INT96 timestamps."""
    return leaf.physical_arrow_type() if _is_int96_timestamp(leaf) else leaf.arrow_type()


def _is_int96_timestamp(leaf: LeafType) -> bool:
    return leaf.physical == Type.INT96 and leaf.logical is None


def converter(leaf: LeafType) -> Callable[[int, pa.Buffer | None, Any, Any], pa.Array]:
    """Return :func:`from_fixed_width` or :func:`from_byte_arrays`, specialised for a leaf.

    Raises the errors of :meth:`LeafType.arrow_type`.
    """
    from_buffers, buffer = pa.Array.from_buffers, pa.py_buffer
    arrow = _decoded_type(leaf)
    if leaf.width is None:
        if pa.types.is_string(arrow):
            return lambda slots, validity, values, offsets: _validate_text(
                leaf, from_buffers(arrow, slots, [validity, buffer(offsets), buffer(values)]), values
            )
        if pa.types.is_binary(arrow):
            return lambda slots, validity, values, offsets: from_buffers(
                arrow, slots, [validity, buffer(offsets), buffer(values)]
            )
        return lambda slots, validity, values, offsets: from_byte_arrays(leaf, slots, validity, offsets, values)
    as_stored = pa.types.is_integer(arrow) and arrow.bit_width >= 32
    if leaf.calendar is None and (as_stored or any(test(arrow) for test in _AS_STORED)):
        return lambda slots, validity, values, _: from_buffers(arrow, slots, [validity, buffer(values)])
    return lambda slots, validity, values, _: from_fixed_width(leaf, slots, validity, np.frombuffer(values, np.uint8))


_AS_STORED = (
    pa.types.is_float32, pa.types.is_float64, pa.types.is_timestamp, pa.types.is_date32, pa.types.is_fixed_size_binary,
)


def convert_int96(leaf: LeafType, array: pa.Array, unit: str) -> pa.Array:
    """Convert INT96 timestamps to ``unit`` for readers. Other arrays are returned unchanged."""
    if _is_int96_timestamp(leaf):
        local = int96.to_timestamps(array, unit, leaf.calendar)
        return local.view(pa.timestamp(unit, "UTC")) if leaf.is_utc else local
    return array


def _widen(data: Any, offsets: Any, length: int, slot_count: int, precision: int, out: NDArray[np.uint8]) -> None:
    try:
        widen(data, offsets, length, slot_count, precision, out)
    except CorruptFileError as error:
        raise InvalidValueError(error.message) from None


def _build_nulls(slot_count: int, validity: pa.Buffer | None) -> pa.Array:
    # Use any array type to count the set validity bits.
    bits = pa.py_buffer(np.zeros((slot_count + 7) // 8, np.uint8))
    held = pa.Array.from_buffers(pa.bool_(), slot_count, [validity, bits])
    if held.null_count < slot_count:
        raise CorruptFileError("an UNKNOWN column, whose values must be null, contains a value")
    return pa.nulls(slot_count)


def _narrow_integers(arrow_type: pa.DataType, values: NDArray[np.int32]) -> NDArray[Any]:
    kind = np.dtype(arrow_type.to_pandas_dtype())
    limits = np.iinfo(kind)
    message = f"an integer exceeds the column's {arrow_type.bit_width} bits"
    _check_range(values, int(limits.min), int(limits.max), message)
    return values.astype(kind)


def _check_range(values: NDArray[Any], low: int, high: int, message: str) -> None:
    if not len(values):
        return
    least, most = int(values.min()), int(values.max())
    if least < low or most > high:
        raise InvalidValueError(f"{message}: {least if least < low else most}")


def _build_decimals(
    leaf: LeafType, arrow_type: pa.DataType, slot_count: int, values: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    if leaf.physical == Type.FIXED_LEN_BYTE_ARRAY:
        assert leaf.length is not None
        out = allocate(slot_count * arrow_type.byte_width)
        _widen(values, None, leaf.length, slot_count, arrow_type.precision, out)
        return out
    stored: Any = values.view(np.int32 if leaf.physical == Type.INT32 else np.int64)
    most, words = 10**arrow_type.precision - 1, allocate(slot_count * 16)
    if not widen_integers(stored, most, words.view(np.int64)):
        _check_range(stored, -most, most, f"a decimal has more than the {arrow_type.precision} digits of its type")
    return words


def to_physical(array: pa.Array, leaf: LeafType) -> pa.Array:
    """Convert an Arrow array without nulls to stored values: bool, int32, int64, float, double, binary or fixed binary.

    Raises ``ValueError`` for a value that cannot be stored.
    """
    arrow = array.type
    if arrow == _STORED.get(leaf.physical):
        return array
    if pa.types.is_string(arrow):
        _check_utf8(array)
        return array.view(pa.binary())
    if pa.types.is_decimal(arrow):
        return _physical_decimals(array, leaf)
    if leaf.member == "FLOAT16":
        return pc.cast(array, pa.float16()).view(pa.binary(2))
    if leaf.member == "INTERVAL":
        return intervals_from_arrow(array)
    if leaf.physical == Type.INT96:
        return int96.from_timestamps(array)
    if pa.types.is_unsigned_integer(arrow) and arrow.bit_width >= 32:
        return array.view(pa.int64() if arrow.bit_width == 64 else pa.int32())
    if pa.types.is_temporal(arrow):
        shown = leaf.arrow_type()
        if pa.types.is_timestamp(shown):
            shown = pa.timestamp(shown.unit, arrow.tz)
        if pa.types.is_time(shown):
            _check_day(array)
        return pc.cast(array, shown).view(_STORED[leaf.physical])
    if leaf.physical == Type.BYTE_ARRAY:
        return pc.cast(array, pa.binary())
    if leaf.physical == Type.FIXED_LEN_BYTE_ARRAY:
        return array
    return pc.cast(array, _STORED[leaf.physical])


_STORED = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.BYTE_ARRAY: pa.binary(),
}


def _physical_decimals(array: pa.Array, leaf: LeafType) -> pa.Array:
    array = array if array.type.bit_width >= 128 else array.cast(pa.decimal128(array.type.precision, array.type.scale))
    count, width, precision = len(array), array.type.byte_width, array.type.precision
    words = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width : (array.offset + count) * width]
    if leaf.physical in (Type.INT64, Type.INT32):
        narrow(words, width, 0, precision, EMPTY)
        low = words.view(np.int64)[:: width // 8]
        return pa.array(low.copy() if leaf.physical == Type.INT64 else low.astype(np.int32))
    length = leaf.length if leaf.length is not None else width
    fixed = allocate(count * length)
    narrow(words, width, length, precision, fixed)
    if leaf.physical == Type.FIXED_LEN_BYTE_ARRAY:
        return pa.Array.from_buffers(pa.binary(length), count, [None, pa.py_buffer(fixed)])
    big_endian = fixed.reshape(-1, width)
    # BYTE_ARRAY uses the minimum number of bytes: drop leading bytes that only repeat the sign.
    if not count:
        return pa.array([], pa.binary())
    repeats = (big_endian[:, :-1] == np.where(big_endian[:, :1] >= 128, 255, 0)) & (
        (big_endian[:, 1:] >= 128) == (big_endian[:, :1] >= 128)
    )
    dropped = np.where(repeats.all(axis=1), width - 1, np.argmin(repeats, axis=1))
    retained = np.arange(width) >= dropped[:, None]
    offsets = np.concatenate([[0], np.cumsum(width - dropped)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(big_endian[retained]))]
    )


def _check_utf8(array: pa.Array) -> None:
    """Raise ``NotUtf8Error`` for strings that are not valid UTF-8.

    Arrow does not check strings that are created from buffers.
    """
    data = array.buffers()[-1]
    if data is None or (pa.types.is_string(array.type) and is_ascii(view(data))):
        return
    if (position := find_invalid_text(array)) is not None:
        raise NotUtf8Error(position)


class NotUtf8Error(ValueError):
    """Error for a string that is not valid UTF-8 and cannot be written. ``position`` is its index in the array."""

    def __init__(self, position: int) -> None:
        super().__init__("a string is not valid UTF-8; store its bytes in a binary column")
        self.position = position


def _check_day(array: pa.Array) -> None:
    """Raise ``ValueError`` for times outside the day, which Arrow does not check. 24:00 is accepted."""
    extremes = pc.min_max(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()))
    for value in (extremes["min"].as_py(), extremes["max"].as_py()):
        if value is not None and not 0 <= value <= _DAY[array.type.unit]:
            raise ValueError(f"a time is not between 00:00 and 24:00: {value} {array.type.unit}")
