"""Batches of lists in one long page: the rows that remain are not counted again for each batch."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.kernels.encodings import levels as level_kernel


def test_batches_of_a_long_list_page_take_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = pa.array([[row] * (row % 3) for row in range(20_000)], pa.list_(pa.int64()))
    out = io.BytesIO()
    pq.write_table(pa.table({"l": lists}), out, data_page_size=1 << 30, write_batch_size=1 << 20, store_schema=False)
    counted: list[int] = []
    count = level_kernel.count_rows

    def count_rows(levels: np.ndarray[tuple[int], np.dtype[np.int16]]) -> int:
        counted.append(len(levels))
        return count(levels)

    monkeypatch.setattr(level_kernel, "count_rows", count_rows)
    with pqext.open(out.getvalue()) as file:
        batches = list(file.iter_batches(100))
    assert [batch.num_rows for batch in batches] == [100] * 200
    assert pa.Table.from_batches(batches).equals(pq.read_table(out))
    assert sum(counted) < 4 * levels_of(lists)


def levels_of(lists: pa.ListArray) -> int:
    """Levels of the column: an entry for each element and for each list without elements."""
    return sum(max(len(value), 1) for value in lists.to_pylist())
