"""Row groups decoded in parallel, ahead of the consumer, which receives their rows in the order of the row groups."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import islice

import pyarrow as pa

from pqext.core.base.errors import MemoryLimitError
from pqext.core.base.workers import Workers, thread_count

Part = tuple[pa.RecordBatch, list[pa.Array]]
"""Rows that match, and of them the computed columns."""

Run = Callable[[int], Iterator[Part]]
"""Finds the parts of one row group, with the so manieth part of the memory that a call may hold."""

STEP_BYTES = 32 << 20
"""Rows that a row group finds before those before it were taken, about."""
_WAITING = 1
"""Row groups begun beside those that threads work on, so that no thread waits for whoever takes the rows."""
_FIRST_BYTES = 1 << 20
_GROWTH = 4


class _Steps:
    """One row group, worked on step by step."""

    def __init__(self, run: Run, shares: int) -> None:
        self._run = run
        self._shares = shares
        self._parts = run(shares)
        self._most = _FIRST_BYTES
        self._rows = 0
        self.is_stopped = False

    def step(self) -> tuple[deque[Part], bool]:
        """The next parts, and whether there may be more."""
        found: deque[Part] = deque()
        held = 0
        try:
            for batch, arrays in self._parts:
                found.append((batch, arrays))
                self._rows += batch.num_rows
                held += batch.nbytes + sum(array.nbytes for array in arrays)
                if held >= self._most or self.is_stopped:
                    self._most = min(_GROWTH * self._most, STEP_BYTES)
                    return found, True
        except MemoryLimitError:
            if self._shares == 1:
                raise
            self._shares = 0  # to be run again, alone
        return found, False

    @property
    def needs_more(self) -> bool:
        """Was its part of the memory too little?"""
        return not self._shares

    def alone(self) -> Iterator[Part]:
        """The parts that are left, with all of the memory."""
        passed = self._rows
        for batch, arrays in self._run(1):
            skipped = min(passed, batch.num_rows)
            passed -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped), [array.slice(skipped) for array in arrays]


def side_by_side(runs: Iterable[Run], threads: int, jobs: int) -> Generator[Part, None, None]:
    """The parts of all ``runs`` in their order, of a few at once for ``threads``, 0 for one a processor.

    There are ``jobs`` of them, or more. Where the iterator is abandoned, what has not begun never does, and what is
    running is waited for.
    """
    width = min(thread_count(threads) + _WAITING, max(jobs, 1)) if thread_count(threads) > 1 else 1
    waiting = iter(runs)
    active: deque[tuple[_Steps, Callable[[], tuple[deque[Part], bool]]]] = deque()
    with Workers(threads, thread_count(threads)) as workers:  # all of them: columns of few row groups need them too
        try:
            while True:
                for run in islice(waiting, width - len(active)):
                    steps = _Steps(run, width)
                    active.append((steps, workers.begin(steps.step)))
                if not active:
                    return
                steps, ready = active.popleft()
                found, has_more = ready()
                if has_more:
                    active.appendleft((steps, workers.begin(steps.step)))
                while found:
                    yield found.popleft()
                if steps.needs_more:
                    workers.settle()
                    yield from steps.alone()
        finally:
            for steps, _ in active:
                steps.is_stopped = True
