"""Guards and literals. Guards are necessary conditions on shredded leaves, which Spark can push down.

A comparison of VARIANT values is evaluated exactly by a function that is opaque to Spark. A guard is added to it:
``leaf >= 5 OR residual > X'00'``. It compares the typed leaf with a literal of its type, rounded outward, or is true if
the residual contains anything but JSON null (Variant Shredding, "Value Shredding").

Spark casts operands before it compares them: for example, a BIGINT and a fraction to DOUBLE, or text to a date
according to the session's settings. pqext compares exact values, as ``pqext.dataset.evaluation.evaluate`` does, with
literals in the type of the column.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.format.predicate import Operator
from pqext.dataset.evaluation.comparison import fit_literal
from pqext.dataset.expressions.literals import to_value, value_type_of_arrow
from pqext.spark.base.types import to_exchange_type

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
"""Maximum length of an IN list that is guarded value by value.

Longer lists are guarded by their minimum and maximum.
"""
FIRST_YEAR = 1900
"""Spark shifts or rejects Python dates and times before this year, so they are created by Spark functions."""
_EPOCH = datetime(1970, 1, 1)


def fit_comparison(type: T.DataType, operator: Operator, literal: Any, column: str) -> tuple[Operator, Any] | bool:
    """Convert the literal of a comparison to ``type``, and adapt the operator; return a constant result as a bool.

    Raises ``TypeError`` with ``column`` if type and literal cannot be compared.
    """
    if isinstance(type, T.StringType):
        type = T.StringType()
    arrow_type = to_exchange_type(type)
    kind = value_type_of_arrow(arrow_type)
    if kind is None:
        raise TypeError(f"column {column} of type {type.simpleString()} can be compared with null only")
    value = to_value(literal, kind, column)
    if kind.name in ("string", "binary", "boolean"):
        return operator, literal
    test = fit_literal(arrow_type, operator, value)
    if isinstance(test, bool):
        return test
    operator, scalar = test
    return operator, _python_literal(scalar, arrow_type)


def representable_literals(type: T.DataType, literals: Sequence[Any], column: str) -> list[Any]:
    """Return the literals that a value of ``type`` can equal. For floats, both signed zeros replace zero."""
    tests = [fit_comparison(type, "==", literal, column) for literal in literals]
    values = [test[1] for test in tests if not isinstance(test, bool)]
    if isinstance(type, T.FloatType | T.DoubleType) and 0 in values:
        values = [value for value in values if value != 0] + [0.0, -0.0]
    return values


def _python_literal(scalar: pa.Scalar, arrow_type: pa.DataType) -> Any:
    """Return the Python value of a scalar that stores a value of ``arrow_type``.

    Returns a column for a date or time that Python or Spark's conversion cannot represent. Raises ``TypeError`` for a
    timestamp without time zone if Python cannot represent it.
    """
    if pa.types.is_date(arrow_type):
        day = date(1970, 1, 1) + timedelta(days=scalar.as_py())
        return day if day.year >= FIRST_YEAR else F.lit(day.isoformat()).cast("date")
    if pa.types.is_time(arrow_type):
        return (_EPOCH + timedelta(microseconds=scalar.as_py())).time()
    if pa.types.is_duration(arrow_type):
        return timedelta(microseconds=scalar.as_py())
    if not pa.types.is_timestamp(arrow_type):
        return scalar.as_py()
    micros = scalar.as_py()
    try:
        wall = _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        wall = None
    if arrow_type.tz is None:
        if wall is None:
            message = "microseconds since 1970-01-01 are out of range for a Spark literal without time zone"
            raise TypeError(f"{micros} {message}")
        return F.lit(wall.isoformat(" ")).cast("timestamp_ntz")
    return (
        wall.replace(tzinfo=UTC) if wall is not None and wall.year >= FIRST_YEAR else F.timestamp_micros(F.lit(micros))
    )


def spark_literal(value: Any) -> Any:
    """Convert ``value`` to a literal that Spark compares correctly.

    Spark's integers have 64 bits. A decimal literal outside a column's integer type compares as true or false even for
    null (Spark's DecimalPrecision rule), unless it is cast.
    """
    is_large = isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63
    if not is_large and not (isinstance(value, Decimal) and value.is_finite()):
        return value
    digits, exponent = Decimal(value).as_tuple()[1:]
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    return F.lit(Decimal(value)).cast(T.DecimalType(precision, scale)) if precision <= 38 else float(value)


def extend_guard(guard: Column | None, residual: Column | None) -> Column | None:
    """Extend the guard of a typed leaf to accept rows with a value in ``residual``."""
    if guard is None or residual is None:
        return guard
    return guard | (residual > F.lit(_JSON_NULL))


def leaf_guard(leaf: Column, leaf_type: T.DataType, target_type: T.DataType, op: Operator, value: Any) -> Column | None:
    """Return a condition on ``leaf`` implied by ``cast(leaf as target_type) op value``; None if unknown.

    The condition is false or null only if the comparison is.
    """
    if op == "!=":
        return None
    if leaf_type == target_type and type(leaf_type) in _LITERALS:
        is_same_type = type(value) is _LITERALS[type(leaf_type)]
        is_same_type = is_same_type and not (isinstance(value, datetime) and value.tzinfo is None)
        return OPERATORS[op](leaf, F.lit(value)) if is_same_type else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not math.isfinite(value):
        return None
    if not _cast_never_fails(leaf_type, target_type):
        return None
    low = _lower_bound(value, leaf_type, target_type) if op in ("==", ">", ">=") else None
    high = _upper_bound(value, leaf_type, target_type) if op in ("==", "<", "<=") else None
    return _range_condition(leaf, leaf_type, low, high)


def list_guard(leaf: Column, leaf_type: T.DataType, target_type: T.DataType, values: Iterable[Any]) -> Column | None:
    """Return a condition on ``leaf`` implied by ``cast(leaf as target_type) in values``; None if unknown."""
    values = list(values)
    if len(values) > MAX_LISTED and len({type(value) for value in values}) == 1:
        low = leaf_guard(leaf, leaf_type, target_type, ">=", min(values))
        high = leaf_guard(leaf, leaf_type, target_type, "<=", max(values))
        return None if low is None or high is None else low & high
    guards = [leaf_guard(leaf, leaf_type, target_type, "==", value) for value in values]
    present = [guard for guard in guards if guard is not None]
    return reduce(operator.or_, present) if present and len(present) == len(guards) else None


def plain_guard(column: Column, op: Operator, value: Any) -> Column:
    """Return a condition equivalent to ``column op value`` for a plain column.

    If guard and condition had the same expression, Spark would rewrite ``(g OR p) AND (e OR p)`` to ``(g AND e) OR p``,
    which it does not push down.
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


def _cast_never_fails(leaf: T.DataType, target_type: T.DataType) -> bool:
    """Return whether every number of type ``leaf`` can be cast to ``target_type`` with its order preserved."""
    if type(leaf) in _INTEGERS:
        if type(target_type) in _INTEGERS:
            return _INTEGERS[type(leaf)] <= _INTEGERS[type(target_type)]
        if isinstance(target_type, T.DecimalType):
            return target_type.precision - target_type.scale >= len(str(2 ** (_INTEGERS[type(leaf)] - 1)))
        return isinstance(target_type, T.FloatType | T.DoubleType)
    if isinstance(leaf, T.DecimalType):
        digits = leaf.precision - leaf.scale
        if type(target_type) in _INTEGERS:
            return digits < len(str(2 ** (_INTEGERS[type(target_type)] - 1)))
        if isinstance(target_type, T.DecimalType):
            return target_type.scale >= leaf.scale and target_type.precision - target_type.scale >= digits
        return isinstance(target_type, T.FloatType | T.DoubleType)
    if isinstance(leaf, T.FloatType):
        return isinstance(target_type, T.FloatType | T.DoubleType)
    return isinstance(leaf, T.DoubleType) and isinstance(target_type, T.DoubleType)


def is_widening_cast(leaf: T.DataType, target_type: T.DataType) -> bool:
    """Return whether ``target_type`` represents every value of type ``leaf``, or rounds it once to the nearest double.

    Spark's cast then has the same result as pqext's, and never returns null.
    """
    if leaf == target_type:
        return True
    if type(leaf) in _INTEGERS and type(target_type) in _INTEGERS:
        return _INTEGERS[type(leaf)] <= _INTEGERS[type(target_type)]
    return isinstance(target_type, T.DoubleType) and (
        type(leaf) in _INTEGERS or isinstance(leaf, T.DecimalType | T.FloatType)
    )


def _lower_bound(value: Any, leaf: T.DataType, target_type: T.DataType) -> Decimal:
    """Return a lower bound of the leaf values whose cast is at least ``value``."""
    return -_upper_bound(-value, leaf, target_type)


def _upper_bound(value: Any, leaf: T.DataType, target_type: T.DataType) -> Decimal:
    """Return an upper bound of the leaf values whose cast is at most ``value``.

    Casts to floating point and comparisons with a floating-point literal round; one step outward compensates. Casts
    from decimals to integers may truncate the fraction.
    """
    if isinstance(target_type, T.FloatType) and not isinstance(leaf, T.FloatType):
        with np.errstate(over="ignore"):
            step = np.nextafter(np.float32(value), np.float32(np.inf))
            value = float(np.nextafter(step, np.float32(np.inf)))
    elif not (isinstance(leaf, T.DoubleType | T.FloatType) and isinstance(value, float)) and (
        isinstance(target_type, T.DoubleType | T.FloatType) or isinstance(value, float)
    ):
        value = math.nextafter(_to_float(value), math.inf)
    if isinstance(leaf, T.DecimalType) and type(target_type) in _INTEGERS:
        value += 1
    return Decimal(value)


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _range_condition(leaf: Column, type: T.DataType, low: Decimal | None, high: Decimal | None) -> Column:
    """Return a condition that ``leaf`` lies between two optional literals of its type; null for null."""
    least, greatest = _value_range(type)
    low = None if low is None else _round(max(low, least), type, is_upward=True)
    high = None if high is None else _round(min(high, greatest), type, is_upward=False)
    if (least if low is None else low) > (greatest if high is None else high):
        return leaf < _to_literal(least, type)  # no value matches
    if low is not None and low == high:
        return leaf == _to_literal(low, type)
    parts = [leaf >= _to_literal(low, type)] if low is not None else []
    if high is not None:
        parts.append(leaf <= _to_literal(high, type))
    return reduce(operator.and_, parts)


def _value_range(type: T.DataType) -> tuple[Decimal, Decimal]:
    if type.__class__ in _INTEGERS:
        half = Decimal(2) ** (_INTEGERS[type.__class__] - 1)
        return -half, half - 1
    if isinstance(type, T.DecimalType):
        greatest = Decimal((0, (9,) * type.precision, -type.scale))
        return -greatest, greatest
    return Decimal("-Infinity"), Decimal("Infinity")


def _round(value: Decimal, type: T.DataType, is_upward: bool) -> Decimal:
    """Round ``value`` up or down to a value of ``type``. FLOAT is rounded outward instead."""
    if not value.is_finite():
        return value
    if isinstance(type, T.FloatType):
        with np.errstate(over="ignore"):
            nearest = np.float32(float(value))
        if Decimal(float(nearest)) != value and (Decimal(float(nearest)) > value) == is_upward:
            nearest = np.nextafter(nearest, np.float32(-np.inf if is_upward else np.inf))
        return Decimal(float(nearest))
    if isinstance(type, T.DoubleType):
        return value
    scale = type.scale if isinstance(type, T.DecimalType) else 0
    step = Decimal((0, (1,), -scale))
    return value.quantize(step, rounding=ROUND_CEILING if is_upward else ROUND_FLOOR, context=_EXACT)


def _to_literal(value: Decimal, type: T.DataType) -> Column:
    if isinstance(type, T.FloatType | T.DoubleType):
        return F.lit(float(value)).cast(type)
    return F.lit(value if isinstance(type, T.DecimalType) else int(value)).cast(type)
