"""Bytes in memory: read-only views of what was fetched, decompressed or encoded.

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
"""Bytes of the values of one Arrow array of strings or binary, and elements of one of lists: offsets have 32 bits."""

_POOLED = 1 << 15
"""Fewer bytes are had sooner elsewhere, and go back to the system less often."""


def view(data: Any) -> Bytes:
    """The bytes of any contiguous buffer, without a copy."""
    return np.frombuffer(data, np.uint8)


def size_of(values: pa.Array, count: int) -> int:
    """``values[:count].nbytes`` of a binary or fixed-width array without nulls, in less time; no validity counts."""
    kind, start, (_, held, *_) = values.type, values.offset, values.buffers()
    if pa.types.is_boolean(kind):
        return int(values[:count].nbytes)
    if not pa.types.is_binary(kind):
        return int(count * kind.byte_width)
    if not count:
        return 0
    offsets = np.frombuffer(held, np.int32)
    return count * 4 + int(offsets[start + count]) - int(offsets[start])


def filled(values: NDArray[Any], count: int) -> NDArray[Any]:
    """``values[:count]``, which does not keep much more memory than that."""
    return values[:count] if count * 2 > len(values) else values[:count].copy()


def allocate(size: int) -> Bytes:
    """``size`` writable bytes, many of them of Arrow's memory pool, which keeps what was freed for the next batch."""
    return np.empty(size, np.uint8) if size < _POOLED else np.frombuffer(pa.allocate_buffer(size), np.uint8)
