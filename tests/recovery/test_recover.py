"""``pqext.recover`` rule by rule."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recovery.cut_files import extent, footer_of
from recovery.cut_files import recovered as recover

import pqext
from pqext import variant
from pqext.core.base.buffers import view
from pqext.core.format.metadata import FileMetaData, Type
from pqext.core.format.thrift import decode, encode

ROOT = os.environ.get("PARQUET_TEST_DATA", "")
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])


def rows(count: int, first: int = 0) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"id": numbers, "name": [f"n{i % 9}" for i in numbers], "price": [i / 7 for i in numbers]}, SCHEMA)


def written(table: pa.Table, **options: Any) -> bytes:
    made = io.BytesIO()
    pqext.write_table(table, made, **{"row_group_rows": 100, "compression": "zstd", **options})
    return made.getvalue()


def plain(table: pa.Table, group: int, page: int = 1 << 20) -> bytes:
    """A file without checksums, compression and dictionaries, in which no damage shows but in headers."""
    made = io.BytesIO()
    pq.write_table(
        table,
        made,
        row_group_size=group,
        compression="none",
        use_dictionary=False,
        data_page_size=page * 8,
        write_batch_size=page,
    )
    return made.getvalue()


@pytest.mark.spec("recovery.original")
def test_damaged_file_is_unchanged_and_not_a_valid_destination(tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(written(rows(300))[:-30])
    before = hashlib.sha256(path.read_bytes()).digest()
    with pytest.raises(ValueError, match="must differ from the damaged source"):
        pqext.recover(path, path, schema=SCHEMA)
    with pytest.raises(ValueError, match="must differ from the damaged source"):
        pqext.recover(path, tmp_path / "." / "cut.parquet", schema=SCHEMA)
    assert pqext.recover(path, tmp_path / "new.parquet", schema=SCHEMA).rows == 300
    assert hashlib.sha256(path.read_bytes()).digest() == before


@pytest.mark.spec("recovery.original")
def test_alias_of_the_damaged_file_is_not_a_valid_destination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path, link, twin = (tmp_path / name for name in ("cut.parquet", "link.parquet", "twin.parquet"))
    before = written(rows(300))[:-30]
    path.write_bytes(before)
    link.symlink_to(path.name)
    twin.hardlink_to(path)
    with path.open("r+b") as opened, path.open("rb") as read:
        for source, dest in [
            (path, path.as_uri()),
            (path.as_uri(), path.as_uri()),
            (path, "~/cut.parquet"),
            ("~/cut.parquet", "~/cut.parquet"),
            (path, link),
            (link, path),
            (path, twin),
            (read, path),
            (path, opened),
            (read, opened),
        ]:
            with pytest.raises(ValueError, match="must differ from the damaged source"):
                pqext.recover(source, dest, schema=SCHEMA)
    assert path.read_bytes() == before
    held = io.BytesIO(before)
    with pytest.raises(ValueError, match="must differ from the damaged source"):
        pqext.recover(held, held, schema=SCHEMA)


def test_schema_with_fewer_columns_than_a_remaining_footer_is_harmless() -> None:
    whole = written(rows(300))
    behind = whole[extent(whole, 1, 0)[0] : extent(whole, 1, 2)[1]]
    report, found = recover(written(rows(200)) + behind, schema="id BIGINT")
    assert found is not None
    assert found.num_rows == report.rows == 300


@pytest.mark.parametrize("cut", [1, 4, 5, 8])
@pytest.mark.spec("recovery.footer-unframed")
def test_footer_without_length_or_magic_is_found(cut: int) -> None:
    report, found = recover(written(rows(300))[:-cut])
    assert report.evidence == "footer without its frame"
    assert found == rows(300)


@pytest.mark.spec("recovery.footer-inside")
def test_older_footer_within_a_file_is_found_with_the_rows_after_it() -> None:
    first = written(rows(200))
    longer = written(rows(300))
    behind = longer[extent(longer, 2, 0)[0] : extent(longer, 2, 2)[1]]
    report, found = recover(first + b"torn")
    assert (report.evidence, found) == ("footer inside the file", rows(200))
    report, found = recover(first + behind)
    assert (report.evidence, found) == ("footer inside the file, pages after it", rows(300))
    assert [group.evidence for group in report.row_groups] == ["footer", "footer", "pages"]


@pytest.mark.spec("recovery.footer-torn")
def test_truncated_footer_provides_schema_and_row_groups() -> None:
    data = written(rows(300))
    footer = footer_of(data)
    told = set()
    for cut in range(footer + 200, len(data), 40):
        report, found = recover(data[:cut])
        assert found == rows(300), cut
        told.add(report.evidence)
    assert "torn footer, pages beyond it" in told or "pages" in told
    assert "torn footer" in told


@pytest.mark.spec("recovery.moved")
def test_offsets_are_adjusted_for_bytes_missing_before_the_footer() -> None:
    data = written(rows(300))
    start, _ = extent(data, 0, 1)
    report, found = recover(data[: start + 5] + data[start + 25 :])
    assert [group.source_row_group for group in report.row_groups] == [1, 2]
    assert found == rows(200, 100)


def similar_chunks(statistics: bool) -> tuple[bytes, pa.Table]:
    """A file whose chunks all have one size and type, one of them below structs, and its table."""
    count = 400
    deep = pa.StructArray.from_arrays([pa.StructArray.from_arrays([pa.array(range(9000, 9000 + count))], ["d"])], ["s"])
    table = pa.table({"a": range(count), "b": range(5000, 5000 + count), "c": deep})
    made = io.BytesIO()
    pq.write_table(
        table, made, row_group_size=100, compression="none", use_dictionary=False, write_page_checksum=True,
        write_statistics=statistics,
    )  # fmt: skip
    return made.getvalue(), table


@pytest.mark.parametrize("lost", [(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)], ids=str)
@pytest.mark.spec("recovery.moved.apart")
def test_similar_chunks_are_distinguished_by_their_statistics(lost: tuple[int, int]) -> None:
    data, table = similar_chunks(statistics=True)
    start, stop = extent(data, *lost)
    report, found = recover(data[:start] + data[stop:])
    left = [group for group in range(4) if group != lost[0]]
    assert [group.source_row_group for group in report.row_groups] == left
    assert found == pa.concat_tables([table.slice(100 * group, 100) for group in left])
    assert [(loss.source_row_group, loss.column) for loss in report.losses] == [(lost[0], "abc"[lost[1]])]


@pytest.mark.parametrize("lost", [(0, 0), (1, 0), (2, 1), (3, 1)], ids=str)
@pytest.mark.spec("recovery.moved.apart")
def test_indistinguishable_chunks_are_lost(lost: tuple[int, int]) -> None:
    data, table = similar_chunks(statistics=False)
    start, stop = extent(data, *lost)
    _, found = recover(data[:start] + data[stop:])
    rows = set() if found is None else set(map(str, found.to_pylist()))
    assert rows <= set(map(str, table.to_pylist()))


@pytest.mark.spec("recovery.overlap")
def test_chunk_overlapped_by_the_next_one_has_lost_bytes() -> None:
    # Without checksums, compression and statistics, the last page would end with the first bytes of the next chunk.
    made = io.BytesIO()
    pq.write_table(
        rows(300), made, row_group_size=100, compression="none", use_dictionary=False, write_statistics=False
    )
    data = made.getvalue()
    _, stop = extent(data, 1, 0)
    report, found = recover(data[: stop - 200] + data[stop - 180 :])
    assert [group.source_row_group for group in report.row_groups] == [0, 2]
    assert found == pa.concat_tables([rows(100), rows(100, 200)])


@pytest.mark.parametrize("writer", ["pqext", "pyarrow"])
@pytest.mark.spec("recovery.pages", "recovery.groups")
def test_row_groups_are_rebuilt_from_pages_and_a_schema(writer: str, tmp_path: Path) -> None:
    if writer == "pqext":
        data = written(rows(300))
    else:
        made = io.BytesIO()
        pq.write_table(rows(300), made, row_group_size=100)
        data = made.getvalue()
    sibling = tmp_path / "sibling.parquet"
    sibling.write_bytes(written(rows(3)))
    cut = data[: footer_of(data)]
    for schema in (SCHEMA, "id BIGINT, name STRING, price DOUBLE", sibling, str(sibling)):
        report, found = recover(cut, schema=schema)
        assert report.evidence == "pages"
        assert found == rows(300)
    report, found = recover(cut)
    assert found is None
    assert "pass schema=" in report.losses[0].reason
    start, _ = extent(data, 2, 1)
    assert recover(data[: start + 9], schema=SCHEMA)[1] == rows(200)


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.spec("recovery.groups")
def test_multi_page_chunks_form_row_groups_of_equal_rows(nullable: bool) -> None:
    table = rows(250)
    if nullable:
        table = table.append_column("list", pa.array([list(range(i % 4)) or None for i in range(250)]))
    data = written(table, page_rows=30)
    report, found = recover(data[: footer_of(data)], schema=table.schema)
    assert [group.rows for group in report.row_groups] == [100, 100, 50]
    assert found == table


@pytest.mark.spec("recovery.resync")
def test_pages_after_damage_are_located_by_their_successors() -> None:
    data = written(rows(300), checksums=False)
    start, stop = extent(data, 0, 1)
    end = footer_of(data)
    report, found = recover(data[:start] + data[start + 11 : end], schema=SCHEMA)
    assert found == rows(200, 100)
    assert any(loss.start is not None and loss.start < stop for loss in report.losses)
    # A header that nothing follows is no page.
    fake = bytes.fromhex("1500150415042c1502150015061506 1c0000".replace(" ", ""))
    report, found = recover(data[:start] + fake * 3 + data[start + 11 : end], schema=SCHEMA)
    assert found == rows(200, 100)


@pytest.mark.spec("recovery.unconfirmed")
def test_page_overlapped_by_the_next_one_is_dropped() -> None:
    data = plain(rows(300), 100)
    start, stop = extent(data, 0, 0)
    cut = data[: stop - 100] + data[stop - 60 : footer_of(data)]
    report, found = recover(cut, schema=SCHEMA, row_group_rows=100)
    assert found == rows(200, 100)
    assert report.losses[0].start == start
    numbers = pa.table({"id": range(300)})
    data = plain(numbers, 100)
    _, stop = extent(data, 1, 0)
    report, found = recover(data[: stop - 100] + data[stop - 60 : footer_of(data)], schema="id BIGINT")
    assert found == pa.concat_tables([numbers.slice(0, 100), numbers.slice(200)])


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"])
@pytest.mark.spec("recovery.codec")
def test_codec_is_detected_by_trial(codec: str) -> None:
    data = written(rows(300), compression=codec)
    cut = data[: footer_of(data)]
    assert recover(cut, schema=SCHEMA)[1] == rows(300)
    assert recover(cut, schema=SCHEMA, codec=codec)[1] == rows(300)
    with pytest.raises(ValueError, match="codec must be one of"):
        pqext.recover(cut, io.BytesIO(), schema=SCHEMA, codec="rar")


@pytest.mark.spec("recovery.strict")
def test_recovered_pages_were_read_and_their_checksums_compared() -> None:
    data = bytearray(written(rows(300)))
    _, stop = extent(bytes(data), 1, 2)
    data[stop - 3] ^= 1
    report, found = recover(bytes(data))
    assert [group.source_row_group for group in report.row_groups] == [0, 2]
    assert "checksum" in report.losses[0].reason
    assert found == pa.concat_tables([rows(100), rows(100, 200)])


@pytest.mark.spec("recovery.page-rows", "recovery.drop-columns")
def test_corrupt_page_loses_only_its_rows() -> None:
    data = bytearray(written(rows(300), page_rows=20, dictionary=False, page_bytes=1 << 20))
    _, stop = extent(bytes(data), 1, 2)
    data[stop - 3] ^= 1  # in the last page, of rows 180 to 200
    for options in ({}, {"drop_columns": True}):
        report, found = recover(bytes(data), **options)
        assert found == pa.concat_tables([rows(180), rows(100, 200)])
        assert [(loss.source_row_group, loss.column, loss.rows) for loss in report.losses] == [(1, "price", 20)]


@pytest.mark.spec("recovery.groups")
def test_row_group_truncated_after_its_first_column_affects_no_earlier_one() -> None:
    data = plain(rows(40), 20)
    start, stop = extent(data, 1, 1)
    for told in (20, None):
        for end in (start, start + 19, stop - 1):
            report, found = recover(data[:end], schema=SCHEMA, row_group_rows=told)
            assert found == rows(20), (told, end, report)


@pytest.mark.spec("recovery.groups")
def test_unreadable_levels_lose_their_row_group_only() -> None:
    table = pa.table({"l": [[i, i + 1] for i in range(60)], "i": pa.array(range(60), pa.int32())})
    data = bytearray(plain(table, 20))
    start, _ = extent(bytes(data), 0, 0)
    body = bytes(data).index((6).to_bytes(4, "little"), start)  # how long the repetition levels are
    data[body] = 0
    report, found = recover(bytes(data[: footer_of(bytes(data))]), schema=table.schema)
    assert found == table.slice(20), report


@pytest.mark.spec("recovery.doubted")
def test_swapped_chunks_are_detected_by_their_statistics() -> None:
    table = pa.table({"low": pa.array(range(300), pa.int64()), "high": pa.array(range(1000, 1300), pa.int64())})
    data = bytearray(written(table, dictionary=False, compression="uncompressed"))
    (start, middle), (_, stop) = extent(bytes(data), 1, 0), extent(bytes(data), 1, 1)
    data[start:stop] = data[middle:stop] + data[start:middle]
    report, _ = recover(bytes(data))
    told = [one.evidence for one in report.row_groups]
    assert told == ["footer", "footer, but values of low, high contradict it", "footer"]
    assert not report.row_groups[1].certified


def test_row_groups_next_to_a_damaged_one_are_copied_byte_for_byte() -> None:
    data = bytearray(written(rows(1000), page_rows=20, compression="gzip", page_bytes=1 << 20))
    _, stop = extent(bytes(data), 4, 2)
    data[stop - 3] ^= 1
    out = io.BytesIO()
    report = pqext.recover(bytes(data), out)
    made = out.getvalue()
    assert report.rows < 1000
    for group in range(10):
        for column in range(3):
            start, stop = extent(bytes(data), group, column)
            assert (data[start:stop] in made) == (group != 4)
    assert pq.ParquetFile(io.BytesIO(made)).metadata.num_row_groups == 10


@pytest.mark.spec("recovery.drop-columns")
def test_columns_with_a_lost_chunk_are_dropped_on_request() -> None:
    data = bytearray(written(rows(300)))
    start, stop = extent(bytes(data), 1, 1)
    data[start:stop] = bytes(stop - start)
    report, found = recover(bytes(data))
    assert found == pa.concat_tables([rows(100), rows(100, 200)])
    assert report.dropped_columns == ()
    report, found = recover(bytes(data), drop_columns=True)
    assert report.dropped_columns == ("name",)
    assert found == rows(300).drop_columns(["name"])
    assert [(loss.source_row_group, loss.column) for loss in report.losses] == [(1, "name")]


@pytest.mark.spec("recovery.no-claims")
def test_new_footer_omits_facts_about_values() -> None:
    made = io.BytesIO()
    geo = json.dumps({"version": "1.1.0", "columns": {"g": {"bbox": [9, 9, 9, 9], "geometry_types": ["Point"]}}})
    table = rows(300).replace_schema_metadata({"geo": geo, "kept": "yes"})
    pq.write_table(table, made, row_group_size=100, write_page_index=True)
    out = io.BytesIO()
    assert pqext.recover(made.getvalue(), out).rows == 300
    before, after = pq.ParquetFile(made), pq.ParquetFile(io.BytesIO(out.getvalue()))
    for file, expected in ((before, True), (after, False)):
        chunk = file.metadata.row_group(0).column(0)
        assert [chunk.is_stats_set, chunk.has_column_index, chunk.has_offset_index] == [expected] * 3
    told = after.metadata.metadata
    assert told[b"kept"] == b"yes"
    assert json.loads(told[b"geo"])["columns"] == {"g": {"geometry_types": []}}


@pytest.mark.spec("recovery.certified")
def test_report_states_that_values_without_checksums_are_uncertain() -> None:
    report, _ = recover(written(rows(300))[:-30], schema=SCHEMA)
    assert report.is_certified
    assert "bytes      certain: every recovered page has a matching checksum" in str(report)
    data = bytearray(written(rows(300), checksums=False, compression="uncompressed", dictionary=False))
    start, _ = extent(bytes(data), 0, 2)
    data[start + 60] ^= 1
    report, found = recover(bytes(data))
    assert found != rows(300)
    assert not report.is_certified
    assert "not certain in 3 row groups" in str(report)
    assert json.loads(json.dumps(report.to_dict()))["certified"] is False


@pytest.mark.spec("recovery.verified")
def test_variant_values_are_checked_like_in_verify() -> None:
    events = variant.parse_json([json.dumps({"id": i, "text": f"a longer text {i}"}) for i in range(300)])
    data = bytearray(written(pa.table({"event": events}), checksums=False, compression="uncompressed"))
    place = bytes(data).index(b"a longer text 150")
    data[place - 1] = 0xFF  # a length
    assert not pqext.verify(bytes(data)).ok
    report, _ = recover(bytes(data))
    assert report.rows == 200
    assert report.losses[0].column == "event"


def test_encrypted_footers_are_rejected() -> None:
    with pytest.raises(pqext.UnsupportedError, match="encrypted footer"):
        pqext.recover(b"PARE" + bytes(100), io.BytesIO())


@pytest.mark.spec("recovery.certified")
def test_rows_next_to_a_page_with_a_checksum_mismatch_are_certain() -> None:
    data = bytearray(written(rows(300), page_rows=20, row_group_rows=100))
    start, stop = extent(bytes(data), 1, 0)
    data[(start + stop) // 2] ^= 0xFF
    report, _ = recover(bytes(data))
    assert report.rows == 280
    assert [group.checksums for group in report.row_groups] == [True] * 3
    assert report.is_certified
    assert "bytes      certain" in str(report)


def test_unnecessary_schema_is_reported() -> None:
    report, _ = recover(written(rows(300))[:-1], schema="x BIGINT")
    assert report.rows == 300
    assert "the provided DDL was not needed: the footer without its frame states the columns" in report.notes


def test_explicit_codec_overrides_that_of_a_sibling() -> None:
    whole = written(rows(300), compression="zstd")
    cut = whole[: footer_of(whole)]
    assert recover(cut, schema=whole)[0].rows == 300
    assert recover(cut, schema=whole, codec="zstd")[0].rows == 300
    assert recover(cut, schema=whole, codec="gzip")[0].rows == 0


def test_unnecessary_codec_is_reported() -> None:
    data = written(rows(300))
    report, _ = recover(data[:-1], codec="gzip")
    assert report.rows == 300
    assert "codec gzip was not needed: the footer without its frame states the codecs" in report.notes
    assert "codec gzip" not in str(recover(data[: extent(data, 0, 0)[0]], codec="gzip", schema="id BIGINT")[0])


def test_losses_are_reported_by_row_group() -> None:
    data = written(rows(300), row_group_rows=100)
    report, _ = recover(data[extent(data, 2, 0)[0] :])
    told = [(loss.source_row_group, loss.column) for loss in report.losses if loss.source_row_group is not None]
    assert len({group for group, _ in told}) > 1
    assert [group for group, _ in told] == sorted(group for group, _ in told)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="neither an existing file nor valid DDL"):
        pqext.recover(b"PAR1", io.BytesIO(), schema="no such thing <")
    with pytest.raises(ValueError, match="schema has no columns"):
        pqext.recover(b"PAR1", io.BytesIO(), schema=pa.schema([]))
    union = pa.dense_union([pa.field("a", pa.int8()), pa.field("b", pa.string())])
    with pytest.raises(ValueError, match="union"):
        pqext.recover(b"PAR1", io.BytesIO(), schema=pa.schema([("u", union)]))
    with pytest.raises(ValueError, match="must list the columns"):
        pqext.recover(b"PAR1", io.BytesIO(), schema="BIGINT")
    with pytest.raises(ValueError, match="row_group_rows"):
        pqext.recover(b"PAR1", io.BytesIO(), row_group_rows=0)


@pytest.mark.spec("recovery.pages")
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_pages_are_found_from_the_first_byte_if_the_magic_is_missing(cut: int) -> None:
    table = rows(300)
    data = written(table)
    report, found = recover(data[cut : footer_of(data)], schema=SCHEMA)
    assert report.rows == 300
    assert found == table


@pytest.mark.spec("recovery.footer-inside")
def test_footer_of_an_embedded_file_is_not_used() -> None:
    inner = plain(pa.table({"secret": range(1000, 1100)}), 100)
    table = pa.table({"id": range(100), "blob": pa.array([inner] + [b"z"] * 99, pa.binary())})
    data = plain(table, 100)
    torn = data[: footer_of(data)]
    report, found = recover(torn)
    assert found is None
    assert "no footer was found except footers of files embedded in this one" in str(report)
    report, found = recover(torn, schema="id BIGINT, blob BINARY")
    assert found == table
    checkpointed = written(pa.concat_tables([table, table]), checkpoint=1, compression="uncompressed")
    report, found = recover(checkpointed[: footer_of(checkpointed)], schema="id BIGINT, blob BINARY")
    assert found == pa.concat_tables([table, table])


@pytest.mark.spec("recovery.footer-inside")
@pytest.mark.skipif(not ROOT, reason="PARQUET_TEST_DATA does not name a copy of parquet-testing")
@pytest.mark.parametrize("name", ["alltypes_plain", "byte_array_decimal", "sort_columns", "lz4_raw_compressed"])
def test_footers_with_leading_bytes_are_not_mistaken_for_embedded_ones(name: str) -> None:
    data = Path(ROOT, "data", f"{name}.parquet").read_bytes()
    _, found = recover(data + bytes(100))
    assert found is not None
    assert found.num_rows == pq.ParquetFile(io.BytesIO(data)).metadata.num_rows


@pytest.mark.spec("recovery.strict")
def test_bytes_after_the_last_page_of_a_chunk_are_dropped() -> None:
    table = rows(200)
    data = bytearray(written(table, page_index=False))
    stop = extent(bytes(data), 0, 0)[1]
    metadata, _ = decode(FileMetaData, view(bytes(data))[footer_of(bytes(data)) : -8])
    for group in metadata.row_groups:
        for chunk in group.columns:
            about = chunk.meta_data
            assert about is not None
            if about.data_page_offset >= stop:
                about.data_page_offset += 40
                if about.dictionary_page_offset:
                    about.dictionary_page_offset += 40
    first = metadata.row_groups[0].columns[0].meta_data
    assert first is not None
    first.total_compressed_size += 40
    footer = encode(metadata)
    body = bytes(data[:stop]) + b"\x77" * 40 + bytes(data[stop : footer_of(bytes(data))])
    _, found = recover(body + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert found == table


@pytest.mark.spec("recovery.footer-inside")
def test_corrupt_name_or_type_in_the_footer_is_corrected_by_the_schema() -> None:
    table = rows(200)
    for at, byte in ((0, b"X"), (-5, b"\x7e")):  # another name in the schema than in the chunks; a type there is not
        data = bytearray(written(table))
        name = data.index(b"\x18\x02id", footer_of(bytes(data))) + 2
        data[name + at : name + at + 1] = byte
        _, found = recover(bytes(data), schema=table.schema)
        assert found is not None
        assert found.to_pylist() == table.to_pylist()


def test_unreadable_column_orders_are_ignored() -> None:
    table = rows(200)
    data = written(table)
    orders = data.rindex(b"\x1c\x00\x00\x1c\x00\x00")
    assert recover(data[:orders] + b"\x5c\x00\x00" + data[orders + 3 :])[1] == table


@pytest.mark.parametrize(("data", "told"), [(b"", "the file is empty"), (b'{"a": 1}\n' * 9, "it looks like JSON")])
def test_file_that_is_not_parquet_is_reported_as_such(data: bytes, told: str) -> None:
    assert told in str(recover(data)[0])


def under_footer(data: bytes, change: Callable[[FileMetaData], object]) -> bytes:
    """The file with a changed footer, however little sense it makes."""
    metadata, _ = decode(FileMetaData, view(data)[footer_of(data) : -8])
    change(metadata)
    footer = encode(metadata)
    return data[: footer_of(data)] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.spec("recovery.strict")
def test_row_group_with_missing_columns_is_lost() -> None:
    table = rows(300)

    def change(metadata: FileMetaData) -> None:
        metadata.row_groups[1].columns = list(metadata.row_groups[1].columns)[:2]

    report, found = recover(under_footer(written(table), change))
    assert found == pa.concat_tables([table[:100], table[200:]])
    assert [lost.source_row_group for lost in report.losses] == [1]


@pytest.mark.parametrize("wrong", [-100, 0, 99, 101, 612])
@pytest.mark.spec("recovery.footer-counts")
def test_row_count_contradicted_by_all_columns_is_corrected(wrong: int) -> None:
    table = rows(300)
    damaged = under_footer(written(table), lambda footer: setattr(footer.row_groups[1], "num_rows", wrong))
    report, found = recover(damaged)
    assert found == table
    assert report.is_certified
    assert not report.losses
    assert report.notes == (f"row group 1: the footer states {wrong} rows, its columns 100",)


@pytest.mark.parametrize("wrong", [0, 99, 101, 1 << 40])
@pytest.mark.spec("recovery.footer-counts")
def test_value_counts_contradicted_by_pages_are_corrected(wrong: int) -> None:
    table = rows(300)

    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[1].columns[0].meta_data
        assert about is not None
        about.num_values = wrong

    report, found = recover(under_footer(written(table), change))
    assert found == table
    assert not report.losses
    assert [note.partition(":")[0] for note in report.notes] == ["column id in row group 1"]


@pytest.mark.spec("recovery.footer-counts")
def test_type_contradicted_by_all_chunks_is_corrected() -> None:
    table = rows(300)

    def change(metadata: FileMetaData) -> None:
        metadata.schema[3].type = Type.INT64

    report, found = recover(under_footer(written(table, arrow_schema=False), change))
    assert found is not None
    assert found.to_pydict() == table.to_pydict()
    assert report.notes == ("column price: the schema states INT64, all its chunks DOUBLE",)


@pytest.mark.spec("recovery.footer-counts")
def test_type_that_makes_the_schema_invalid_is_not_taken_from_chunks() -> None:
    def change(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            about = group.columns[1].meta_data
            assert about is not None
            about.type = Type.FIXED_LEN_BYTE_ARRAY  # of a length that nothing tells

    report, found = recover(under_footer(written(rows(300)), change), drop_columns=True)
    assert found == rows(300).drop_columns("name")
    assert report.notes == ()


@pytest.mark.spec("recovery.footer-counts")
def test_name_contradicted_by_all_chunks_is_corrected() -> None:
    table = pa.table({"id": range(300), "place": [{"x": row, "y": None} for row in range(300)]})

    def change(metadata: FileMetaData) -> None:
        metadata.schema[2].name, metadata.schema[4].name = "plac", "z"

    report, found = recover(under_footer(written(table, arrow_schema=False), change))
    assert found is not None
    assert found.to_pylist() == table.to_pylist()
    assert report.notes == ("column plac: all its chunks name it place", "column z: all its chunks name it y")


@pytest.mark.spec("recovery.footer-counts")
def test_misnamed_chunk_is_assigned_to_its_column() -> None:
    table = rows(300)

    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[1].columns[1].meta_data
        assert about is not None
        about.path_in_schema = ["namd"]

    report, found = recover(under_footer(written(table), change))
    assert found == table
    assert report.notes == ("column name in row group 1: the footer has another path for its chunk",)


@pytest.mark.spec("recovery.footer-counts")
def test_footer_without_chunk_paths_requires_a_schema() -> None:
    table = pa.table({"a": range(30), "b": [{"x": 1}] * 30})

    def change(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[1].meta_data
        assert about is not None
        about.path_in_schema = []

    report, found = recover(under_footer(written(table), change))
    assert found is None
    assert report.notes == ("pass schema= to read the pages without this footer, which may be corrupt",)


@pytest.mark.spec("recovery.footer-counts")
def test_single_column_row_count_is_used_if_the_file_total_agrees() -> None:
    table = pa.table({"n": range(300)})
    damaged = under_footer(written(table), lambda footer: setattr(footer.row_groups[1], "num_rows", 101))
    report, found = recover(damaged)
    assert found == table
    assert not report.losses


@pytest.mark.spec("recovery.null-columns")
def test_corrupt_first_page_loses_no_more_than_another() -> None:
    table = rows(100)
    data = bytearray(written(table))
    data[4:8] = b"\xff" * 4
    report, found = recover(bytes(data), null_columns=True)
    assert found is not None
    assert found.drop_columns("id") == table.drop_columns("id")
    assert found["id"].null_count == 100
    assert report.row_groups[0].null_columns == ("id",)


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.spec("recovery.footer-torn")
def test_pages_beyond_a_torn_footer_are_reported_lost_if_ambiguous(checksums: bool) -> None:
    table = pa.table({"x": range(40), "y": range(100, 140)})
    data = written(table, row_group_rows=10, page_version=2, checksums=checksums, compression="uncompressed")
    lost = 0
    for stop in range(footer_of(data) + 40, len(data) - 8, 11):
        report, found = recover(data[:stop])
        if found is not None and len(found) < 40:
            assert report.losses, stop
            lost += 1
    assert lost > 10


@pytest.mark.spec("recovery.footer-counts")
def test_name_is_not_corrected_from_a_single_row_group() -> None:
    def change(metadata: FileMetaData) -> None:
        metadata.schema[1].name = "name"

    damaged = under_footer(written(rows(100)), change)
    report, found = recover(damaged)
    assert found is None
    assert report.losses
    assert report.notes[-1] == "pass schema= to read the pages without this footer, which may be corrupt"
    assert recover(damaged, schema=SCHEMA)[1] == rows(100)
