"""Resources that a call uses: requests, bytes, pages, time and memory. Memory is counted before it is allocated.

A call (``read``, a batch of ``iter_batches``, a column that ``verify`` checks) has one :class:`Budget`. Each owner of
decoded bytes has an :class:`Account` in the budget, and resizes the account when the final size is known.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import ParamSpec, TypeVar

from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.limits import Limits

T = TypeVar("T")
_P = ParamSpec("_P")

Chunk = tuple[str | None, int]
"""Location of a column chunk: the path of its file (None if it is the file with the footer), and its offset there."""
RAISE_LIMIT = "raise the limit with limits=Limits(memory_bytes=...)"
ADVICE = "read fewer rows at a time with iter_batches, or raise the limit with limits=Limits(memory_bytes=...)"
"""Remedy for Python callers that exceed the limit. Commands name their option for the limit instead."""


class Usage:
    """Counters of the data that was read from a source, shared by all threads that read it."""

    __slots__ = (
        "_lock", "_repeated_chunks", "_shared", "_shared_rows", "assemble_seconds", "bytes", "decompress_seconds",
        "fetch_seconds", "filter_seconds", "invalid_values", "pages", "requests", "rows_evaluated",
    )

    def __init__(self) -> None:
        self.requests = 0
        """Reads of the source, each of one byte range."""
        self.bytes = 0
        """Bytes fetched, including those between merged ranges."""
        self.fetch_seconds = 0.0
        """Total duration of fetches. The durations of concurrent fetches are added."""
        self.pages = 0
        """Data pages that were decoded."""
        self.decompress_seconds = 0.0
        """Time spent decompressing pages."""
        self.assemble_seconds = 0.0
        """Time spent assembling decoded leaf columns to Arrow arrays."""
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
        """Count ``size`` bytes that were fetched with ``requests`` requests in ``seconds``."""
        with self._lock:
            self.requests += requests
            self.bytes += size
            self.fetch_seconds += seconds

    def add_pages(self, pages: int) -> None:
        """Add ``pages`` to the number of decoded data pages."""
        with self._lock:
            self.pages += pages

    def add_decompression(self, seconds: float) -> None:
        """Add ``seconds`` to the time spent decompressing pages."""
        with self._lock:
            self.decompress_seconds += seconds

    def add_assembly(self, seconds: float) -> None:
        """Add ``seconds`` to the time spent assembling arrays."""
        with self._lock:
            self.assemble_seconds += seconds

    def count_shared(self, chunk: Chunk, group: int, rows: int, leaves: int) -> tuple[int, int]:
        """Record ``chunk``, the first column chunk of a row group, to detect row groups that share chunks.

        ``rows`` is the number of rows of row group ``group``, and ``leaves`` its number of columns that are read. If
        several row groups share the chunk, return their total number of rows, and the number of column chunks in the
        file that repeat chunks of an earlier row group. Otherwise return 0 and 0.
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
        """Add ``values`` to the number of invalid values that became null."""
        with self._lock:
            self.invalid_values += values

    @contextmanager
    def time_filter(self, rows: int = 0) -> Iterator[None]:
        """Add the time spent in the context to the filter time, and ``rows`` to the number of evaluated rows."""
        started = perf_counter()
        try:
            yield
        finally:
            elapsed = perf_counter() - started
            with self._lock:
                self.rows_evaluated += rows
                self.filter_seconds += elapsed


class Budget:
    """Memory budget of a call on a file of ``file_bytes`` bytes: the memory that ``limits`` allow, divided by
    ``shares``.

    The budget also bounds the total of all reservations, and so the time that a small file can take. ``usage`` counts
    the pages that the call decodes.
    """

    __slots__ = ("_decoded", "_held", "_limits", "_lock", "_most_decoded", "_size", "room", "usage")

    def __init__(self, limits: Limits, file_bytes: int, usage: Usage | None = None, shares: int = 1) -> None:
        self.room = limits.max_memory_bytes(file_bytes) // shares
        self._most_decoded = limits.max_decoded_bytes(file_bytes)
        self._limits = limits
        self._size = file_bytes
        self._held = 0
        self._decoded = 0
        self.usage = usage
        self._lock = threading.Lock()

    def restart(self) -> Budget:
        """Release all reserved memory for the next call of a job, and return the budget. The count of decoded bytes
        continues.
        """
        self._held = 0
        return self

    def max_rows(self, row_bytes: int) -> int:
        """Return the maximum number of rows per batch: a quarter of the budget, at ``row_bytes`` bytes per row."""
        return self.room // 4 // max(row_bytes, 1)

    def add(self, size: int) -> None:
        """Count ``size`` additional bytes, or release bytes if ``size`` is negative.

        Raises ``MemoryLimitError`` if the limit would be exceeded, or if all bytes ever counted exceed the limit of
        decoded bytes.
        """
        limits = self._limits
        with self._lock:
            held = self._held + size
            if size <= 0:
                self._held = held
                return
            if held <= self.room:
                self._held = held
                self._decoded += size
                if self._decoded <= self._most_decoded:
                    return
                self._held -= size
                allowed = f"a file of {self._size:,} bytes and memory_bytes={limits.memory_bytes} allow; {RAISE_LIMIT}"
                error = MemoryLimitError(f"decoding would produce {self._decoded:,} bytes, more than {allowed}")
                error.is_final = True
                raise error
        bound = f"memory_bytes={limits.memory_bytes}"
        if self.room > limits.memory_bytes:
            bound = f"memory_expansion={limits.memory_expansion} times the {self._size} bytes of the file"
        raise MemoryLimitError(f"decoding needs {held} bytes of memory, more than {bound} allows; {ADVICE}")


class Account:
    """Share of a budget that one owner of decoded bytes has reserved. It belongs to one thread at a time."""

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def reserve(self, size: int) -> None:
        """Count ``size`` bytes before their allocation. Raises ``MemoryLimitError`` if the budget is exceeded."""
        self._budget.add(size)
        self.held += size

    def release(self, size: int) -> None:
        """Stop counting ``size`` bytes."""
        self._budget.add(-size)
        self.held -= size

    def count_pages(self, pages: int) -> None:
        """Count ``pages`` data pages that were decoded for the owner."""
        if self._budget.usage is not None:
            self._budget.usage.add_pages(pages)

    def time_decompression(self, function: Callable[_P, T]) -> Callable[_P, T]:
        """Return ``function``, which decompresses pages for the owner, with its time counted."""
        usage = self._budget.usage
        if usage is None:
            return function

        def timed(*arguments: _P.args, **keywords: _P.kwargs) -> T:
            started = perf_counter()
            try:
                return function(*arguments, **keywords)
            finally:
                usage.add_decompression(perf_counter() - started)

        return timed

    def resize(self, size: int) -> None:
        """Set the number of reserved bytes to ``size``. Raises ``MemoryLimitError`` if the budget is exceeded."""
        if size != self.held:
            self._budget.add(size - self.held)
            self.held = size
