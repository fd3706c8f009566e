"""Decode the pages of an ordinary column chunk with a page table, in few calls and without an object per page.

The decoder does not report faults. If a chunk is unusual or corrupt, or takes too much memory, it raises
:class:`FallbackRequired`, and :class:`pqext.core.read.pages.page_decoder.PageDecoder` continues at the current page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from pqext.core.base.buffers import allocate
from pqext.core.base.errors import ArrayLimitError
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Account
from pqext.core.format import compression
from pqext.core.format.encodings import plain, rle
from pqext.core.format.encodings.decoding import Dictionary
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.kernels.decode.page_table import PageTable
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.read.leaf_column import LeafColumn, LeafColumnBuilder, Levels
from pqext.core.read.pages.page import OpenedPages
from pqext.core.read.pages.page_groups import GROUP_BYTES, LONG_PAGE, SPLIT_BYTES, estimate_scratch_bytes
from pqext.core.read.pages.page_selection import PageSelection, PageSpan
from pqext.core.schema.shape import LeafShape

_LEAST = 1 << 12
"""Number of bytes that are first read for a page header."""

_MOST_EXPECTED = 4
"""Maximum ratio of memory allocated in advance to stored bytes."""


class FallbackRequired(Exception):
    """Signal that the table decoder cannot continue and the page-by-page decoder must decode the remaining pages."""


class TableDecoder:
    """Decoder of the ``pages`` of a chunk, one run at a time. Memory is charged to ``account``.

    Methods raise :class:`FallbackRequired` or decoding errors. Rows that were decoded before remain valid, but the
    object cannot be used afterwards. The page-by-page decoder continues after all errors except ``ArrayLimitError`` and
    ``ExpansionError``.
    """

    def __init__(
        self, shape: LeafShape, metadata: ColumnMetaData, pages: PageSelection, limits: Limits, account: Account, *,
        checksums: bool,
    ) -> None:
        self.decoded_rows = 0
        self.taken = 0
        """Data pages decoded or skipped."""
        self.entries_left = metadata.num_values
        self.dictionary_bytes = 0
        self._unparsed = metadata.num_values
        self._waiting = 0
        self._shape = shape
        self._complete = pages.complete
        self._checksums = checksums
        self._codec = metadata.codec
        self._unpack = account.time_decompression(compression.unpacker(metadata.codec))
        self._account = account
        self._dictionary: Dictionary | None = None
        self._table = PageTable(limits)
        self._page_spans = pages.page_spans()
        self._page_span: PageSpan | None = None
        self._at = 0
        self._placed = 0
        self._is_first = True

    @property
    def has_more(self) -> bool:
        """Whether any entries remain."""
        return self._complete and self.entries_left > 0

    def decode_next(self, entries: int, *, required_entries: int | None = None) -> LeafColumn | None:
        """Decode the pages that contain the next ``entries`` entries. Return None at the end of the chunk.

        Raises ``ExpansionError`` if the pages expand to far more than the ``required_entries`` entries among them.
        """
        entries = min(entries, 1 << 61)
        while self._waiting < entries and self._fill():
            pass
        table = self._table
        if not table.size:
            return None
        stop = table.find_end(0, entries)
        before = table.count(0, stop - 1)
        if table.is_long(stop - 1, stop, 2 * max(LONG_PAGE, entries - before), SPLIT_BYTES):
            raise FallbackRequired
        held = self._account.held
        try:
            column = self._decode(stop, required_entries)
        except ArrayLimitError as error:
            error.is_final = stop == 1
            raise
        except BaseException:
            self._account.resize(held)
            raise
        self._consume(stop)
        self._account.count_pages(stop)
        self.decoded_rows += column.rows
        return column

    def read_at(self, positions: NDArray[np.int64]) -> tuple[LeafColumn, int]:
        """Decode the rows at ``positions``, in ascending order, up to the end of the next group of pages.

        Return the rows and their number. Rows between the positions are not decoded, and preceding pages are not
        opened. Also raises :class:`FallbackRequired` if the rows of pages cannot be counted.
        """
        row_ends = self._skip_to_row(int(positions[0]))
        row_ends = row_ends[: self._table.find_group_end(0, len(row_ends), GROUP_BYTES)]
        count = pages = 0
        for until in positions.searchsorted(row_ends).tolist():
            if until == count:
                break  # no row of this page
            count, pages = until, pages + 1
        held_bytes = self._account.held
        try:
            return self._decode_at(row_ends[:pages], positions[:count] - self.decoded_rows), count
        except BaseException:
            self._account.resize(held_bytes)
            raise

    def _skip_to_row(self, row: int) -> list[int]:
        """Skip the pages before row ``row``. Return the end row (exclusive) of each remaining page in the table."""
        while True:
            if self._table.size:
                _, *row_ends = accumulate(self._rows_of(0, self._table.size), initial=self.decoded_rows)
                passed = bisect_right(row_ends, row)
                if passed:
                    self._consume(passed)
                    self.decoded_rows = row_ends[passed - 1]
                if passed < len(row_ends):
                    return row_ends[passed:]
            if not self._fill():
                raise FallbackRequired

    def _rows_of(self, first: int, stop: int) -> list[int]:
        rows = self._table.rows(first, stop)
        if rows is None:
            if self._shape.node.max_repetition_level:
                raise FallbackRequired
            rows = self._table.counts(first, stop)
        return rows

    def _decode_at(self, row_ends: Sequence[int], positions: NDArray[np.int64]) -> LeafColumn:
        """Decode the rows at ``positions`` in the first pages, whose end rows are ``row_ends``."""
        stop = len(row_ends)
        table, node = self._table, self._shape.node
        encoding, count, unpacked = table.encoding(0), table.count(0, stop), table.uncompressed_size(0, stop)
        scratch = estimate_scratch_bytes(unpacked, count, encoding, node.leaf_type.width) + unpacked + 4 * count
        self._account.reserve(scratch)
        if self._checksums and not table.verify(0, stop, isal_zlib.crc32):
            raise FallbackRequired
        opened = table.open(0, stop, node.max_repetition_level, node.max_definition_level, self._unpack)
        if opened is None:
            raise FallbackRequired
        repetition = None
        if opened[0] is not None:
            levels = allocate(count * 2).view(np.int16)
            rle.decode_levels(opened[0], node.max_repetition_level, levels)
            rows = np.diff(row_ends, prepend=self.decoded_rows).tolist()
            if not _has_row_counts(table.counts(0, stop), rows, levels):
                raise FallbackRequired
            repetition = levels
        builder = LeafColumnBuilder(self._shape, len(positions) if repetition is None else count, self._account)
        builder.append_at(OpenedPages(encoding, *opened), self._dictionary, positions, repetition)
        column = builder.finish()
        self._account.release(scratch)
        self._account.count_pages(stop)
        return column

    def skip_page(self, rows: int) -> int | None:
        """Skip the next page without decoding it if it has at most ``rows`` rows. Return its row count.

        Return None if the page has more rows, or at the end of the chunk.
        """
        while not self._table.size:
            if not self._fill():
                return None
        count = self._table.count(0, 1)
        if count > rows:
            return None
        self._consume(1)
        self.decoded_rows += count
        return count

    def _consume(self, pages: int) -> None:
        count = self._table.count(0, pages)
        self._table.drop(pages)
        self.taken += pages
        self._waiting -= count
        self.entries_left -= count

    def _fill(self) -> bool:
        """Parse more pages into the table. Return False at the end of the chunk."""
        least = _LEAST
        while True:
            page_span = self._page_span
            if page_span is None or self._at >= page_span.span.size:
                if page_span is not None and page_span.places is not None and self._placed < len(page_span.places[0]):
                    raise FallbackRequired
                self._page_span, self._at, self._placed = next(self._page_spans, None), 0, 0
                if self._page_span is None:
                    if self._unparsed and self._complete:
                        raise FallbackRequired
                    return False
                continue
            span, size = page_span.span, self._table.size
            left = span.size - self._at
            data = span.peek(self._at, least)
            if not self._table.read(data, span.offset + self._at, left):
                raise FallbackRequired
            if not self._table.consumed:
                if len(data) >= left:
                    raise FallbackRequired
                least = self._table.needed or 4 * len(data)
                continue
            self._at += self._table.consumed
            if self._at >= span.size:
                span.release()  # the table refers to the remaining bytes
            if self._table.has_dictionary and not size:
                self._read_dictionary()
            self._is_first = False
            if page_span.places is not None:
                first, self._placed = self._placed, self._placed + self._table.size - size
                starts, sizes, rows = (part[first : self._placed] for part in page_span.places)
                if not self._table.assign_rows(size, starts, sizes, rows, not self._shape.node.max_repetition_level):
                    raise FallbackRequired
            count = self._table.count(size)
            self._waiting += count
            self._unparsed -= count
            if self._unparsed < 0:
                raise FallbackRequired
            return True

    def _read_dictionary(self) -> None:
        if not self._is_first:
            raise FallbackRequired
        before = self._account.held
        try:
            self._dictionary = self._open_dictionary()
        except BaseException:
            self._account.resize(before)
            raise
        self.dictionary_bytes = self._account.held - before
        self._table.drop(1)

    def _open_dictionary(self) -> Dictionary:
        if self._checksums and not self._table.verify(0, 1, isal_zlib.crc32):
            raise FallbackRequired
        size = self._table.uncompressed_size(0, 1)
        self._account.reserve(size)
        opened = self._table.dictionary(self._unpack)
        if opened is None:
            raise FallbackRequired
        kind = self._shape.node.leaf_type
        dictionary = plain.read_dictionary(opened[1], opened[0], kind.physical, kind.width, self._account)
        self._account.release(size)
        return dictionary

    def _decode(self, stop: int, required_entries: int | None) -> LeafColumn:
        table, shape, node = self._table, self._shape, self._shape.node
        expected = min(table.uncompressed_size(0, stop), _MOST_EXPECTED * table.stored_size(0, stop))
        builder = LeafColumnBuilder(shape, table.count(0, stop), self._account, expected, required_entries)
        width = node.leaf_type.width
        first, at = self.decoded_rows == 0, 0
        while at < stop:
            end = table.find_group_end(at, stop, GROUP_BYTES)
            encoding, entries = table.encoding(at), table.count(at, end)
            scratch = estimate_scratch_bytes(table.uncompressed_size(at, end), entries, encoding, width)
            self._account.reserve(scratch)
            if self._checksums and not table.verify(at, end, isal_zlib.crc32):
                raise FallbackRequired
            opened = table.open(at, end, node.max_repetition_level, node.max_definition_level, self._unpack)
            if opened is None:
                raise FallbackRequired
            builder.append(OpenedPages(encoding, *opened), self._dictionary, first=first)
            self._account.release(scratch)
            first = first and not entries
            at = end
        column = builder.finish()
        rows = table.rows(0, stop)
        if rows is not None and not _has_row_counts(table.counts(0, stop), rows, column.repetition):
            raise FallbackRequired
        return column


def _has_row_counts(counts: Sequence[int], expected: Sequence[int], repetition: Levels | None) -> bool:
    """Return whether each page consists of complete rows and has the expected number of rows."""
    if repetition is None:
        return list(counts) == list(expected)
    at = 0
    for count, rows in zip(counts, expected, strict=True):
        levels = repetition[at : at + count]
        if level_kernel.count_rows(levels) != rows or (count and levels[0]):
            return False
        at += count
    return True
