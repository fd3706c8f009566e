"""The end of a file gives its metadata, or says what is wrong with the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, EncryptionError, LimitError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import LazyStructs, Struct, decode, encode
from pqext.core.io.source import StreamSource
from pqext.core.io.sources.locations import open_source

T = TypeVar("T", bound=Struct)

TABLE = pa.table(
    {
        "number": pa.array([1, 2, None, 4, 5], pa.int32()),
        "text": ["a", None, "c", "dd", "e"],
        "list": [[1.5], [], None, [2.5, 3.5], [4.5]],
        "when": pa.array([0, 1, 2, 3, 4], pa.timestamp("us", tz="UTC")),
        "price": pa.array([1, 2, 3, 4, None], pa.decimal128(9, 2)),
    }
)


def written(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


FILE = written(TABLE, row_group_size=2, write_page_index=True)
LENGTH = int.from_bytes(FILE[-8:-4], "little")


def everything(metadata: T) -> T:
    """Decode whatever is lazy."""
    for field in metadata.fields:
        value = getattr(metadata, field.name)
        for struct in value if isinstance(value, (list, tuple, LazyStructs)) else [value]:
            if isinstance(struct, Struct):
                everything(struct)
    return metadata


def compare_with_pyarrow(ours: FileMetaData, theirs: pq.FileMetaData) -> None:
    assert (ours.num_rows, len(ours.row_groups)) == (theirs.num_rows, theirs.num_row_groups)
    assert ours.created_by == (theirs.created_by or None)
    for group_index, group in enumerate(ours.row_groups):
        peer_group = theirs.row_group(group_index)
        assert (group.num_rows, group.total_byte_size) == (peer_group.num_rows, peer_group.total_byte_size)
        assert len(group.columns) == peer_group.num_columns
        for column_index, chunk in enumerate(group.columns):
            peer, mine = peer_group.column(column_index), chunk.meta_data
            assert mine is not None
            assert ".".join(mine.path_in_schema) == peer.path_in_schema
            assert mine.num_values == peer.num_values
            assert mine.total_compressed_size == peer.total_compressed_size
            assert mine.total_uncompressed_size == peer.total_uncompressed_size
            assert mine.data_page_offset == peer.data_page_offset
            assert mine.dictionary_page_offset == (peer.dictionary_page_offset if peer.has_dictionary_page else None)
            assert (mine.statistics is not None) >= peer.is_stats_set
            if peer.is_stats_set and peer.statistics.has_null_count:
                assert mine.statistics is not None
                assert mine.statistics.null_count == peer.statistics.null_count


def test_footer_is_read_with_its_offset() -> None:
    source = open_source(FILE)
    footer = read_footer(source)
    assert footer.length == LENGTH
    assert footer.offset == len(FILE) - 8 - LENGTH
    assert bytes(footer.raw) == FILE[footer.offset : -8]
    assert source.bytes_read == LENGTH + 12
    compare_with_pyarrow(footer.metadata, pq.read_metadata(io.BytesIO(FILE)))


def test_tail_of_a_stream_is_fetched_with_the_first_read() -> None:
    class Requests(StreamSource):
        count = 0

        def _fetch(self, offset: int, length: int) -> NDArray[np.uint8]:
            self.count += 1
            return super()._fetch(offset, length)

    wide = pa.table({"x" * 90_000: [1], "y": pa.array([b"z" * 300_000])})
    big = written(wide, compression="none", store_schema=False)
    for file, tail_bytes, expected in [(FILE, 64 << 10, 1), (FILE, 64, 3), (big, 64 << 10, 3), (big, 200_000, 2)]:
        source = Requests(io.BytesIO(file))
        source.tail_bytes, source.merge_gap = tail_bytes, 0
        assert everything(read_footer(source).metadata) == everything(read_footer(open_source(file)).metadata)
        assert source.count == expected


def test_footer_round_trips_unchanged() -> None:
    footer = read_footer(open_source(FILE))
    assert serialise_footer(footer.metadata) == FILE[footer.offset :]
    assert serialise_footer(everything(footer.metadata)) == FILE[footer.offset :]
    assert serialise_footer(bytes(footer.raw)) == FILE[footer.offset :]


def test_pyarrow_reads_a_modified_footer() -> None:
    footer = read_footer(open_source(FILE))
    footer.metadata.created_by = "changed"
    footer.metadata.row_groups = footer.metadata.row_groups[:1]
    footer.metadata.num_rows = 2
    changed = FILE[: footer.offset] + serialise_footer(footer.metadata)
    peer = pq.ParquetFile(io.BytesIO(changed))
    assert peer.metadata.created_by == "changed"
    assert peer.read() == TABLE.slice(0, 2)


@pytest.mark.parametrize(
    ("file", "message", "offset"),
    [
        (b"", "it has 0 bytes", None),
        (b"PAR1PAR1", "it has 8 bytes", None),
        (FILE[:-1], "the file is truncated or still being written", len(FILE) - 5),
        (FILE[: len(FILE) // 2], "the file is truncated or still being written", len(FILE) // 2 - 4),
        (b'{"json": "lines"}\n' * 3, "^not a Parquet file: it ends in", 50),
        (b"XXXX" + FILE[4:], "the beginning of the file is damaged or missing", 0),
        (FILE[4:], "the beginning of the file is damaged or missing", 0),
        (b"PARE" + FILE[4:], "the beginning of the file is damaged or missing", 0),
        (b"PAR1\x00\x00\x00\x00PAR1", "a footer of 0 bytes", 4),
        (b"PAR1\x01\x00\x00\x00PAR1", "the file declares a footer of 1 bytes, but has 12 bytes", 4),
        (b"PAR1\xff\xff\xff\xffPAR1", "the file declares a footer of 4294967295 bytes", 4),
        (b"PAR1\x00\x01\x00\x00\x00PAR1", "a required field is missing", 5),
    ],
)
def test_incomplete_parquet_file_is_rejected_with_the_reason(
    file: bytes, message: str, offset: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(file)
    with open_source(path) as source, pytest.raises(CorruptFileError, match=message) as caught:
        read_footer(source)
    assert caught.value.path == str(path)
    assert caught.value.offset == offset


def test_empty_encrypted_footer_is_corrupt() -> None:
    with pytest.raises(CorruptFileError):
        read_footer(open_source(b"PARE" + bytes(100) + b"\x64\x00\x00\x00PARE"))


def test_footer_beyond_the_limit_is_rejected() -> None:
    with pytest.raises(LimitError, match="footer_bytes=100"):
        read_footer(open_source(FILE), Limits(footer_bytes=100))
    assert read_footer(open_source(FILE), Limits(footer_bytes=LENGTH))


def damaged() -> Iterator[bytes]:
    """A small footer with each byte changed in several ways, and cut short at each."""
    footer = read_footer(open_source(written(TABLE.select(["text", "list"]), store_schema=False))).raw.tobytes()
    for position, byte in enumerate(footer):
        yield footer[:position]
        for changed in {byte ^ 1 << position % 8, 0, 0xFF, byte + 1 & 0xFF} - {byte}:
            yield footer[:position] + bytes([changed]) + footer[position + 1 :]


def test_corrupt_footer_returns_a_value_or_a_typed_error() -> None:
    offsets = []
    read = 0
    for footer in damaged():
        try:
            metadata = everything(read_footer(open_source(b"PAR1" + serialise_footer(footer))).metadata)
        except ParquetError as error:
            offsets.append(error.offset)
        else:
            again = encode(metadata)
            assert encode(decode(FileMetaData, again)[0]) == again
            read += 1
    assert len(offsets) > 500
    assert None not in offsets
    assert read > 0


def public_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.parquet*") if path.suffix in (".parquet", ".encrypted"))


def test_footers_of_public_files_match_pyarrow_and_round_trip(
    parquet_testing: Path,
) -> None:
    files = [path for path in public_files(parquet_testing) if "bad_data" not in path.parts]
    assert len(files) > 100
    for path in files:
        if path.read_bytes()[-4:] == b"PARE":
            with open_source(path) as source, pytest.raises(EncryptionError, match="key was not passed"):
                read_footer(source)
            continue
        with open_source(path) as source:
            footer = read_footer(source)
        raw = bytes(footer.raw)
        signature = 28 if path.suffix == ".encrypted" else 0
        assert encode(footer.metadata) == raw[: footer.length - signature]
        again, end = decode(FileMetaData, raw)
        assert end == footer.length - signature
        assert encode(everything(again)) == raw[:end]
        if not signature:
            compare_with_pyarrow(footer.metadata, pq.read_metadata(path))


def test_footers_of_public_bad_files_return_a_value_or_a_typed_error(parquet_testing: Path) -> None:
    refused = {}
    for path in public_files(parquet_testing / "bad_data"):
        with open_source(path) as source:
            try:
                everything(read_footer(source).metadata)
            except ParquetError as error:
                refused[path.name] = (error.path, error.message)
    bad = parquet_testing / "bad_data" / "ARROW-GH-41317.parquet"
    if bad.exists():
        assert refused[bad.name] == (str(bad), "ColumnMetaData.encodings: a required field is missing")
    assert all(path is not None and message for path, message in refused.values())
