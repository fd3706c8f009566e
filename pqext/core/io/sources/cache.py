"""Cache footer and index bytes of remote files, so that opening a file again does not fetch them."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator

from pqext.core.base.buffers import Bytes
from pqext.core.base.lru import LRU

CACHE_BYTES = 64 << 20
_ENTRY = 1 << 10
"""Approximate memory of a file's entry in addition to its bytes."""

FileKey = tuple[int, str]
"""Number of a store, and path of a file in it."""
Version = tuple[str, int]
"""Version text and size of a file."""


class CachedRanges:
    """Non-overlapping byte ranges of one version of a file."""

    def __init__(self) -> None:
        self.size = 0
        self._starts: list[int] = []
        self._contents: list[Bytes] = []
        self._lock = threading.Lock()

    def add(self, start: int, data: Bytes) -> None:
        """Cache the bytes of ``data`` that are not cached yet. ``data`` begins at offset ``start``."""
        for first, last, cached in [*self.segments(start, start + len(data))]:
            if cached is None:
                content = data[first - start : last - start]
                with self._lock:
                    at = bisect_right(self._starts, first)
                    if at < len(self._starts) and self._starts[at] < last:
                        continue  # another thread has fetched it in the meantime
                    if at and self._starts[at - 1] + len(self._contents[at - 1]) > first:
                        continue
                    self._starts.insert(at, first)
                    self._contents.insert(at, content)
                    self.size += len(content)

    def ranges_from(self, start: int = 0) -> list[tuple[int, Bytes]]:
        """Return the offset and bytes of each cached range that ends after offset ``start``.

        If a range begins before ``start``, the result contains a copy of its bytes from ``start``.
        """
        with self._lock:
            ranges = [*zip(self._starts, self._contents, strict=True)]
        return [
            (begin, content) if begin >= start else (start, content[start - begin :].copy())
            for begin, content in ranges
            if begin + len(content) > start
        ]

    def contiguous_start(self, stop: int) -> int:
        """Return the start of the cached bytes that extend to ``stop`` without a gap, or ``stop`` if there are none."""
        with self._lock:
            for start, content in zip(reversed(self._starts), reversed(self._contents), strict=True):
                if start + len(content) < stop:
                    break
                stop = start
        return stop

    def segments(self, start: int, stop: int) -> Iterator[tuple[int, int, Bytes | None]]:
        """Yield the start, end and bytes of each segment of a range; the bytes are None if they are not cached."""
        with self._lock:
            at = max(bisect_right(self._starts, start) - 1, 0)
            overlapping = []
            while at < len(self._starts) and self._starts[at] < stop:
                overlapping.append((self._starts[at], self._contents[at]))
                at += 1
        for begin, content in overlapping:
            end = begin + len(content)
            if end <= start:
                continue
            if begin > start:
                yield start, begin, None
                start = begin
            last = min(end, stop)
            yield start, last, content[start - begin : last - begin]
            start = last
        if start < stop:
            yield start, stop, None


class MetadataCache:
    """Cache of byte ranges of the most recently opened files. It contains at most ``limit`` bytes and is thread-safe.
    """

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._files: LRU[FileKey, tuple[Version, CachedRanges]] = LRU(limit)

    def ranges(self, file: FileKey, version: Version) -> CachedRanges:
        """Return the cached ranges of this version of a file. Cached ranges of other versions of the file are removed.
        """
        entry = self._files.get(file)
        if entry is None or entry[0] != version:
            entry = version, CachedRanges()
            self._files.put(file, entry, _ENTRY)
        return entry[1]

    def latest_version(self, file: FileKey) -> Version | None:
        """Return the version of a file whose bytes are cached; None if the cache contains no bytes of the file."""
        entry = self._files.get(file)
        return entry[0] if entry is not None and entry[1].size else None

    def remove(self, file: FileKey) -> None:
        """Remove the bytes of a file from the cache, because the file was written or has changed."""
        self._files.remove(file)

    def update_size(self, file: FileKey) -> None:
        """Update the cached size of a file after bytes were added.

        The least recently opened files are evicted if necessary.
        """
        entry = self._files.get(file)
        if entry is not None:
            self._files.weigh(file, entry[1].size + _ENTRY)

    @property
    def cached_bytes(self) -> int:
        """Number of cached bytes."""
        return sum(ranges.size for _, ranges in self._files.values())

    @property
    def limit(self) -> int:
        """Maximum number of cached bytes."""
        return self._files.limit

    @limit.setter
    def limit(self, size: int) -> None:
        self._files.limit = size

    def clear(self) -> None:
        """Remove the bytes of all files."""
        self._files.clear()


CACHE = MetadataCache()
"""Cache that all files share."""
_callbacks: list[Callable[[], None]] = []


def on_clear(callback: Callable[[], None]) -> None:
    """Register a callback that is called when the cache is cleared or its limit is reduced."""
    _callbacks.append(callback)


def clear_cache() -> None:
    """Clear the in-memory cache of remote footers and indexes.

    pqext caches up to 64 MiB of fetched footers, page indexes and Bloom filters, so that a remote file can be opened
    again without fetching them. Cached bytes are used only if the file has the same size and etag, or the same
    modification time if the store has no etags. For local files, the positions of structures in long footers are
    cached. They are used only for identical bytes. Data pages are never cached.

    Example:
        >>> import pqext
        >>> pqext.clear_cache()
    """
    CACHE.clear()
    for callback in _callbacks:
        callback()


def set_cache_bytes(size: int) -> int:
    """Set the maximum size of the cache of remote footers and indexes. See :func:`clear_cache`.

    Args:
        size: Maximum number of cached bytes; 0 disables the cache.

    Returns:
        The previous limit.

    Raises:
        ValueError: If ``size`` is negative.

    Example:
        >>> import pqext
        >>> before = pqext.set_cache_bytes(0)
        >>> pqext.set_cache_bytes(before)
        0
    """
    if size < 0:
        raise ValueError(f"cache size must be non-negative, not {size}")
    before, CACHE.limit = CACHE.limit, size
    if size < before:
        for callback in _callbacks:
            callback()
    return before
