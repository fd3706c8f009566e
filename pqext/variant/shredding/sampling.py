"""Rows of a sample that represents a column, from which a shredding schema is inferred."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

_GOLDEN = 0.6180339887498949
"""The fractions of its multiples are spread evenly and never repeat."""


def sampled_rows(rows: int, count: int) -> pa.Int64Array:
    """``count`` of ``rows`` row numbers, ascending: one from each of as many ranges, not at the same offset in each.

    Rows at equal distances would be a bad sample of values that repeat with a period: every tenth row of
    ``i * 0.1`` is an integer.
    """
    numbers = np.arange(count + 1, dtype=np.int64)
    edges = numbers * rows // max(count, 1)
    widths = np.diff(edges)
    offsets = (numbers[:-1] * _GOLDEN % 1.0 * widths).astype(np.int64)
    return pa.array(edges[:-1] + np.minimum(offsets, np.maximum(widths - 1, 0)), pa.int64())
