"""Reading a file by requests: near ranges in one, several at a time, again after a fault, and of one version only."""

from __future__ import annotations

import os
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import ChangedFileError, SourceError
from pqext.core.base.suggestions import excerpt
from pqext.core.io.source import Range, Source
from pqext.core.io.sources.cache import CACHE, KeptBytes
from pqext.core.io.sources.faults import AnswerError, cause_of, fault_of
from pqext.core.io.sources.secrets import scrubbed
from pqext.core.io.sources.store import Store

REQUEST_BYTES = 8 << 20
"""A request asks for so many bytes at most."""
IN_FLIGHT = 16
"""Requests that are under way at the same time, of all files."""
ATTEMPTS = 4
BACKOFF = 0.1
"""Seconds before the second attempt, about; twice as many before each that follows."""

_FRESH = 5.0
"""Seconds within which a file may change again without a change of the time that its store tells."""

_END_BYTES = 1 << 20
_ENDS_BYTES = 16 << 20
"""Of each fetched range so many bytes of its end are held for a while, so many together."""

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _threads() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(IN_FLIGHT, "pqext-fetch")
        return _pool


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def persistent(store: Store, name: str, what: str, attempt: Callable[[int], Any], opening: bool = False) -> Any:
    """What ``attempt`` gives, which is told how many attempts failed before it; faults that may pass are waited for.

    Raises ``SourceError`` with ``what`` was asked for; where the file is missing ``ChangedFileError``, and if that is
    so at its ``opening``, ``FileNotFoundError`` or ``PermissionError``.
    """
    for failed in range(ATTEMPTS):
        try:
            return attempt(failed)
        except SourceError:
            raise
        except (TypeError, AttributeError, MemoryError):
            raise
        except Exception as error:
            kind = fault_of(error)
            text = scrubbed(error, store.secrets) + cause_of(error)
        if kind == "missing":
            if opening:
                raise FileNotFoundError(2, "there is no such file, or it may not be seen", name)
            raise ChangedFileError(f"the file was removed while it was read: {what}: {text}", path=name)
        if kind == "denied" and opening:
            raise PermissionError(13, f"the store refuses access ({text})", name)
        if kind != "transient" or failed + 1 == ATTEMPTS:
            tried = "" if failed == 0 else f" in {failed + 1} attempts"
            raise SourceError(f"{what} could not be fetched{tried}: {text}", path=name)
        from random import uniform

        time.sleep(BACKOFF * 2**failed * uniform(0.5, 1.5))
    raise AssertionError


@dataclass(frozen=True)
class Version:
    """What tells one version of a file from another: an etag, or the time when it was modified."""

    text: str
    is_certain: bool = True
    """Does every change show? It may not in a time that was the present one when it was asked for."""

    @staticmethod
    def at(modified: float, text: str) -> Version:
        """The version of a file that was ``modified`` so many seconds after 1970."""
        return Version(f"modified {text}", time.time() - modified > _FRESH)

    def __str__(self) -> str:
        return self.text


class RemoteSource(Source):
    """A file of a store. ``version`` is what it must stay at while it is open, where the store tells it.

    The bytes of its footer and indexes are kept, and those of them that belong to this version shared by the cache.
    """

    is_remote = True
    answers_tell = False
    """Does each answer tell which version of the file it is of?"""
    window_bytes = REQUEST_BYTES

    def __init__(self, store: Store, path: str, name: str, size: int, version: Version | None) -> None:
        super().__init__(name, size)
        self.version = version
        self._store = store
        self._path = path
        self.merge_gap = store.link.gap
        self.tail_bytes = store.link.tail
        self._kept = KeptBytes()
        self._is_looked_at = False
        self._ends: deque[tuple[int, Bytes]] = deque()
        self._end_bytes = 0
        self._shared: KeptBytes | None = None
        if version is not None and version.is_certain:
            self._shared = CACHE.kept((store.number, path), (version.text, size))
            for at, part in self._shared.parts():
                self._kept.add(at, part)
            known = size - self._kept.reaching(size)
            self.tail_bytes = known or self.tail_bytes

    @abstractmethod
    def _request(self, offset: int, length: int, failed: int) -> Any:
        """The ``length`` bytes at ``offset`` by one request, after ``failed`` attempts.

        Raises ``ChangedFileError`` by :meth:`changed` where the answer shows that the file is another one.
        """

    def _look(self) -> None:
        """Raise ``ChangedFileError`` unless the file is still the one it was: where the answers do not tell."""

    def changed(self, now: object) -> ChangedFileError:
        """The error for a file that was replaced."""
        CACHE.forget((self._store.number, self._path))
        return ChangedFileError(
            f"the file was replaced while it was read: it was {excerpt(str(self.version))} with {self.size} bytes "
            f"and is now {excerpt(str(now))}: read it again",
            path=self.path,
        )

    def _fetch_all(self, ranges: Sequence[Range], keep: bool) -> list[Bytes]:
        """The bytes of ``ranges``, those that are not kept by requests of which several are under way at once."""
        plans = [[*self._pieces(offset, offset + length)] for offset, length in ranges]
        missing = [
            (first, min(REQUEST_BYTES, last - first))
            for pieces in plans
            for start, last, held in pieces
            if held is None
            for first in range(start, last, REQUEST_BYTES)
        ]
        fetched = dict(zip(missing, self._get(missing), strict=True))
        results = []
        for (offset, length), pieces in zip(ranges, plans, strict=True):
            parts: list[tuple[int, Bytes]] = []
            for start, last, held in pieces:
                if held is not None:
                    parts.append((start, held))
                    continue
                for first in range(start, last, REQUEST_BYTES):
                    part = fetched[first, min(REQUEST_BYTES, last - first)]
                    parts.append((first, part))
                    if keep:
                        self._kept.add(first, part)
            results.append(_joined(offset, length, parts))
        return results

    def _pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Bytes | None]]:
        """A range in pieces, each with its bytes where they are kept or were the end of what was fetched lately.

        A page at the end of a window of rows is read again with the next window.
        """
        for first, last, held in self._kept.pieces(start, stop):
            if held is None:
                with self._lock:
                    ends = [(at, part) for at, part in self._ends if at <= first < at + len(part)]
                if ends:
                    at, part = max(ends, key=lambda end: end[0] + len(end[1]))
                    upto = min(last, at + len(part))
                    yield first, upto, part[first - at : upto - at]
                    first = upto
            if first < last:
                yield first, last, held

    def _remember_end(self, offset: int, data: Bytes) -> None:
        size = min(len(data), _END_BYTES)
        end = data if size == len(data) else data[-size:].copy()
        with self._lock:
            self._ends.append((offset + len(data) - size, end))
            self._end_bytes += size
            while self._end_bytes > _ENDS_BYTES:
                self._end_bytes -= len(self._ends.popleft()[1])

    def _get(self, ranges: Sequence[Range]) -> list[Bytes]:
        if not ranges:
            return []
        looked: Future[None] | None = None
        before: Sequence[tuple[int, Bytes]] = ()
        if not self.answers_tell:
            if self._is_looked_at:
                before = self._kept.parts(self.metadata_start)
                looked = _threads().submit(self._look)
            self._is_looked_at = True  # at first it has just been opened
        if len(ranges) == 1:
            found = [self._part(*ranges[0])]
        else:
            futures = [_threads().submit(self._part, offset, length) for offset, length in ranges]
            try:
                found = [future.result() for future in futures]
            finally:
                for future in futures:
                    future.cancel()
        if looked is not None:
            looked.result()
            self._share(before)
        self.merge_gap = self._store.link.gap
        return found

    def _part(self, offset: int, length: int) -> Bytes:
        def attempt(failed: int) -> Bytes:
            start, data = time.perf_counter(), EMPTY
            try:
                data = view(self._request(offset, length, failed))
            finally:
                self.usage.add_fetch(len(data), time.perf_counter() - start)
            if len(data) != length:
                raise AnswerError(f"the answer has {len(data)} bytes", again=len(data) < length)
            self._store.link.note(length, time.perf_counter() - start)
            return data

        try:
            found: Bytes = persistent(self._store, self.path or "", f"{length} bytes at {offset}", attempt)
        except SourceError as error:
            error.locate(offset=offset)
            raise
        found.flags.writeable = False
        self._remember_end(offset, found)
        return found

    def _fetch(self, offset: int, length: int) -> Bytes:
        raise NotImplementedError  # all goes through _fetch_all

    @property
    def _merged_bytes(self) -> int:
        return REQUEST_BYTES

    def learn(self, start: int) -> None:
        """The footer, or an index that was read, begins at ``start``: the next file's end is fetched from there.

        What is known of the file from there on is shared, once it is certain that it is of the version that it should
        be of: where answers do not tell that, once the file was looked at afterwards.
        """
        super().learn(start)
        self._store.link.needed(self.size - self.metadata_start)
        if self.answers_tell:
            self._share(self._kept.parts(start))

    def _share(self, parts: Sequence[tuple[int, Bytes]]) -> None:
        if self._shared is not None:
            for at, part in parts:
                self._shared.add(at, part)
            CACHE.settle((self._store.number, self._path))


def _joined(offset: int, length: int, parts: Sequence[tuple[int, Bytes]]) -> Bytes:
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0][1]
    whole = allocate(length)
    for start, part in parts:
        whole[start - offset : start - offset + len(part)] = part
    whole.flags.writeable = False
    return whole
