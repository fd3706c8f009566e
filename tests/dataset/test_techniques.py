"""Techniques of seed 003, each by what it must not cost: calls, memory, bytes of pages."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext import col
from pqext.core.io.source import MemorySource


def stored(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return out.getvalue()


class Recorded(MemorySource):
    """A file in memory that notes which ranges are asked for; of its end little is fetched at first."""

    tail_bytes = 512
    merge_gap = 0

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.fetched: list[range] = []

    def _fetch(self, offset: int, length: int) -> Any:
        self.fetched.append(range(offset, offset + length))
        return super()._fetch(offset, length)


def calls_of_reading(rows: int) -> int:
    """How many calls, Python's and others', reading a chunk of one page of each kind makes."""
    table = pa.table(
        {
            "number": pa.array(range(rows)),
            "word": [f"word {i % 100}" if i % 7 else None for i in range(rows)],
            "list": [[i] * (i % 3) for i in range(rows)],
            "struct": [{"a": i / 3} for i in range(rows)],
        }
    )
    data = stored(table, page_rows=rows, page_bytes=1 << 30)
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    with pqext.open(data, threads=1) as file:
        sys.setprofile(count)
        try:
            file.read()
        finally:
            sys.setprofile(None)
    return calls


@pytest.mark.spec("querying.vectorized")
def test_reading_makes_no_call_per_value() -> None:
    calls_of_reading(10)  # what is made once
    assert calls_of_reading(20_000) < 1.5 * calls_of_reading(2_000)


@pytest.mark.spec("querying.streaming")
def test_large_row_group_is_decoded_in_batches() -> None:
    """Batches of one row group never hold more than a part of it in memory."""
    rows = 1 << 19
    table = pa.table({f"c{i}": np.random.default_rng(i).integers(0, 2**62, rows) for i in range(4)})
    data = stored(table, dictionary=False, compression="snappy")
    before, held = pa.total_allocated_bytes(), []
    with pqext.open(data) as file:
        assert len(file.row_groups) == 1
        for batch in file.iter_batches(1 << 14):
            held.append(pa.total_allocated_bytes() - before)
            del batch
    assert len(held) == 32
    assert max(held) < table.nbytes / 3


def figure() -> pa.Table:
    """The seed's example: column A above 35 from row 200 on, column B "F" in rows 100 to 244."""
    return pa.table(
        {
            "A": pa.array([10] * 100 + [20] * 100 + [36 + i % 10 for i in range(200)], pa.int64()),
            "B": pa.array([b"AAAAAAAA"] * 100 + [b"FFFFFFFF"] * 145 + [b"ZZZZZZZZ"] * 155, pa.binary(8)),
            "C": pa.array(range(400), pa.int64()),
        }
    )


@pytest.mark.spec("querying.pages", "querying.intersection", "querying.projection", "querying.ranges")
@pytest.mark.parametrize(("page_rows", "first", "last"), [(100, 200, 300), (35, 175, 245), (50, 200, 250)])
def test_rows_are_the_intersection_of_the_pages_of_all_columns(page_rows: int, first: int, last: int) -> None:
    """Which pages may match is counted here from the values, page by page."""
    table = figure()
    data = stored(table, page_rows=page_rows, dictionary=False, compression="uncompressed", checksums=False)
    question = (col("A") > 35) & (col("B") == b"FFFFFFFF")
    a, b = table["A"].to_pylist(), table["B"].to_pylist()
    starts = range(0, len(a), page_rows)
    pages = [
        range(at, min(at + page_rows, len(a)))
        for at in starts
        if any(value > 35 for value in a[at : at + page_rows]) and b"FFFFFFFF" in b[at : at + page_rows]
    ]
    assert (pages[0].start, pages[-1].stop) == (first, last)
    (task,) = pqext.scan(data, ["B"], question).plan(pages=True)
    assert task.row_groups[0].rows == [range(first, last)]
    source = Recorded(data)
    found = pqext.scan(source, ["B"], question).to_table()
    assert found.num_rows == 45
    with pqext.open(data) as file:
        chunks = [file.row_groups[0].chunk(index) for index in range(3)]
        allowed: set[int] = set()
        for chunk in chunks[:2]:
            places = chunk.page_locations
            assert places is not None
            for page, at in enumerate(starts):
                if range(max(at, first), min(at + page_rows, last)):
                    start, length = places.byte_range(page)
                    allowed |= {*range(start, start + length)}
        end = max(sum(chunk.byte_range) for chunk in chunks)
    fetched = {at for one in source.fetched for at in one if 4 <= at < end}
    assert fetched <= allowed
    assert fetched


@pytest.mark.spec("querying.row-groups")
def test_row_groups_pruned_by_bounds_are_not_fetched() -> None:
    data = stored(figure(), row_group_rows=100, page_index=False)
    source = Recorded(data)
    assert pqext.scan(source, ["A"], col("A") < 15).to_table().num_rows == 100
    with pqext.open(data) as file:
        places = [group.chunk("A").byte_range for group in file.row_groups]
        end = max(sum(chunk.byte_range) for group in file.row_groups for chunk in group.chunks())
    fetched = {at for one in source.fetched for at in one if 4 <= at < end}
    assert fetched == {*range(places[0][0], sum(places[0]))}
