"""Collect the first rows of a sort order from batches, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import MemoryLimitError
from pqext.core.schema.types.arrow_compute import is_view, select_flagged, take_positions
from pqext.dataset.evaluation.comparison import to_sortable
from pqext.dataset.evaluation.evaluate import stored_values, value_of
from pqext.dataset.expressions import Column, Expression, Value

_PENDING_ROWS = 1 << 16
_PENDING_BYTES = 32 << 20
"""Bounds on buffered rows: at most this size, and at most as many rows as are selected."""


@dataclass(frozen=True, slots=True, eq=False)
class OrderKey:
    """Sort key of rows. NaN is greater than all other numbers; nulls come first or last."""

    value: Value
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        direction = " descending" if self.descending else ""
        return f"{self.value}{direction}{', nulls first' if self.nulls_first else ''}"

    def preceding_condition(self, limit: pa.Scalar, includes_ties: bool) -> Expression | bool:
        """Return a condition that is true for all rows that may precede a row whose key is ``limit``.

        Return True if all rows may precede it and False if none can. Rows with the same key count as preceding if
        ``includes_ties``. The condition may also be true for rows that come later.
        """
        if not limit.is_valid:
            if self.nulls_first:
                return self.value.is_null() if includes_ties else False
            return True if includes_ties else self.value.is_not_null()
        if self.descending:
            before: Expression = self.value >= limit if includes_ties else self.value > limit
        else:
            before = self.value <= limit if includes_ties else self.value < limit
        return before | self.value.is_null() if self.nulls_first else before


def key_values(value: Value, batch: pa.RecordBatch) -> pa.Array:
    """Return the sort key of each row of a batch. Raises ``TypeError`` if the values have no order."""
    array = to_sortable(stored_values(value, batch) if isinstance(value, Column) else value_of(value, batch))
    check_order(value, array.type)
    return array


def check_order(value: Value, type: pa.DataType) -> None:
    """Raise ``TypeError`` if the values of a type have no order."""
    if pa.types.is_nested(type) or pa.types.is_interval(type):
        kind = "a VARIANT, a geometry or a struct" if pa.types.is_struct(type) else f"of type {type}"
        raise TypeError(f"rows cannot be ordered by {value}, which is {kind}; order by a value inside it")


class TopRows:
    """Collector of added batches that keeps the first ``rows`` rows in the order of ``keys``; all rows if None.

    Rows with equal keys are ordered by the ``position`` passed to :meth:`add`, then by the order of addition.
    """

    def __init__(self, keys: Sequence[OrderKey], rows: int | None) -> None:
        self._keys = tuple(keys)
        self._rows = rows
        self._batches: list[pa.RecordBatch] = []
        self._key_batches: list[pa.RecordBatch] = []
        self._count = self._pending = self._pending_bytes = 0
        self._limit: tuple[pa.Scalar, int] | None = None
        self._conditions: dict[bool, Expression | bool] = {}
        self.held = 0
        """Bytes of the rows held."""

    def add(self, batch: pa.RecordBatch, values: Sequence[pa.Array], position: int) -> None:
        """Add the rows of a batch. ``values`` contains the keys of the rows, as returned by :func:`key_values`."""
        flags = self._candidate_flags(values[0], position)
        if flags is not None and not flags.all():
            batch, values = _take_rows(batch, np.flatnonzero(flags)), [select_flagged(array, flags) for array in values]
        keys = [*values]
        keys.append(pa.repeat(pa.scalar(position, pa.int64()), batch.num_rows))
        self._batches.append(batch)
        self._key_batches.append(pa.RecordBatch.from_arrays(keys, names=[*map(str, range(len(keys)))]))
        size = batch.get_total_buffer_size() + self._key_batches[-1].get_total_buffer_size()
        self._count += batch.num_rows
        self._pending += batch.num_rows
        self._pending_bytes += size
        self.held += size
        if self._rows is not None and (
            self._pending >= max(self._rows, _PENDING_ROWS)
            or (self._pending_bytes >= _PENDING_BYTES and self._pending >= self._rows)
        ):
            self._select()

    def is_below(self, key: float) -> bool:
        """Return whether enough rows whose first key is less than ``key`` have been added to reach the limit."""
        if self._rows is None or self._count < self._rows:
            return False
        self._select()
        return self._limit is not None and bool(self._limit[0].as_py() < key)

    def merge_pending(self) -> None:
        """Merge the buffered rows into the selected rows if this makes :meth:`preceding_condition` more selective."""
        if self._rows is not None and self._count >= self._rows and self._pending > self._rows // 2:
            self._select()

    def preceding_condition(self, position: int) -> Expression | bool:
        """Return a condition that rows added at ``position`` must satisfy to be among the first rows.

        Return True if all rows may be among them, and False if none can be.
        """
        if self._limit is None:
            return True
        limit, last = self._limit
        includes_ties = len(self._keys) > 1 or position < last
        if includes_ties not in self._conditions:
            self._conditions[includes_ties] = self._keys[0].preceding_condition(limit, includes_ties)
        return self._conditions[includes_ties]

    def _candidate_flags(self, keys: pa.Array, position: int) -> NDArray[np.bool_] | None:
        """Return, for each row, whether the row may be among the first rows by its first key; None if unknown."""
        if self._limit is None or not self._limit[0].is_valid or pa.types.is_floating(keys.type):
            return None
        limit, last = self._limit
        includes_ties = len(self._keys) > 1 or position < last
        names = ("less", "less_equal") if not self._keys[0].descending else ("greater", "greater_equal")
        try:
            flags = pc.call_function(names[includes_ties], [keys, limit])
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return None
        result: NDArray[np.bool_] = flags.fill_null(self._keys[0].nulls_first).to_numpy(zero_copy_only=False)
        return result

    def iter_sorted(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in sort order.

        Raises ``LimitError`` if a column of the rows does not fit into one Arrow array.
        """
        if self._batches:
            self._select()
        yield from self._batches

    def _select(self) -> None:
        keys = _concatenate(self._key_batches)
        order = self._order(keys)[: self._rows]
        rows = _concatenate(self._batches)
        self._batches, self._key_batches = [_take_rows(rows, order)], [_take_rows(keys, order)]
        del rows, keys
        (batch,), (selected,) = self._batches, self._key_batches
        self.held = batch.get_total_buffer_size() + selected.get_total_buffer_size()
        self._count, self._pending, self._pending_bytes = batch.num_rows, 0, 0
        if self._rows is not None and self._count == self._rows:
            last = self._count - 1
            self._limit = selected.column(0)[last], selected.column(len(self._keys))[last].as_py()
            self._conditions = {}

    def _order(self, keys: pa.RecordBatch) -> Any:
        columns: list[pa.Array] = []
        directions = []
        for key, array in zip(self._keys, keys.columns[:-1], strict=True):
            if array.null_count:
                columns.append(array.is_valid() if key.nulls_first else array.is_null())
                directions.append("ascending")
            direction = "descending" if key.descending else "ascending"
            if pa.types.is_floating(array.type):
                nan = pc.is_nan(array)
                if pc.any(nan).as_py():
                    columns.append(nan)
                    directions.append(direction)
                    array = pc.if_else(nan, pa.scalar(0, array.type), array)
            columns.append(array)
            directions.append(direction)
        columns.append(keys.column(len(self._keys)))  # sorting is stable, so the position comes last
        directions.append("ascending")
        names = [*map(str, range(len(columns)))]
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        return pc.sort_indices(batch, sort_keys=[*zip(names, directions, strict=True)]).to_numpy().astype(np.int64)


def _concatenate(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate batches into one. Raises ``MemoryLimitError`` if a column does not fit into one Arrow array."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    try:
        columns = [pa.concat_arrays([batch.column(at) for batch in batches]) for at in range(len(schema))]
    except pa.ArrowInvalid as error:
        raise MemoryLimitError(
            f"the rows to sort exceed the maximum size of an Arrow array: {error}; add a filter or limit"
        ) from None
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    rows = sum(batch.num_rows for batch in batches)
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def _take_rows(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    """Copy the rows at positions ``rows`` into new arrays, so that the batch can be freed."""
    if not batch.num_columns:
        return batch.slice(0, len(rows))
    return pa.RecordBatch.from_arrays([_copy_rows(column, rows) for column in batch.columns], schema=batch.schema)


def _copy_rows(array: pa.Array, rows: Any) -> pa.Array:
    if not is_view(array.type):
        return take_positions(array, rows)
    plain = pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary()
    return take_positions(array, rows).cast(plain).cast(array.type)  # views keep all bytes of the original array alive
