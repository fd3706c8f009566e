"""Check the sort keys of a row group against its rows before declaring them.

Implements ``RowGroup.sorting_columns``. Values are sorted in the order of their column's bounds. Nulls come first or
last, according to the key. NaN is greater than all numbers, and both zeros are equal unless floats have the total
order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.format.metadata import SortingColumn
from pqext.core.options.indexes import SortKey
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.orders import FloatOrder, is_float, to_write
from pqext.core.write.disassemble import DenseColumn

_Flags = NDArray[np.bool_]


def to_columns(keys: Sequence[SortKey], schema: Schema) -> list[SortingColumn]:
    """Convert ``keys`` to sorting columns. Raises ``ValueError`` for a leaf by which rows cannot be sorted."""
    columns = []
    for key in keys:
        node = _leaf(key, schema)
        if node.max_repetition_level:
            raise ValueError(f"rows cannot be sorted by {key.path!r}, which has several values per row")
        if not to_write(node.leaf_type).is_defined:
            raise ValueError(f"rows cannot be sorted by {key.path!r}, whose values have no order")
        columns.append(
            SortingColumn(column_idx=node.leaf_start, descending=key.descending, nulls_first=key.nulls_first)
        )
    return columns


def _leaf(key: SortKey, schema: Schema) -> SchemaNode:
    for node in schema.leaves:
        if node.dotted_path == key.path:
            return node
    raise ValueError(f"sorting names column {key.path!r}, which the schema does not have")


def check(
    keys: Sequence[SortKey], sorting: Sequence[SortingColumn], columns: Sequence[DenseColumn], row_group: int,
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
    """Return for each row after the first whether it sorts after, and whether it sorts before, the preceding row."""
    values = _comparable(column, float_order)
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


def _comparable(column: DenseColumn, float_order: FloatOrder) -> Any:
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
