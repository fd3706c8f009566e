"""Counters of reading: requests, bytes, pages and time, counted where data is fetched and decoded."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

Chunk = tuple[str | None, int]
"""A column chunk: the path of its file, None for the file with the footer, and its offset there."""


class Usage:
    """Counters of what the threads that share a source have read so far."""

    __slots__ = (
        "_lock", "_repeated_chunks", "_shared", "_shared_rows", "bytes", "fetch_seconds", "filter_seconds",
        "invalid_values", "pages", "requests", "rows_evaluated",
    )

    def __init__(self) -> None:
        self.requests = 0
        """Reads of the source, each of one byte range."""
        self.bytes = 0
        """Bytes fetched, including those between merged ranges."""
        self.fetch_seconds = 0.0
        """Total time of fetches, summed over concurrent ones."""
        self.pages = 0
        """Data pages that were decoded."""
        self.invalid_values = 0
        """Values that became null because they are out of range for their type."""
        self.rows_evaluated = 0
        """Rows on which a filter was evaluated; a row counts once, even if several stages evaluate it."""
        self.filter_seconds = 0.0
        """Time spent evaluating filters."""
        self._shared: dict[Chunk, dict[int, tuple[int, int]]] = {}
        self._shared_rows: Counter[Chunk] = Counter()
        self._repeated_chunks = 0
        self._lock = threading.Lock()

    def add_fetch(self, size: int, seconds: float, requests: int = 1) -> None:
        """Count ``size`` bytes that were read with ``requests`` requests."""
        with self._lock:
            self.requests += requests
            self.bytes += size
            self.fetch_seconds += seconds

    def add_pages(self, pages: int) -> None:
        """Count decoded data pages."""
        with self._lock:
            self.pages += pages

    def count_shared(self, chunk: Chunk, group: int, rows: int, leaves: int) -> tuple[int, int]:
        """Count the ``rows`` and ``leaves`` of row group ``group``, whose first chunk is ``chunk``, once.

        If several row groups share the chunk, return the rows of these, and the column chunks of the file that repeat
        the chunks of an earlier row group; otherwise 0 and 0.
        """
        with self._lock:
            groups = self._shared.setdefault(chunk, {})
            known_rows, known_leaves = groups.get(group, (0, 0))
            groups[group] = rows, max(leaves, known_leaves)
            self._shared_rows[chunk] += rows - known_rows
            if len(groups) == 1:
                return 0, 0
            if group != next(iter(groups)):
                self._repeated_chunks += max(leaves - known_leaves, 0)
            return self._shared_rows[chunk], self._repeated_chunks

    def add_invalid_values(self, values: int) -> None:
        """Count values that became null because they are invalid."""
        with self._lock:
            self.invalid_values += values

    @contextmanager
    def time_filter(self, rows: int = 0) -> Iterator[None]:
        """Measure the time within the context, and count ``rows`` that were not evaluated before."""
        started = perf_counter()
        try:
            yield
        finally:
            elapsed = perf_counter() - started
            with self._lock:
                self.rows_evaluated += rows
                self.filter_seconds += elapsed
