"""Rows of a row group as disjoint ascending ranges, with set operations."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pqext.core.schema.facts import PageFacts

RowRanges = list[range]
"""Ranges that are ascending, not adjacent and not empty."""


def merge_ranges(ranges: Iterable[range]) -> RowRanges:
    """Convert any ranges to row ranges: sort them, join adjacent and overlapping ranges, and drop empty ranges."""
    result: RowRanges = []
    for element in sorted((item for item in ranges if len(item)), key=lambda element: element.start):
        if result and element.start <= result[-1].stop:
            result[-1] = range(result[-1].start, max(result[-1].stop, element.stop))
        else:
            result.append(range(element.start, element.stop))
    return result


def rows_of_pages(page_facts: PageFacts, pages: Sequence[int]) -> RowRanges:
    """Return the rows of the ascending ``pages`` as ranges."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    return merge_ranges(range(page_facts.rows(first).start, page_facts.rows(last).stop) for first, last in runs)


def normalize_ranges(rows: Iterable[range] | None, num_rows: int) -> RowRanges | None:
    """Sort and merge ``rows``, ranges within a row group of ``num_rows`` rows.

    Returns None if they cover the row group, or if ``rows`` is None. Raises ``IndexError`` if they exceed the row
    group, and ``TypeError`` for objects that are not ranges of step 1.
    """
    if rows is None:
        return None
    parts = list(rows)
    for item in parts:
        if not isinstance(item, range) or item.step != 1:
            raise TypeError(f"rows must be ranges of step 1, not {item!r}")
        if item.start < item.stop and not 0 <= item.start < item.stop <= num_rows:
            raise IndexError(f"rows {item.start} to {item.stop} are outside a row group of {num_rows} rows")
    ranges = merge_ranges(parts)
    return None if ranges == [range(num_rows)] else ranges


def union(first: Sequence[range], second: Sequence[range]) -> RowRanges:
    """Return the rows that are in ``first`` or in ``second``."""
    return merge_ranges([*first, *second])


def intersection(first: Sequence[range], second: Sequence[range]) -> RowRanges:
    """Return the rows that are in ``first`` and in ``second``."""
    result: RowRanges = []
    i = j = 0
    while i < len(first) and j < len(second):
        shared = range(max(first[i].start, second[j].start), min(first[i].stop, second[j].stop))
        if len(shared):
            result.append(shared)
        if first[i].stop <= second[j].stop:
            i += 1
        else:
            j += 1
    return result


def difference(first: Sequence[range], second: Sequence[range]) -> RowRanges:
    """Return the rows of ``first`` that are not in ``second``."""
    result: RowRanges = []
    for item in first:
        at = item.start
        for other in second:
            if other.start >= item.stop:
                break
            if other.stop > at:
                result.append(range(at, other.start))
                at = other.stop
        result.append(range(at, item.stop))
    return merge_ranges(result)


class RowQueue:
    """Queue of rows. Callers remove rows from the front."""

    def __init__(self, rows: Sequence[range]) -> None:
        self._rows = deque(item for item in rows if len(item))

    def __bool__(self) -> bool:
        """Return whether any rows remain."""
        return bool(self._rows)

    def pop(self, count: int) -> RowRanges:
        """Remove and return the next ``count`` rows, or fewer at the end."""
        part: RowRanges = []
        while count and self._rows:
            item = self._rows.popleft()
            if len(item) > count:
                self._rows.appendleft(range(item.start + count, item.stop))
                item = range(item.start, item.start + count)
            part.append(item)
            count -= len(item)
        return part

    def push_back(self, removed_rows: Sequence[range]) -> None:
        """Put the most recently removed rows, ``removed_rows``, back at the front of the queue."""
        for item in reversed(removed_rows):
            if self._rows and self._rows[0].start == item.stop:
                item = range(item.start, self._rows.popleft().stop)
            self._rows.appendleft(item)


class NumberQueue:
    """Queue of ascending row numbers."""

    def __init__(self, numbers: NDArray[np.int64]) -> None:
        self._numbers = numbers
        self._at = 0

    def __bool__(self) -> bool:
        """Return whether any rows remain."""
        return self._at < len(self._numbers)

    def pop(self, count: int) -> NDArray[np.int64]:
        """Remove and return the next ``count`` rows, or fewer at the end."""
        part = self._numbers[self._at : self._at + count]
        self._at += len(part)
        return part

    def push_back(self, removed_rows: NDArray[np.int64]) -> None:
        """Put the most recently removed rows, ``removed_rows``, back at the front of the queue."""
        self._at -= len(removed_rows)


def group_nearby(ranges: Iterable[tuple[int, int]], max_rows: int) -> Iterator[list[tuple[int, int]]]:
    """Yield groups of consecutive ranges (start, stop). A group has one range or spans at most ``max_rows`` rows.
    """
    group: list[tuple[int, int]] = []
    for place in ranges:
        if group and place[1] - group[0][0] > max_rows:
            yield group
            group = []
        group.append(place)
    if group:
        yield group


def row_numbers(ranges: Sequence[range]) -> NDArray[np.int64]:
    """Return the numbers of all rows in ``ranges``, in their order."""
    parts = [np.arange(item.start, item.stop, dtype=np.int64) for item in ranges]
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)


def cover_rows(rows: NDArray[np.int64], gap: int) -> RowRanges:
    """Return ranges that cover the ascending ``rows`` and the gaps of at most ``gap`` rows between them."""
    if not len(rows):
        return []
    borders = np.flatnonzero(np.diff(rows) > gap)
    starts, stops = rows[np.concatenate([[0], borders + 1])], rows[np.concatenate([borders, [len(rows) - 1]])]
    return [range(start, stop + 1) for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]


def flag_rows(rows: NDArray[np.int64], ranges: Sequence[range]) -> NDArray[np.bool_]:
    """Return a mask over the rows in ``ranges`` that is true for ``rows``, which are in ascending order."""
    bounds = np.array([(item.start, item.stop) for item in ranges], np.int64).reshape(-1, 2)
    lengths = bounds[:, 1] - bounds[:, 0]
    flags = np.zeros(int(lengths.sum()), np.bool_)
    first, last = np.searchsorted(rows, bounds[:, 0]), np.searchsorted(rows, bounds[:, 1])
    results = [rows[start:stop] for start, stop in zip(first.tolist(), last.tolist(), strict=True)]
    moved = np.repeat(np.cumsum(lengths) - lengths - bounds[:, 0], last - first)
    flags[np.concatenate(results) + moved if results else []] = True
    return flags
