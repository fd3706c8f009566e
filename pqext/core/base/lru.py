"""A cache of the entries that were used last, bounded by their weight."""

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
    """The values that were used last, by key: together they weigh at most ``limit``.

    A value weighs 1 unless :meth:`put` states more, as its size in bytes. With ``keeps_last`` the value that was used
    last stays even where it weighs more than ``limit`` by itself. Threads may share a cache; a child that is forked
    while another thread uses it has the entries and does not wait for that thread.

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
        """What the values weigh together."""
        _caches.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._entries

    def values(self) -> Iterator[V]:
        """The values now, from the one that was not used for the longest time."""
        with self._lock:
            return iter([value for value, _ in self._entries.values()])

    def get(self, key: K) -> V | None:
        """The value of ``key``, which counts as used, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._entries.move_to_end(key)
            return found[0]

    def get_or_make(self, key: K, make: Callable[[], V], weigh: Callable[[V], int] = lambda _: 1) -> V:
        """The value of ``key``, by ``make`` unless there is one. What ``make`` raises is not kept.

        Two threads that ask for it at once may both make it; both get the one that was put first.
        """
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return found[0]
        made = make()
        with self._lock:
            if (found := self._entries.get(key)) is not None:
                return found[0]
            self._put(key, made, weigh(made))
        return made

    def put(self, key: K, value: V, weight: int = 1) -> None:
        """Keep ``value`` in place of what ``key`` had."""
        with self._lock:
            self._put(key, value, weight)

    def _put(self, key: K, value: V, weight: int) -> None:
        self._remove(key)
        if weight <= self._limit or self._least:  # else it would only push out the others
            self._entries[key] = value, weight
            self.weight += weight
            self._shrink()

    def weigh(self, key: K, weight: int) -> None:
        """State what the value of ``key`` weighs now, if it is still kept."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries[key] = found[0], weight
                self.weight += weight - found[1]
                self._shrink()

    def remove(self, key: K) -> None:
        """Remove the value of ``key``, if there is one."""
        with self._lock:
            self._remove(key)

    def _remove(self, key: K) -> None:
        found = self._entries.pop(key, None)
        self.weight -= 0 if found is None else found[1]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._entries.clear()
            self.weight = 0

    @property
    def limit(self) -> int:
        """What the values weigh at most."""
        return self._limit

    @limit.setter
    def limit(self, limit: int) -> None:
        with self._lock:
            self._limit = limit
            self._shrink()

    def _shrink(self) -> None:
        while self.weight > self._limit and len(self._entries) > self._least:
            self.weight -= self._entries.popitem(last=False)[1][1]


def _unlock() -> None:
    """In a forked child, where the thread that holds a lock may not be."""
    for cache in _caches:
        cache._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
