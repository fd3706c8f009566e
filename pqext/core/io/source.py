"""Byte ranges of a file, wherever it is: the only way in which pqext reads.

Every read gives a view of exactly the bytes asked for. Local files are read with
positioned reads, so threads share a source; nothing is memory mapped, since a file cut short under a
mapping kills the process.
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
from typing import IO, Any, Protocol, Self, cast

import numpy as np
import pyarrow as pa

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import ChangedFileError, CorruptFileError
from pqext.core.base.text import escape_text
from pqext.core.base.usage import Usage
from pqext.core.kernels.local_files import LocalFile, open_files

Range = tuple[int, int]
"""(offset, length) of bytes in a file."""

MERGED_BYTES = 32 << 20
"""Ranges are not merged into reads longer than this."""
_NEAR = 1 << 20
"""Indexes that lie so many bytes before others belong to them."""
STREAMED_BYTES = 32 << 20
"""Stored bytes of the columns of a row group that are held at a time, unless each may only hold less than a window."""


class _Closable(Protocol):
    def close(self) -> None: ...


class Source(ABC):
    """A readable sequence of ``size`` bytes; ``path`` names it in errors when it has a name.

    ``merge_gap`` is the number of unwanted bytes that are cheaper to read than a further request is, and
    ``tail_bytes`` how much of the file's end is fetched at first in the hope that it holds the footer.
    Threads may read at the same time. Each read of a source that ``is_remote`` costs a round trip.
    """

    is_remote = False
    merge_gap = 64 << 10
    tail_bytes = 64 << 10
    window_bytes = 1 << 20
    gathered_bytes = 1 << 62
    """Longer ranges are not fetched together with others, but when they are asked for, each by the thread that does."""
    known_as = ""
    """What ``file_path`` calls the file in the summary that it is read by."""
    is_opened = True

    def __init__(self, path: str | None, size: int, owned: _Closable | None = None) -> None:
        self.path = path
        self.size = size
        self._owned = owned
        self.usage = Usage()
        self._lock = threading.Lock()
        self.metadata_start = size
        """Where what was read of footer and indexes begins."""

    @property
    def bytes_read(self) -> int:
        """How many bytes were fetched so far, those between merged ranges included."""
        return self.usage.bytes

    @property
    def requests(self) -> int:
        """How many ranges were fetched so far, and what else a store was asked for."""
        return self.usage.requests

    def read(self, offset: int, length: int, *, keep: bool = False) -> Bytes:
        """The ``length`` bytes at ``offset``; raises ``CorruptFileError`` when they leave the file.

        ``keep``: they belong to the footer or an index, and a remote source keeps them for the next time.
        """
        self._check(offset, length)
        return self._fetch_all([(offset, length)], keep)[0]

    def _fetch_all(self, ranges: Sequence[Range], keep: bool) -> list[Bytes]:
        """The bytes of ranges that lie within the file, all of them, each by a read of its own."""
        started = perf_counter()
        found = []
        for offset, length in ranges:
            data = self._fetch(offset, length)
            if len(data) != length:
                raise CorruptFileError(
                    f"the file ends after {offset + len(data)} bytes although it had {self.size} when it was opened: "
                    "is it being written?",
                    path=self.path,
                    offset=offset,
                )
            found.append(data)
        self.usage.add_fetch(sum(map(len, found)), perf_counter() - started, len(found))
        return found

    def read_many(self, ranges: Sequence[Range], *, keep: bool = False) -> list[Bytes]:
        """The bytes of several ``(offset, length)`` ranges, in the order given; near ones share a read.

        ``keep`` is as for :meth:`read`.
        """
        results = [EMPTY] * len(ranges)
        for group, start, data in self.gathered(ranges, keep=keep):
            for i in group:
                offset, length = ranges[i]
                results[i] = data[offset - start : offset - start + length]
        return results

    def gathered(self, ranges: Sequence[Range], *, keep: bool = False) -> list[tuple[list[int], int, Bytes]]:
        """As :meth:`read_many`, uncut: which of the ranges each read serves, where it begins, and its bytes.

        Ranges without bytes are in none.
        """
        for offset, length in ranges:
            self._check(offset, length)
        groups = self._merge(ranges)
        starts = [ranges[group[0]][0] for group in groups]
        stops = [max([sum(ranges[i]) for i in group]) for group in groups]
        fetched = self._fetch_all([(a, b - a) for a, b in zip(starts, stops, strict=True)], keep)
        return list(zip(groups, starts, fetched, strict=True))

    def spans(self, ranges: Sequence[Range]) -> list[Span]:
        """The ranges as spans to be read in order: small ones at once, large ones as they are read, in windows."""
        window = max(self.window_bytes, STREAMED_BYTES // max(len(ranges), 1))
        most = min(window, self.gathered_bytes)
        small = [index for index, (_, length) in enumerate(ranges) if length <= most]
        held = dict(zip(small, self.read_many([ranges[index] for index in small]), strict=True))
        return [
            Span(self, offset, length, held.get(index), window) for index, (offset, length) in enumerate(ranges)
        ]

    def _merge(self, ranges: Sequence[Range]) -> list[list[int]]:
        """Group the indexes of ``ranges`` into those that one read serves."""
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

    def learn(self, start: int) -> None:
        """The footer, or an index that was read, begins at ``start``."""
        self.metadata_start = min(self.metadata_start, start)

    def learn_of(self, ranges: Iterable[tuple[Source, Range]]) -> None:
        """Indexes and filters lie in ``ranges``: those of this file that lie near its footer count as :meth:`learn`."""
        start = self.metadata_start
        for offset, length in sorted((one for source, one in ranges if source is self), reverse=True):
            if start - offset - length > _NEAR:
                break
            start = min(start, offset)
        if start < self.metadata_start:
            self.learn(start)

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset > self.size - length:
            raise CorruptFileError(
                f"{length} bytes at {offset} are referred to in a file of {self.size} bytes: "
                "it is truncated or its metadata is damaged",
                path=self.path,
                offset=offset,
            )

    @abstractmethod
    def _fetch(self, offset: int, length: int) -> Bytes:
        """The bytes of a range within the file; fewer only when it has shrunk."""

    def close(self) -> None:
        """Close what the source itself has opened, so nothing that the caller passed in."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {escape_text(self.path or 'without a name')}, {self.size} bytes>"


class Span:
    """A run of ``size`` bytes of a source from ``offset`` on, read from its start to its end in windows.

    ``data``, when given, holds all of it already; else ``window`` bytes at least are fetched at a time.
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
        """The file that the bytes are from, when it has a name."""
        return self._source.path

    def peek(self, at: int, least: int) -> Bytes:
        """The bytes held from ``at`` on, ``least`` of them unless the span ends before."""
        least = min(least, self.size - at)
        held = at - self._start
        if held < 0 or held + least > len(self._data):
            length = min(max(least, self._window), self.size - at)
            if self._source.is_remote and 0 <= held < len(self._data):  # no byte is fetched twice
                rest = self._data[held:]
                more = self._source.read(self.offset + at + len(rest), length - len(rest))
                self._data = np.concatenate([rest, more])
            else:
                self._data = self._source.read(self.offset + at, length)
            self._start, held = at, 0
        return self._data[held:]

    def read(self, at: int, length: int) -> Bytes:
        """The ``length`` bytes at ``at``, which must lie within the span."""
        return self.peek(at, length)[:length]

    def let_go(self) -> None:
        """Hold nothing any more; what is asked for again is fetched again."""
        self._start, self._data = 0, EMPTY


class MemorySource(Source):
    """Bytes in memory, lent without a copy."""

    merge_gap = 0
    tail_bytes = 0

    def __init__(self, data: Any) -> None:
        self._data = view(data)
        self._data.flags.writeable = False
        super().__init__(None, len(self._data))

    def _fetch(self, offset: int, length: int) -> Bytes:
        return self._data[offset : offset + length]


class StreamSource(Source):
    """A seekable binary file object of the caller's, read under a lock."""

    def __init__(self, stream: IO[bytes]) -> None:
        if hasattr(stream, "seekable") and not stream.seekable():  # an mmap has none before Python 3.13
            raise ValueError("Parquet is read from its end: the file object must be seekable")
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
                return _filled(length, lambda part, _: stream.readinto(part))
            return _join(stream.read, length)


class _LocalFile(io.FileIO):
    """A file that is closed without a warning when nothing refers to it."""

    def __del__(self) -> None:
        self.close()


class PathSource(Source):
    """A local file, open until ``close`` is called or nothing refers to the source.

    Raises ``ChangedFileError`` for bytes of a file that was written to since it was opened. One that another file has
    replaced is still read as it was.
    """

    merge_gap = 4 << 10
    tail_bytes = 16 << 10
    gathered_bytes = 128 << 10

    def __init__(self, path: str, opened: LocalFile | None = None) -> None:
        self._file: _LocalFile | LocalFile
        self._head, self._held, self._held_from = EMPTY, EMPTY, 1 << 63
        if opened is not None:
            self._file, self.stamp = opened, (opened.size, opened.mtime_ns)
            self._head = view(opened.head)
            self._held, self._held_from = view(opened.tail), opened.size - len(opened.tail)
            super().__init__(path, opened.size, opened)
            return
        mode = os.stat(path).st_mode
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
        """The files at ``paths``, each with its end, read by one call that other threads run beside.

        None for one that is opened alone, which tells why it cannot be read.
        """
        opened = open_files([os.fsencode(path) for path in paths], cls.tail_bytes)
        return [None if one is None else cls(path, one) for path, one in zip(paths, opened, strict=True)]

    def _fetch(self, offset: int, length: int) -> Bytes:
        if offset >= self._held_from:
            return self._held[offset - self._held_from : offset - self._held_from + length]
        if offset + length <= len(self._head):
            return self._head[offset : offset + length]
        return self._read(offset, length)

    def _fetch_all(self, ranges: Sequence[Range], keep: bool) -> list[Bytes]:
        if _reads_at_places() and not len(self._head) and all(length <= _SHORT for _, length in ranges):
            found = self._read_short(ranges)
        else:
            found = super()._fetch_all(ranges, keep)
        head, tail = len(self._head), self._held_from
        if head and all(offset >= tail or offset + length <= head for offset, length in ranges):
            return found
        if (now := _stamp(self._file)) != self.stamp:
            raise changed(self.path, self.stamp, now)
        return found

    def _read_short(self, ranges: Sequence[Range]) -> list[Bytes]:
        """Ranges of some kilobytes, of which a footer is read by many."""
        started, number = perf_counter(), self._file.fileno()
        found = [os.pread(number, length, offset) for offset, length in ranges]
        size = sum(map(len, found))
        if size < sum([length for _, length in ranges]):
            return super()._fetch_all(ranges, keep=False)  # which says what is missing, or reads on
        self.usage.add_fetch(size, perf_counter() - started, len(found))
        return [view(data) for data in found]

    def _read(self, offset: int, length: int) -> Bytes:
        if not _reads_at_places():
            with self._lock:
                file = cast(_LocalFile, self._file)
                file.seek(offset)
                return _join(file.read, length)
        number = self._file.fileno()
        if length <= _SHORT and len(data := os.pread(number, length, offset)) == length:
            return view(data)
        return _filled(length, lambda part, done: os.preadv(number, [part], offset + done))


def _reads_at_places() -> bool:
    """Does the system read at places in files? Windows does not."""
    return hasattr(os, "pread") and hasattr(os, "preadv")


_SHORT = 32 << 10
"""So many bytes of a file are had soonest as an object of Python's."""


def _stamp(file: io.FileIO | LocalFile) -> tuple[int, int]:
    """Size and time of the last change, in nanoseconds, of an open file."""
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def changed(path: str | None, before: tuple[int, int], now: tuple[int, int]) -> ChangedFileError:
    """The error for a file that is not the one it was, by its stamps."""
    same = "the same size and another time of change" if before[0] == now[0] else f"{now[0]} bytes"
    return ChangedFileError(
        f"the file was changed while it was read: it had {before[0]} bytes when it was opened and has now {same}: "
        "read it again",
        path=path,
    )


def _filled(length: int, fill: Callable[[memoryview, int], int | None]) -> Bytes:
    """Let ``fill`` put bytes into what is left of ``length``, behind so many, until it has no more."""
    data, done = allocate(length), 0
    while done < length and (count := fill(data[done:].data, done)):
        done += count
    data.flags.writeable = False
    return data[:done]


def _join(read: Callable[[int], bytes | None], length: int) -> Bytes:
    """Call ``read`` until it has given ``length`` bytes or no more."""
    parts = []
    while length > 0 and (part := read(length)):
        parts.append(part)
        length -= len(part)
    return view(parts[0] if len(parts) == 1 else b"".join(parts))


class ArrowSource(Source):
    """A ``pyarrow.NativeFile`` of the caller's, so a file of any pyarrow file system; left open."""

    def __init__(self, file: pa.NativeFile) -> None:
        if not file.readable() or not file.seekable():
            raise ValueError("the pyarrow file must be opened with open_input_file: Parquet is read from its end")
        self._file = file
        super().__init__(None, file.size())

    def _fetch(self, offset: int, length: int) -> Bytes:
        return view(self._file.read_at(length, offset))
