"""Read byte ranges of a file in any storage. All reads of pqext use this module.

Every read returns a view of exactly the requested bytes. Local files use positional reads, so threads can share a
source. Files are not memory mapped, because the process is killed if a mapped file is truncated.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypeAlias, cast

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import ChangedFileError, CorruptFileError
from pqext.core.base.local_paths import explain_broken_link
from pqext.core.base.text import escape_text
from pqext.core.base.usage import Usage
from pqext.core.kernels.local_files import LocalFile, open_files

Range = tuple[int, int]
"""Offset and length of bytes in a file."""

MERGED_BYTES = 32 << 20
"""Maximum length of a read that merges ranges."""
_METADATA_GAP = 1 << 20
"""Maximum gap between structures that count as near the footer."""
STREAMED_BYTES = 32 << 20
"""Maximum number of stored bytes of a row group's columns in memory, unless a column would get less than one window."""


class _Closable(Protocol):
    def close(self) -> None: ...


class Source(ABC):
    """Readable sequence of ``size`` bytes. ``path`` is its name in errors, or None.

    ``merge_gap`` is the maximum number of unneeded bytes that are cheaper to read than another request.
    ``tail_bytes`` is the number of bytes at the end of the file that are fetched first and probably contain the footer.
    Threads may read concurrently. If ``is_remote`` is true, each read costs a round trip.
    """

    is_remote = False
    merge_gap = 64 << 10
    tail_bytes = 64 << 10
    window_bytes = 1 << 20
    batched_bytes = 1 << 62
    """Maximum length of ranges that are fetched together with others.

    The thread that needs a longer range fetches it.
    """
    summary_name = ""
    """Value of ``file_path`` for this file in a summary file."""
    is_opened = True

    def __init__(self, path: str | None, size: int, resource: _Closable | None = None) -> None:
        self.path = path
        self.size = size
        self._owned = resource
        self.usage = Usage()
        self._lock = threading.Lock()
        self.metadata_start = size
        """Smallest offset of the footer and of the indexes that were read."""

    @property
    def bytes_read(self) -> int:
        """Number of bytes fetched so far, including gaps between merged ranges."""
        return self.usage.bytes

    @property
    def requests(self) -> int:
        """Number of ranges fetched so far, plus other requests to a store."""
        return self.usage.requests

    def read(self, offset: int, length: int, *, is_metadata: bool = False) -> Bytes:
        """Read ``length`` bytes at ``offset``. Raises ``CorruptFileError`` if they extend beyond the file.

        ``is_metadata`` is true if the bytes belong to the footer or an index, which a remote source caches.
        """
        self._check(offset, length)
        return self._fetch_all([(offset, length)], is_metadata)[0]

    def _fetch_all(self, ranges: Sequence[Range], is_metadata: bool) -> list[Bytes]:
        """Fetch ranges that lie within the file, with one read for each range."""
        started = perf_counter()
        results = []
        for offset, length in ranges:
            data = self._fetch(offset, length)
            if len(data) != length:
                raise CorruptFileError(
                    f"the file ends after {offset + len(data)} bytes but had {self.size} when it was opened: "
                    "another program may be writing it",
                    path=self.path,
                    offset=offset,
                )
            results.append(data)
        self.usage.add_fetch(sum(map(len, results)), perf_counter() - started, len(results))
        return results

    def read_many(self, ranges: Sequence[Range], *, is_metadata: bool = False) -> list[Bytes]:
        """Read several ``(offset, length)`` ranges, and return their bytes in order. Nearby ranges are read together.

        ``is_metadata`` has the same meaning as for :meth:`read`.
        """
        results = [EMPTY] * len(ranges)
        for group, start, data in self.read_groups(ranges, is_metadata=is_metadata):
            for i in group:
                offset, length = ranges[i]
                results[i] = data[offset - start : offset - start + length]
        return results

    def read_groups(
        self, ranges: Sequence[Range], *, is_metadata: bool = False
    ) -> list[tuple[list[int], int, Bytes]]:
        """Read ranges like :meth:`read_many`, but return each merged read: the indexes of its ranges, its offset and
        its bytes.

        Empty ranges are omitted.
        """
        for offset, length in ranges:
            self._check(offset, length)
        groups = self._merge(ranges)
        starts = [ranges[group[0]][0] for group in groups]
        stops = [max([sum(ranges[i]) for i in group]) for group in groups]
        fetched = self._fetch_all([(a, b - a) for a, b in zip(starts, stops, strict=True)], is_metadata)
        return list(zip(groups, starts, fetched, strict=True))

    def spans(self, ranges: Sequence[Range]) -> list[Span]:
        """Create spans for reading each range sequentially.

        Small ranges are read immediately, and large ones on demand in windows.
        """
        window = max(self.window_bytes, STREAMED_BYTES // max(len(ranges), 1))
        limit = min(window, self.batched_bytes)
        small = [index for index, (_, length) in enumerate(ranges) if length <= limit]
        data = dict(zip(small, self.read_many([ranges[index] for index in small]), strict=True))
        return [
            Span(self, offset, length, data.get(index), window) for index, (offset, length) in enumerate(ranges)
        ]

    def _merge(self, ranges: Sequence[Range]) -> list[list[int]]:
        """Return groups of indexes of ``ranges``. The ranges of a group are read together."""
        groups: list[list[int]] = []
        start = stop = 0
        for i in sorted(range(len(ranges)), key=ranges.__getitem__):
            offset, length = ranges[i]
            if length == 0:
                continue
            near = offset - stop <= self.merge_gap and max(stop, offset + length) - start <= self._merged_bytes
            if groups and (near or offset < stop):
                groups[-1].append(i)
                stop = max(stop, offset + length)
            else:
                groups.append([i])
                start, stop = offset, offset + length
        return groups

    @property
    def _merged_bytes(self) -> int:
        return MERGED_BYTES

    def add_metadata(self, start: int) -> None:
        """Record that the footer or an index starts at ``start``."""
        self.metadata_start = min(self.metadata_start, start)

    def add_metadata_ranges(self, ranges: Iterable[tuple[Source, Range]]) -> None:
        """Record the indexes and filters at ``ranges``, if they are in this file and close to the footer."""
        start = self.metadata_start
        for offset, length in sorted((position for source, position in ranges if source is self), reverse=True):
            if start - offset - length > _METADATA_GAP:
                break
            start = min(start, offset)
        if start < self.metadata_start:
            self.add_metadata(start)

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset > self.size - length:
            raise CorruptFileError(
                f"the metadata refers to {length} bytes at offset {offset} in a file of {self.size} bytes: "
                "the file is truncated or its metadata is corrupt",
                path=self.path,
                offset=offset,
            )

    @abstractmethod
    def _fetch(self, offset: int, length: int) -> Bytes:
        """Fetch a range within the file. The result is shorter only if the file has shrunk."""

    def close(self) -> None:
        """Close the resources that the source has opened itself, but not objects that the caller passed in."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {escape_text(self.path or 'without a name')}, {self.size} bytes>"


FileSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | pa.Buffer | IO[bytes] | Source
"""Input of readers: a path, a URL, the bytes of a file, a binary file object, or a source."""


class Span:
    """Range of ``size`` bytes from ``offset`` in a source, read sequentially in windows.

    ``data`` contains all bytes if it is not None. Otherwise at least ``window`` bytes are fetched at a time.
    """

    def __init__(self, source: Source, offset: int, size: int, data: Bytes | None = None, window: int = 0) -> None:
        self.offset = offset
        self.size = size
        self._source = source
        self._window = window
        self._start = 0
        self._data = data if data is not None else EMPTY
        if data is None:
            source._check(offset, size)

    @property
    def path(self) -> str | None:
        """Path of the file, if it has a name."""
        return self._source.path

    def peek(self, offset: int, min_bytes: int) -> Bytes:
        """Return buffered bytes from ``offset``: at least ``min_bytes`` bytes, unless the span ends earlier."""
        min_bytes = min(min_bytes, self.size - offset)
        position = offset - self._start
        if position < 0 or position + min_bytes > len(self._data):
            length = min(max(min_bytes, self._window), self.size - offset)
            if self._source.is_remote and 0 <= position < len(self._data):  # fetch no byte twice
                rest = self._data[position:]
                more = self._source.read(self.offset + offset + len(rest), length - len(rest))
                self._data = np.concatenate([rest, more])
            else:
                self._data = self._source.read(self.offset + offset, length)
            self._start, position = offset, 0
        return self._data[position:]

    def read(self, offset: int, length: int) -> Bytes:
        """Read ``length`` bytes at ``offset``, which must lie within the span."""
        return self.peek(offset, length)[:length]

    def release(self) -> None:
        """Drop the buffered bytes. They are fetched again if they are needed."""
        self._start, self._data = 0, EMPTY


class MemorySource(Source):
    """Bytes in memory, returned without a copy."""

    merge_gap = 0
    tail_bytes = 0

    def __init__(self, data: Any) -> None:
        self._data = view(data)
        self._data.flags.writeable = False
        super().__init__(None, len(self._data))

    def _fetch(self, offset: int, length: int) -> Bytes:
        return self._data[offset : offset + length]


class StreamSource(Source):
    """Seekable binary file object that the caller passed in. Reads are serialised with a lock."""

    def __init__(self, stream: IO[bytes]) -> None:
        if hasattr(stream, "seekable") and not stream.seekable():  # an mmap has no such method before Python 3.13
            raise ValueError("the file object must be seekable: Parquet is read from its end")
        if not isinstance(stream.read(0), bytes):
            raise TypeError("the file object must be opened in binary mode")
        self._stream = stream
        self._stream_lock = threading.Lock()
        name = getattr(stream, "name", None)
        stream.seek(0, os.SEEK_END)
        super().__init__(name if isinstance(name, str) else None, stream.tell())

    def _fetch(self, offset: int, length: int) -> Bytes:
        stream = self._stream
        with self._stream_lock:
            stream.seek(offset)
            if isinstance(stream, (io.BytesIO, io.BufferedReader)):
                return _read_into(length, lambda part, _: stream.readinto(part))
            return _join(stream.read, length)


class _LocalFile(io.FileIO):
    """A file that is closed without a warning when it is garbage collected."""

    def __del__(self) -> None:
        self.close()


class PathSource(Source):
    """Local file that stays open until ``close`` is called or the source is garbage collected.

    Reading raises ``ChangedFileError`` if the file was written to after it was opened. A file that was replaced by
    another file can still be read.
    """

    merge_gap = 4 << 10
    tail_bytes = 16 << 10
    batched_bytes = 128 << 10

    def __init__(self, path: str, file: LocalFile | None = None) -> None:
        self._file: _LocalFile | LocalFile
        self._head, self._tail, self._tail_start = EMPTY, EMPTY, 1 << 63
        if file is not None:
            self._file, self.stamp = file, (file.size, file.mtime_ns)
            self._head = view(file.head)
            self._tail, self._tail_start = view(file.tail), file.size - len(file.tail)
            super().__init__(path, file.size, file)
            return
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise explain_broken_link(error, path) from None
        if stat.S_ISDIR(mode):
            advice = f"{os.strerror(errno.EISDIR)}: pqext.scan and pqext.read_table read folders"
            raise IsADirectoryError(errno.EISDIR, advice, path)
        if not stat.S_ISREG(mode):
            raise ValueError(f"{path} is not a regular file")
        self._file = _LocalFile(path)
        self.stamp = _stamp(self._file)
        super().__init__(path, self.stamp[0], self._file)

    @classmethod
    def open_several(cls, paths: Sequence[str]) -> list[Self | None]:
        """Open the files at ``paths`` and read their ends in one call that releases the GIL.

        The result is None for a file that cannot be opened. Opening it individually raises the error.
        """
        files = open_files([os.fsencode(path) for path in paths], cls.tail_bytes)
        return [None if file is None else cls(path, file) for path, file in zip(paths, files, strict=True)]

    def _fetch(self, offset: int, length: int) -> Bytes:
        if offset >= self._tail_start:
            return self._tail[offset - self._tail_start : offset - self._tail_start + length]
        if offset + length <= len(self._head):
            return self._head[offset : offset + length]
        return self._read(offset, length)

    def _fetch_all(self, ranges: Sequence[Range], is_metadata: bool) -> list[Bytes]:
        if _has_positional_reads() and not len(self._head) and all(length <= _SHORT for _, length in ranges):
            results = self._read_short(ranges)
        else:
            results = super()._fetch_all(ranges, is_metadata)
        head, tail = len(self._head), self._tail_start
        if head and all(offset >= tail or offset + length <= head for offset, length in ranges):
            return results
        if (now := _stamp(self._file)) != self.stamp:
            raise changed_file_error(self.path, self.stamp, now)
        return results

    def _read_short(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Read ranges of at most ``_SHORT`` bytes each, with one system call for each range."""
        started, number = perf_counter(), self._file.fileno()
        results = [os.pread(number, length, offset) for offset, length in ranges]
        size = sum(map(len, results))
        if size < sum([length for _, length in ranges]):
            return super()._fetch_all(ranges, is_metadata=False)  # raises the error, or reads the rest
        self.usage.add_fetch(size, perf_counter() - started, len(results))
        return [view(data) for data in results]

    def _read(self, offset: int, length: int) -> Bytes:
        if not _has_positional_reads():
            with self._lock:
                file = cast(_LocalFile, self._file)
                file.seek(offset)
                return _join(file.read, length)
        number = self._file.fileno()
        if length <= _SHORT and len(data := os.pread(number, length, offset)) == length:
            return view(data)
        return _read_into(length, lambda part, done: os.preadv(number, [part], offset + done))


def _has_positional_reads() -> bool:
    return hasattr(os, "pread") and hasattr(os, "preadv")  # not on Windows


_SHORT = 32 << 10
"""Maximum size of reads into a Python bytes object, which is fastest for short reads."""


def _stamp(file: io.FileIO | LocalFile) -> tuple[int, int]:
    """Return size and modification time in nanoseconds of an open file."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def changed_file_error(path: str | None, identity: tuple[int, int], now: tuple[int, int]) -> ChangedFileError:
    """Create the error for a changed file.

    ``identity`` and ``now`` are its previous and current size and modification time.
    """
    difference = "the same size and another modification time" if identity[0] == now[0] else f"{now[0]} bytes"
    return ChangedFileError(
        f"the file was changed while it was read: it had {identity[0]} bytes when it was opened and now has "
        f"{difference}; read it again",
        path=path,
    )


def _read_into(length: int, fill: Callable[[memoryview, int], int | None]) -> Bytes:
    """Call ``fill(unfilled_buffer, position)`` until ``length`` bytes are read or no more bytes are available."""
    data, done = allocate(length), 0
    while done < length and (count := fill(data[done:].data, done)):
        done += count
    data.flags.writeable = False
    return data[:done]


def _join(read: Callable[[int], bytes | None], length: int) -> Bytes:
    """Call ``read`` until it has returned ``length`` bytes in total, or returns no bytes."""
    parts = []
    while length > 0 and (part := read(length)):
        parts.append(part)
        length -= len(part)
    return view(parts[0] if len(parts) == 1 else b"".join(parts))


class ArrowSource(Source):
    """``pyarrow.NativeFile`` that the caller passed in, from any pyarrow file system. The caller must close it."""

    def __init__(self, file: pa.NativeFile) -> None:
        if not file.readable() or not file.seekable():
            raise ValueError("the pyarrow file must be opened with open_input_file: it must be seekable")

        self._file = file
        super().__init__(None, file.size())

    def _fetch(self, offset: int, length: int) -> Bytes:
        return view(self._file.read_at(length, offset))
