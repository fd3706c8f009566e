"""Least-recently-used cache bounded by the weight of its entries."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_caches: weakref.WeakSet[LRU[Any, Any]] = weakref.WeakSet()


class LRU(Generic[K, V]):
    """Cache of the most recently used values by key, with a total weight of at most ``limit``.

    A value weighs 1 unless :meth:`put` states another weight, such as its size in bytes. With ``keeps_last`` the most
    recently used value stays even if it weighs more than ``limit`` by itself. Threads may share a cache. A child
    process that is forked while another thread uses the cache inherits its entries and does not wait for that thread.

    >>> cache = LRU(2)
    >>> for key in "abc":
    ...     cache.put(key, ord(key))
    >>> cache.get("a"), cache.get("b"), list(cache.values())
    (None, 98, [99, 98])
    """

    def __init__(self, limit: int, *, keeps_last: bool = False) -> None:
        self._limit = limit
        self._least = int(keeps_last)
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.weight = 0
        """Total weight of the values."""
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._entries

    def values(self) -> Iterator[V]:
        """Return an iterator over the current values, least recently used first."""
        with self._lock:
            return iter([value for value, _ in self._entries.values()])

    def get(self, key: K) -> V | None:
        """Return the value of ``key`` and mark it as used; None if the key is not cached."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def get_or_make(self, key: K, make: Callable[[], V], weigh: Callable[[V], int] = lambda _: 1) -> V:
        """Return the value of ``key``. If it is missing, create it with ``make``, and cache it with the weight from
        ``weigh``.

        Errors of ``make`` are not cached. If two threads create the value at the same time, both return the value that
        was stored first.
        """
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return entry[0]
        value = make()
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                return entry[0]
            self._put(key, value, weigh(value))
        return value

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Replace any previous value of ``key`` with ``value``.

        A value heavier than the limit is not stored, unless ``keeps_last`` is set.
        """
        with self._lock:
            self._put(key, value, weight)

    def _put(self, key: K, value: V, weight: int) -> None:
        self._remove(key)
        if weight <= self._limit or self._least:  # a heavier value would only evict the others
            self._entries[key] = value, weight
            self.weight += weight
            self._shrink()

    def weigh(self, key: K, weight: int) -> None:
        """Set the weight of the value of ``key`` if it is still cached."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries[key] = entry[0], weight
                self.weight += weight - entry[1]
                self._shrink()

    def remove(self, key: K) -> None:
        """Remove the value of ``key`` if it is cached."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: K) -> None:
        entry = self._entries.pop(key, None)
        self.weight -= 0 if entry is None else entry[1]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self.weight = 0

    @property
    def limit(self) -> int:
        """Maximum total weight of the values."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        with self._lock:
            self._limit = limit
            self._shrink()

    def _shrink(self) -> None:
        while self.weight > self._limit and len(self._entries) > self._least:
            self.weight -= self._entries.popitem(last=False)[1][1]


def _replace_locks() -> None:
    """Replace the locks of all caches in a forked child, because the threads that held the locks do not exist there."""
    for cache in _caches:
        cache._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_replace_locks)
