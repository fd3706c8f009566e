"""Guards: conditions that Spark pushes to a shredded leaf's statistics, true wherever the exact one is.

A variant comparison is evaluated exactly by a function that Spark cannot look into. Beside it stands a guard,
``leaf >= 5 OR residual > X'00'``: the typed leaf compared with a literal of the leaf's own type, rounded
outward, or anything but JSON null in the leaf's residual (Variant Shredding, "Value Shredding").
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.format.predicate import Operator

OPERATORS: dict[Operator, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INTEGERS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}
_LITERALS: dict[type[T.DataType], type] = {
    T.StringType: str,
    T.BinaryType: bytes,
    T.BooleanType: bool,
    T.DateType: date,
    T.TimestampType: datetime,
}
_JSON_NULL = b"\x00"
_EXACT = Context(prec=4000)
MAX_LISTED = 16
"""An IN list up to this length is guarded value by value, a longer one by its least and greatest."""


def spark_literal(value: Any) -> Any:
    """``value`` as a literal that Spark compares rightly.

    Its integers have 64 bits, and a bare decimal literal beyond a column's integer type would compare as true
    or false even with null (Spark's DecimalPrecision rule), a cast one does not.
    """
    is_large = isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63
    if not is_large and not (isinstance(value, Decimal) and value.is_finite()):
        return value
    digits, exponent = Decimal(value).as_tuple()[1:]
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    return F.lit(Decimal(value)).cast(T.DecimalType(precision, scale)) if precision <= 38 else float(value)


def with_residual(guard: Column | None, residual: Column | None) -> Column | None:
    """Let ``guard`` on a typed leaf also pass rows whose ``residual`` holds a value."""
    if guard is None or residual is None:
        return guard
    return guard | (residual > F.lit(_JSON_NULL))


def leaf_guard(leaf: Column, leaf_type: T.DataType, requested: T.DataType, op: Operator, value: Any) -> Column | None:
    """A condition on ``leaf`` that holds wherever ``cast(leaf as requested) op value`` does.

    It is null or false elsewhere only where that is too. None when there is no such condition worth pushing.
    """
    if op == "!=":
        return None
    if leaf_type == requested and type(leaf_type) in _LITERALS:
        wanted = _LITERALS[type(leaf_type)]
        same = type(value) is wanted and not (isinstance(value, datetime) and value.tzinfo is None)
        return OPERATORS[op](leaf, F.lit(value)) if same else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    if not _cast_never_fails(leaf_type, requested):
        return None
    low = _lower(value, leaf_type, requested) if op in ("==", ">", ">=") else None
    high = _upper(value, leaf_type, requested) if op in ("==", "<", "<=") else None
    return _between(leaf, leaf_type, low, high)


def list_guard(leaf: Column, leaf_type: T.DataType, requested: T.DataType, values: Iterable[Any]) -> Column | None:
    """A condition on ``leaf`` that holds wherever ``cast(leaf as requested)`` is one of ``values``."""
    values = list(values)
    if len(values) > MAX_LISTED and len({type(value) for value in values}) == 1:
        low = leaf_guard(leaf, leaf_type, requested, ">=", min(values))
        high = leaf_guard(leaf, leaf_type, requested, "<=", max(values))
        return None if low is None or high is None else low & high
    guards = [leaf_guard(leaf, leaf_type, requested, "==", value) for value in values]
    present = [guard for guard in guards if guard is not None]
    return reduce(operator.or_, present) if present and len(present) == len(guards) else None


def plain_guard(column: Column, op: Operator, value: Any) -> Column:
    """``column op value`` for a plain column in other words.

    In the same words Spark would take ``(g OR p) AND (e OR p)`` for ``(g AND e) OR p``, which it does not push.
    """
    guard: Column
    if op == "==":
        guard = (column >= value) & (column <= value)
    elif op == "!=":
        guard = (column < value) | (column > value)
    elif op in ("<", ">"):
        guard = OPERATORS["<=" if op == "<" else ">="](column, value)
    else:
        guard = OPERATORS["<" if op == "<=" else ">"](column, value) | (column == value)
    return guard


def _cast_never_fails(leaf: T.DataType, requested: T.DataType) -> bool:
    """Does every number of type ``leaf`` have one of type ``requested``, in the same order?"""
    if type(leaf) in _INTEGERS:
        if type(requested) in _INTEGERS:
            return _INTEGERS[type(leaf)] <= _INTEGERS[type(requested)]
        if isinstance(requested, T.DecimalType):
            return requested.precision - requested.scale >= len(str(2 ** (_INTEGERS[type(leaf)] - 1)))
        return isinstance(requested, T.FloatType | T.DoubleType)
    if isinstance(leaf, T.DecimalType):
        digits = leaf.precision - leaf.scale
        if type(requested) in _INTEGERS:
            return digits < len(str(2 ** (_INTEGERS[type(requested)] - 1)))
        if isinstance(requested, T.DecimalType):
            return requested.scale >= leaf.scale and requested.precision - requested.scale >= digits
        return isinstance(requested, T.FloatType | T.DoubleType)
    if isinstance(leaf, T.FloatType):
        return isinstance(requested, T.FloatType | T.DoubleType)
    return isinstance(leaf, T.DoubleType) and isinstance(requested, T.DoubleType)


def is_widened(leaf: T.DataType, requested: T.DataType) -> bool:
    """Is every value of type ``leaf`` one of type ``requested``, or rounded once to the nearest double?

    Spark's cast then gives what pqext's gives, and never null.
    """
    if leaf == requested:
        return True
    if type(leaf) in _INTEGERS and type(requested) in _INTEGERS:
        return _INTEGERS[type(leaf)] <= _INTEGERS[type(requested)]
    return isinstance(requested, T.DoubleType) and (
        type(leaf) in _INTEGERS or isinstance(leaf, T.DecimalType | T.FloatType)
    )


def _lower(value: Any, leaf: T.DataType, requested: T.DataType) -> Decimal:
    """A number that no leaf lies below whose cast is at least ``value``."""
    return -_upper(-value, leaf, requested)


def _upper(value: Any, leaf: T.DataType, requested: T.DataType) -> Decimal:
    """A number that no leaf lies above whose cast is at most ``value``.

    Casts to floating point round, as does the comparison with a floating literal: one step outward makes up
    for either. Casts from decimals to integers may drop the fraction.
    """
    if isinstance(requested, T.FloatType) and not isinstance(leaf, T.FloatType):
        with np.errstate(over="ignore"):
            step = np.nextafter(np.float32(value), np.float32(np.inf))
            value = float(np.nextafter(step, np.float32(np.inf)))
    elif not (isinstance(leaf, T.DoubleType | T.FloatType) and isinstance(value, float)) and (
        isinstance(requested, T.DoubleType | T.FloatType) or isinstance(value, float)
    ):
        value = math.nextafter(_to_float(value), math.inf)
    if isinstance(leaf, T.DecimalType) and type(requested) in _INTEGERS:
        value += 1
    return Decimal(value)


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _between(leaf: Column, type: T.DataType, low: Decimal | None, high: Decimal | None) -> Column:
    """``leaf`` between two numbers, where there are, in literals of its own type; null where it is null."""
    least, greatest = _range(type)
    low = None if low is None else _round(max(low, least), type, up=True)
    high = None if high is None else _round(min(high, greatest), type, up=False)
    if (least if low is None else low) > (greatest if high is None else high):
        return leaf < _literal(least, type)  # no value fits, which only the literal's type could tell
    if low is not None and low == high:
        return leaf == _literal(low, type)
    parts = [leaf >= _literal(low, type)] if low is not None else []
    if high is not None:
        parts.append(leaf <= _literal(high, type))
    return reduce(operator.and_, parts)


def _range(type: T.DataType) -> tuple[Decimal, Decimal]:
    if type.__class__ in _INTEGERS:
        half = Decimal(2) ** (_INTEGERS[type.__class__] - 1)
        return -half, half - 1
    if isinstance(type, T.DecimalType):
        greatest = Decimal((0, (9,) * type.precision, -type.scale))
        return -greatest, greatest
    return Decimal("-Infinity"), Decimal("Infinity")


def _round(value: Decimal, type: T.DataType, up: bool) -> Decimal:
    """The least value of ``type`` not below ``value``, or the greatest not above; floats go outward instead."""
    if not value.is_finite():
        return value
    if isinstance(type, T.FloatType):
        with np.errstate(over="ignore"):
            near = np.float32(float(value))
        if Decimal(float(near)) != value and (Decimal(float(near)) > value) == up:
            near = np.nextafter(near, np.float32(-np.inf if up else np.inf))
        return Decimal(float(near))
    if isinstance(type, T.DoubleType):
        return value
    scale = type.scale if isinstance(type, T.DecimalType) else 0
    step = Decimal((0, (1,), -scale))
    return value.quantize(step, rounding=ROUND_CEILING if up else ROUND_FLOOR, context=_EXACT)


def _literal(value: Decimal, type: T.DataType) -> Column:
    if isinstance(type, T.FloatType | T.DoubleType):
        return F.lit(float(value)).cast(type)
    return F.lit(value if isinstance(type, T.DecimalType) else int(value)).cast(type)
