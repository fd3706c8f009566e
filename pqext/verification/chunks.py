"""Check column chunks: compare pages, statistics, page indexes and Bloom filters with the values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext import variant
from pqext.core.base.errors import CorruptFileError, EncryptionError, LimitError, UnsupportedError
from pqext.core.base.usage import Account
from pqext.core.format.encodings import plain
from pqext.core.format.metadata import BoundaryOrder, ColumnIndex, Encoding, PageType
from pqext.core.format.predicate import Bounds, Value
from pqext.core.indexes import bloom
from pqext.core.indexes.page_index import IndexedPages
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.leaf_runs import (
    RunSummary,
    has_empty_value,
    is_byte_array_decimal,
    iter_runs,
    span_of,
    summarise_run,
)
from pqext.core.read.pages import page as pages
from pqext.core.read.reader import ColumnChunk, ParquetFile, RowGroup
from pqext.core.schema.orders import BoundOrder, declared_order, written_order
from pqext.core.schema.shape import LeafShape, Shape
from pqext.verification import metadata_checks
from pqext.verification.chunk_selection import ChunkSelection
from pqext.verification.report import Fault, Findings

T = TypeVar("T")


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
    """Check of the pages, statistics, page index and Bloom filter of one column chunk."""

    def __init__(
        self, file: ParquetFile, group: RowGroup, leaf: LeafShape, findings: Findings, first_row: int
    ) -> None:
        self._file = file
        self._first_row = first_row
        self._group = group
        self._leaf = leaf
        self._findings = findings

    def run(self) -> None:
        column = self._leaf.node.dotted_path
        try:
            with self._record_damage("layout.chunk-lost"):
                chunk = self._group.chunk(self._leaf.node)
                _ = chunk.metadata, chunk.decryptor
                # Some writers record no page offsets for a chunk without pages.
                stored = self._check_pages(chunk) if chunk.num_values or self._group.num_rows else None
                if stored is not None:
                    with self._record_damage("layout.page-lost"):
                        self._check_values(chunk, stored)
        except (UnsupportedError, EncryptionError, LimitError) as error:
            self._findings.skip(column, self._group.index, error.message)

    def _report_fault(self, rule: str, message: str, offset: int | None = None) -> None:
        self._findings.add(Fault(rule, message, self._group.index, None, self._leaf.node.dotted_path, offset))

    def _report(self, faults: metadata_checks.Faults) -> None:
        for rule, message in faults:
            self._report_fault(rule, message)

    @contextmanager
    def _record_damage(self, rule: str) -> Iterator[None]:
        """Context manager that records corruption as a violation of ``rule``."""
        try:
            yield
        except CorruptFileError as error:
            fault = Fault(rule, error.message, self._group.index, None, self._leaf.node.dotted_path, error.offset)
            self._findings.add_damage(fault)

    def _check_pages(self, chunk: ColumnChunk) -> list[PageExtent] | None:
        """Check the pages, and return the data pages; None if corruption makes the values unreliable."""
        span, sound = span_of(self._file, chunk), True
        starts: list[int] = []
        tally = metadata_checks.EncodingTally()
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
                    self._report_fault("page.crc", error.message, raw.offset)
                    self._findings.mark_damaged(self._group.index, chunk.node.dotted_path)
                try:
                    pages.check_levels(raw, chunk.node.max_repetition_level, chunk.node.max_definition_level)
                except CorruptFileError as error:
                    self._report_fault("page.v2.levels", error.message, raw.offset)
                if raw.header.type in (PageType.DATA_PAGE, PageType.DATA_PAGE_V2):
                    data.append((len(starts), (raw.num_values, raw.num_rows, raw.num_nulls)))
                    self._check_plain_size(chunk, raw)
                tally.add(raw)
                starts.append(raw.offset)
        except CorruptFileError:
            with self._record_damage("layout.page-lost"):
                raise
            return None
        total = sum(entries for _, (entries, *_) in data)
        if total != chunk.metadata.num_values and not chunk.uncounted:
            message = f"the pages contain {total} values, the column chunk states {chunk.metadata.num_values}"
            self._report_fault("layout.page-lost", message, span.offset)
        self._report(metadata_checks.check_encodings(chunk.metadata, tally))
        if chunk.decryptor is None and not chunk.uncounted:
            self._report(metadata_checks.check_size(chunk.metadata, span.size, tally))
        ends = [*starts[1:], span.offset + span.size]
        return [PageExtent(starts[i], ends[i] - starts[i], *counts) for i, counts in data] if sound else None

    def _check_plain_size(self, chunk: ColumnChunk, raw: pages.RawPage) -> None:
        """Report a PLAIN page with bytes after its values. Only columns without definition levels are checked.

        A corrupt repetition type in the schema can cause this, because it determines whether pages have levels.
        """
        node, type = chunk.node, chunk.node.leaf_type
        if node.max_definition_level or raw.layout[1] != Encoding.PLAIN:
            return
        account = Account(self._file.budget())
        with suppress(CorruptFileError):  # reported when the values are read
            opened = pages.open_data([raw], chunk.metadata.codec, max_repetition=0, max_definition=0)
            data = opened.values.pages[0]
            if plain.count_trailing_bytes(data, raw.num_values, type.physical, type.width, account) > 0:
                self._report_fault(
                    "encoding.plain.whole", "a page contains more bytes than its values need", raw.offset
                )
        account.resize(0)

    def _read_index(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except CorruptFileError as error:
            self._report_fault("page-index.validation", error.message, error.offset)
        return None

    def _check_values(self, chunk: ColumnChunk, pages: list[PageExtent]) -> None:
        offsets = self._read_index(lambda: chunk.offset_index)
        columns = self._read_index(lambda: chunk.column_index) if offsets is not None else None
        order = declared_order(chunk.node.leaf_type, chunk.order)
        rows = self._group.num_rows
        indexed: IndexedPages | None = None
        if offsets is not None:
            indexed = IndexedPages(chunk.node, order, offsets, columns, rows)
            stated = [(location.offset, location.compressed_page_size) for location in offsets.page_locations]
            if stated != [(page.offset, page.size) for page in pages]:
                self._report_fault("page-index.offsets", "the offset index does not match the page offsets")
                indexed = None
        # Without a declared order, the deprecated fields have the order of the type.
        measured = order if order.is_defined else written_order(chunk.node.leaf_type)
        bounds, filter = chunk.bounds(), self._bloom_filter(chunk)
        nulls = nans = entries = 0
        sizes: list[metadata_checks.Sizes] = []
        lows: list[Value | None] = []
        highs: list[Value | None] = []
        outside = absent = False
        counts = None
        if any(page.rows is not None for page in pages):
            counts = PageCounts(pages, chunk.node.max_definition_level)
        for number, (run, measured_sizes) in enumerate(self._iter_runs(chunk, measured, indexed, counts)):
            entries, nulls, nans = entries + run.entries, nulls + run.nulls, nans + (run.nans or 0)
            outside = outside or _has_outlier(run, bounds)
            sizes.append(measured_sizes)
            lows.append(run.minimum)
            highs.append(run.maximum)
            if indexed is not None:
                self._check_page(indexed, columns, order, number, run, pages[number])
            if filter is not None and run.physical is not None and len(run.physical):
                absent = absent or not filter.contains_hashes(bloom.hash_values(run.physical)).all()
        for page, message in counts.iter_contradictions() if counts is not None else ():
            self._report_fault("page.v2.counts", message, page.offset)
        if outside:
            self._report_fault("statistics.bounds", "a value lies outside the statistics' minimum and maximum")
        if absent:
            self._report_fault("bloom.check", "the Bloom filter excludes a value of the chunk")
        self._check_counts(chunk, order, entries, nulls, nans)
        self._report(metadata_checks.check_levels(chunk.metadata, sizes))
        if is_byte_array_decimal(chunk.node) and has_empty_value(self._file, self._group, self._leaf, chunk):
            self._report_fault("logical.decimal.byte-array", "a decimal value has no bytes")
        if not outside:
            low, high = _choose_extreme(min, lows), _choose_extreme(max, highs)
            self._report(metadata_checks.check_exactness(chunk.metadata, order, low, high))
        if indexed is not None and offsets is not None:
            for number, rule, message in metadata_checks.check_page_levels(columns, offsets, sizes):
                self._report_fault(rule, message, pages[number].offset)
        if indexed is not None and columns is not None:
            self._check_boundary_order(order, indexed, columns.boundary_order)

    def _bloom_filter(self, chunk: ColumnChunk) -> bloom.SplitBlockFilter | None:
        try:
            return chunk.bloom_filter
        except CorruptFileError as error:
            self._report_fault("bloom.header", error.message, error.offset)
        return None

    def _iter_runs(
        self, chunk: ColumnChunk, order: BoundOrder, indexed_pages: IndexedPages | None, counts: PageCounts | None
    ) -> Iterator[tuple[RunSummary, metadata_checks.Sizes]]:
        """Yield a summary and sizes for each page if an index lists the pages, otherwise for each run of rows."""
        row = self._first_row
        row_counts = None if indexed_pages is None else indexed_pages.row_counts
        for column in iter_runs(self._file, self._group, self._leaf, chunk, row_counts):
            if counts is not None:
                counts.add(column)
            if chunk.node.leaf_type.member == "JSON":
                self._check_json(column, row)
            row += column.rows
            yield summarise_run(column, order), metadata_checks.measure_sizes(column, self._leaf)

    def _check_json(self, column: LeafColumn, row: int) -> None:
        """Report values of a JSON column that are not valid JSON. The row is omitted for values in lists."""
        invalid, message = find_invalid_json(column.array), "a value is not a JSON document"
        listed = invalid[: max(self._findings.capacity, 0)].tolist()
        for index in listed:
            value_row = row + index if column.repetition is None else None
            path = self._leaf.node.dotted_path
            self._findings.add(Fault("logical.json", message, self._group.index, value_row, path))
        if len(invalid) > len(listed):
            self._findings.count("logical.json", message, len(invalid) - len(listed))

    def _check_page(
        self, indexed_pages: IndexedPages, columns: ColumnIndex | None, order: BoundOrder, number: int, run: RunSummary,
        page: PageExtent,
    ) -> None:
        bounds = indexed_pages[number]
        assert isinstance(bounds, Bounds)
        if run.entries != page.entries:
            self._report_fault("page-index.offsets", "the rows of a page do not match the offset index", page.offset)
        elif columns is not None and columns.null_pages[number] and run.nulls < run.entries:
            self._report_fault("page-index.null-pages", "a page marked as a null page contains values", page.offset)
        elif columns is not None and columns.null_pages[number] and _has_bounds(columns, number):
            self._report_fault("page-index.null-pages", "a page marked as a null page has bounds", page.offset)
        elif bounds.null_count is not None and bounds.null_count != run.nulls:
            message = f"the column index counts {bounds.null_count} nulls in a page of {run.nulls}"
            self._report_fault("page-index.null-counts", message, page.offset)
        if columns is not None and not columns.null_pages[number]:
            problem = metadata_checks.describe_invalid_bounds(
                order, columns.min_values[number], columns.max_values[number]
            )
            if problem is not None:
                self._report_fault("page-index.bounds", f"the column index has {problem} for a page", page.offset)
        if _has_outlier(run, bounds):
            self._report_fault("page-index.bounds", "a value lies outside the bounds of its page", page.offset)

    def _check_counts(self, chunk: ColumnChunk, order: BoundOrder, entries: int, nulls: int, nans: int) -> None:
        stated = chunk.metadata.statistics
        if stated is None:
            return
        if stated.null_count is not None and stated.null_count != nulls:
            self._report_fault(
                "statistics.null-count", f"the statistics count {stated.null_count} nulls, the data {nulls}"
            )
        if order.is_float and stated.nan_count is not None and stated.nan_count != nans:
            self._report_fault("statistics.nan-count", f"the statistics count {stated.nan_count} NaN, the data {nans}")
        problem = metadata_checks.describe_invalid_bounds(order, stated.min_value, stated.max_value, allow_nan=True)
        if problem is not None:
            self._report_fault("statistics.bounds", f"the statistics have {problem}")

    def _check_boundary_order(self, order: BoundOrder, indexed_pages: IndexedPages, declared_order: int) -> None:
        if declared_order == BoundaryOrder.UNORDERED:
            return
        bounds = [page for page in indexed_pages.bounds if page.minimum is not None and page.maximum is not None]
        for side in ([page.minimum for page in bounds], [page.maximum for page in bounds]):
            lower, upper = side[:-1], side[1:]
            if declared_order == BoundaryOrder.DESCENDING:
                lower, upper = upper, lower
            if any(low > high for low, high in zip(lower, upper, strict=True)):  # type: ignore[operator]
                self._report_fault("page-index.boundary-order", "the bounds of the pages are not in the declared order")
                return


def _choose_extreme(choose: Callable[[Sequence[Any]], Any], values: Sequence[Value | None]) -> Value | None:
    """Return the minimum or maximum of ``values``, ignoring None and NaN; None if no value remains."""
    known = [value for value in values if value is not None and value == value]
    return choose(known) if known else None


def _has_bounds(columns: ColumnIndex, page: int) -> bool:
    return bool(columns.min_values[page] or columns.max_values[page])


def _has_outlier(run: RunSummary, bounds: Bounds) -> bool:
    """Return whether any value except NaN is outside the bounds."""
    low, high = run.minimum, run.maximum
    if low is None or high is None or low != low or high != high:
        return False
    return bool(
        (bounds.minimum is not None and low < bounds.minimum)  # type: ignore[operator]
        or (bounds.maximum is not None and high > bounds.maximum)  # type: ignore[operator]
    )


@dataclass(frozen=True, slots=True)
class PageExtent:
    """Facts about a data page from its header: offset in the file, stored size with the header, number of entries.

    V2 headers also state rows and nulls. ``nulls`` is -1 if parquet-java wrote no statistics.
    """

    offset: int
    size: int
    entries: int
    rows: int | None
    nulls: int | None


class PageCounts:
    """Rows and nulls of each page in a chunk, counted from consecutive runs of rows.

    ``max_level`` is the definition level of entries that have a value.
    """

    def __init__(self, pages: Sequence[PageExtent], max_level: int) -> None:
        self._pages = [page for page in pages if page.entries]
        self._ends = np.cumsum([page.entries for page in self._pages], dtype=np.int64)
        self._highest = max_level
        self._rows, self._nulls = np.zeros(len(self._pages), np.int64), np.zeros(len(self._pages), np.int64)
        self._at = 0

    def add(self, column: LeafColumn) -> None:
        """Count the rows and nulls of the next run of rows."""
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

    def iter_contradictions(self) -> Iterator[tuple[PageExtent, str]]:
        """Yield each page with a count of rows or nulls that differs from the page header, and a message."""
        for page, rows, nulls in zip(self._pages, self._rows.tolist(), self._nulls.tolist(), strict=True):
            if page.rows is not None and page.rows != rows:
                yield page, f"a page contains {rows} rows, its header states {page.rows}"
            if page.nulls not in (None, -1, nulls):
                yield page, f"a page contains {nulls} nulls, its header states {page.nulls}"


_LONG = 1 << 20
"""Length above which a text is checked only once, by the variant parser."""

_MOST = 2_147_418_112
"""Maximum bytes of one text for the parser."""


def find_invalid_json(texts: pa.Array) -> NDArray[np.int64]:
    """Return the positions of texts that are not JSON (RFC 8259).

    Nulls and texts that are nested too deeply for the parser are not included. Each distinct text is checked once: a
    few bytes of a file can repeat one text millions of times.
    """
    encoded = texts.dictionary_encode()
    faults = pa.array(list(_find_faults(encoded.dictionary)), encoded.indices.type)
    positions: NDArray[np.int64] = pc.indices_nonzero(pc.is_in(encoded.indices, faults)).to_numpy().astype(np.int64)
    return positions


def _find_faults(texts: pa.Array) -> Iterator[int]:
    parsed = variant.parse_json(texts, on_error="null", duplicate_keys="last", max_bytes=_MOST)
    for index in pc.indices_nonzero(pc.is_null(parsed)).to_pylist():
        text = texts[index].as_py()
        if len(text) > _LONG or not _is_json(text):
            yield index


def _is_json(text: str | bytes) -> bool:
    """Return whether a text is JSON. In contrast to VARIANT, numbers have no size limit."""
    try:
        json.loads(text, parse_constant=_reject_constant, parse_float=str, parse_int=str)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
