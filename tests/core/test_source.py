"""Byte ranges come out the same from every kind of file, and never from outside of it."""

from __future__ import annotations

import io
import mmap
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import pqext
from pqext.core.base.errors import ChangedFileError, CorruptFileError
from pqext.core.io.source import ArrowSource, MemorySource, PathSource, Source, Span, StreamSource
from pqext.core.io.sources.locations import open_source

DATA = bytes(i * 7 % 251 for i in range(300_000))


class Dribble(io.RawIOBase):
    """A raw file that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._inner.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        part = self._inner.read(min(len(buffer), 1000))
        buffer[: len(part)] = part
        return len(part)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "file.bin"
    made.write_bytes(DATA)
    return made


OPENERS: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "text path": str,
    "bytes path": os.fsencode,
    "bytes": lambda path: DATA,
    "bytearray": lambda path: bytearray(DATA),
    "memoryview": lambda path: memoryview(DATA),
    "numpy": lambda path: np.frombuffer(DATA, "<i4"),
    "arrow buffer": lambda path: pa.py_buffer(DATA),
    "BytesIO": lambda path: io.BytesIO(DATA),
    "raw file": lambda path: Dribble(DATA),
    "arrow reader": lambda path: pa.BufferReader(DATA),
    "arrow file": lambda path: pyarrow.fs.LocalFileSystem().open_input_file(str(path)),
    "source": lambda path: PathSource(str(path)),
}


@pytest.fixture(params=OPENERS)
def source(request: pytest.FixtureRequest, path: Path) -> Iterator[Source]:
    with open_source(os.fsdecode(path) if request.param == "bytes path" else OPENERS[request.param](path)) as opened:
        yield opened


def test_range_returns_its_bytes(source: Source) -> None:
    assert source.size == len(DATA)
    for offset, length in [(0, 4), (299_990, 10), (5, 0), (300_000, 0), (100, 200_000), (0, 300_000)]:
        assert bytes(source.read(offset, length)) == DATA[offset : offset + length]


def test_buffers_are_read_only(source: Source) -> None:
    view = source.read(10, 20)
    assert (view.flags.writeable, view.dtype, view.flags.contiguous) == (False, np.uint8, True)


def test_fetched_bytes_are_counted(source: Source) -> None:
    source.read(0, 100)
    source.read(50, 100)
    source.read_many([(1000, 10), (200_000, 5), (1010, 10)])
    assert source.bytes_read == 225


@pytest.mark.parametrize(
    ("offset", "length"), [(-1, 5), (0, -1), (299_999, 2), (300_001, 0), (1 << 63, 1), (5, 1 << 63), (-5, 300_000)]
)
def test_range_beyond_the_file_is_corrupt(source: Source, offset: int, length: int) -> None:
    with pytest.raises(CorruptFileError, match="truncated or its metadata is corrupt") as caught:
        source.read(offset, length)
    assert caught.value.offset == offset
    with pytest.raises(CorruptFileError):
        source.read_many([(0, 5), (offset, length)])
    assert source.bytes_read == 0


def test_threads_read_concurrently(source: Source) -> None:
    ranges = [(offset, 3000) for offset in range(0, 290_000, 1000)]
    with ThreadPoolExecutor(8) as pool:
        views = list(pool.map(lambda one: source.read(*one), ranges))
    assert [bytes(view) for view in views] == [DATA[offset : offset + length] for offset, length in ranges]
    assert source.bytes_read == 3000 * len(ranges)


RANGES = st.lists(
    st.integers(0, len(DATA)).flatmap(
        lambda offset: st.tuples(st.just(offset), st.integers(0, min(100_000, len(DATA) - offset)))
    ),
    max_size=12,
)


class Counting(MemorySource):
    """Remembers what was fetched."""

    def __init__(self, data: bytes, merge_gap: int) -> None:
        super().__init__(data)
        self.merge_gap = merge_gap
        self.fetched: list[tuple[int, int]] = []

    def _fetch(self, offset: int, length: int) -> NDArray[np.uint8]:
        self.fetched.append((offset, length))
        return super()._fetch(offset, length)


@given(RANGES, st.sampled_from([0, 100, 70_000]))
def test_many_ranges_equal_single_reads(ranges: list[tuple[int, int]], gap: int) -> None:
    source = Counting(DATA, gap)
    found = [bytes(view) for view in source.read_many(ranges)]
    assert found == [DATA[offset : offset + length] for offset, length in ranges]
    fetched = sorted(source.fetched)
    for (offset, length), (following, _) in pairwise(fetched):
        assert following - (offset + length) > gap
    wanted = {byte // 64 for offset, length in ranges for byte in range(offset, offset + length, 64)}
    assert source.bytes_read == sum(length for _, length in fetched)
    if gap == 0:
        assert source.bytes_read <= 64 * (len(wanted) + len(ranges)) + 64 * len(ranges)


@pytest.mark.spec("querying.coalescing")
def test_near_ranges_share_one_bounded_read(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Counting(DATA, 50)
    source.read_many([(200, 10), (0, 100), (150, 20), (1000, 5)])
    assert source.fetched == [(0, 210), (1000, 5)]
    monkeypatch.setattr("pqext.core.io.source.MERGED_BYTES", 150)
    source.fetched.clear()
    source.read_many([(200, 10), (0, 100), (100, 50), (1000, 500)])
    assert source.fetched == [(0, 150), (200, 10), (1000, 500)]


def test_local_files_and_memory_fetch_little_excess(path: Path) -> None:
    assert MemorySource(DATA).tail_bytes == 0
    assert PathSource(str(path)).tail_bytes <= 16 << 10
    with open_source(path) as opened:
        opened.read_many([(0, 4), (100_000, 8)])
        assert opened.bytes_read == 12


def test_source_has_a_path_if_available(path: Path) -> None:
    with open_source(path) as opened:
        assert opened.path == str(path)
        with pytest.raises(CorruptFileError) as caught:
            opened.read(0, 1 << 40)
        assert caught.value.path == str(path)
    with path.open("rb") as file:
        assert open_source(file).path == str(path)
    assert open_source(DATA).path is None


def test_file_opened_by_the_caller_stays_open(path: Path) -> None:
    for file in (io.BytesIO(DATA), path.open("rb"), pa.BufferReader(DATA)):
        with open_source(file) as opened:
            assert isinstance(opened, (StreamSource, ArrowSource))
            opened.read(0, 10)
        assert not file.closed
        file.close()


def test_closed_file_cannot_be_read(path: Path) -> None:
    opened = open_source(path)
    opened.close()
    with pytest.raises(ValueError, match="closed"):
        opened.read(0, 10)


def test_shrinking_file_is_detected(path: Path) -> None:
    with open_source(path) as opened:
        os.truncate(path, 1000)
        with pytest.raises(CorruptFileError, match="ends after 1000 bytes but had 300000"):
            opened.read(900, 200)


def test_path_is_read_without_pread(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pread")
    with open_source(path) as opened:
        assert bytes(opened.read(1000, 5000)) == DATA[1000:6000]


def test_source_that_cannot_be_opened_is_an_error_with_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        open_source(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        open_source(tmp_path / "pipe")
    with pytest.raises(TypeError, match="cannot read from int"):
        open_source(5)
    with pytest.raises(TypeError, match="binary mode"):
        open_source(io.StringIO("text"))
    reader, writer = os.pipe()
    with open(reader, "rb") as pipe, open(writer, "wb"), pytest.raises(ValueError, match="seekable"):
        open_source(pipe)
    with pytest.raises(ValueError, match="open_input_file"):
        open_source(pa.CompressedInputStream(pa.BufferReader(b""), "gzip"))


def test_mmap_and_minimal_file_object_are_read(path: Path) -> None:
    class Bare:
        def __init__(self) -> None:
            self._file = io.BytesIO(DATA)
            self.read = self._file.read
            self.tell = self._file.tell

        def seek(self, offset: int, whence: int = 0) -> None:
            self._file.seek(offset, whence)

    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for source in (mapped, Bare()):
            assert bytes(open_source(source).read(1000, 5000)) == DATA[1000:6000]


def test_byte_counts_are_exact_with_many_threads() -> None:
    source = MemorySource(DATA)
    threads = [threading.Thread(target=lambda: [source.read(0, 1) for _ in range(2000)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert source.bytes_read == 16_000
@pytest.mark.spec("querying.versions")
def test_local_file_modified_while_open_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"a": list(range(1000)), "b": ["text"] * 1000})
    pqext.write_table(table, path)
    data = path.read_bytes()
    with pqext.open(path) as file:
        path.write_bytes(data + b"more")
        with pytest.raises(ChangedFileError, match=r"had \d+ bytes when it was opened and now has \d+ bytes") as told:
            file.read()
    assert told.value.path == str(path)
    path.write_bytes(data)
    with pqext.open(path) as file:
        path.write_bytes(data)
        os.utime(path, ns=(1, 1))
        with pytest.raises(ChangedFileError, match="another modification time"):
            file.read()


def test_replaced_local_file_is_read_in_its_old_state(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table({"a": list(range(1000))})
    pqext.write_table(table, path)
    with pqext.open(path) as file:
        pqext.write_table(table.slice(5), path)
        assert file.read().equals(table)
    assert pqext.read_table(path).num_rows == 995


REQUESTS = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60)), max_size=12)


@given(st.sampled_from([0, 1, 50, 1000]), st.booleans(), REQUESTS)
def test_span_returns_its_bytes_for_any_window(window: int, is_remote: bool, requests: list[tuple[int, int]]) -> None:
    source = MemorySource(DATA)
    source.is_remote = is_remote
    span = Span(source, 100, 401, window=window)
    for offset, length in requests:
        expected = DATA[100 + offset : min(100 + offset + length, 501)]
        buffered = span.peek(offset, length).tobytes()
        assert buffered[: len(expected)] == expected
        assert DATA[100 + offset :].startswith(buffered)
        assert span.read(offset, length).tobytes() == expected


@pytest.mark.parametrize("rows", [1_000, 130_000, 400_000])
def test_large_chunks_of_a_local_file_are_read_in_windows_of_a_megabyte(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pqext.core.io.source.STREAMED_BYTES", 1)  # as if the row group had very many columns
    table = pa.table({"a": np.random.default_rng(1).random(rows)})
    pq.write_table(table, path := tmp_path / "a.parquet", use_dictionary=False, compression="none")
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    with pqext.open(path) as file:
        opened = file.source.requests
        assert file.read() == table
        assert file.source.requests - opened == -(-size // (1 << 20))
