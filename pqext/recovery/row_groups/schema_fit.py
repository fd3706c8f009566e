"""Match pages with a schema, leaf by leaf from the start of a row group, and report the first mismatch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding, FieldRepetitionType, SchemaElement, Type
from pqext.core.schema.nodes import SchemaNode
from pqext.recovery.detection.footers import Effort
from pqext.recovery.detection.page_matching import PageMatcher, can_belong
from pqext.recovery.detection.pages import Page

_SIZES = 4096
"""Maximum number of pages in the first chunk of a row group."""
_OPEN_COST, _BYTES = 100, 1000
"""Steps to open a page, and bytes per additional step. Inspecting a page takes one step."""
_COUNT_COST = 3
"""Steps to count the rows of a page with lists."""
_PLACE_COST = 8
"""Steps to place a chunk among inspected pages."""
_MAX_GROUPS = 64
"""Maximum number of row groups that match by page headers and are retained to explain mismatches of values."""


@dataclass(frozen=True, slots=True, eq=False)
class PhysicalLeaf:
    """Leaf with one of its possible physical types: ``node`` is its node in ``elements``, a schema with only this leaf.

    ``matcher`` decodes the leaf. ``path`` contains the nodes from the top-level column to the leaf. ``type`` is equal
    for leaves that accept the same pages. ``changed`` maps element numbers to elements that differ from the provided
    schema. ``contradicts`` contains ``(number, False)`` for each group whose nullability differs from the schema, and
    ``(number, True)`` for the parent of a leaf whose nullability differs.
    """

    node: SchemaNode
    elements: Sequence[SchemaElement]
    matcher: PageMatcher
    path: Sequence[SchemaNode]
    type: int
    changed: dict[int, SchemaElement]
    contradicts: frozenset[tuple[int, bool]]


Column = Sequence[Sequence[Callable[[], Sequence[PhysicalLeaf]]]]
"""Possible shapes of a top-level column: for each shape its leaves, and for each leaf its physical types by likelihood.

The first call creates the physical types.
"""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """First page that does not match a leaf of the schema, and a description of the difference."""

    page: int
    leaf: int
    reason: str


Chunk = tuple[Sequence[PhysicalLeaf], int, int]
"""Physical types of a leaf that match the headers of pages, and the range of these pages."""


@dataclass(frozen=True, slots=True)
class MatchedGroup:
    """Row group whose page headers match the schema. Page ``end`` is the first page after it.

    ``columns`` contains the chunks of each column in each of its possible shapes.
    """

    rows: int
    end: int
    columns: Sequence[Sequence[Sequence[Chunk]]]


class SchemaMatcher:
    """Matcher of ``pages`` with columns that can have several physical types.

    ``furthest`` is the mismatch with the highest page number. ``breaks_off`` means that the pages end within a row
    group and match the columns up to their end.
    """

    def __init__(self, pages: Sequence[Page], columns: Sequence[Column], effort: Effort) -> None:
        self._pages = pages
        self._columns = columns
        self._effort = effort
        self._entries = [0, *accumulate(0 if page.is_dictionary else page.count for page in pages)]
        self._opened: dict[tuple[int, int], bool] = {}
        self._runs: dict[tuple[int, bool], tuple[int, int]] = {}
        self._followers: dict[int, tuple[list[int], bool]] = {}
        self._dead_ends: set[int] = set()
        self.furthest: Mismatch | None = None
        self.breaks_off = False

    def groups(self, page: int) -> Iterator[MatchedGroup]:
        """Yield the row groups that can start at page ``page``."""
        for rows in self._sizes(page):
            group = self._match_group(page, rows)
            if group is not None:
                yield group

    def reaches_end(self, page: int, *, may_break_off: bool) -> bool:
        """Return whether consecutive row groups can extend from page ``page`` to the last page.

        If ``may_break_off``, the last row group may be incomplete.
        """
        waiting = [page]
        seen = {page}
        while waiting:
            begin = waiting.pop()
            if begin not in self._followers:
                self.breaks_off = False
                ends = [group.end for group in self.groups(begin)] if begin < len(self._pages) else []
                self._followers[begin] = ends, self.breaks_off
            ends, breaks_off = self._followers[begin]
            if begin == len(self._pages) or (breaks_off and may_break_off):
                return True
            new = [end for end in ends if end not in seen and end not in self._dead_ends]
            seen.update(new)
            waiting += new
        self._dead_ends |= seen
        return False

    def match_all_pages(self) -> list[MatchedGroup]:
        """Return row groups that start at the first page or after another row group.

        At most ``_MAX_GROUPS`` are returned. The list is empty if no sequence of row groups ends at the last page;
        :attr:`furthest` then contains the mismatch.
        """
        pending, seen = [0], {0}
        matched: list[MatchedGroup] = []
        fits = False
        while pending:
            for group in self.groups(pending.pop()):
                fits |= group.end == len(self._pages)
                if len(matched) < _MAX_GROUPS:
                    matched.append(group)
                if group.end not in seen and group.end < len(self._pages):
                    seen.add(group.end)
                    pending.append(group.end)
        return matched if fits else []

    def _sizes(self, page: int) -> list[int]:
        """Return the possible row counts of a row group that starts at page ``page``.

        They are determined by the pages that match the first leaf.
        """
        sizes: dict[int, None] = {}
        has_dictionary = self._pages[page].is_dictionary
        for leaf in (leaf for shape in self._columns[0] for leaf in shape[0]()):
            rows, number = 0, page
            stop = self._find_run_end(leaf, page, min(page + _SIZES, len(self._pages)), has_dictionary)
            if stop == page:
                self._record_page(page, 0, leaf, has_dictionary)
            while number < stop and self._effort.spend(1):
                page_rows = leaf.matcher.count_rows(leaf.node, self._pages[number])
                if page_rows is None:
                    break
                number += 1
                rows += page_rows[0]
                if rows:
                    sizes[rows] = None
        return [*sizes]

    def _match_group(self, page: int, rows: int) -> MatchedGroup | None:
        """Match the row group of ``rows`` rows that starts at page ``page``; None if the pages do not match."""
        columns: list[list[list[Chunk]]] = []
        leaf = 0
        for column in self._columns:
            shapes = [chunks for shape in column if (chunks := self._match_shape(shape, leaf, page, rows)) is not None]
            if not shapes:
                return None
            end = shapes[0][-1][2]
            columns.append([chunks for chunks in shapes if chunks[-1][2] == end])
            leaf += len(column[0])
            page = end
        return MatchedGroup(rows, page, columns)

    def _match_shape(
        self, shape: Sequence[Callable[[], Sequence[PhysicalLeaf]]], leaf: int, page: int, rows: int
    ) -> list[Chunk] | None:
        """Return the chunks of a column with ``shape``; None if the pages do not match."""
        chunks: list[Chunk] = []
        for number, types in enumerate(shape, leaf):
            ends = [(type, self._find_end(type, number, page, rows)) for type in types()]
            end = next((end for _, end in ends if end is not None), None)
            if end is None:
                return None
            chunks.append(([type for type, other in ends if other == end], page, end))
            page = end
        return chunks

    def _find_end(self, physical_leaf: PhysicalLeaf, leaf: int, page: int, rows: int) -> int | None:
        """Return the page after the chunk of ``rows`` rows that starts at ``page``; None if the pages do not match."""
        size = len(self._pages)
        if page >= size:
            self.breaks_off = True
            return None
        if not self._effort.spend(_PLACE_COST):
            return None
        has_dictionary = self._pages[page].is_dictionary
        if physical_leaf.node.max_repetition_level:
            return self._find_end_of_lists(physical_leaf, leaf, page, rows, has_dictionary)
        end = bisect_left(self._entries, self._entries[page] + rows, page + 1)
        stop = self._find_run_end(physical_leaf, page, min(end, size), has_dictionary)
        entries = self._entries[stop] - self._entries[page]
        if stop < min(end, size):
            self._record_mismatch(stop, leaf, physical_leaf, has_dictionary, page, rows, entries)
            return None
        if end > size:
            self.breaks_off = True
            return None
        if entries > rows:
            self._record(end - 1, leaf, _excess_message(rows))
            return None
        return end

    def _find_end_of_lists(
        self, physical_leaf: PhysicalLeaf, leaf: int, page: int, rows: int, has_dictionary: bool
    ) -> int | None:
        """Find the end of a chunk like :meth:`_find_end`, for a leaf with lists.

        The levels determine the rows of its pages.
        """
        begin, size, total = page, len(self._pages), 0
        while total < rows or page == begin:
            if page >= size:
                self.breaks_off = True
            if page >= size or not self._effort.spend(_COUNT_COST):
                return None
            starts_chunk = self._pages[page].is_dictionary and page > begin
            if starts_chunk or not self._matches(physical_leaf, page, has_dictionary):
                self._record_mismatch(page, leaf, physical_leaf, has_dictionary, begin, rows, total)
                return None
            page_rows = physical_leaf.matcher.count_rows(physical_leaf.node, self._pages[page])
            if page_rows is None:
                self._record(page, leaf, f"{_format_page(self._pages[page])} whose levels cannot be read")
                return None
            total += page_rows[0]
            page += 1
        if total > rows:
            self._record(page - 1, leaf, _excess_message(rows))
            return None
        while page < size and not self._pages[page].is_dictionary:
            page_rows = None
            if self._matches(physical_leaf, page, True):
                page_rows = physical_leaf.matcher.count_rows(physical_leaf.node, self._pages[page])
            if page_rows is None or page_rows[1] or page_rows[0]:
                break  # otherwise the page continues the last row
            page += 1
        return page

    def _find_run_end(self, physical_leaf: PhysicalLeaf, page: int, stop: int, has_dictionary: bool) -> int:
        """Return the end of the pages from ``page`` to at most ``stop`` that can belong to a chunk of the leaf.

        The pages end early if no effort remains.
        """
        if has_dictionary:
            if not self._effort.spend(1) or not self._matches(physical_leaf, page, True):
                return page
            page += 1
        begin, end = self._runs.get((physical_leaf.type, has_dictionary), (page, page))
        if not begin <= page <= end:
            begin = end = page
        while end < stop and self._effort.spend(1):
            if self._pages[end].is_dictionary or not self._matches(physical_leaf, end, has_dictionary):
                break
            end += 1
        self._runs[physical_leaf.type, has_dictionary] = begin, end
        return min(end, stop)

    def _matches(self, physical_leaf: PhysicalLeaf, position: int, has_dictionary: bool) -> bool:
        """Return whether page ``position`` can belong to the leaf. True if no effort remains to open the page."""
        page = self._pages[position]
        if not can_belong(physical_leaf.node, page, has_dictionary=has_dictionary):
            return False
        matches = self._opened.get((physical_leaf.type, position))
        if matches is None:
            if not self._effort.spend(_OPEN_COST + page.uncompressed_bytes // _BYTES):
                return True
            matches = physical_leaf.matcher.fits_exactly(physical_leaf.node, page, physical_leaf.path)
            self._opened[physical_leaf.type, position] = matches
        return matches

    def _record_mismatch(
        self, page: int, leaf: int, physical_leaf: PhysicalLeaf, has_dictionary: bool, begin: int, rows: int, total: int
    ) -> None:
        """Record that page ``page`` does not continue a chunk of ``rows`` rows after its first ``total`` rows."""
        if self._is_further(page) and page > begin and self._pages[page].is_dictionary:
            self._record(page, leaf, f"a dictionary, although its chunk lacks {rows - total} of {rows} rows")
        else:
            self._record_page(page, leaf, physical_leaf, has_dictionary)

    def _record_page(self, position: int, leaf: int, physical_leaf: PhysicalLeaf, has_dictionary: bool) -> None:
        """Record the difference between page ``position`` and a leaf, unless a later page is already recorded."""
        if not self._is_further(position):
            return
        page = self._pages[position]
        if not can_belong(physical_leaf.node, page, has_dictionary=has_dictionary):
            self._record(position, leaf, _describe_difference(physical_leaf, page, has_dictionary))
        elif not self._matches(physical_leaf, position, has_dictionary):
            expected = describe_element(physical_leaf.elements[-1])
            self._record(position, leaf, f"{_format_page(page)} that cannot be read as {expected}")

    def _is_further(self, page: int) -> bool:
        return self.furthest is None or page > self.furthest.page

    def _record(self, page: int, leaf: int, reason: str) -> None:
        if self._is_further(page):
            self.furthest = Mismatch(page, leaf, reason)


def describe_element(element: SchemaElement) -> str:
    """Describe an element by its repetition, and by its physical type if it is a leaf."""
    repetition = FieldRepetitionType(element.repetition_type or 0).name.lower()
    if element.type is None:
        return f"{repetition} group"
    width = f"({element.type_length})" if element.type == Type.FIXED_LEN_BYTE_ARRAY else ""
    return f"{repetition} {Type(element.type).name}{width}"


def _describe_difference(physical_leaf: PhysicalLeaf, page: Page, has_dictionary: bool) -> str:
    """Describe how the header of a page differs from ``physical_leaf``."""
    expected, width = describe_element(physical_leaf.elements[-1]), physical_leaf.node.leaf_type.width
    if page.is_dictionary:
        size = f"{page.count} values in {page.uncompressed_bytes} bytes"
        return f"a dictionary of {size}, which are not of type {expected}"
    if page.encoding in DICTIONARY_ENCODINGS and not has_dictionary:
        return "values of a missing dictionary"
    if page.encoding not in (*DICTIONARY_ENCODINGS, Encoding.PLAIN):
        names = {int(encoding): encoding.name for encoding in Encoding}
        return f"{_format_page(page)} encoded as {names.get(page.encoding)}, which are not of type {expected}"
    each = f", of {width} bytes each" if width else ""
    return f"{_format_page(page)} that are not of type {expected}{each}"


def _excess_message(rows: int) -> str:
    return f"pages with more than the {rows} rows of the row group"


def _format_page(page: Page) -> str:
    return f"{page.count} entries in {page.uncompressed_bytes} bytes"
