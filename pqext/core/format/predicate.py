"""Predicates on one column, and tests of predicates against ranges of values.

The packages above core reduce their expressions to these predicates. :func:`may_match` evaluates a predicate for the
values of a row group, a page, a VARIANT path or a computed operand; :func:`may_relate` compares two operands. The
result is sound: it is False only if no value within the range satisfies the predicate. An unknown bound excludes
nothing.

The same rules apply to every :class:`Ranges`: the :class:`Bounds` of one set of values, arrays of page bounds
(:mod:`pqext.core.indexes.page_index`) and Arrow arrays from a data-skipping store
(:mod:`pqext.skipping.indexes.ranges`). They differ only in how a bound is compared with a value.
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
"""Value in comparison form: integers, floats and decimals as numbers, strings and binary as bytes, dates as integer
days, and times and timestamps as integer nanoseconds since midnight or the Unix epoch.
"""

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
    """Predicate that compares the column's value with ``value`` using ``operator``. It is never true for null."""

    operator: Operator
    value: Value


@dataclass(frozen=True, slots=True)
class IsIn:
    """Predicate that is true if the value is one of ``values``.

    It is never true for null. An ascending list is searched by bisection.
    """

    values: tuple[Value, ...]
    ascending: bool = False
    """Whether the values are strictly ascending, with NaN last."""


@dataclass(frozen=True, slots=True)
class IsNull:
    """Predicate that is true if the value is null."""


@dataclass(frozen=True, slots=True)
class IsNotNull:
    """Predicate that is true if the value is not null."""


Predicate = Comparison | IsIn | IsNull | IsNotNull
Truth = TypeVar("Truth", bool, NDArray[np.bool_], covariant=True)
"""Result for one range, or an array with the result for each of several ranges."""


class Ranges(Protocol[Truth]):
    """One or more sets of values. The minimum and maximum of a set ignore nulls and NaN.

    The bounds are inclusive and need not occur as values. The methods return True if a required fact is unknown.
    """

    @property
    def minimum(self) -> Any:
        """Lower bound of all values that are not NaN."""

    @property
    def maximum(self) -> Any:
        """Upper bound of all values that are not NaN."""

    @property
    def may_be_nan(self) -> Truth:
        """Whether a value may be NaN."""

    @property
    def may_be_null(self) -> Truth:
        """Whether a value may be null."""

    @property
    def may_be_valid(self) -> Truth:
        """Whether there may be a value that is not null."""

    def compare(self, bound: Any, operator: Operator, value: Any) -> Truth:
        """Compare ``bound`` with ``value``, which is not NaN.

        Return True if the bound or the value is None, or if their types are not comparable.
        """

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> Truth:
        """Return whether any of ``values`` may lie between the bounds. The values contain no NaN."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Known facts about the values of one leaf in a row group or page. None means unknown.

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
        """Whether every value is known to be null."""
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
        """Whether there may be a value that is not null."""
        nulls, entries = self.null_count, self.num_values
        return nulls is None or entries is None or nulls < entries

    @staticmethod
    def compare(bound: Any, operator: Operator, value: Any) -> bool:
        """Compare ``bound`` with ``value``, which is not NaN.

        Return True if the bound or the value is None, or if their types are not comparable.
        """
        if bound is None or value is None:
            return True
        try:
            return COMPARE[operator](bound, value)
        except TypeError:
            return True  # the reader evaluates every row

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> bool:
        """Return whether any of ``values`` may lie between the bounds. The values contain no NaN.

        ``ascending`` lists are bisected.
        """
        low, high = self.minimum, self.maximum
        if not ascending or low is None or high is None:
            return any(may_overlap(self, value, value) for value in values)
        try:
            at = bisect_left(values, low)
            return at < len(values) and values[at] <= high
        except TypeError:
            return True


def may_match(predicate: Predicate, ranges: Ranges[Truth]) -> Truth:
    """Return whether a value within ``ranges`` may satisfy ``predicate``. Only False is definitive."""
    if isinstance(predicate, Comparison):
        return ranges.may_be_valid & _may_compare(ranges, predicate.operator, predicate.value)
    if isinstance(predicate, IsIn):
        return ranges.may_be_valid & _may_be_in(ranges, predicate)
    return ranges.may_be_null if isinstance(predicate, IsNull) else ranges.may_be_valid


def may_relate(left: Bounds, operator: Operator, right: Bounds) -> bool:
    """Return whether ``value operator other`` may be true for a value within ``left`` and another within ``right``.

    Only False is definitive.
    """
    if left.all_null or right.all_null:
        return False
    return _may_relate_to_range(left, operator, right.minimum, right.maximum, right.may_be_nan)


def may_overlap(ranges: Ranges[Truth], first: Value, last: Value) -> Truth:
    """Return whether a value may lie between ``first`` and ``last``, which are not NaN. Only False is definitive."""
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
        if operator == "==":
            return may_overlap(ranges, value, value)
        return _may_relate_to_range(ranges, operator, value, value, False)
    # As in some engines, NaN equals itself and is greater than every number.
    match operator:
        case "==" | ">=":
            return ranges.may_be_nan
        case ">":
            return ranges.may_be_nan & False
    return ranges.may_be_nan | True


def _may_relate_to_range(ranges: Ranges[Truth], operator: Operator, low: Any, high: Any, may_be_nan: bool) -> Truth:
    """Return whether ``operator`` may be true for a value within ``ranges`` and a value from ``low`` to ``high``, or
    NaN if ``may_be_nan`` is set.

    A value can exceed another value only if its maximum exceeds the minimum of the other; NaN exceeds every number.
    Values can be equal only if their ranges overlap or both may be NaN. They can differ unless both ranges are the same
    single value without NaN.
    """
    match operator:
        case "==":
            return may_overlap(ranges, low, high) | (ranges.may_be_nan & may_be_nan)
        case "!=":
            differs = ranges.compare(ranges.minimum, "!=", high) | ranges.compare(ranges.maximum, "!=", low)
            return differs | ranges.may_be_nan | may_be_nan
        case "<" | "<=":
            return ranges.compare(ranges.minimum, operator, high) | may_be_nan
    return ranges.compare(ranges.maximum, operator, low) | ranges.may_be_nan


def restrict_to_bounds(predicate: Predicate, bounds: Bounds) -> Predicate:
    """Return ``predicate``, without the values of an ascending ``IsIn`` that are outside the bounds."""
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
    """Return whether the predicate tests equality with values, so that a Bloom filter can exclude it."""
    return isinstance(predicate, IsIn) or (isinstance(predicate, Comparison) and predicate.operator == "==")


def may_contain(predicate: Predicate, might_contain: Callable[[Value], bool]) -> bool:
    """Return whether a chunk may satisfy ``predicate`` according to its Bloom filter, which ``might_contain`` queries.

    The filter can exclude only tests for equality.
    """
    if isinstance(predicate, Comparison) and predicate.operator == "==":
        return might_contain(predicate.value)
    if isinstance(predicate, IsIn):
        return any(might_contain(value) for value in predicate.values)
    return True
