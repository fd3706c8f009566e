"""Streams of arrays or batches over the same rows, cut so that they come together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


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
