"""Leaf values between their stored and their Arrow form: same buffers where the layouts agree, else one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.errors import CorruptFileError
from pqext.core.kernels.byte_array import widen_decimals
from pqext.core.logical import LeafType
from pqext.core.metadata import Type


def from_fixed(leaf: LeafType, slots: int, validity: pa.Buffer | None, values: NDArray[np.uint8]) -> pa.Array:
    """An Arrow array of ``slots`` slots from stored values of a fixed width; booleans one byte each."""
    arrow = leaf.arrow_type()
    data: Any = values
    if pa.types.is_boolean(arrow):
        data = np.packbits(values, bitorder="little")
    elif pa.types.is_decimal(arrow):
        data = _decimals(leaf, slots, values)
    elif pa.types.is_integer(arrow) and arrow.bit_width < 32:
        data = values.view(np.int32).astype(arrow.to_pandas_dtype())
    return pa.Array.from_buffers(arrow, slots, [validity, pa.py_buffer(data)])


def from_byte_arrays(leaf: LeafType, slots: int, validity: pa.Buffer | None, offsets: Any, data: Any) -> pa.Array:
    """An Arrow array of ``slots`` slots from byte arrays; strings are checked to be UTF-8."""
    arrow = leaf.arrow_type()
    if pa.types.is_decimal(arrow):
        out = np.empty(slots * 16, np.uint8)
        widen_decimals(np.frombuffer(data, np.uint8), np.frombuffer(offsets, np.int32), out)
        return pa.Array.from_buffers(arrow, slots, [validity, pa.py_buffer(out)])
    array = pa.Array.from_buffers(arrow, slots, [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
    if pa.types.is_string(arrow):
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptFileError(f"a STRING column holds bytes that are not UTF-8: {error}") from None
    return array


def _decimals(leaf: LeafType, slots: int, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    if leaf.physical in (Type.INT32, Type.INT64):
        out = np.empty((slots, 2), np.int64)
        out[:, 0] = values.view(np.int32 if leaf.physical == Type.INT32 else np.int64)
        np.right_shift(out[:, 0], 63, out=out[:, 1])
        return out.reshape(-1).view(np.uint8)
    assert leaf.length is not None
    wide = np.empty(slots * 16, np.uint8)
    step = 1 << 24  # the kernel's offsets have 32 bits
    offsets = np.arange(min(slots, step) + 1, dtype=np.int32) * np.int32(leaf.length)
    for start in range(0, slots, step):
        stop = min(start + step, slots)
        part = values[start * leaf.length : stop * leaf.length]
        widen_decimals(part, offsets[: stop - start + 1], wide[start * 16 : stop * 16])
    return wide


def to_physical(array: pa.Array, leaf: LeafType) -> pa.Array:
    """The stored form of an Arrow array without nulls: bool, int32, int64, float, double, binary or fixed binary."""
    arrow = array.type
    if pa.types.is_decimal(arrow):
        return _physical_decimals(array.cast(pa.decimal128(arrow.precision, arrow.scale)), leaf)
    if pa.types.is_unsigned_integer(arrow) and arrow.bit_width >= 32:
        return array.view(pa.int64() if arrow.bit_width == 64 else pa.int32())
    if pa.types.is_temporal(arrow):
        shown = leaf.arrow_type()
        if pa.types.is_timestamp(shown):
            shown = pa.timestamp(shown.unit, arrow.tz)
        return pc.cast(array, shown).view(_STORED[leaf.physical])
    if leaf.physical == Type.BYTE_ARRAY:
        if pa.types.is_string(arrow):
            _check_text(array)
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
}


def _physical_decimals(array: pa.Array, leaf: LeafType) -> pa.Array:
    count = len(array)
    words = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * 16 : (array.offset + count) * 16]
    _check_precision(array)
    if leaf.physical == Type.INT64:
        return pa.array(words.view(np.int64)[::2].copy())
    if leaf.physical == Type.INT32:
        return pa.array(words.view(np.int64)[::2].astype(np.int32))
    big_endian = words.reshape(-1, 16)[:, ::-1]
    if leaf.physical == Type.FIXED_LEN_BYTE_ARRAY:
        assert leaf.length is not None
        fixed = np.ascontiguousarray(big_endian[:, 16 - leaf.length :])
        return pa.Array.from_buffers(pa.binary(leaf.length), count, [None, pa.py_buffer(fixed)])
    # BYTE_ARRAY takes the fewest bytes that keep the sign: drop leading bytes that only repeat it.
    if not count:
        return pa.array([], pa.binary())
    repeats = (big_endian[:, :-1] == np.where(big_endian[:, :1] >= 128, 255, 0)) & (
        (big_endian[:, 1:] >= 128) == (big_endian[:, :1] >= 128)
    )
    dropped = np.where(repeats.all(axis=1), 15, np.argmin(repeats, axis=1))
    kept = np.arange(16) >= dropped[:, None]
    offsets = np.concatenate([[0], np.cumsum(16 - dropped)]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(big_endian[kept]))]
    )


def _check_text(array: pa.Array) -> None:
    """Arrow does not look into strings that are made from buffers; a file with others could not be read."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a string is not UTF-8: {error}") from None


def _check_precision(array: pa.Array) -> None:
    """Arrow does not hold decimals to their precision; the file's type promises it."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise ValueError(f"a decimal has more digits than its type: {error}") from None
