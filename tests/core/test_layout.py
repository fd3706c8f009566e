"""What stands where in a file that pqext writes, and what it reads in files laid out otherwise."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core.raw_files import REQUIRED, Column, int32, leaf, write

import pqext
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import DataPageHeader, Encoding, FileMetaData, IndexPageHeader, PageHeader, PageType
from pqext.core.format.thrift import encode
from pqext.core.io.source import MemorySource
from reference import compact, page_headers, thrift_package

TABLE = pa.table(
    {
        "i": pa.array([None if i % 4 == 1 else i for i in range(100)], pa.int32()),
        "s": [f"s{i % 5}" for i in range(100)],
        "n": [{"x": i, "l": [i, None]} for i in range(100)],
    }
)


class OnePass(io.RawIOBase):
    """A sink that can only be written from its start to its end."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += bytes(data)
        return len(data)


def written(**options: Any) -> bytes:
    sink = OnePass()
    pqext.write_table(TABLE, sink, row_group_rows=40, page_rows=15, **options)
    return sink.data


@pytest.mark.spec(
    "layout.magic", "layout.footer-length", "layout.row-groups", "layout.footer-after-data", "layout.chunk-pages",
    "layout.file-metadata", "layout.page-header", "layout.compact-protocol", "layout.offsets", "layout.version",
)
@pytest.mark.parametrize("version", [1, 2])
def test_file_consists_of_magic_chunks_metadata_length_and_magic(version: int) -> None:
    data = written(page_version=version, page_index=False)
    assert data[:4] == data[-4:] == b"PAR1"
    length = int.from_bytes(data[-8:-4], "little")
    footer = thrift_package.read("FileMetaData", data[-8 - length : -8])
    assert footer.version in (1, 2)
    assert footer.num_rows == 100
    assert [group.num_rows for group in footer.row_groups] == [40, 40, 20]
    at = 4
    for group in footer.row_groups:
        assert [chunk.meta_data.path_in_schema for chunk in group.columns] == [
            ["i"], ["s"], ["n", "x"], ["n", "l", "list", "element"],
        ]
        for chunk in group.columns:
            about = chunk.meta_data
            starts = [about.data_page_offset, about.dictionary_page_offset or about.data_page_offset]
            assert min(starts) == at
            # Reading headers and bodies one after another ends exactly where the chunk does.
            pages = page_headers.pages(data, at, about.total_compressed_size)
            assert sum(page.values for page in pages if page.kind != "DICTIONARY_PAGE") == about.num_values
            assert [page.kind == "DICTIONARY_PAGE" for page in pages].index(False) == starts[0] - at > 0 or (
                starts[0] == at or pages[0].kind == "DICTIONARY_PAGE"
            )
            at += about.total_compressed_size
    assert at == len(data) - 8 - length


@pytest.mark.spec("layout.footer-first", "layout.sequential")
def test_metadata_is_read_first_and_then_only_the_selected_chunks() -> None:
    data = written(page_index=False)
    source = MemorySource(data)
    with pqext.open(source) as file:
        footer = source.bytes_read
        assert footer == file.footer.length + 12
        file.read(["s"])
        assert source.bytes_read - footer == sum(group.chunk(1).byte_range[1] for group in file.row_groups)


@pytest.mark.spec("layout.sequential")
def test_encrypted_pages_are_read_in_sequence() -> None:
    """They have numbers, by which they are decrypted."""
    key = b"0123456789012345"
    data = written(encryption=pqext.encryption.FileEncryption(key), dictionary=False)
    with pqext.open(data, decryption=pqext.encryption.FileDecryption(key)) as file:
        assert file.read() == TABLE


@pytest.mark.spec("layout.version")
@pytest.mark.parametrize("version", [0, 1, 2, 3, -1, (1 << 31) - 1])
def test_any_format_version_is_read(version: int) -> None:
    out = io.BytesIO()
    pqext.rewrite_footer(written(), lambda metadata: setattr(metadata, "version", version), out)
    with pqext.open(out.getvalue()) as file:
        assert file.metadata.version == version
        assert file.read() == TABLE


def page(kind: int, body: bytes, **detail: Any) -> bytes:
    """A page of any type: header and body."""
    header = PageHeader(type=kind, uncompressed_page_size=len(body), compressed_page_size=len(body), **detail)
    return encode(header) + body


def plain_page(*values: int) -> bytes:
    detail = DataPageHeader(
        num_values=len(values), encoding=Encoding.PLAIN,
        definition_level_encoding=Encoding.RLE, repetition_level_encoding=Encoding.RLE,
    )
    return page(PageType.DATA_PAGE, int32(*values), data_page_header=detail)


def of_pages(*pages: bytes, values: int, dictionary: bool = False) -> bytes:
    """A file of one required INT32 column with these pages."""
    data = write([leaf("i", REQUIRED)], [Column(int32(*range(values)), values)], values)
    length = int.from_bytes(data[-8:-4], "little")
    with pqext.open(data) as file:
        metadata = file.metadata
        metadata.row_groups = list(metadata.row_groups)
        metadata.row_groups[0].columns = list(metadata.row_groups[0].columns)
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        about.total_compressed_size = about.total_uncompressed_size = sum(map(len, pages))
        if dictionary:
            about.dictionary_page_offset, about.data_page_offset = 4, 4 + len(pages[0])
    assert length
    return b"PAR1" + b"".join(pages) + serialise_footer(metadata)


OTHER_PAGES = {
    "an index page": page(PageType.INDEX_PAGE, b"anything", index_page_header=IndexPageHeader()),
    "an index page without a header": page(PageType.INDEX_PAGE, b""),
    "a page of a later type": page(77, b"\xff" * 100),
    "a page of a negative type": page(-1, b"x"),
    "a page with a header of a later type": page(4, b"body", unknown=((9, compact.STRUCT, b"\x15\x08\x00"),)),
}


@pytest.mark.spec("layout.page-types", "layout.extensible")
@pytest.mark.parametrize("name", OTHER_PAGES)
def test_pages_of_other_types_are_skipped_at_any_position(name: str) -> None:
    other = OTHER_PAGES[name]
    first, second = plain_page(1, 2), plain_page(3)
    orders = ([other, first, second], [first, other, second], [first, second, other], [other, other, first, second])
    for places in orders:
        with pqext.open(of_pages(*places, values=3)) as file:
            assert file.read()["i"].to_pylist() == [1, 2, 3]
            assert [len(batch) for batch in file.iter_batches(1)] == [1, 1, 1]


@pytest.mark.spec("layout.dictionary-first")
def test_dictionary_page_is_first_and_unique() -> None:
    from pqext.core.format.metadata import DictionaryPageHeader

    header = DictionaryPageHeader(num_values=2, encoding=Encoding.PLAIN)
    entries = page(PageType.DICTIONARY_PAGE, int32(5, 6), dictionary_page_header=header)
    indices = page(
        PageType.DATA_PAGE, b"\x01\x03\x02",
        data_page_header=DataPageHeader(
            num_values=3, encoding=Encoding.RLE_DICTIONARY,
            definition_level_encoding=Encoding.RLE, repetition_level_encoding=Encoding.RLE,
        ),
    )
    assert pqext.open(of_pages(entries, indices, values=3, dictionary=True)).read()["i"].to_pylist() == [5, 6, 5]
    # Pages of one chunk may differ in encoding.
    mixed = of_pages(entries, indices, plain_page(9), values=4, dictionary=True)
    assert pqext.open(mixed).read()["i"].to_pylist() == [5, 6, 5, 9]
    assert pq.read_table(io.BytesIO(mixed))["i"].to_pylist() == [5, 6, 5, 9]
    for pages in ([plain_page(1), entries, indices], [entries, entries, indices]):
        with pytest.raises(pqext.CorruptFileError, match="dictionary page"):
            pqext.open(of_pages(*pages, values=4 if pages[0] != entries else 3, dictionary=True)).read()


@pytest.mark.spec("layout.chunk-encoding")
def test_page_header_states_the_encoding_and_chunk_states_the_codec() -> None:
    out = io.BytesIO()

    def change_metadata(metadata: FileMetaData) -> None:
        for group in metadata.row_groups:
            for chunk in group.columns:
                assert chunk.meta_data is not None
                chunk.meta_data.encodings = [Encoding.DELTA_BYTE_ARRAY]
                chunk.meta_data.encoding_stats = None

    pqext.rewrite_footer(written(), change_metadata, out)
    assert pqext.open(out.getvalue()).read() == TABLE
    for codec in ("uncompressed", "snappy", "zstd"):
        data = written(compression={"s": codec, "i": "snappy"})
        with pqext.open(data) as file:
            assert file.row_groups[0].chunk(1).metadata.codec == {"uncompressed": 0, "snappy": 1, "zstd": 6}[codec]
            assert file.read() == TABLE


@pytest.mark.spec("layout.chunk-encoding")
@pytest.mark.parametrize("nested", [False, True])
def test_encoding_is_read_from_the_header_even_if_lengths_match(nested: bool) -> None:
    """Split bytes read as plain ones would be other numbers, and no error."""
    numbers = pa.array([i / 7 for i in range(5000)])
    table = pa.table({"f": pa.array([[number] for number in numbers.to_pylist()]) if nested else numbers})
    sink, out = OnePass(), io.BytesIO()
    pqext.write_table(table, sink, encodings={"f.list.element" if nested else "f": "byte_stream_split"})

    def change_metadata(metadata: FileMetaData) -> None:
        about = metadata.row_groups[0].columns[0].meta_data
        assert about is not None
        assert Encoding.BYTE_STREAM_SPLIT in about.encodings
        about.encodings = [Encoding.PLAIN, Encoding.RLE]
        about.encoding_stats = None

    pqext.rewrite_footer(sink.data, change_metadata, out)
    assert pqext.open(out.getvalue()).read() == table


@pytest.mark.spec("layout.page-size")
def test_pages_have_the_requested_rows() -> None:
    pages = page_headers.of_column(written(dictionary=False), 0)
    assert [one.values for one in pages] == [15, 15, 10]


@pytest.mark.spec("layout.magic")
def test_file_without_magic_at_either_end_is_rejected() -> None:
    data = written()
    for broken, message in ((b"PAR2" + data[4:], "starts with"), (data[:-4] + b"PAR2", "ends in")):
        with pytest.raises(pqext.CorruptFileError, match=message):
            pqext.open(broken)


@pytest.mark.spec("layout.footer-lost")
@pytest.mark.parametrize("length", [0, 2**31 - 1, 2**32 - 1])
def test_footer_of_an_impossible_length_is_an_error_that_states_the_length(length: int) -> None:
    data = written()
    for wrong in (length, len(data) - 8, len(data) - 11):
        broken = data[:-8] + wrong.to_bytes(4, "little") + data[-4:]
        with pytest.raises(pqext.CorruptFileError, match=r"declares a footer of \d+ bytes") as caught:
            pqext.open(broken)
        assert caught.value.offset == len(data) - 8


@pytest.mark.spec("layout.footer-lost")
def test_file_with_incomplete_metadata_is_an_error_with_offset() -> None:
    data = written()
    length = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - length
    broken = data[:start] + b"\xff" * 8 + data[start + 8 :]
    with pytest.raises(pqext.CorruptFileError) as caught:
        pqext.open(broken)
    assert caught.value.offset is not None
    assert start <= caught.value.offset <= start + 8
