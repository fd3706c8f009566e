"""Read remote files with merged, concurrent requests and retries, and detect changes of a file."""

from __future__ import annotations

import logging
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
from pqext.core.io.sources.cache import CACHE, CachedRanges
from pqext.core.io.sources.store import Store
from pqext.core.io.sources.store_errors import ResponseError, classify_error, describe_cause, redact_error

REQUEST_BYTES = 8 << 20
"""Maximum size of a request in bytes."""
IN_FLIGHT = 16
"""Maximum number of concurrent requests for all files."""
ATTEMPTS = 4
BACKOFF = 0.1
"""Approximate delay in seconds before the second attempt. It doubles before each further attempt."""

_FRESH = 5.0
"""Number of seconds within which a file may change again without changing its modification time."""

_END_BYTES = 1 << 20
_ENDS_BYTES = 16 << 20
"""Maximum number of bytes retained from the ends of all fetched ranges.

``_END_BYTES`` is the maximum for each range.
"""

_logger = logging.getLogger(__name__)
_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def _get_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(IN_FLIGHT, "pqext-fetch")
        return _pool


def _reset_after_fork() -> None:
    """Drop the pool in a forked child, because the threads of the parent do not exist there."""
    global _pool, _pool_lock
    _pool, _pool_lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def call_with_retries(
    store: Store, name: str, subject: str, attempt: Callable[[int], Any], is_opening: bool = False
) -> Any:
    """Call ``attempt`` with the number of failed attempts and return its result. Transient errors are retried.

    Raises a ``SourceError`` that names the requested ``subject``, or ``ChangedFileError`` if the file is missing. With
    ``is_opening``, raises ``FileNotFoundError`` if the file is missing, and ``PermissionError`` if access is denied.
    """
    for failed in range(ATTEMPTS):
        try:
            return attempt(failed)
        except SourceError:
            raise
        except (TypeError, AttributeError, MemoryError):
            raise
        except Exception as error:
            category = classify_error(error)
            text = redact_error(error, store.secrets) + describe_cause(error)
        if category == "missing":
            if is_opening:
                raise FileNotFoundError(2, "file not found, or no permission to access it", name)
            raise ChangedFileError(f"the file was removed while it was read: {subject}: {text}", path=name)
        if category == "denied" and is_opening:
            raise PermissionError(13, f"the store denies access ({text})", name)
        if category != "transient" or failed + 1 == ATTEMPTS:
            attempts = "" if failed == 0 else f" in {failed + 1} attempts"
            raise SourceError(f"{subject} could not be fetched{attempts}: {text}", path=name)
        from random import uniform

        pause = BACKOFF * 2**failed * uniform(0.5, 1.5)
        _logger.info("retry %d of %d in %.2f s: %s of %s: %s", failed + 1, ATTEMPTS - 1, pause, subject, name, text)
        time.sleep(pause)
    raise AssertionError


@dataclass(frozen=True)
class Version:
    """Version of a file: an etag, or the modification time."""

    text: str
    is_certain: bool = True
    """Whether every change of the file changes the version. This is uncertain if the modification time was recent."""

    @staticmethod
    def from_timestamp(mtime: float, text: str) -> Version:
        """Return the version of a file that was modified ``mtime`` seconds after 1970. ``text`` describes the time."""
        return Version(f"modified {text}", time.time() - mtime > _FRESH)

    def __str__(self) -> str:
        return self.text


class RemoteSource(Source):
    """File of a store. If the store reports versions, the ``version`` of the file must not change while it is open.

    The bytes of its footer and indexes are cached. Bytes that certainly belong to this version are shared with other
    sources that open the file.
    """

    is_remote = True
    has_response_versions = False
    """Whether each response contains the version of the file."""
    window_bytes = REQUEST_BYTES

    def __init__(self, store: Store, path: str, name: str, size: int, version: Version | None) -> None:
        super().__init__(name, size)
        self.version = version
        self._store = store
        self._path = path
        self.merge_gap = store.link.gap
        self.tail_bytes = store.link.tail
        self._cached = CachedRanges()
        self._was_read = False
        self._ends: deque[tuple[int, Bytes]] = deque()
        self._end_bytes = 0
        self._shared: CachedRanges | None = None
        if version is not None and version.is_certain:
            self._shared = CACHE.ranges((store.number, path), (version.text, size))
            for at, part in self._shared.ranges_from():
                self._cached.add(at, part)
            cached_tail = size - self._cached.contiguous_start(size)
            _logger.debug("%d bytes of metadata are cached of %s", self._cached.size, name)
            self.tail_bytes = cached_tail or self.tail_bytes

    @abstractmethod
    def _request(self, offset: int, length: int, failed_attempts: int) -> Any:
        """Fetch ``length`` bytes at ``offset`` with one request. ``failed_attempts`` counts previous attempts.

        Raises :meth:`changed_error` if the response shows that the file was replaced.
        """

    def _check_version(self) -> None:
        """Raise ``ChangedFileError`` if the file has changed. Called if responses do not contain the version."""

    def changed_error(self, now: object) -> ChangedFileError:
        """Create the error for a file that was replaced. ``now`` describes its current version."""
        CACHE.remove((self._store.number, self._path))
        return ChangedFileError(
            f"the file was replaced while it was read: it was {excerpt(str(self.version))} with {self.size} bytes "
            f"and is now {excerpt(str(now))}; read it again",
            path=self.path,
        )

    def _fetch_all(self, ranges: Sequence[Range], is_metadata: bool) -> list[Bytes]:
        """Fetch ``ranges`` with concurrent requests, except for cached bytes."""
        plans = [[*self._segments(offset, offset + length)] for offset, length in ranges]
        missing = [
            (first, min(REQUEST_BYTES, last - first))
            for segments in plans
            for start, last, cached in segments
            if cached is None
            for first in range(start, last, REQUEST_BYTES)
        ]
        fetched = dict(zip(missing, self._get(missing), strict=True))
        results = []
        for (offset, length), segments in zip(ranges, plans, strict=True):
            parts: list[tuple[int, Bytes]] = []
            for start, last, cached in segments:
                if cached is not None:
                    parts.append((start, cached))
                    continue
                for first in range(start, last, REQUEST_BYTES):
                    part = fetched[first, min(REQUEST_BYTES, last - first)]
                    parts.append((first, part))
                    if is_metadata:
                        self._cached.add(first, part)
            results.append(_join(offset, length, parts))
        return results

    def _segments(self, start: int, stop: int) -> Iterator[tuple[int, int, Bytes | None]]:
        """Yield the start, end and bytes of each segment of a range; the bytes are None if they must be fetched.

        Cached metadata and the
        ends of recently fetched ranges are in memory. These ends are retained because a page at the end of a window of
        rows is read again with the next window.
        """
        for first, last, cached in self._cached.segments(start, stop):
            if cached is None:
                with self._lock:
                    ends = [(at, part) for at, part in self._ends if at <= first < at + len(part)]
                if ends:
                    at, part = max(ends, key=lambda end: end[0] + len(end[1]))
                    upto = min(last, at + len(part))
                    yield first, upto, part[first - at : upto - at]
                    first = upto
            if first < last:
                yield first, last, cached

    def _add_end(self, offset: int, data: Bytes) -> None:
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
        check: Future[None] | None = None
        before: Sequence[tuple[int, Bytes]] = ()
        if not self.has_response_versions:
            if self._was_read:
                before = self._cached.ranges_from(self.metadata_start)
                check = _get_pool().submit(self._check_version)
            self._was_read = True  # the first read follows the opening immediately
        if len(ranges) == 1:
            results = [self._get_range(*ranges[0])]
        else:
            futures = [_get_pool().submit(self._get_range, offset, length) for offset, length in ranges]
            try:
                results = [future.result() for future in futures]
            finally:
                for future in futures:
                    future.cancel()
        if check is not None:
            check.result()
            self._share(before)
        self.merge_gap = self._store.link.gap
        return results

    def _get_range(self, offset: int, length: int) -> Bytes:
        def attempt(failed_attempts: int) -> Bytes:
            start, data = time.perf_counter(), EMPTY
            try:
                data = view(self._request(offset, length, failed_attempts))
            finally:
                self.usage.add_fetch(len(data), time.perf_counter() - start)
            if len(data) != length:
                raise ResponseError(
                    f"the response has {len(data)} bytes instead of {length}", is_retryable=len(data) < length
                )
            self._store.link.add_request(length, time.perf_counter() - start)
            return data

        try:
            data: Bytes = call_with_retries(self._store, self.path or "", f"{length} bytes at {offset}", attempt)
        except SourceError as error:
            error.locate(offset=offset)
            raise
        data.flags.writeable = False
        self._add_end(offset, data)
        return data

    def _fetch(self, offset: int, length: int) -> Bytes:
        raise NotImplementedError  # _fetch_all is overridden

    @property
    def _merged_bytes(self) -> int:
        return REQUEST_BYTES

    def add_metadata(self, start: int) -> None:
        """Record that the footer or an index starts at ``start``.

        The store uses the distance to the end of the file to choose how many bytes are fetched when files are opened.

        The cached bytes after ``start`` are shared as soon as they certainly belong to this version of the file. If
        responses do not contain the version, this is after the version was checked.
        """
        super().add_metadata(start)
        self._store.link.add_tail(self.size - self.metadata_start)
        if self.has_response_versions:
            self._share(self._cached.ranges_from(start))

    def _share(self, ranges: Sequence[tuple[int, Bytes]]) -> None:
        if self._shared is not None:
            for start, content in ranges:
                self._shared.add(start, content)
            CACHE.update_size((self._store.number, self._path))


def _join(offset: int, length: int, ranges: Sequence[tuple[int, Bytes]]) -> Bytes:
    if not ranges:
        return EMPTY
    if len(ranges) == 1:
        return ranges[0][1]
    data = allocate(length)
    for start, part in ranges:
        data[start - offset : start - offset + len(part)] = part
    data.flags.writeable = False
    return data
