"""Pages that follow one another as those of one leaf of lists, with the rows before each: counted as far as asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

Count = Callable[[int, bool], int | None]
"""Rows of a page, by its place; ``None`` where it is none of the leaf's. Does it have to follow the page before?"""


@dataclass(slots=True)
class _Stretch:
    """``rows`` are those before each page from ``begin`` on. Where it ``is_ended`` no page of the leaf follows."""

    begin: int
    rows: list[int] = field(default_factory=lambda: [0])
    is_ended: bool = False


class Stretches:
    """The stretches among ``pages`` pages, of one kind of leaf."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._of: dict[int, _Stretch] = {}

    def end(self, at: int, rows: int, count: Count) -> int | None:
        """Where pages from ``at`` on hold ``rows`` rows, one page at least: -1 behind all, ``None`` if nowhere.

        Pages without rows behind them are not looked at.
        """
        stretch = self._of.get(at)
        if stretch is None:
            stretch = self._of[at] = _Stretch(at)
        first = at - stretch.begin
        wanted = stretch.rows[first] + rows
        while len(stretch.rows) <= first + 1 or stretch.rows[-1] < wanted:
            place = stretch.begin + len(stretch.rows) - 1
            if place == self._pages:
                return -1
            counted = None if stretch.is_ended else count(place, place > stretch.begin)
            if counted is None:
                stretch.is_ended = True
                return None
            stretch.rows.append(stretch.rows[-1] + counted)
            self._of.setdefault(place + 1, stretch)
        found = bisect_left(stretch.rows, wanted, first + 1)
        return stretch.begin + found if stretch.rows[found] == wanted else None
