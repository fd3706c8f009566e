"""What is asked of one column, and the bounds that can refuse it.

The packages above core reduce their expressions to these few questions. :func:`may_match` answers one of them for the
values of a row group, a page, a part of a VARIANT or a computed operand, :func:`may_relate` compares two operands.
The answer is sound: ``False`` only when no value within the bounds satisfies the question. Whatever is not known is
answered ``True``. :mod:`pqext.core.indexes.number_bounds` and :mod:`pqext.skipping.indexes.ranges` give the same
answers for arrays of bounds.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

Operator = Literal["==", "!=", "<", "<=", ">", ">="]
Value = bool | int | float | Decimal | bytes
"""A value in comparison form: integers, floats and decimals as numbers; strings and binary as bytes;
dates as days and times and timestamps as nanoseconds since midnight or the Unix epoch, as integers."""

COMPARE: dict[Operator, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Is the value ``operator`` ``value``? Never true on null."""

    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """Is the value one of ``values``? Never true on null. A long list is searched where they are said to ascend."""

    values: tuple[Value, ...]
    ascending: bool = False
    """Does each value follow the one before it, NaN all others?"""


@dataclass(frozen=True, slots=True)
class IsNull:
    """Is the value null?"""


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """Is there a value?"""


Predicate = Comparison | IsIn | IsNull | IsNotNull


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the values of one leaf in a row group or page; ``None`` is unknown.

    ``minimum`` and ``maximum`` bound every value that is neither null nor NaN, inclusively; they need
    not occur. ``num_values`` counts nulls too. ``has_nan`` is False only when that is known.
    """

    minimum: Value | None = None
    maximum: Value | None = None
    null_count: int | None = None
    num_values: int | None = None
    has_nan: bool | None = False

    @property
    def all_null(self) -> bool:
        """True only when every value is known to be null."""
        return self.null_count is not None and self.num_values is not None and self.null_count >= self.num_values


def may_match(predicate: Predicate, bounds: Bounds) -> bool:
    """Can a value within ``bounds`` satisfy ``predicate``? ``False`` is a proof, ``True`` is not."""
    if isinstance(predicate, IsNull):
        return bounds.null_count != 0
    if bounds.all_null:
        return False
    if isinstance(predicate, IsNotNull):
        return True
    if isinstance(predicate, IsIn):
        return _may_be_in(predicate, bounds)
    return _may_compare(predicate, bounds)


def _may_be_in(predicate: IsIn, bounds: Bounds) -> bool:
    """May one of the values lie within the bounds?"""
    low, high = bounds.minimum, bounds.maximum
    values: tuple[Any, ...] = predicate.values
    if not predicate.ascending or low is None or high is None or not values or values[-1] != values[-1]:
        return any(may_match(Comparison("==", value), bounds) for value in values)
    try:
        at = bisect_left(values, low)
        return at < len(values) and COMPARE["<="](values[at], high)
    except TypeError:
        return True  # as below: values of different kinds do not compare


def within(predicate: Predicate, bounds: Bounds) -> Predicate:
    """``predicate``, of a list only with the values that lie within the bounds: no other is worth a look elsewhere."""
    if not isinstance(predicate, IsIn) or not predicate.ascending:
        return predicate
    low, high = bounds.minimum, bounds.maximum
    values: tuple[Any, ...] = predicate.values
    if low is None or high is None or not values or values[-1] != values[-1]:
        return predicate
    try:
        return replace(predicate, values=values[bisect_left(values, low) : bisect_right(values, high)])
    except TypeError:
        return predicate


def asks_for_values(predicate: Predicate) -> bool:
    """Is it equality with values, of which a Bloom filter tells?"""
    return isinstance(predicate, IsIn) or (isinstance(predicate, Comparison) and predicate.operator == "==")


def may_contain(predicate: Predicate, might_contain: Callable[[Value], bool]) -> bool:
    """Can a value in a Bloom filter satisfy ``predicate``? Only equality can be asked of ``might_contain``."""
    if isinstance(predicate, Comparison) and predicate.operator == "==":
        return might_contain(predicate.value)
    if isinstance(predicate, IsIn):
        return any(might_contain(value) for value in predicate.values)
    return True


def _may_compare(predicate: Comparison, bounds: Bounds) -> bool:
    value = predicate.value
    if isinstance(value, float) and value != value:
        # It equals itself and is greater than every number.
        return bounds.has_nan is not False if predicate.operator in ("==", ">=") else predicate.operator != ">"
    return _may(bounds, predicate.operator, value, value, False)


def may_relate(left: Bounds, operator: Operator, right: Bounds) -> bool:
    """Can values within both bounds be so related? ``False`` is a proof."""
    if left.all_null or right.all_null:
        return False
    return _may(left, operator, right.minimum, right.maximum, right.has_nan is not False)


def _may(left: Bounds, operator: Operator, low: Any, high: Any, is_nan: bool) -> bool:
    """Can a value within ``left`` be so related to one from ``low`` to ``high``, or to NaN if ``is_nan``?

    NaN equals itself and is greater than every number; some engines order it so. An end that is not known is as far
    away as may be.
    """
    least: Any = left.minimum
    most: Any = left.maximum
    try:
        match operator:
            case "==":
                is_above = least is not None and high is not None and least > high
                is_below = most is not None and low is not None and most < low
                return not (is_above or is_below) or (is_nan and left.has_nan is not False)
            case "!=":
                is_one_value = low is not None and low == high == least == most
                return not is_one_value or is_nan or left.has_nan is not False
            case "<":
                return is_nan or least is None or high is None or least < high
            case "<=":
                return is_nan or least is None or high is None or least <= high
            case ">":
                return left.has_nan is not False or most is None or low is None or most > low
            case ">=":
                return left.has_nan is not False or most is None or low is None or most >= low
    except TypeError:
        return True  # values of different kinds do not compare: the reader decides row by row
