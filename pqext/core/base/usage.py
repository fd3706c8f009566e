"""What reading costs: requests, bytes and pages, counted where they are fetched and decoded, and the time they take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

Chunk = tuple[str | None, int]
"""A column chunk: the path of its file, None for the file with the footer, and its offset there."""


class Usage:
    """What was read so far through one source, by any of its threads."""

    __slots__ = (
        "_lock", "_shared", "_shared_rows", "bytes", "fetch_seconds", "filter_seconds", "invalid_values", "pages",
        "requests", "rows_evaluated",
    )

    def __init__(self) -> None:
        self.requests = 0
        """Reads of the source, each of one range of bytes."""
        self.bytes = 0
        """Bytes that they gave, those between merged ranges included."""
        self.fetch_seconds = 0.0
        """How long they took, added up where several were under way."""
        self.pages = 0
        """Data pages that were decoded."""
        self.invalid_values = 0
        """Values that became null because they lie outside their type."""
        self.rows_evaluated = 0
        """Rows on which a filter was evaluated, each once however many stages looked at it."""
        self.filter_seconds = 0.0
        """How long that took."""
        self._shared: dict[Chunk, dict[int, int]] = {}
        self._shared_rows: Counter[Chunk] = Counter()
        self._lock = threading.Lock()

    def fetched(self, size: int, seconds: float, requests: int = 1) -> None:
        """Count ``size`` bytes that were read by so many requests."""
        with self._lock:
            self.requests += requests
            self.bytes += size
            self.fetch_seconds += seconds

    def decoded(self, pages: int) -> None:
        """Count decoded data pages."""
        with self._lock:
            self.pages += pages

    def shared_rows(self, chunk: Chunk, group: int, rows: int) -> int:
        """Count ``rows`` of row group ``group``, whose first chunk is ``chunk``; return those of all that share it."""
        with self._lock:
            groups = self._shared.setdefault(chunk, {})
            self._shared_rows[chunk] += rows - groups.get(group, 0)
            groups[group] = rows
            return self._shared_rows[chunk] if len(groups) > 1 else 0

    def nullified(self, values: int) -> None:
        """Count values that became null."""
        with self._lock:
            self.invalid_values += values

    @contextmanager
    def filtering(self, rows: int = 0) -> Iterator[None]:
        """Count the time within, and ``rows`` on which nothing was evaluated before."""
        started = perf_counter()
        try:
            yield
        finally:
            took = perf_counter() - started
            with self._lock:
                self.rows_evaluated += rows
                self.filter_seconds += took
