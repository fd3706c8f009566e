"""Predicates on one column, and bounds that can exclude them.

The packages above core reduce their expressions to these predicates. :func:`may_match` evaluates one for the values of
a row group, a page, a part of a VARIANT or a computed operand; :func:`may_relate` compares two operands. The result is
sound: False only if no value within the bounds satisfies the predicate. Unknown bounds yield True.
:mod:`pqext.core.indexes.page_index` and :mod:`pqext.skipping.indexes.ranges` evaluate arrays of bounds by the same
rules.
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
"""A value in comparison form: integers, floats and decimals as numbers; strings and binary as bytes; dates as days, and
times and timestamps as nanoseconds since midnight or the Unix epoch, as integers."""

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
    """The value compares to ``value`` by ``operator``. Never true for null."""

    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """The value is in ``values``. Never true for null. A long list is searched by bisection if it is ascending."""

    values: tuple[Value, ...]
    ascending: bool = False
    """Whether the values are strictly ascending, with NaN last."""


@dataclass(frozen=True, slots=True)
class IsNull:
    """The value is null."""


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """The value is not null."""


Predicate = Comparison | IsIn | IsNull | IsNotNull


@dataclass(frozen=True, slots=True)
class Bounds:
    """Known facts about the values of one leaf in a row group or page; None is unknown.

    ``minimum`` and ``maximum`` are inclusive bounds of all values except nulls and NaN; they need not occur.
    ``num_values`` includes nulls. ``has_nan`` is False only if NaN is known to be absent.
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
    """Whether a value within ``bounds`` can satisfy ``predicate``. False is a proof, True is not."""
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
    """Whether a value of the list can lie within the bounds."""
    low, high = bounds.minimum, bounds.maximum
    values: tuple[Any, ...] = predicate.values
    if not predicate.ascending or low is None or high is None or not values or values[-1] != values[-1]:
        return any(may_match(Comparison("==", value), bounds) for value in values)
    try:
        at = bisect_left(values, low)
        return at < len(values) and COMPARE["<="](values[at], high)
    except TypeError:
        return True  # values of different types do not compare


def within(predicate: Predicate, bounds: Bounds) -> Predicate:
    """Return ``predicate``, with only those values of a list that lie within the bounds."""
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


def is_equality(predicate: Predicate) -> bool:
    """Whether the predicate tests equality with values, which a Bloom filter can exclude."""
    return isinstance(predicate, IsIn) or (isinstance(predicate, Comparison) and predicate.operator == "==")


def may_contain(predicate: Predicate, might_contain: Callable[[Value], bool]) -> bool:
    """Whether a value in a Bloom filter can satisfy ``predicate``. Only equality can be tested by ``might_contain``."""
    if isinstance(predicate, Comparison) and predicate.operator == "==":
        return might_contain(predicate.value)
    if isinstance(predicate, IsIn):
        return any(might_contain(value) for value in predicate.values)
    return True


def _may_compare(predicate: Comparison, bounds: Bounds) -> bool:
    value = predicate.value
    if isinstance(value, float) and value != value:
        # NaN equals itself and is greater than every number.
        return bounds.has_nan is not False if predicate.operator in ("==", ">=") else predicate.operator != ">"
    return _may(bounds, predicate.operator, value, value, False)


def may_relate(left: Bounds, operator: Operator, right: Bounds) -> bool:
    """Whether values within both bounds can be related by the operator. False is a proof."""
    if left.all_null or right.all_null:
        return False
    return _may(left, operator, right.minimum, right.maximum, right.has_nan is not False)


def _may(left: Bounds, operator: Operator, low: Any, high: Any, is_nan: bool) -> bool:
    """Whether a value within ``left`` can be related to one from ``low`` to ``high``, or to NaN if ``is_nan``.

    NaN equals itself and is greater than every number, as in some engines. An unknown bound is infinite.
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
        return True  # values of different types do not compare: the reader evaluates each row
