"""Select the pages of a column chunk to read: all pages, or those that contain selected rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError, LimitError, OffsetIndexError, ParquetError
from pqext.core.base.limits import Limits
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.format.metadata import PageType
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.io.source import Source, Span
from pqext.core.read.pages.page import RawPage, raw_pages
from pqext.core.schema.facts import PageFacts
from pqext.core.schema.row_ranges import RowRanges, rows_of_pages

Rows = Sequence[range] | NDArray[np.int64]
"""Rows of a row group: disjoint ascending ranges, or ascending numbers."""


@dataclass(frozen=True, slots=True)
class PageSpan:
    """Adjacent pages, with the offsets, sizes and row counts of the pages according to the offset index.

    ``places`` is None if the index was not read, and empty for a dictionary page.
    """

    span: Span
    places: tuple[list[int], list[int], list[int]] | None


class PageSelection(Protocol):
    """Pages of one column chunk that a reader decodes.

    ``rows`` are the rows of the row group that the pages contain; these are all rows if the selection is ``complete``.
    ``offset`` is the offset of the chunk in the file at ``path``.
    """

    path: str | None
    offset: int
    rows: RowRanges
    complete: bool

    @property
    def is_ordinary(self) -> bool:
        """Whether the page spans contain all bytes to read. If so, a page table can decode the pages."""

    def page_spans(self) -> Iterator[PageSpan]:
        """Yield the spans of the pages, beginning with the dictionary page."""

    def iter_pages(
        self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool
    ) -> Iterator[RawPage]:
        """Yield the pages, beginning with the dictionary page, like :func:`pqext.core.read.pages.page.raw_pages`."""


class AllPages:
    """All pages of a chunk with the bytes ``span``, in a row group of ``rows`` rows.

    If ``span`` may extend beyond the chunk, the chunk ends after ``entries`` entries.
    """

    complete = True

    def __init__(self, span: Span, rows: int, entries: int | None = None) -> None:
        self.path = span.path
        self.offset = span.offset
        self.rows = [range(rows)]
        self._span = span
        self._entries = entries

    @property
    def is_ordinary(self) -> bool:
        """Whether the chunk ends at the end of the byte span."""
        return self._entries is None

    def page_spans(self) -> Iterator[PageSpan]:
        """Yield the chunk as one span."""
        yield PageSpan(self._span, None)

    def iter_pages(
        self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool
    ) -> Iterator[RawPage]:
        """Yield all pages."""
        return raw_pages(self._span, limits, decryptor, has_dictionary=has_dictionary, entries=self._entries)


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent pages from ``first`` to ``stop`` (exclusive); an empty range for the dictionary page or for a gap."""

    first: int
    stop: int
    offset: int
    length: int


class SelectedPages:
    """Pages of a chunk that contain any of ``rows`` according to the offset index in ``index``.

    ``chunk`` is the offset and length of the chunk in ``source``. Bytes that the index omits or assigns no rows are
    also checked, since a page there would shift all rows. No other pages are fetched.
    """

    complete = False

    def __init__(self, source: Source, chunk: tuple[int, int], index: IndexedPages, rows: Rows) -> None:
        self.path = source.path
        self.offset = chunk[0]
        self._stop = sum(chunk)
        self._source = source
        self._index = index
        self._pages = pages_of(index, rows)
        self.rows = rows_of_pages(index, self._pages)
        self._held: dict[int, Span] = {}

    @property
    def ranges(self) -> list[tuple[Source, tuple[int, int]]]:
        """Byte ranges of the selected pages: source, offset and length of each run of adjacent pages."""
        return [(self._source, (run.offset, run.length)) for run in self._runs]

    def use_spans(self, spans: Sequence[Span]) -> None:
        """Read the pages from ``spans``, which contain the bytes of :attr:`ranges`, instead of from the source."""
        self._held = {span.offset: span for span in spans}

    def _spans(self, group: Sequence[_Run]) -> list[Span]:
        if self._held:
            return [self._held[element.offset] for element in group]
        return self._source.spans([(item.offset, item.length) for item in group])

    @cached_property
    def is_ordinary(self) -> bool:
        """Whether the offset index covers the complete chunk."""
        return not self._pages or self._index.covers_bytes_to(self._stop)

    def page_spans(self) -> Iterator[PageSpan]:
        """Yield the spans of the dictionary page and the selected pages."""
        for group in self._iter_fetch_groups():
            spans = self._spans(group)
            for item, span in zip(group, spans, strict=True):
                pages = range(item.first, item.stop)
                ranges = [self._index.byte_range(page) for page in pages]
                starts, sizes = [start for start, _ in ranges], [size for _, size in ranges]
                yield PageSpan(span, (starts, sizes, self._index.row_counts[item.first : item.stop]))

    def iter_pages(
        self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool
    ) -> Iterator[RawPage]:
        """Yield the dictionary page and the selected pages. Raises ``OffsetIndexError`` if the index is wrong."""
        if self._pages and not self._index.covers_bytes_to(self._stop):
            self._check_rest(limits, decryptor)
        for stretches in self._iter_fetch_groups():
            spans = self._spans(stretches)
            for page_span, span in zip(stretches, spans, strict=True):
                opening = has_dictionary and page_span.first == page_span.stop
                pages = raw_pages(span, limits, decryptor, has_dictionary=opening, ordinal=page_span.first)
                yield from self._check_pages(page_span, pages)

    def _check_pages(self, page_span: _Run, pages: Iterator[RawPage]) -> Iterator[RawPage]:
        """Yield ``pages`` after checking that each has the offset and the row count in the index."""
        number = page_span.first
        for raw in self._from_index(pages):
            if raw.header.type not in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                yield raw
                continue
            if number == page_span.stop or self._index.byte_range(number)[0] != raw.offset:
                raise OffsetIndexError("a data page is missing from the offset index", offset=raw.offset)
            rows = len(self._index.rows(number))
            if self._index.is_flat and raw.num_values != rows:
                message = f"a page has {raw.num_values} rows, but the offset index states {rows}"
                raise OffsetIndexError(message, offset=raw.offset)
            raw.indexed_rows = rows
            yield raw
            number += 1
        if number < page_span.stop:
            message = f"wrong offset index: no data page at the location of page {number}"
            raise OffsetIndexError(message, offset=page_span.offset)

    @staticmethod
    def _from_index(pages: Iterator[RawPage]) -> Iterator[RawPage]:
        """Yield ``pages``, which start at an offset in the index. Raises ``OffsetIndexError`` if the first page is
        invalid.
        """
        try:
            first = next(pages, None)
        except (CorruptFileError, LimitError) as error:
            message = f"there is no page at an offset that the offset index lists: {error.message}"
            raise OffsetIndexError(message, offset=error.offset) from None
        if first is not None:
            yield first
            yield from pages

    def _check_rest(self, limits: Limits, decryptor: ChunkDecryptor | None) -> None:
        """Raise ``OffsetIndexError`` if bytes that the offset index does not list contain values."""
        for part in self._unindexed_runs():
            span = Span(self._source, part.offset, part.length)
            try:
                for raw in raw_pages(span, limits, decryptor, ordinal=part.first):
                    if raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2) and raw.num_values:
                        message = "the column chunk has values outside the rows of the offset index"
                        raise OffsetIndexError(message, offset=raw.offset)
            except (CorruptFileError, LimitError) as error:
                # Arbitrary bytes may follow the last page.
                if part.first < len(self._index) or self._begins_with_values(span, limits, decryptor):
                    message = f"bytes outside the pages of the offset index are not a page: {error.message}"
                    raise OffsetIndexError(message, offset=error.offset) from None

    def _begins_with_values(self, span: Span, limits: Limits, decryptor: ChunkDecryptor | None) -> bool:
        try:
            raw = next(raw_pages(span, limits, decryptor, ordinal=len(self._index)), None)
        except ParquetError:
            return False
        return raw is not None and raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2) and raw.num_values > 0

    def _unindexed_runs(self) -> Iterator[_Run]:
        """Yield pages without rows, and gaps between and after pages. ``first`` of a gap is the page after the gap.
        """
        at = self._index.byte_range(0)[0]
        for page in range(len(self._index)):
            offset, length = self._index.byte_range(page)
            if offset > at:
                yield _Run(page, page, at, offset - at)
            if not self._index.rows(page):
                yield _Run(page, page + 1, offset, length)
            at = offset + length
        if at < self._stop:
            yield _Run(len(self._index), len(self._index), at, self._stop - at)

    def _iter_fetch_groups(self) -> Iterator[list[_Run]]:
        """Yield groups of page runs to be fetched together."""
        group: list[_Run] = []
        held = 0
        for page_span in self._runs:
            if group and held + page_span.length > self._source.window_bytes:
                yield group
                group, held = [], 0
            group.append(page_span)
            held += page_span.length
        if group:
            yield group

    @cached_property
    def _runs(self) -> list[_Run]:
        return list(self._adjacent_runs())

    def _adjacent_runs(self) -> Iterator[_Run]:
        if not self._pages:
            return
        head = self._index.byte_range(0)[0] - self.offset
        if head:
            yield _Run(0, 0, self.offset, head)
        most, first = self._source.window_bytes, self._pages[0]
        place = start, _ = self._index.byte_range(first)
        for page, following in zip(self._pages, [*self._pages[1:], -1], strict=True):
            end, place = sum(place), self._index.byte_range(following)
            if following != page + 1 or place[0] != end or end - start >= most:
                yield _Run(first, page + 1, start, end - start)
                first, start = following, place[0]


def pages_of(index: PageFacts, rows: Rows) -> list[int]:
    """Return the numbers of the pages that contain any of ``rows``: disjoint ascending ranges or ascending numbers."""
    if isinstance(rows, np.ndarray):
        before = np.searchsorted(rows, index.starts).tolist()
        until = [*before, len(rows)][1:]
        return [page for page, (first, stop) in enumerate(zip(before, until, strict=True)) if first != stop]
    chosen: list[int] = []
    for item in rows:
        page = max(bisect_right(index.starts, item.start) - 1, 0)
        if chosen:
            page = max(page, chosen[-1] + 1)
        while page < len(index) and index.starts[page] < item.stop:
            chosen.append(page)
            page += 1
    return chosen
