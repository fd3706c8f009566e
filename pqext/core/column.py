"""A column chunk read: pages decoded into Arrow arrays of chosen rows and the levels that nested shapes need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from pqext.core import long_runs, page, page_groups
from pqext.core.budget import Account, Budget
from pqext.core.encodings import plain
from pqext.core.encodings.decoding import Dictionary
from pqext.core.encodings.table import decoder
from pqext.core.encryption.reading import ChunkDecryptor
from pqext.core.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.indexes.row_ranges import RowRanges, near
from pqext.core.kernels import levels as level_kernel
from pqext.core.leaf_column import LeafColumn, LeafColumnBuilder, decoded_bytes, join
from pqext.core.limits import Limits
from pqext.core.metadata import ColumnMetaData, Encoding, PageType
from pqext.core.page import OpenedPages, RawPage
from pqext.core.page_selection import PageSelection
from pqext.core.shape import LeafShape

_TOO_MANY = "a column chunk holds more rows than its row group"
_PASSED_ROWS = 1 << 16
"""Rows that are not wanted are decoded so many at a time, between wanted ones or where pages are not known."""
_FEW_RANGES = 16
"""Ranges of rows that are cut out one by one; more are filtered."""
_DATA_PAGES = frozenset({PageType.DATA_PAGE, PageType.DATA_PAGE_V2})


class ColumnReader:
    """Decodes the pages of one column chunk, row run by row run.

    ``pages`` are those of the chunk that are read, of a row group of ``rows`` rows. With ``lose``, which needs all
    of them, damage costs no more than the rows of the pages it is in: ``lose`` is told the first of them, the row
    behind the last, and the error, and other values stand in their place. A page whose rows cannot be counted, or a
    damaged page header, takes the rest of the chunk's rows with it (Error Recovery).
    """

    def __init__(
        self, shape: LeafShape, metadata: ColumnMetaData, pages: PageSelection, rows: int, limits: Limits,
        budget: Budget, *, checksums: bool, lose: Callable[[int, int, ParquetError], None] | None = None,
        decryptor: ChunkDecryptor | None = None,
    ) -> None:
        self._shape = shape
        self._type = shape.node.leaf_type
        self._metadata = metadata
        self._path = pages.path
        self._offset = pages.offset
        self._complete = pages.complete
        self._checksums = checksums
        self._account = Account(budget)
        self._dictionary_bytes = 0
        self._gathered_bytes = 0
        self._held_bytes = 0
        self._lose = lose
        self._dictionary: Dictionary | None = None
        self._entries_left = metadata.num_values
        self._group_rows = rows
        self._known_rows = deque(pages.rows)
        self._rows = sum(map(len, pages.rows))
        self._decoded_rows = 0
        self._taken_rows = 0
        self._passed_rows = 0
        has_dictionary = metadata.dictionary_page_offset is not None
        # Held by a generator of its own, the reader would keep its bytes until garbage is collected.
        self._raw_pages = pages.raw(limits, decryptor, has_dictionary=has_dictionary)
        self._is_first = True
        self._unread: RawPage | None = None
        self._is_given_up = False
        self._held: LeafColumn | None = None

    @property
    def size(self) -> int:
        """Bytes of all the chunk's pages before compression, as its metadata says."""
        return self._metadata.total_uncompressed_size

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes on average, as the chunk's metadata says."""
        made = max(self.size, decoded_bytes(self._shape, max(self._metadata.num_values, 0)))
        return made // max(self._group_rows, 1)

    def close(self) -> None:
        """Nothing of the reader is counted any more; it is not used afterwards."""
        self._account.settle(0)

    def take(self, rows: RowRanges) -> LeafColumn:
        """``rows`` of the row group, which lie behind those taken before; fewer only when the chunk ends.

        Raises ``CorruptFileError`` or ``UnsupportedError`` with the column and the offset in the file.
        """
        parts = []
        try:
            for places in near(self._places(rows), _PASSED_ROWS):
                parts.append(self._take_near(places))
                self._gathered_bytes += parts[-1].nbytes
                if len(parts) > 1:
                    self._settle(self._gathered_bytes)  # they are about to be copied
            column = join(parts or [self._decode([])])
        except ParquetError as error:
            raise self._located(error) from None
        if self._lose is not None and self._has_more():
            # Any of its rows may be another than it seems.
            self._lose(0, self._rows, self._located(CorruptFileError(_TOO_MANY)))
        return column

    def _settle(self, more: int = 0) -> None:
        """Count what is held, and ``more`` bytes."""
        self._account.settle(self._dictionary_bytes + self._gathered_bytes + self._held_bytes + more)

    def let_go(self) -> None:
        """What was taken so far is no longer counted as this reader's."""
        self._gathered_bytes = 0
        self._settle()

    def _places(self, rows: RowRanges) -> Iterator[tuple[int, int]]:
        """Where ``rows`` begin and end among those of the pages that are read."""
        for one in rows:
            while one.start >= self._known_rows[0].stop and len(self._known_rows) > 1:
                self._passed_rows += len(self._known_rows.popleft())
            before = self._passed_rows - self._known_rows[0].start
            yield one.start + before, one.stop + before

    def _take_near(self, places: list[tuple[int, int]]) -> LeafColumn:
        """The rows at ``places``, which are decoded together with what lies between them."""
        while (unwanted := places[0][0] - self._taken_rows) > 0:
            if not self._pass_page(unwanted) and not self._take(min(unwanted, _PASSED_ROWS)).rows:
                break
        start, stop = self._taken_rows, places[-1][1]
        column = self._take(stop - start)
        if len(places) == 1:
            return column
        return self.keep(column, [(first - start, last - start) for first, last in places])

    def _pass_page(self, rows: int) -> bool:
        """Pass over the next page without opening it: true if it is known to hold no more than ``rows`` rows."""
        if self._held is not None or self._shape.node.max_repetition_level or self._lose is not None:
            return False
        raw = self._next_page()
        if raw is None or raw.num_values > rows:
            self._unread = raw
            return False
        self._decoded_rows += raw.num_values
        self._taken_rows += raw.num_values
        return True

    def check_end(self) -> None:
        """Raise ``CorruptFileError`` when the chunk holds more than the rows that were taken."""
        if self._lose is None and self._has_more():
            raise CorruptFileError(_TOO_MANY, column=self._shape.node.dotted, offset=self._offset)

    def _has_more(self) -> bool:
        """Is there anything left once all rows are taken?"""
        is_more = self._held is not None or self._unread is not None or (self._complete and self._entries_left > 0)
        return self._taken_rows >= self._rows and is_more

    def _located(self, error: ParquetError) -> ParquetError:
        if error.offset is not None:
            error.offset += self._offset
        error.locate(path=self._path, column=self._shape.node.dotted, offset=self._offset)
        return error

    def _take(self, rows: int) -> LeafColumn:
        pieces = [self._held] if self._held is not None else []
        held = sum(piece.rows for piece in pieces)
        # A row is known to be complete when the next one starts or the chunk ends.
        while held <= rows - (self._shape.node.max_repetition_level == 0):
            piece = self._next(self._entries_of(rows - held))
            if piece is None:
                break
            pieces.append(piece)
            held += piece.rows
        if held < rows and self._lose is not None:
            pieces.append(self._lose_rest(CorruptFileError("a column chunk ends before its row group")))
        if len(pieces) > 1 and held - pieces[-1].rows == rows and pieces[-1].begins_with_row:
            # The last of them is not copied, which together may be more than one array holds.
            self._account.take(sum(piece.nbytes for piece in pieces[:-1]) if len(pieces) > 2 else 0)
            result, self._held = join(pieces[:-1]), pieces[-1]
            self._held_bytes = self._held.nbytes
        else:
            if len(pieces) > 1:
                self._account.take(sum(piece.nbytes for piece in pieces))  # they are copied
            whole = join(pieces) if pieces else self._decode([])
            is_new = len(pieces) != 1 or pieces[0] is not self._held
            result, self._held = self._split(whole, rows)
            if self._held is None:
                self._held_bytes = 0
            elif is_new:
                self._held_bytes = whole.nbytes  # a part of it keeps all of it
        self._settle(result.nbytes)
        self._taken_rows += result.rows
        return result

    def _entries_of(self, rows: int) -> int:
        """How many entries are about to hold ``rows`` rows: no fewer, in a column without repetition."""
        if not self._shape.node.max_repetition_level:
            return max(rows, 1)
        if rows >= self._rows - self._decoded_rows:
            return max(self._entries_left, 1)
        return max(rows * self._metadata.num_values // max(self._group_rows, 1), 1)

    def _next(self, entries: int) -> LeafColumn | None:
        """The pages that hold the next ``entries`` entries, decoded; ``None`` at the chunk's end."""
        run, damage = self._next_run(entries)
        decoded = [self._decode_leniently(run)] if run else []
        if damage is not None:
            decoded.append(self._lose_rest(damage))
        return join(decoded) if decoded else None

    def _next_run(self, entries: int) -> tuple[list[RawPage], ParquetError | None]:
        run: list[RawPage] = []
        try:
            while entries > 0 and (raw := self._next_page()) is not None:
                if raw.num_values > 2 * long_runs.LONG and raw.num_values > 2 * entries:
                    raw = self._part(raw, max(entries, long_runs.LONG))
                run.append(raw)
                entries -= raw.num_values
        except CorruptFileError as error:
            if self._lose is None:
                raise
            return run, error
        return run, None

    def _part(self, raw: RawPage, entries: int) -> RawPage:
        """The first entries of the page, where it can be cut; the rest is the next page."""
        levels = self._shape.node.max_repetition_level, self._shape.node.max_definition_level
        parts = long_runs.split(raw, entries, self._metadata.codec, levels)
        if parts is not None:
            self._verify(raw)
            raw, self._unread = parts
        return raw

    def _decode_leniently(self, run: list[RawPage]) -> LeafColumn:
        try:
            column = self._decode(run)
        except CorruptFileError:
            if self._lose is None:
                raise
            pieces = []
            for raw in run:
                pieces.append(self._decode_or_lose(raw))
                if self._is_given_up:
                    break
            return join(pieces)
        self._decoded_rows += column.rows
        return column

    def _decode_or_lose(self, raw: RawPage) -> LeafColumn:
        try:
            column = self._decode([raw])
        except CorruptFileError as error:
            rows = raw.num_rows if self._shape.node.max_repetition_level else raw.num_values
            if rows is None or rows > self._rows - self._decoded_rows:
                return self._lose_rest(error)
            return self._lost(rows, error, torn=False)
        self._decoded_rows += column.rows
        return column

    def _lose_rest(self, error: ParquetError) -> LeafColumn:
        self._raw_pages = iter(())
        self._is_given_up = True
        self._entries_left = 0
        rows = max(self._rows - self._decoded_rows, 0)
        return self._lost(rows, error, torn=self._shape.node.max_repetition_level > 0)

    def _lost(self, rows: int, error: ParquetError, *, torn: bool) -> LeafColumn:
        """Give up ``rows`` rows; ``torn`` when the row before them may have gone on in what is lost."""
        assert self._lose is not None
        start, self._decoded_rows = self._decoded_rows, self._decoded_rows + rows
        self._lose(start - (torn and start > 0), start + rows, self._located(error))
        return self._placeholder(rows)

    def _placeholder(self, rows: int) -> LeafColumn:
        """Rows in the place of lost ones."""
        node = self._shape.node
        try:
            self._account.take(decoded_bytes(self._shape, rows))
        except MemoryLimitError:
            # Where something is damaged, such a number is damage too: it costs the row group.
            raise CorruptFileError(f"a damaged column chunk and a row group that claims {rows} rows more") from None
        slots = rows if self._shape.slot_level == 0 else 0
        levels = np.zeros(rows, np.int16)
        empty = self._decode([])
        return LeafColumn(
            levels if node.max_repetition_level else None,
            levels if empty.definition is not None else None,
            pa.nulls(slots, empty.array.type),
        )

    def _next_page(self) -> RawPage | None:
        """The next data page, ``None`` at the chunk's end; what comes before it is read or passed over."""
        if self._unread is not None:
            unread, self._unread = self._unread, None
            return unread
        for raw in self._raw_pages:
            is_first, self._is_first = self._is_first, False
            if raw.header.type in _DATA_PAGES:
                self._entries_left -= raw.num_values
                if self._entries_left < 0:
                    raise CorruptFileError("pages hold more values than the column chunk claims", offset=raw.offset)
                return raw
            if raw.header.type == PageType.DICTIONARY_PAGE:
                if not is_first:
                    raise CorruptFileError("a dictionary page that is not the chunk's first", offset=raw.offset)
                self._read_dictionary(raw)
            elif raw.header.data_page_header is not None or raw.header.data_page_header_v2 is not None:
                # Passed over like a type that is not known, it would move the rows behind it.
                raise CorruptFileError(f"a data page that calls itself type {int(raw.header.type)}", offset=raw.offset)
        if self._entries_left and self._complete:
            raise CorruptFileError(f"{self._entries_left} values of the column chunk are missing from its pages")
        return None

    def _read_dictionary(self, raw: RawPage) -> None:
        try:
            self._verify(raw)
            before = self._account.held
            self._account.take(raw.header.uncompressed_page_size)
            count, values = page.open_dictionary(raw, self._metadata.codec)
            self._dictionary = plain.read_dictionary(
                values, count, self._type.physical, self._type.width, self._account
            )
            self._account.give_back(raw.header.uncompressed_page_size)
            self._dictionary_bytes = self._account.held - before
        except CorruptFileError as error:
            error.locate(offset=raw.offset)
            if self._lose is None:
                raise
            # The pages that refer to it are lost, each when it is read.

    def _verify(self, raw: RawPage) -> None:
        if self._checksums:
            page.verify_checksum(raw)

    def _decode(self, run: list[RawPage]) -> LeafColumn:
        before = self._account.held
        try:
            column = self._decode_groups(run)
        except MemoryLimitError as error:
            error.is_final = len(run) == 1
            raise
        except ParquetError:
            self._account.settle(before)
            raise
        page_groups.check_rows(run, column.repetition, by_header=self._lose is not None)
        return column

    def _decode_groups(self, run: list[RawPage]) -> LeafColumn:
        builder = LeafColumnBuilder(self._shape, sum(raw.num_values for raw in run), self._account)
        first = self._decoded_rows == 0
        for group in page_groups.of(run):
            scratch = page_groups.scratch_bytes(group, self._type.width)
            try:
                self._account.take(scratch)
                builder.append(self._open(group), self._dictionary, first=first)
                self._account.give_back(scratch)
            except MemoryLimitError:
                raise
            except ParquetError as error:
                raise (self._first_fault(group, error, first=first) if error.offset is None else error) from None
            first = first and not any(raw.num_values for raw in group)
        return builder.finish()

    def _open(self, group: list[RawPage]) -> OpenedPages:
        node = self._shape.node
        for raw in group:
            self._verify(raw)
        _, encoding, *level_encodings = group[0].form
        self._check_encoding(encoding)
        for highest, used in zip((node.max_repetition_level, node.max_definition_level), level_encodings, strict=False):
            self._check_level_encoding(highest, used)
        return page.open_data(
            group, self._metadata.codec,
            max_repetition=node.max_repetition_level, max_definition=node.max_definition_level,
        )

    def _first_fault(self, group: list[RawPage], error: ParquetError, *, first: bool) -> ParquetError:
        """What is wrong with the first page at fault of those that could not be decoded together, and where it is."""
        for raw in group:
            builder = LeafColumnBuilder(self._shape, raw.num_values, self._account)
            try:
                builder.append(self._open([raw]), self._dictionary, first=first)
            except ParquetError as fault:
                fault.locate(offset=raw.offset)
                return fault
            first = first and not raw.num_values
        error.locate(offset=group[-1].offset)
        return error

    def _check_encoding(self, encoding: int) -> None:
        """An encoding that is not known is one to come, unless the chunk's own list of encodings lacks it."""
        if decoder(encoding) is None and encoding not in self._metadata.encodings:
            raise CorruptFileError(f"a page claims encoding {encoding}, which its column chunk does not list")

    def _check_level_encoding(self, highest: int, encoding: int) -> None:
        """Refuses an encoding for levels that the format has only for values."""
        if not highest or encoding in (Encoding.RLE, Encoding.BIT_PACKED):
            return
        if decoder(encoding) is not None or encoding not in self._metadata.encodings:
            raise CorruptFileError(f"a page claims encoding {encoding} for its levels")

    def _split(self, column: LeafColumn, rows: int) -> tuple[LeafColumn, LeafColumn | None]:
        at = self._position(column, rows)
        if at == (end := (column.entries, len(column.array))):
            return column, None
        return column.cut((0, 0), at), column.cut(at, end)

    def _position(self, column: LeafColumn, row: int) -> tuple[int, int]:
        """(entry, slot) at which ``row`` starts; where ``column`` ends when it is not within."""
        if column.repetition is None:
            at = min(row, len(column.array))
            return at, at
        entry = level_kernel.find_row(column.repetition, row)
        if entry < 0:
            return column.entries, len(column.array)
        assert column.definition is not None
        return entry, int(np.count_nonzero(column.definition[:entry] >= self._shape.slot_level))

    def keep(self, column: LeafColumn, ranges: Sequence[tuple[int, int]]) -> LeafColumn:
        """Only the rows of ``column`` within ``ranges``, which ascend and lie apart."""
        if len(ranges) <= _FEW_RANGES:
            parts = [column.cut(self._position(column, start), self._position(column, stop)) for start, stop in ranges]
            return join(parts) if parts else column.cut((0, 0), (0, 0))
        borders = np.zeros(column.rows + 1, np.int8)
        starts, stops = np.array(ranges, np.int64).T
        borders[starts] += 1
        borders[stops] -= 1
        entries = np.cumsum(borders[:-1], dtype=np.int8).view(bool)
        if column.repetition is None or column.definition is None:
            return LeafColumn(None, None if column.definition is None else column.definition[entries],
                              column.array.filter(pa.array(entries)))
        entries = entries[np.cumsum(column.repetition == 0) - 1]
        slots = entries[column.definition >= self._shape.slot_level]
        return LeafColumn(
            column.repetition[entries], column.definition[entries], column.array.filter(pa.array(slots))
        )
