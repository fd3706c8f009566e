"""Decode row groups in parallel, ahead of the consumer, which receives the rows in the order of the row groups.

The last row group of a file is split by rows, so that no thread is idle while others decode it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, MemoryLimitError
from pqext.core.base.threads import Workers, thread_count
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.row_ranges import RowRanges, intersection
from pqext.dataset.planning.plan import RowGroupPlan

Part = tuple[pa.RecordBatch, list[pa.Array]]
"""Matching rows, and the computed columns for them."""

Run = Callable[[int], Iterator[Part]]
"""Function that decodes one run. The argument is the number of equal shares of the memory limit; a run uses one."""

STEP_BYTES = 32 << 20
"""Approximate size of the batches that a row group decodes before they are consumed."""
_WAITING = 1
"""Row groups started beyond the number of threads, so that no thread waits for the consumer."""
_FIRST_BYTES = 1 << 20
_GROWTH = 4
_FEWEST_ROWS = 1 << 16
"""Below this number of rows, decoding a row group takes negligible time."""
_MOST_LEAVES = 16
"""Plans that read more leaf columns than this are not split by rows."""


class _RowGroupDecoder:
    """Decoder of one row group, which returns its batches in steps of limited size."""

    def __init__(self, run: Run, shares: int) -> None:
        self._run = run
        self._shares = shares
        self._parts = run(shares)
        self._most = _FIRST_BYTES
        self._rows = 0
        self.is_stopped = False

    def step(self) -> tuple[deque[Part], bool]:
        """Return the next batches, and whether more batches may follow."""
        result: deque[Part] = deque()
        held = 0
        try:
            for batch, arrays in self._parts:
                result.append((batch, arrays))
                self._rows += batch.num_rows
                held += batch.nbytes + sum(array.nbytes for array in arrays)
                if held >= self._most or self.is_stopped:
                    self._most = min(_GROWTH * self._most, STEP_BYTES)
                    return result, True
        except MemoryLimitError:
            if self._shares == 1:
                raise
            self._shares = 0  # must be run again, alone
        return result, False

    @property
    def needs_memory(self) -> bool:
        """Whether the row group exceeded its share of memory. :meth:`finish` must then decode the remaining rows."""
        return not self._shares

    def finish(self) -> Iterator[Part]:
        """Yield the remaining batches, using the complete memory limit instead of one share."""
        passed = self._rows
        for batch, arrays in self._run(1):
            skipped = min(passed, batch.num_rows)
            passed -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped), [array.slice(skipped) for array in arrays]


def decode_in_parallel(runs: Iterable[Run], threads: int, max_active_runs: int) -> Generator[Part, None, None]:
    """Decode ``runs`` with up to ``threads`` threads (0: one per processor), and yield their batches in order.

    At most ``max_active_runs`` runs are active at a time. If the iterator is closed early, pending runs never start,
    and active runs are awaited.
    """
    width = min(thread_count(threads) + _WAITING, max(max_active_runs, 1)) if thread_count(threads) > 1 else 1
    waiting = iter(runs)
    active: deque[tuple[_RowGroupDecoder, Callable[[], tuple[deque[Part], bool]]]] = deque()
    with Workers(threads, thread_count(threads)) as workers:  # all threads, for columns
        try:
            while True:
                for run in islice(waiting, width - len(active)):
                    steps = _RowGroupDecoder(run, width)
                    active.append((steps, workers.start(steps.step)))
                if not active:
                    return
                steps, ready = active.popleft()
                result, has_more = ready()
                if has_more:
                    active.appendleft((steps, workers.start(steps.step)))
                while result:
                    yield result.popleft()
                if steps.needs_memory:
                    workers.wait()
                    yield from steps.finish()
        finally:
            for steps, _ in active:
                steps.is_stopped = True


def has_min_bytes(
    plans: Iterator[RowGroupPlan], file: ParquetFile, min_bytes: int
) -> tuple[bool, Iterator[RowGroupPlan]]:
    """Return whether ``plans`` read at least about ``min_bytes`` stored bytes, and an iterator over the same plans.

    Plans are consumed until their bytes suffice, so that the last row groups are planned while the first are decoded.
    """
    consumed: list[RowGroupPlan] = []
    size = 0
    while size < min_bytes:
        plan = next(plans, None)
        if plan is None:
            return False, iter(consumed)
        consumed.append(plan)
        if plan.rows_read:
            group = file.row_groups[plan.index]
            try:
                stored = sum(group.chunk(leaf).byte_range[1] for leaf in _leaves_read(plan, file))
            except CorruptFileError:  # decoding reports it
                break
            size += stored * plan.rows_read // max(plan.num_rows, 1)
    return True, chain(consumed, plans)


def divide_plans(plans: Iterable[RowGroupPlan], file: ParquetFile, threads: int) -> Iterator[RowGroupPlan]:
    """Yield ``plans`` in order. Split the last plans of a local file so that all ``threads`` have work."""
    waiting = iter(plans)
    begun = 0
    for plan in waiting:
        if file.source.is_remote or len(file.row_groups) - plan.index > threads:
            begun += _is_long(plan)
            yield plan
            continue
        last = [plan, *waiting]
        long = [item.index for item in last if _is_long(item)]
        over = (begun + len(long)) % threads
        for element in last:
            if over and element.index in long[-over:]:
                yield from _split_plan(element, file, threads // over)
            else:
                yield element


def _is_long(plan: RowGroupPlan) -> bool:
    return plan.rows_read >= _FEWEST_ROWS and any(stage.filter is not None for stage in plan.stages)


def _split_plan(plan: RowGroupPlan, file: ParquetFile, count: int) -> Iterator[RowGroupPlan]:
    """Yield up to ``count`` parts of ``plan`` with about equal numbers of rows, split at page boundaries.

    The plan is not split if a column has no offset index, or if it reads more than ``_MOST_LEAVES`` leaf columns.
    """
    starts = _page_starts(plan, file)
    if starts is None:
        yield plan
        return
    rows = [range(plan.num_rows)] if plan.rows is None else plan.rows
    at = 0
    for number in range(1, count + 1):
        stop = plan.num_rows if number == count else _row_at(rows, plan.rows_read * number // count)
        near = starts[np.searchsorted(starts, stop)] if number < count and stop <= starts[-1] else stop
        part = intersection(rows, [range(at, near)])
        if part:
            yield replace(plan, rows=part)
        at = near


def _page_starts(plan: RowGroupPlan, file: ParquetFile) -> NDArray[np.int64] | None:
    """Return the first row of each page of the first leaf column that ``plan`` reads.

    None if a leaf column has no offset index, or if there are no leaf columns or more than ``_MOST_LEAVES``.
    """
    group, leaves = file.row_groups[plan.index], _leaves_read(plan, file)
    if not leaves or len(leaves) > _MOST_LEAVES or not all(group.chunk(leaf).has_offset_index for leaf in leaves):
        return None
    pages = group.chunk(leaves[0]).page_locations
    return None if pages is None else np.asarray(pages.starts, np.int64)


def _leaves_read(plan: RowGroupPlan, file: ParquetFile) -> list[SchemaNode]:
    leaves: list[SchemaNode] = []
    for stage in plan.stages:
        nodes = [file.schema.root] if stage.columns is None else map(file.schema.find, stage.columns)
        leaves += [leaf for node in nodes if node is not None for leaf in node.leaves()]
        leaves += [file.schema.leaves[leaf] for _, leaf in (*stage.asked, *stage.leaves)]
    return leaves


def _row_at(rows: RowRanges, number: int) -> int:
    """Return the row number at index ``number`` of ``rows``; the end of ``rows`` if there are fewer rows."""
    for item in rows:
        if number < len(item):
            return item[number]
        number -= len(item)
    return rows[-1].stop
