"""Columns in parts for several threads."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

MIN_JOB_BYTES = 256 << 10
"""What a thread is worth starting for: what is learnt of keys and shapes is learnt by each."""


def even_ranges(chunk: pa.Array, threads: int) -> Iterator[tuple[int, int]]:
    """The rows of a chunk in ranges for ``threads`` threads, none much below ``MIN_JOB_BYTES``."""
    rows = len(chunk)
    jobs = max(1, min(threads, chunk.nbytes // MIN_JOB_BYTES, rows)) if threads > 1 else 1
    for i in range(jobs):
        yield rows * i // jobs, rows * (i + 1) // jobs
