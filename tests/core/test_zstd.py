"""Decompress zstd pages with a context per thread: the same bytes and errors as Arrow's codec."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format import compression
from pqext.core.format.metadata import CompressionCodec
from reference.effort import share

ZSTD = CompressionCodec.ZSTD


def compressed(page: bytes, has_size: bool = True) -> np.ndarray:
    return np.frombuffer(zstandard.ZstdCompressor(write_content_size=has_size).compress(page), np.uint8)


@settings(max_examples=share(0.5))
@given(
    pages=st.lists(st.binary(max_size=200), min_size=1, max_size=6), has_size=st.booleans(),
    change=st.integers(-3, 3), at=st.integers(0, 5),
)
def test_pages_decompress_to_exact_sizes(pages: list[bytes], has_size: bool, change: int, at: int) -> None:
    packed, sizes = [compressed(page, has_size) for page in pages], list(map(len, pages))
    assert [bytes(page) for page in compression.decompress_all(ZSTD, packed, sizes)] == pages
    if change and at < len(pages) and sizes[at] and sizes[at] + change >= 1:
        sizes[at] += change
        with pytest.raises(CorruptFileError):
            compression.decompress_all(ZSTD, packed, sizes)


@settings(max_examples=share(1))
@given(
    page=st.binary(min_size=1, max_size=300), at=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 9)
)
def test_corrupt_pages_fail_like_in_arrow(page: bytes, at: int, byte: int, cut: int) -> None:
    corrupt = bytearray(zstandard.compress(page))
    corrupt[at % len(corrupt)] = byte
    packed = bytes(corrupt[: len(corrupt) - cut])
    try:
        expected = pa.Codec("zstd").decompress(packed, decompressed_size=len(page), asbytes=True)
    except OSError:
        expected = None
    try:
        result = bytes(compression.decompress(ZSTD, np.frombuffer(packed, np.uint8), len(page)))
    except CorruptFileError:
        result = None
    assert result == expected or (result is None and expected is not None and len(expected) != len(page))


def test_several_frames_form_one_page() -> None:
    packed = np.concatenate([compressed(b"one"), compressed(b"two")])
    assert bytes(compression.decompress(ZSTD, packed, 6)) == b"onetwo"
    with pytest.raises(CorruptFileError):
        compression.decompress(ZSTD, packed, 3)


def test_bytes_after_the_frame_are_an_error() -> None:
    with pytest.raises(CorruptFileError):
        compression.decompress(ZSTD, np.concatenate([compressed(b"one"), np.zeros(4, np.uint8)]), 3)


def test_files_with_small_zstd_pages_are_read() -> None:
    table = pa.table({"n": range(5000), "s": [f"{n % 77}" for n in range(5000)]})
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", data_page_size=700, write_page_index=True)
    assert pqext.read_table(out.getvalue()).equals(table)
    matching = pqext.read_table(out.getvalue(), filter=pqext.col("n").isin([3, 900, 4999]))
    assert matching["n"].to_pylist() == [3, 900, 4999]
