"""Read a column chunk: decode its pages into Arrow arrays of selected rows, and the levels of nested columns."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import (
    ArrayLimitError,
    CorruptFileError,
    ExpansionError,
    InvalidValueError,
    OffsetIndexError,
    ParquetError,
)
from pqext.core.base.limits import Limits
from pqext.core.base.usage import Account, Budget
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.format import compression
from pqext.core.format.metadata import ColumnMetaData
from pqext.core.kernels.encodings import levels as level_kernel
from pqext.core.read.leaf_column import LeafColumn, LeafColumnBuilder, decoded_bytes, join
from pqext.core.read.pages.page_decoder import PageDecoder, locate_error
from pqext.core.read.pages.page_selection import PageSelection
from pqext.core.read.pages.table_decoder import FallbackRequired, TableDecoder
from pqext.core.schema.row_ranges import RowRanges, cover_rows, flag_rows, group_nearby, intersection
from pqext.core.schema.shape import LeafShape
from pqext.core.schema.types.arrow_compute import select_flagged

T = TypeVar("T")

_logger = logging.getLogger(__name__)

TOO_MANY = "a column chunk holds more rows than its row group"
_MAX_SKIPPED_ROWS = 1 << 16
"""Number of unselected rows that are decoded at a time, between selected rows or if page locations are unknown."""
_FEW_RANGES = 16
"""Maximum number of row ranges that are sliced individually. More ranges are selected with a mask."""


def is_ordinary(pages: PageSelection, metadata: ColumnMetaData, decryptor: object) -> bool:
    """Return whether a page table can decode these pages of a chunk."""
    return decryptor is None and pages.is_ordinary and compression.is_known(metadata.codec)


def _decode_next(pages: PageDecoder | TableDecoder, entries: int, required_entries: int | None) -> LeafColumn | None:
    return pages.decode_next(entries, required_entries=required_entries)


def _skip_next_page(pages: PageDecoder | TableDecoder, rows: int) -> int | None:
    return pages.skip_page(rows)


def _empty(shape: LeafShape, account: Account) -> LeafColumn:
    return LeafColumnBuilder(shape, 0, account).finish()


class ColumnReader:
    """Decoder of the pages of one column chunk, one run of rows at a time.

    ``pages`` are the selected pages of the chunk, in a row group of ``rows`` rows. A page table decodes ordinary
    chunks. If it cannot decode a page, decoding continues page by page. At most ``max_skipped_rows`` unselected rows
    are decoded at a time. A ``lean`` reader raises ``ExpansionError`` if it would have to look up far more strings in a
    dictionary than were requested.
    """

    _by_table = True
    """Whether a page table may decode the chunk."""

    def __init__(
        self, shape: LeafShape, metadata: ColumnMetaData, pages: PageSelection, rows: int, limits: Limits,
        budget: Budget, *, checksums: bool, max_skipped_rows: int | None = None,
        decryptor: ChunkDecryptor | None = None, lean: bool = False,
    ) -> None:
        self._shape = shape
        self._lean = lean
        self._max_skipped_rows = min(max_skipped_rows or _MAX_SKIPPED_ROWS, _MAX_SKIPPED_ROWS)
        self._metadata = metadata
        self._place = pages
        self._account = Account(budget)
        self._gathered_bytes = 0
        self._held_bytes = 0
        self._group_rows = rows
        self._known_rows = deque(pages.rows)
        self._rows = sum(map(len, pages.rows))
        self._taken_rows = 0
        self._preceding_rows = 0
        self._held: LeafColumn | None = None

        self._by_page: Callable[[], PageDecoder] = partial(
            self._decoder, shape, metadata, pages, limits, self._account, checksums=checksums, decryptor=decryptor
        )
        self._pages: PageDecoder | TableDecoder = (
            TableDecoder(shape, metadata, pages, limits, self._account, checksums=checksums)
            if self._by_table and is_ordinary(pages, metadata, decryptor) else self._by_page()
        )

    @property
    def _decoder(self) -> Callable[..., PageDecoder]:
        """Class of the page-by-page decoder."""
        return PageDecoder

    @property
    def size(self) -> int:
        """Uncompressed size of the chunk's pages in bytes, according to its metadata."""
        return self._metadata.total_uncompressed_size

    @property
    def work(self) -> int:
        """Estimated cost of decoding the chunk. The unit is the cost of copying one byte."""
        return self.size + (2 if self._shape.node.leaf_type.width else 5) * self._metadata.num_values

    @property
    def selected_page_rows(self) -> int:
        """Number of rows in the selected pages."""
        return self._rows

    @property
    def row_bytes(self) -> int:
        """Average size of a row in bytes, according to the chunk's metadata."""
        made = max(self.size, decoded_bytes(self._shape, max(self._metadata.num_values, 0)))
        return made // max(self._group_rows, 1)

    def close(self) -> None:
        """Release the memory that the reader accounts for. The reader cannot be used afterwards."""
        self._account.resize(0)

    def read(self, rows: RowRanges) -> LeafColumn:
        """Read ``rows`` of the row group. They must follow all rows that were read before.

        The result is shorter only if the chunk ends early.

        Raises ``CorruptFileError``, ``LimitError`` or ``UnsupportedError`` with the column and the offset in the file.
        """
        parts = []
        try:
            for ranges in group_nearby(self._page_ranges(rows), _MAX_SKIPPED_ROWS):
                parts.append(self._read_covering_range(ranges))
                self._gathered_bytes += parts[-1].nbytes
                if len(parts) > 1:
                    self._update_account(self._gathered_bytes)  # the rows are about to be copied
            column = join(parts or [_empty(self._shape, self._account)])
        except ParquetError as error:
            raise self._locate_error(error) from None
        return column

    def read_at(self, numbers: NDArray[np.int64]) -> LeafColumn:
        """Read the rows with the ascending ``numbers``. They must follow all rows that were read before.

        In ordinary pages, only the values of these rows are decoded. Raises the same errors as :meth:`read`.
        """
        parts, pages = [], self._pages
        positions = self._selected_positions(numbers)
        while len(positions) and isinstance(pages, TableDecoder) and self._held is None:
            try:
                column, count = pages.read_at(positions)
            except ArrayLimitError as error:
                raise self._locate_error(error) from None
            except (FallbackRequired, ParquetError) as reason:
                pages = self._switch_to_page_decoder(pages, reason)
                break
            finally:
                self._taken_rows = self._pages.decoded_rows
            parts.append(column)
            self._gathered_bytes += column.nbytes
            self._update_account()
            positions, numbers = positions[count:], numbers[count:]
        if len(positions):
            ranges = intersection(cover_rows(numbers, _MAX_SKIPPED_ROWS), self._place.rows)
            column = self.read(ranges)
            whole = column.rows == sum(map(len, ranges))  # the caller raises an error for a chunk that ends too early
            parts.append(self._select_flagged(column, flag_rows(numbers, ranges)) if whole else column)
        return join(parts or [_empty(self._shape, self._account)])

    def _selected_positions(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the rows with ``numbers`` among the rows of the selected pages."""
        if self._place.complete or len(self._place.rows) < 2:
            return numbers - self._place.rows[0].start if self._place.rows and self._place.rows[0].start else numbers
        starts = np.array([rows.start for rows in self._place.rows], np.int64)
        lengths = np.array([len(rows) for rows in self._place.rows], np.int64)
        return numbers - (starts - np.cumsum(lengths) + lengths)[np.searchsorted(starts, numbers, "right") - 1]

    def _update_account(self, growth: int = 0) -> None:
        """Update the account to the memory in use plus ``growth`` bytes."""
        self._account.resize(self._pages.dictionary_bytes + self._gathered_bytes + self._held_bytes + growth)

    def release_rows(self) -> None:
        """Stop counting the memory of the rows that were read, because the caller counts it from now on."""
        self._gathered_bytes = 0
        self._update_account()

    def _page_ranges(self, rows: RowRanges) -> Iterator[tuple[int, int]]:
        """Yield the start and end of each range of ``rows`` among the rows of the selected pages."""
        for item in rows:
            while item.start >= self._known_rows[0].stop and len(self._known_rows) > 1:
                self._preceding_rows += len(self._known_rows.popleft())
            before = self._preceding_rows - self._known_rows[0].start
            yield item.start + before, item.stop + before

    def _read_covering_range(self, ranges: list[tuple[int, int]]) -> LeafColumn:
        """Decode the range that covers all ``ranges``, which are close together, and return the rows within them."""
        while (unwanted := ranges[0][0] - self._taken_rows) > 0:
            if not self._skip_page(unwanted) and not self._skip_rows(min(unwanted, self._max_skipped_rows)):
                break
        start, stop = self._taken_rows, ranges[-1][1]
        column = self._read_next(stop - start)
        if len(ranges) == 1:
            return column
        return self.select_ranges(column, [(first - start, last - start) for first, last in ranges])

    def _skip_rows(self, rows: int) -> int:
        return self._read_next(rows, is_skipping=True).rows

    def _skip_page(self, rows: int) -> bool:
        """Skip the next page without decoding it if it has at most ``rows`` rows. Return whether it was skipped.

        Pages of lists are not skipped, and no page is skipped while decoded rows remain.
        """
        if self._held is not None or self._shape.node.max_repetition_level:
            return False
        skipped_rows = self._run_step(partial(_skip_next_page, rows=rows))
        self._taken_rows += skipped_rows or 0
        return skipped_rows is not None

    def _run_step(self, step: Callable[[PageDecoder | TableDecoder], T]) -> T:
        """Run one decoding step. Continue page by page if the table decoder cannot execute it."""
        pages = self._pages
        if isinstance(pages, TableDecoder):
            try:
                return step(pages)
            except (ArrayLimitError, ExpansionError):
                raise
            except (FallbackRequired, ParquetError) as reason:
                self._switch_to_page_decoder(pages, reason)
        return step(self._pages)

    def _switch_to_page_decoder(self, pages: TableDecoder, reason: Exception) -> PageDecoder:
        """Replace the table decoder by a page-by-page decoder at the current position; return the new decoder."""
        column, offset = self._shape.node.dotted_path, self._place.offset
        why = str(reason) or "unusual pages"
        _logger.debug("column %s: decoding the chunk at %d page by page: %s", column, offset, why)
        self._account.release(pages.dictionary_bytes)
        self._pages = by_page = self._by_page()
        by_page.skip(pages.taken, pages.decoded_rows)
        return by_page

    def check_end(self) -> None:
        """Raise ``CorruptFileError`` if the chunk has more rows than the row group."""
        if self._has_more():
            raise CorruptFileError(TOO_MANY, column=self._shape.node.dotted_path, offset=self._place.offset)

    def _has_more(self) -> bool:
        """Return whether the chunk has entries after the last row of the row group."""
        is_more = self._held is not None or self._pages.has_more
        return self._taken_rows >= self._rows and is_more

    def _locate_error(self, error: ParquetError) -> ParquetError:
        if isinstance(error, OffsetIndexError | InvalidValueError):
            error.leaf = self._shape.node.leaf_start
        return locate_error(error, self._place, self._shape)

    def _read_next(self, rows: int, *, is_skipping: bool = False) -> LeafColumn:
        """Read the next rows, or skip them if ``is_skipping`` is set."""
        pieces = [self._held] if self._held is not None else []
        held = sum(piece.rows for piece in pieces)
        # A row is complete when the next row starts or the chunk ends.
        while held <= rows - (self._shape.node.max_repetition_level == 0):
            entries = self._estimate_entries(rows - held)
            needed = None if not self._lean else 1 if is_skipping else entries
            piece = self._run_step(partial(_decode_next, entries=entries, required_entries=needed))
            if piece is None:
                break
            pieces.append(piece)
            held += piece.rows
        if held < rows:
            pieces += self._replace_missing_rows()
        if len(pieces) > 1 and held - pieces[-1].rows == rows and pieces[-1].begins_with_row:
            # The last piece is not copied: if joined, the pieces might exceed the size of one array.
            self._account.reserve(sum(piece.nbytes for piece in pieces[:-1]) if len(pieces) > 2 else 0)
            result, self._held = join(pieces[:-1]), pieces[-1]
            self._held_bytes = self._held.nbytes
        else:
            if len(pieces) > 1:
                self._account.reserve(sum(piece.nbytes for piece in pieces))  # joining copies them
            whole = join(pieces) if pieces else _empty(self._shape, self._account)
            is_new = len(pieces) != 1 or pieces[0] is not self._held
            result, self._held = self._split(whole, rows)
            if self._held is None:
                self._held_bytes = 0
            elif is_new:
                self._held_bytes = whole.nbytes  # a slice keeps the complete column alive
        self._update_account(result.nbytes)
        self._taken_rows += result.rows
        return result

    def _replace_missing_rows(self) -> list[LeafColumn]:
        """Return placeholders for rows that the chunk lacks. This class returns none, so that the column ends early."""
        return []

    def _estimate_entries(self, rows: int) -> int:
        """Estimate the number of entries in ``rows`` rows, at least 1. The result is exact without repetition."""
        if not self._shape.node.max_repetition_level:
            return max(rows, 1)
        if rows >= self._rows - self._pages.decoded_rows:
            return max(self._pages.entries_left, 1)
        return max(rows * self._metadata.num_values // max(self._group_rows, 1), 1)

    def _split(self, column: LeafColumn, rows: int) -> tuple[LeafColumn, LeafColumn | None]:
        at = self._position(column, rows)
        if at == (column.entries, len(column.array)):
            return column, None
        return column.split(at)

    def _position(self, column: LeafColumn, row: int) -> tuple[int, int]:
        """Return the entry and the slot at which ``row`` starts, or the end of ``column`` if it has fewer rows."""
        if column.repetition is None:
            at = min(row, len(column.array))
            return at, at
        entry = level_kernel.find_row(column.repetition, row)
        if entry < 0:
            return column.entries, len(column.array)
        assert column.definition is not None
        return entry, int(np.count_nonzero(column.definition[:entry] >= self._shape.slot_level))

    def select_ranges(self, column: LeafColumn, ranges: Sequence[tuple[int, int]]) -> LeafColumn:
        """Return the rows of ``column`` within ``ranges``, which must be disjoint and ascending."""
        if len(ranges) <= _FEW_RANGES:
            borders = [(self._position(column, start), self._position(column, stop)) for start, stop in ranges]
            parts = [column.slice(first, last) for first, last in borders]
            return join(parts) if parts else column.slice((0, 0), (0, 0))
        changes = np.zeros(column.rows + 1, np.int8)
        starts, stops = np.array(ranges, np.int64).T
        changes[starts] += 1
        changes[stops] -= 1
        return self._select_flagged(column, np.cumsum(changes[:-1], dtype=np.int8).view(bool))

    def _select_flagged(self, column: LeafColumn, flags: NDArray[np.bool_]) -> LeafColumn:
        """Return the rows of ``column`` whose flag in ``flags`` is set."""
        if column.repetition is None or column.definition is None:
            return LeafColumn(None, None if column.definition is None else column.definition[flags],
                              select_flagged(column.array, flags))
        entries = flags[np.cumsum(column.repetition == 0) - 1]
        slots = entries[column.definition >= self._shape.slot_level]
        return LeafColumn(
            column.repetition[entries], column.definition[entries], select_flagged(column.array, slots)
        )
