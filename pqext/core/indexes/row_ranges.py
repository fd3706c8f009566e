"""Rows of a row group as ascending ranges that do not touch: what pages may match, and how answers combine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

RowRanges = list[range]
"""Ascending, apart from each other, none empty."""


def merged(ranges: Iterable[range]) -> RowRanges:
    """Any ranges as row ranges: sorted, joined where they meet or overlap, empty ones dropped."""
    result: RowRanges = []
    for one in sorted((one for one in ranges if len(one)), key=lambda one: one.start):
        if result and one.start <= result[-1].stop:
            result[-1] = range(result[-1].start, max(result[-1].stop, one.stop))
        else:
            result.append(range(one.start, one.stop))
    return result


def union(first: Sequence[range], second: Sequence[range]) -> RowRanges:
    """Rows of either: what may match ``a or b``."""
    return merged([*first, *second])


def intersection(first: Sequence[range], second: Sequence[range]) -> RowRanges:
    """Rows of both: what may match ``a and b``."""
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
    """Rows of ``first`` that are not of ``second``."""
    result: RowRanges = []
    for one in first:
        at = one.start
        for other in second:
            if other.start >= one.stop:
                break
            if other.stop > at:
                result.append(range(at, other.start))
                at = max(at, other.stop)
        result.append(range(at, one.stop))
    return merged(result)


def in_parts(rows: Sequence[range], count: int) -> Iterator[RowRanges]:
    """``rows`` in parts of ``count`` rows each, the last one smaller."""
    part: RowRanges = []
    held = 0
    for one in rows:
        at = one.start
        while at < one.stop:
            stop = min(one.stop, at + count - held)
            part.append(range(at, stop))
            held += stop - at
            at = stop
            if held == count:
                yield part
                part, held = [], 0
    if part:
        yield part
