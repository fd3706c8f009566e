"""Bounds of computed values, and the predicates that bounds can disprove.

The bounds are computed from the bounds of columns and apply to all results for values within them. A value that cannot
be computed is null, so the bounds of exact results are exact even if values overflow. Results in doubles are rounded,
and rounding is monotonic. Comparisons with literals are converted to the predicates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

from pqext.core.format.predicate import Bounds, Comparison, IsIn, IsNotNull, Predicate, Value
from pqext.dataset import expressions as e
from pqext.dataset.evaluation.operand_values import check_pattern_type, type_of
from pqext.dataset.expressions import NEGATED, Arithmetic, Base, Cast, Column, Constant, Operand, VariantField
from pqext.dataset.expressions.literals import ValueType, to_value, value_type_of_arrow
from pqext.dataset.expressions.mistakes import comparison_value, comparison_values, label_of
from pqext.dataset.expressions.patterns import is_exact, prefix_of, successor
from pqext.variant.access.targets import target_type
from pqext.variant.monotone import monotone_cast

UNKNOWN = Bounds(has_nan=None)
_NULL = Bounds(null_count=1, num_values=1)
_EXACT = Context(prec=200)
_DAY = 86_400_000_000_000
_Types = Callable[[Base], pa.DataType]
_Known = Callable[[Base], Bounds]


def operand_bounds(operand: Operand, types: _Types, get_bounds: _Known) -> Bounds:
    """Return the bounds of an operand's values. Counts are not set, but ``all_null`` may be."""
    match operand:
        case Column() | VariantField():
            result = get_bounds(operand)
            return _NULL if result.all_null else _drop_counts(result)
        case Constant():
            kind = value_type_of_arrow(type_of_constant(operand))
            if kind is None:
                return UNKNOWN
            value = to_value(operand.value, kind, label_of(operand))
            return Bounds(value, value)
        case Arithmetic():
            return _arithmetic_bounds(operand, types, get_bounds)
        case Cast():
            inner = operand_bounds(operand.operand, types, get_bounds)
            if inner.all_null:
                return _NULL
            cast = monotone_cast(
                _signed_type(type_of(operand.operand, types)), target_type(operand.type), operand.timezone
            )
            if cast is None or inner.minimum is None or inner.maximum is None:
                return UNKNOWN
            return _drop_counts(cast.bounds(inner))
    return UNKNOWN


def type_of_constant(operand: Constant) -> pa.DataType:
    """Return the Arrow type of a constant number."""
    value = operand.value
    return pa.float64() if isinstance(value, float) else pa.decimal256(76, 0) if isinstance(value, Decimal) else (
        pa.int64()
    )


def convert_dates_to_timestamps(bounds: Bounds) -> Bounds:
    """Convert bounds of dates, in days, to bounds of timestamps, in nanoseconds."""
    low, high = bounds.minimum, bounds.maximum
    if isinstance(low, int) and isinstance(high, int):
        return replace(bounds, minimum=low * _DAY, maximum=high * _DAY)
    return replace(bounds, minimum=None, maximum=None)


def _drop_counts(bounds: Bounds) -> Bounds:
    return Bounds(bounds.minimum, bounds.maximum, has_nan=bounds.has_nan)


def _signed_type(type: pa.DataType) -> pa.DataType:
    """Return ``type``, or a decimal type for all values if ``type`` is an unsigned integer type."""
    return pa.decimal128(20, 0) if pa.types.is_unsigned_integer(type) else type


def _arithmetic_bounds(operand: Arithmetic, types: _Types, get_bounds: _Known) -> Bounds:
    sides = [operand_bounds(item, types, get_bounds) for item in operand.operands]
    if any(side.all_null for side in sides):
        return _NULL
    in_doubles = pa.types.is_floating(type_of(operand, types))
    ends = [both for side in sides if (both := _endpoints(side, in_doubles)) is not None]
    result = _combine_endpoints(operand.operator, ends, in_doubles) if len(ends) == len(sides) else None
    if result is None or not all(isfinite(end) for end in result):
        return UNKNOWN if in_doubles else Bounds()
    return Bounds(min(result), max(result), has_nan=None if any(side.has_nan is not False for side in sides) else False)


def _endpoints(bounds: Bounds, in_doubles: bool) -> tuple[Any, Any] | None:
    """Return the minimum and maximum as doubles or as exact decimals; None unless both are finite numbers."""
    low, high = bounds.minimum, bounds.maximum
    if low is None or high is None or isinstance(low, bytes) or isinstance(high, bytes):
        return None
    if in_doubles:
        low, high = float(low), float(high)
        return (low, high) if isfinite(low) and isfinite(high) else None
    if isinstance(low, float) or isinstance(high, float):
        return None
    return Decimal(low), Decimal(high)


def _combine_endpoints(operator: str, endpoints: list[tuple[Any, Any]], in_doubles: bool) -> list[Any] | None:
    """Return the candidates for the bounds of an arithmetic result; None if the result is unbounded."""
    if len(endpoints) == 1:
        return [-end for end in endpoints[0]]
    (a, b), (c, d) = endpoints
    match operator:
        case "+":
            return [a + c, b + d] if in_doubles else [_EXACT.add(a, c), _EXACT.add(b, d)]
        case "-":
            return [a - d, b - c] if in_doubles else [_EXACT.subtract(a, d), _EXACT.subtract(b, c)]
        case "*":
            multiply = (lambda entry, other: entry * other) if in_doubles else _EXACT.multiply
            return [multiply(element, other) for element in (a, b) for other in (c, d)]
        case "/" if in_doubles and (c > 0 or d < 0):
            return [item / other for item in (a, b) for other in (c, d)]
    return None


def to_predicates(
    leaf: e.Comparison | e.IsIn | e.Matches, value_type: ValueType, is_negated: bool = False
) -> tuple[tuple[Predicate, ...], ...]:
    """Return alternative sets of predicates. If ``leaf`` is true for a value, all predicates of one set are true.

    The predicates are on values of ``value_type``. With ``is_negated``, they are implied by the negation of ``leaf``.
    Raises ``TypeError`` if a literal cannot be compared with the values.
    """
    match leaf:
        case e.Comparison():
            operator = NEGATED[leaf.operator] if is_negated else leaf.operator
            return ((Comparison(operator, comparison_value(leaf.value, value_type, leaf.operand)),),)
        case e.IsIn():
            values = comparison_values(leaf.values, value_type, leaf.operand)
            return (_membership_predicates(values, leaf.has_null, is_negated),)
    check_pattern_type(value_type, leaf)
    return _prefix_predicates(leaf, is_negated)


def _membership_predicates(values: tuple[Value, ...], has_null: bool, is_negated: bool) -> tuple[Predicate, ...]:
    if is_negated and has_null:
        return (IsIn(()),)  # true of no value: each might equal the null
    if is_negated:
        return tuple(Comparison("!=", value) for value in values) or (IsNotNull(),)
    return (IsIn(tuple(sorted(values, key=lambda value: (value != value, value))), ascending=True),)  # NaN is last


def _prefix_predicates(leaf: e.Matches, is_negated: bool) -> tuple[tuple[Predicate, ...], ...]:
    """Convert a prefix match to ranges: from the prefix up to its successor or, if negated, outside this range."""
    prefix, is_all = prefix_of(leaf.how, leaf.pattern, leaf.escape)
    above = successor(prefix)
    if is_exact(leaf.how, leaf.pattern, leaf.escape):
        return ((Comparison("!=" if is_negated else "==", prefix),),)
    if not is_negated and prefix:
        return ((Comparison(">=", prefix), *(() if above is None else (Comparison("<", above),))),)
    if is_negated and is_all and prefix and above is not None:
        return (Comparison("<", prefix),), (Comparison(">=", above),)
    return ((IsNotNull(),),)
