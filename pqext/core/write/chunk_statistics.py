"""Statistics, size statistics, page indexes and Bloom filter of a column chunk that is being written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.format.metadata import ColumnMetaData, SizeStatistics, Type
from pqext.core.indexes import bloom, page_index
from pqext.core.indexes.bloom import SplitBlockFilter
from pqext.core.kernels.encode import page_statistics
from pqext.core.kernels.encode.page_boundaries import PageBoundaries
from pqext.core.kernels.thrift import page_index as page_index_kernel
from pqext.core.schema import statistics
from pqext.core.schema.statistics import PageExtremes
from pqext.core.write.dictionary_builder import IndexedValues
from pqext.core.write.disassemble import DenseColumn
from pqext.core.write.leaf_recipe import LeafRecipe


@dataclass(slots=True)
class ChunkIndexes:
    """Indexes and Bloom filter of a chunk (None if absent), and the ``extensions`` to add to the chunk's metadata.

    ``column_index`` is serialised. The offset index describes the pages in ``boundaries``; the chunk is at ``offset``
    in the file. If ``measured`` is true, the offset index includes the sizes of byte arrays.
    """

    column_index: bytes | None = None
    boundaries: PageBoundaries | None = None
    measured: bool = False
    bloom_filter: SplitBlockFilter | None = None
    extensions: Mapping[UUID, bytes] | None = None
    offset: int = 0

    @property
    def offset_index(self) -> bytes | None:
        """Serialised offset index."""
        return None if self.boundaries is None else page_index_kernel.offset_index(self.boundaries, self.offset,
        self.measured)


def describe(
    metadata: ColumnMetaData, column: DenseColumn, stored_values: pa.Array, boundaries: PageBoundaries,
    dictionary: IndexedValues | None, recipe: LeafRecipe,
) -> ChunkIndexes:
    """Add statistics to ``metadata``, and return the indexes that the options request.

    ``stored_values`` contains the chunk's values in their stored representation.
    """
    options, indexed = recipe.options, recipe.page_index
    indexes = ChunkIndexes()
    has_sizes = recipe.leaf_type.physical == Type.BYTE_ARRAY
    sizes = boundaries.measure(stored_values.buffers()[1], stored_values.offset) if has_sizes else None
    if recipe.statistics:
        extremes = statistics.boundary_extremes(recipe.order, recipe.bounds, stored_values, boundaries)
        if options.profile == "spark" and any(extremes.nan_counts or ()):
            # In Spark NaN is greater than all numbers, but bounds exclude NaN, and Spark prunes by them.
            unknown = [None] * boundaries.count
            extremes = PageExtremes(unknown, unknown, extremes.nan_counts)
        # The number of distinct floats depends on how NaN and zeros compare.
        distinct = None
        if dictionary is not None and not recipe.order.is_float:
            distinct = dictionary.distinct_count(len(stored_values))
        metadata.statistics = statistics.chunk_statistics(
            recipe.order, extremes, boundaries.total_nulls, bound_bytes=options.bound_bytes, distinct_count=distinct
        )
        definition = repetition = None
        if recipe.definition_counts:
            definition = _histogram(column.definition, recipe.node.max_definition_level, boundaries)
        if recipe.repetition_counts:
            repetition = _histogram(column.repetition, recipe.node.max_repetition_level, boundaries)
        metadata.size_statistics = SizeStatistics(
            unencoded_byte_array_data_bytes=sizes,
            definition_level_histogram=_sum(definition),
            repetition_level_histogram=_sum(repetition),
        )
        if indexed:
            indexes.column_index = page_index.column_index(
                recipe.order, extremes, boundaries, definition, repetition, options.bound_bytes
            )
        if recipe.handler is not None:
            facts = recipe.handler.chunk_facts(
                recipe.node, column.values, boundaries.starts("values"), indexed, options, column.notes
            )
            metadata.geospatial_statistics, indexes.extensions = facts.geospatial_statistics, facts.extensions
    if indexed:
        indexes.boundaries, indexes.measured = boundaries, has_sizes
    if recipe.bloom_filter is not None:
        indexes.bloom_filter = _bloom_filter(recipe, stored_values, dictionary)
    return indexes


_Counts = NDArray[np.int64]


def _histogram(levels: int | NDArray[np.int16], max_level: int, boundaries: PageBoundaries) -> _Counts:
    """Return the level histogram of each page, as an array with a row for each page and a column for each level."""
    counts = np.zeros((boundaries.count, max_level + 1), np.int64)
    starts = boundaries.starts("entries")
    if isinstance(levels, int):
        counts[:, levels] = np.diff(starts)
    else:
        page_statistics.level_counts(levels, starts, max_level, counts)
    return counts


def _sum(counts: _Counts | None) -> list[int] | None:
    return None if counts is None else counts.sum(axis=0).tolist()


def _bloom_filter(
    recipe: LeafRecipe, stored_values: pa.Array, dictionary: IndexedValues | None
) -> SplitBlockFilter | None:
    chosen = recipe.bloom_filter
    if chosen is None or recipe.leaf_type.physical == Type.BOOLEAN:
        return None
    entries = None if dictionary is None else dictionary.distinct_values(len(stored_values))
    values, ndv = (stored_values, chosen.ndv) if entries is None else (entries, chosen.ndv or len(entries))
    return bloom.build(
        recipe.leaf_type, values, fpp=chosen.fpp, ndv=ndv, max_bytes=recipe.options.bloom_filter_bytes
    )
