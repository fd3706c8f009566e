"""The memory of one call: counted where it is allocated, before it is, over all columns and threads of the call.

A call (``read``, a batch of ``iter_batches``, a column that ``verify`` looks at) has one :class:`Budget`. Whoever holds
decoded bytes has an :class:`Account` in it, and settles it when it knows what it still holds.
"""

from __future__ import annotations

import threading

from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Usage

ADVICE = "read fewer rows at a time with iter_batches, or raise it with limits=Limits(memory_bytes=...)"
"""What to do where the limit is exceeded, in Python; commands have an option for it."""


class Budget:
    """The bytes that a call on a file of ``file_bytes`` may hold by ``limits``, or one of equal ``shares`` of them.

    ``usage`` counts what it decodes.
    """

    __slots__ = ("_held", "_limits", "_lock", "_size", "room", "usage")

    def __init__(self, limits: Limits, file_bytes: int, usage: Usage | None = None, shares: int = 1) -> None:
        self.room = limits.memory_of(file_bytes) // shares
        self._limits = limits
        self._size = file_bytes
        self._held = 0
        self.usage = usage
        self._lock = threading.Lock()

    def rows_of(self, row_bytes: int) -> int:
        """How many rows of so many bytes a batch should have: others are decoded while it is in use."""
        return self.room // 4 // max(row_bytes, 1)

    def add(self, size: int) -> None:
        """Count ``size`` bytes more, fewer where it is negative. Raises ``LimitError`` instead of going beyond."""
        with self._lock:
            held = self._held + size
            if held <= self.room or size <= 0:
                self._held = held
                return
        limits = self._limits
        bound = f"memory_bytes={limits.memory_bytes}"
        if self.room > limits.memory_bytes:
            bound = f"memory_expansion={limits.memory_expansion} times the {self._size} bytes of the file"
        raise MemoryLimitError(
            f"{held} bytes are needed at once where the limit is {bound}; {ADVICE}"
        )


class Account:
    """What one holder has of a budget. It belongs to one thread at a time."""

    __slots__ = ("_budget", "held")

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.held = 0

    def take(self, size: int) -> None:
        """Count ``size`` bytes that are about to be allocated. Raises ``LimitError`` where they are too many."""
        self._budget.add(size)
        self.held += size

    def give_back(self, size: int) -> None:
        """Count ``size`` bytes no more."""
        self._budget.add(-size)
        self.held -= size

    def decoded(self, pages: int) -> None:
        """Count data pages that were decoded for the holder."""
        if self._budget.usage is not None:
            self._budget.usage.decoded(pages)

    def settle(self, size: int) -> None:
        """Hold ``size`` bytes from now on, whatever was counted before."""
        if size != self.held:
            self._budget.add(size - self.held)
            self.held = size
