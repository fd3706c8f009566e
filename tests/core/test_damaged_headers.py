"""Page headers with a flipped bit, which no checksum covers: no row is moved, no value is made of levels."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_files import with_header

import pqext
from pqext.core.base.buffers import view
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.metadata import DataPageHeaderV2, KeyValue
from pqext.core.format.thrift import decode
from pqext.core.kernels.decode import hybrid_runs
from pqext.core.read.leaf_runs import span_of
from pqext.core.read.pages.page import check_levels, raw_pages
from reference import hybrid

PAIRS = pa.table({"id": range(100), "v": range(1000, 1100)})
LISTS = pa.array([[1, None], [], None, [2, 3], [4]] * 20, pa.list_(pa.int64()))
PLAIN = {"page_index": False, "statistics": False, "compression": "uncompressed", "dictionary": False, "page_rows": 10}


def written(table: pa.Table, **options: Any) -> bytes:
    made = io.BytesIO()
    pqext.write_table(table, made, **{**PLAIN, **options})
    return made.getvalue()


def remaining_tables(data: bytes) -> list[pa.Table]:
    """What passing over damage, repair and recovery make of a file; those that refuse it make nothing."""
    found = [pqext.read_table(data, on_corrupt="skip")]
    for write in (pqext.repair, pqext.recover):
        made = io.BytesIO()
        try:
            write(data, made)
        except CorruptFileError:
            continue
        if made.getvalue():
            assert pqext.verify(made.getvalue()).ok
            found.append(pq.read_table(io.BytesIO(made.getvalue())))
    return found


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("count", [8, 9, 11, 30])
@pytest.mark.parametrize("page", [0, 1, 4])
@pytest.mark.spec("layout.page-header-lost")
def test_corrupt_value_count_shifts_no_rows(page: int, count: int, version: int) -> None:
    data = bytearray(written(PAIRS, page_version=version, row_group_rows=50))
    about = b"\x15\x14\x15\x00" if version == 1 else b"\x15\x14\x15\x00\x15\x14"  # ten values, rows
    at = [at for at in range(len(data)) if data.startswith(about, at)][page] + 1
    data[at] = 2 * count
    assert not pqext.verify(bytes(data)).ok
    tables = remaining_tables(bytes(data))
    assert len(tables) == 3
    for table in tables:
        assert {row["v"] - row["id"] for row in table.to_pylist()} == {1000}
        assert table["id"].to_pylist()[-50:] == list(range(50, 100))  # a row group that is not damaged


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.parametrize("index", [False, True])
@pytest.mark.spec("layout.page-header-lost")
def test_level_padding_adds_no_rows(index: bool) -> None:
    """Five levels take a group of eight; with two more values in a page, two rows fall off the end unseen."""
    table = pa.table({"id": range(37), "v": range(1000, 1037)})
    data = bytearray(written(table, page_rows=5, page_index=index))
    at = data.index(b"\x15\x0a\x15\x00") + 1
    data[at] = 14
    faults = pqext.verify(bytes(data)).faults
    assert "the pages contain 39 values, the column chunk states 37" in {fault.message for fault in faults}
    for found in remaining_tables(bytes(data)):
        assert all(row["v"] - row["id"] == 1000 for row in found.to_pylist())


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.spec("layout.page-header-lost")
def test_data_page_marked_as_dictionary_shifts_no_rows() -> None:
    data = bytearray(written(PAIRS))
    assert data[4:6] == b"\x15\x00"
    data[5] = 4
    for table in remaining_tables(bytes(data)):
        assert table.num_rows == 0


def longer_repetition(header: DataPageHeaderV2) -> None:
    header.repetition_levels_byte_length += 2


def shorter_definition(header: DataPageHeaderV2) -> None:
    header.definition_levels_byte_length -= 1


def longer_definition(header: DataPageHeaderV2) -> None:
    header.definition_levels_byte_length += 4


def shorten_values(header: DataPageHeaderV2) -> None:
    """Of ten indices, four bits each, the padding is left, which reads as a bit width of 0: all are the first value."""
    header.definition_levels_byte_length += 9


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.parametrize("change", [longer_repetition, shorter_definition, longer_definition, shorten_values])
@pytest.mark.parametrize("checksums", [False, True])
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize(
    "column", [pa.array([*"abcdefghij"] * 10), pa.array([1, None] * 50), LISTS], ids=["text", "numbers", "lists"]
)
@pytest.mark.spec("page.v2.levels")
def test_levels_of_a_wrong_length_return_no_values(
    column: pa.Array, dictionary: bool, checksums: bool, change: Callable[[DataPageHeaderV2], None]
) -> None:
    table = pa.table({"id": range(100), "c": column})
    data = with_header(written(table, page_version=2, checksums=checksums, dictionary=dictionary), change, 1, 3)
    assert "page.v2.levels" in {fault.rule for fault in pqext.verify(data).faults}
    rows = table.to_pylist()
    tables = remaining_tables(data)
    assert [found.num_rows for found in tables] == [90] * 3
    for found in tables:
        assert all(row in rows for row in found.to_pylist())


@pytest.mark.spec("page.v2.levels")
def test_zero_width_runs_are_accepted_in_place_of_levels() -> None:
    """So one of the public files has them: as many as there are entries."""
    data = with_header(written(PAIRS, page_version=2), lambda header: None, 0)
    with pqext.open(data) as file:
        (page, *_) = raw_pages(span_of(file, file.row_groups[0].chunk(0)), file.limits, None, has_dictionary=False)
    header = page.header.data_page_header_v2
    assert header is not None
    header.repetition_levels_byte_length = 1
    for runs, is_sound in ((bytes([10 << 1]), True), (bytes([9 << 1]), False), (bytes([0]), False)):
        odd = replace(page, body=view(runs + bytes(page.body)))
        if is_sound:
            check_levels(odd, 0, 1)
        else:
            with pytest.raises(CorruptFileError, match="the length of the levels does not match"):
                check_levels(odd, 0, 1)


    check_levels(replace(page, num_values=0, body=view(bytes(2))), 0, 1)  # none that could be wrong


@pytest.mark.parametrize("width", [1, 2, 3, 9])
@pytest.mark.spec("page.v2.levels")
def test_exact_length_of_hybrid_runs_is_checked(width: int) -> None:
    values = [0, 1] * 8 + [1] * 20
    packed, runs = hybrid.encode_packed(values[:16], width), hybrid.encode_runs([(1, 20), (0, 3)], width)
    for data, count in ((packed, 16), (packed, 9), (runs, 23), (runs, 22), (packed + runs, 39)):
        assert hybrid_runs.has_exact_length(data, width, count)
        assert not hybrid_runs.has_exact_length(data + b"\0", width, count)
        assert not hybrid_runs.has_exact_length(data[:-1], width, count)
        assert not hybrid_runs.has_exact_length(data, width, count + 8)
    assert hybrid_runs.has_exact_length(b"", width, 0)
    assert not hybrid_runs.has_exact_length(b"\2", width, 0)
    assert not hybrid_runs.has_exact_length(b"\0\0", width, 1)


@pytest.mark.parametrize("rows", [10, 5000])
@pytest.mark.spec("encoding.dictionary.width")
def test_bit_width_of_an_all_null_page_is_checked(rows: int) -> None:
    """Arrow refuses it although there is nothing to read."""
    table = pa.table({"s": pa.array([None] * rows + ["ab", "cd"] * (rows // 2))})
    data = bytearray(written(table, dictionary=True, page_rows=rows, checksums=False))
    with pqext.open(bytes(data)) as file:
        chunk = file.row_groups[0].chunk(0).metadata
    at = data.index(b"\x00\x01", chunk.data_page_offset + 15)  # the last level and the bit width
    data[at + 1] = 0x88
    with pytest.raises(OSError, match="bit_width 136"):
        pq.read_table(io.BytesIO(bytes(data)))
    with pytest.raises(CorruptFileError, match="bit width of run-length data exceeds 32"):
        pqext.read_table(bytes(data))


@pytest.mark.spec("layout.compact-protocol")
def test_skipped_field_ids_are_limited_to_16_bits() -> None:
    for id, is_sound in ((32767, True), (65536 // 2, False)):
        encoded, number = b"", 2 * id
        while number >= 0x80:
            encoded += bytes([number & 0x7F | 0x80])
            number >>= 7
        inner = b"\x05" + encoded + bytes([number]) + b"\x02" + b"\x00"
        data = b"\x18\x01k\x0c" + b"\x64" + inner + b"\x00"
        if is_sound:
            assert decode(KeyValue, data)[0].key == "k"
        else:
            with pytest.raises(CorruptFileError, match="16 bits"):
                decode(KeyValue, data)


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.parametrize("name", ["repetition_levels_byte_length", "definition_levels_byte_length"])
@pytest.mark.spec("page.v2.levels")
def test_index_bit_width_is_not_mistaken_for_levels(name: str) -> None:
    """Two rows a page and indices of four bits: their width reads as a run of two levels of no bits."""
    values = [100 + row % 16 for row in range(64)]
    table = pa.table({"v": pa.array(values, pa.int64())}, schema=pa.schema([pa.field("v", pa.int64(), nullable=False)]))
    data = written(table, page_version=2, dictionary=True, page_rows=2, compression="uncompressed")

    def change(header: DataPageHeaderV2) -> None:
        setattr(header, name, 1)

    flipped = with_header(data, change, 0, 3)
    assert "page.v2.levels" in {fault.rule for fault in pqext.verify(flipped).faults}
    kept = [*values[:6], *values[8:]]
    assert [found["v"].to_pylist() for found in remaining_tables(flipped)] == [kept] * 3


@pytest.mark.filterwarnings("ignore::pqext.CorruptDataWarning")
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.spec("layout.page-lost")
def test_page_with_an_encoding_unlisted_by_its_chunk_is_lost(version: int) -> None:
    """Two indices of six bits and their runs are as long as two numbers."""
    values = [row % 40 * 1000 for row in range(80)]
    table = pa.table({"v": pa.array(values, pa.int32())}, schema=pa.schema([pa.field("v", pa.int32(), nullable=False)]))
    data = written(
        table, page_version=version, dictionary=True, page_rows=2, compression="uncompressed", statistics=False
    )
    about = b"\x15\x04\x15\x10\x15\x06" if version == 1 else b"\x15\x04\x15\x00\x15\x04\x15\x10"
    at = data.index(about, data.index(about) + 1) + about.index(b"\x10")
    flipped = data[:at] + b"\x00" + data[at + 1 :]
    assert "layout.chunk-encoding" in {fault.rule for fault in pqext.verify(flipped).faults}
    with pqext.open(flipped, on_corrupt="skip") as file:
        assert file.read()["v"].to_pylist() == [*values[:2], *values[4:]]
    made = io.BytesIO()
    report = pqext.recover(flipped, made)
    assert not report.is_certified
    assert report.row_groups[0].assigned == "contradicted"
