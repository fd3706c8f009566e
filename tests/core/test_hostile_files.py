"""Damaged and hostile files: the right result or a typed error with its place; no crash, no hang."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from core import raw_files

import pqext
from pqext.core.base.buffers import EMPTY
from pqext.core.base.errors import AnnotationWarning, CorruptDataWarning, CorruptFileError, LimitError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.compression import compress
from pqext.core.format.encodings import dictionary, plain
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.metadata import CompressionCodec, FileMetaData, KeyValue, Type
from pqext.core.kernels.encodings.page_run import PageRun
from reference.effort import some

TABLE = pa.table(
    {
        "i": pa.array([1, None, 3, 3, 5], pa.int32()),
        "s": ["a", "bb", None, "a", "dddd"],
        "l": pa.array([[1.5], [], None, [2.5, None], [3.5]], pa.list_(pa.float64())),
        "b": [True, False, None, True, True],
    }
)


def written(**options: Any) -> bytes:
    out = io.BytesIO()
    pqext.write_table(TABLE, out, row_group_rows=3, **options)
    return out.getvalue()


def outcome(data: bytes) -> pa.Table | ParquetError:
    try:
        with pqext.open(data) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore", AnnotationWarning)  # a damaged annotation is one that is not known
            return file.read()
    except ParquetError as error:
        return error


@pytest.mark.parametrize("version", [1, 2])
def test_file_truncated_at_any_byte_is_rejected(version: int) -> None:
    data = written(page_version=version)
    for cut in range(len(data)):
        assert isinstance(outcome(data[:cut]), CorruptFileError), cut


@pytest.mark.parametrize(
    ("version", "compression", "checksums"),
    [
        (1, "snappy", False), pytest.param(2, "zstd", False, marks=pytest.mark.slow),
        pytest.param(1, "uncompressed", False, marks=pytest.mark.slow),
        pytest.param(2, "uncompressed", True, marks=pytest.mark.slow),
    ],
)
def test_changed_byte_returns_a_table_or_a_typed_error(version: int, compression: str, checksums: bool) -> None:
    data = written(page_version=version, compression=compression, checksums=checksums)
    for at in some(range(len(data)), 4):
        damaged = bytearray(data)
        damaged[at] ^= (0xFF, 0x01, 0x80)[at % 3]
        found = outcome(bytes(damaged))
        if isinstance(found, pa.Table):
            found.validate(full=True)
        else:
            assert str(found)


def test_corrupt_page_is_named_with_file_row_group_column_and_offset(tmp_path: Any) -> None:
    data = bytearray(written(compression="uncompressed"))
    with pqext.open(bytes(data)) as file:
        start, length = file.row_groups[1].chunk(1).byte_range
    data[start + length - 1] ^= 0xFF
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    with pytest.raises(CorruptFileError, match="checksum") as caught, pqext.open(path) as file:
        file.read()
    error = caught.value
    assert (error.path, error.row_group, error.column) == (str(path), 1, "s")
    assert error.offset is not None
    assert start <= error.offset < start + length
    for part in ("damaged.parquet", "row group 1", "column s", "offset"):
        assert part in str(error)


def test_corruption_elsewhere_does_not_affect_other_columns() -> None:
    data = bytearray(written(compression="uncompressed"))
    with pqext.open(bytes(data)) as file:
        start, length = file.row_groups[1].chunk(1).byte_range
    data[start : start + length] = b"\xff" * length
    with pqext.open(bytes(data)) as file:
        assert file.read(["i", "l", "b"]).num_rows == 5
        assert file.read(row_groups=[0]).num_rows == 3


def edited(edit: Callable[[FileMetaData], None]) -> bytes:
    data = written()
    with pqext.open(data) as file:
        metadata = file.metadata
        metadata.schema = list(metadata.schema)
        metadata.row_groups = list(metadata.row_groups)
        for group in metadata.row_groups:
            group.columns = list(group.columns)
        edit(metadata)
        return data[: file.footer.offset] + serialise_footer(metadata)


def first_chunk(metadata: FileMetaData) -> Any:
    return metadata.row_groups[0].columns[0].meta_data


LIES: dict[str, Callable[[FileMetaData], None]] = {
    "a chunk before the file": lambda m: setattr(first_chunk(m), "data_page_offset", -100),
    "a chunk behind the file": lambda m: setattr(first_chunk(m), "data_page_offset", 1 << 40),
    "a chunk of negative size": lambda m: setattr(first_chunk(m), "total_compressed_size", -1),
    "a chunk larger than the file": lambda m: setattr(first_chunk(m), "total_compressed_size", 1 << 50),
    "more values than pages": lambda m: setattr(first_chunk(m), "num_values", 1 << 60),
    "fewer values than pages": lambda m: setattr(first_chunk(m), "num_values", 1),
    "negative values": lambda m: setattr(first_chunk(m), "num_values", -1),
    "more rows than values": lambda m: setattr(m.row_groups[0], "num_rows", 1 << 60),
    "negative rows": lambda m: setattr(m.row_groups[0], "num_rows", -5),
    "a column too few": lambda m: m.row_groups[0].columns.pop(),
    "no chunks": lambda m: m.row_groups[0].columns.clear(),
    "the wrong codec": lambda m: setattr(first_chunk(m), "codec", 6),
    "an unknown codec": lambda m: setattr(first_chunk(m), "codec", 99),
    "another physical type": lambda m: setattr(m.schema[1], "type", 5),
    "an integer as strings": lambda m: setattr(m.schema[1], "type", 6),
    "an optional column as required": lambda m: setattr(m.schema[1], "repetition_type", 0),
    "a flat column as repeated": lambda m: setattr(m.schema[1], "repetition_type", 2),
    "no schema": lambda m: m.schema.clear(),
}


@pytest.mark.parametrize("lie", LIES)
def test_inconsistent_footer_is_rejected_in_bounded_time_and_memory(lie: str) -> None:
    found = outcome(edited(LIES[lie]))
    if isinstance(found, pa.Table):
        # What is not needed to find the pages is not believed either, and a schema that lies about levels makes
        # other bytes read as values.
        assert lie in ("a chunk behind the file", "an optional column as required")
        assert lie == "an optional column as required" or found.equals(TABLE.cast(found.schema))


def test_page_larger_than_the_limit_is_rejected() -> None:
    with pytest.raises(LimitError, match="memory_bytes=20"):
        pqext.open(written(), limits=Limits(memory_bytes=20, memory_expansion=0)).read()
    with pytest.raises(LimitError, match="page_bytes=3"):
        pqext.open(written(compression="uncompressed"), limits=Limits(page_bytes=3)).read()


@pytest.mark.spec("compression.bounded")
def test_oversized_pages_count_by_their_decompressed_size() -> None:
    column = raw_files.Column(bytes(1 << 20), 1, codec=CompressionCodec.ZSTD)
    column.stored = compress(CompressionCodec.ZSTD, column.values).tobytes()
    data = raw_files.write([raw_files.leaf("a", raw_files.REQUIRED)], [column], 1)
    assert len(data) < 1000
    assert pqext.open(data).read()["a"].to_pylist() == [0]
    with pytest.raises(LimitError, match="memory_bytes=524288"):
        pqext.open(data, limits=Limits(memory_bytes=1 << 19)).read()


def test_checksums_are_verified_unless_disabled() -> None:
    data = bytearray(written(compression="uncompressed", dictionary=False))
    with pqext.open(bytes(data)) as file:
        start, length = file.row_groups[0].chunk(2).byte_range
    data[start + length - 1] ^= 0x80
    with pytest.raises(CorruptFileError, match="checksum"):
        pqext.open(bytes(data)).read()
    table = pqext.open(bytes(data), pqext.ReadOptions(checksums=False)).read()
    assert any(value is None or math.copysign(1, value) == -1 for row in table["l"].to_pylist() for value in row or [])


def test_invalid_utf8_is_rejected_by_column() -> None:
    data = written(compression="uncompressed", checksums=False)
    with pytest.raises(CorruptFileError, match=r"not UTF-8.*column s"):
        pqext.open(data.replace(b"dddd", b"d\xffdd")).read()


@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("column", TABLE.column_names)
def test_rows_beyond_the_row_group_count_are_not_dropped_silently(column: str, rows: int) -> None:
    def change(metadata: FileMetaData) -> None:
        metadata.num_rows -= metadata.row_groups[0].num_rows - rows
        metadata.row_groups[0].num_rows = rows

    with pqext.open(edited(change)) as file, pytest.raises(CorruptFileError, match="more rows than its") as caught:
        file.read([column])
    assert caught.value.row_group == 0
    assert str(caught.value.column).startswith(column)


def test_key_value_metadata_with_invalid_utf8_preserves_its_bytes() -> None:
    pair = KeyValue(key="k\udcff", value="\udcfe")
    data = edited(lambda metadata: setattr(metadata, "key_value_metadata", [pair]))
    assert pqext.open(data).read().schema.metadata == {b"k\xff": b"\xfe"}


def test_row_group_with_a_negative_row_count_is_not_counted() -> None:
    data = edited(lambda metadata: setattr(metadata.row_groups[0], "num_rows", -3))
    with pqext.open(data) as file, pytest.raises(CorruptFileError, match="a negative row count: -3"):
        _ = file.num_rows


@pytest.mark.parametrize("rows", [1 << 31, 1 << 60, (1 << 63) - 1])
@pytest.mark.parametrize("column", TABLE.column_names)
def test_impossible_row_count_loses_its_row_group_on_skip(column: str, rows: int) -> None:
    data = edited(lambda metadata: setattr(metadata.row_groups[0], "num_rows", rows))
    with pqext.open(data, pqext.ReadOptions(on_corrupt="skip")) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", CorruptDataWarning)
        assert file.read([column]) == TABLE.slice(3).select([column])


@pytest.mark.parametrize("width", [1 << 12, 1 << 23])
def test_dictionary_values_wider_than_their_page_are_rejected_early(width: int) -> None:
    page = np.zeros(1 << 20, np.uint8)
    with pytest.raises(CorruptFileError, match="too short for 1048576 values"):
        plain.read_dictionary(page, len(page), Type.FIXED_LEN_BYTE_ARRAY, width)
    with pytest.raises(CorruptFileError, match="too short for 9 values"):
        plain.read_dictionary(page[:1], 9, Type.BOOLEAN, 1)


def test_index_into_an_empty_dictionary_is_rejected() -> None:
    empty = Dictionary(0, EMPTY)
    packed = np.array([0, 3], np.uint8)  # width 0, one bit-packed group
    with pytest.raises(CorruptFileError, match="empty"):
        dictionary.decode_fixed_width(PageRun([packed], [5]), Type.INT32, 4, empty, np.empty(20, np.uint8))
