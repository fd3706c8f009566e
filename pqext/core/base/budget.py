"""Memory accounting of one call: bytes are counted before they are allocated, across all columns and threads.

A call (``read``, a batch of ``iter_batches``, a column that ``verify`` checks) has one :class:`Budget`. Each owner of
decoded bytes has an :class:`Account` in the budget, and resizes the account when the final size is known.
"""

from __future__ import annotations

import threading

from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Usage

ADVICE = "read fewer rows at a time with iter_batches, or raise the limit with limits=Limits(memory_bytes=...)"
"""Remedy for Python callers that exceed the limit. Commands name their option for the limit instead."""


class Budget:
    """One of ``shares`` equal shares of the memory that ``limits`` allow for a call on a file of ``file_bytes`` bytes.

    ``usage`` counts the pages that the call decodes.
    """

    __slots__ = ("_held", "_limits", "_lock", "_size", "room", "usage")

    def __init__(self, limits: Limits, file_bytes: int, usage: Usage | None = None, shares: int = 1) -> None:
        self.room = limits.memory_for(file_bytes) // shares
        self._limits = limits
        self._size = file_bytes
        self._held = 0
        self.usage = usage
        self._lock = threading.Lock()

    def max_rows(self, row_bytes: int) -> int:
        """Return the maximum number of rows per batch: a quarter of the budget, at ``row_bytes`` bytes per row."""
        return self.room // 4 // max(row_bytes, 1)

    def add(self, size: int) -> None:
        """Count ``size`` more bytes, or release bytes if ``size`` is negative.

        Raises ``MemoryLimitError`` if the limit would be exceeded.
        """
        with self._lock:
            held = self._held + size
            if held <= self.room or size <= 0:
                self._held = held
                return
        limits = self._limits
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

    def resize(self, size: int) -> None:
        """Set the number of reserved bytes to ``size``. Raises ``MemoryLimitError`` if the budget is exceeded."""
        if size != self.held:
            self._budget.add(size - self.held)
            self.held = size
