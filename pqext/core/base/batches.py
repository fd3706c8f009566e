"""Slice batches so that several streams have equal row counts, or batches have a maximum row count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")


def align_batches(streams: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield tuples of arrays or batches, one from each stream, sliced to the same number of rows.

    Raises ``ValueError`` if one stream has fewer rows than another.
    """
    sources = [iter(stream) for stream in streams]
    pending: list[Any] = [None] * len(sources)
    while sources:
        pending = [next(source, None) if head is None else head for head, source in zip(pending, sources, strict=True)]
        if any(head is None for head in pending):
            if any(head is not None for head in pending):
                raise ValueError("the streams have different numbers of rows")
            return
        rows = min(map(len, pending))
        yield tuple(head if len(head) == rows else head.slice(0, rows) for head in pending)
        pending = [head.slice(rows) if len(head) > rows else None for head in pending]


def split_batches(batches: Iterable[tuple[pa.RecordBatch, T]], batch_rows: int) -> Iterator[tuple[pa.RecordBatch, T]]:
    """Slice batches to at most ``batch_rows`` rows. Each slice is yielded with the value that accompanies its batch."""
    for batch, value in batches:
        if batch.num_rows <= batch_rows:
            yield batch, value
        else:
            yield from ((batch.slice(start, batch_rows), value) for start in range(0, batch.num_rows, batch_rows))
