"""What a written column chunk tells of itself: statistics, sizes, the indexes of its pages and its Bloom filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core import statistics
from pqext.core.disassemble import DenseColumn
from pqext.core.indexes import bloom, page_index
from pqext.core.indexes.bloom import SplitBlockFilter
from pqext.core.indexes.options import BloomFilterChoice
from pqext.core.kernels import page_statistics
from pqext.core.metadata import ColumnIndex, ColumnMetaData, OffsetIndex, PageLocation, SizeStatistics, Type
from pqext.core.options import WriteOptions
from pqext.core.orders import is_float, to_write
from pqext.core.statistics import PageExtremes


@dataclass(slots=True)
class WrittenPage:
    """A data page of a chunk: the slices of entries and values in it, its rows and its place in the chunk."""

    entries: slice
    values: slice
    rows: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ChunkIndexes:
    """What is stored of a chunk outside it, ``None`` where there is none, and ``extensions`` for its metadata."""

    column_index: ColumnIndex | None = None
    offset_index: OffsetIndex | None = None
    bloom_filter: SplitBlockFilter | None = None
    extensions: Mapping[UUID, bytes] = field(default_factory=dict)


def describe(
    metadata: ColumnMetaData, column: DenseColumn, physical: pa.Array, pages: Sequence[WrittenPage],
    dictionary: pa.Array | None, options: WriteOptions,
) -> ChunkIndexes:
    """Put statistics into ``metadata`` and make the indexes that ``options`` ask for.

    ``physical`` holds the chunk's values in stored form, ``dictionary`` the distinct ones when all pages refer to
    them. Offsets of pages are left as they are: relative to the chunk.
    """
    node = column.shape.node
    path = node.dotted
    wanted, indexed = options.statistics_of(path), options.page_index_of(path)
    nulls = [_length(page.entries) - _length(page.values) for page in pages]
    column_index = offset_index = None
    extensions: Mapping[UUID, bytes] = {}
    sizes = _byte_array_bytes(physical, pages) if node.physical_type == Type.BYTE_ARRAY else None
    if wanted:
        order = to_write(node.leaf_type, options.float_order)
        starts = np.array([page.values.start for page in pages] + [len(physical)], np.int64)
        extremes = statistics.of_pages(order, physical, starts)
        if options.profile == "spark" and any(extremes.nan_counts or ()):
            # Spark ranks NaN above all numbers, yet skips by bounds that leave it out.
            unknown = [None] * len(pages)
            extremes = PageExtremes(unknown, unknown, extremes.nan_counts)
        # What floats are distinct depends on how NaN and zeros compare.
        distinct = len(dictionary) if dictionary is not None and not is_float(node.leaf_type) else None
        metadata.statistics = statistics.of_chunk(
            order, extremes, sum(nulls), bound_bytes=options.bound_bytes, distinct_count=distinct
        )
        definition, repetition = _histograms(column, pages)
        metadata.size_statistics = SizeStatistics(
            unencoded_byte_array_data_bytes=sum(sizes) if sizes is not None else None,
            definition_level_histogram=_sum(definition),
            repetition_level_histogram=_sum(repetition),
        )
        if indexed:
            counts = [_length(page.values) for page in pages]
            column_index = page_index.column_index(order, extremes, counts, nulls, options.bound_bytes)
            if column_index is not None:
                column_index.definition_level_histograms = None if definition is None else definition.ravel().tolist()
                column_index.repetition_level_histograms = None if repetition is None else repetition.ravel().tolist()
        if column.shape.annotation is not None:
            handler = column.shape.annotation.load()
            facts = handler.chunk_facts(node, column.values, starts, indexed, options, column.notes)
            metadata.geospatial_statistics, extensions = facts.geospatial_statistics, facts.extensions
    if indexed:
        offset_index = page_index.offset_index(_locations(pages), sizes)
    filters = _bloom_filter(options.bloom_filter_of(path), column, physical, dictionary, options)
    return ChunkIndexes(column_index, offset_index, filters, extensions)


def _length(part: slice) -> int:
    return int(part.stop - part.start)


def _locations(pages: Sequence[WrittenPage]) -> list[PageLocation]:
    row, locations = 0, []
    for page in pages:
        locations.append(PageLocation(offset=page.offset, compressed_page_size=page.size, first_row_index=row))
        row += page.rows
    return locations


def _byte_array_bytes(physical: pa.Array, pages: Sequence[WrittenPage]) -> list[int]:
    if not len(physical):
        return [0] * len(pages)
    offsets = np.frombuffer(physical.buffers()[1], np.int32)[physical.offset : physical.offset + len(physical) + 1]
    return [int(offsets[page.values.stop]) - int(offsets[page.values.start]) for page in pages]


_Counts = NDArray[np.int64]


def _histograms(column: DenseColumn, pages: Sequence[WrittenPage]) -> tuple[_Counts | None, _Counts | None]:
    """Counts of definition and repetition levels, one row a page; ``None`` where num_values and null_count tell."""
    node = column.shape.node
    if node.max_definition_level <= 1 and not node.max_repetition_level:
        return None, None
    starts = np.array([page.entries.start for page in pages] + [column.entries], np.int64)

    def count(levels: int | NDArray[np.int16], highest: int) -> _Counts:
        counts = np.zeros((len(pages), highest + 1), np.int64)
        if isinstance(levels, int):
            counts[:, levels] = np.diff(starts)
        else:
            page_statistics.level_counts(levels, starts, highest, counts)
        return counts

    repeated = node.max_repetition_level > 0
    return (
        count(column.definition, node.max_definition_level) if node.max_definition_level > 1 or repeated else None,
        count(column.repetition, node.max_repetition_level) if repeated else None,
    )


def _sum(counts: _Counts | None) -> list[int] | None:
    return None if counts is None else counts.sum(axis=0).tolist()


def _bloom_filter(
    chosen: BloomFilterChoice | None, column: DenseColumn, physical: pa.Array, dictionary: pa.Array | None,
    options: WriteOptions,
) -> SplitBlockFilter | None:
    node = column.shape.node
    if chosen is None or node.physical_type == Type.BOOLEAN:
        return None
    values, ndv = (physical, chosen.ndv) if dictionary is None else (dictionary, chosen.ndv or len(dictionary))
    return bloom.build(node.leaf_type, values, fpp=chosen.fpp, ndv=ndv, max_bytes=options.bloom_filter_bytes)
