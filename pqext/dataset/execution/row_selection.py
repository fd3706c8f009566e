"""Select rows of batches by masks, flags and row numbers, and restore the types of their columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers, view
from pqext.core.base.usage import Budget
from pqext.core.kernels.decode import selected_values
from pqext.core.schema.arrow_schema.arrays import filter_batch
from pqext.core.schema.row_ranges import RowRanges, flag_rows
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.dataset.planning.projection import Fields

PART_BYTES = 32 << 20
"""Maximum size of dictionary-encoded values that are decoded together, unless a single row is larger."""


def flag_remaining(remaining_rows: NDArray[np.int64], part: RowRanges | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return, for each row of ``part``, whether ``remaining_rows`` contains it; all true if ``part`` is an array."""
    return np.ones(len(part), np.bool_) if isinstance(part, np.ndarray) else flag_rows(remaining_rows, part)


def combine_columns(first: pa.RecordBatch | None, second: pa.RecordBatch | None) -> pa.RecordBatch | None:
    """Combine the columns of two batches with the same rows; either batch can be None."""
    if first is None or second is None:
        return first if second is None else second
    return pa.RecordBatch.from_arrays(
        [*first.columns, *second.columns], schema=pa.schema([*first.schema, *second.schema], first.schema.metadata)
    )


def matching_positions(mask: pa.BooleanArray, count: int, first: int = 0) -> NDArray[np.int64]:
    """Return the positions, counted from ``first``, of the ``count`` true values in a mask."""
    mask = pc.and_kleene(mask, mask.is_valid()) if mask.null_count else mask  # fill_null would import pandas
    places = np.empty(count, np.int64)
    selected_values.mask_positions(view(mask.buffers()[1]), mask.offset, len(mask), first, places)
    return places


def select_flagged(
    batch: pa.RecordBatch, fields: Fields, flags: NDArray[np.bool_]
) -> tuple[pa.RecordBatch, Fields]:
    """Select the flagged rows of a batch and of the arrays in ``fields``. The batch may have no columns."""
    if flags.all():
        return batch, fields
    mask = pa.array(flags)
    fields = {key: array.filter(mask) for key, array in fields.items()}
    return (filter_batch(batch, mask) if batch.num_columns else without_columns(int(np.count_nonzero(flags)))), fields


def select_matching(batch: pa.RecordBatch, mask: pa.BooleanArray, dropped_columns: Collection[str]) -> pa.RecordBatch:
    """Select the rows of a batch where ``mask`` is true, and drop ``dropped_columns``."""
    names = [name for name in batch.schema.names if name not in dropped_columns]
    if not names:
        return without_columns(mask.true_count)
    return filter_batch(batch if len(names) == batch.num_columns else batch.select(names), mask)


def without_columns(rows: int) -> pa.RecordBatch:
    """Create a batch of ``rows`` rows that has no columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def restore_types(
    batch: pa.RecordBatch, names: Collection[str], schema: pa.Schema, budget: Budget
) -> Iterator[pa.RecordBatch]:
    """Cast the columns ``names`` to their types in ``schema`` if they were read as dictionaries for comparisons.

    The result consists of non-empty parts, because a small dictionary may expand to more bytes than memory allows.

    Raises ``MemoryLimitError`` if a row exceeds ``budget``, or if all values exceed the bytes that may be decoded.
    """
    fields = {batch.schema.get_field_index(name): schema.field(name) for name in names}
    fields = {
        place: field for place, field in fields.items()
        if pa.types.is_dictionary(type := batch.schema.types[place]) and type != field.type
    }
    ends = np.cumsum(sum((_value_bytes(batch.column(place)) for place in fields), np.zeros(batch.num_rows, np.int64)))
    start = consumed = 0
    while start < batch.num_rows:
        stop = int(np.searchsorted(ends, consumed + min(PART_BYTES, budget.room // 4), side="right"))
        stop = max(stop, start + 1)
        size, consumed = int(ends[stop - 1]) - consumed, int(ends[stop - 1])
        part = batch.slice(start, stop - start)
        budget.add(size)
        try:
            for place, field in fields.items():
                part = part.set_column(place, field, decode_dictionary(part.column(place)).cast(field.type))
            yield part
        finally:
            budget.add(-size)
        start = stop


def _value_bytes(column: pa.DictionaryArray) -> NDArray[np.int64]:
    """Return the number of bytes of the string or byte array in each row of a column; 0 for nulls."""
    values = column.dictionary
    if not len(values):
        return np.zeros(len(column), np.int64)
    offsets = numbers(values.buffers()[1], np.int32, values.offset, len(values) + 1)
    is_valid = column.is_valid()
    places = pc.if_else(is_valid, column.indices, pa.scalar(0, column.indices.type)).to_numpy()
    sizes: NDArray[np.int64] = (offsets[places + 1] - offsets[places]) * is_valid.to_numpy(zero_copy_only=False)
    return sizes.astype(np.int64)
