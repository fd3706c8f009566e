"""The least and the greatest value of each object: the original's ``minmax``, a struct of ``min`` and ``max``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.read.reader import ParquetFile
from pqext.dataset.evaluation.extremes import extreme, has_nan
from pqext.dataset.expressions import Base, Column, Expression, IsNull
from pqext.geo.types import type_of
from pqext.skipping.indexes.footers import known_range
from pqext.skipping.indexes.index import Collector, Index, is_plain
from pqext.skipping.indexes.ranges import Ranges
from pqext.variant.types import is_variant_type

SHOWS_NAN = "io.pqext.nan"
"""The parameter that says, by ``max``, that the greatest value is NaN wherever there is one."""


@dataclass(frozen=True, init=False)
class MinMax(Index):
    """The least and the greatest value of each object; NaN is the greatest where there is one.

    Refuses comparisons, ``isin``, and patterns that begin with text. It is made from footers where their statistics
    prove it.
    """

    name = "minmax"
    is_original = True
    shows_nan: bool = field(default=True, compare=False)
    """Is the greatest value known to be NaN where there is one? Of stores that others wrote it is not."""

    def __init__(self, operand: str | Base, shows_nan: bool = True) -> None:
        Index.__init__(self, operand)
        object.__setattr__(self, "shows_nan", shows_nan)

    @property
    def params(self) -> Mapping[str, str]:
        return {SHOWS_NAN: "max"} if self.shows_nan else {}

    @classmethod
    def restore(cls, operand: Base, params: Mapping[str, str]) -> MinMax:
        return cls(operand, params.get(SHOWS_NAN) == "max")

    def of(self, field: pa.Field) -> MinMax:
        if is_variant_type(field.type):
            within = f"col('{self.operand}').variant('$.path', 'int64')"
            raise TypeError(f"column {self.operand} is VARIANT: take the values at a path, {within} for example")
        if type_of(field) is not None:
            raise TypeError(f"column {self.operand} holds geometries: take Box, an index of boxes")
        extreme(pa.nulls(1, field.type), "min")  # which types without an order refuse
        return self

    def cell_type(self, values: pa.DataType) -> pa.DataType:
        return pa.struct([("min", values), ("max", values)])

    def proved(self, file: ParquetFile, values: pa.DataType) -> pa.Array | None:
        if not isinstance(self.operand, Column):
            return None
        found = known_range(file, self.operand, values)
        return None if found is None else _cell(*found)

    def collector(self, values: pa.DataType) -> Collector:
        return _Extremes(values)

    def may_match(self, leaf: Expression, cells: pa.Array) -> pa.Array | None:
        if not is_plain(leaf, self.operand):
            return None
        low, high = (pc.struct_field(cells, [end]) for end in ("min", "max"))
        found = Ranges(low, high, self.shows_nan).may_match(leaf)
        if not self.shows_nan or isinstance(leaf, IsNull):
            return found
        # In cells that are known, ends are null where there is no value, of which no condition but is_null is true.
        valueless = pc.and_(cells.is_valid(), pc.and_(low.is_null(), high.is_null()))
        return pc.if_else(valueless, False, pa.nulls(len(cells), pa.bool_()) if found is None else found)


class _Extremes:
    def __init__(self, values: pa.DataType) -> None:
        self._ends = {side: pa.nulls(1, values) for side in ("min", "max")}
        self._has_nan = False

    def add(self, values: pa.Array) -> None:
        self._has_nan |= has_nan(values)
        for side, end in self._ends.items():
            self._ends[side] = extreme(pa.concat_arrays([end, extreme(values, side)]), side)

    def cell(self) -> pa.Array:
        low, high = self._ends["min"], self._ends["max"]
        if self._has_nan:  # of nothing else both ends are NaN, as Spark finds them
            high = pa.array([nan], high.type)
            low = pc.fill_null(low, high[0])
        return _cell(low, high)


def _cell(low: pa.Array, high: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([low, high], ["min", "max"])
