"""Indexes of object statistics: minimum and maximum, and the numbers of rows, nulls and NaN.

``minmax`` is an index of xskipper, a struct of ``min`` and ``max``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.read.reader import ParquetFile
from pqext.dataset.evaluation.comparison import extreme, has_nan
from pqext.dataset.expressions import Base, Column, Comparison, Expression, IsIn, IsNull
from pqext.dataset.expressions.mistakes import label_of
from pqext.geo.types import type_of
from pqext.skipping.indexes.index import Collector, Index, is_direct_condition
from pqext.skipping.indexes.ranges import Ranges, range_from_footer, row_group_bounds
from pqext.variant.types import is_variant_type

SHOWS_NAN = "io.pqext.nan"
"""Parameter whose value is ``max`` if the maximum is NaN for objects that contain NaN."""
_COUNTS = pa.struct([("rows", pa.int64()), ("nulls", pa.int64()), ("nans", pa.int64())])


@dataclass(frozen=True, init=False)
class MinMax(Index):
    """Minimum and maximum value of each object. The maximum is NaN if the object contains NaN.

    Objects are excluded for comparisons, ``isin``, and patterns with a prefix. The index is built from footers if their
    statistics suffice.
    """

    name = "minmax"
    is_original = True
    shows_nan: bool = field(default=True, compare=False)
    """Whether the maximum is NaN if a value is NaN; false for stores of other writers."""

    def __init__(self, operand: str | Base, shows_nan: bool = True) -> None:
        Index.__init__(self, operand)
        object.__setattr__(self, "shows_nan", shows_nan)

    @property
    def params(self) -> Mapping[str, str]:
        return {SHOWS_NAN: "max"} if self.shows_nan else {}

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> MinMax:
        return cls(operand, params.get(SHOWS_NAN) == "max")

    def for_field(self, field: pa.Field) -> MinMax:
        if is_variant_type(field.type):
            example = f"col('{self.operand}').variant('$.path', 'int64')"
            column = label_of(self.operand)
            raise TypeError(f"column {column} is VARIANT: index the values at a path, such as {example}")
        if type_of(field) is not None:
            raise TypeError(f"column {label_of(self.operand)} contains geometries: use a Box index")
        extreme(pa.nulls(1, field.type), "min")  # raises an error for types without an order
        return self

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return pa.struct([("min", values), ("max", values)])

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        if not isinstance(self.operand, Column):
            return None
        bounds = range_from_footer(file, self.operand, values)
        return None if bounds is None else _extremes_cell(*bounds)

    def collector(self, values: pa.DataType) -> Collector:
        return _Extremes(values)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if not is_direct_condition(leaf, self.operand):
            return None
        low, high = (pc.struct_field(cells, [end]) for end in ("min", "max"))
        matches = Ranges(low, high, self.shows_nan).may_match(leaf)
        if not self.shows_nan or isinstance(leaf, IsNull):
            return matches
        # Null ends in a known entry mean that there are no values, so only is_null can match.
        valueless = pc.and_(cells.is_valid(), pc.and_(low.is_null(), high.is_null()))
        return pc.if_else(valueless, False, pa.nulls(len(cells), pa.bool_()) if matches is None else matches)


class _Extremes:
    def __init__(self, values: pa.DataType) -> None:
        self._ends = {side: pa.nulls(1, values) for side in ("min", "max")}
        self._has_nan = False

    def add(self, values: pa.Array) -> None:
        self._has_nan |= has_nan(values)
        for side, end in self._ends.items():
            joined = pa.concat_arrays([end, extreme(values, side).cast(end.type)])
            self._ends[side] = extreme(joined, side).cast(end.type)

    def cell(self) -> pa.Array:
        low, high = self._ends["min"], self._ends["max"]
        if self._has_nan:  # with NaN only, both ends are NaN, as in Spark
            high = pa.array([nan], high.type)
            low = pc.fill_null(low, high[0])
        return _extremes_cell(low, high)


def _extremes_cell(low: pa.Array, high: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([low, high], ["min", "max"])


@dataclass(frozen=True, init=False)
class NullCount(Index):
    """Numbers of rows, nulls and NaN of each object.

    Objects without nulls are excluded for ``is_null``, objects with only nulls for every other condition, and objects
    without NaN for conditions that only NaN can match. The index is built from footers if these state the null counts
    and prove that there is no NaN.
    """

    name = "nulls"

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return _COUNTS

    def entry_from_footer(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        bounds = row_group_bounds(file, self.operand) if isinstance(self.operand, Column) else None
        if bounds is None or any(group.null_count is None or group.has_nan is not False for group in bounds):
            return None
        return _counts_cell(file.num_rows, sum(group.null_count or 0 for group in bounds), 0)

    def collector(self, values: pa.DataType) -> Collector:
        return _Counter()

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        rows, nulls, nans = (pc.struct_field(cells, [name]) for name in ("rows", "nulls", "nans"))
        plain = is_direct_condition(leaf, self.operand)
        if isinstance(leaf, IsNull):
            return pc.greater(nulls if plain else rows, 0)
        has_values = pc.less(nulls, rows)
        return pc.and_kleene(has_values, pc.greater(nans, 0)) if plain and _matches_nan_only(leaf) else has_values


@dataclass(frozen=True, init=False)
class RowCount(Index):
    """Number of rows in each object. Every condition on the column excludes objects without rows."""

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
        return _counts_cell(self._rows, self._nulls, self._nans)


class _Rows:
    def __init__(self) -> None:
        self._rows = 0

    def add(self, values: pa.Array) -> None:
        self._rows += len(values)

    def cell(self) -> pa.Array:
        return pa.array([self._rows], pa.int64())


def _counts_cell(rows: int, nulls: int, nans: int) -> pa.Array:
    return pa.array([{"rows": rows, "nulls": nulls, "nans": nans}], _COUNTS)
