"""What stands in the pages that pqext writes, taken apart by hand, and pages made by hand that it reads."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import ColumnMetaData, CompressionCodec, DataPageHeaderV2, Type
from pqext.core.write import chunk_writer
from pqext.core.write.chunk_writer import PageWriter
from reference import hybrid, page_headers
from reference.compact import Reader

LISTS = [[1, 2, None], None, [], [3], [4, 5, 6, 7]]
REPETITION = [0, 1, 1, 0, 0, 0, 0, 1, 1, 1]
DEFINITION = [3, 3, 2, 0, 1, 3, 3, 3, 3, 3]
VALUES = [1, 2, 3, 4, 5, 6, 7]


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(table, out, **{"compression": "uncompressed", "dictionary": False, **options})
    return out.getvalue()


def header_of(data: bytes, column: int = 0) -> tuple[dict[int, Any], bytes]:
    """The first page header of a chunk as fields by id, and the page's stored bytes."""
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(column)
    reader = Reader(data, chunk.data_page_offset)
    header: dict[int, Any] = {id: value for id, _, value in reader.struct()}
    return header, data[reader.at : reader.at + header[3]]


def detail(header: dict[int, Any]) -> dict[int, Any]:
    return {id: value for id, _, value in header.get(5) or header[8]}


@pytest.mark.spec("page.order", "page.uncompressed-size", "page.v1.compressed-whole", "levels.definition")
@pytest.mark.spec("levels.repetition", "levels.every-entry", "levels.width", "levels.encodings", "nulls.not-stored")
def test_version_1_page_consists_of_levels_and_values() -> None:
    data = written(pa.table({"a": pa.array(LISTS, pa.list_(pa.int64()))}), page_version=1)
    header, body = header_of(data)
    assert header[2] == header[3] == len(body)
    assert detail(header)[1] == len(REPETITION)
    (first,) = struct.unpack_from("<I", body)
    assert hybrid.decode(body[4 : 4 + first], 1, len(REPETITION)) == REPETITION
    (second,) = struct.unpack_from("<I", body, 4 + first)
    values = 8 + first + second
    assert hybrid.decode(body[8 + first : values], 2, len(DEFINITION)) == DEFINITION
    assert struct.unpack("<7q", body[values:]) == tuple(VALUES)
    assert page_headers.of_column(data, 0)[0].levels == ("RLE", "RLE")


@pytest.mark.spec("page.order", "page.uncompressed-size", "page.v2.levels", "page.v2.counts", "page.v2.is-compressed")
@pytest.mark.parametrize("codec", ["uncompressed", "zstd"])
def test_version_2_page_begins_with_uncompressed_levels(codec: str) -> None:
    lists = LISTS * 50
    data = written(pa.table({"a": pa.array(lists, pa.list_(pa.int64()))}), page_version=2, compression=codec)
    header, body = header_of(data)
    fields = detail(header)
    second, first = fields[5], fields[6]
    assert (fields[1], fields[2]) == (500, 150)
    assert fields[3] == len(lists)
    assert hybrid.decode(body[:first], 1, 500) == REPETITION * 50
    assert hybrid.decode(body[first : first + second], 2, 500) == DEFINITION * 50
    values = body[first + second :]
    assert header[2] == first + second + 350 * 8
    if codec == "zstd":
        assert fields.get(7, True) is True
        values = pa.Codec("zstd").decompress(values, header[2] - first - second, asbytes=True)
    assert struct.unpack("<350q", values) == tuple(VALUES * 50)


@pytest.mark.spec("page.order", "page.v2.levels", "page.v2.is-compressed")
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_version_2_pages_from_pyarrow_are_read(codec: str) -> None:
    table = pa.table({"a": pa.array(LISTS * 50, pa.list_(pa.int64()))})
    out = io.BytesIO()
    pq.write_table(table, out, data_page_version="2.0", compression=codec, use_dictionary=False, store_schema=False)
    assert detail(header_of(out.getvalue())[0])[7] is (codec != "none")
    for by_page in ("raise", "skip"):
        assert pqext.read_table(out.getvalue(), on_corrupt=by_page)["a"].to_pylist() == LISTS * 50


@pytest.mark.spec("page.v2.is-compressed")
def test_values_are_compressed_if_the_header_has_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(**fields: Any) -> DataPageHeaderV2:
        return DataPageHeaderV2(**(fields | {"is_compressed": None}))

    def write_singly(cuts: Any, levels: Any, values: Any, dictionary: Any, version: int, *_: Any) -> Any:
        return PageWriter(CompressionCodec.ZSTD, True, version).write_pages(cuts, levels, values, dictionary)

    monkeypatch.setattr(chunk_writer, "encode_pages", write_singly)
    monkeypatch.setattr(chunk_writer, "DataPageHeaderV2", silent)
    data = written(pa.table({"a": [7] * 10_000}), page_version=2, compression="zstd")
    assert 7 not in detail(header_of(data)[0])
    for by_page in ("raise", "skip"):  # the latter opens each page by itself
        assert pqext.read_table(data, on_corrupt=by_page)["a"].to_pylist() == [7] * 10_000
    assert pq.read_table(pa.BufferReader(data))["a"].to_pylist() == [7] * 10_000


@pytest.mark.spec("page.v2.is-compressed")
def test_incompressible_values_are_stored_uncompressed() -> None:
    data = written(pa.table({"a": [7]}), page_version=2, compression="zstd")
    header, body = header_of(data)
    assert detail(header)[7] is False
    assert body.endswith(struct.pack("<q", 7))
    assert pq.read_table(pa.BufferReader(data)).to_pydict() == pqext.read_table(data).to_pydict() == {"a": [7]}
    assert pqext.read_table(data, on_corrupt="skip").to_pydict() == {"a": [7]}


@pytest.mark.spec("levels.width")
@pytest.mark.parametrize("depth", range(1, 9))
def test_levels_use_the_bit_width_of_the_maximum_level(depth: int) -> None:
    kind: pa.DataType = pa.int64()
    value: Any = 7
    hollow: Any = None
    for _ in range(depth):
        kind, value, hollow = pa.list_(kind), [value, None], [hollow]
    table = pa.table({"a": pa.array([value, hollow, [], None], kind)})
    data = written(table)
    assert pq.read_table(pa.BufferReader(data))["a"].to_pylist() == table["a"].to_pylist()
    assert pqext.read_table(data)["a"].to_pylist() == table["a"].to_pylist()


@pytest.mark.spec("nulls.not-stored")
@pytest.mark.parametrize("version", [1, 2])
def test_pages_contain_values_of_their_own_rows_next_to_nulls(version: int) -> None:
    values = [1, None, None, 2, 3, None, None, 4] * 5
    data = written(pa.table({"a": values}), page_version=version, page_rows=3)
    assert pq.read_table(pa.BufferReader(data))["a"].to_pylist() == values
    pages = page_headers.of_column(data, 0)
    assert sum(len(one.body) for one in pages) < 20 * 8 + 14 * 12


@pytest.mark.spec("page.no-repetition-levels", "page.no-definition-levels")
def test_pages_of_a_required_flat_column_contain_values_only() -> None:
    schema = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.int32())])
    data = written(pa.table([[1, 2, 3], [4, None, 6]], schema=schema))
    assert header_of(data, 0)[1] == struct.pack("<3i", 1, 2, 3)
    body = header_of(data, 1)[1]
    (length,) = struct.unpack_from("<I", body)
    assert hybrid.decode(body[4 : 4 + length], 1, 3) == [1, 0, 1]
    assert body[4 + length :] == struct.pack("<2i", 4, 6)


@pytest.mark.spec("page.v1.compressed-whole")
def test_version_1_levels_and_values_are_compressed_together() -> None:
    table = pa.table({"a": pa.array(LISTS * 50, pa.list_(pa.int64()))})
    plain = header_of(written(table))[1]
    header, body = header_of(written(table, compression="zstd"))
    assert header[2] == len(plain)
    assert pa.Codec("zstd").decompress(body, len(plain), asbytes=True) == plain


@pytest.mark.spec("nulls.one-run", "nulls.not-stored")
def test_thousand_nulls_are_stored_as_one_run() -> None:
    data = written(pa.table({"a": pa.array([None] * 1000, pa.int64())}))
    assert header_of(data)[1] == struct.pack("<I", 3) + bytes([0xD0, 0x0F, 0])  # 1000 << 1 in two bytes, and the 0


@pytest.mark.spec("page.crc")
@pytest.mark.parametrize("version", [1, 2])
def test_checksum_covers_the_stored_page_without_its_header(version: int) -> None:
    table = pa.table({"a": ["x", "yy", None] * 100})
    data = written(table, compression="zstd", dictionary=True, page_version=version)
    header, body = header_of(data)
    assert header[4] & 0xFFFFFFFF == zlib.crc32(body)
    chunk = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(0)
    reader = Reader(data, chunk.dictionary_page_offset)
    dictionary = {id: value for id, _, value in reader.struct()}
    assert dictionary[4] & 0xFFFFFFFF == zlib.crc32(data[reader.at : reader.at + dictionary[3]])
    assert pq.read_table(pa.BufferReader(data), page_checksum_verification=True).equals(table)


@pytest.mark.spec("page.crc.optional")
def test_checksums_can_be_omitted_and_ignored() -> None:
    table = pa.table({"a": pa.array(range(100), pa.int64())})
    assert 4 not in header_of(written(table, checksums=False))[0]
    data = bytearray(written(table))
    at = bytes(data).index(struct.pack("<2q", 50, 51))
    data[at] = 99
    with pytest.raises(CorruptFileError, match="checksum"):
        pqext.read_table(bytes(data))
    assert pqext.read_table(bytes(data), checksums=False)["a"][50].as_py() == 99


@pytest.mark.spec("page.row-boundary", "page-index.row-boundary")
@pytest.mark.parametrize("version", [1, 2])
def test_every_page_starts_at_a_row(version: int) -> None:
    table = pa.table({"a": pa.array(LISTS * 40, pa.list_(pa.int64()))})
    data = written(table, page_rows=7, page_version=version)
    pages = page_headers.of_column(data, 0)
    assert len(pages) == -(-200 // 7)
    for one in pages:
        body = one.body if version == 2 else one.body[4:]
        assert hybrid.decode(body, 1, 1) == [0]


@pytest.mark.spec("types.physical", "types.small-integers")
def test_arrow_types_are_stored_in_eight_physical_types() -> None:
    fields = [
        pa.field("a", pa.bool_()), pa.field("b", pa.int8()), pa.field("c", pa.uint16()), pa.field("d", pa.int64()),
        pa.field("e", pa.timestamp("ns"), metadata={"PARQUET:physical_type": "INT96"}), pa.field("f", pa.float32()),
        pa.field("g", pa.float64()), pa.field("h", pa.binary()), pa.field("i", pa.binary(5)),
    ]
    table = pa.schema(fields).empty_table()
    schema = pq.ParquetFile(pa.BufferReader(written(table))).schema
    found = [schema.column(i).physical_type for i in range(len(fields))]
    expected = ["BOOLEAN", "INT32", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]
    assert found == expected
    assert {Type[name] for name in found} == set(Type)


def join_pages(files: list[bytes]) -> bytes:
    """The pages of the only column of several files in one chunk, all of which must use the same codec."""
    whole = pqext.open(files[0]).metadata
    data, rows, size = b"PAR1", 0, 0
    encodings = []
    for file in files:
        held = pqext.open(file).metadata
        chunk = held.row_groups[0].columns[0].meta_data
        assert chunk is not None
        data += file[chunk.data_page_offset : chunk.data_page_offset + chunk.total_compressed_size]
        rows, size = rows + held.num_rows, size + chunk.total_uncompressed_size
        encodings += chunk.encodings
    group = whole.row_groups[0]
    first = group.columns[0]
    assert first.meta_data is not None
    first.offset_index_offset = first.column_index_offset = None
    first.meta_data = ColumnMetaData(
        type=first.meta_data.type, encodings=list(set(encodings)), path_in_schema=first.meta_data.path_in_schema,
        codec=first.meta_data.codec, num_values=rows, total_uncompressed_size=size,
        total_compressed_size=len(data) - 4, data_page_offset=4,
    )
    group.num_rows = whole.num_rows = rows
    return data + serialise_footer(whole)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "zstd"])
def test_pages_of_different_versions_may_alternate(codec: str) -> None:
    """Pages are opened together; what differs in version or encoding, or has nulls where others have none, is not."""
    parts: list[tuple[list[int | None], dict[str, Any]]] = [
        ([1, 2, 3], {}),
        ([4, None, 6], {}),
        ([7, 8, 9, 10], {"encodings": {"a": "delta_binary_packed"}}),
        ([11, None], {"page_version": 2}),
        ([None, None], {"page_version": 2, "encodings": {"a": "byte_stream_split"}}),
        ([14, 15], {"page_version": 2, "encodings": {"a": "byte_stream_split"}}),
        ([16] * 40, {}),
    ]
    files = [
        written(pa.table({"a": pa.array(values, pa.int64())}), compression=codec, **options)
        for values, options in parts
    ]
    data = join_pages(files)
    expected = [value for values, _ in parts for value in values]
    assert pqext.open(data).read()["a"].to_pylist() == expected
    assert pq.read_table(pa.BufferReader(data))["a"].to_pylist() == expected
    batches = pqext.open(data).iter_batches(5)
    assert [value for batch in batches for value in batch["a"].to_pylist()] == expected
