"""Common interface of stores: open, list and write files."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from pqext.core.base.lru import LRU
from pqext.core.io.source import Source
from pqext.core.io.sources.cache import CACHE

_SMALL = 64 << 10
_LARGE = 256 << 10
"""Minimum size of requests that measure the bandwidth. Requests up to ``_SMALL`` measure the latency."""
_WEIGHT = 0.3
"""Weight of the newest request in the moving average."""
LEAST_GAP = 64 << 10
MOST_GAP = 8 << 20
FIRST_GAP = 1 << 20
LEAST_TAIL = 32 << 10
MOST_TAIL = 8 << 20
FIRST_TAIL = 512 << 10
_REOPEN_SECONDS = 5.0
"""Number of seconds that a file stays open after a check whether it exists."""
_MAX_STORES = 32
"""Maximum number of stores that are cached, with their connections and link statistics."""
_BUFFER_BYTES = 1 << 20
"""Maximum size up to which small writes are buffered."""


class Link:
    """Measured latency and bandwidth of a store, shared by its files. Several threads can use it."""

    def __init__(self) -> None:
        self.latency: float | None = None
        """Seconds until a response begins."""
        self.bandwidth: float | None = None
        """Bytes per second of one request."""
        self._tail: float | None = None
        self._lock = threading.Lock()

    def add_request(self, length: int, seconds: float) -> None:
        """Record that a request of ``length`` bytes took ``seconds``."""
        with self._lock:
            if length <= _SMALL:
                self.latency = _mean(self.latency, seconds)
            elif length >= _LARGE:
                latency = min(self.latency or 0.0, seconds / 2)
                self.bandwidth = _mean(self.bandwidth, length / max(seconds - latency, 1e-6))

    @property
    def gap(self) -> int:
        """Number of bytes that can be read in the time of an additional request."""
        if self.latency is None or self.bandwidth is None:
            return FIRST_GAP
        return min(max(int(self.latency * self.bandwidth), LEAST_GAP), MOST_GAP)

    def add_tail(self, length: int) -> None:
        """Record that the footer and the indexes of a file occupy its last ``length`` bytes."""
        with self._lock:
            self._tail = max(float(length), 0.75 * (self._tail or 0.0))

    @property
    def tail(self) -> int:
        """Number of bytes at the end of a file that probably contain its footer and indexes."""
        if self._tail is None:
            return FIRST_TAIL
        return min(max(int(1.25 * self._tail), LEAST_TAIL), MOST_TAIL)


def _mean(mean: float | None, now: float) -> float:
    return now if mean is None else mean + _WEIGHT * (now - mean)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """File in the listing of a folder. Fields that are missing from the listing are None."""

    path: str
    size: int | None = None
    modified_ms: int | None = None
    """Modification time in milliseconds since 1970."""
    etag: str | None = None


class Upload(Protocol):
    """File that is being written to a store and is not visible before ``commit``. ``path`` names it in messages."""

    @property
    def path(self) -> str | None: ...

    def write(self, buffers: Sequence[memoryview]) -> None:
        """Append ``buffers``."""

    def commit(self) -> None:
        """Publish the file, replacing any previous file."""

    def abort(self) -> None:
        """Discard the file. The path keeps its previous content. Never raises."""


def temporary_path(path: str) -> str:
    """Return the path of an unfinished file next to ``path``, which readers of the folder skip."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}.pqext-{os.urandom(8).hex()}.tmp"


class BufferedUpload:
    """Upload with a buffer for small writes. It calls ``on_commit`` after a commit.

    Garbage collection aborts the upload.
    """

    def __init__(self, upload: Upload, on_commit: Callable[[], None]) -> None:
        self.path = upload.path
        self._on_commit = on_commit
        self._upload = upload
        self._buffer = bytearray()
        self._leftover = weakref.finalize(self, _abort, self._upload, os.getpid())

    def write(self, buffers: Sequence[memoryview]) -> None:
        if sum(map(len, buffers)) + len(self._buffer) < _BUFFER_BYTES:
            for buffer in buffers:
                self._buffer += buffer
            return
        pending, self._buffer = memoryview(self._buffer), bytearray()
        self._upload.write([pending, *buffers] if len(pending) else buffers)

    def commit(self) -> None:
        self._upload.write([memoryview(self._buffer)])
        self._upload.commit()
        self._leftover.detach()
        self._on_commit()

    def abort(self) -> None:
        self._buffer = bytearray()
        self._leftover()


def _abort(upload: Upload, process: int) -> None:
    """Abort an upload, except in a forked child process, because the parent process owns the upload."""
    if os.getpid() == process:
        with suppress(Exception):
            upload.abort()


class Store(ABC):
    """File system with credentials. Equal file systems share one store: see :func:`get_store`.

    ``number`` is unique, and ``secrets`` are strings that messages must not contain.
    """

    _numbers = itertools.count()

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        self.secrets = secrets
        self.link = Link()
        self.number = next(self._numbers)

    def arguments(self) -> tuple[Any, ...]:
        """Return the constructor's arguments, for pickling.

        The first argument is the file system, the key of the store.
        """
        raise TypeError(f"a {type(self).__name__} cannot be pickled")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_store, (type(self), self.arguments())

    has_folders = True
    """Whether the files below a folder can be listed."""

    @abstractmethod
    def name(self, path: str) -> str:
        """Return the redacted URL of a path, for messages."""

    @abstractmethod
    def open(self, path: str, name: str) -> Source:
        """Open a file. Raises ``FileNotFoundError``, ``PermissionError`` or ``SourceError``, which contain ``name``."""

    @abstractmethod
    def files(self, path: str) -> list[ListedFile]:
        """Return all files below the folder at ``path``, at any depth. The list is empty if the folder is missing."""

    @abstractmethod
    def create(self, path: str, name: str) -> Upload:
        """Start writing the file at ``path``, which becomes visible when it is committed."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete the file at ``path`` if it exists."""


@dataclass
class Location:
    """File or folder of a store.

    ``key`` is its path in the store, separated by ``/``, and ``path`` its redacted URL.
    """

    store: Store = field(repr=False)
    key: str = field(repr=False)
    path: str
    listed: ListedFile | None = field(default=None, repr=False, compare=False)
    """Entry of the listing that returned the file; None for a file that was passed by name."""
    _opened: Source | None = field(default=None, repr=False, compare=False)
    _opened_at: float = field(default=0.0, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Location, (self.store, self.key, self.path, self.listed)  # an unpickled copy opens the file itself

    def open(self) -> Source:
        """Open the file, which the caller must close. Raises the same errors as :meth:`Store.open`."""
        opened, self._opened = self._opened, None
        if opened is not None and time.monotonic() - self._opened_at < _REOPEN_SECONDS:
            return opened
        return self.store.open(self.key, self.path)

    def is_file(self) -> bool:
        """Return whether the file exists.

        This opens the file, so that a call of :meth:`open` soon after needs no request.
        """
        if self.store.has_folders and (self.key.endswith("/") or not self.key):
            return False
        if self._opened is None:
            try:
                self._opened, self._opened_at = self.store.open(self.key, self.path), time.monotonic()
            except (FileNotFoundError, IsADirectoryError):
                return False
        return True

    def with_key(self, key: str, metadata: ListedFile | None = None) -> Location:
        """Return the location of another file or folder in the same store."""
        return Location(self.store, key, self.store.name(key), metadata)

    def files(self) -> list[Location]:
        """Return all files below the folder, including hidden files, sorted by key.

        The list is empty if the folder is missing.
        """
        files = self.store.files(self.key) if self.store.has_folders else []
        inside = self.key.rstrip("/") + "/" if self.key.strip("/") else self.key
        files.sort(key=lambda file: file.path)
        return [self.with_key(file.path, file) for file in files if file.path.startswith(inside)]

    def create(self) -> Upload:
        """Start writing the file."""
        return self.store.create(self.key, self.path)

    def remove(self) -> None:
        """Delete the file if it exists."""
        self.store.remove(self.key)
        self.invalidate()

    def invalidate(self) -> None:
        """Remove the bytes of the file from the cache after it was written."""
        CACHE.remove((self.store.number, self.key))

    def __str__(self) -> str:
        return self.path


_stores: LRU[int, tuple[Any, Store]] = LRU(_MAX_STORES)


def get_store(key: Any, make: Callable[[], Store]) -> Store:
    """Return the cached store for ``key``, or create it with ``make``. ``key`` is a file system or its arguments."""
    for cached_key, store in _stores.values():
        if cached_key is key or (type(cached_key) is type(key) and cached_key == key):
            _stores.get(store.number)  # mark as used
            return store
    store = make()
    _stores.put(store.number, (key, store))
    return store


def _restore_store(store_type: type[Store], arguments: tuple[Any, ...]) -> Store:
    """Unpickle a store, unless a cached store for an equal file system exists."""
    return get_store(arguments[0], lambda: store_type(*arguments))


def clear_stores() -> None:
    """Drop all cached stores, so that new connections are used from now on."""
    _stores.clear()
