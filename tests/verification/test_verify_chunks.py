"""`verify` finds damage, and statistics and indexes that do not say what the data is."""

from __future__ import annotations

import io
import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.footer.writing import rewrite_footer
from pqext.core.format.metadata import FileMetaData, SortingColumn, Statistics
from pqext.encryption import FileDecryption, FileEncryption
from pqext.verification import Report, sort_order, verify

TABLE = pa.table(
    {
        "i": pa.array([5, None, 7, 9, 11, None, 13, 15] * 20, pa.int64()),
        "j": pa.array(list(range(160)), pa.int64()),
        "s": ["a", "bb", None, "dd"] * 40,
        "f": [1.5, float("nan"), -2.0, None] * 40,
        "l": pa.array([[1, None], [], None, [2, 3]] * 40, pa.list_(pa.int32())),
        "b": [True, None, True, True] * 40,
        "t": pa.array([0, 1, None, 3] * 40, pa.timestamp("us", "UTC")),
    }
)
LISTED = "l.list.element"


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    options = {"row_group_rows": 80, "page_rows": 16, "compression": "uncompressed", "dictionary": False, **options}
    pqext.write_table(TABLE, out, **options)
    return out.getvalue()


def changed(source: bytes, change: Callable[[FileMetaData], None]) -> bytes:
    out = io.BytesIO()
    rewrite_footer(io.BytesIO(source), change, out)
    return out.getvalue()


def rules(report: Report) -> set[str]:
    return {count.rule for count in report.counts}


@pytest.mark.parametrize(
    "options",
    [
        {}, {"page_version": 2}, {"dictionary": True, "bloom_filters": True}, {"statistics": False},
        {"page_index": False, "compression": "zstd"}, {"float_order": "ieee754"}, {"checksums": False},
    ],
    ids=str,
)  # fmt: skip
def test_valid_files_have_no_faults(options: dict[str, Any]) -> None:
    if options.get("bloom_filters"):
        options = {**options, "bloom_filters": dict.fromkeys(("i", "j", "s", "f", LISTED, "t"), True)}
    report = verify(written(**options))
    assert report.ok, str(report)
    assert report.unchecked == ()


def test_valid_pyarrow_files_have_no_faults() -> None:
    out = io.BytesIO()
    table = TABLE.append_column("d", pa.array([None, 1, 2, 3] * 40, pa.decimal128(20, 2)))
    table = table.append_column("h", pa.array([1.5, None, 2, 3] * 40, pa.float16()))
    pq.write_table(table, out, row_group_size=70, write_page_index=True, data_page_size=64, write_page_checksum=True)
    report = verify(out.getvalue())
    assert report.ok, str(report)


def statistics_of(metadata: FileMetaData, name: str) -> Statistics:
    for column in metadata.row_groups[1].columns:
        found = column.meta_data
        if found is not None and found.statistics is not None and ".".join(found.path_in_schema) == name:
            return found.statistics
    raise AssertionError(name)


def number(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


LIES: list[tuple[str, str, dict[str, Any]]] = [
    ("statistics.bounds", "i", {"min_value": number(6)}),
    ("statistics.bounds", "i", {"max_value": number(14)}),
    ("statistics.bounds", "i", {"min_value": number(20), "max_value": number(1)}),
    ("statistics.bounds", "s", {"max_value": b"c"}),
    ("statistics.bounds", "f", {"min_value": b"\0" * 8}),
    ("statistics.bounds", "b", {"max_value": b"\0", "min_value": b"\0"}),
    ("statistics.bounds", LISTED, {"max_value": b"\2\0\0\0"}),
    ("statistics.bounds", "i", {"min_value": None}),
    ("statistics.bounds", "s", {"max_value": None}),
    ("statistics.bounds", "i", {"min_value": b"\1", "max_value": b"\2"}),
    ("statistics.null-count", "i", {"null_count": 19}),
    ("statistics.null-count", LISTED, {"null_count": 20}),
    ("statistics.nan-count", "f", {"nan_count": 0}),
]


@pytest.mark.parametrize(("rule", "column", "lie"), LIES)
@pytest.mark.spec("statistics.bounds", "statistics.null-count", "statistics.nan-count")
def test_statistics_that_contradict_the_data_are_detected(rule: str, column: str, lie: dict[str, Any]) -> None:
    def change(metadata: FileMetaData) -> None:
        for name, value in lie.items():
            setattr(statistics_of(metadata, column), name, value)

    report = verify(changed(written(), change))
    assert rules(report) == {rule}
    assert [(fault.column, fault.row_group) for fault in report.faults] == [(column, 1)]
    assert "lose rows" in report.counts[0].advice


def swap(metadata: FileMetaData, *names: str) -> None:
    """Exchange what the first two columns say of where their indexes are."""
    first, second = metadata.row_groups[0].columns[:2]
    for name in names:
        a, b = getattr(first, name), getattr(second, name)
        setattr(first, name, b)
        setattr(second, name, a)


@pytest.mark.parametrize(("key", "row"), [("j", None), ("i", 82), ("s", 82), ("t", 83)])
@pytest.mark.spec("sorting.checked", "sorting.recorded")
def test_rows_out_of_sort_order_are_detected(key: str, row: int | None) -> None:
    def change(metadata: FileMetaData) -> None:
        index = [".".join(c.meta_data.path_in_schema) for c in metadata.row_groups[1].columns if c.meta_data].index(key)
        # i: 5, None, 7 with nulls last; s: "a", "bb", None, "dd" with nulls first; t: 0, 1, None, 3.
        first = key == "s"
        metadata.row_groups[1].sorting_columns = [SortingColumn(column_idx=index, descending=False, nulls_first=first)]

    report = verify(changed(written(), change))
    found = [(fault.rule, fault.column, fault.row_group, fault.row) for fault in report.faults]
    assert found == ([] if row is None else [("sorting.checked", key, 1, row)])


def test_row_order_is_checked_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_order, "BATCH_ROWS", 7)
    assert verify(written(sorting=["j"]), checks=["sorting"]).ok
    rows = [*range(70), 68, *range(71, 80)]
    out = io.BytesIO()
    pqext.write_table(pa.table({"j": rows}), out)

    def change(metadata: FileMetaData) -> None:
        metadata.row_groups[0].sorting_columns = [SortingColumn(column_idx=0, descending=False, nulls_first=False)]

    report = verify(changed(out.getvalue(), change))
    assert [(fault.rule, fault.row) for fault in report.faults] == [("sorting.checked", 70)]
    change_to = [SortingColumn(column_idx=0, descending=one, nulls_first=False) for one in (False, True)] * 50_000
    repeated = changed(out.getvalue(), lambda metadata: setattr(metadata.row_groups[0], "sorting_columns", change_to))
    assert [fault.row for fault in verify(repeated).faults] == [70]
    outside = changed(out.getvalue(), lambda metadata: setattr(
        metadata.row_groups[0], "sorting_columns", [SortingColumn(column_idx=9, descending=False, nulls_first=False)]
    ))  # fmt: skip
    assert rules(verify(outside)) == {"sorting.recorded"}


@pytest.mark.spec("page-index.bounds", "page-index.null-counts")
def test_column_index_that_contradicts_the_pages_is_detected() -> None:
    names = ("column_index_offset", "column_index_length")
    report = verify(changed(written(), lambda metadata: swap(metadata, *names)))
    assert rules(report) == {"page-index.bounds", "page-index.null-counts"}
    assert {fault.column for fault in report.faults} == {"i", "j"}
    assert all(fault.offset is not None and fault.row_group == 0 for fault in report.faults)


@pytest.mark.spec("page-index.offsets", "page-index.validation")
def test_offset_index_with_wrong_page_offsets_is_detected() -> None:
    names = ("offset_index_offset", "offset_index_length")
    report = verify(changed(written(), lambda metadata: swap(metadata, *names)))
    assert rules(report) == {"page-index.validation"}

    source = bytearray(written())
    with pqext.open(bytes(source)) as file:
        index = file.row_groups[0].chunk(0).offset_index
        assert index is not None
        at = file.row_groups[0].metadata.columns[0].offset_index_offset
        assert at is not None
    first, second = index.page_locations[1].offset, index.page_locations[2].offset
    # The second page's offset, a zigzag varint, moved by one byte.
    raw = varint(first)
    place = source.index(raw, at)
    source[place : place + len(raw)] = varint(first + 1)
    assert second > first
    assert rules(verify(bytes(source))) <= {"page-index.offsets", "page-index.validation"}
    assert not verify(bytes(source)).ok


def varint(value: int) -> bytes:
    value <<= 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.mark.spec("bloom.check")
def test_bloom_filter_of_other_values_is_detected() -> None:
    source = written(bloom_filters={"i": True, "j": True})

    def change(metadata: FileMetaData) -> None:
        first, second = (column.meta_data for column in metadata.row_groups[0].columns[:2])
        assert first is not None
        assert second is not None
        places = (first.bloom_filter_offset, second.bloom_filter_offset)
        lengths = (first.bloom_filter_length, second.bloom_filter_length)
        second.bloom_filter_offset, first.bloom_filter_offset = places
        second.bloom_filter_length, first.bloom_filter_length = lengths

    assert rules(verify(changed(source, change))) == {"bloom.check"}


@pytest.mark.spec("page.crc")
def test_every_checksum_mismatch_is_reported_and_other_columns_are_checked() -> None:
    source = bytearray(written())
    with pqext.open(bytes(source)) as file:
        pages = file.row_groups[1].chunk(1).offset_index
        assert pages is not None
        ends = [page.offset + page.compressed_page_size - 1 for page in pages.page_locations[1:3]]
    for end in ends:
        source[end] ^= 0xFF
    report = verify(bytes(source))
    assert rules(report) == {"page.crc"}
    assert [(fault.column, fault.row_group, fault.offset) for fault in report.faults] == [
        ("j", 1, page.offset) for page in pages.page_locations[1:3]
    ]


def test_corruption_without_a_checksum_is_reported_once_per_column() -> None:
    source = bytearray(written(checksums=False, page_index=False, statistics=False))
    with pqext.open(bytes(source)) as file:
        start, length = file.row_groups[0].chunk(2).byte_range
    source[start + 20 : start + 40] = b"\xff" * 20
    report = verify(bytes(source))
    assert [(fault.rule, fault.column, fault.row_group) for fault in report.faults] == [("layout.page-lost", "s", 0)]
    assert start <= (report.faults[0].offset or 0) <= start + length


def test_corrupt_footer_is_also_reported() -> None:
    for source in (written()[:-1], b"PAR1", b"", b"PAR1" + b"\0" * 20 + b"PAR1"):
        report = verify(source)
        assert rules(report) == {"layout.footer-lost"}
        assert (report.size, report.num_rows) == (len(source), None)
    with pytest.raises(FileNotFoundError):
        verify("no/such/file.parquet")


def test_every_changed_or_truncated_byte_of_a_small_file_is_reported() -> None:
    out = io.BytesIO()
    table = pa.table({"i": [1, None, 3], "l": [["a"], [], None]})
    pqext.write_table(table, out, checksums=False, compression="uncompressed", bloom_filters={"i": {"ndv": 3}})
    whole = out.getvalue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at in range(0, len(whole), 19):
            for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
                with suppress(pqext.LimitError, pqext.UnsupportedError):
                    assert str(verify(damaged))


def test_changed_bit_in_the_footer_is_reported() -> None:
    out = io.BytesIO()
    pqext.write_table(pa.table({name: range(10) for name in "abc"}), out, row_group_rows=5)

    def duplicate_row_groups(metadata: FileMetaData) -> None:
        metadata.row_groups, metadata.num_rows = [*metadata.row_groups, *metadata.row_groups], 20

    twice = io.BytesIO()
    rewrite_footer(io.BytesIO(out.getvalue()), duplicate_row_groups, twice)
    whole = twice.getvalue()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for bit in range(8 * footer, 8 * (len(whole) - 8), 37):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        with suppress(pqext.UnsupportedError):
            assert str(verify(bytes(damaged)))


def test_encrypted_parts_are_reported_as_not_checked() -> None:
    key = b"0123456789012345"
    other = b"5432109876543210"
    source = written(encryption=FileEncryption(key, column_keys={"i": other}, encrypt_columns="listed"))
    report = verify(source, decryption=FileDecryption(key))
    assert (report.ok, report.complete, report.total) == (False, False, 0)
    assert {skipped.column for skipped in report.unchecked} == {"i"}
    full = verify(source, decryption=FileDecryption(key, column_keys={"i": other}))
    assert full.ok, str(full)
    assert full.unchecked == ()
    assert full.complete


def test_unchecked_file_is_not_ok() -> None:
    encryption = FileEncryption(b"0123456789012345", plaintext_footer=True)
    report = verify(written(encryption=encryption))
    assert {skipped.column for skipped in report.unchecked} == {*TABLE.column_names, LISTED} - {"l"}
    assert (report.ok, report.total, report.to_dict()["complete"]) == (False, 0, False)
    for nothing in ({"checks": []}, {"columns": []}):
        with pytest.raises(ValueError, match="nothing to check"):
            verify(written(), **nothing)


BAD = {
    "bad_data/ARROW-GH-47662.parquet": {"layout.page-lost"},
    "bad_data/ARROW-RS-GH-6229-LEVELS.parquet": {"layout.page-lost"},
    "data/datapage_v1-corrupt-checksum.parquet": {"page.crc"},
    "data/list_columns.parquet": {"statistics.null-count"},
    "data/alltypes_plain.parquet": set(),
    # Its writer, in parquet-java, calls pages null that it knows nothing of.
    "data/datapage_v1-snappy-compressed-checksum.parquet": {"page-index.null-pages"},
    "data/byte_array_decimal.parquet": set(),
    "data/nan_in_stats.parquet": set(),
}


@pytest.mark.parametrize("name", BAD)
def test_public_bad_files_have_the_documented_faults(name: str) -> None:
    folder = os.environ.get("PARQUET_TEST_DATA")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip("PARQUET_TEST_DATA does not name the parquet-testing folder")
    assert rules(verify(Path(folder) / name)) == BAD[name]


def stored(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.mark.spec("logical.json")
def test_invalid_values_of_json_columns_are_detected() -> None:
    good = ['{"a": 1, "a": 2}', "1e999999", "-0", '"\\u00e9"', " [1, null] ", "9" * 500, None, "[" * 1500 + "]" * 1500]
    bad = ["", "{", "nan", "[NaN]", "{'a': 1}", "[1,]", "01", '"\x01"', "1 2"]
    marked = pa.field("j", pa.string(), metadata={"PARQUET:logical_type": "JSON"})
    nested = pa.field("l", pa.list_(marked.with_name("element")))
    for text in bad:  # the oracle
        with pytest.raises(ValueError, match=r"Expecting|Extra|control|delimiter|quotes|Illegal"):
            json.loads(text, parse_constant=lambda constant: json.loads("?"))
    texts = [*good, *bad, *good]
    columns = [pa.array(texts, pa.string()), pa.array([[text] for text in texts])]
    table = pa.table(columns, schema=pa.schema([marked, nested]))
    report = verify(stored(table, row_group_rows=5, page_rows=2))
    assert rules(report) == {"logical.json"}
    assert [fault.row for fault in report.faults if fault.column == "j"] == [*range(len(good), len(good) + len(bad))]
    assert sum(fault.column == "l.list.element" for fault in report.faults) == len(bad)
    assert verify(stored(table.slice(0, len(good)))).ok
    plain = pa.table({"j": pa.array(bad)})
    assert verify(stored(plain)).ok
