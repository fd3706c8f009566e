"""Bytes in memory: read-only views of fetched, decompressed or encoded data.

The views are numpy arrays, not memoryviews: if an exception puts a memoryview that is in use into a reference cycle,
CPython's garbage collector reports an error on standard error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

EMPTY: Bytes = np.empty(0, np.uint8)

ARRAY_BYTES = 0x7FFFFFFF
"""Maximum size of one Arrow string or binary array in bytes, and of one list array in elements: offsets have 32 bits.
"""

_POOLED = 1 << 15
"""Minimum size of buffers from Arrow's memory pool. numpy allocates smaller buffers faster."""


def view(data: Any) -> Bytes:
    """Return the bytes of any contiguous buffer, without a copy."""
    return np.frombuffer(data, np.uint8)


def numbers(buffer: Any, dtype: Any, start: int, count: int) -> NDArray[Any]:
    """Return ``count`` numbers of type ``dtype`` from item ``start`` of a buffer, without a copy."""
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count, start * np.dtype(dtype).itemsize)


def size_of(values: pa.Array, count: int) -> int:
    """Return ``values[:count].nbytes``, but faster. The array is binary or fixed-width and has no nulls.

    Validity bitmaps are not counted.
    """
    type, start, (_, held, *_) = values.type, values.offset, values.buffers()
    if pa.types.is_boolean(type):
        return int(values[:count].nbytes)
    if not pa.types.is_binary(type):
        return int(count * type.byte_width)
    if not count:
        return 0
    offsets = numbers(held, np.int32, start, count + 1)
    return count * 4 + int(offsets[-1]) - int(offsets[0])


def trim(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return ``values[:count]``. The result is a copy if a view would keep at least twice as much memory alive."""
    return values[:count] if count * 2 > len(values) else values[:count].copy()


def allocate(size: int) -> Bytes:
    """Allocate ``size`` writable bytes. Large buffers come from Arrow's memory pool, which reuses freed memory."""
    return np.empty(size, np.uint8) if size < _POOLED else np.frombuffer(pa.allocate_buffer(size), np.uint8)
