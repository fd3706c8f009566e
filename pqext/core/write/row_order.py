"""Order of rows: the order that a column's handler requires, and checks of declared sort keys.

Handlers that implement :class:`pqext.core.schema.annotations.RowLayoutHandler` order rows, and split them into row
groups and pages. Only one column of a file may order its rows. Sort keys implement ``RowGroup.sorting_columns``. Values
are sorted in the order of their column's bounds. Nulls come first or last, according to the key. NaN is greater than
all numbers, and both zeros are equal unless floats have the total order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.suggestions import unknown_option_column
from pqext.core.format.metadata import SortingColumn
from pqext.core.options.layout import SortKey
from pqext.core.schema.annotations import RowLayoutHandler, Storage
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.orders import FloatOrder, is_float, written_order
from pqext.core.schema.types import arrow_compute
from pqext.core.write.disassemble import DenseColumn
from pqext.core.write.storage import StoredField, child_names

_TAKEN_ROWS = 1 << 20
"""Number of rows copied at a time, so that byte arrays stay within 32-bit offsets."""
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class RowOrder:
    """Row order that a column determines. ``path`` is the column's top-level position, followed by positions of struct
    fields.
    """

    path: tuple[int, ...]
    handler: RowLayoutHandler
    storage: Storage

    def row_groups(self, table: pa.Table, max_count: int) -> Iterator[pa.Table]:
        """Yield all rows in order, in row groups of ``max_count`` rows. Each row group is copied when it is needed."""
        order, starts = self.handler.row_groups(self.storage, _column_at(table, self.path), max_count)
        for start, stop in pairwise([*starts.tolist(), len(order)]):
            yield take_positions(table, order[start:stop])

    def pages(self, table: pa.Table, max_count: int, sort: bool) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the rows of a row group, ordered if ``sort`` is set, and the position of each page's first row."""
        order, starts = self.handler.pages(self.storage, _column_at(table, self.path), max_count, sort)
        return table if order is None else take_positions(table, order), starts


def find_row_order(fields: Sequence[StoredField]) -> RowOrder | None:
    """Return the row order that a column requests; None if no column requests one.

    Raises ``ValueError`` if several columns request an order, or if the column is inside a list or map.
    """
    found: list[tuple[str, RowOrder | None]] = []
    queue: list[tuple[str, tuple[int, ...] | None, StoredField]] = [
        (field.field.name, (index,), field) for index, field in enumerate(fields)
    ]
    for name, path, field in queue:
        if field.annotation is not None and field.storage is not None:
            handler = field.annotation.load()
            if isinstance(handler, RowLayoutHandler) and handler.orders_rows(field.storage):
                found.append((name, None if path is None else RowOrder(path, handler, field.storage)))
            continue
        is_struct = pa.types.is_struct(field.plain.type)
        queue += [
            (f"{name}.{label}", (*path, index) if path is not None and is_struct else None, child)
            for index, (label, child) in enumerate(zip(child_names(field), field.children, strict=True))
        ]
    if len(found) > 1:
        names = " and ".join(repr(name) for name, _ in found)
        raise ValueError(f"rows can have only one order, but several columns set one: {names}")
    if found and found[0][1] is None:
        raise ValueError(f"column {found[0][0]!r} is inside a list or map and cannot order the rows")
    return found[0][1] if found else None


def _column_at(table: pa.Table, path: tuple[int, ...]) -> pa.ChunkedArray:
    """Return the column at ``path``. A value is null if an enclosing struct is null."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def find_column(table: pa.Table, name: str) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return the field and the values of a column, given its name or its dotted path through structs.

    Raises ``KeyError`` if the column does not exist or is ambiguous.
    """
    tops = table.schema.get_all_field_indices(name)
    names = [name] if tops else name.split(".")
    tops = tops or table.schema.get_all_field_indices(names[0])
    if len(tops) != 1:
        raise KeyError(f"{'more than one' if tops else 'no'} column {name!r}; the columns are {table.column_names}")
    field = table.schema.field(tops[0])
    path: tuple[int, ...] = (tops[0],)
    for part in names[1:]:
        index = field.type.get_field_index(part) if pa.types.is_struct(field.type) else -1
        if index < 0:
            raise KeyError(f"no column {name!r}: {field.name!r} has no field {part!r}")
        field, path = field.type.field(index), (*path, index)
    return field, _column_at(table, path)


def take_positions(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return the rows of ``table`` with the numbers in ``order``, as several chunks.

    Arrow's ``take`` joins all chunks of a column first, which fails for more than 2 GiB of byte arrays.
    """
    parts = [order[start : start + _TAKEN_ROWS] for start in range(0, len(order), _TAKEN_ROWS)]
    columns = [
        pa.chunked_array([_take_column(column, part) for part in parts], column.type) for column in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema) if columns else table.slice(0, len(order))


def _take_column(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.Array:
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if len(chunks) < 2:
        return arrow_compute.take_positions(chunks[0] if chunks else pa.array([], column.type), rows)
    starts = np.cumsum([0, *(len(chunk) for chunk in chunks)])
    homes = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(homes, kind="stable")
    ends = np.searchsorted(homes[order], np.arange(len(chunks) + 1))
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    pieces = [
        arrow_compute.take_positions(chunks[home], rows[order[start:stop]] - starts[home])
        for home, (start, stop) in enumerate(pairwise(ends.tolist()))
        if start < stop
    ]
    return arrow_compute.take_positions(pa.concat_arrays(pieces), back) if pieces else pa.array([], column.type)


def to_columns(keys: Sequence[SortKey], schema: Schema) -> list[SortingColumn]:
    """Convert ``keys`` to sorting columns. Raises ``ValueError`` for a leaf that rows cannot be sorted by."""
    columns = []
    for key in keys:
        node = _find_leaf(key, schema)
        if node.max_repetition_level:
            raise ValueError(f"rows cannot be sorted by {key.path!r}, which has several values per row")
        if not written_order(node.leaf_type).is_defined:
            raise ValueError(f"rows cannot be sorted by {key.path!r}, whose values have no order")
        columns.append(
            SortingColumn(column_idx=node.leaf_start, descending=key.descending, nulls_first=key.nulls_first)
        )
    return columns


def _find_leaf(key: SortKey, schema: Schema) -> SchemaNode:
    for node in schema.leaves:
        if node.dotted_path == key.path:
            return node
    raise ValueError(unknown_option_column("sorting", key.path, (node.dotted_path for node in schema.leaves)))


def check_sorted(
    keys: Sequence[SortKey],
    sorting: Sequence[SortingColumn],
    columns: Sequence[DenseColumn],
    row_group: int,
    float_order: FloatOrder,
) -> None:
    """Raise ``ValueError`` unless the rows of ``columns``, one per leaf, are sorted by ``keys``."""
    result = find_misplaced_row(keys, sorting, columns, float_order)
    if result is not None:
        row, key = result
        raise ValueError(
            f"row group {row_group} is not sorted by {key.path!r}{' descending' if key.descending else ''}: "
            f"its row {row} sorts before row {row - 1}; sort the table, or omit the column from the option sorting"
        )


def find_misplaced_row(
    keys: Sequence[SortKey], sorting: Sequence[SortingColumn], columns: Sequence[DenseColumn], float_order: FloatOrder
) -> tuple[int, SortKey] | None:
    """Return the first row that must precede the row before it, and the violated key; None if the rows are sorted."""
    tied: _Flags | None = None
    for key, stored in zip(keys, sorting, strict=True):
        column = columns[stored.column_idx]
        if column.entries < 2:
            return None
        later, earlier = _compare(column, key, float_order)
        wrong = earlier if tied is None else earlier & tied
        if wrong.any():
            return int(wrong.argmax()) + 1, key
        tied = ~later & ~earlier if tied is None else tied & ~later & ~earlier
        if not tied.any():
            return None
    return None


def _compare(column: DenseColumn, key: SortKey, float_order: FloatOrder) -> tuple[_Flags, _Flags]:
    """Return, for each row after the first, whether it sorts after and whether it sorts before the preceding row."""
    values = _comparison_values(column, float_order)
    if isinstance(column.definition, int):
        valid = np.full(column.entries, bool(len(values)), np.bool_)
    else:
        valid = column.definition == column.shape.node.max_definition_level
    place = np.maximum(np.cumsum(valid) - 1, 0)
    both = valid[1:] & valid[:-1]
    greater, less = np.zeros(len(both), np.bool_), np.zeros(len(both), np.bool_)
    if len(values) > 1:
        after, before = values[1:], values[:-1]
        if isinstance(values, np.ndarray):
            up, down = after > before, after < before
        else:
            up = pc.greater(after, before).to_numpy(zero_copy_only=False)
            down = pc.less(after, before).to_numpy(zero_copy_only=False)
        pairs = place[1:][both] - 1
        greater[both], less[both] = up[pairs], down[pairs]
    if key.descending:
        greater, less = less, greater
    to_null, from_null = valid[:-1] & ~valid[1:], ~valid[:-1] & valid[1:]
    return (
        greater | (from_null if key.nulls_first else to_null),
        less | (to_null if key.nulls_first else from_null),
    )


def _comparison_values(column: DenseColumn, float_order: FloatOrder) -> Any:
    """Return the values in a representation that compares in the column's order."""
    leaf, values = column.shape.node.leaf_type, column.values
    if is_float(leaf):
        width = leaf.width or 8
        kind, integer = {2: ("<f2", "<i2"), 4: ("<f4", "<i4"), 8: ("<f8", "<i8")}[width]
        held = values.buffers()[1] if len(values) else None  # null arrays have only one buffer
        if held is None:
            return np.empty(0, integer)
        raw = np.frombuffer(held, np.uint8)[values.offset * width : (values.offset + len(values)) * width]
        floats = raw.view(kind)
        if float_order == "type":
            floats = np.where(np.isnan(floats), np.array(np.nan, kind), floats + np.array(0, kind))
        bits = floats.view(integer)
        return bits ^ ((bits >> (8 * width - 1)) & np.array(np.iinfo(integer).max, integer))
    if pa.types.is_boolean(values.type):
        return values.cast(pa.uint8())
    return values.cast(pa.binary()) if pa.types.is_string(values.type) else values
