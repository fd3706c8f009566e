"""Pages of zstd unpacked by the library itself: the same bytes and the same refusals as by calls from Python."""

from __future__ import annotations

import ctypes.util
import io
import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import CorruptFileError
from pqext.core.format import compression, zstd_library
from pqext.core.format.metadata import CompressionCodec
from pqext.core.kernels.decode.zstd import Context
from reference.effort import share

ZSTD = CompressionCodec.ZSTD


def context() -> Context:
    found = zstd_library.context()
    assert found is not None, "the tests' environment has zstandard, which carries the library"
    return found


@pytest.fixture
def without_library() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zstd_library, "context", lambda: None)
        yield


@settings(max_examples=share(0.5))
@given(pages=st.lists(st.binary(max_size=200), max_size=6), cut=st.integers(-3, 3), place=st.integers(0, 5))
def test_pages_are_unpacked_to_just_their_sizes(pages: list[bytes], cut: int, place: int) -> None:
    packed, sizes = list(map(zstandard.compress, pages)), list(map(len, pages))
    out = np.zeros(sum(sizes), np.uint8)
    assert context().unpack_all(packed, sizes, out) == -1
    assert out.tobytes() == b"".join(pages)
    if cut and place < len(pages) and sizes[place] and sizes[place] + cut >= 1:
        sizes[place] += cut
        assert context().unpack_all(packed, sizes, np.zeros(sum(sizes), np.uint8)) == place


@settings(max_examples=share(1))
@given(
    page=st.binary(min_size=1, max_size=300), at=st.integers(0, 400), byte=st.integers(0, 255), cut=st.integers(0, 9)
)
def test_damage_is_what_it_is_without_the_library(page: bytes, at: int, byte: int, cut: int) -> None:
    damaged = bytearray(zstandard.compress(page))
    damaged[at % len(damaged)] = byte
    packed = np.frombuffer(bytes(damaged[: len(damaged) - cut]), np.uint8)

    def answer() -> bytes | str:
        try:
            return bytes(compression.decompress(ZSTD, packed, len(page)))
        except CorruptFileError as error:
            return str(error)

    found = answer()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zstd_library, "context", lambda: None)
        assert found == answer()


@pytest.mark.usefixtures("without_library")
def test_files_are_read_where_no_library_is_found() -> None:
    table = pa.table({"n": range(5000), "s": [f"{n % 77}" for n in range(5000)]})
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", data_page_size=700, write_page_index=True)
    assert pqext.read_table(out.getvalue()).equals(table)
    found = pqext.read_table(out.getvalue(), filter=pqext.col("n").isin([3, 900, 4999]))
    assert found["n"].to_pylist() == [3, 900, 4999]


def test_several_frames_are_one_page_as_ever() -> None:
    packed = np.frombuffer(zstandard.compress(b"one") + zstandard.compress(b"two"), np.uint8)
    assert bytes(compression.decompress(ZSTD, packed, 6)) == b"onetwo"


def test_each_thread_has_its_own() -> None:
    seen: list[Context | None] = []
    threads = [threading.Thread(target=lambda: seen.append(zstd_library.context())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert None not in seen
    assert len({id(one) for one in [*seen, context()]}) == 4
    assert zstd_library.context() is zstd_library.context()


def test_a_library_without_the_functions_or_too_old_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    found = zstd_library._functions.__wrapped__
    places = list(zstd_library._places())
    monkeypatch.setattr(zstd_library, "_places", lambda: iter(["no such library", ctypes.util.__file__, places[0]]))
    assert found() == zstd_library._functions()
    monkeypatch.setattr(zstd_library, "_LEAST_VERSION", 1 << 30)
    assert found() is None
