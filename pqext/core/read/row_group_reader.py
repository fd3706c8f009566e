"""Read one row group in batches: decode its columns in parallel within one budget, and assemble them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, repeat
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base import buffers
from pqext.core.base.errors import (
    ArrayLimitError,
    CorruptFileError,
    ExpansionError,
    InvalidValueError,
    MemoryLimitError,
    OffsetIndexError,
    ParquetError,
)
from pqext.core.base.threads import Workers
from pqext.core.base.usage import Account, Budget
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.format.enums import DICTIONARY_ENCODINGS
from pqext.core.format.metadata import OffsetIndex, Type
from pqext.core.io.external_files import make_spans
from pqext.core.io.source import STREAMED_BYTES, Source
from pqext.core.options.read_write import ReadOptions
from pqext.core.read import second_copy
from pqext.core.read.assemble import assemble, assembled_bytes
from pqext.core.read.column import ColumnReader
from pqext.core.read.damage import DamageReport, Losses
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.lenient_chunk import LenientReader
from pqext.core.read.pages.page_selection import AllPages, PageSelection, SelectedPages
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.read.small_chunks import SMALL, FetchedChunks, SmallLeaves
from pqext.core.read.value_slots import is_viewable, viewed_bytes
from pqext.core.schema.row_ranges import NumberQueue, RowQueue, RowRanges, row_numbers
from pqext.core.schema.shape import LeafShape, Shape
from pqext.core.schema.types.invalid_values import convert_values, may_be_invalid, strip_type, unannotated_leaves
from pqext.core.schema.types.physical_types import canonical_type

_FEW_ROWS = 1024
"""Minimum number of rows per batch, independently of the sizes in the metadata. Only decoded rows prove a size."""
_FEWER = 16
"""Divisor of the size of a batch that exceeds the budget, before the batch is retried."""


_Rows = RowRanges | NDArray[np.int64]
"""Row ranges, or row numbers."""


class RowGroupReader:
    """Reader of the leaves of ``small_leaves`` in one row group. The batches have the schema ``arrow_schema``.

    Decoded bytes are charged to ``budget`` until a batch is returned, and afterwards to ``output_account`` if it is
    set. Each chunk in ``fetched_chunks`` is decoded in one call. Skipped corruption is added to ``damage``, and
    ``chunk_ranges`` detects overlapping chunks.
    """

    def __init__(
        self, group: RowGroup, small_leaves: SmallLeaves, fetched_chunks: FetchedChunks | None, arrow_schema: pa.Schema,
        options: ReadOptions, damage: DamageReport, budget: Budget, output_account: Account | None,
        chunk_ranges: ChunkRanges,
    ) -> None:
        self._group = group
        self._chunk_ranges = chunk_ranges
        self._shapes = small_leaves.tops
        self._leaves = small_leaves.shapes
        self._schema = arrow_schema
        self._options = options
        self._lost = Losses(damage, group.index, group.path) if options.skips_corrupt else None
        self._budget = budget
        self._assembling = Account(budget)
        self._output_account = output_account
        self._max_skipped_rows: int | None = None
        self._viewed: frozenset[int] = frozenset()
        self._typed: dict[int, LeafShape] = {}
        """Leaves whose values are converted from their stored representation per batch."""
        self._small, self._fetched = small_leaves, fetched_chunks
        self._gathered = Account(budget)

    def batches(
        self, batch_rows: int | None, selection: RowRanges | NDArray[np.int64] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of all rows, or of the rows in ``selection``, which are ranges or ascending numbers.

        Batches have at most ``batch_rows`` rows, or fewer if the rows take much memory. If ``batch_rows`` is None,
        there is one batch, or several if the strings or list elements do not fit into one array.
        """
        try:
            yield from self._batches(batch_rows, selection)
        except CorruptFileError as error:
            error.locate(row_group=self._group.index)
            if self._lost is None:
                raise
            self._lost.add(None, 0, max(self._group.num_rows, 0), error)
        except ParquetError as error:
            error.locate(row_group=self._group.index)
            raise

    def _batches(self, batch_rows: int | None, selection: _Rows | None) -> Iterator[pa.RecordBatch]:
        if self._lost is not None and self._record_overlaps(self._lost):
            return
        rows: _Rows = [range(rows_of(self._group))] if selection is None else selection
        decoded: dict[int, LeafColumn] = {}
        if self._fetched is not None:
            small = self._small.read(self._fetched, self._gathered)
            self._fetched = None
            if small and (batch := self._assemble_leaves(small)) is not None:
                yield batch
                return
            decoded = {index: LeafColumn(None, None, array) for index, array in small.items()}
        is_replaced = self._lost is not None and self._options.invalid_utf8 == "replace"
        if self._options.invalid_values == "null" or is_replaced:
            leaves = {leaf.node.leaf_start for leaf in self._leaves if may_be_invalid(leaf.node)}
            self._defer_conversion(leaves - set(decoded))
        readers = self._open_readers(selection, decoded)
        most = max(min(batch_rows or (1 << 62), _count(rows)), 1)
        claimed = sum(reader.row_bytes for reader in readers.values())
        at_once = most if batch_rows is None else min(most, max(self._budget.max_rows(claimed), _FEW_ROWS))
        if decoded and at_once < most:
            decoded, readers = {}, self._page_by_page_readers(selection)
        sizes = {
            index: reader.size * reader.selected_page_rows // max(self._group.num_rows, 1)
            * at_once // max(_count(rows), 1)
            for index, reader in readers.items()
        }
        below = [_bytes_to_assemble(top, sizes) for top in self._shapes]
        work = [max(reader.work, 0) * at_once // max(self._group.num_rows, 1) for reader in readers.values()]
        jobs = len(readers) if sum(sizes.values()) > SMALL * len(readers) else 1
        queue: Any = NumberQueue(rows) if isinstance(rows, np.ndarray) else RowQueue(rows)
        is_prefix, returned, indexes = True, 0, self._group.indexes
        with Workers(self._options.threads, jobs) as workers:
            while queue:
                part = queue.pop(at_once)
                count = _count(part)
                used = workers.map(_read_rows, readers.values(), repeat(part), sizes=work)
                try:
                    columns = {**decoded, **dict(zip(readers, used, strict=True))}
                    columns |= {index: self._copy_views(columns[index]) for index in self._viewed}
                    columns |= {index: self._convert_column(index, columns[index], part) for index in self._typed}
                    _check_elements(columns)
                    self._assembling.reserve(sum(assembled_bytes(top, columns) for top in self._shapes))
                except InvalidValueError as error:
                    leaf = error.leaf
                    is_final = self._lost is not None or leaf is None or leaf in self._typed
                    if is_final or leaf is None or not self._defer_conversion({leaf}):
                        raise
                    queue.push_back(part)
                    decoded, readers = {}, self._reopen_columns(readers, workers, selection)
                    continue
                except OffsetIndexError as error:
                    if not is_prefix or indexes is None or indexes.may_have_pruned_pages(error.leaf):
                        raise  # rows may already have been selected or returned with the index
                    error.locate(row_group=self._group.index, path=self._group.path)
                    indexes.ignore_pages(error)
                    queue.push_back(part)
                    decoded, readers = {}, self._reopen_columns(readers, workers, selection)
                    continue
                except MemoryLimitError as error:
                    too_long = isinstance(error, ArrayLimitError)
                    is_hopeless = (batch_rows is None and not too_long) or count == 1 or error.is_final
                    if not self._view_leaves(expanding_only=not too_long) and is_hopeless:
                        raise
                    if (batch_rows is not None or too_long) and not isinstance(error, ExpansionError):
                        at_once = max(count // _FEWER, 1)
                    self._max_skipped_rows = at_once if too_long else None
                    queue.push_back(part)
                    decoded, readers = {}, self._reopen_columns(readers, workers, selection)
                    continue
                if batch_rows is not None and queue:
                    result = sum(column.nbytes for column in columns.values()) // count
                    at_once = min(most, 2 * at_once, max(self._budget.max_rows(result), 1))
                columns, count = self._drop_lost_rows(readers, columns, part)
                returned += count
                is_prefix = is_prefix and _end_row(part) == returned
                if not count:
                    self._release_rows(readers, [])
                    continue
                started = perf_counter()
                made = workers.map(
                    assemble, self._shapes, repeat(columns), repeat(self._options), self._schema.types, sizes=below
                )
                arrays = list(made)
                if self._budget.usage is not None:
                    self._budget.usage.add_assembly(perf_counter() - started)
                del columns, used, made
                self._release_rows(readers, arrays)
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema) if arrays else _empty(count)
            for reader in readers.values():
                reader.check_end()

    def _record_overlaps(self, losses: Losses) -> bool:
        """Add all rows to ``losses`` for each chunk that overlaps another chunk. Return whether any chunk overlaps."""
        result = False
        for leaf in self._leaves:
            index = leaf.node.leaf_start
            other = self._chunk_ranges.overlapping_chunk(self._group.index, index)
            if other is not None:
                leaves = self._group.schema.leaves  # the other row group may have more chunks
                name = leaves[other[1]].dotted_path if other[1] < len(leaves) else f"chunk {other[1]}"
                message = f"the column chunk shares bytes with {name} in row group {other[0]}"
                losses.add(leaf.node.dotted_path, 0, max(self._group.num_rows, 0), CorruptFileError(message))
                result = True
        return result

    def _assemble_leaves(self, leaf_arrays: Mapping[int, pa.Array]) -> pa.RecordBatch | None:
        """Assemble the row group as one batch from the decoded ``leaf_arrays``.

        Return None if leaves are missing or take much memory.
        """
        rows = self._group.num_rows
        if len(leaf_arrays) < len(self._leaves) or rows > max(self._budget.max_rows(0), _FEW_ROWS):
            return None
        if self._small.is_conversion_free:
            arrays = [leaf_arrays[leaf.node.leaf_start] for leaf in self._leaves]
            self._release_rows({}, arrays)
            return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        decoded = {index: LeafColumn(None, None, array) for index, array in leaf_arrays.items()}
        try:
            self._assembling.reserve(sum(assembled_bytes(top, decoded) for top in self._shapes))
        except MemoryLimitError:
            self._assembling.resize(0)
            return None
        kinds = self._schema.types
        arrays = [assemble(top, decoded, self._options, kind) for top, kind in zip(self._shapes, kinds, strict=True)]
        self._release_rows({}, arrays)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _view_leaves(self, *, expanding_only: bool) -> bool:
        """Decode strings as views from now on, and copy them for each batch. Return whether this changes any leaf.

        The strings of one page may not fit into one array, or may refer to a long dictionary entry many times. With
        ``expanding_only``, only chunks with a dictionary are affected.
        """
        results = {
            leaf.node.leaf_start for leaf in self._leaves
            if not leaf.viewed and is_viewable(leaf.node) and not (expanding_only and not self._may_expand(leaf))
        }
        self._viewed |= results
        self._leaves = [
            replace(leaf, encoded=False, viewed=True) if leaf.node.leaf_start in results else leaf
            for leaf in self._leaves
        ]
        return bool(results)

    def _may_expand(self, leaf: LeafShape) -> bool:
        """Return whether the pages of a leaf may be dictionary-encoded."""
        return not DICTIONARY_ENCODINGS.isdisjoint(self._group.chunk(leaf.node).metadata.encodings)

    def _defer_conversion(self, leaves: Collection[int]) -> bool:
        """Convert the values of ``leaves`` per batch from now on.

        Return whether any of these leaves needs conversion.
        """
        typed = {
            leaf.node.leaf_start: leaf for leaf in self._leaves
            if leaf.node.leaf_start in leaves and may_be_invalid(leaf.node)
        }
        self._typed |= typed
        self._leaves = [strip_type(leaf) if leaf.node.leaf_start in typed else leaf for leaf in self._leaves]
        return bool(typed)

    def _convert_column(self, index: int, column: LeafColumn, part: _Rows) -> LeafColumn:
        """Convert the stored values of a column to values of its Arrow type. The column contains the rows ``part``."""
        shape = self._typed[index]
        is_own = any(index in unannotated_leaves(top) for top in self._shapes)
        options = self._options if is_own else replace(self._options, invalid_values="raise", invalid_utf8="raise")
        try:
            array, count = convert_values(shape, column.array, options)
        except InvalidValueError as error:
            error.leaf = index
            error.locate(column=shape.node.dotted_path)
            if error.slot is not None:
                numbers = part if isinstance(part, np.ndarray) else row_numbers(part)
                row = int(numbers[column.row_of_slot(error.slot, shape.slot_level)])
                error.message = f"row {row} of the row group: {error.message}"
            raise
        if count and self._budget.usage is not None:
            self._budget.usage.add_invalid_values(count)
        return LeafColumn(column.repetition, column.definition, array)

    def _copy_views(self, column: LeafColumn) -> LeafColumn:
        """Return the column with views replaced by copies of their values."""
        size = viewed_bytes(column.array)
        if size > buffers.ARRAY_BYTES:
            raise ArrayLimitError(
                f"more than {buffers.ARRAY_BYTES} bytes of byte array values in one row or batch; "
                "read fewer rows at a time"
            )
        self._assembling.reserve(size + 4 * len(column.array))
        return LeafColumn(column.repetition, column.definition, column.array.cast(canonical_type(column.array.type)))

    def _drop_lost_rows(
        self, readers: Mapping[int, ColumnReader], columns: dict[int, LeafColumn], part: _Rows
    ) -> tuple[dict[int, LeafColumn], int]:
        """Return the columns without lost rows, and the number of remaining rows."""
        count = _count(part)
        for index, column in columns.items():
            if column.rows != count:
                raise CorruptFileError(
                    f"a column chunk has {count - column.rows} fewer rows than its row group",
                    column=self._group.schema.leaves[index].dotted_path,
                )
        if self._lost is None or isinstance(part, np.ndarray) or (ranges := self._lost.remaining_ranges(part)) is None:
            return columns, count
        columns = {
            index: readers[index].select_ranges(column, ranges) if index in readers else column.select_ranges(ranges)
            for index, column in columns.items()
        }
        return columns, sum(last - first for first, last in ranges)

    def _release_rows(self, readers: Mapping[int, ColumnReader], arrays: Sequence[pa.Array]) -> None:
        for reader in readers.values():
            reader.release_rows()
        self._assembling.resize(0)
        self._gathered.resize(0)
        if self._output_account is not None:
            self._output_account.reserve(sum(array.get_total_buffer_size() for array in arrays))

    def _reopen_columns(
        self, readers: Mapping[int, ColumnReader], workers: Workers, selection: _Rows | None
    ) -> dict[int, ColumnReader]:
        """Reopen the columns after the rows that were already returned."""
        self._assembling.resize(0)
        workers.abandon()
        for reader in readers.values():
            reader.close()
        return self._page_by_page_readers(selection)

    def _page_by_page_readers(self, selection: _Rows | None) -> dict[int, ColumnReader]:
        """Reopen all columns so that they are decoded page by page."""
        self._gathered.resize(0)
        return self._open_readers(selection, ())

    def _open_readers(self, selection: _Rows | None, excluded_leaves: Collection[int]) -> dict[int, ColumnReader]:
        """Open the columns at their first row, except ``excluded_leaves``; return the readers by column index."""
        group, lost = self._group, self._lost
        assert group.source is not None
        leaves = [
            leaf for leaf in self._leaves if leaf.node.leaf_start not in excluded_leaves
        ] if excluded_leaves else self._leaves
        chunks = [group.chunk(leaf.node) for leaf in leaves]
        if self._options.second_copies:
            chunks = [second_copy.find_second_copy(chunk) for chunk in chunks]
        pages: dict[int, PageSelection] = {}
        # Skipping corruption requires decoding all pages, so that all damage is detected.
        if selection is not None and lost is None:
            pages = self._select_pages(chunks, selection)
        complete = [chunk for chunk in chunks if chunk.node.leaf_start not in pages]
        ranges = [(chunk.source(group.source), chunk.readable_range(group.source)) for chunk in complete]
        parts = [part for part in pages.values() if isinstance(part, SelectedPages)]
        together = [part.ranges for part in parts]
        if not _can_fetch_together(together):
            parts, together = [], []
        spans = make_spans([*ranges, *chain.from_iterable(together)])
        fetched = iter(spans[len(ranges) :])
        for part, ranges in zip(parts, together, strict=True):
            part.use_spans(list(islice(fetched, len(ranges))))
        for chunk, span in zip(complete, spans, strict=False):
            pages[chunk.node.leaf_start] = AllPages(span, group.num_rows, chunk.entries_to_read)
        return {
            leaf.node.leaf_start: self._reader_class(leaf)(
                leaf, chunk.metadata, pages[leaf.node.leaf_start], group.num_rows, group.limits, self._budget,
                checksums=self._options.checksums, max_skipped_rows=self._max_skipped_rows, decryptor=chunk.decryptor,
                lean=not (leaf.viewed or leaf.encoded) and is_viewable(leaf.node) and self._may_expand(leaf),
            )
            for leaf, chunk in zip(leaves, chunks, strict=True)
        }

    def _reader_class(self, leaf: LeafShape) -> Callable[..., ColumnReader]:
        """Return the class of a column's reader. The reader skips corruption if the options request it."""
        lost = self._lost
        if lost is None:
            return ColumnReader
        return partial(LenientReader, on_loss=partial(lost.add, leaf.node.dotted_path))

    def _select_pages(self, chunks: Sequence[ColumnChunk], rows: _Rows) -> dict[int, PageSelection]:
        """Return, for each leaf with an offset index, the pages that contain any of ``rows``."""
        group = self._group
        assert group.source is not None
        if group.indexes is not None and group.trust_statistics:
            group.indexes.load([chunk for chunk in chunks if chunk.indexes is not None], index_types=(OffsetIndex,))
        pages: dict[int, PageSelection] = {}
        for chunk in chunks:
            known = chunk.page_locations
            if known is not None:
                source = chunk.source(group.source)
                pages[chunk.node.leaf_start] = SelectedPages(source, chunk.byte_range, known, rows)
        return pages


def _read_rows(reader: ColumnReader, rows: _Rows) -> LeafColumn:
    return reader.read_at(rows) if isinstance(rows, np.ndarray) else reader.read(rows)


def _count(rows: _Rows) -> int:
    return len(rows) if isinstance(rows, np.ndarray) else sum(map(len, rows))


def _end_row(rows: _Rows) -> int:
    """Return the end (exclusive) of ``rows``, which must not be empty."""
    return int(rows[-1]) + 1 if isinstance(rows, np.ndarray) else rows[-1].stop


def _bytes_to_assemble(top: Shape, sizes: Mapping[int, int]) -> int:
    """Return the total size of the leaves below ``top``, given ``sizes`` by column index; 0 if ``top`` needs no
    assembly.
    """
    is_whole = isinstance(top, LeafShape) and top.annotation is None and top.node.physical_type != Type.INT96
    return 0 if is_whole else sum(sizes.get(leaf.node.leaf_start, 0) for leaf in top.leaves())


def _can_fetch_together(ranges: Sequence[Sequence[tuple[Source, tuple[int, int]]]]) -> bool:
    """Return whether to fetch the byte ranges of all columns together.

    The ranges must lie within their files and be small enough in total.
    """
    result = list(chain.from_iterable(ranges))
    within = all(0 <= offset <= source.size - length for source, (offset, length) in result)
    return within and sum(length for _, (_, length) in result) <= STREAMED_BYTES


def _check_elements(columns: Mapping[int, LeafColumn]) -> None:
    """Raise ``ArrayLimitError`` if a list column has more elements than fit into one array."""
    if any(column.repetition is not None and column.entries > buffers.ARRAY_BYTES for column in columns.values()):
        raise ArrayLimitError(f"more than {buffers.ARRAY_BYTES} list elements in one batch; read fewer rows at a time")


def rows_of(group: RowGroup) -> int:
    """Return the number of rows of the row group. Raises ``CorruptFileError`` if it is negative."""
    if group.num_rows < 0:
        raise CorruptFileError(f"a row group declares a negative row count: {group.num_rows}", row_group=group.index)
    return group.num_rows


def _empty(rows: int) -> pa.RecordBatch:
    """Return a batch with ``rows`` rows and no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
