"""Pages become column chunks and row groups: by the schema, where only one way fits.

Every row group has a chunk of each leaf in the order of the schema, all of as many rows; a dictionary begins a chunk.
Where pages can be parted in several ways that all fit, what these have in common is kept, and the rest is given up:
a wrong choice would put values of one column into another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.fragments.footers import Effort
from pqext.recovery.fragments.leaves import Chunks, may_hold
from pqext.recovery.fragments.pages import Page, Segment
from pqext.recovery.row_groups.search import AMBIGUOUS, PageGroup, Parted, Search, Unplaced, Way, is_ambiguous

_STEPS, _STEPS_PER_PAGE = 2_000_000, 32
"""Pages that are looked at in one search for row groups; all searches of a small file together too."""
_STEPS_OF_CHECKS, _STEPS_OF_CHECKS_PER_PAGE = 400_000, 16
"""Pages that are looked at to learn whether other ways fit too."""
MISFIT = "a page that no column can have"
_OPENED = 100
"""Pages that are looked at in the time in which one is opened."""


def group(
    segments: Sequence[Segment], leaves: Sequence[SchemaNode], chunks: Chunks, row_group_rows: int | None = None
) -> tuple[list[PageGroup], list[Unplaced]]:
    """The row groups of ``segments``, and what is left."""
    groups: list[PageGroup] = []
    unplaced: list[Unplaced] = []
    effort, checks = Effort(0), Effort(0)
    pages = sum(len(segment.pages) for segment in segments)
    effort.left = _STEPS + _STEPS_PER_PAGE * pages
    checks.left = _STEPS_OF_CHECKS + _STEPS_OF_CHECKS_PER_PAGE * pages
    for segment in segments:
        found, left = _parted(segment, leaves, chunks, row_group_rows, effort, checks)
        if not found:
            parts, misfits = _apart(segment, leaves, chunks, effort)
            if misfits:
                searched = [_parted(part, leaves, chunks, row_group_rows, effort, checks) for part in parts]
                found = [one for groups_of_part, _ in searched for one in groups_of_part]
                left = [*misfits, *(one for _, left_of_part in searched for one in left_of_part)]
        groups += found
        unplaced += left
    return groups, unplaced


def _parted(
    segment: Segment,
    leaves: Sequence[SchemaNode],
    chunks: Chunks,
    row_group_rows: int | None,
    effort: Effort,
    checks: Effort,
) -> Parted:
    """The row groups of ``segment``, each with the way in which it was found, and what is left.

    What the pages allow in one way only is taken whatever ``row_group_rows`` says.
    """

    def again(kinds: Sequence[bool]) -> Parted:
        return Search(segment, leaves, chunks, None, checks, _STEPS_OF_CHECKS).run(kinds)

    alone = again((False,))
    if alone[0] and not is_ambiguous(alone):
        return [replace(one, way="only") for one in alone[0]], alone[1]
    found = Search(segment, leaves, chunks, row_group_rows, effort, _STEPS).run()
    if not found[0] and row_group_rows is None:
        return found
    free = found if row_group_rows is None else again((True, False))
    if not free[0] and not found[0]:
        return free
    sure = set(map(_key, alone[0]))
    regular = set(map(_key, free[0]))
    contradicted = bool(regular) and not is_ambiguous(free) and set(map(_key, found[0])) != regular
    if contradicted and found[0] and not regular <= sure:
        return [], [Unplaced(segment.start, segment.stop, AMBIGUOUS)]
    if contradicted or not found[0]:
        found = free

    def way(one: PageGroup) -> Way:
        return "only" if _key(one) in sure else "regular" if _key(one) in regular else "told"

    return [replace(one, way=way(one)) for one in found[0]], found[1]


def _key(group: PageGroup) -> tuple[int, tuple[tuple[Page, ...], ...]]:
    return group.rows, group.chunks


def _apart(
    segment: Segment, leaves: Sequence[SchemaNode], chunks: Chunks, effort: Effort
) -> tuple[list[Segment], list[Unplaced]]:
    """The stretches between pages that no leaf can have, and these pages: what is in them is damaged."""
    parts: list[Segment] = []
    misfits: list[Unplaced] = []
    begin = 0
    leaves = [*dict(zip(chunks.kinds, leaves, strict=True)).values()]  # one of each kind
    for at, page in enumerate([*segment.pages, None]):
        if page is not None and (page.is_dictionary or _has_leaf(page, leaves, chunks, effort)):
            continue
        if begin < at:
            first, last = begin == 0, at == len(segment.pages)
            parts.append(Segment(segment.pages[begin:at], segment.at_start and first, segment.at_end and last))
        if page is not None:
            misfits.append(Unplaced(page.offset, page.end, MISFIT))
        begin = at + 1
    return parts, misfits


def _has_leaf(page: Page, leaves: Sequence[SchemaNode], chunks: Chunks, effort: Effort) -> bool:
    for leaf in leaves:
        if not effort.take(1):
            return True
        if not may_hold(leaf, page, has_dictionary=True):
            continue
        if not effort.take(_OPENED) or (chunks.rows(leaf, page) is not None and chunks.fits(leaf, page)):
            return True
    return False
