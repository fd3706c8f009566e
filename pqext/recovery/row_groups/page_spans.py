"""Consecutive pages of one leaf with lists, with the number of rows before each page, counted on demand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

Count = Callable[[int, bool], int | None]
"""Function of a page number and a flag that returns the rows of the page, or None if the page does not match the leaf.

If the flag is set, the page must also be adjacent to the preceding page.
"""


@dataclass(slots=True)
class _PageSpan:
    """Span of consecutive pages.

    ``rows`` contains the rows before each page from ``begin`` on. If ``is_ended``, no page of the leaf follows.
    """

    begin: int
    rows: list[int] = field(default_factory=lambda: [0])
    is_ended: bool = False


class PageSpans:
    """Spans of consecutive pages that match one type of leaf. ``pages`` is the number of all pages."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._spans: dict[int, _PageSpan] = {}

    def find_end(self, start: int, rows: int, count: Count) -> int | None:
        """Find the end of ``rows`` rows that start at page ``start``. Returns the number of the page after them.

        The rows have at least one page, and following pages without rows are excluded. Returns -1 if the rows extend
        beyond all pages, and None if no page ends after ``rows`` rows or a page does not match.
        """
        span = self._spans.get(start)
        if span is None:
            span = self._spans[start] = _PageSpan(start)
        first = start - span.begin
        target = span.rows[first] + rows
        while len(span.rows) <= first + 1 or span.rows[-1] < target:
            page = span.begin + len(span.rows) - 1
            if page == self._pages:
                return -1
            page_rows = None if span.is_ended else count(page, page > span.begin)
            if page_rows is None:
                span.is_ended = True
                return None
            span.rows.append(span.rows[-1] + page_rows)
            self._spans.setdefault(page + 1, span)
        index = bisect_left(span.rows, target, first + 1)
        return span.begin + index if span.rows[index] == target else None
