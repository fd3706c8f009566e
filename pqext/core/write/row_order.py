"""Order rows, and split them into row groups and pages, as the handler of a column requires.

This applies to handlers that implement :class:`pqext.core.schema.annotations.ArrangesRows`. Only one column of a file
may order its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.schema.annotations import ArrangesRows, Storage
from pqext.core.schema.types import arrow_compute
from pqext.core.write.storage import StoredField, child_names

_TAKEN_ROWS = 1 << 20
"""Number of rows copied at a time, so that byte arrays stay within 32-bit offsets."""


@dataclass(frozen=True)
class RowOrder:
    """Row order of the column at ``path``, which is its top-level position, followed by positions of struct fields."""

    path: tuple[int, ...]
    handler: ArrangesRows
    storage: Storage

    def row_groups(self, table: pa.Table, max_count: int) -> Iterator[pa.Table]:
        """Yield all rows in order, in row groups of ``max_count`` rows. Each row group is copied when it is needed."""
        order, starts = self.handler.row_groups(self.storage, _values(table, self.path), max_count)
        for start, stop in pairwise([*starts.tolist(), len(order)]):
            yield take_positions(table, order[start:stop])

    def pages(self, table: pa.Table, max_count: int, sort: bool) -> tuple[pa.Table, NDArray[np.int64]]:
        """Return the rows of a row group, ordered if ``sort`` is set, and the position of each page's first row."""
        order, starts = self.handler.pages(self.storage, _values(table, self.path), max_count, sort)
        return table if order is None else take_positions(table, order), starts


def find(fields: Sequence[StoredField]) -> RowOrder | None:
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
            if isinstance(handler, ArrangesRows) and handler.orders_rows(field.storage):
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


def _values(table: pa.Table, path: tuple[int, ...]) -> pa.ChunkedArray:
    """Return the column at ``path``. A value is null if an enclosing struct is null."""
    column = table.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def pick(table: pa.Table, name: str) -> tuple[pa.Field, pa.ChunkedArray]:
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
    return field, _values(table, path)


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
