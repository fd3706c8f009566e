"""Predicates on one column, and the rules by which ranges of values exclude them.

The packages above core reduce their expressions to these predicates. :func:`may_match` evaluates one for the values of
a row group, a page, a part of a VARIANT or a computed operand; :func:`may_relate` compares two operands. The result is
sound: False only if no value within the range satisfies the predicate. An unknown end excludes nothing.

The rules exist once, for every :class:`Ranges`: the :class:`Bounds` of one set of values, arrays of the bounds of pages
(:mod:`pqext.core.indexes.page_index`) and Arrow arrays from a data-skipping store
(:mod:`pqext.skipping.indexes.ranges`). Only comparing an end with a value differs.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

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
Truth = TypeVar("Truth", bool, NDArray[np.bool_], covariant=True)
"""The result for one range, or for each of several."""


class Ranges(Protocol[Truth]):
    """One or several sets of values, each between a minimum and a maximum; null and NaN are apart from these.

    The ends are inclusive and need not occur. The methods return True if something is unknown.
    """

    @property
    def minimum(self) -> Any:
        """Lower end of all values that are not NaN."""

    @property
    def maximum(self) -> Any:
        """Upper end of all values that are not NaN."""

    @property
    def may_be_nan(self) -> Truth:
        """Whether a value may be NaN."""

    @property
    def may_be_null(self) -> Truth:
        """Whether a value may be null."""

    @property
    def may_be_valid(self) -> Truth:
        """Whether a value may not be null."""

    def compare(self, end: Any, operator: Operator, value: Any) -> Truth:
        """Compare an end with a value that is not NaN. True if either is unknown, or their types do not compare."""

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> Truth:
        """Whether a value that is not NaN may lie within the ends."""


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
        return not self.may_be_valid

    @property
    def may_be_nan(self) -> bool:
        """Whether a value may be NaN."""
        return self.has_nan is not False

    @property
    def may_be_null(self) -> bool:
        """Whether a value may be null."""
        return self.null_count != 0

    @property
    def may_be_valid(self) -> bool:
        """Whether a value may not be null."""
        nulls, entries = self.null_count, self.num_values
        return nulls is None or entries is None or nulls < entries

    @staticmethod
    def compare(end: Any, operator: Operator, value: Any) -> bool:
        """Compare an end with a value that is not NaN. True if either is unknown, or their types do not compare."""
        if end is None or value is None:
            return True
        try:
            return COMPARE[operator](end, value)
        except TypeError:
            return True  # the reader evaluates each row

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> bool:
        """Whether a value that is not NaN may lie within the ends; by bisection if the values are ``ascending``."""
        low, high = self.minimum, self.maximum
        if not ascending or low is None or high is None:
            return any(may_overlap(self, value, value) for value in values)
        try:
            at = bisect_left(values, low)
            return at < len(values) and values[at] <= high
        except TypeError:
            return True


def may_match(predicate: Predicate, ranges: Ranges[Truth]) -> Truth:
    """Whether a value within ``ranges`` can satisfy ``predicate``. False is definitive, True is not."""
    if isinstance(predicate, Comparison):
        return ranges.may_be_valid & _may_compare(ranges, predicate.operator, predicate.value)
    if isinstance(predicate, IsIn):
        return ranges.may_be_valid & _may_be_in(ranges, predicate)
    return ranges.may_be_null if isinstance(predicate, IsNull) else ranges.may_be_valid


def may_relate(left: Bounds, operator: Operator, right: Bounds) -> bool:
    """Whether values within both bounds can be related by the operator. False is definitive."""
    if left.all_null or right.all_null:
        return False
    return _may(left, operator, right.minimum, right.maximum, right.may_be_nan)


def may_overlap(ranges: Ranges[Truth], first: Value, last: Value) -> Truth:
    """Whether a value may lie between two values that are not NaN. False is definitive."""
    return ranges.compare(ranges.minimum, "<=", last) & ranges.compare(ranges.maximum, ">=", first)


def _may_be_in(ranges: Ranges[Truth], predicate: IsIn) -> Truth:
    values, ascending = predicate.values, predicate.ascending
    if ascending and values and values[-1] == values[-1]:
        return ranges.may_contain_any(values, ascending)
    numbers = tuple(value for value in values if value == value)
    may_be_number = ranges.may_contain_any(numbers, ascending)
    return may_be_number if len(numbers) == len(values) else may_be_number | ranges.may_be_nan


def _may_compare(ranges: Ranges[Truth], operator: Operator, value: Value) -> Truth:
    if value == value:
        return may_overlap(ranges, value, value) if operator == "==" else _may(ranges, operator, value, value, False)
    # NaN equals itself and is greater than every number, as in some engines.
    match operator:
        case "==" | ">=":
            return ranges.may_be_nan
        case ">":
            return ranges.may_be_nan & False
    return ranges.may_be_nan | True


def _may(left: Ranges[Truth], operator: Operator, low: Any, high: Any, may_be_nan: bool) -> Truth:
    """Whether a value within ``left`` can be related to one from ``low`` to ``high``, or to NaN if ``may_be_nan``.

    A value of the left exceeds one of the right only if the greatest left value exceeds the least right value; NaN
    exceeds every number. The values are equal only if both ranges overlap, or both have NaN. They differ unless both
    ranges are the same value without NaN.
    """
    match operator:
        case "==":
            return may_overlap(left, low, high) | (left.may_be_nan & may_be_nan)
        case "!=":
            differs = left.compare(left.minimum, "!=", high) | left.compare(left.maximum, "!=", low)
            return differs | left.may_be_nan | may_be_nan
        case "<" | "<=":
            return left.compare(left.minimum, operator, high) | may_be_nan
    return left.compare(left.maximum, operator, low) | left.may_be_nan


def restrict_to_bounds(predicate: Predicate, bounds: Bounds) -> Predicate:
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
