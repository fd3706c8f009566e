"""Encodings that only old files have: BIT_PACKED levels, and dictionaries marked PLAIN_DICTIONARY."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from core import raw_files
from core.raw_files import OPTIONAL, REPEATED, REQUIRED, Column

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format.encodings import dictionary
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.metadata import ConvertedType, Encoding, Type
from pqext.core.kernels.encodings.page_run import PageRun
from reference import page_headers


def read(data: bytes) -> pa.Table:
    with pqext.open(data) as file:
        return file.read()


def optional(definition: Sequence[int], level_encoding: Encoding = Encoding.BIT_PACKED, **more: Any) -> bytes:
    values = raw_files.int32(*range(list(definition).count(1)))
    column = Column(values, len(definition), definition, level_encoding=level_encoding, **more)
    return raw_files.write([raw_files.leaf("a", OPTIONAL)], [column], len(definition))


@pytest.mark.spec("encoding.bit-packed.order", "encoding.bit-packed.length", "encoding.bit-packed.levels-only")
@pytest.mark.spec("levels.encodings")
def test_bit_packed_levels_match_the_same_levels_in_runs() -> None:
    definition = [1, 0, 0, 1, 1, 1, 0, 1, 0, 1, 1]
    found = read(optional(definition))
    assert found["a"].to_pylist() == [0, None, None, 1, 2, 3, None, 4, None, 5, 6]
    assert found.equals(read(optional(definition, Encoding.RLE)))
    assert page_headers.of_column(optional(definition), 0)[0].levels == ("BIT_PACKED", "BIT_PACKED")


@pytest.mark.spec("encoding.bit-packed.order", "encoding.bit-packed.length", "levels.encodings")
def test_bit_packed_levels_are_adjacent_without_length_prefixes() -> None:
    elements = [
        raw_files.group("l", OPTIONAL, 1, converted_type=ConvertedType.LIST),
        raw_files.group("list", REPEATED, 1),
        raw_files.leaf("element", OPTIONAL),
    ]
    definition, repetition = [3, 2, 0, 1, 3, 3, 3], [0, 1, 0, 0, 0, 1, 1]
    for level_encoding in (Encoding.BIT_PACKED, Encoding.RLE):
        column = Column(raw_files.int32(0, 1, 2, 3), 7, definition, repetition, level_encoding=level_encoding)
        found = read(raw_files.write(elements, [column], 4))
        assert found["l"].to_pylist() == [[0, None], None, [], [1, 2, 3]]


def test_level_encoding_of_a_column_without_levels_is_ignored() -> None:
    column = Column(raw_files.int32(5, 6), 2, level_encoding=Encoding.BIT_PACKED)
    data = raw_files.write([raw_files.leaf("a", REQUIRED)], [column], 2)
    assert read(data)["a"].to_pylist() == [5, 6]
    assert pq.read_table(io.BytesIO(data))["a"].to_pylist() == [5, 6]


def test_bit_packed_levels_beyond_their_page_are_rejected() -> None:
    with pytest.raises(CorruptFileError, match="levels exceed their page"):
        read(optional([1] * 100, stored=b"\xff" * 12, claimed=12))


@pytest.mark.spec("encoding.dictionary.deprecated")
def test_old_files_with_plain_dictionary_pages_match_pyarrow(parquet_testing: Any) -> None:
    for name in ("alltypes_dictionary", "plain-dict-uncompressed-checksum"):
        path = parquet_testing / "data" / f"{name}.parquet"
        with pqext.open(path) as file:
            chunks = file.row_groups[0].chunks()
            assert any(Encoding.PLAIN_DICTIONARY in chunk.metadata.encodings for chunk in chunks)
            found = file.read()
        expected = pq.read_table(path)
        for column in expected.column_names:
            if not pa.types.is_timestamp(expected[column].type):
                assert found[column].cast(expected[column].type).equals(expected[column]), column


@pytest.mark.spec("encoding.dictionary.page", "encoding.dictionary.indices", "encoding.dictionary.deprecated")
@pytest.mark.parametrize("version", [1, 2])
def test_dictionary_is_written_first_and_indices_follow_their_width(version: int) -> None:
    table = pa.table({"s": ["x", "yy", "x", "zzz"] * 25})
    out = io.BytesIO()
    pqext.write_table(table, out, page_version=version, compression="uncompressed")
    first, second = page_headers.of_column(out.getvalue(), 0)
    assert (first.kind, first.encoding, first.values) == ("DICTIONARY_PAGE", "PLAIN", 3)
    assert first.body == raw_files.byte_arrays(b"x", b"yy", b"zzz")
    assert (second.encoding, second.values) == ("RLE_DICTIONARY", 100)
    levels = 4 + int.from_bytes(second.body[:4], "little") if version == 1 else 3
    assert second.body[levels] == 2
    assert second.body[levels + 1] & 1  # a bit-packed run follows, no length


@pytest.mark.spec("encoding.dictionary.width")
@pytest.mark.parametrize("width", [33, 255])
def test_indices_wider_than_32_bits_are_rejected(width: int) -> None:
    entries = Dictionary(3, np.arange(3, dtype=np.int32).view(np.uint8))
    page, out = np.array([width, 2, 0, 0, 0, 0, 0], np.uint8), np.empty(4, np.uint8)
    with pytest.raises(CorruptFileError, match="bit width of run-length data exceeds 32"):
        dictionary.decode_fixed_width(PageRun([page], [1]), Type.INT32, 4, entries, out)
