"""The page index: others see the bounds we write, no row that matches is ever left out, and damage is not believed."""

from __future__ import annotations

import io
import math
import os
import re
import struct
import warnings
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import tables
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.format.metadata import BoundaryOrder, ColumnIndex, OffsetIndex, PageHeader, PageLocation, Type
from pqext.core.format.predicate import Bounds, Comparison, IsIn, IsNotNull, IsNull, Predicate
from pqext.core.format.thrift import decode, encode
from pqext.core.indexes.page_index import IndexedPages, matching_rows
from pqext.core.indexes.reading import DamagedIndexWarning
from pqext.core.schema.orders import BoundOrder
from pqext.core.schema.row_ranges import intersection, merge_ranges, union
from pqext.core.schema.types.logical import LeafType
from reference.effort import share

DATA = os.environ.get("PARQUET_TEST_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="PARQUET_TEST_DATA is not set")


def written(table: pa.Table, **options: Any) -> pqext.ParquetFile:
    out = io.BytesIO()
    pqext.write_table(table, out, **options)
    return pqext.open(out.getvalue())


def single_chunk(values: Any, **options: Any) -> Any:
    """The one chunk of a column of ``values`` cut into pages of two rows."""
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return written(pa.table({"c": array}), page_rows=2, **options).row_groups[0].chunk(0)


def leaf_rows(array: pa.Array) -> list[list[Any]]:
    """For each row of a column of numbers, or lists of them, the values of its leaf, nulls among them."""
    rows = []
    for row in array.to_pylist():
        rows.append([None] if row is None or row == [] else row if isinstance(row, list) else [row])
    return rows


@pytest.mark.spec("page-index.layout")
def test_indexes_precede_the_footer_grouped_by_row_group() -> None:
    file = written(pa.table({"a": range(10), "b": range(10)}), row_group_rows=5)
    chunks = [chunk for group in file.row_groups for chunk in group.chunks()]
    columns = [(c.structure.column_index_offset, c.structure.column_index_length) for c in chunks]
    offsets = [(c.structure.offset_index_offset, c.structure.offset_index_length) for c in chunks]
    places = columns + offsets
    assert places[0][0] == sum(chunks[-1].byte_range)
    for (start, length), (following, _) in zip(places, [*places[1:], (file.footer.offset, 0)], strict=True):
        assert start + length == following


@pytest.mark.spec("page-index.offsets", "page-index.row-boundary", "page-index.header-statistics")
@pytest.mark.parametrize("version", [1, 2])
def test_offset_indexes_point_to_page_headers(version: int) -> None:
    table = pa.table({"c": [[i, None, i] if i % 3 else [] for i in range(100)], "d": range(100)})
    file = written(table, page_rows=7, page_version=version)
    raw = file.source.read(0, file.source.size)
    for chunk in file.row_groups[0].chunks():
        offsets = chunk.offset_index
        assert offsets is not None
        assert [page.first_row_index for page in offsets.page_locations] == list(range(0, 100, 7))
        at = chunk.metadata.data_page_offset
        for page in offsets.page_locations:
            assert page.offset == at
            header, length = decode(PageHeader, raw[at:], limits=Limits())
            assert length + header.compressed_page_size == page.compressed_page_size
            detail = header.data_page_header or header.data_page_header_v2
            assert detail is not None
            assert detail.statistics is None, "the index makes statistics of pages superfluous"
            at += page.compressed_page_size
        assert at == sum(chunk.byte_range)


@pytest.mark.spec("page-index.read-by-others")
def test_pyarrow_duckdb_and_polars_read_files_with_indexes(tmp_path: Path) -> None:
    table, path = tables.fixed(), tmp_path / "a.parquet"
    pqext.write_table(table, path, page_rows=50)
    metadata = pq.read_metadata(path)
    columns = [metadata.row_group(0).column(i) for i in range(metadata.num_columns)]
    assert all(column.has_offset_index for column in columns)
    assert all(column.has_column_index for column in columns)
    assert pq.read_table(path).num_rows == 1000
    numbers = tmp_path / "b.parquet"
    pqext.write_table(pa.table({"a": range(10_000), "t": [f"{i:05}" for i in range(10_000)]}), numbers, page_rows=100)
    assert duckdb.sql(f"select count(*), min(t) from '{numbers}' where a between 4321 and 5320").fetchall() == [
        (1000, "04321")
    ]
    for parallel in ("auto", "prefiltered", "columns"):
        found = pl.scan_parquet(numbers, parallel=parallel).filter(pl.col("t") == "07777").collect()
        assert found["a"].to_list() == [7777]


@pytest.mark.spec("page-index.read-by-others")
def test_datafusion_reads_no_page_excluded_by_our_index(tmp_path: Path) -> None:
    """All pages but those of five hundred rows are overwritten, and it finds a row among these."""
    path = tmp_path / "a.parquet"
    table = pa.table({"a": range(10_000), "t": [f"{i:05}" for i in range(10_000)]})
    pqext.write_table(table, path, page_rows=100, dictionary=False, compression="uncompressed", checksums=False)
    data = bytearray(path.read_bytes())
    with pqext.open(path) as file:
        for chunk in file.row_groups[0].chunks():
            assert chunk.page_locations is not None
            for page in {*range(100)} - {*range(40, 45)}:
                start, length = chunk.page_locations.byte_range(page)
                data[start : start + length] = b"\xff" * length
    path.write_bytes(data)
    context = datafusion.SessionContext()
    context.register_parquet("numbers", path)
    (row,) = context.sql("select t from numbers where a = 4321").to_arrow_table().to_pylist()
    assert row == {"t": "04321"}


def test_polars_reads_nested_columns_with_an_index(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"i": range(1000), "l": [list(range(i % 5)) or None for i in range(1000)]})
    pqext.write_table(table, path, page_rows=10)
    assert pl.scan_parquet(path).filter(pl.col("i") == 503).collect()["l"].to_list() == [[0, 1, 2]]


@pytest.mark.spec("page-index.bounds", "page-index.null-pages", "page-index.null-counts")
@pytest.mark.parametrize("name", sorted(set(tables.LEAVES) - {"null"}))
def test_index_matches_pyarrow(name: str) -> None:
    """pyarrow shows no index, but its bytes are in the file: we read both with the structures of the format."""
    column = pa.concat_arrays([tables.fixed()[name].combine_chunks()[:20], pa.nulls(20, tables.LEAVES[name][0])])
    out = io.BytesIO()
    pq.write_table(
        pa.table({"c": column}), out, write_page_index=True, max_rows_per_page=20, use_dictionary=False,
        data_page_size=1 << 30, write_batch_size=20, store_decimal_as_integer=True,
    )
    theirs = pqext.open(out.getvalue()).row_groups[0].chunk(0)
    ours = written(pa.table({"c": column}), page_rows=20, bound_bytes=1000).row_groups[0].chunk(0)
    mine, other = ours.column_index, theirs.column_index
    assert mine is not None
    assert other is not None
    assert mine.null_pages == other.null_pages == [False, True]
    assert mine.null_counts == other.null_counts
    assert mine.boundary_order == other.boundary_order
    assert mine.min_values == other.min_values
    assert mine.max_values == other.max_values
    mine_offsets, other_offsets = ours.offset_index, theirs.offset_index
    assert mine_offsets is not None
    assert other_offsets is not None
    assert [p.first_row_index for p in mine_offsets.page_locations] == [
        p.first_row_index for p in other_offsets.page_locations
    ]
    assert mine_offsets.unencoded_byte_array_data_bytes == other_offsets.unencoded_byte_array_data_bytes
    if not pa.types.is_floating(column.type):  # pyarrow does not count NaN
        assert ours.page_bounds() == theirs.page_bounds()


@pytest.mark.spec("page-index.histograms", "statistics.sizes")
def test_level_histograms_match_pyarrow() -> None:
    rows = [[[i], None, []] if i % 4 else None if i % 3 else [] for i in range(60)]
    column = pa.array(rows, pa.list_(pa.list_(pa.int32())))
    out = io.BytesIO()
    pq.write_table(
        pa.table({"c": column}), out, write_page_index=True, max_rows_per_page=20, use_dictionary=False,
        write_batch_size=1,
    )
    theirs = pqext.open(out.getvalue()).row_groups[0].chunk(0)
    ours = written(pa.table({"c": column}), page_rows=20).row_groups[0].chunk(0)
    mine, other = ours.column_index, theirs.column_index
    assert mine is not None
    assert other is not None
    assert mine.definition_level_histograms == other.definition_level_histograms
    assert mine.repetition_level_histograms == other.repetition_level_histograms
    assert mine.null_counts == other.null_counts
    assert ours.metadata.size_statistics == theirs.metadata.size_statistics


@pytest.mark.spec("page-index.histograms")
def test_page_value_count_sums_its_levels_even_if_a_level_is_absent() -> None:
    rows = [[1], [2, 3], [], None, [4], [5]]
    ours = single_chunk(pa.array(rows, pa.list_(pa.int32())))
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array(rows, pa.list_(pa.int32()))}), sink)
    assert [bounds.num_values for bounds in ours.page_bounds()] == [3, 2, 2]
    assert pq.read_metadata(sink).row_group(0).column(0).num_values == 7


@pytest.mark.spec("page-index.null-counts")
@pytest.mark.parametrize(
    ("values", "counts"), [([1, 2, 3, 4], [0, 0]), ([1, None, 3, 4], [1, 0]), ([None] * 4, [2, 2])]
)
def test_nulls_are_counted_for_each_page_including_zero(values: list[int | None], counts: list[int]) -> None:
    assert single_chunk(pa.array(values, pa.int64())).column_index.null_counts == counts


@pytest.mark.spec("statistics.sizes")
def test_byte_arrays_are_counted_without_length_prefix() -> None:
    values = ["a", "bcd", None, "", "\u00e9\u00e9", "x" * 100]
    chunk = single_chunk(values, dictionary=False)
    assert chunk.metadata.size_statistics.unencoded_byte_array_data_bytes == 1 + 3 + 4 + 100
    assert chunk.offset_index.unencoded_byte_array_data_bytes == [4, 0, 104]
    assert single_chunk(range(4)).metadata.size_statistics.unencoded_byte_array_data_bytes is None


@pytest.mark.spec("page-index.boundary-order")
@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([1, 2, 3, 4], BoundaryOrder.ASCENDING),
        ([4, 3, 2, 1], BoundaryOrder.DESCENDING),
        ([1, 9, 2, 8], BoundaryOrder.UNORDERED),
        ([1, 2, None, None, 2, 5], BoundaryOrder.ASCENDING),
        ([5, 5, 5, 5], BoundaryOrder.ASCENDING),
        (pa.array([None, None], pa.int8()), BoundaryOrder.ASCENDING),
        (pa.array([1, 2, 2**64 - 2, 2**64 - 1], pa.uint64()), BoundaryOrder.ASCENDING),
        ([b"\x01", b"\x7f", b"\x80", b"\xff"], BoundaryOrder.ASCENDING),
        ([Decimal(-5), Decimal(-4), Decimal(3), Decimal(900)], BoundaryOrder.ASCENDING),
        ([-1.5, -0.0, 0.0, 2.0], BoundaryOrder.ASCENDING),
    ],
)
def test_boundary_order_follows_the_column_order(values: Any, order: BoundaryOrder) -> None:
    index = single_chunk(values).column_index
    assert index is not None
    assert index.boundary_order == order


@pytest.mark.spec("page-index.truncation")
def test_long_bounds_are_truncated_but_remain_bounds() -> None:
    index = single_chunk(["a" * 500, "b" * 500], bound_bytes=10).column_index
    assert index is not None
    assert (index.min_values, index.max_values) == ([b"a" * 10], [b"b" * 9 + b"c"])


@pytest.mark.spec("page-index.nan", "statistics.nan-count")
def test_page_of_nan_omits_the_column_index_unless_floats_are_ordered() -> None:
    values = [1.0, 2.0, math.nan, math.nan]
    assert single_chunk(values).column_index is None
    assert single_chunk(values).offset_index is not None
    assert [b.minimum for b in single_chunk(values).page_bounds()] == [None, None]
    chunk = single_chunk(values, float_order="ieee754")
    index = chunk.column_index
    assert index is not None
    assert index.nan_counts == [0, 2]
    assert all(math.isnan(struct.unpack("<d", bounds[1])[0]) for bounds in (index.min_values, index.max_values))
    assert chunk.page_bounds()[1] == Bounds(num_values=2, null_count=0, has_nan=True)
    mixed = single_chunk([1.0, math.nan, -0.0, 0.0]).column_index
    assert mixed is not None
    assert mixed.nan_counts == [1, 0]
    assert mixed.min_values == [struct.pack("<d", 1.0), struct.pack("<d", -0.0)]
    assert mixed.max_values == [struct.pack("<d", 1.0), struct.pack("<d", 0.0)]


def test_disabled_indexes_are_not_written() -> None:
    table = pa.table({"a": range(4), "b": range(4)})
    group = written(table, page_index={"a": False}).row_groups[0]
    assert (group.chunk(0).column_index, group.chunk(0).offset_index) == (None, None)
    assert group.chunk(1).column_index is not None
    group = written(table, statistics={"a": False}).row_groups[0]
    assert group.chunk(0).metadata.statistics is None
    assert group.chunk(0).column_index is None
    assert group.chunk(0).offset_index is not None
    assert group.chunk(1).metadata.statistics is not None
    assert written(table, page_index=False).page_index[0] == {}
    with pytest.raises(TypeError, match="page_index"):
        written(table, page_index="yes")


@pytest.mark.spec("page-index.lazy")
def test_indexes_of_a_row_group_are_read_on_access_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    columns = {f"c{i}": range(20_000) for i in range(20)}
    pqext.write_table(pa.table(columns), path, page_rows=100)
    assert pq.read_metadata(path).row_group(0).column(19).has_offset_index
    with pqext.open(path) as file:
        before, reads = file.source.bytes_read, []
        fetch = file.source._fetch

        def counted(offset: int, length: int) -> Any:
            reads.append(length)
            return fetch(offset, length)

        monkeypatch.setattr(file.source, "_fetch", counted)
        group = file.row_groups[0]
        assert not reads
        group.load_page_indexes(range(20))
        assert 1 <= len(reads) <= 2
        assert file.source.bytes_read - before < 400_000
        assert len(group.chunk(7).pages) == 200
        assert len(reads) <= 2


def test_page_index_of_a_file_can_be_inspected() -> None:
    file = written(pa.table({"a": range(10), "s": [{"x": "t"}] * 10}), page_rows=4, row_group_rows=6)
    index = file.page_index
    assert [sorted(group) for group in index] == [["a", "s.x"], ["a", "s.x"]]
    pages = index[1]["a"]
    assert [pages.rows(i) for i in range(len(pages))] == [range(4)]
    assert pages[0] == Bounds(6, 9, 0, 4, False)
    start, length = pages.byte_range(0)
    assert start + length == sum(file.row_groups[1].chunk(0).byte_range)
    assert len(index[0]) == 2
    with pytest.raises(KeyError):
        _ = index[0]["b"]


NUMBERS = st.one_of(st.integers(-6, 6), st.sampled_from([-0.0, 0.5, math.inf, -math.inf, math.nan]))
QUESTIONS = st.one_of(
    st.builds(Comparison, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS),
    st.builds(IsIn, st.lists(NUMBERS, max_size=3).map(tuple)),
    st.just(IsNull()),
    st.just(IsNotNull()),
)


def satisfies(question: Predicate, value: Any) -> bool:
    match question:
        case IsNull():
            return value is None
        case IsNotNull():
            return value is not None
        case IsIn(values):
            return value is not None and value in values
        case Comparison(operator, wanted):
            if value is None:
                return False
            return {
                "==": value == wanted, "!=": value != wanted, "<": value < wanted,
                "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted,
            }[operator]


COLUMNS = st.one_of(
    st.lists(
        st.one_of(st.none(), st.integers(-6, 6).map(float), st.sampled_from([math.nan, -0.0, 0.5])), max_size=30
    ).map(lambda values: pa.array(values, pa.float64())),
    st.lists(st.one_of(st.none(), st.integers(-6, 6)), max_size=30).map(lambda values: pa.array(values, pa.int32())),
    st.lists(st.integers(-6, 6), max_size=30).map(lambda values: pa.array(sorted(values), pa.int64())),
    st.lists(st.integers(-6, 6), max_size=30).map(lambda v: pa.array(sorted(v, reverse=True), pa.int64())),
    st.lists(st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-6, 6)), max_size=4)), max_size=30).map(
        lambda values: pa.array(values, pa.list_(pa.int64()))
    ),
)


@pytest.mark.spec("page-index.search", "page-index.bounds")
@settings(max_examples=share(3))
@given(COLUMNS, QUESTIONS, st.integers(1, 9), st.sampled_from(["type", "ieee754"]))
def test_matching_rows_are_never_pruned(column: pa.Array, question: Predicate, page_rows: int, order: str) -> None:
    file = written(pa.table({"c": column}), page_rows=page_rows, float_order=order)
    if not len(column):
        return
    pages = file.row_groups[0].chunk(0).pages
    assert pages is not None
    rows = {row for one in matching_rows(pages, question) for row in one}
    for row, values in enumerate(leaf_rows(column)):
        if any(satisfies(question, value) for value in values):
            assert row in rows
    for page, bounds in enumerate(pages):
        values = [value for row in pages.rows(page) for value in leaf_rows(column)[row]]
        real = [value for value in values if value is not None and value == value]
        assert bounds.minimum is None or all(bounds.minimum <= value for value in real)
        assert bounds.maximum is None or all(bounds.maximum >= value for value in real)
        assert bounds.has_nan is not False or not any(value != value for value in values if value is not None)
        assert bounds.null_count in (None, values.count(None))


@pytest.mark.spec("page-index.search")
@example([1, 2, 2, 3], Comparison(">=", 2))
@example([1, 2, 2, 3], Comparison("<=", 2))
@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), QUESTIONS)
def test_array_comparison_selects_the_same_pages_as_single_comparison(values: list[int], question: Predicate) -> None:
    raw = [struct.pack("<i", value) for value in values]
    offsets = OffsetIndex(
        page_locations=[PageLocation(offset=4 + i, compressed_page_size=1, first_row_index=i) for i in range(len(raw))]
    )
    node = written(pa.table({"c": pa.array([1], pa.int32())})).schema.leaves[0]

    def pages(*, as_numbers: bool) -> IndexedPages:
        index = ColumnIndex(
            null_pages=[False] * len(raw), min_values=raw, max_values=raw, boundary_order=BoundaryOrder.UNORDERED,
            null_counts=[0] * len(raw),
        )
        found = IndexedPages(node, BoundOrder(LeafType(Type.INT32), "type"), offsets, index, len(raw))
        if not as_numbers:
            found.__dict__["numbers"] = None  # so that they are compared one by one
        return found

    assert pages(as_numbers=True).matching_pages(question) == pages(as_numbers=False).matching_pages(question)


def test_only_matching_pages_are_selected() -> None:
    pages = written(pa.table({"c": range(1000)}), page_rows=10).row_groups[0].chunk(0).pages
    assert pages is not None
    assert matching_rows(pages, Comparison("==", 505)) == [range(500, 510)]
    assert matching_rows(pages, Comparison(">=", 985)) == [range(980, 1000)]
    assert matching_rows(pages, IsIn((3, 15, 777))) == [range(20), range(770, 780)]
    assert matching_rows(pages, Comparison("==", 5000)) == []
    assert matching_rows(pages, Comparison("==", b"text")) == [range(1000)]


RANGES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda p: range(p[0], p[0] + p[1])), max_size=5)


@given(RANGES, RANGES)
def test_row_ranges_combine_like_sets(first: list[range], second: list[range]) -> None:
    a, b = merge_ranges(first), merge_ranges(second)
    rows = {row for one in first for row in one}
    others = {row for one in second for row in one}
    for result, expected in ((a, rows), (union(a, b), rows | others), (intersection(a, b), rows & others)):
        assert {row for one in result for row in one} == expected
        assert all(one.stop < other.start for one, other in pairwise(result))
        assert all(len(one) for one in result)


def damaged(change: Any) -> bytes:
    """A file of one column whose index structures ``change`` has altered, rewritten in place."""
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": range(10)}), out, page_rows=3)
    file = pqext.open(out.getvalue())
    chunk = file.row_groups[0].chunk(0)
    columns, offsets = chunk.column_index, chunk.offset_index
    change(columns, offsets)
    stored = file.metadata.row_groups[0].columns[0]
    raw = bytearray(out.getvalue()[: stored.column_index_offset])
    for index, kind in ((columns, "column"), (offsets, "offset")):
        setattr(stored, f"{kind}_index_offset", len(raw))
        data = encode(index)
        setattr(stored, f"{kind}_index_length", len(data))
        raw += data
    footer = encode(file.metadata)
    return bytes(raw) + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def _part(target: Any, name: str) -> Any:
    if isinstance(target, list):
        return target[int(name)]
    return target[name] if isinstance(target, dict) else getattr(target, name)


def _set(path: str, value: Any) -> Any:
    def change(columns: ColumnIndex, offsets: OffsetIndex) -> None:
        target: Any = {"columns": columns, "offsets": offsets}
        *parts, last = re.findall(r"\w+", path)
        for part in parts:
            target = _part(target, part)
        if isinstance(target, list):
            target[int(last)] = value
        else:
            setattr(target, last, value)

    return change


@pytest.mark.spec("page-index.validation")
@pytest.mark.parametrize(
    "change",
    [
        _set("columns.null_pages", [False] * 3),
        _set("columns.min_values", [b""] * 5),
        _set("columns.max_values", []),
        _set("columns.null_counts", [0]),
        _set("columns.definition_level_histograms", [1, 2, 3]),
        _set("columns.nan_counts", [1] * 5),
        _set("offsets.page_locations", []),
        _set("offsets.page_locations[0].first_row_index", 1),
        _set("offsets.page_locations[2].first_row_index", 2),
        _set("offsets.page_locations[3].first_row_index", 10),
        _set("offsets.page_locations[0].offset", 3),
        _set("offsets.page_locations[1].offset", 4),
        _set("offsets.page_locations[3].offset", 1 << 40),
        _set("offsets.page_locations[3].compressed_page_size", 1 << 30),
        _set("offsets.page_locations[1].compressed_page_size", 0),
        _set("offsets.page_locations[1].compressed_page_size", -5),
        _set("offsets.unencoded_byte_array_data_bytes", [1]),
    ],
)
def test_inconsistent_index_raises_on_access_and_is_ignored_in_pruning(change: Any) -> None:
    raw = damaged(change)
    chunk = pqext.open(raw).row_groups[0].chunk(0)
    with pytest.raises(CorruptFileError) as caught:
        _ = (chunk.column_index, chunk.offset_index)
    assert caught.value.column == "c"
    with pytest.warns(DamagedIndexWarning, match="ignored"):
        assert chunk.pages is None
    assert chunk.page_bounds() == []
    assert pqext.open(raw).read()["c"].to_pylist() == list(range(10)), "reading needs no index"
    with pytest.raises(CorruptFileError) as caught:
        pqext.read_table(raw, filter=pqext.col("c") == 3, strict=True)
    assert caught.value.column == "c"


@pytest.mark.spec("page-index.validation")
@pytest.mark.parametrize(
    "change",
    [
        _set("columns.min_values[1]", b"\1"),
        _set("columns.max_values[1]", b""),
        _set("columns.min_values[1]", struct.pack("<q", 99)),
        _set("columns.boundary_order", BoundaryOrder.DESCENDING),
        _set("columns.boundary_order", 77),
        _set("columns.null_counts[1]", -1),
        _set("columns.null_pages[1]", True),
        _set("columns.null_counts", None),
    ],
)
def test_implausible_bounds_are_unknown(change: Any) -> None:
    raw = damaged(change)
    pages = pqext.open(raw).row_groups[0].chunk(0).pages
    assert pages is not None
    for value in range(10):
        assert any(value in rows for rows in matching_rows(pages, Comparison("==", value)))


def test_every_changed_byte_of_an_index_is_an_error_or_harmless() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": ["a", None, "b", "c"]}), out, page_rows=2)
    raw = out.getvalue()
    stored = pqext.open(raw).row_groups[0].chunk(0).structure
    stop = stored.offset_index_offset + stored.offset_index_length
    for at in range(stored.column_index_offset, stop):
        changed = bytearray(raw)
        changed[at] ^= 0xFF
        chunk = pqext.open(bytes(changed)).row_groups[0].chunk(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedIndexWarning)
            chunk.page_bounds()
        with suppress(ParquetError):
            _ = (chunk.column_index, chunk.offset_index)


def test_index_outside_the_file_or_limits_is_rejected() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({"c": range(100)}), out, page_rows=2)
    file = pqext.open(out.getvalue(), limits=Limits(page_index_bytes=10))
    with pytest.raises(LimitError, match="page_index_bytes"):
        _ = file.row_groups[0].chunk(0).column_index
    file = pqext.open(out.getvalue())
    for offset, length in ((1 << 50, 10), (-1, 10), (4, 0), (4, -1)):
        chunk = file.row_groups[0].chunk(0)
        chunk.structure.offset_index_offset, chunk.structure.offset_index_length = offset, length
        with pytest.raises(CorruptFileError, match="extends beyond the file"):
            _ = chunk.offset_index


def one_page(table: pa.Table, index: ColumnIndex, order: str = "type") -> IndexedPages:
    """The only page of a column by an index of a page."""
    node = written(table).schema.leaves[0]
    offsets = OffsetIndex(page_locations=[PageLocation(offset=4, compressed_page_size=1, first_row_index=0)])
    return IndexedPages(node, BoundOrder(node.leaf_type, order), offsets, index, table.num_rows)  # type: ignore[arg-type]


@pytest.mark.spec("page-index.validation")
@pytest.mark.parametrize("null_count", [0, -1])
def test_null_page_with_a_zero_null_count_is_ignored(null_count: int) -> None:
    index = ColumnIndex(
        null_pages=[True], min_values=[b""], max_values=[b""], boundary_order=BoundaryOrder.ASCENDING,
        null_counts=[null_count],
    )
    for values in ([1, 2], [[1], [2]]):  # entries of a list are not counted by rows
        pages = one_page(pa.table({"c": values}), index)
        assert pages.matching_pages(Comparison("==", 1)) == [0]
        assert pages.matching_pages(IsNotNull()) == [0]


@pytest.mark.spec("page-index.bounds")
@pytest.mark.parametrize("order", ["type", "total"])
@pytest.mark.parametrize(("type", "code"), [(pa.float16(), "<e"), (pa.float32(), "<f"), (pa.float64(), "<d")])
@pytest.mark.parametrize(("nan_counts", "may_be_greater"), [(None, True), ([1], True), ([0], False)])
def test_pages_that_may_contain_nan_match_greater_than(
    order: str, type: pa.DataType, code: str, nan_counts: list[int] | None, may_be_greater: bool
) -> None:
    """NaN is greater than every number, as in Spark, DuckDB and polars, and is not among the bounds."""
    bound = struct.pack(code, 1.0)
    index = ColumnIndex(
        null_pages=[False], min_values=[bound], max_values=[bound], boundary_order=BoundaryOrder.ASCENDING,
        null_counts=[0], nan_counts=nan_counts,
    )
    pages = one_page(pa.table({"c": pa.array([1.0, 1.0], type)}), index, order)
    expected = [0] if may_be_greater else []
    for predicate in (Comparison(">", 2.0), Comparison(">=", 2.0)):
        assert pages.matching_pages(predicate) == expected
    for predicate in (Comparison("<", 1.0), Comparison("<=", 0.5), Comparison("==", 2.0)):
        assert pages.matching_pages(predicate) == []


@pytest.mark.spec("page-index.validation")
@needs_data
def test_null_pages_with_values_are_ignored() -> None:
    """parquet-java called these pages null while it counted -1 nulls; they hold numbers."""
    assert DATA is not None
    file = pqext.open(Path(DATA, "data", "datapage_v1-uncompressed-checksum.parquet"))
    chunk = file.row_groups[0].chunk(0)
    index = chunk.column_index
    assert index is not None
    assert index.null_pages == [True, True]
    value = file.read(columns=["a"])["a"][0].as_py()
    assert value is not None
    assert matching_rows(chunk.pages, Comparison("==", value)) == [range(chunk.pages.num_rows)]


@pytest.mark.spec("page-index.null-pages")
@needs_data
def test_null_pages_of_public_test_files_are_correct() -> None:
    assert DATA is not None
    file = pqext.open(Path(DATA, "data", "int32_with_null_pages.parquet"))
    pages = file.row_groups[0].chunk(0).pages
    assert pages is not None
    values = file.read()["int32_field"].to_pylist()
    assert any(bounds.all_null for bounds in pages)
    for page, bounds in enumerate(pages):
        held = values[pages.rows(page).start : pages.rows(page).stop]
        real = [value for value in held if value is not None]
        assert bounds.null_count == held.count(None)
        assert (bounds.minimum, bounds.maximum) == ((min(real), max(real)) if real else (None, None))


@needs_data
def test_indexes_of_public_test_files_bound_their_pages() -> None:
    assert DATA is not None
    file = pqext.open(Path(DATA, "data", "alltypes_tiny_pages.parquet"))
    columns = [leaf.dotted_path for leaf in file.schema.leaves if leaf.leaf_type.order != "undefined"]
    checked = 0
    for name in columns:
        chunk = file.row_groups[0].chunk(file.schema.find(name).leaf_start)
        array = file.read(columns=[name])[name].combine_chunks()
        if not pa.types.is_integer(array.type):
            continue
        for page, bounds in enumerate(chunk.pages):
            rows = chunk.pages.rows(page)
            held = array[rows.start : rows.stop].to_pylist()
            assert (bounds.minimum, bounds.maximum) == (min(held), max(held))
            checked += 1
    assert checked > 100
