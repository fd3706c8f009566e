"""Expressions evaluated one row at a time, on Python objects: slow, and as plain as SQL's rules allow."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any
from uuid import UUID

import pyarrow as pa

from pqext.dataset.expressions import And, Comparison, Expression, IsIn, IsNotNull, IsNull, Matches, Not, Or, Relation
from reference.computed import matches, value

TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def truth(expression: Expression, batch: pa.RecordBatch, row: int) -> bool | None:
    """The truth of ``expression`` on one row; columns are plain, in structs at most."""
    match expression:
        case And():
            return reduce(both, [truth(operand, batch, row) for operand in expression.operands])
        case Or():
            return opposite(reduce(both, [opposite(truth(operand, batch, row)) for operand in expression.operands]))
        case Not():
            return opposite(truth(expression.operand, batch, row))
        case IsNull():
            return value(expression.operand, batch, row) is None
        case IsNotNull():
            return value(expression.operand, batch, row) is not None
        case Relation():
            sides = [value(one, batch, row) for one in (expression.left, expression.right)]
            return None if None in sides else holds(order(*map(plain, sides)), expression.operator)
        case Matches():
            found = value(expression.operand, batch, row)
            return None if found is None else matches(expression, found)
        case Comparison() | IsIn():
            scalar = value(expression.operand, batch, row)
            if scalar is None:
                return None
            if isinstance(expression, IsIn):
                is_listed = any(holds(order(plain(scalar), meant(one, scalar)), "==") for one in expression.values)
                return is_listed or (None if expression.has_null else False)
            return holds(order(plain(scalar), meant(expression.value, scalar)), expression.operator)
    raise TypeError(f"{expression} is not for this twin")


def truths(expression: Expression, batch: pa.RecordBatch) -> list[bool | None]:
    """The truth on every row."""
    return [truth(expression, batch, row) for row in range(batch.num_rows)]


def both(left: bool | None, right: bool | None) -> bool | None:
    """SQL's AND: false wins over null, null over true."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def opposite(value: bool | None) -> bool | None:
    """SQL's NOT."""
    return None if value is None else not value


def plain(value: Any) -> Any:
    """A literal or an Arrow scalar as a number, NaN, text or bytes; times and dates in exact seconds."""
    if isinstance(value, pa.Scalar):
        if any(is_(value.type) for is_ in (pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration)):
            return Fraction(value.value, TICKS[value.type.unit])
        value = value.as_py()
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, timedelta):
        return Fraction(value.days * 86_400 + value.seconds) + Fraction(value.microseconds, 10**6)
    if isinstance(value, datetime):
        elapsed = value.replace(tzinfo=None) - datetime(1970, 1, 1)
        return Fraction(elapsed.days * 86_400 + elapsed.seconds) + Fraction(elapsed.microseconds, 10**6)
    if isinstance(value, date):
        return Fraction((value - date(1970, 1, 1)).days * 86_400)
    if isinstance(value, time):
        return Fraction(value.hour * 3600 + value.minute * 60 + value.second) + Fraction(value.microsecond, 10**6)
    return value


def meant(literal: Any, scalar: Any) -> Any:
    """A literal as it is asked of a column: a float asked of decimals is the decimal that it is written as."""
    is_decimal = isinstance(scalar, Decimal) or (isinstance(scalar, pa.Scalar) and pa.types.is_decimal(scalar.type))
    if is_decimal and isinstance(literal, float) and math.isfinite(literal):
        return Fraction(repr(literal))
    if isinstance(literal, str) and isinstance(scalar, pa.FixedSizeBinaryScalar):
        return UUID(literal).bytes
    return plain(literal)


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1 in SQL's order of ``left`` and ``right``: NaN is above everything and equal to NaN."""
    left_nan, right_nan = (isinstance(value, float) and math.isnan(value) for value in (left, right))
    if left_nan or right_nan:
        return int(left_nan) - int(right_nan)
    left, right = (value if value in (math.inf, -math.inf) else exact(value) for value in (left, right))
    return int(left > right) - int(left < right)


def exact(value: Any) -> Any:
    """Numbers as fractions, text as its UTF-8 bytes."""
    return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else Fraction(value)


def holds(order: int, operator: str) -> bool:
    """Does an order of two values satisfy a comparison?"""
    return {
        "==": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]
