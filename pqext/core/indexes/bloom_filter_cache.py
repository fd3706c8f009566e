"""Bloom filters of an open file that were read, kept for the next question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from pqext.core.indexes.bloom import SplitBlockFilter

KEPT_BYTES = 16 << 20
"""Bytes of the filters that a file keeps, unless the last one alone has more."""

_Key = tuple[int, int]


class KeptFilters:
    """The filters that were asked last, by row group and leaf, at most ``size`` bytes of them or one.

    Threads may ask at the same time; two that ask for the same filter at once may both read it.
    """

    def __init__(self, size: int = KEPT_BYTES) -> None:
        self._size = size
        self._held = 0
        self._filters: OrderedDict[_Key, SplitBlockFilter | None] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, key: _Key) -> bool:
        with self._lock:
            return key in self._filters

    def get(self, key: _Key, read: Callable[[], SplitBlockFilter | None]) -> SplitBlockFilter | None:
        """The filter under ``key``, by ``read`` unless it is kept. What ``read`` raises is not."""
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        found = read()
        with self._lock:
            if key not in self._filters:
                self._filters[key] = found
                self._held += _size(found)
            while self._held > self._size and len(self._filters) > 1:
                self._held -= _size(self._filters.popitem(last=False)[1])
        return found


def _size(found: SplitBlockFilter | None) -> int:
    return 0 if found is None else found.num_bytes
