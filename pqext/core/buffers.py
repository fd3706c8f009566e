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


def view(data: Any) -> Bytes:
    """The bytes of any contiguous buffer, without a copy."""
    return np.frombuffer(data, np.uint8)


def allocate(size: int) -> Bytes:
    """``size`` writable bytes of Arrow's memory pool, which keeps what was freed for the next batch."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)
