"""`verify` holds sizes, encodings, level histograms, exactness flags and null pages against what the pages are."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo, variant
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import (
    ColumnIndex,
    ColumnMetaData,
    Encoding,
    FileMetaData,
    OffsetIndex,
    PageEncodingStats,
    PageType,
)
from pqext.core.format.thrift import decode, encode
from pqext.verification import Report, verify

ROWS = 600
TABLE = pa.table(
    {
        "i": pa.array([None if i % 7 == 0 else i for i in range(ROWS)], pa.int64()),
        "s": [f"text {i % 50}" if i % 3 else None for i in range(ROWS)],
        "f": [float("nan") if i % 5 == 0 else i / 3 for i in range(ROWS)],
        "l": [None if i % 11 == 0 else ["x" * j if j % 2 else None for j in range(i % 4)] for i in range(ROWS)],
        "o": [None if i % 5 == 0 else {"a": i, "b": None if i % 2 else "q"} for i in range(ROWS)],
        "n": pa.array([None] * 200 + [1] * (ROWS - 200), pa.int32()),
    }
)
LISTED = "l.list.element"


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, **{"page_rows": 100, "row_group_rows": 300, **options})
    return out.getvalue()


def change_metadata(column: str, change: Callable[[ColumnMetaData], None], data: bytes) -> bytes:
    """The file with something else in the footer about the first chunk of a column."""
    out = io.BytesIO()

    def first(metadata: FileMetaData) -> None:
        for chunk in metadata.row_groups[0].columns:
            if chunk.meta_data is not None and ".".join(chunk.meta_data.path_in_schema) == column:
                change(chunk.meta_data)

    rewrite_footer(io.BytesIO(data), first, out)
    return out.getvalue()


def indexed(column: str, kind: type[Any], change: Callable[[Any], None], data: bytes) -> bytes:
    """The file with another index of one kind for the first chunk of a column, put before the footer."""
    with pqext.open(data) as file:
        chunk, end = file.row_groups[0].chunk(column), file.footer.offset
        index = chunk.column_index if kind is ColumnIndex else chunk.offset_index
    assert index is not None
    index = decode(kind, encode(index))[0]
    change(index)
    raw, out = encode(index), io.BytesIO()

    def change_chunks(metadata: FileMetaData) -> None:
        for one in metadata.row_groups[0].columns:
            if one.meta_data is not None and ".".join(one.meta_data.path_in_schema) == column:
                place = "column_index" if kind is ColumnIndex else "offset_index"
                setattr(one, f"{place}_offset", end)
                setattr(one, f"{place}_length", len(raw))

    rewrite_footer(io.BytesIO(data[:end] + raw + data[end:]), change_chunks, out)
    return out.getvalue()


def rules(report: Report) -> set[str]:
    return {count.rule for count in report.counts}


def sizes(**changes: Any) -> Callable[[ColumnMetaData], None]:
    def change(about: ColumnMetaData) -> None:
        for name, value in changes.items():
            setattr(about.size_statistics, name, value)

    return change


def exact(side: str, value: bytes) -> Callable[[ColumnMetaData], None]:
    def change(about: ColumnMetaData) -> None:
        setattr(about.statistics, f"{side}_value", value)
        setattr(about.statistics, f"is_{side}_value_exact", True)

    return change


def encodings(about: ColumnMetaData) -> None:
    about.encodings = [Encoding.DELTA_BINARY_PACKED, Encoding.RLE]


def all_in_a_dictionary(about: ColumnMetaData) -> None:
    about.encoding_stats = [
        PageEncodingStats(page_type=PageType.DICTIONARY_PAGE, encoding=Encoding.PLAIN, count=1),
        PageEncodingStats(page_type=PageType.DATA_PAGE, encoding=Encoding.RLE_DICTIONARY, count=3),
    ]


def one_page_more(about: ColumnMetaData) -> None:
    assert about.encoding_stats
    about.encoding_stats = [*about.encoding_stats[:-1], about.encoding_stats[-1]]
    about.encoding_stats[-1].count += 1


def larger(about: ColumnMetaData) -> None:
    about.total_uncompressed_size += 1


LIES: dict[str, tuple[str, str, Callable[[ColumnMetaData], None], dict[str, Any]]] = {
    "exact minimum": ("statistics.truncation", "i", exact("min", (-5).to_bytes(8, "little", signed=True)), {}),
    "exact maximum": ("statistics.truncation", "i", exact("max", (9999).to_bytes(8, "little")), {}),
    "exact minimum of text": ("statistics.truncation", "s", exact("min", b"te"), {}),
    "exact maximum of text": ("statistics.truncation", "s", exact("max", b"u"), {}),
    "definition levels": ("statistics.sizes", "o.b", sizes(definition_level_histogram=[1, 119, 180]), {}),
    "repetition levels": ("statistics.sizes", LISTED, sizes(repetition_level_histogram=[299, 1]), {}),
    "levels of another height": ("statistics.sizes", "o.b", sizes(definition_level_histogram=[120, 180]), {}),
    "bytes": ("statistics.sizes", "s", sizes(unencoded_byte_array_data_bytes=5), {}),
    "bytes of a dictionary's values": (
        "statistics.sizes", LISTED, sizes(unencoded_byte_array_data_bytes=0), {"dictionary": True}
    ),
    "encodings": ("layout.chunk-encoding", "i", encodings, {"dictionary": False}),
    "encodings of all pages": ("layout.chunk-encoding", "i", all_in_a_dictionary, {"dictionary": False}),
    "number of pages": ("layout.chunk-encoding", "s", one_page_more, {"page_version": 2}),
    "uncompressed size": ("layout.offsets", "i", larger, {}),
    "uncompressed size of packed pages": ("layout.offsets", "s", larger, {"compression": "zstd"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
@pytest.mark.spec("statistics.truncation", "statistics.sizes", "layout.chunk-encoding", "layout.offsets")
def test_false_page_facts_in_a_footer_are_detected(name: str) -> None:
    rule, column, change, options = LIES[name]
    report = verify(change_metadata(column, change, written(**options)))
    assert rules(report) == {rule}, report
    assert [(fault.column, fault.row_group) for fault in report.faults] == [(column, 0)]
    assert all(count.advice for count in report.counts)


def flagged(index: ColumnIndex) -> None:
    index.null_pages = [True, *index.null_pages[1:]]


def flagged_and_counted(index: ColumnIndex) -> None:
    flagged(index)
    index.null_counts = [100, *(index.null_counts or [])[1:]]


def flagged_without_bounds(index: ColumnIndex) -> None:
    flagged_and_counted(index)
    index.min_values, index.max_values = [b"", *index.min_values[1:]], [b"", *index.max_values[1:]]


def add_bounds_to_null_page(index: ColumnIndex) -> None:
    """The page is null in truth, and has bounds all the same."""
    assert index.null_pages[0]
    index.min_values, index.max_values = ([b"\1\0\0\0", *values[1:]] for values in (index.min_values, index.max_values))


def first_bounds(minimum: bytes, maximum: bytes) -> Callable[[ColumnIndex], None]:
    """Give the first page these bounds."""

    def change(index: ColumnIndex) -> None:
        index.min_values, index.max_values = [minimum, *index.min_values[1:]], [maximum, *index.max_values[1:]]

    return change


NAN, ONE = struct.pack("<d", math.nan), struct.pack("<d", 1.0)


@pytest.mark.parametrize(
    ("column", "bounds", "message"),
    [
        ("i", ((2).to_bytes(8, "little"), (1).to_bytes(8, "little")), "a minimum above the maximum"),
        ("i", (b"\1", b"\2"), "bounds that are not values of the column's type"),
        ("i", (b"", b""), "bounds that are not values of the column's type"),
        ("f", (NAN, NAN), "bounds that are NaN"),
        ("f", (ONE, NAN), "bounds that are NaN"),
        ("s", (b"b", b"a"), "a minimum above the maximum"),
    ],
)
@pytest.mark.spec("page-index.bounds")
def test_page_bounds_that_exclude_nothing_are_faults(column: str, bounds: tuple[bytes, bytes], message: str) -> None:
    report = verify(indexed(column, ColumnIndex, first_bounds(*bounds), written()))
    assert [fault.message for fault in report.faults if fault.rule == "page-index.bounds"] == [
        f"the column index has {message} for a page"
    ]
    assert {(fault.column, fault.row_group) for fault in report.faults} == {(column, 0)}


def histograms(index: ColumnIndex) -> None:
    counts = list(index.definition_level_histograms or [])
    index.definition_level_histograms = [counts[0] + 1, counts[1] - 1, *counts[2:]]


def page_bytes(index: OffsetIndex) -> None:
    index.unencoded_byte_array_data_bytes = [1, *(index.unencoded_byte_array_data_bytes or [])[1:]]


@pytest.mark.parametrize(
    ("rule", "column", "kind", "change"),
    [
        ("page-index.null-pages", "i", ColumnIndex, flagged),
        ("page-index.null-pages", "i", ColumnIndex, flagged_and_counted),
        ("page-index.null-pages", "s", ColumnIndex, flagged_without_bounds),
        ("page-index.null-pages", "n", ColumnIndex, add_bounds_to_null_page),
        ("page-index.histograms", "o.b", ColumnIndex, histograms),
        ("page-index.histograms", LISTED, ColumnIndex, histograms),
        ("statistics.sizes", "s", OffsetIndex, page_bytes),
    ],
)
@pytest.mark.spec("page-index.null-pages", "page-index.histograms", "statistics.sizes")
def test_false_page_facts_in_an_index_are_detected(
    rule: str, column: str, kind: type[Any], change: Callable[[Any], None]
) -> None:
    report = verify(indexed(column, kind, change, written()))
    assert rules(report) == {rule}, report
    assert [(fault.column, fault.row_group) for fault in report.faults] == [(column, 0)]
    assert report.faults[0].offset is not None


@pytest.mark.parametrize(
    "options",
    [
        {}, {"page_version": 2, "dictionary": False}, {"encodings": "auto", "dictionary": False}, {"bound_bytes": 3},
        {"compression": "zstd", "float_order": "ieee754"}, {"second_encodings": {"i": "delta_binary_packed"}},
        {"statistics": False}, {"page_index": False},
    ],
)  # fmt: skip
def test_our_files_have_correct_metadata(options: dict[str, Any]) -> None:
    data = written(**options)
    assert verify(data).ok, verify(data)
    out = io.BytesIO()
    pqext.concatenate([data, data], out, extensions="keep")
    assert "second_encodings" in options or verify(out.getvalue()).ok


def test_annotated_columns_have_correct_metadata() -> None:
    values = variant.parse_json(pa.array([f'{{"a": {i}, "b": "x{i}"}}' for i in range(ROWS)]))
    points = geo.from_points([float(i % 90) for i in range(ROWS)], [float(i % 45) for i in range(ROWS)])
    out = io.BytesIO()
    pqext.write_table(pa.table({"v": values, "g": points}), out, shredding={"v": "a BIGINT"}, page_rows=100)
    assert verify(out.getvalue()).ok, verify(out.getvalue())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_pyarrow_files_have_correct_metadata(version: str, dictionary: bool) -> None:
    out = io.BytesIO()
    pq.write_table(
        TABLE, out, data_page_version=version, use_dictionary=dictionary, write_page_index=True, data_page_size=500,
        row_group_size=300, dictionary_pagesize_limit=300,
    )
    assert verify(out.getvalue()).ok, verify(out.getvalue())


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_duckdb_files_have_correct_metadata(version: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "t.parquet"
    connection = duckdb.connect()
    connection.register("t", TABLE)
    connection.execute(f"COPY t TO '{path}' (FORMAT parquet, PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048)")
    assert verify(path).ok, verify(path)


@pytest.mark.parametrize("compression", ["snappy", "uncompressed"])
def test_polars_files_have_correct_metadata(compression: Any) -> None:
    polars = pytest.importorskip("polars")
    out = io.BytesIO()
    polars.from_arrow(TABLE).write_parquet(out, compression=compression, row_group_size=300, data_page_size=500)
    assert verify(out.getvalue()).ok, verify(out.getvalue())


def test_parquet_java_files_have_correct_metadata(parquet_testing: Path) -> None:
    # int96_from_spark and the others were written by Spark or Hive.
    seen = 0
    for path in sorted((parquet_testing / "data").glob("*.parquet")):
        try:
            with pqext.open(path) as file:
                if not (file.metadata.created_by or "").startswith("parquet-mr"):
                    continue
        except pqext.ParquetError:
            continue
        seen += 1
        assert rules(verify(path)) <= {"page.crc", "page-index.null-pages", "statistics.null-count"}, path
    assert seen > 5


def test_row_groups_with_negative_sizes_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pqext.write_table(pa.table({"a": range(6)}), path, row_group_rows=2)
    assert pqext.verify(path).ok

    def broken(metadata: FileMetaData) -> None:
        first, second, _ = metadata.row_groups
        first.total_byte_size, first.total_compressed_size, first.file_offset = -1, -2, -3
        second.ordinal = None

    pqext.rewrite_footer(path, broken)
    faults = pqext.verify(path).faults
    assert {fault.rule for fault in faults} == {"layout.file-metadata"}
    assert [fault.row_group for fault in faults] == [0, 0, 0, None]
    assert "2 of 3 row groups have an ordinal" in faults[-1].message
