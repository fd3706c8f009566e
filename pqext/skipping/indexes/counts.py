"""How many rows each object has, how many of them are null, and how many NaN."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import Column, Comparison, Expression, IsIn, IsNull
from pqext.skipping.indexes.footers import all_bounds
from pqext.skipping.indexes.index import Collector, Index, is_plain

_CELL = pa.struct([("rows", pa.int64()), ("nulls", pa.int64()), ("nans", pa.int64())])


@dataclass(frozen=True, init=False)
class NullCount(Index):
    """How many rows each object has, how many are null, and how many NaN.

    Refuses ``is_null`` where nothing is null, every other condition where all is, and equality with NaN where there is
    none. It is made from footers where they count nulls.
    """

    name = "nulls"

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return _CELL

    def proved(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        found = all_bounds(file, self.operand) if isinstance(self.operand, Column) else None
        if found is None or any(one.null_count is None or one.has_nan is not False for one in found):
            return None
        return _cell(file.num_rows, sum(one.null_count or 0 for one in found), 0)

    def collector(self, values: pa.DataType) -> Collector:
        return _Counter()

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        rows, nulls, nans = (pc.struct_field(cells, [name]) for name in ("rows", "nulls", "nans"))
        plain = is_plain(leaf, self.operand)
        if isinstance(leaf, IsNull):
            return pc.greater(nulls if plain else rows, 0)
        some = pc.less(nulls, rows)
        return pc.and_kleene(some, pc.greater(nans, 0)) if plain and _asks_for_nan(leaf) else some


@dataclass(frozen=True, init=False)
class RowCount(Index):
    """How many rows each object has. Refuses every condition on the column where there are none."""

    name = "count"

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return pa.int64()

    def proved(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        return pa.array([file.num_rows], pa.int64())

    def collector(self, values: pa.DataType) -> Collector:
        return _Rows()

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        return pc.greater(cells, 0)


def _asks_for_nan(leaf: Expression) -> bool:
    """Is it true of nothing but NaN?"""
    if isinstance(leaf, IsIn):
        return bool(leaf.values) and all(value != value for value in leaf.values)
    return isinstance(leaf, Comparison) and leaf.value != leaf.value and leaf.operator in ("==", ">=")


class _Counter:
    def __init__(self) -> None:
        self._rows = self._nulls = self._nans = 0

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)
        self._nulls += values.null_count
        if pa.types.is_floating(values.type):
            self._nans += pc.sum(pc.is_nan(values)).as_py() or 0

    def cell(self) -> pa.Array:
        return _cell(self._rows, self._nulls, self._nans)


class _Rows:
    def __init__(self) -> None:
        self._rows = 0

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)

    def cell(self) -> pa.Array:
        return pa.array([self._rows], pa.int64())


def _cell(rows: int, nulls: int, nans: int) -> pa.Array:
    return pa.array([{"rows": rows, "nulls": nulls, "nans": nans}], _CELL)
