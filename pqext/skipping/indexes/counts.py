"""Indexes with the numbers of rows, nulls and NaN of each object."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.read.reader import ParquetFile
from pqext.dataset.expressions import Column, Comparison, Expression, IsIn, IsNull
from pqext.skipping.indexes.index import Collector, Index, is_plain
from pqext.skipping.indexes.ranges import all_bounds

_CELL = pa.struct([("rows", pa.int64()), ("nulls", pa.int64()), ("nans", pa.int64())])


@dataclass(frozen=True, init=False)
class NullCount(Index):
    """Numbers of rows, nulls and NaN of each object.

    The index excludes objects without nulls for ``is_null``, objects with only nulls for every other condition, and
    objects without NaN for conditions that only NaN can match. It is built from footers if these state the null counts
    and prove that there is no NaN.
    """

    name = "nulls"

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return _CELL

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        bounds = all_bounds(file, self.operand) if isinstance(self.operand, Column) else None
        if bounds is None or any(group.null_count is None or group.has_nan is not False for group in bounds):
            return None
        return _cell(file.num_rows, sum(group.null_count or 0 for group in bounds), 0)

    def collector(self, values: pa.DataType) -> Collector:
        return _Counter()

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        rows, nulls, nans = (pc.struct_field(cells, [name]) for name in ("rows", "nulls", "nans"))
        plain = is_plain(leaf, self.operand)
        if isinstance(leaf, IsNull):
            return pc.greater(nulls if plain else rows, 0)
        has_values = pc.less(nulls, rows)
        return pc.and_kleene(has_values, pc.greater(nans, 0)) if plain and _matches_nan_only(leaf) else has_values


@dataclass(frozen=True, init=False)
class RowCount(Index):
    """Number of rows of each object. It excludes empty objects for every condition on the column."""

    name = "count"

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return pa.int64()

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        return pa.array([file.num_rows], pa.int64())

    def collector(self, values: pa.DataType) -> Collector:
        return _Rows()

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        return pc.greater(cells, 0)


def _matches_nan_only(leaf: Expression) -> bool:
    """Return whether ``leaf`` can match only NaN."""
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
