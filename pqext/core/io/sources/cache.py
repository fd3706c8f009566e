"""Bytes of footers and indexes that were fetched from remote files, kept for the next time the file is opened."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator

from pqext.core.base.buffers import Bytes
from pqext.core.base.lru import LRU

CACHE_BYTES = 64 << 20
_ENTRY = 1 << 10
"""What a file costs in memory without its bytes, about."""

FileKey = tuple[int, str]
"""The number of a store, and a path in it."""
Version = tuple[str, int]
"""What shows that a file is still the one it was, and its size."""


class KeptBytes:
    """Ranges of one version of a file, which do not overlap."""

    def __init__(self) -> None:
        self.size = 0
        self._starts: list[int] = []
        self._parts: list[Bytes] = []
        self._lock = threading.Lock()

    def add(self, start: int, data: Bytes) -> None:
        """Keep ``data``, the bytes from ``start`` on, as far as they are not kept."""
        for first, last, held in [*self.pieces(start, start + len(data))]:
            if held is None:
                part = data[first - start : last - start]
                with self._lock:
                    at = bisect_right(self._starts, first)
                    if at < len(self._starts) and self._starts[at] < last:
                        continue  # another thread has fetched it meanwhile
                    if at and self._starts[at - 1] + len(self._parts[at - 1]) > first:
                        continue
                    self._starts.insert(at, first)
                    self._parts.insert(at, part)
                    self.size += len(part)

    def parts(self, start: int = 0) -> list[tuple[int, Bytes]]:
        """What is kept from ``start`` on, by where it begins; a copy where it is a part of more."""
        with self._lock:
            found = [*zip(self._starts, self._parts, strict=True)]
        return [
            (begin, part) if begin >= start else (start, part[start - begin :].copy())
            for begin, part in found
            if begin + len(part) > start
        ]

    def reaching(self, stop: int) -> int:
        """Where the bytes begin that are kept up to ``stop`` without a gap."""
        with self._lock:
            for start, part in zip(reversed(self._starts), reversed(self._parts), strict=True):
                if start + len(part) < stop:
                    break
                stop = start
        return stop

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, Bytes | None]]:
        """The range from ``start`` to ``stop`` in pieces, each with its bytes, or None where they are not kept."""
        with self._lock:
            at = max(bisect_right(self._starts, start) - 1, 0)
            known = []
            while at < len(self._starts) and self._starts[at] < stop:
                known.append((self._starts[at], self._parts[at]))
                at += 1
        for begin, part in known:
            end = begin + len(part)
            if end <= start:
                continue
            if begin > start:
                yield start, begin, None
                start = begin
            last = min(end, stop)
            yield start, last, part[start - begin : last - begin]
            start = last
        if start < stop:
            yield start, stop, None


class MetadataCache:
    """What was kept of the files that were opened last, ``limit`` bytes at most. Threads may share it."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._files: LRU[FileKey, tuple[Version, KeptBytes]] = LRU(limit)

    def kept(self, file: FileKey, version: Version) -> KeptBytes:
        """What is known of this version of a file; what was kept of another one is forgotten."""
        found = self._files.get(file)
        if found is None or found[0] != version:
            found = version, KeptBytes()
            self._files.put(file, found, _ENTRY)
        return found[1]

    def latest(self, file: FileKey) -> Version | None:
        """The version of a file of which something is kept."""
        found = self._files.get(file)
        return found[0] if found is not None and found[1].size else None

    def forget(self, file: FileKey) -> None:
        """Forget a file that was written or has changed."""
        self._files.remove(file)

    def settle(self, file: FileKey) -> None:
        """Where what was added to a file is too much, forget the files that were not opened for the longest time."""
        found = self._files.get(file)
        if found is not None:
            self._files.weigh(file, found[1].size + _ENTRY)

    @property
    def held_bytes(self) -> int:
        """Bytes that are kept."""
        return sum(kept.size for _, kept in self._files.values())

    @property
    def limit(self) -> int:
        """Bytes that are kept at most."""
        return self._files.limit

    @limit.setter
    def limit(self, size: int) -> None:
        self._files.limit = size

    def clear(self) -> None:
        """Forget all files."""
        self._files.clear()


CACHE = MetadataCache()
"""The one that all files share."""
_others: list[Callable[[], None]] = []


def when_cleared(forget: Callable[[], None]) -> None:
    """Have ``forget`` called whenever what is kept is forgotten."""
    _others.append(forget)


def clear_cache() -> None:
    """Forget what was kept of the footers and indexes of remote files.

    Bytes of footers, page indexes and Bloom filters that were fetched are kept, 64 MiB of them, so that the file need
    not be asked for them when it is opened again. They are used only while the file has the same size and the same
    etag, or the same modification time where the store has no etag. Of files of the local file system and in memory
    it is kept where the structures of a long footer lie, which counts only for the very same bytes. Pages of data are
    never kept.

    >>> import pqext
    >>> pqext.clear_cache()
    """
    CACHE.clear()
    for forget in _others:
        forget()


def set_cache_bytes(size: int) -> int:
    """Keep at most ``size`` bytes of the footers and indexes of remote files, none for 0; returns the limit before.

    See :func:`clear_cache` for what is kept. Raises ``ValueError`` for a negative size.

    >>> import pqext
    >>> before = pqext.set_cache_bytes(0)
    >>> pqext.set_cache_bytes(before)
    0
    """
    if size < 0:
        raise ValueError(f"the cache holds 0 bytes or more, not {size}")
    before, CACHE.limit = CACHE.limit, size
    if size < before:
        for forget in _others:
            forget()
    return before
