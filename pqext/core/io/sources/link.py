"""What is known of the way to a store: how long a request takes, and how many bytes come in a second."""

from __future__ import annotations

import threading

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
