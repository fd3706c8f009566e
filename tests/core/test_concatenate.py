"""Files joined and footers rewritten: other readers see the same values, and no page changes."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import bombs, tables
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.extension.structure import append_extension
from pqext.core.format.metadata import (
    ColumnOrder,
    FileMetaData,
    IEEE754TotalOrder,
    KeyValue,
    StringType,
    TypeDefinedOrder,
)
from pqext.core.format.thrift import encode
from pqext.core.io.sources.locations import open_source
from pqext.core.read.pages.page import raw_pages
from reference.effort import share


def numbers(start: int, rows: int = 100) -> pa.Table:
    values = range(start, start + rows)
    return pa.table(
        {
            "i": pa.array([None if v % 7 == 0 else v for v in values], pa.int64()),
            "s": pa.array([f"text {v % 5}" for v in values], pa.string()),
            "l": pa.array([[v, None] if v % 3 else None for v in values], pa.list_(pa.int32())),
        }
    )


def has_nan(table: pa.Table) -> bool:
    """Tables that hold NaN are unequal to themselves."""
    return not table.equals(table)


def by_pqext(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **{"row_group_rows": 40, "page_rows": 8, "bloom_filters": {"i": True}, **options})
    return out.getvalue()


def by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=40, write_page_index=True, data_page_size=64, **options)
    return out.getvalue()


def joined(*files: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.concatenate(files, out, **options)
    return out.getvalue()


def edited(data: bytes, edit: Any) -> bytes:
    out = io.BytesIO()
    pqext.rewrite_footer(data, edit, out)
    return out.getvalue()


@pytest.mark.spec("layout.offsets", "layout.row-groups")
@pytest.mark.parametrize("write", [by_pqext, by_pyarrow])
def test_concatenated_files_are_readable_by_every_reader(write: Any, tmp_path: Path) -> None:
    parts = [numbers(0), numbers(100, 0), numbers(100, 1), numbers(101, 59)]
    path = tmp_path / "joined.parquet"
    assert pqext.concatenate([write(part) for part in parts], path) == 160
    whole = numbers(0, 160)
    assert pq.read_table(path) == whole
    assert pqext.read_table(path) == whole
    assert duckdb.connect().read_parquet(str(path)).to_arrow_table().to_pylist() == whole.to_pylist()
    assert pl.read_parquet(path).to_arrow().to_pylist() == whole.to_pylist()
    # Bounds, page index and Bloom filters are still true: filters that use them find exactly what is there.
    for value in (1, 39, 99, 100, 101, 159, 1000):
        want = [value] if value % 7 and value < 160 else []
        assert pqext.read_table(path, ["i"], filter=pqext.col("i") == value)["i"].to_pylist() == want
        found = duckdb.connect().execute("select i from read_parquet(?) where i = ?", [str(path), value]).fetchall()
        assert [row[0] for row in found] == want
        assert pl.scan_parquet(path).filter(pl.col("i") == value).collect()["i"].to_list() == want


@pytest.mark.parametrize("write", [by_pqext, by_pyarrow])
def test_concatenation_preserves_pages_and_indexes(write: Any) -> None:
    files = [write(numbers(0)), write(numbers(100))]
    data = joined(*files)
    source = open_source(data)
    with pqext.open(data) as file, pqext.open(files[0]) as first, pqext.open(files[1]) as second:
        groups = [(group, files[0]) for group in first.row_groups] + [(group, files[1]) for group in second.row_groups]
        assert len(groups) == len(file.row_groups) == 6
        assert [group.metadata.ordinal for group in file.row_groups] == [0, 1, 2, 3, 4, 5]
        for group, (before, old) in zip(file.row_groups, groups, strict=True):
            for chunk, same in zip(group.chunks(), before.chunks(), strict=True):
                start, length = chunk.byte_range
                at = same.byte_range[0]
                assert data[start : start + length] == old[at : at + length]
                assert chunk.metadata.statistics == same.metadata.statistics
                assert chunk.metadata.size_statistics == same.metadata.size_statistics
                assert chunk.column_index == same.column_index
                assert (chunk.bloom_filter is None) == (same.bloom_filter is None)
                assert chunk.offset_index is not None
                assert same.offset_index is not None
                for mine, theirs in zip(
                    chunk.offset_index.page_locations, same.offset_index.page_locations, strict=True
                ):
                    assert mine.offset - start == theirs.offset - at
                    page = data[mine.offset : mine.offset + mine.compressed_page_size]
                    assert page == old[theirs.offset : theirs.offset + theirs.compressed_page_size]
                span = source.spans([(start, length)])[0]
                pages = [page.offset for page in raw_pages(span, DEFAULT_LIMITS) if page.header.type != 2]
                assert pages == [location.offset for location in chunk.offset_index.page_locations]


@settings(max_examples=share(0.3))
@given(st.lists(tables.tables(), min_size=1, max_size=1), st.integers(1, 4))
def test_arbitrary_table_concatenated_with_itself_is_readable(drawn: list[pa.Table], times: int) -> None:
    (table,) = drawn
    single = by_pqext(table, bloom_filters=True)
    data = joined(*[single] * times)
    assert pq.read_table(io.BytesIO(data)) == pa.concat_tables([pq.read_table(io.BytesIO(single))] * times)
    assert pqext.open(data).read() == pa.concat_tables([pqext.open(single).read()] * times)


def test_concatenation_copies_bytes_once() -> None:
    files = [by_pqext(numbers(100 * i)) for i in range(5)]
    once = joined(*files)
    again = joined(once)
    assert len(again) == len(once)
    assert pq.read_table(io.BytesIO(joined(once, once))) == pa.concat_tables([numbers(0, 500)] * 2)


def _with_first(field: pa.Field) -> pa.Table:
    """Rows of another field in the place of the first."""
    return numbers(0).set_column(0, field, pa.array(range(100), pa.int64()))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"i": [1]}), "columns 's', 'l' are missing"),
        (numbers(0).rename_columns(["i", "t", "l"]), "column 's' is missing; column 't' is not in the first file"),
        (numbers(0).set_column(1, "s", pa.array([0] * 100)), "column 's' has type int64 instead of string$"),
        (numbers(0).set_column(0, "i", pa.array([0.5] * 100)), "column 'i' has type double instead of int64$"),
        (numbers(0).set_column(0, "i", pa.array([b"x"] * 100)), "column 'i' has type binary instead of int64$"),
        (numbers(0).set_column(0, "i", pa.array([True] * 100)), "column 'i' has type bool instead of int64$"),
        (numbers(0).select(["s", "i", "l"]), "the columns are 's', 'i', 'l' instead of 'i', 's', 'l'"),
        (numbers(0).set_column(2, "l", pa.array([["x"]] * 100)), "column 'l.list.element' has type string instead of"),
        (_with_first(pa.field("i", pa.int64(), nullable=False)), "column 'i' is NOT NULL instead of nullable"),
        (_with_first(pa.field("i", pa.int64(), metadata={"PARQUET:field_id": "7"})), "'i' has field id 7 instead"),
    ],
)
def test_schema_mismatch_error_names_the_difference(other: pa.Table, message: str, tmp_path: Path) -> None:
    dest = tmp_path / "joined.parquet"
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    first.write_bytes(by_pqext(numbers(0)))
    second.write_bytes(by_pqext(other, bloom_filters=False))
    with pytest.raises(ValueError, match=f"second.parquet differs from the schema of the first file: .*{message}"):
        pqext.concatenate([first, second], dest)
    assert sorted(tmp_path.iterdir()) == [first, second]


def test_key_value_metadata_is_merged_as_requested() -> None:
    one = by_pqext(numbers(0), key_value_metadata={"a": "1", "b": "2"})
    two = by_pqext(numbers(0), key_value_metadata={"b": "3", "c": "4"})

    def pairs(**options: Any) -> dict[bytes, bytes]:
        kept: dict[bytes, bytes] = pqext.open(joined(one, two, **options)).read().schema.metadata or {}
        return kept

    assert pairs() == {b"a": b"1", b"b": b"2", b"c": b"4"}
    assert pairs(key_value_metadata="first") == {b"a": b"1", b"b": b"2"}
    assert pairs(key_value_metadata={"x": "y"}) == {b"x": b"y"}
    assert pairs(key_value_metadata={}) == {}
    with pytest.raises(ValueError, match="key-value metadata of a file differs"):
        pairs(key_value_metadata="equal")
    assert joined(one, one, key_value_metadata="equal")
    with pytest.raises(ValueError, match="must be a mapping or one of merge, first, equal"):
        pairs(key_value_metadata="all")


def test_common_writer_name_is_preserved() -> None:
    ours, theirs = by_pqext(numbers(0), bloom_filters=False), by_pyarrow(numbers(0), store_schema=False)
    assert pqext.open(joined(theirs, theirs)).metadata.created_by == pqext.open(theirs).metadata.created_by
    created = pqext.open(joined(edited(ours, lambda m: setattr(m, "created_by", "x")), ours)).metadata.created_by
    assert str(created).startswith("pqext")


@pytest.mark.spec("layout.version")
@pytest.mark.parametrize(
    ("writer", "encoding", "is_rejected"),
    [
        ("parquet-mr version 1.7.0", "delta_byte_array", True),
        ("parquet-mr version 1.7.0", "plain", False),
        ("parquet-mr version 1.8.0", "delta_byte_array", False),
        (None, "delta_byte_array", False),
    ],
)
def test_delta_byte_array_of_a_faulty_writer_is_not_merged_with_other_files(
    writer: str | None, encoding: Any, is_rejected: bool
) -> None:
    ours = by_pqext(numbers(0), encodings={"s": encoding}, dictionary=False)
    old = edited(ours, lambda metadata: setattr(metadata, "created_by", writer))
    assert pqext.open(joined(old, old)).metadata.created_by == writer
    for files in ((old, ours), (ours, old)):
        if is_rejected:
            with pytest.raises(pqext.UnsupportedError, match=rf"pages of '{writer}', but .* rewrite these files with"):
                joined(*files)
        else:
            assert pqext.read_table(joined(*files)).equals(pa.concat_tables([numbers(0)] * 2))


def test_bounds_of_another_order_are_dropped() -> None:
    table = pa.table({"f": [1.5, 2.5], "i": [1, 2]})

    def ordered(*orders: ColumnOrder) -> bytes:
        return edited(by_pqext(table, bloom_filters=False), lambda m: setattr(m, "column_orders", list(orders) or None))

    by_type, total = ColumnOrder(TYPE_ORDER=TypeDefinedOrder()), ColumnOrder(IEEE_754_TOTAL_ORDER=IEEE754TotalOrder())
    with pqext.open(joined(ordered(by_type, by_type), ordered(total, by_type), ordered())) as file:
        assert list(file.metadata.column_orders or ()) == [by_type, by_type]
        kept = [[chunk.metadata.statistics for chunk in group.chunks()] for group in file.row_groups]
        assert [[s is not None and s.min_value is not None for s in group] for group in kept] == [
            [True, True], [False, True], [False, False],
        ]
        assert [[chunk.column_index is not None for chunk in group.chunks()] for group in file.row_groups] == [
            [True, True], [False, True], [False, False],
        ]
        assert all(s is not None and s.null_count == 0 for group in kept for s in group)
        assert file.read() == pa.concat_tables([table] * 3)


@pytest.mark.spec("extension.kept")
def test_extensions_and_unknown_fields_are_rejected_dropped_or_preserved() -> None:
    plain = by_pqext(numbers(0))
    extended = by_pqext(numbers(0), extensions={"i": b"mine", "file": b"of the file"})
    later = edited(plain, lambda m: setattr(m.row_groups[0].columns[0], "unknown", ((77, 6, b"\x02"),)))
    for data in (extended, later):
        with pytest.raises(pqext.UnsupportedError, match='extensions="drop"'):
            joined(plain, data)
        assert pqext.open(joined(data, plain, extensions="drop")).extensions == {}
        with pqext.open(joined(data, plain, extensions="keep")) as file, pqext.open(data) as before:
            assert file.extensions == before.extensions
            assert file.row_groups[0].metadata.columns[0].unknown == before.row_groups[0].metadata.columns[0].unknown
            assert file.read() == pa.concat_tables([numbers(0)] * 2)
    with pytest.raises(ValueError, match="extensions must be one of reject, drop, keep"):
        joined(plain, extensions="maybe")


def test_logical_type_of_a_later_version_is_concatenated() -> None:
    def later(metadata: FileMetaData) -> None:
        metadata.schema[2].logicalType = pqext.core.format.metadata.LogicalType(unknown=((99, 12, b"\x00"),))

    data = edited(by_pqext(numbers(0)), later)
    with pqext.open(joined(data, data)) as file:
        assert file.metadata.schema[2].logicalType == pqext.open(data).metadata.schema[2].logicalType


def test_row_groups_with_empty_chunks_are_concatenated() -> None:
    def clear_columns(metadata: FileMetaData) -> None:
        group = metadata.row_groups[0]
        group.num_rows = group.total_byte_size = metadata.num_rows = 0
        for chunk in group.columns:
            assert chunk.meta_data is not None
            about = chunk.meta_data
            about.num_values = about.total_compressed_size = about.total_uncompressed_size = about.data_page_offset = 0
            about.dictionary_page_offset = about.statistics = None

    data = by_pyarrow(pa.table({"a": [1, 2, 3]}))
    empty = edited(data, clear_columns)
    assert pq.read_table(io.BytesIO(empty)).num_rows == 0
    whole = joined(data, empty, data)
    assert pq.ParquetFile(io.BytesIO(whole)).metadata.num_row_groups == 3
    for read in (lambda: pq.read_table(io.BytesIO(whole)), lambda: pqext.read_table(whole)):
        assert read()["a"].to_pylist() == [1, 2, 3] * 2


def test_failed_concatenation_leaves_no_file(tmp_path: Path) -> None:
    dest = tmp_path / "joined.parquet"
    good = by_pqext(numbers(0))

    def move_offset(metadata: FileMetaData) -> None:
        metadata.row_groups[0].columns[0].meta_data.data_page_offset = 1 << 40

    def move_to_other_file(metadata: FileMetaData) -> None:
        metadata.row_groups[0].columns[0].file_path = "other.parquet"

    for bad, message in (
        (b"nothing", "not a Parquet file"),
        (good[:-20], "truncated"),
        (edited(good, move_offset), "outside the data of its file"),
        (edited(good, move_to_other_file), "is in another file"),
    ):
        with pytest.raises(pqext.ParquetError, match=message):
            pqext.concatenate([good, bad], dest)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="no files to concatenate"):
        pqext.concatenate([], dest)
    for one in (good, str(dest)):
        with pytest.raises(TypeError, match="sources must be a list of files"):
            pqext.concatenate(one, dest)


def test_destination_may_be_one_of_the_inputs(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(by_pqext(numbers(0)))
    pqext.concatenate([path, path], path)
    assert pq.read_table(path) == pa.concat_tables([numbers(0)] * 2)


@pytest.mark.spec("layout.footer-after-data", "layout.extensible")
def test_footer_rewrite_changes_only_the_footer(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(by_pqext(numbers(0)))
    os.chmod(path, 0o640)
    os.symlink(path, tmp_path / "link.parquet")
    before = path.read_bytes()
    offset = pqext.open(path).footer.offset

    def change(metadata: FileMetaData) -> None:
        metadata.key_value_metadata = [KeyValue(key="k", value="v")]
        metadata.created_by = "me"
        pqext.extension.set_extension(metadata, b"mine")

    pqext.rewrite_footer(tmp_path / "link.parquet", change)
    assert (tmp_path / "link.parquet").is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes()[:offset] == before[:offset]
    peer = pq.ParquetFile(path)
    assert (peer.metadata.created_by, peer.metadata.metadata) == ("me", {b"k": b"v"})
    assert peer.read() == numbers(0)
    assert pqext.open(path).extensions == {"file": b"mine"}
    assert sorted(tmp_path.iterdir()) == [path, tmp_path / "link.parquet"]
    pqext.rewrite_footer(path, lambda metadata: pqext.extension.set_extension(metadata, None, replace=True))
    assert pqext.open(path).extensions == {}


def test_footer_callback_may_return_new_metadata() -> None:
    data = by_pqext(numbers(0))

    def without_first(metadata: FileMetaData) -> FileMetaData:
        groups = list(metadata.row_groups[1:])
        return FileMetaData(version=1, schema=metadata.schema, num_rows=60, row_groups=groups)

    assert pq.read_table(io.BytesIO(edited(data, without_first))) == numbers(40, 60)
    with pytest.raises(TypeError, match="must return FileMetaData or None"):
        edited(data, lambda metadata: "text")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: setattr(m, "num_rows", 7), "the row groups have 100 rows, but num_rows is 7"),
        (lambda m: setattr(m, "schema", list(m.schema)[:1]), "the schema cannot be read"),
        (lambda m: setattr(m.row_groups[0], "columns", []), "has 0 column chunks, but the schema has 3 columns"),
        (lambda m: setattr(m, "num_rows", 1 << 63), "does not fit into 64 bits"),
        (lambda m: setattr(m, "created_by", "\ud800"), "is not Unicode text"),
        (lambda m: setattr(m, "schema", [StringType()]), "expected SchemaElement"),
    ],
)
def test_unreadable_footer_is_not_written(change: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    data = by_pqext(numbers(0))
    path.write_bytes(data)
    with pytest.raises((ValueError, TypeError), match=message):
        pqext.rewrite_footer(path, change)
    assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("change", [None, lambda metadata: None])
def test_inconsistent_footer_is_reported_as_corruption_of_its_file(change: Any, tmp_path: Path) -> None:
    data = by_pqext(numbers(0))
    with pqext.open(data) as file:
        footer, metadata = file.footer.offset, file.metadata
    metadata.num_rows = 7
    (tmp_path / "file.parquet").write_bytes(data[:footer] + serialise_footer(metadata))
    told = r"contradicts itself: the row groups have 100 rows.*file\.parquet"
    with pytest.raises(pqext.CorruptFileError, match=told):
        pqext.rewrite_footer(tmp_path / "file.parquet", change, footer="thrift+index")


def test_in_memory_source_requires_a_destination() -> None:
    with pytest.raises(TypeError, match="dest is required"):
        pqext.rewrite_footer(by_pqext(numbers(0)), lambda metadata: None)


def test_encrypted_files_are_neither_concatenated_nor_rewritten(parquet_testing: Path) -> None:
    for name in ("encrypt_columns_plaintext_footer", "uniform_encryption"):
        path = parquet_testing / "data" / f"{name}.parquet.encrypted"
        with pytest.raises(pqext.UnsupportedError, match="encrypted files cannot"):
            joined(path)
        with pytest.raises(pqext.UnsupportedError, match="encrypted files cannot"):
            edited(path.read_bytes(), lambda metadata: None)


@pytest.mark.parametrize("name", ["dictionary_page_offset", "index_page_offset", "bloom_filter_offset"])
def test_offset_beyond_its_file_does_not_point_into_another_file(name: str) -> None:
    data = by_pqext(numbers(0))

    def with_offset(offset: int) -> bytes:
        return edited(data, lambda metadata: setattr(metadata.row_groups[0].columns[0].meta_data, name, offset))

    for offset in (len(data), 1 << 40, (1 << 63) - 1):
        with pytest.raises(pqext.CorruptFileError, match=r"outside the data"):
            joined(data, with_offset(offset))
    if name != "dictionary_page_offset":
        groups = len(pqext.open(data).row_groups)
        again = joined(data, with_offset(-1), data)
        assert getattr(pqext.open(again).metadata.row_groups[groups].columns[0].meta_data, name) == -1


def test_public_files_concatenated_with_themselves_return_rows_twice(parquet_testing: Path) -> None:
    tried = 0
    for path in sorted((parquet_testing / "data").glob("*.parquet")):
        try:
            table = pq.read_table(path)
            data = joined(path, path)
        except (pa.ArrowException, OSError, ValueError):
            continue
        again = pq.read_table(io.BytesIO(data))
        assert again.slice(0, len(table)).combine_chunks() == again.slice(len(table)).combine_chunks() or has_nan(table)
        assert len(again) == 2 * len(table)
        assert again.slice(0, len(table)) == table or has_nan(table)
        tried += 1
    assert tried > 40


def test_footer_rewrite_preserves_an_appended_extension() -> None:
    data = by_pqext(numbers(0))
    with pqext.open(data) as file:
        raw = append_extension(bytes(file.footer.raw), b"raw", header="thrift")
        extended = data[: file.footer.offset] + serialise_footer(raw)
    again = edited(extended, lambda metadata: None)
    assert again == extended
    assert encode(pqext.open(again).metadata) == raw


@pytest.mark.parametrize("children", [1, 3])
def test_file_whose_root_counts_other_children_than_its_schema_is_rejected(children: int) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"a": [1], "b": [2]}), out, store_schema=False)

    def change(metadata: FileMetaData) -> None:
        metadata.schema[0].num_children = children

    data = bombs.edited(out.getvalue(), change)
    with pytest.raises(OSError, match="schema"):
        pq.read_schema(io.BytesIO(data))
    for files in ([out.getvalue(), data], [data, out.getvalue()]):
        with pytest.raises(pqext.CorruptFileError, match=r"num_children|outside any group"):
            pqext.concatenate(files, io.BytesIO())


def test_bloom_filters_after_the_page_index_are_copied(tmp_path: Path) -> None:
    # parquet-java writes them there.
    data = by_pqext(numbers(0))
    with pqext.open(data) as file:
        chunks = [group.metadata.columns[0].meta_data for group in file.row_groups]
    filters = b"".join(data[c.bloom_filter_offset : c.bloom_filter_offset + c.bloom_filter_length] for c in chunks)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")

    def move(metadata: FileMetaData) -> None:
        offset = start
        for group in metadata.row_groups:
            about = group.columns[0].meta_data
            about.bloom_filter_offset = offset
            offset += about.bloom_filter_length

    path = tmp_path / "joined.parquet"
    path.write_bytes(joined(edited(data[:start] + filters + data[start:], move), data))
    probe = "select bloom_filter_excludes from parquet_bloom_probe(?, 'i', ?::bigint) order by row_group_id"
    for value in (1, 41, 99, 1000):
        groups = [value // 40 != group for group in range(3)]
        found = duckdb.execute(probe, [str(path), value]).fetchall()
        assert [excluded for excluded, in found] == [*groups, *groups]
