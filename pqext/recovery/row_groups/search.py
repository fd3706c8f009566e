"""Search for row groups in consecutive pages.

Every row group has a chunk of each leaf in schema order, all with equal rows; a dictionary page starts a chunk.
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
from pqext.recovery.detection.footers import Effort
from pqext.recovery.detection.page_matching import PageMatcher, can_belong
from pqext.recovery.detection.pages import Page, Segment
from pqext.recovery.row_groups.page_spans import PageSpans

_PLAIN = int(Encoding.PLAIN)
_SIZES = 4096
"""Maximum number of sizes of one row group to try."""
_OF_LISTS = 10
"""Steps for a page whose rows are counted for the first time."""
_FULL_ROWS, _FULL_BYTES = 20_000, 1 << 16
"""Numbers of rows or bytes at which writers end a page within a chunk."""
AMBIGUOUS = "pages that can be split into row groups in more than one way"
GIVEN_UP = "pages whose search for row groups takes too long"
UNPLACED = "pages that do not form a complete row group"
SplitReason = Literal["only", "regular", "row_group_rows"]


@dataclass(frozen=True, slots=True)
class PageGroup:
    """Row group of ``rows`` rows, with the pages of the chunk of each leaf.

    ``split_reason`` states why it was chosen.
    """

    rows: int
    chunks: tuple[tuple[Page, ...], ...]
    split_reason: SplitReason = "only"

    @property
    def extent(self) -> tuple[int, int]:
        """Start offset of the first page and end offset of the last page."""
        return self.chunks[0][0].offset, self.chunks[-1][-1].end


@dataclass(frozen=True, slots=True)
class UnplacedPages:
    """Byte range of pages that belong to no row group, and the reason."""

    start: int
    stop: int
    reason: str


class _SearchLimitError(Exception):
    """A search has used all its steps or effort."""


Split = tuple[list[PageGroup], list[UnplacedPages]]
_Group = tuple[int, int]
"""Number of rows in a row group, and the number of the page after it."""


def is_ambiguous(split: Split) -> bool:
    """Return whether a split is ambiguous: several splits are possible, or the search was abandoned."""
    return any(pages.reason in (AMBIGUOUS, GIVEN_UP) for pages in split[1])


class Search:
    """Search for the row groups of one segment. It ends after ``steps`` steps or when no ``effort`` remains."""

    def __init__(
        self,
        segment: Segment,
        leaves: Sequence[SchemaNode],
        matcher: PageMatcher,
        row_group_rows: int | None,
        effort: Effort,
        steps: int,
    ) -> None:
        self._segment = segment
        self._pages = segment.pages
        self._leaves = leaves
        self._matcher = matcher
        self._row_group_rows = row_group_rows
        self._max_steps = self._steps = steps
        self._effort = effort
        self._is_regular = True
        self._opens = False
        self._counts = [0, *accumulate(0 if page.is_dictionary else page.count for page in segment.pages)]
        self._not_plain = [0, *accumulate(page.encoding != _PLAIN for page in segment.pages)]
        self._ends = [page.end for page in segment.pages]
        self._equal_until = _runs_of([page.count for page in segment.pages])
        self._page_by_total = {total: page for page, total in reversed([*enumerate(self._counts)])}
        self._runs: dict[tuple[int, bool], dict[int, int]] = {}
        self._spans: dict[tuple[int, bool], PageSpans] = {}
        self._options_at: dict[Any, Any] = {}
        self._fits: dict[Any, bool] = {}
        self._reaches_end: dict[Any, bool] = {}

    def run(self, regularity: Sequence[bool] = (True, False)) -> Split:
        """Split the segment. Values of ``regularity`` are tried in order; True requires pages of equal counts."""
        best: Split = [], [self._add_unplaced(0, len(self._pages), UNPLACED)]
        for regular in regularity:
            # Opening pages is more precise than reading headers, but slower.
            for opens in (False, True) if self._segment.at_start else (True,):
                self._opens = opens
                self._is_regular = regular
                self._steps = self._max_steps
                for cache in (self._options_at, self._reaches_end, self._fits, self._runs, self._spans):
                    cache.clear()
                try:
                    split = self._split_from_start() if self._segment.at_start else self._split_remainder()
                except _SearchLimitError:
                    split = [], [self._add_unplaced(0, len(self._pages), GIVEN_UP)]
                if split is None:
                    break
                best = split
                if not is_ambiguous(split):
                    return split
            if best[0] or is_ambiguous(best):
                return best
        return best

    def _add_unplaced(self, first: int, stop: int, reason: str) -> UnplacedPages:
        return UnplacedPages(self._pages[first].offset, self._pages[stop - 1].end, reason)

    def _split_from_start(self) -> Split | None:
        """Split the segment if a row group starts at its first page. Returns None if no row groups reach its end."""
        self._explore([0])
        return self._split_from(0, 0) if self._reaches_end[0] else None

    def _split_remainder(self) -> Split | None:
        """Split the segment if its first pages end an incomplete row group.

        Returns None if no row groups reach its end.
        """
        size = len(self._pages)
        self._explore(range(size))
        begins = [at for at in range(size + 1) if self._reaches_end[at] and self._can_end_row_group(at)]
        if not begins:
            return None
        splits = [self._split_from(at, 0) if at < size else ([], []) for at in begins]
        if len(splits) == 1:
            return splits[0]
        common = set.intersection(*({(group.rows, group.chunks) for group in groups} for groups, _ in splits))
        if not common:
            return [], [self._add_unplaced(0, size, AMBIGUOUS)]
        certain = [group for group in splits[0][0] if (group.rows, group.chunks) in common]
        edges = [self._segment.start, *(edge for group in certain for edge in group.extent), self._segment.stop]
        gaps = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2) if edges[i] < edges[i + 1]]
        return certain, [UnplacedPages(start, stop, AMBIGUOUS) for start, stop in gaps]

    def _can_end_row_group(self, stop: int) -> bool:
        """Return whether the pages before ``stop`` can be the end of a row group whose first pages are missing."""
        if not stop:
            return True
        leaf, at, rows = len(self._leaves) - 1, stop, 0
        while at:  # the last chunk may have any of these sizes
            at -= 1
            self._count_steps()
            if not self._matches(leaf, at, True):
                return False
            page_rows = self._matcher.count_rows(self._leaves[leaf], self._pages[at])
            if page_rows is None:
                return False
            rows += page_rows[0]
            if not at:
                # All pages are one chunk, which may be incomplete; with a single column this loses no rows.
                return len(self._leaves) > 1 or self._lacks_beginning(stop)
            if self._can_precede(leaf - 1, at, rows):
                return True
            if self._pages[at].is_dictionary:
                return False
        return False

    def _lacks_beginning(self, stop: int) -> bool:
        """Return whether the pages before ``stop`` require missing pages: a dictionary, or the start of a row."""
        first = self._pages[0]
        if first.is_dictionary:
            return False
        page_rows = self._matcher.count_rows(self._leaves[0], first)
        lacks = (page.encoding in DICTIONARY_ENCODINGS for page in self._pages[:stop])
        return page_rows is None or not page_rows[1] or any(lacks)

    def _can_precede(self, leaf: int, page: int, rows: int) -> bool:
        """Return whether the pages before ``page`` can be chunks of ``rows`` rows, of ``leaf`` and preceding leaves."""
        while page:
            if leaf < 0:
                return False
            total, lacks = 0, False
            while page and total < rows:
                page -= 1
                self._count_steps()
                page_rows = self._matcher.count_rows(self._leaves[leaf], self._pages[page])
                if self._pages[page].is_dictionary or not self._matches(leaf, page, True) or page_rows is None:
                    return False
                total += page_rows[0]
                lacks = lacks or self._pages[page].encoding in DICTIONARY_ENCODINGS
            if total > rows:
                return False
            if page and self._pages[page - 1].is_dictionary and self._matches(leaf, page - 1, True):
                page, lacks = page - 1, False
            if not page:
                return leaf > 0 or total < rows or lacks  # otherwise the row group is complete
            leaf -= 1
        return True

    def _count_steps(self, steps: int = 1) -> None:
        """Count ``steps`` of the search. Raises ``_SearchLimitError`` if none remain."""
        self._steps -= steps
        if self._steps < 0 or not self._effort.spend(steps):
            raise _SearchLimitError

    def _split_from(self, page: int, unplaced_from: int) -> Split:
        """Split pages from ``page`` on while the split is unique. Pages from ``unplaced_from`` to it are unplaced."""
        groups: list[PageGroup] = []
        unplaced = [self._add_unplaced(unplaced_from, page, UNPLACED)] if page > unplaced_from else []
        while page < len(self._pages):
            self._count_steps()
            options, may_break_off = self._options(page)
            viable = [option for option in options if self._reaches_end[option[1]]]
            if len(viable) != 1 or may_break_off:
                is_end = not viable
                unplaced.append(self._add_unplaced(page, len(self._pages), UNPLACED if is_end else AMBIGUOUS))
                break
            rows, end = viable[0]
            if rows:
                groups.append(PageGroup(rows, self._chunks_at(page, rows)))
            page = end
        return groups, unplaced

    def _explore(self, starts: Sequence[int]) -> None:
        """Record, for pages reachable from ``starts``, whether consecutive row groups reach the end of the segment."""
        pending = list(reversed(starts))
        seen = set(pending)
        while pending:
            for _, end in self._options(pending.pop())[0]:
                if end not in seen:
                    seen.add(end)
                    pending.append(end)
        size = len(self._pages)
        for at in sorted(seen | {size}, reverse=True):
            if at == size:
                self._reaches_end[at] = True
            else:
                options, may_break_off = self._options(at)
                self._reaches_end[at] = may_break_off or any(self._reaches_end[end] for _, end in options)

    def _options(self, page: int) -> tuple[list[_Group], bool]:
        """Return the row groups that may start at page ``page``, and whether the segment may end within one of them."""
        options = self._options_at.get(page)
        if options is None:
            options = self._options_at[page] = self._find_options(page) if page < len(self._pages) else ([], False)
        return options

    def _find_options(self, position: int) -> tuple[list[_Group], bool]:
        options: list[_Group] = []
        may_break_off = False
        first, rows, sizes = self._leaves[0], 0, 0
        page = position + self._pages[position].is_dictionary
        if page > position and not self._matches(0, position, True):
            return [], False
        only = len(self._leaves) == 1
        regular = self._pages[position].is_dictionary or first.max_repetition_level > 0 or first.leaf_type.width is None
        begun = self._pages[page].count if page < len(self._pages) else 0
        while page < len(self._pages) and not self._pages[page].is_dictionary:
            if not self._matches(0, page, page > position and self._pages[position].is_dictionary):
                break
            page_rows = self._matcher.count_rows(first, self._pages[page])
            if page_rows is None:
                break
            rows += page_rows[0]
            page += 1
            self._count_steps()
            # Like :meth:`_looks_regular`, which has covered all pages but these last two.
            regular = regular or self._pages[page - 1].encoding != _PLAIN
            if self._is_regular and not regular and page - position > 1:
                last, before = self._pages[page - 1].count, self._pages[page - 2].count
                if last > begun or (page - position > 2 and before != begun):
                    break
            if page < len(self._pages) and not self._starts_row(first, page):
                continue
            if only and page < len(self._pages) and not self._pages[page].is_dictionary:
                continue  # rows of a single column have the same order in any split
            if self._row_group_rows is not None and rows > self._row_group_rows:
                break
            sizes += 1
            if sizes > _SIZES:
                raise _SearchLimitError
            end = self._end(position, rows)
            if end is None:
                continue
            if end >= 0:
                options.append((rows, end))
            elif not self._segment.at_end:
                may_break_off = True
        else:
            # More pages of the first leaf may be missing.
            if page == len(self._pages) and not self._segment.at_end and not only:
                may_break_off = may_break_off or self._row_group_rows is None or rows < self._row_group_rows
        if self._row_group_rows is not None and self._is_split_by_limit(position, self._row_group_rows):
            options = [option for option in options if option[0] == self._row_group_rows] or options
        return options, may_break_off

    def _is_split_by_limit(self, position: int, rows: int) -> bool:
        """Return whether the pages of a first chunk of ``rows`` rows have a writer's full size, except the last."""
        number = position + self._pages[position].is_dictionary
        total = 0
        while number < len(self._pages) and not self._pages[number].is_dictionary:
            page = self._pages[number]
            total += (self._matcher.count_rows(self._leaves[0], page) or (rows, True))[0]
            if total >= rows:
                return True
            if page.count < _FULL_ROWS and page.uncompressed_bytes < _FULL_BYTES:
                return False
            number += 1
        return False

    def _starts_row(self, leaf: SchemaNode, number: int) -> bool:
        """Return whether the first entry of page ``number``, decoded as ``leaf``, starts a row."""
        if not leaf.max_repetition_level or self._pages[number].is_dictionary:
            return True
        if not self._matches(leaf.leaf_start, number, True):
            return True
        page_rows = self._matcher.count_rows(leaf, self._pages[number])
        return page_rows is None or page_rows[1] or not self._matcher.fits(leaf, self._pages[number])

    def _end(self, page: int, rows: int) -> int | None:
        """Return the page after a row group at ``page``; -1 if it exceeds the segment, None if pages do not match."""
        for leaf in range(len(self._leaves)):
            if page >= len(self._pages):
                return -1
            end = self._chunk_end(leaf, page, rows)
            if end is None or end < 0:
                return end
            page = end
        return page

    def _chunk_end(self, leaf: int, page: int, rows: int) -> int | None:
        node, begin = self._leaves[leaf], page
        has_dictionary = self._pages[page].is_dictionary
        if has_dictionary:
            if not self._matches(leaf, page, True):
                return None
            page += 1
        if not node.max_repetition_level and rows:
            end = self._flat_end(leaf, page, rows, has_dictionary)
            if end is None or end < 0 or not self._is_regular or self._has_regular_pages(node, begin, end):
                return end
            return None
        if page >= len(self._pages):
            return -1
        if has_dictionary and self._pages[page].offset != self._ends[begin]:
            return None
        self._count_steps()
        spans = self._spans.setdefault((self._matcher.types[leaf], has_dictionary), PageSpans(len(self._pages)))
        end = spans.find_end(page, rows, partial(self._span_rows, leaf, has_dictionary))
        if end is None or end < 0:
            return end
        page = end
        while page < len(self._pages) and not self._starts_row(node, page):
            page_rows = self._matcher.count_rows(node, self._pages[page])
            if page_rows is None or page_rows[0]:
                return None
            page += 1
        if self._is_regular and not self._has_regular_pages(node, begin, page):
            return None
        return page

    def _span_rows(self, leaf: int, has_dictionary: bool, number: int, follows: bool) -> int | None:
        """Return the row count of a page; None for a mismatch and, if ``follows``, for a page that is not adjacent."""
        self._count_steps(_OF_LISTS)
        page = self._pages[number]
        if follows and page.offset != self._ends[number - 1]:
            return None
        if page.is_dictionary or not self._matches(leaf, number, has_dictionary):
            return None
        page_rows = self._matcher.count_rows(self._leaves[leaf], page)
        return None if page_rows is None else page_rows[0]

    def _flat_end(self, leaf: int, page: int, rows: int, has_dictionary: bool) -> int | None:
        """Return the page that follows a chunk without lists.

        Return -1 if the chunk extends beyond the segment, and None if its pages do not match the leaf.
        """
        self._count_steps()
        target = self._counts[page] + rows
        if target > self._counts[-1]:
            return -1 if self._matches_until(leaf, page, has_dictionary) == len(self._pages) else None
        end = self._page_by_total.get(target)
        return end if end is not None and end <= self._matches_until(leaf, page, has_dictionary) else None

    def _matches_until(self, leaf: int, position: int, has_dictionary: bool) -> int:
        """Return the first page at or after ``position`` that does not match the leaf or is not adjacent."""
        ends = self._runs.setdefault((self._matcher.types[leaf], has_dictionary), {})
        end = position
        while end < len(self._pages) and end not in ends:
            page = self._pages[end]
            if page.is_dictionary or not self._matches(leaf, end, has_dictionary):
                break
            end += 1
            if end < len(self._pages) and self._pages[end].offset != page.end:
                break
        stop = ends.get(end, end)
        ends.update(dict.fromkeys(range(position, end), stop))
        return stop

    def _chunks_at(self, page: int, rows: int) -> tuple[tuple[Page, ...], ...]:
        chunks = []
        for leaf in range(len(self._leaves)):
            end = self._chunk_end(leaf, page, rows)
            assert end is not None
            chunks.append(tuple(self._pages[page:end]))
            page = end
        return tuple(chunks)

    def _matches(self, leaf: int, position: int, has_dictionary: bool) -> bool:
        key = (self._matcher.types[leaf], position, has_dictionary)
        matches = self._fits.get(key)
        if matches is None:
            node, page = self._leaves[leaf], self._pages[position]
            matches = can_belong(node, page, has_dictionary=has_dictionary)
            matches = self._fits[key] = matches and (not self._opens or self._matcher.fits(node, page))
        return matches

    def _has_regular_pages(self, leaf: SchemaNode, begin: int, end: int) -> bool:
        """Return whether all pages but the last have equal counts, as in chunks of fixed-size values."""
        if leaf.max_repetition_level or leaf.leaf_type.width is None or self._pages[begin].is_dictionary:
            return True
        if end - begin < 2 or self._not_plain[end] > self._not_plain[begin]:
            return True
        return self._equal_until[begin] >= end - 1 and self._pages[end - 1].count <= self._pages[begin].count


def _runs_of(counts: Sequence[int]) -> list[int]:
    """Return, for each position, the end of the run of equal counts that contains it."""
    ends = list(range(1, len(counts) + 1))
    for at in range(len(counts) - 2, -1, -1):
        if counts[at] == counts[at + 1]:
            ends[at] = ends[at + 1]
    return ends
