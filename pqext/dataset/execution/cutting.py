"""Batches cut to a size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")


def cut(batches: Iterable[tuple[pa.RecordBatch, T]], batch_rows: int) -> Iterator[tuple[pa.RecordBatch, T]]:
    """The batches with what is beside each, in slices of at most ``batch_rows``."""
    for batch, beside in batches:
        if batch.num_rows <= batch_rows:
            yield batch, beside
        else:
            yield from ((batch.slice(start, batch_rows), beside) for start in range(0, batch.num_rows, batch_rows))
