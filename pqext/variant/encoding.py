"""Binary encoding of single variant values in Python: types, sizes, primitives and containers."""

from __future__ import annotations

import itertools
import struct
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pqext.variant import faults
from pqext.variant.kernels.binary import Fault


class BasicType(IntEnum):
    """Basic type, in the low two bits of a value's first byte."""

    PRIMITIVE = 0
    SHORT_STRING = 1
    OBJECT = 2
    ARRAY = 3


class PrimitiveType(IntEnum):
    """Primitive type, in the high six bits of a primitive value's first byte."""

    NULL = 0
    TRUE = 1
    FALSE = 2
    INT8 = 3
    INT16 = 4
    INT32 = 5
    INT64 = 6
    DOUBLE = 7
    DECIMAL4 = 8
    DECIMAL8 = 9
    DECIMAL16 = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    FLOAT = 14
    BINARY = 15
    STRING = 16
    TIME_NTZ = 17
    TIMESTAMP_NANOS = 18
    TIMESTAMP_NTZ_NANOS = 19
    UUID = 20


_T = PrimitiveType
_BASIC_TYPES, _PRIMITIVE_TYPES = tuple(BasicType), tuple(PrimitiveType)
"""Types by number, which is faster than a call of their class."""

INTEGER_BYTES = {
    _T.INT8: 1,
    _T.INT16: 2,
    _T.INT32: 4,
    _T.INT64: 8,
    _T.DATE: 4,
    _T.TIMESTAMP: 8,
    _T.TIMESTAMP_NTZ: 8,
    _T.TIME_NTZ: 8,
    _T.TIMESTAMP_NANOS: 8,
    _T.TIMESTAMP_NTZ_NANOS: 8,
}
"""Size in bytes of the types whose data is a little-endian two's complement integer."""
DECIMAL_BYTES = {_T.DECIMAL4: 4, _T.DECIMAL8: 8, _T.DECIMAL16: 16}
DECIMAL_DIGITS = {_T.DECIMAL4: 9, _T.DECIMAL8: 18, _T.DECIMAL16: 38}
MAX_SCALE = 38

_FIXED = {
    **dict.fromkeys((_T.NULL, _T.TRUE, _T.FALSE), 0),
    **INTEGER_BYTES,
    **{t: n + 1 for t, n in DECIMAL_BYTES.items()},
    _T.DOUBLE: 8,
    _T.FLOAT: 4,
    _T.UUID: 16,
}
"""Size in bytes of the data of fixed-size types."""

_INTEGERS = {type: {1: "<b", 2: "<h", 4: "<i", 8: "<q"}[size] for type, size in INTEGER_BYTES.items()}
_NUMBERS = {
    int(type) << 2: (type, struct.Struct(layout))
    for type, layout in {**_INTEGERS, _T.FLOAT: "<f", _T.DOUBLE: "<d"}.items()
}
"""Type and layout of integers and floats, by their first byte."""


@dataclass(frozen=True, slots=True)
class ScaledDecimal:
    """Decimal number ``unscaled * 10 ** -scale``."""

    unscaled: int
    scale: int


@dataclass(frozen=True, slots=True)
class Container:
    """Header of an object or array within ``data``.

    ``ids`` contains the field ids of an object, and is None for an array. ``offsets`` are relative to ``values``, the
    position of the first child. There is one more offset than children. ``end`` is the position after the last child.
    """

    ids: Sequence[int] | None
    offsets: Sequence[int]
    values: int
    end: int

    def __len__(self) -> int:
        return len(self.offsets) - 1


def basic_type(data: bytes, position: int, end: int) -> BasicType:
    """Return the basic type of the value at ``position``, which must be before ``end``."""
    if position >= end:
        faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=position)
    return _BASIC_TYPES[data[position] & 3]


def open_container(data: bytes, position: int, end: int) -> Container:
    """Read the header of the object or array at ``position``. Raises ``VariantError`` if it extends beyond ``end``."""
    basic = basic_type(data, position, end)
    if basic not in (BasicType.OBJECT, BasicType.ARRAY):
        faults.fail(Fault.FAULT_NOT_CONTAINER, offset=position)
    header = data[position] >> 2
    offset_size = (header & 3) + 1
    is_object = basic == BasicType.OBJECT
    id_size = (header >> 2 & 3) + 1 if is_object else 0
    is_large = header >> (4 if is_object else 2) & 1
    ids_at = position + (5 if is_large else 2)
    if ids_at > end:
        faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=end)
    count = int.from_bytes(data[position + 1 : ids_at], "little")
    offsets_at = ids_at + count * id_size
    values = offsets_at + (count + 1) * offset_size
    if values > end:
        faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=end)
    ids = _read_integers(data, ids_at, offsets_at, id_size) if is_object else None
    offsets = _read_integers(data, offsets_at, values, offset_size)
    if values + offsets[-1] > end:
        faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=end)
    return Container(ids, offsets, values, values + offsets[-1])


def _read_integers(data: bytes, start: int, stop: int, size: int) -> Sequence[int]:
    """Return the unsigned integers of ``size`` bytes from ``start`` to ``stop``, without copying if possible."""
    if size == 1:
        return data[start:stop]
    if size != 3 and sys.byteorder == "little":
        return memoryview(data)[start:stop].cast("H" if size == 2 else "I")
    return [int.from_bytes(data[at : at + size], "little") for at in range(start, stop, size)]


def children(data: bytes, container: Container) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of each child, in the order of the offsets.

    Children must fill the container without overlapping. A child of an unknown type extends to the next child.
    """
    starts = sorted(set(container.offsets))
    following = dict(itertools.pairwise(starts))
    total = 0
    for offset in container.offsets[:-1]:
        start = container.values + offset
        if start >= container.end:
            faults.fail(Fault.FAULT_CHILD_OFFSET, offset=start)
        size = value_size(data, start, container.end, unknown_size=following.get(offset, 0) - offset)
        total += size
        if total > container.offsets[-1]:
            faults.fail(Fault.FAULT_CHILD_SIZE, offset=start)
        yield start, start + size
    if total != container.offsets[-1]:
        faults.fail(Fault.FAULT_CHILD_SIZE, offset=container.values)


def value_size(data: bytes, position: int, end: int, unknown_size: int | None = None) -> int:
    """Return the size in bytes of the value at ``position``, which must be before ``end``.

    ``unknown_size`` is the size of a value of an unknown type; None means that it extends to ``end``.
    """
    basic = basic_type(data, position, end)
    if basic == BasicType.SHORT_STRING:
        size = 1 + (data[position] >> 2)
    elif basic == BasicType.PRIMITIVE:
        type_id = data[position] >> 2
        if type_id in (_T.BINARY, _T.STRING):
            if position + 5 > end:
                faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=end)
            size = 5 + int.from_bytes(data[position + 1 : position + 5], "little")
        elif type_id > _T.UUID:
            size = end - position if unknown_size is None else unknown_size
        else:
            size = 1 + _FIXED[_PRIMITIVE_TYPES[type_id]]
    else:
        size = open_container(data, position, end).end - position
    if position + size > end:
        faults.fail(Fault.FAULT_VALUE_TRUNCATED, offset=end)
    return size


def decode_primitive(data: bytes, position: int, end: int) -> tuple[PrimitiveType, Any]:
    """Return the type and the data of the primitive or short string at ``position``, which ends at ``end``.

    Data is None, bool, int, float, :class:`ScaledDecimal`, bytes, str or UUID. Dates and times are integers in the unit
    of their type.
    """
    number = _NUMBERS.get(data[position]) if position < end else None
    if number is not None and number[1].size == end - position - 1:
        return number[0], number[1].unpack_from(data, position + 1)[0]
    if value_size(data, position, end) != end - position:
        faults.fail(Fault.FAULT_VALUE_TRAILING, offset=position)
    if data[position] & 3 == BasicType.SHORT_STRING:
        return _T.STRING, _decode_text(data, position + 1, end)
    type_id = data[position] >> 2
    if type_id > _T.UUID:
        faults.fail(Fault.FAULT_UNKNOWN_TYPE, offset=position)
    kind = _PRIMITIVE_TYPES[type_id]
    if kind == _T.NULL:
        return kind, None
    if kind in (_T.TRUE, _T.FALSE):
        return kind, kind == _T.TRUE
    if kind in DECIMAL_BYTES:
        scale = data[position + 1]
        if scale > MAX_SCALE:
            faults.fail(Fault.FAULT_DECIMAL_SCALE, offset=position + 1)
        return kind, ScaledDecimal(int.from_bytes(data[position + 2 : end], "little", signed=True), scale)
    if kind == _T.UUID:
        return kind, uuid.UUID(bytes=data[position + 1 : end])
    if kind == _T.BINARY:
        return kind, data[position + 5 : end]
    return kind, _decode_text(data, position + 5, end)


def _decode_text(data: bytes, start: int, end: int) -> str:
    try:
        return data[start:end].decode("utf-8")
    except UnicodeDecodeError as fault:
        faults.fail(Fault.FAULT_STRING_UTF8, offset=start + fault.start)


def encode_primitive(type: PrimitiveType, data: Any = None) -> bytes:
    """Encode ``data``, as returned by :func:`decode_primitive`, as a value of ``type``.

    Strings are encoded as short strings if possible. Raises ``ValueError`` if the data does not fit the type.
    """
    header = bytes([type << 2])
    if type in (_T.NULL, _T.TRUE, _T.FALSE):
        return header
    if type in INTEGER_BYTES:
        return header + _encode_signed(data, INTEGER_BYTES[type])
    if type in DECIMAL_BYTES:
        if not 0 <= data.scale <= MAX_SCALE or abs(data.unscaled) >= 10 ** DECIMAL_DIGITS[type]:
            raise ValueError(f"{data} does not fit into {type.name}")
        return header + bytes([data.scale]) + _encode_signed(data.unscaled, DECIMAL_BYTES[type])
    if type in (_T.DOUBLE, _T.FLOAT):
        try:
            return header + struct.pack("<d" if type == _T.DOUBLE else "<f", data)
        except OverflowError:
            raise ValueError(f"{data} does not fit into {type.name}") from None
    if type == _T.UUID:
        identifier: bytes = data.bytes
        return header + identifier
    if type == _T.STRING:
        text: bytes = data.encode("utf-8")
        if len(text) < 64:
            return bytes([BasicType.SHORT_STRING | len(text) << 2]) + text
    else:
        text = bytes(data)
    if len(text) >= 1 << 32:
        raise ValueError(f"a string or binary value of {len(text)} bytes exceeds 4 GiB")
    return header + len(text).to_bytes(4, "little") + text


def _encode_signed(number: int, size: int) -> bytes:
    try:
        return number.to_bytes(size, "little", signed=True)
    except OverflowError:
        raise ValueError(f"{number} does not fit into {size} bytes") from None


def encode_integer(number: int) -> bytes:
    """Encode ``number`` in the narrowest type from int8 to int64 that fits, or otherwise as decimal16."""
    for kind in (_T.INT8, _T.INT16, _T.INT32, _T.INT64):
        if -(1 << 8 * INTEGER_BYTES[kind] - 1) <= number < 1 << 8 * INTEGER_BYTES[kind] - 1:
            return encode_primitive(kind, number)
    return encode_primitive(_T.DECIMAL16, ScaledDecimal(number, 0))


def encode_decimal(number: ScaledDecimal) -> bytes:
    """Encode ``number`` in the narrowest decimal type. Raises ``ValueError`` if it has more than 38 digits."""
    for kind in (_T.DECIMAL4, _T.DECIMAL8):
        digits = DECIMAL_DIGITS[kind]
        if number.scale <= digits and abs(number.unscaled) < 10**digits:
            return encode_primitive(kind, number)
    return encode_primitive(_T.DECIMAL16, number)


def _unsigned_size(number: int) -> int:
    size = max(1, (number.bit_length() + 7) // 8)
    if size > 4:
        raise ValueError("an object or array exceeds 4 GiB")
    return size


def encode_array(elements: Sequence[bytes]) -> bytes:
    """Encode an array of encoded ``elements``. Raises ``ValueError`` if it exceeds 4 GiB."""
    total = sum(map(len, elements))
    size = _unsigned_size(total)
    is_large = len(elements) > 255
    header = BasicType.ARRAY | (size - 1) << 2 | is_large << 4
    return _join_container(header, len(elements), is_large, b"", size, elements)


def encode_object(fields: Sequence[tuple[int, bytes]], dictionary_size: int) -> bytes:
    """Encode an object from pairs of field id and encoded value, which must be in the order of the field names."""
    values = [value for _, value in fields]
    size = _unsigned_size(sum(map(len, values)))
    id_size = _unsigned_size(max(0, dictionary_size - 1))
    is_large = len(fields) > 255
    header = BasicType.OBJECT | (size - 1) << 2 | (id_size - 1) << 4 | is_large << 6
    ids = b"".join(field_id.to_bytes(id_size, "little") for field_id, _ in fields)
    return _join_container(header, len(fields), is_large, ids, size, values)


def _join_container(
    header: int, count: int, is_large: bool, ids: bytes, offset_size: int, values: Sequence[bytes]
) -> bytes:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    return b"".join(
        [
            bytes([header]),
            count.to_bytes(4 if is_large else 1, "little"),
            ids,
            *(offset.to_bytes(offset_size, "little") for offset in offsets),
            *values,
        ]
    )
