"""Read the values of a column chunk in runs of rows, with counts and extremes of each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.usage import Budget
from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.io.external_files import make_spans
from pqext.core.io.source import Span
from pqext.core.read.column import ColumnReader
from pqext.core.read.leaf_column import LeafColumn
from pqext.core.read.pages.page_selection import AllPages
from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.orders import BoundOrder
from pqext.core.schema.shape import LeafShape
from pqext.core.schema.statistics import page_extremes
from pqext.core.schema.types.leaf import to_physical

BATCH_ROWS = 65_536
REPETITIVE_ROWS = 1_048_576
"""Maximum number of rows of a batch of numbers in long runs of one value, whose batches take little time to decode."""
_ROW_BYTES = 64
"""Estimate of the memory of such a row while it is decoded."""
BATCH_BYTES = 32 << 20
LEAST_ROWS = 1024
"""Minimum number of rows read at a time, independently of the sizes in the metadata."""


def iter_runs(
    file: ParquetFile, group: RowGroup, leaf: LeafShape, chunk: ColumnChunk, pages: Sequence[int] | None = None,
    budget: Budget | None = None,
) -> Iterator[LeafColumn]:
    """Yield the rows of a chunk in runs. Checksums are not verified.

    ``pages`` contains the row count of each run. If it is None, the sizes in the metadata determine the runs.
    ``budget`` counts the decoded bytes of all chunks that a call reads. Raises ``CorruptFileError`` if the chunk does
    not have as many rows as its row group.
    """
    metadata, rows = chunk.metadata, group.num_rows
    stored = AllPages(span_of(file, chunk), rows, chunk.entries_to_read)
    budget = file.budget() if budget is None else budget.restart()
    reader = ColumnReader(
        leaf, metadata, stored, rows, chunk.limits, budget, checksums=False, decryptor=chunk.decryptor
    )
    fitting = BATCH_BYTES * rows // max(metadata.total_uncompressed_size, 1)
    is_number = leaf.node.physical_type not in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
    is_repetitive = is_number and not leaf.node.max_repetition_level and metadata.total_uncompressed_size < rows // 64
    most = max(BATCH_ROWS, min(REPETITIVE_ROWS, budget.room // _ROW_BYTES)) if is_repetitive else BATCH_ROWS
    step = max(LEAST_ROWS, min(most, fitting))
    start = 0
    for count in pages if pages is not None else (min(step, rows - at) for at in range(0, rows, step)):
        column = reader.read([range(start, start + count)])
        start += count
        if column.rows != count:
            raise CorruptFileError(f"the chunk has {count - column.rows} fewer rows than its row group")
        yield column
        reader.release_rows()
    reader.check_end()


def is_byte_array_decimal(leaf: SchemaNode) -> bool:
    """Return whether the values are decimals stored as byte arrays."""
    return leaf.leaf_type.member == "DECIMAL" and leaf.physical_type == Type.BYTE_ARRAY


def has_empty_value(file: ParquetFile, group: RowGroup, leaf: LeafShape, chunk: ColumnChunk) -> bool:
    """Return whether a chunk of byte arrays contains an empty value."""
    stored = replace(leaf, node=replace(leaf.node, logical_type=None))
    runs = iter_runs(file, group, stored, chunk)
    return any(pc.any(pc.equal(pc.binary_length(run.array), 0)).as_py() for run in runs)


def span_of(file: ParquetFile, chunk: ColumnChunk) -> Span:
    """Return the byte span that contains the chunk's pages."""
    return make_spans([(chunk.source(file.source), chunk.readable_range(file.source))])[0]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Counts and extremes of a run of rows.

    ``entries`` includes nulls and empty lists. The extremes are None if there are no values or no order. ``nans`` is
    None if values cannot be NaN. ``physical`` contains the stored values, or is None if they have no order.
    """

    entries: int
    nulls: int
    minimum: Value | None = None
    maximum: Value | None = None
    nans: int | None = None
    physical: pa.Array | None = None


def summarise_run(column: LeafColumn, order: BoundOrder) -> RunSummary:
    """Return the counts of a run of rows, and the extremes of its values in ``order``."""
    values = column.array.drop_null() if column.array.null_count else column.array
    nulls = column.entries - len(values)
    if not order.is_defined or pa.types.is_null(values.type):
        return RunSummary(column.entries, nulls)
    stored = pa.types.is_fixed_size_binary(values.type) and order.leaf.physical == Type.INT96
    physical = values if stored else to_physical(values, order.leaf)
    extremes = page_extremes(order, physical, np.array([0, len(physical)], np.int64))
    low, high = extremes.minima[0], extremes.maxima[0]
    return RunSummary(
        column.entries, nulls, None if low is None else order.value(low), None if high is None else order.value(high),
        None if extremes.nan_counts is None else extremes.nan_counts[0], physical,
    )
