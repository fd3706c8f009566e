"""Column chunks read past their damage: what of them is lost is told, and other values stand in its place.

Damage costs no more than the rows of the pages that it is in. A page whose rows cannot be counted, or a damaged page
header, takes the rest of the chunk's rows with it, and one that counts other values all of them (Error Recovery).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, MemoryLimitError, ParquetError
from pqext.core.footer.encoding_statistics import DATA_PAGES, uncounted
from pqext.core.format.encodings import plain
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import Encoding
from pqext.core.read.column import TOO_MANY, ColumnReader
from pqext.core.read.leaf_column import LeafColumn, LeafColumnBuilder, decoded_bytes, join
from pqext.core.read.pages import page
from pqext.core.read.pages.page import OpenedPages, RawPage
from pqext.core.read.pages.page_decoder import PageDecoder, located
from pqext.core.schema.row_ranges import RowRanges

Lose = Callable[[int, int, ParquetError], None]
"""Is told the first row that is lost, the row behind the last, and the error."""


class LenientReader(ColumnReader):
    """Reads all pages of a chunk, and tells ``lose`` what damage costs."""

    _by_table = False

    def __init__(self, *arguments: Any, lose: Lose, **options: Any) -> None:
        self._lose = lose
        super().__init__(*arguments, **options)

    @property
    def _decoder(self) -> Callable[..., PageDecoder]:
        return partial(LenientDecoder, lose=self._lose)

    def take(self, rows: RowRanges) -> LeafColumn:
        """As in :class:`ColumnReader`; never fewer."""
        column = super().take(rows)
        if self._has_more():
            # Any of its rows may be another than it seems.
            self._lose(0, self._rows, self._located(CorruptFileError(TOO_MANY)))
        return column

    def check_end(self) -> None:
        """Nothing: more rows than those of the row group were told as they were found."""

    def _missing(self) -> list[LeafColumn]:
        assert isinstance(self._pages, LenientDecoder)
        return [self._pages.lose_rest(CorruptFileError("a column chunk ends before its row group"))]


class _Headers(NamedTuple):
    """Do pages hold as many values as the chunk, and as many rows? Of which the count is damaged, nothing tells.

    Rows are told by headers of version 2; in Arrow before 12 these counted the entries of lists.
    """

    values_add_up: bool
    rows_add_up: bool
    encodings: frozenset[int] = frozenset()
    """Those of which there are more pages than the metadata counts."""


class LenientDecoder(PageDecoder):
    """Decodes all pages of a chunk, and tells ``lose`` of those that it cannot decode."""

    def __init__(self, *arguments: Any, lose: Lose, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lose = lose
        self._is_given_up = False
        self._dictionary_fault: CorruptFileError | None = None
        self._plain: list[OpenedPages] = []
        """Pages of PLAIN values that are decoded now."""

    def pass_page(self, rows: int) -> int | None:
        """None: all pages are opened."""
        return None

    def next(self, entries: int, *, needed: int | None = None) -> LeafColumn | None:
        """As in :class:`PageDecoder`, with other values for rows that are lost."""
        run: list[RawPage] = []
        damage: ParquetError | None = None
        if self.decoded_rows == 0 and not self._is_given_up and not self._headers.values_add_up:
            told = f"its pages do not hold the {self.entries_left} values of the column chunk"
            return self.lose_rest(CorruptFileError(f"{told}: one of them counts wrongly"))
        try:
            self._gather(run, entries)
        except CorruptFileError as error:
            damage = error
        decoded = [self._decode_run(run)] if run else []
        if damage is not None:
            decoded.append(self.lose_rest(damage))
        return join(decoded) if decoded else None

    def lose_rest(self, error: ParquetError) -> LeafColumn:
        """Give up all rows that are left."""
        self._raw_pages = iter(())
        self._is_given_up = True
        self.entries_left = 0
        rows = max(self._rows - self.decoded_rows, 0)
        return self._lost(rows, error, torn=self._shape.node.max_repetition_level > 0)

    def _believes_header(self, raw: RawPage) -> bool:
        """As in :class:`PageDecoder`: where no checksum says that the levels are as they were written."""
        return not (self._checksums and raw.header.crc is not None) and self._headers.rows_add_up

    @cached_property
    def _headers(self) -> _Headers:
        """What the headers of all pages say together, asked before any page is decoded."""
        values = rows = 0
        is_data = True
        encodings: Counter[int] = Counter()
        try:
            for raw in self._pages_again():
                header = raw.header
                if header.type in DATA_PAGES:
                    values += raw.num_values
                    encodings[raw.form[1]] += 1
                    of_page = raw.num_rows if raw.num_values else 0
                    rows += of_page if of_page is not None and of_page >= 0 else self._rows + 1
                elif header.data_page_header is not None or header.data_page_header_v2 is not None:
                    is_data = False
        except CorruptFileError:  # what is behind a damaged header is lost when it is reached
            return _Headers(True, rows <= self._rows)
        values_add_up = values == self.entries_left or not is_data
        return _Headers(values_add_up, rows == self._rows, uncounted(self._metadata, encodings))

    def _decode_run(self, run: list[RawPage], needed: int | None = None) -> LeafColumn:
        try:
            return super()._decode_run(run, needed)
        except CorruptFileError:
            pieces = []
            for raw in run:
                pieces.append(self._decode_or_lose(raw))
                if self._is_given_up:
                    break
            return join(pieces)

    def _decode(self, run: list[RawPage], needed: int | None = None) -> LeafColumn:
        """As in :class:`PageDecoder`; values that do not fill their pages are those of another type."""
        before = self._account.held
        column = super()._decode(run, needed)
        held = self._account.held
        try:
            for opened in self._plain:
                self._check_filled(opened)
        except MemoryLimitError:  # which the values themselves do not exceed
            self._account.resize(held)
        except CorruptFileError:
            self._account.resize(before)
            raise
        finally:
            self._plain.clear()
        return column

    def _check_filled(self, opened: OpenedPages) -> None:
        kind = self._type
        for data, count in zip(opened.values.pages, opened.values.counts, strict=True):
            if plain.bytes_behind(data, count, kind.physical, kind.width, self._account) > 0:
                raise CorruptFileError("a page holds more bytes than its values take: they may be of another type")

    def _open(self, group: list[RawPage]) -> OpenedPages:
        node = self._shape.node
        for raw in group:
            page.check_levels(raw, node.max_repetition_level, node.max_definition_level)
            if raw.form[1] in self._headers.encodings:
                message = "more pages have this encoding than their column chunk counts"
                raise CorruptFileError(message, offset=raw.offset)
        opened = super()._open(group)
        if opened.encoding == Encoding.PLAIN:
            self._plain.append(opened)
        return opened

    def _decode_or_lose(self, raw: RawPage) -> LeafColumn:
        try:
            return super()._decode_run([raw])
        except CorruptFileError as fault:
            error = self._dictionary_fault if self._dictionary_fault and raw.form[1] in DICTIONARY_ENCODINGS else fault
            rows: int | None = raw.num_values
            if self._shape.node.max_repetition_level:
                rows = raw.num_rows if raw.num_rows is not None and self._headers.rows_add_up else None
            if rows is None or not 0 <= rows <= self._rows - self.decoded_rows:
                return self.lose_rest(error)
            return self._lost(rows, error, torn=False)

    def _read_dictionary(self, raw: RawPage) -> None:
        try:
            super()._read_dictionary(raw)
        except CorruptFileError as error:  # the pages that refer to it are lost, each when it is read
            self._dictionary_fault = error

    def _lost(self, rows: int, error: ParquetError, *, torn: bool) -> LeafColumn:
        """Give up ``rows`` rows; ``torn`` when the row before them may have gone on in what is lost."""
        start, self.decoded_rows = self.decoded_rows, self.decoded_rows + rows
        self._lose(start - (torn and start > 0), start + rows, located(error, self._place, self._shape))
        return self._placeholder(rows)

    def _placeholder(self, rows: int) -> LeafColumn:
        """Rows in the place of lost ones."""
        node = self._shape.node
        try:
            self._account.reserve(decoded_bytes(self._shape, rows))
        except MemoryLimitError:
            # Where something is damaged, such a number is damage too: it costs the row group.
            raise CorruptFileError(f"a damaged column chunk and a row group that claims {rows} rows more") from None
        slots = rows if self._shape.slot_level == 0 else 0
        levels = np.zeros(rows, np.int16)
        empty = LeafColumnBuilder(self._shape, 0, self._account).finish()
        return LeafColumn(
            levels if node.max_repetition_level else None,
            levels if empty.definition is not None else None,
            pa.nulls(slots, empty.array.type),
        )
