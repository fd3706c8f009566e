"""Bounds of all pages of a numeric column as two arrays, evaluated together.

Only for ordinary column indexes: the page-by-page path evaluates unusual ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.format.metadata import ColumnIndex
from pqext.core.format.predicate import Comparison, IsIn, Predicate, Value
from pqext.core.schema.orders import BoundOrder

_EXACT = 1 << 53
"""Integers up to this are doubles too."""


@dataclass(frozen=True, slots=True)
class NumberBounds:
    """Minima and maxima, inclusive, and for each page whether it may contain NaN (None: no page does)."""

    lows: NDArray[Any]
    highs: NDArray[Any]
    may_be_nan: NDArray[np.bool_] | None

    @classmethod
    def of(cls, order: BoundOrder, index: ColumnIndex) -> NumberBounds | None:
        """Return the bounds in a checked column index; None if a page is null, or a bound unknown or not a number."""
        stored = order.numbers
        if stored is None or any(index.null_pages):
            return None
        width = stored.itemsize
        if not all(len(raw) == width for side in (index.min_values, index.max_values) for raw in side):
            return None
        lows = np.frombuffer(b"".join(index.min_values), stored)
        highs = np.frombuffer(b"".join(index.max_values), stored)
        if not (lows <= highs).all():  # false for NaN
            return None
        if order.is_float:  # predicates are evaluated in doubles
            lows, highs = lows.astype(np.float64), highs.astype(np.float64)
        unit = order.leaf.nanoseconds
        if unit != 1:
            most = np.iinfo(np.int64).max // unit
            if len(lows) and (int(lows.min()) < -most or int(highs.max()) > most):
                return None
            lows, highs = lows.astype(np.int64) * unit, highs.astype(np.int64) * unit
        may_be_nan = None
        if order.is_float:
            counts = index.nan_counts
            may_be_nan = np.array(counts) != 0 if counts else np.ones(len(lows), np.bool_)
        return cls(lows, highs, may_be_nan)

    def matching(self, predicate: Predicate) -> list[int] | None:
        """Return the pages that may contain a value satisfying ``predicate``; None if arrays cannot determine that."""
        lows, highs = self.lows, self.highs
        if isinstance(predicate, IsIn):
            if not predicate.ascending or not self._are_exact(*predicate.values):
                return None
            values = np.array(predicate.values, lows.dtype)
            return np.flatnonzero(np.searchsorted(values, highs, "right") > np.searchsorted(values, lows)).tolist()
        if not isinstance(predicate, Comparison) or not self._are_exact(predicate.value):
            return None
        value: Any = lows.dtype.type(predicate.value)
        match predicate.operator:
            case "==":
                held = (lows <= value) & (value <= highs)
            case "!=":
                held = (lows != value) | (highs != value)
            case "<":
                held = lows < value
            case "<=":
                held = lows <= value
            case ">":
                held = highs > value
            case ">=":
                held = highs >= value
        if self.may_be_nan is not None and predicate.operator in ("!=", ">", ">="):
            held = held | self.may_be_nan  # some engines order NaN above every number
        return np.flatnonzero(held).tolist()

    def _are_exact(self, *values: Value) -> bool:
        """Whether the array type represents these numbers exactly."""
        kinds = set(map(type, values))
        if self.lows.dtype.kind == "f":
            return all(
                kind is float or (kind is int and all(abs(one) <= _EXACT for one in values if type(one) is int))
                for kind in kinds
            ) and all(one == one for one in values)
        limits = np.iinfo(self.lows.dtype)
        return kinds == {int} and all(limits.min <= one <= limits.max for one in values if type(one) is int)
