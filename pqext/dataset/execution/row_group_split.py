"""The last row groups of a file split by rows, so that no thread waits while others decode them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pqext.core.read.reader import ParquetFile
from pqext.core.schema.row_ranges import RowRanges, intersection
from pqext.dataset.planning.plan import RowGroupPlan

_FEWEST_ROWS = 1 << 16
"""Row groups of which fewer are read take no time to speak of."""
_MOST_LEAVES = 16
"""More of them are work enough for all threads."""


def divided(plans: Iterable[RowGroupPlan], file: ParquetFile, threads: int) -> Iterator[RowGroupPlan]:
    """The ``plans`` in their order; the last, where they are too few for all ``threads``, each in parts of its rows.

    A page that lies across two parts is read by both, so nothing is divided that a server sends.
    """
    waiting = iter(plans)
    begun = 0
    for plan in waiting:
        if file.source.is_remote or len(file.row_groups) - plan.index > threads:
            begun += _is_long(plan)
            yield plan
            continue
        last = [plan, *waiting]
        long = [one.index for one in last if _is_long(one)]
        over = (begun + len(long)) % threads
        for one in last:
            if over and one.index in long[-over:]:
                yield from _parts(one, file, threads // over)
            else:
                yield one


def _is_long(plan: RowGroupPlan) -> bool:
    return plan.rows_read >= _FEWEST_ROWS and any(stage.filter is not None for stage in plan.stages)


def _parts(plan: RowGroupPlan, file: ParquetFile, count: int) -> Iterator[RowGroupPlan]:
    """The plan in ``count`` plans, each of about as many rows; whole where the places of its pages are not known."""
    starts = _page_starts(plan, file)
    if starts is None:
        yield plan
        return
    rows = [range(plan.num_rows)] if plan.rows is None else plan.rows
    at = 0
    for number in range(1, count + 1):
        stop = plan.num_rows if number == count else _row(rows, plan.rows_read * number // count)
        near = starts[np.searchsorted(starts, stop)] if number < count and stop <= starts[-1] else stop
        part = intersection(rows, [range(at, near)])
        if part:
            yield replace(plan, rows=part)
        at = near


def _page_starts(plan: RowGroupPlan, file: ParquetFile) -> NDArray[np.int64] | None:
    """The first row of each page of the first column that is read; None where not all that is read has an index."""
    group, leaves = file.row_groups[plan.index], []
    for stage in plan.stages:
        nodes = [file.schema.root] if stage.columns is None else map(file.schema.find, stage.columns)
        leaves += [leaf for node in nodes if node is not None for leaf in node.leaves()]
        leaves += [file.schema.leaves[leaf] for _, leaf in (*stage.asked, *stage.leaves)]
    if not leaves or len(leaves) > _MOST_LEAVES or not all(group.chunk(leaf).has_offset_index for leaf in leaves):
        return None
    pages = group.chunk(leaves[0]).page_places
    return None if pages is None else np.asarray(pages.starts, np.int64)


def _row(rows: RowRanges, number: int) -> int:
    """The row with so many of ``rows`` before it."""
    for one in rows:
        if number < len(one):
            return one[number]
        number -= len(one)
    return rows[-1].stop
