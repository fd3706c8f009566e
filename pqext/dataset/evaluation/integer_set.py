"""Whether integers are among those of a long list, asked of one batch after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core.kernels import membership


class IntegerSet:
    """A hash table of integers, made once for all batches."""

    def __init__(self, listed: pa.Array) -> None:
        values = listed.to_numpy().astype(np.int64)
        size = 1 << (4 * len(values)).bit_length()
        self._keys, self._used = np.zeros(size, np.int64), np.zeros(size, np.uint8)
        self._least, self._most = int(values.min()), int(values.max())
        membership.fill(values, self._keys, self._used)

    def holds(self, array: pa.Array) -> pa.BooleanArray:
        """Is each integer in the table? Whatever stands below a null counts."""
        kind = np.int32 if array.type.bit_width == 32 else np.int64
        values: Any = np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]
        bits = np.zeros((len(values) + 7) // 8, np.uint8)
        membership.holds(self._keys, self._used, self._least, self._most, values, bits)
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
