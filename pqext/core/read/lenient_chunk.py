"""Read a column chunk with corrupt pages: report lost rows and substitute placeholders for them.

A corrupt page loses only its own rows. A page whose rows cannot be counted, or a corrupt page header, loses the
remaining rows of the chunk. A chunk with a wrong value count loses all rows (Error Recovery).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.footer.encoding_statistics import DATA_PAGES, excess_encodings
from pqext.core.format.encodings import plain
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding
from pqext.core.read.column import TOO_MANY, ColumnReader
from pqext.core.read.leaf_column import LeafColumn, LeafColumnBuilder, decoded_bytes, join
from pqext.core.read.pages import page
from pqext.core.read.pages.page import OpenedPages, RawPage
from pqext.core.read.pages.page_decoder import PageDecoder, locate_error
from pqext.core.schema.row_ranges import RowRanges

OnLoss = Callable[[int, int, ParquetError], None]
"""Function that is called with the first lost row, the row after the last lost row, and the error."""


class LenientReader(ColumnReader):
    """Reader of all pages of a chunk. It continues after corrupt pages and calls ``on_loss`` for their rows."""

    _by_table = False

    def __init__(self, *arguments: Any, on_loss: OnLoss, **options: Any) -> None:
        self._on_loss = on_loss
        super().__init__(*arguments, **options)

    @property
    def _decoder(self) -> Callable[..., PageDecoder]:
        return partial(LenientDecoder, on_loss=self._on_loss)

    def read(self, rows: RowRanges) -> LeafColumn:
        """Read ``rows`` like :class:`ColumnReader`, with placeholders for lost rows.

        All rows of the chunk are reported as lost if it has more rows than its row group.
        """
        column = super().read(rows)
        if self._has_more():
            # Any of its rows may be at the wrong position.
            self._on_loss(0, self._rows, self._locate_error(CorruptFileError(TOO_MANY)))
        return column

    def check_end(self) -> None:
        """Do nothing, since surplus rows were reported when they were detected."""

    def _replace_missing_rows(self) -> list[LeafColumn]:
        assert isinstance(self._pages, LenientDecoder)
        return [self._pages.lose_rest(CorruptFileError("a column chunk has fewer rows than its row group"))]


class _HeaderTotals(NamedTuple):
    """Number of values in all page headers, and whether the values and rows of the pages match the totals of the chunk.

    If they do not, it is unknown which count is wrong.

    Headers of version 2 declare the number of rows; Arrow before version 12 stores the number of list entries instead.
    """

    values: int
    values_add_up: bool
    rows_add_up: bool
    encodings: frozenset[int] = frozenset()
    """Encodings with more pages than the metadata counts."""


class LenientDecoder(PageDecoder):
    """Decoder of all pages of a chunk. It continues after corrupt pages and calls ``on_loss`` for their rows."""

    def __init__(self, *arguments: Any, on_loss: OnLoss, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._on_loss = on_loss
        self._is_given_up = False
        self._dictionary_fault: CorruptFileError | None = None
        self._plain: list[OpenedPages] = []
        """PLAIN pages that are being decoded."""

    def skip_page(self, rows: int) -> int | None:
        """Return None, because all pages are decoded."""
        return None

    def decode_next(self, entries: int, *, required_entries: int | None = None) -> LeafColumn | None:
        """Decode like :class:`PageDecoder`, with placeholders for lost rows."""
        run: list[RawPage] = []
        damage: ParquetError | None = None
        if self.decoded_rows == 0 and not self._is_given_up and not self._headers.values_add_up:
            message = f"the page headers declare {self._headers.values} values in total"
            return self.lose_rest(
                CorruptFileError(f"{message}, but the metadata of the column chunk declares {self.entries_left}")
            )
        try:
            self._gather(run, entries)
        except CorruptFileError as error:
            damage = error
        decoded = [self._decode_run(run)] if run else []
        if damage is not None:
            decoded.append(self.lose_rest(damage))
        return join(decoded) if decoded else None

    def lose_rest(self, error: ParquetError) -> LeafColumn:
        """Report all remaining rows as lost, and return placeholders for them."""
        self._raw_pages = iter(())
        self._is_given_up = True
        self.entries_left = 0
        rows = max(self._rows - self.decoded_rows, 0)
        return self._record_loss(rows, error, is_torn=self._shape.node.max_repetition_level > 0)

    def _trusts_header(self, raw: RawPage) -> bool:
        """Return whether to trust a header whose row count contradicts the levels.

        A header is trusted if the row counts of all headers add up and no checksum confirms the levels.
        """
        return not (self._checksums and raw.header.crc is not None) and self._headers.rows_add_up

    @cached_property
    def _headers(self) -> _HeaderTotals:
        """Totals of all page headers, which are read before any page is decoded."""
        values = rows = 0
        is_data = True
        encodings: Counter[int] = Counter()
        try:
            for raw in self._pages_again():
                header = raw.header
                if header.type in DATA_PAGES:
                    values += raw.num_values
                    encodings[raw.layout[1]] += 1
                    of_page = raw.num_rows if raw.num_values else 0
                    rows += of_page if of_page is not None and of_page >= 0 else self._rows + 1
                elif header.data_page_header is not None or header.data_page_header_v2 is not None:
                    is_data = False
        except CorruptFileError:  # the rows after a corrupt header are reported when they are read
            return _HeaderTotals(values, True, rows <= self._rows)
        values_add_up = values == self.entries_left or not is_data
        return _HeaderTotals(values, values_add_up, rows == self._rows, excess_encodings(self._metadata, encodings))

    def _decode_run(self, run: list[RawPage], required_entries: int | None = None) -> LeafColumn:
        if len(run) > 1:
            with suppress(CorruptFileError):
                return super()._decode_run(run, required_entries)
            required_entries = None
        pieces = []
        for raw in run:
            pieces.append(self._decode_or_lose(raw, required_entries))
            if self._is_given_up:
                break
        return join(pieces)

    def _decode(self, run: list[RawPage], required_entries: int | None = None) -> LeafColumn:
        """Decode like :class:`PageDecoder`, but raise ``CorruptFileError`` if a PLAIN page has bytes after its values.

        The values of these pages may be of another type.
        """
        before = self._account.held
        column = super()._decode(run, required_entries)
        held = self._account.held
        try:
            for opened in self._plain:
                self._check_filled(opened)
        except MemoryLimitError:  # the values themselves do not exceed the limit
            self._account.resize(held)
        except CorruptFileError:
            self._account.resize(before)
            raise
        finally:
            self._plain.clear()
        return column

    def _check_filled(self, pages: OpenedPages) -> None:
        kind = self._type
        for data, count in zip(pages.values.pages, pages.values.counts, strict=True):
            if plain.count_trailing_bytes(data, count, kind.physical, kind.width, self._account) > 0:
                raise CorruptFileError(
                    "a page has bytes after its last value; the type of the column in the schema may be wrong"
                )

    def _open(self, group: list[RawPage]) -> OpenedPages:
        node = self._shape.node
        for raw in group:
            page.check_levels(raw, node.max_repetition_level, node.max_definition_level)
            if raw.layout[1] in self._headers.encodings:
                message = f"more pages have encoding {raw.layout[1]} than the metadata of the column chunk states"
                raise CorruptFileError(message, offset=raw.offset)
        opened = super()._open(group)
        if opened.encoding == Encoding.PLAIN:
            self._plain.append(opened)
        return opened

    def _decode_or_lose(self, raw: RawPage, required_entries: int | None) -> LeafColumn:
        try:
            return super()._decode_run([raw], required_entries)
        except CorruptFileError as fault:
            is_indexed = raw.layout[1] in DICTIONARY_ENCODINGS
            error = self._dictionary_fault if self._dictionary_fault and is_indexed else fault
            rows: int | None = raw.num_values
            if self._shape.node.max_repetition_level:
                rows = raw.num_rows if raw.num_rows is not None and self._headers.rows_add_up else None
            if rows is None or not 0 <= rows <= self._rows - self.decoded_rows:
                return self.lose_rest(error)
            return self._record_loss(rows, error, is_torn=False)

    def _read_dictionary(self, raw: RawPage) -> None:
        try:
            super()._read_dictionary(raw)
        except CorruptFileError as error:  # each page that refers to the dictionary is lost when it is read
            self._dictionary_fault = error

    def _record_loss(self, rows: int, error: ParquetError, *, is_torn: bool) -> LeafColumn:
        """Record the loss of ``rows`` rows, and return placeholders.

        With ``is_torn``, the preceding row may also be incomplete.
        """
        start, self.decoded_rows = self.decoded_rows, self.decoded_rows + rows
        self._on_loss(start - (is_torn and start > 0), start + rows, locate_error(error, self._place, self._shape))
        return self._placeholder(rows)

    def _placeholder(self, rows: int) -> LeafColumn:
        """Return placeholders for lost rows."""
        node = self._shape.node
        try:
            self._account.reserve(decoded_bytes(self._shape, rows))
        except MemoryLimitError:
            # In a corrupt file this number may be wrong too, so the row group is lost.
            raise CorruptFileError(
                f"the column chunk is corrupt, and nulls for its remaining {rows} rows would exceed memory_bytes"
            ) from None
        slots = rows if self._shape.slot_level == 0 else 0
        levels = np.zeros(rows, np.int16)
        empty = LeafColumnBuilder(self._shape, 0, self._account).finish()
        return LeafColumn(
            levels if node.max_repetition_level else None,
            levels if empty.definition is not None else None,
            pa.nulls(slots, empty.array.type),
        )
