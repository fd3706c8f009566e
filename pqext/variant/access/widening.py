"""Cast typed columns in one call if every value has an exact result, or a nearest double."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import allocate, numbers
from pqext.core.kernels.encodings.decimals import quotients

_EXACT_DIGITS = 22
"""Largest exponent of a power of ten that a double represents exactly."""
_EXACT_INTEGERS = 1 << 53
"""Largest integer up to which doubles represent all integers."""


def widen(typed_value: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return ``typed_value`` cast to ``target``, with the same nulls, or None if values must be cast individually."""
    source = typed_value.type
    if pa.types.is_signed_integer(source):
        wider = pa.types.is_signed_integer(target) and target.bit_width >= source.bit_width
        return typed_value.cast(target, safe=False) if wider or pa.types.is_float64(target) else None
    if pa.types.is_float32(source):
        return typed_value.cast(target) if pa.types.is_float64(target) else None
    if pa.types.is_decimal128(source) and pa.types.is_float64(target):
        return _doubles(typed_value)
    return None


def _doubles(decimals: pa.Array) -> pa.Array | None:
    """Return the nearest doubles of decimals, as quotients of exact doubles; None if the operands are not exact."""
    kind, count = decimals.type, len(decimals)
    validity, words = decimals.buffers()
    if kind.precision > 18 or not 0 <= kind.scale <= _EXACT_DIGITS or not count:
        return None
    unscaled = numbers(words, np.int64, 2 * decimals.offset, 2 * count)
    doubles = allocate(8 * count)
    if not quotients(unscaled, _EXACT_INTEGERS, 10.0**kind.scale, doubles.view(np.float64)) and kind.precision > 15:
        return None
    if validity is not None and decimals.offset:
        validity = decimals.is_valid().buffers()[1]
    return pa.Array.from_buffers(pa.float64(), count, [validity, pa.py_buffer(doubles)])
