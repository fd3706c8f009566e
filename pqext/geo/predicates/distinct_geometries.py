"""Evaluate a predicate once per distinct geometry if rows repeat a few geometries.

A few bytes of a file can encode one large geometry in millions of rows, and an exact predicate can take milliseconds
per row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers

_FEW = 32
"""Maximum number of rows that are evaluated individually, and the minimum size of a sample."""
_SAMPLE = 1024
_SHARE = 16
"""Reciprocal of the share of rows in the sample, which has at most ``_SAMPLE`` rows."""
_MOST_DISTINCT = 0.9
"""Share of distinct byte strings in the sample above which most rows are assumed to be distinct."""


def evaluate_distinct(
    chunk: pa.Array, rows: NDArray[np.int64], decide: Callable[[pa.Array, NDArray[np.int64]], NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    """Return ``decide(chunk, rows)`` for a binary array without nulls; ``rows`` are the row numbers of its values.

    If values repeat, ``decide`` is called with the distinct values, each with the number of its first row.
    """
    if not _repeats(chunk):
        return decide(chunk, rows)
    encoded = chunk.dictionary_encode()
    codes = encoded.indices.to_numpy()
    first = np.empty(len(encoded.dictionary), dtype=np.int64)
    first[codes[::-1]] = rows[::-1]
    answers: NDArray[np.bool_] = decide(encoded.dictionary, first)[codes]
    return answers


def _repeats(chunk: pa.Array) -> bool:
    """Return whether there may be far fewer distinct values than rows, judging by a random sample."""
    count = len(chunk)
    if count < _FEW:
        return False
    drawn = chunk.take(pa.array(np.unique(np.random.default_rng().integers(0, count, _sample_size(count)))))
    return _count_bytes(drawn.unique()) <= _MOST_DISTINCT * _count_bytes(drawn)


def _sample_size(count: int) -> int:
    return min(_SAMPLE, max(_FEW, count // _SHARE))


def _count_bytes(chunk: pa.Array) -> int:
    """Return the total size in bytes of the values of a binary array."""
    width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
    ends = numbers(chunk.buffers()[1], width, chunk.offset, len(chunk) + 1)
    return int(ends[-1] - ends[0])
