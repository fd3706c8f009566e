"""Which pages of a column chunk are read: all of them, or by the offset index those that hold chosen rows."""

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
"""Rows of a row group: ranges that ascend and lie apart, or numbers that ascend."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pages that lie side by side, and what the offset index says of each: where it begins, its bytes and its rows.

    ``places`` is ``None`` where no index was asked, and empty for a dictionary page.
    """

    span: Span
    places: tuple[list[int], list[int], list[int]] | None


class PageSelection(Protocol):
    """The pages of one column chunk that a reader decodes.

    ``rows`` are the rows of the row group that they hold, all of these when the pages are ``complete``. ``path`` and
    ``offset`` tell where the chunk lies in its file, from whose start pages and errors count bytes.
    """

    path: str | None
    offset: int
    rows: RowRanges
    complete: bool

    @property
    def is_ordinary(self) -> bool:
        """Is there nothing to be looked at but the stretches?"""

    def stretches(self) -> Iterator[Stretch]:
        """The bytes of the pages, the dictionary first."""

    def raw(self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool) -> Iterator[RawPage]:
        """The pages, the dictionary first, as :func:`pqext.core.read.pages.page.raw_pages` gives them."""


class AllPages:
    """All pages of a chunk that has the bytes ``span`` and belongs to a row group of ``rows`` rows.

    Where ``span`` may go on behind the chunk, this ends with its ``entries``.
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
        """Does the chunk end where its bytes do?"""
        return self._entries is None

    def stretches(self) -> Iterator[Stretch]:
        """One of them."""
        yield Stretch(self._span, None)

    def raw(self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool) -> Iterator[RawPage]:
        """Every page."""
        return raw_pages(self._span, limits, decryptor, has_dictionary=has_dictionary, entries=self._entries)


@dataclass(frozen=True, slots=True)
class _Run:
    """Pages ``first`` to ``stop`` (exclusive), which lie side by side in the file; none for the dictionary page."""

    first: int
    stop: int
    offset: int
    length: int


class ChosenPages:
    """The pages of a chunk that hold any of ``rows``, by the offset index in ``known``; others are not fetched.

    ``chunk`` is (offset, length) of the chunk in ``source``. What the index leaves out of it, or gives no rows, is
    looked at too: a page there would move all rows.
    """

    complete = False

    def __init__(self, source: Source, chunk: tuple[int, int], known: IndexedPages, rows: Rows) -> None:
        self.path = source.path
        self.offset = chunk[0]
        self._stop = sum(chunk)
        self._source = source
        self._known = known
        self._pages = pages_of(known, rows)
        self.rows = rows_of_pages(known, self._pages)
        self._held: dict[int, Span] = {}

    @property
    def ranges(self) -> list[tuple[Source, tuple[int, int]]]:
        """Where the chosen pages lie: of each stretch its source, offset and length."""
        return [(self._source, (one.offset, one.length)) for one in self._runs]

    def hold(self, spans: Sequence[Span]) -> None:
        """Read from ``spans`` what lies at their offsets: :attr:`ranges`, fetched with other columns'."""
        self._held = {span.offset: span for span in spans}

    def _spans(self, group: Sequence[_Run]) -> list[Span]:
        if self._held:
            return [self._held[one.offset] for one in group]
        return self._source.spans([(one.offset, one.length) for one in group])

    @cached_property
    def is_ordinary(self) -> bool:
        """Does the index account for all of the chunk?"""
        return not self._pages or self._known.accounts_for(self._stop)

    def stretches(self) -> Iterator[Stretch]:
        """The dictionary page and the chosen ones."""
        for group in self._fetched():
            spans = self._spans(group)
            for one, span in zip(group, spans, strict=True):
                pages = range(one.first, one.stop)
                ranges = [self._known.byte_range(page) for page in pages]
                starts, sizes = [start for start, _ in ranges], [size for _, size in ranges]
                yield Stretch(span, (starts, sizes, self._known.row_counts[one.first : one.stop]))

    def raw(self, limits: Limits, decryptor: ChunkDecryptor | None, *, has_dictionary: bool) -> Iterator[RawPage]:
        """The dictionary page and the chosen ones. Raises ``OffsetIndexError`` where the offset index is wrong."""
        if self._pages and not self._known.accounts_for(self._stop):
            self._check_rest(limits, decryptor)
        for stretches in self._fetched():
            spans = self._spans(stretches)
            for stretch, span in zip(stretches, spans, strict=True):
                opening = has_dictionary and stretch.first == stretch.stop
                pages = raw_pages(span, limits, decryptor, has_dictionary=opening, ordinal=stretch.first)
                yield from self._checked(stretch, pages)

    def _checked(self, stretch: _Run, pages: Iterator[RawPage]) -> Iterator[RawPage]:
        """The pages of a stretch, each where the offset index says and with the rows that it says."""
        number = stretch.first
        for raw in self._from_index(pages):
            if raw.header.type not in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                yield raw
                continue
            if number == stretch.stop or self._known.byte_range(number)[0] != raw.offset:
                raise OffsetIndexError("a data page lies where the offset index has none", offset=raw.offset)
            rows = len(self._known.rows(number))
            if self._known.is_flat and raw.num_values != rows:
                message = f"a page holds {raw.num_values} rows where the offset index says {rows}"
                raise OffsetIndexError(message, offset=raw.offset)
            raw.indexed_rows = rows
            yield raw
            number += 1
        if number < stretch.stop:
            message = f"no data page lies where the offset index places page {number}"
            raise OffsetIndexError(message, offset=stretch.offset)

    @staticmethod
    def _from_index(pages: Iterator[RawPage]) -> Iterator[RawPage]:
        """The pages of a stretch. Bytes that are not a page at its start, which the index states, are its fault."""
        try:
            first = next(pages, None)
        except (CorruptFileError, LimitError) as error:
            message = f"no page lies where the offset index lists one: {error.message}"
            raise OffsetIndexError(message, offset=error.offset) from None
        if first is not None:
            yield first
            yield from pages

    def _check_rest(self, limits: Limits, decryptor: ChunkDecryptor | None) -> None:
        """Raise ``OffsetIndexError`` when there are values in what the offset index gives no rows."""
        for part in self._rest():
            span = Span(self._source, part.offset, part.length)
            try:
                for raw in raw_pages(span, limits, decryptor, ordinal=part.first):
                    if raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2) and raw.num_values:
                        message = "values lie where the offset index has no rows"
                        raise OffsetIndexError(message, offset=raw.offset)
            except (CorruptFileError, LimitError) as error:
                # Behind all pages there may be anything.
                if part.first < len(self._known) or self._begins_with_values(span, limits, decryptor):
                    message = f"bytes that the offset index does not list are not a page: {error.message}"
                    raise OffsetIndexError(message, offset=error.offset) from None

    def _begins_with_values(self, span: Span, limits: Limits, decryptor: ChunkDecryptor | None) -> bool:
        try:
            raw = next(raw_pages(span, limits, decryptor, ordinal=len(self._known)), None)
        except ParquetError:
            return False
        return raw is not None and raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2) and raw.num_values > 0

    def _rest(self) -> Iterator[_Run]:
        """Pages without rows, and what lies between pages and behind the last; ``first`` is the next page's number."""
        at = self._known.byte_range(0)[0]
        for page in range(len(self._known)):
            offset, length = self._known.byte_range(page)
            if offset > at:
                yield _Run(page, page, at, offset - at)
            if not self._known.rows(page):
                yield _Run(page, page + 1, offset, length)
            at = offset + length
        if at < self._stop:
            yield _Run(len(self._known), len(self._known), at, self._stop - at)

    def _fetched(self) -> Iterator[list[_Run]]:
        """Stretches to be fetched together."""
        group: list[_Run] = []
        held = 0
        for stretch in self._runs:
            if group and held + stretch.length > self._source.window_bytes:
                yield group
                group, held = [], 0
            group.append(stretch)
            held += stretch.length
        if group:
            yield group

    @cached_property
    def _runs(self) -> list[_Run]:
        return list(self._stretches())

    def _stretches(self) -> Iterator[_Run]:
        if not self._pages:
            return
        head = self._known.byte_range(0)[0] - self.offset
        if head:
            yield _Run(0, 0, self.offset, head)
        most, first = self._source.window_bytes, self._pages[0]
        place = start, _ = self._known.byte_range(first)
        for page, following in zip(self._pages, [*self._pages[1:], -1], strict=True):
            end, place = sum(place), self._known.byte_range(following)
            if following != page + 1 or place[0] != end or end - start >= most:
                yield _Run(first, page + 1, start, end - start)
                first, start = following, place[0]


def pages_of(known: PageFacts, rows: Rows) -> list[int]:
    """The pages that hold any of ``rows``: ranges that ascend and lie apart, or numbers that ascend."""
    if isinstance(rows, np.ndarray):
        before = np.searchsorted(rows, known.starts).tolist()
        until = [*before, len(rows)][1:]
        return [page for page, (first, stop) in enumerate(zip(before, until, strict=True)) if first != stop]
    chosen: list[int] = []
    for one in rows:
        page = max(bisect_right(known.starts, one.start) - 1, 0)
        if chosen:
            page = max(page, chosen[-1] + 1)
        while page < len(known) and known.starts[page] < one.stop:
            chosen.append(page)
            page += 1
    return chosen
