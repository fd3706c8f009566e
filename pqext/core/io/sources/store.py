"""Stores, and the files in them: what opens, lists and writes a file of one kind of file system each."""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pqext.core.base.lru import LRU
from pqext.core.io.source import Source
from pqext.core.io.sources.cache import CACHE
from pqext.core.io.sources.upload import Upload

_SMALL = 64 << 10
_LARGE = 256 << 10
"""Requests of fewer bytes tell the latency, those of more the bandwidth."""
_WEIGHT = 0.3
"""The share of the newest request in the mean."""
LEAST_GAP = 64 << 10
MOST_GAP = 8 << 20
FIRST_GAP = 1 << 20
LEAST_TAIL = 32 << 10
MOST_TAIL = 8 << 20
FIRST_TAIL = 512 << 10
_SOON = 5.0
"""Seconds for which a file stays open that was opened to see whether there is one."""
_KEPT = 32
"""Stores that are remembered, with their connections and with what was learned of them."""


class Link:
    """Learned from each request, and shared by the files of a store. Threads may use it at the same time."""

    def __init__(self) -> None:
        self.latency: float | None = None
        """Seconds until an answer begins."""
        self.bandwidth: float | None = None
        """Bytes a second of one request."""
        self._needed: float | None = None
        self._lock = threading.Lock()

    def note(self, length: int, seconds: float) -> None:
        """A request of ``length`` bytes took ``seconds``."""
        with self._lock:
            if length <= _SMALL:
                self.latency = _mean(self.latency, seconds)
            elif length >= _LARGE:
                latency = min(self.latency or 0.0, seconds / 2)
                self.bandwidth = _mean(self.bandwidth, length / max(seconds - latency, 1e-6))

    @property
    def gap(self) -> int:
        """Unwanted bytes that are read as fast as a further request is answered."""
        if self.latency is None or self.bandwidth is None:
            return FIRST_GAP
        return min(max(int(self.latency * self.bandwidth), LEAST_GAP), MOST_GAP)

    def needed(self, length: int) -> None:
        """A file's footer, with the indexes that were read, took its last ``length`` bytes."""
        with self._lock:
            self._needed = max(float(length), 0.75 * (self._needed or 0.0))

    @property
    def tail(self) -> int:
        """The bytes of a file's end that are likely to hold its footer and indexes."""
        if self._needed is None:
            return FIRST_TAIL
        return min(max(int(1.25 * self._needed), LEAST_TAIL), MOST_TAIL)


def _mean(before: float | None, now: float) -> float:
    return now if before is None else before + _WEIGHT * (now - before)


@dataclass(frozen=True, slots=True)
class Listed:
    """What the listing of a folder tells of a file, ``None`` where it does not."""

    path: str
    size: int | None = None
    modified_ms: int | None = None
    """When it was written, in milliseconds since 1970."""
    etag: str | None = None
    """What the store calls the version."""


class Store(ABC):
    """One file system with its credentials. Equal ones are one store: see :func:`remembered`.

    ``number`` is never given twice, and ``secrets`` are texts that no message may hold.
    """

    _numbers = itertools.count()

    def __init__(self, secrets: frozenset[str] = frozenset()) -> None:
        self.secrets = secrets
        self.link = Link()
        self.number = next(self._numbers)

    def arguments(self) -> tuple[Any, ...]:
        """Arguments of the constructor, for pickling: the first is the file system, by which stores are remembered."""
        raise TypeError(f"a {type(self).__name__} cannot be pickled")

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.arguments())

    has_folders = True
    """Can the files below a folder be listed?"""

    @abstractmethod
    def name(self, path: str) -> str:
        """The URL of a path, as messages show it."""

    @abstractmethod
    def open(self, path: str, name: str) -> Source:
        """The file at ``path``. Raises ``FileNotFoundError``, ``PermissionError`` or ``SourceError`` with ``name``."""

    @abstractmethod
    def files(self, path: str) -> list[Listed]:
        """All files below the folder at ``path``, at any depth; none where there is no folder."""

    @abstractmethod
    def create(self, path: str, name: str) -> Upload:
        """What writes the file at ``path``, which appears when it is whole."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Delete the file at ``path``. Nothing happens where there is none."""


@dataclass
class Location:
    """A file or folder of a store, where it has the ``key``, parts separated by ``/``; ``path`` is its URL in messages.
    """

    store: Store = field(repr=False)
    key: str = field(repr=False)
    path: str
    listed: Listed | None = field(default=None, repr=False, compare=False)
    """What the listing told that found the file; None for one that was named."""
    _opened: Source | None = field(default=None, repr=False, compare=False)
    _opened_at: float = field(default=0.0, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Location, (self.store, self.key, self.path, self.listed)  # a copy opens the file itself

    def open(self) -> Source:
        """Open the file; the caller closes it. Raises as :meth:`Store.open` does."""
        opened, self._opened = self._opened, None
        if opened is not None and time.monotonic() - self._opened_at < _SOON:
            return opened
        return self.store.open(self.key, self.path)

    def is_file(self) -> bool:
        """Is there a file? It is opened for that, and :meth:`open` gives it without a further request soon after."""
        if self.store.has_folders and (self.key.endswith("/") or not self.key):
            return False
        if self._opened is None:
            try:
                self._opened, self._opened_at = self.store.open(self.key, self.path), time.monotonic()
            except (FileNotFoundError, IsADirectoryError):
                return False
        return True

    def at(self, key: str, listed: Listed | None = None) -> Location:
        """Another file or folder of the store."""
        return Location(self.store, key, self.store.name(key), listed)

    def files(self) -> list[Location]:
        """All files below the folder, at any depth, hidden ones too, sorted by key; none where there is no folder."""
        found = self.store.files(self.key) if self.store.has_folders else []
        inside = self.key.rstrip("/") + "/" if self.key.strip("/") else self.key
        found.sort(key=lambda one: one.path)
        return [self.at(one.path, one) for one in found if one.path.startswith(inside)]

    def create(self) -> Upload:
        """What writes the file."""
        return self.store.create(self.key, self.path)

    def remove(self) -> None:
        """Delete the file, if it is there."""
        self.store.remove(self.key)
        self.changed()

    def changed(self) -> None:
        """The file was written: what was kept of the one before is forgotten."""
        CACHE.forget((self.store.number, self.key))

    def __str__(self) -> str:
        return self.path


_stores: LRU[int, tuple[Any, Store]] = LRU(_KEPT)


def remembered(key: Any, make: Callable[[], Store]) -> Store:
    """The store of ``key``, a file system or what one is made of; made once as long as it is used."""
    for known, store in _stores.values():
        if known is key or (type(known) is type(key) and known == key):
            _stores.get(store.number)  # which is used again
            return store
    store = make()
    _stores.put(store.number, (key, store))
    return store


def _restored(kind: type[Store], arguments: tuple[Any, ...]) -> Store:
    """Return the store that was pickled, or the one that is already in use for its file system."""
    return remembered(arguments[0], lambda: kind(*arguments))


def forget_stores() -> None:
    """Close what was remembered, so that the next file is reached by new connections."""
    _stores.clear()
