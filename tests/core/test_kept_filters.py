"""A Bloom filter is read once for all questions on an open file, and no more memory is kept than a bound."""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import pqext
from pqext.core.base.buffers import Bytes
from pqext.core.format.predicate import Comparison, IsIn
from pqext.core.indexes.bloom import SplitBlockFilter, filter_bytes, filter_cache
from pqext.core.io.source import MemorySource
from pqext.core.schema.types.logical import LeafType
from pqext.dataset.expressions import Expression, col
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import prune_reason, row_group_may_match
from pqext.dataset.reading import scan

ROWS = 3000


class Counting(MemorySource):
    """A file that notes which bytes are read."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.reads: list[range] = []

    def _fetch(self, offset: int, length: int) -> Bytes:
        self.reads.append(range(offset, offset + length))
        return super()._fetch(offset, length)


@pytest.fixture(scope="module")
def data() -> bytes:
    """Three row groups whose numbers lie between the same bounds, so that Bloom filters alone tell them apart."""
    numbers = np.random.default_rng(7).permutation(ROWS) * 2
    sink = io.BytesIO()
    table = pa.table({"n": numbers, "s": [f"k{n}" for n in numbers]})
    pqext.write_table(table, sink, row_group_rows=1000, bloom_filters=True, dictionary=False, page_index=False)
    return sink.getvalue()


def filter_ranges(data: bytes) -> list[range]:
    """Where the filters stand."""
    with pqext.open(data) as file:
        found = []
        for group in file.row_groups:
            for chunk in group.chunks():
                start, length = chunk.metadata.bloom_filter_offset, chunk.metadata.bloom_filter_length
                assert start is not None
                assert length is not None
                found.append(range(start, start + length))
        return found


def times_read(stream: Counting, place: range) -> int:
    return sum(read.start < place.stop and place.start < read.stop for read in stream.reads)


def test_repeated_query_on_an_open_file_reads_nothing(data: bytes) -> None:
    with pqext.open(Counting(data)) as file:
        before = file.source.bytes_read
        asked = [(group, value) for group in file.row_groups for value in (2001, 2003, 2005)]
        for group, value in asked[::3]:
            assert not group.chunk("n").may_match(Comparison("==", value))
        once = file.source.bytes_read - before
        assert once >= sum(map(len, filter_ranges(data)[::2]))
        for group, value in asked:
            assert not group.chunk("n").may_match(Comparison("==", value))
            assert not group.chunk(0).may_contain(IsIn((value, value + 2)))
            assert group.chunk("n").bloom_filter is group.chunk(0).bloom_filter
        assert file.source.bytes_read == before + once


@pytest.mark.parametrize(
    "filter",
    [
        col("n").isin([2001, 2003, 2005, 2007]),
        (col("n") == 2001) | (col("n") == 2003),
        (col("n") == 2001) | ((col("n") > 10) & (col("n") == 2011)) | col("n").isin([2013, 2015]),
        ((col("n") == 2001) | (col("s") == "k2001")) & (col("n") != 4),
    ],
    ids=str,
)
def test_one_scan_reads_each_filter_only_once(filter: Expression, data: bytes) -> None:
    for run in (lambda query: query.count(), lambda query: query.to_table(), lambda query: query.explain()):
        stream = Counting(data)
        run(scan(stream, None, filter))
        for number, place in enumerate(filter_ranges(data)):
            assert times_read(stream, place) <= 1, number
        assert sum(times_read(stream, place) for place in filter_ranges(data)) >= 3
    with pqext.open(Counting(data)) as file:
        bound = bind(filter, file.schema)
        for group in file.row_groups:
            assert not row_group_may_match(bound, group)
            read = file.source.bytes_read
            assert prune_reason(bound, group) is not None
            assert file.source.bytes_read == read


def test_most_recent_filters_are_cached_up_to_a_limit() -> None:
    reads: list[int] = []

    def reader(key: int, blocks: int) -> Callable[[], SplitBlockFilter]:
        def read() -> SplitBlockFilter:
            reads.append(key)
            return SplitBlockFilter(LeafType(1), np.zeros(8 * blocks, np.uint32))

        return read

    kept = filter_cache(3 * 32)
    for key in (1, 2, 3, 1, 4, 1, 3, 2):
        kept.get_or_make((0, key), reader(key, 1), filter_bytes)
    assert reads == [1, 2, 3, 4, 2]
    for key in (9, 9, 1, 9):
        kept.get_or_make((0, key), reader(key, 100 if key == 9 else 1), filter_bytes)
    assert reads[5:] == [9, 1, 9]
    for _ in range(2):
        assert kept.get_or_make((1, 0), lambda: reads.append(-1), filter_bytes) is None
    assert reads.count(-1) == 1


def test_corrupt_filter_is_not_cached(data: bytes) -> None:
    kept = filter_cache()

    def fail() -> SplitBlockFilter:
        raise OSError("gone")

    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            kept.get_or_make((0, 0), fail, filter_bytes)
    assert kept.get_or_make((0, 0), lambda: None, filter_bytes) is None
