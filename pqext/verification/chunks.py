"""Column chunks: their pages, and whether statistics, page index and Bloom filter tell the truth about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from pqext.core.base.budget import Account
from pqext.core.base.errors import CorruptFileError, EncryptionError, LimitError, UnsupportedError
from pqext.core.format.encodings import plain
from pqext.core.format.metadata import BoundaryOrder, ColumnIndex, Encoding, PageType
from pqext.core.format.predicate import Bounds, Value
from pqext.core.indexes import bloom
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.leaf_runs import contents, has_empty, is_byte_array_decimal, runs, span_of
from pqext.core.read.pages import page as pages
from pqext.core.read.reader import ColumnChunk, ParquetFile, RowGroup
from pqext.core.schema.orders import BoundOrder, of_column, to_write
from pqext.core.schema.shape import LeafShape, Shape
from pqext.verification import claims
from pqext.verification.documents import not_json
from pqext.verification.model import Fault, Findings
from pqext.verification.selection import ChunkSelection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Piece:
    """What a run of rows of one leaf really holds; extremes are None where there is no value or no order."""

    entries: int
    nulls: int
    minimum: Value | None
    maximum: Value | None
    nans: int | None
    physical: pa.Array | None
    sizes: claims.Sizes


def check(file: ParquetFile, tops: Sequence[Shape], selection: ChunkSelection, findings: Findings) -> None:
    """Check every column chunk below ``tops``."""
    first_row = 0
    for group in file.row_groups:
        for top in tops:
            for leaf in top.leaves():
                if selection.includes(group, leaf):
                    _ChunkCheck(file, group, leaf, findings, first_row).run()
        first_row += group.num_rows


class _ChunkCheck:
    def __init__(
        self, file: ParquetFile, group: RowGroup, leaf: LeafShape, findings: Findings, first_row: int
    ) -> None:
        self._file = file
        self._first_row = first_row
        self._group = group
        self._leaf = leaf
        self._findings = findings

    def run(self) -> None:
        column = self._leaf.node.dotted
        try:
            with self._damage("layout.chunk-lost"):
                chunk = self._group.chunk(self._leaf.node)
                _ = chunk.metadata, chunk.decryptor
                # Some writers tell no place of the pages of a chunk that has none.
                stored = self._pages(chunk) if chunk.num_values or self._group.num_rows else None
                if stored is not None:
                    with self._damage("layout.page-lost"):
                        self._values(chunk, stored)
        except (UnsupportedError, EncryptionError, LimitError) as error:
            self._findings.skip(column, self._group.index, error.message)

    def _fault(self, rule: str, message: str, offset: int | None = None) -> None:
        self._findings.add(Fault(rule, message, self._group.index, None, self._leaf.node.dotted, offset))

    def _claims(self, faults: claims.Claims) -> None:
        for rule, message in faults:
            self._fault(rule, message)

    @contextmanager
    def _damage(self, rule: str) -> Iterator[None]:
        try:
            yield
        except CorruptFileError as error:
            fault = Fault(rule, error.message, self._group.index, None, self._leaf.node.dotted, error.offset)
            self._findings.damaged(fault)

    def _pages(self, chunk: ColumnChunk) -> list[PageExtent] | None:
        """The data pages, their checksums checked; ``None`` when values cannot be told from damage."""
        span, sound = span_of(self._file, chunk), True
        starts: list[int] = []
        kinds = claims.EncodingTally()
        data: list[tuple[int, tuple[int, int | None, int | None]]] = []
        has_dictionary = chunk.metadata.dictionary_page_offset is not None
        try:
            for raw in pages.raw_pages(
                span, chunk.limits, chunk.decryptor, has_dictionary=has_dictionary, entries=chunk.entries_to_read
            ):
                try:
                    pages.verify_checksum(raw)
                except CorruptFileError as error:
                    sound = False
                    self._fault("page.crc", error.message, raw.offset)
                    self._findings.know_damage(self._group.index, chunk.node.dotted)
                try:
                    pages.check_levels(raw, chunk.node.max_repetition_level, chunk.node.max_definition_level)
                except CorruptFileError as error:
                    self._fault("page.v2.levels", error.message, raw.offset)
                if raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                    data.append((len(starts), (raw.num_values, raw.num_rows, raw.num_nulls)))
                    self._filled(chunk, raw)
                kinds.add(raw)
                starts.append(raw.offset)
        except CorruptFileError:
            with self._damage("layout.page-lost"):
                raise
            return None
        held = sum(entries for _, (entries, *_) in data)
        if held != chunk.metadata.num_values and not chunk.uncounted:
            message = f"the pages hold {held} values, the column chunk says {chunk.metadata.num_values}"
            self._fault("layout.page-lost", message, span.offset)
        self._claims(claims.of_encodings(chunk.metadata, kinds))
        if chunk.decryptor is None and not chunk.uncounted:
            self._claims(claims.of_size(chunk.metadata, span.size, kinds))
        ends = [*starts[1:], span.offset + span.size]
        return [PageExtent(starts[i], ends[i] - starts[i], *counts) for i, counts in data] if sound else None

    def _filled(self, chunk: ColumnChunk, raw: pages.RawPage) -> None:
        """Do PLAIN values fill their page? Looked at where no levels stand before them, as a flipped bit may say."""
        node, kind = chunk.node, chunk.node.leaf_type
        if node.max_definition_level or raw.layout[1] != Encoding.PLAIN:
            return
        account = Account(self._file.budget())
        with suppress(CorruptFileError):  # told where values are read
            opened = pages.open_data([raw], chunk.metadata.codec, max_repetition=0, max_definition=0)
            data = opened.values.pages[0]
            if plain.bytes_behind(data, raw.num_values, kind.physical, kind.width, account) > 0:
                self._fault("encoding.plain.whole", "a page holds more bytes than its values take", raw.offset)
        account.resize(0)

    def _index(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except CorruptFileError as error:
            self._fault("page-index.validation", error.message, error.offset)
        return None

    def _values(self, chunk: ColumnChunk, stored: list[PageExtent]) -> None:
        offsets = self._index(lambda: chunk.offset_index)
        columns = self._index(lambda: chunk.column_index) if offsets is not None else None
        order = of_column(chunk.node.leaf_type, chunk.order)
        rows = self._group.num_rows
        known: IndexedPages | None = None
        if offsets is not None:
            known = IndexedPages(chunk.node, order, offsets, columns, rows)
            said = [(location.offset, location.compressed_page_size) for location in offsets.page_locations]
            if said != [(page.offset, page.size) for page in stored]:
                self._fault("page-index.offsets", "the offset index does not say where the pages lie")
                known = None
        measured = order if order.is_defined else to_write(chunk.node.leaf_type)  # that of the deprecated fields
        claimed, filter = chunk.bounds(), self._index_of_values(chunk)
        nulls = nans = entries = 0
        found: list[claims.Sizes] = []
        lows: list[Value | None] = []
        highs: list[Value | None] = []
        outside = absent = False
        counted = None
        if any(page.rows is not None for page in stored):
            counted = Counted(stored, chunk.node.max_definition_level)
        for number, piece in enumerate(self._pieces(chunk, measured, known, counted)):
            entries, nulls, nans = entries + piece.entries, nulls + piece.nulls, nans + (piece.nans or 0)
            outside = outside or _outside(piece, claimed)
            found.append(piece.sizes)
            lows.append(piece.minimum)
            highs.append(piece.maximum)
            if known is not None:
                self._page(known, columns, order, number, piece, stored[number])
            if filter is not None and piece.physical is not None and len(piece.physical):
                absent = absent or not filter.contains_hashes(bloom.hash_values(piece.physical)).all()
        for page, message in counted.contradicted() if counted is not None else ():
            self._fault("page.v2.counts", message, page.offset)
        if outside:
            self._fault("statistics.bounds", "a value lies outside the statistics' minimum and maximum")
        if absent:
            self._fault("bloom.check", "the Bloom filter does not know a value that is there")
        self._counts(chunk, order, entries, nulls, nans)
        self._claims(claims.of_levels(chunk.metadata, found))
        if is_byte_array_decimal(chunk.node) and has_empty(self._file, self._group, self._leaf, chunk):
            self._fault("logical.decimal.byte-array", "a decimal has no bytes, so that it is no number")
        if not outside:
            self._claims(claims.of_exactness(chunk.metadata, order, _extreme(min, lows), _extreme(max, highs)))
        if known is not None and offsets is not None:
            for number, rule, message in claims.of_page_levels(columns, offsets, found):
                self._fault(rule, message, stored[number].offset)
        if known is not None and columns is not None:
            self._boundary_order(order, known, columns.boundary_order)

    def _index_of_values(self, chunk: ColumnChunk) -> bloom.SplitBlockFilter | None:
        try:
            return chunk.bloom_filter
        except CorruptFileError as error:
            self._fault("bloom.header", error.message, error.offset)
        return None

    def _pieces(
        self, chunk: ColumnChunk, order: BoundOrder, known: IndexedPages | None, counted: Counted | None
    ) -> Iterator[Piece]:
        """The rows of each page, where an index tells them, else runs of rows."""
        row = self._first_row
        counts = None if known is None else known.row_counts
        for column in runs(self._file, self._group, self._leaf, chunk, counts):
            if counted is not None:
                counted.add(column)
            if chunk.node.leaf_type.member == "JSON":
                self._documents(column, row)
            row += column.rows
            yield _measure(column, order, self._leaf)

    def _documents(self, column: LeafColumn, row: int) -> None:
        """Report the values of a JSON column that are no JSON; in lists it is not told in which row."""
        found, message = not_json(column.array), "a value is no JSON document"
        shown = found[: max(self._findings.room, 0)].tolist()
        for index in shown:
            place = row + index if column.repetition is None else None
            path = self._leaf.node.dotted
            self._findings.add(Fault("logical.json", message, self._group.index, place, path))
        if len(found) > len(shown):
            self._findings.count("logical.json", message, len(found) - len(shown))

    def _page(
        self, known: IndexedPages, columns: ColumnIndex | None, order: BoundOrder, number: int, piece: Piece,
        stored: PageExtent,
    ) -> None:
        bounds = known[number]
        assert isinstance(bounds, Bounds)
        if piece.entries != stored.entries:
            self._fault("page-index.offsets", "a page does not hold the rows that the offset index says", stored.offset)
        elif columns is not None and columns.null_pages[number] and piece.nulls < piece.entries:
            self._fault("page-index.null-pages", "a page that is called null holds values", stored.offset)
        elif columns is not None and columns.null_pages[number] and _has_bounds(columns, number):
            self._fault("page-index.null-pages", "a page that is called null has bounds", stored.offset)
        elif bounds.null_count is not None and bounds.null_count != piece.nulls:
            message = f"the column index counts {bounds.null_count} nulls in a page of {piece.nulls}"
            self._fault("page-index.null-counts", message, stored.offset)
        if columns is not None and not columns.null_pages[number]:
            problem = claims.of_pair(order, columns.min_values[number], columns.max_values[number])
            if problem is not None:
                self._fault("page-index.bounds", f"the column index has {problem} for a page", stored.offset)
        if _outside(piece, bounds):
            self._fault("page-index.bounds", "a value lies outside the bounds of its page", stored.offset)

    def _counts(self, chunk: ColumnChunk, order: BoundOrder, entries: int, nulls: int, nans: int) -> None:
        said = chunk.metadata.statistics
        if said is None:
            return
        if said.null_count is not None and said.null_count != nulls:
            message = f"the statistics count {said.null_count} nulls where there are {nulls}"
            self._fault("statistics.null-count", message)
        if order.is_float and said.nan_count is not None and said.nan_count != nans:
            self._fault("statistics.nan-count", f"the statistics count {said.nan_count} NaN where there are {nans}")
        if (problem := claims.of_pair(order, said.min_value, said.max_value, allow_nan=True)) is not None:
            self._fault("statistics.bounds", f"the statistics have {problem}")

    def _boundary_order(self, order: BoundOrder, known: IndexedPages, claimed: int) -> None:
        if claimed == BoundaryOrder.UNORDERED:
            return
        bounds = [found for found in known.bounds if found.minimum is not None and found.maximum is not None]
        for side in ([found.minimum for found in bounds], [found.maximum for found in bounds]):
            ahead, behind = side[1:], side[:-1]
            if claimed == BoundaryOrder.DESCENDING:
                ahead, behind = behind, ahead
            if any(low > high for low, high in zip(behind, ahead, strict=True)):  # type: ignore[operator]
                self._fault("page-index.boundary-order", "the pages' bounds are not in the order that is claimed")
                return


def _measure(column: LeafColumn, order: BoundOrder, leaf: LeafShape) -> Piece:
    entries, sizes = column.entries, claims.sizes(column, leaf)
    found = contents(column, order)
    return Piece(entries, found.nulls, found.minimum, found.maximum, found.nans, found.physical, sizes)


def _extreme(choose: Callable[[Sequence[Any]], Any], values: Sequence[Value | None]) -> Value | None:
    """The least or the greatest of the pieces' extremes; NaN is none of them."""
    known = [value for value in values if value is not None and value == value]
    return choose(known) if known else None


def _has_bounds(columns: ColumnIndex, page: int) -> bool:
    return bool(columns.min_values[page] or columns.max_values[page])


def _outside(piece: Piece, bounds: Bounds) -> bool:
    """Does a value lie outside the bounds? NaN lies nowhere."""
    low, high = piece.minimum, piece.maximum
    if low is None or high is None or low != low or high != high:
        return False
    return bool(
        (bounds.minimum is not None and low < bounds.minimum)  # type: ignore[operator]
        or (bounds.maximum is not None and high > bounds.maximum)  # type: ignore[operator]
    )


@dataclass(frozen=True, slots=True)
class PageExtent:
    """A data page by its header: offset in the file, stored size with the header, entries.

    Headers of version 2 tell rows and nulls too; nulls are -1 where parquet-java writes no statistics.
    """

    offset: int
    size: int
    entries: int
    rows: int | None
    nulls: int | None


class Counted:
    """Rows and nulls of each page of a chunk, by the runs of rows that are decoded one after another.

    ``highest`` is the definition level of entries that have a value.
    """

    def __init__(self, pages: Sequence[PageExtent], highest: int) -> None:
        self._pages = [page for page in pages if page.entries]
        self._ends = np.cumsum([page.entries for page in self._pages], dtype=np.int64)
        self._highest = highest
        self._rows, self._nulls = np.zeros(len(self._pages), np.int64), np.zeros(len(self._pages), np.int64)
        self._at = 0

    def add(self, column: LeafColumn) -> None:
        """Count the next run."""
        begin, stop = self._at, self._at + column.entries
        self._at = stop
        first, last = np.searchsorted(self._ends, [begin, stop - 1], "right")
        if begin == stop or last >= len(self._pages):
            return
        which = slice(first, last + 1)
        ends = np.minimum(self._ends[which], stop)
        starts = np.concatenate(([begin], ends[:-1])) - begin
        if column.repetition is None:
            self._rows[which] += ends - begin - starts
        else:
            self._rows[which] += np.add.reduceat(column.repetition == 0, starts, dtype=np.int64)
        if column.definition is not None:
            self._nulls[which] += np.add.reduceat(column.definition < self._highest, starts, dtype=np.int64)
        elif column.array.null_count:
            nulls = column.array.is_null().to_numpy(zero_copy_only=False)
            self._nulls[which] += np.add.reduceat(nulls, starts, dtype=np.int64)

    def contradicted(self) -> Iterator[tuple[PageExtent, str]]:
        """Each page that holds other rows or nulls than its header says, and how."""
        for page, rows, nulls in zip(self._pages, self._rows.tolist(), self._nulls.tolist(), strict=True):
            if page.rows is not None and page.rows != rows:
                yield page, f"a page holds {rows} rows where its header says {page.rows}"
            if page.nulls not in (None, -1, nulls):
                yield page, f"a page holds {nulls} nulls where its header says {page.nulls}"
