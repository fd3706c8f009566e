"""Assign pages to column chunks and row groups using the schema, if the assignment is unique.

Every row group has a chunk of each leaf in schema order, all with equal rows; a dictionary page starts a chunk.
If pages can be split in several ways, only the row groups that all splits share are recovered: a wrong choice would put
values of one column into another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.detection.footers import Effort
from pqext.recovery.detection.page_matching import PageMatcher, can_belong
from pqext.recovery.detection.pages import Page, Segment
from pqext.recovery.row_groups.search import (
    AMBIGUOUS,
    PageGroup,
    Search,
    Split,
    SplitReason,
    UnplacedPages,
    is_ambiguous,
)

_STEPS, _STEPS_PER_PAGE = 2_000_000, 32
"""Maximum number of pages to inspect in one search for row groups, and per page in all searches of a file."""
_CHECK_STEPS, _CHECK_STEPS_PER_PAGE = 400_000, 16
"""Maximum number of pages to inspect to determine whether other splits also fit."""
MISMATCH = "a page that fits no column"
_OPEN_COST = 100
"""Number of pages that can be inspected in the time needed to open one."""


def group_pages(
    segments: Sequence[Segment], leaves: Sequence[SchemaNode], matcher: PageMatcher, row_group_rows: int | None = None
) -> tuple[list[PageGroup], list[UnplacedPages]]:
    """Assemble the pages of ``segments`` into row groups. Returns the row groups and the unplaced pages."""
    groups: list[PageGroup] = []
    unplaced: list[UnplacedPages] = []
    effort, checks = Effort(0), Effort(0)
    pages = sum(len(segment.pages) for segment in segments)
    effort.remaining = _STEPS + _STEPS_PER_PAGE * pages
    checks.remaining = _CHECK_STEPS + _CHECK_STEPS_PER_PAGE * pages
    for segment in segments:
        segment_groups, remaining = _split(segment, leaves, matcher, row_group_rows, effort, checks)
        if not segment_groups:
            parts, mismatches = _split_at_mismatches(segment, leaves, matcher, effort)
            if mismatches:
                splits = [_split(part, leaves, matcher, row_group_rows, effort, checks) for part in parts]
                segment_groups = [group for part_groups, _ in splits for group in part_groups]
                remaining = [*mismatches, *(pages for _, part_remaining in splits for pages in part_remaining)]
        groups += segment_groups
        unplaced += remaining
    return groups, unplaced


def _split(
    segment: Segment,
    leaves: Sequence[SchemaNode],
    matcher: PageMatcher,
    row_group_rows: int | None,
    effort: Effort,
    checks: Effort,
) -> Split:
    """Split ``segment`` into row groups. Returns the row groups with the reasons for the split, and the unplaced pages.

    A unique split is accepted even if it contradicts ``row_group_rows``.
    """

    def find_split(regularity: Sequence[bool]) -> Split:
        return Search(segment, leaves, matcher, None, checks, _CHECK_STEPS).run(regularity)

    unique = find_split((False,))
    if unique[0] and not is_ambiguous(unique):
        return [replace(group_pages, split_reason="only") for group_pages in unique[0]], unique[1]
    split = Search(segment, leaves, matcher, row_group_rows, effort, _STEPS).run()
    if not split[0] and row_group_rows is None:
        return split
    free = split if row_group_rows is None else find_split((True, False))
    if not free[0] and not split[0]:
        return free
    certain = set(map(_key, unique[0]))
    regular = set(map(_key, free[0]))
    contradicted = bool(regular) and not is_ambiguous(free) and set(map(_key, split[0])) != regular
    if contradicted and split[0] and not regular <= certain:
        return [], [UnplacedPages(segment.start, segment.stop, AMBIGUOUS)]
    if contradicted or not split[0]:
        split = free

    def reason(group: PageGroup) -> SplitReason:
        key = _key(group)
        return "only" if key in certain else "regular" if key in regular else "row_group_rows"

    return [replace(group_pages, split_reason=reason(group_pages)) for group_pages in split[0]], split[1]


def _key(group: PageGroup) -> tuple[int, tuple[tuple[Page, ...], ...]]:
    return group.rows, group.chunks


def _split_at_mismatches(
    segment: Segment, leaves: Sequence[SchemaNode], matcher: PageMatcher, effort: Effort
) -> tuple[list[Segment], list[UnplacedPages]]:
    """Split a segment at pages that match no leaf. Returns the resulting segments and the unplaced pages."""
    parts: list[Segment] = []
    mismatches: list[UnplacedPages] = []
    begin = 0
    leaves = [*dict(zip(matcher.types, leaves, strict=True)).values()]  # a leaf of each type
    for at, page in enumerate([*segment.pages, None]):
        if page is not None and (page.is_dictionary or _matches_any_leaf(page, leaves, matcher, effort)):
            continue
        if begin < at:
            first, last = begin == 0, at == len(segment.pages)
            parts.append(Segment(segment.pages[begin:at], segment.at_start and first, segment.at_end and last))
        if page is not None:
            mismatches.append(UnplacedPages(page.offset, page.end, MISMATCH))
        begin = at + 1
    return parts, mismatches


def _matches_any_leaf(page: Page, leaves: Sequence[SchemaNode], matcher: PageMatcher, effort: Effort) -> bool:
    """Return whether the page can belong to one of the leaves. True if no effort remains."""
    for leaf in leaves:
        if not effort.spend(1):
            return True
        if not can_belong(leaf, page, has_dictionary=True):
            continue
        if not effort.spend(_OPEN_COST) or (matcher.count_rows(leaf, page) is not None and matcher.fits(leaf, page)):
            return True
    return False
