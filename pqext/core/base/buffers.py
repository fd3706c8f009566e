"""Bytes in memory: read-only views of fetched, decompressed or encoded data.

They are numpy arrays, not memoryviews: when an exception ties a memoryview whose bytes are in use into a cycle,
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
"""Maximum bytes in one Arrow string or binary array, and elements in one list array: offsets have 32 bits."""

_POOLED = 1 << 15
"""Smaller buffers are allocated faster by numpy, and go back to the system less often."""


def view(data: Any) -> Bytes:
    """Return the bytes of any contiguous buffer, without a copy."""
    return np.frombuffer(data, np.uint8)


def numbers(buffer: Any, dtype: Any, start: int, count: int) -> NDArray[Any]:
    """Return ``count`` numbers of a buffer from position ``start``, without a copy; the buffer may end in padding."""
    if not count:
        return np.empty(0, dtype)
    return np.frombuffer(buffer, dtype, count, start * np.dtype(dtype).itemsize)


def size_of(values: pa.Array, count: int) -> int:
    """Return ``values[:count].nbytes`` of a binary or fixed-width array without nulls, faster; ignores validity."""
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
    """Return ``values[:count]``, copied if the view would hold more than twice that memory."""
    return values[:count] if count * 2 > len(values) else values[:count].copy()


def allocate(size: int) -> Bytes:
    """Allocate ``size`` writable bytes; large ones from Arrow's memory pool, which reuses freed memory."""
    return np.empty(size, np.uint8) if size < _POOLED else np.frombuffer(pa.allocate_buffer(size), np.uint8)
