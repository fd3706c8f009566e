"""The search for row groups among pages that follow one another.

Every row group has a chunk of each leaf in the order of the schema, all of as many rows; a dictionary begins a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, Literal

from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.fragments.footers import Effort
from pqext.recovery.fragments.leaves import Chunks, may_hold
from pqext.recovery.fragments.pages import Page, Segment
from pqext.recovery.row_groups.page_spans import Stretches

_PLAIN = int(Encoding.PLAIN)
_SIZES = 4096
"""Sizes of one row group that are tried."""
_OF_LISTS = 10
"""Steps that a page takes whose rows are counted, the first time."""
_FULL_ROWS, _FULL_BYTES = 20_000, 1 << 16
"""Writers end a page within a chunk where it has so many rows, or bytes."""
AMBIGUOUS = "pages that can be split into row groups in more than one way"
GIVEN_UP = "pages among which the search for row groups takes too long"
UNPLACED = "pages that make no whole row group"
Way = Literal["only", "regular", "told"]


@dataclass(frozen=True, slots=True)
class PageGroup:
    """A row group of ``rows`` rows: the pages of each leaf's chunk.

    ``way`` is why they were parted so: in no other way do they fit the schema, in no other way are pages of one size,
    or the rows of a row group that were told decided.
    """

    rows: int
    chunks: tuple[tuple[Page, ...], ...]
    way: Way = "only"

    @property
    def extent(self) -> tuple[int, int]:
        """Where its first page begins, and its last one ends."""
        return self.chunks[0][0].offset, self.chunks[-1][-1].end


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Pages of no row group, and why."""

    start: int
    stop: int
    reason: str


class _TooMany(Exception):
    """The search takes too long."""


Parted = tuple[list[PageGroup], list[Unplaced]]
_Group = tuple[int, int]
"""(rows, place of the page behind it)."""


def is_ambiguous(parted: Parted) -> bool:
    """Was anything left because it can be parted in several ways, or nobody knows in how many?"""
    return any(one.reason in (AMBIGUOUS, GIVEN_UP) for one in parted[1])


class Search:
    """Looks for the row groups of one segment.

    ``row_group_rows`` is how many rows they have at most; the search ends after ``steps``, or those left of ``effort``.
    """

    def __init__(
        self,
        segment: Segment,
        leaves: Sequence[SchemaNode],
        chunks: Chunks,
        row_group_rows: int | None,
        effort: Effort,
        steps: int,
    ) -> None:
        self._segment = segment
        self._pages = segment.pages
        self._leaves = leaves
        self._chunks = chunks
        self._wanted = row_group_rows
        self._most = self._steps = steps
        self._effort = effort
        self._is_regular = True
        self._opens = False
        self._counts = [0, *accumulate(0 if page.is_dictionary else page.count for page in segment.pages)]
        self._unlike = [0, *accumulate(page.encoding != _PLAIN for page in segment.pages)]
        self._ends = [page.end for page in segment.pages]
        self._alike = _runs_of([page.count for page in segment.pages])
        self._places = {total: place for place, total in reversed([*enumerate(self._counts)])}
        self._runs: dict[tuple[int, bool], dict[int, int]] = {}
        self._stretches: dict[tuple[int, bool], Stretches] = {}
        self._known: dict[Any, Any] = {}
        self._fits: dict[Any, bool] = {}
        self._goes_on: dict[Any, bool] = {}

    def run(self, kinds: Sequence[bool] = (True, False)) -> Parted:
        """The row groups of the segment, and what is left: with regular pages, or else with any."""
        best: Parted = [], [self._left(0, len(self._pages), UNPLACED)]
        for regular in kinds:
            # Opening pages tells more than their headers, and takes longer.
            for opens in (False, True) if self._segment.at_start else (True,):
                self._opens = opens
                self._is_regular = regular
                self._steps = self._most
                for known in (self._known, self._goes_on, self._fits, self._runs, self._stretches):
                    known.clear()
                try:
                    found = self._anchored() if self._segment.at_start else self._loose()
                except _TooMany:
                    found = [], [self._left(0, len(self._pages), GIVEN_UP)]
                if found is None:
                    break
                best = found
                if not is_ambiguous(found):
                    return found
            if best[0] or is_ambiguous(best):
                return best
        return best

    def _left(self, first: int, stop: int, reason: str) -> Unplaced:
        return Unplaced(self._pages[first].offset, self._pages[stop - 1].end, reason)

    def _anchored(self) -> Parted | None:
        """From the first page, which is the first of a row group."""
        self._explore([0])
        return self._follow(0, 0) if self._goes_on[0] else None

    def _loose(self) -> Parted | None:
        """From wherever row groups can begin behind the rest of one, whose beginning is missing."""
        size = len(self._pages)
        self._explore(range(size))
        begins = [at for at in range(size + 1) if self._goes_on[at] and self._is_rest(at)]
        if not begins:
            return None
        ways = [self._follow(at, 0) if at < size else ([], []) for at in begins]
        if len(ways) == 1:
            return ways[0]
        common = set.intersection(*({(one.rows, one.chunks) for one in groups} for groups, _ in ways))
        if not common:
            return [], [self._left(0, size, AMBIGUOUS)]
        kept = [one for one in ways[0][0] if (one.rows, one.chunks) in common]
        edges = [self._segment.start, *(edge for one in kept for edge in one.extent), self._segment.stop]
        gaps = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1]]
        return kept, [Unplaced(start, stop, AMBIGUOUS) for start, stop in gaps]

    def _is_rest(self, stop: int) -> bool:
        """Can the pages before ``stop`` be the rest of a row group, whose first pages are missing?"""
        if not stop:
            return True
        leaf, at, rows = len(self._leaves) - 1, stop, 0
        while at:  # the last chunk of it may have any of these sizes
            at -= 1
            self._take_step()
            if not self._holds(leaf, at, True):
                return False
            counted = self._chunks.rows(self._leaves[leaf], self._pages[at])
            if counted is None:
                return False
            rows += counted[0]
            if not at:
                # All of it is one chunk, of which more may be missing; of a single column that costs no row.
                return len(self._leaves) > 1 or self._lacks_beginning(stop)
            if self._precede(leaf - 1, at, rows):
                return True
            if self._pages[at].is_dictionary:
                return False
        return False

    def _lacks_beginning(self, stop: int) -> bool:
        """Do the pages before ``stop`` need what was before them: a dictionary, or the first values of a row?"""
        first = self._pages[0]
        if first.is_dictionary:
            return False
        counted = self._chunks.rows(self._leaves[0], first)
        lacks = (one.encoding in DICTIONARY_ENCODINGS for one in self._pages[:stop])
        return counted is None or not counted[1] or any(lacks)

    def _precede(self, leaf: int, at: int, rows: int) -> bool:
        """Can the pages before ``at`` be chunks of ``leaf`` and of those before it, of ``rows`` rows each?"""
        while at:
            if leaf < 0:
                return False
            found, lacks = 0, False
            while at and found < rows:
                at -= 1
                self._take_step()
                counted = self._chunks.rows(self._leaves[leaf], self._pages[at])
                if self._pages[at].is_dictionary or not self._holds(leaf, at, True) or counted is None:
                    return False
                found += counted[0]
                lacks = lacks or self._pages[at].encoding in DICTIONARY_ENCODINGS
            if found > rows:
                return False
            if at and self._pages[at - 1].is_dictionary and self._holds(leaf, at - 1, True):
                at, lacks = at - 1, False
            if not at:
                return leaf > 0 or found < rows or lacks  # else the row group is whole
            leaf -= 1
        return True

    def _take_step(self, steps: int = 1) -> None:
        self._steps -= steps
        if self._steps < 0 or not self._effort.take(steps):
            raise _TooMany

    def _follow(self, at: int, kept: int) -> Parted:
        """Row groups from ``at`` on, so long as there is one way; pages from ``kept`` to ``at`` are left."""
        groups: list[PageGroup] = []
        unplaced = [self._left(kept, at, UNPLACED)] if at > kept else []
        while at < len(self._pages):
            self._take_step()
            options, may_break_off = self._options(at)
            ways = [option for option in options if self._goes_on[option[1]]]
            if len(ways) != 1 or may_break_off:
                is_end = not ways
                unplaced.append(self._left(at, len(self._pages), UNPLACED if is_end else AMBIGUOUS))
                break
            rows, end = ways[0]
            if rows:
                groups.append(PageGroup(rows, self._cut(at, rows)))
            at = end
        return groups, unplaced

    def _explore(self, places: Sequence[int]) -> None:
        """Note from which places row groups go on to the end of the pages."""
        waiting = list(reversed(places))
        seen = set(waiting)
        while waiting:
            for _, end in self._options(waiting.pop())[0]:
                if end not in seen:
                    seen.add(end)
                    waiting.append(end)
        size = len(self._pages)
        for at in sorted(seen | {size}, reverse=True):
            if at == size:
                self._goes_on[at] = True
            else:
                options, may_break_off = self._options(at)
                self._goes_on[at] = may_break_off or any(self._goes_on[end] for _, end in options)

    def _options(self, at: int) -> tuple[list[_Group], bool]:
        """The row groups that may begin at page ``at``; may the pages also break off within one?"""
        found = self._known.get(at)
        if found is None:
            found = self._known[at] = self._find(at) if at < len(self._pages) else ([], False)
        return found

    def _find(self, at: int) -> tuple[list[_Group], bool]:
        options: list[_Group] = []
        may_break_off = False
        first, rows, sizes = self._leaves[0], 0, 0
        place = at + self._pages[at].is_dictionary
        if place > at and not self._holds(0, at, True):
            return [], False
        only = len(self._leaves) == 1
        regular = self._pages[at].is_dictionary or first.max_repetition_level > 0 or first.leaf_type.width is None
        begun = self._pages[place].count if place < len(self._pages) else 0
        while place < len(self._pages) and not self._pages[place].is_dictionary:
            if not self._holds(0, place, place > at and self._pages[at].is_dictionary):
                break
            counted = self._chunks.rows(first, self._pages[place])
            if counted is None:
                break
            rows += counted[0]
            place += 1
            self._take_step()
            # As :meth:`_looks_regular` has it, of which all pages but these last two were asked before.
            regular = regular or self._pages[place - 1].encoding != _PLAIN
            if self._is_regular and not regular and place - at > 1:
                last, before = self._pages[place - 1].count, self._pages[place - 2].count
                if last > begun or (place - at > 2 and before != begun):
                    break
            if place < len(self._pages) and not self._begins(first, place):
                continue
            if only and place < len(self._pages) and not self._pages[place].is_dictionary:
                continue  # the rows of one column come in one order, however they are parted
            if self._wanted is not None and rows > self._wanted:
                break
            sizes += 1
            if sizes > _SIZES:
                raise _TooMany
            end = self._end(at, rows)
            if end is None:
                continue
            if end >= 0:
                options.append((rows, end))
            elif not self._segment.at_end:
                may_break_off = True
        else:
            # More of the first leaf's pages may be missing.
            if place == len(self._pages) and not self._segment.at_end and not only:
                may_break_off = may_break_off or self._wanted is None or rows < self._wanted
        if self._wanted is not None and self._is_cut_by_limit(at, self._wanted):
            options = [option for option in options if option[0] == self._wanted] or options
        return options, may_break_off

    def _is_cut_by_limit(self, at: int, rows: int) -> bool:
        """Is each page but the last of a first chunk of ``rows`` rows as long as writers make them?

        A shorter one is likely to be the end of a chunk, and then row groups are shorter than was told.
        """
        place = at + self._pages[at].is_dictionary
        found = 0
        while place < len(self._pages) and not self._pages[place].is_dictionary:
            page = self._pages[place]
            found += (self._chunks.rows(self._leaves[0], page) or (rows, True))[0]
            if found >= rows:
                return True
            if page.count < _FULL_ROWS and page.unpacked < _FULL_BYTES:
                return False
            place += 1
        return False

    def _begins(self, leaf: SchemaNode, place: int) -> bool:
        """Does page ``place`` begin with a row, were it one of ``leaf``?"""
        if not leaf.max_repetition_level or self._pages[place].is_dictionary:
            return True
        if not self._holds(leaf.leaf_start, place, True):
            return True
        counted = self._chunks.rows(leaf, self._pages[place])
        return counted is None or counted[1] or not self._chunks.fits(leaf, self._pages[place])

    def _end(self, at: int, rows: int) -> int | None:
        """Where a row group of ``rows`` rows ends that begins at ``at``: -1 behind the pages, ``None`` if none does."""
        for leaf in range(len(self._leaves)):
            if at >= len(self._pages):
                return -1
            end = self._chunk_end(leaf, at, rows)
            if end is None or end < 0:
                return end
            at = end
        return at

    def _chunk_end(self, leaf: int, at: int, rows: int) -> int | None:
        node, begin = self._leaves[leaf], at
        has_dictionary = self._pages[at].is_dictionary
        if has_dictionary:
            if not self._holds(leaf, at, True):
                return None
            at += 1
        if not node.max_repetition_level and rows:
            end = self._flat_end(leaf, at, rows, has_dictionary)
            if end is None or end < 0 or not self._is_regular or self._looks_regular(node, begin, end):
                return end
            return None
        if at >= len(self._pages):
            return -1
        if has_dictionary and self._pages[at].offset != self._ends[begin]:
            return None
        self._take_step()
        stretches = self._stretches.setdefault((self._chunks.kinds[leaf], has_dictionary), Stretches(len(self._pages)))
        end = stretches.end(at, rows, partial(self._counted, leaf, has_dictionary))
        if end is None or end < 0:
            return end
        at = end
        while at < len(self._pages) and not self._begins(node, at):
            counted = self._chunks.rows(node, self._pages[at])
            if counted is None or counted[0]:
                return None
            at += 1
        if self._is_regular and not self._looks_regular(node, begin, at):
            return None
        return at

    def _counted(self, leaf: int, has_dictionary: bool, place: int, follows: bool) -> int | None:
        """Rows of page ``place``, were it one of a leaf, and did it follow the page before."""
        self._take_step(_OF_LISTS)
        page = self._pages[place]
        if follows and page.offset != self._ends[place - 1]:
            return None
        if page.is_dictionary or not self._holds(leaf, place, has_dictionary):
            return None
        counted = self._chunks.rows(self._leaves[leaf], page)
        return None if counted is None else counted[0]

    def _flat_end(self, leaf: int, at: int, rows: int, has_dictionary: bool) -> int | None:
        """As :meth:`_chunk_end`, of a leaf without lists, whose rows are the entries of its pages."""
        self._take_step()
        wanted = self._counts[at] + rows
        if wanted > self._counts[-1]:
            return -1 if self._held_until(leaf, at, has_dictionary) == len(self._pages) else None
        end = self._places.get(wanted)
        return end if end is not None and end <= self._held_until(leaf, at, has_dictionary) else None

    def _held_until(self, leaf: int, at: int, has_dictionary: bool) -> int:
        """The first page from ``at`` on that does not follow the one before, or is none of the leaf's."""
        known = self._runs.setdefault((self._chunks.kinds[leaf], has_dictionary), {})
        end = at
        while end < len(self._pages) and end not in known:
            page = self._pages[end]
            if page.is_dictionary or not self._holds(leaf, end, has_dictionary):
                break
            end += 1
            if end < len(self._pages) and self._pages[end].offset != page.end:
                break
        found = known.get(end, end)
        known.update(dict.fromkeys(range(at, end), found))
        return found

    def _cut(self, at: int, rows: int) -> tuple[tuple[Page, ...], ...]:
        chunks = []
        for leaf in range(len(self._leaves)):
            end = self._chunk_end(leaf, at, rows)
            assert end is not None
            chunks.append(tuple(self._pages[at:end]))
            at = end
        return tuple(chunks)

    def _holds(self, leaf: int, at: int, has_dictionary: bool) -> bool:
        key = (self._chunks.kinds[leaf], at, has_dictionary)
        found = self._fits.get(key)
        if found is None:
            node, page = self._leaves[leaf], self._pages[at]
            found = may_hold(node, page, has_dictionary=has_dictionary)
            found = self._fits[key] = found and (not self._opens or self._chunks.fits(node, page))
        return found

    def _looks_regular(self, leaf: SchemaNode, begin: int, end: int) -> bool:
        """Are pages of one size but for the last, as writers cut flat numbers?"""
        if leaf.max_repetition_level or leaf.leaf_type.width is None or self._pages[begin].is_dictionary:
            return True
        if end - begin < 2 or self._unlike[end] > self._unlike[begin]:
            return True
        return self._alike[begin] >= end - 1 and self._pages[end - 1].count <= self._pages[begin].count


def _runs_of(counts: Sequence[int]) -> list[int]:
    """For each place where the run of equal counts ends that it is in."""
    ends = list(range(1, len(counts) + 1))
    for at in range(len(counts) - 2, -1, -1):
        if counts[at] == counts[at + 1]:
            ends[at] = ends[at + 1]
    return ends
