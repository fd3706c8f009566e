"""Slice streams of batches: to equal row counts across streams, or to a maximum row count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa

T = TypeVar("T")


def in_step(streams: Sequence[Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """One piece of each stream at a time, all of as many rows: each stream ends its own where its bytes let it.

    Pieces are slices. Raises ``ValueError`` when one stream has fewer rows than another.
    """
    sources = [iter(stream) for stream in streams]
    held: list[Any] = [None] * len(sources)
    while sources:
        held = [next(source, None) if piece is None else piece for piece, source in zip(held, sources, strict=True)]
        if any(piece is None for piece in held):
            if any(piece is not None for piece in held):
                raise ValueError("streams over the same rows end at different ones")
            return
        rows = min(map(len, held))
        yield tuple(piece if len(piece) == rows else piece.slice(0, rows) for piece in held)
        held = [piece.slice(rows) if len(piece) > rows else None for piece in held]


def cut(batches: Iterable[tuple[pa.RecordBatch, T]], batch_rows: int) -> Iterator[tuple[pa.RecordBatch, T]]:
    """The batches with what is beside each, in slices of at most ``batch_rows``."""
    for batch, beside in batches:
        if batch.num_rows <= batch_rows:
            yield batch, beside
        else:
            yield from ((batch.slice(start, batch_rows), beside) for start in range(0, batch.num_rows, batch_rows))
