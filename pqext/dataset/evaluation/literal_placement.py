"""Locate literals among the values of an Arrow type, which may not be able to represent the literals."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import pyarrow as pa

from pqext.core.format.predicate import Operator, Value
from pqext.dataset.expressions.literals import NANOSECONDS


class Place(Enum):
    """Position of a value relative to the values that an Arrow type can represent."""

    BELOW = 0
    EXACT = 1
    BETWEEN = 2
    ABOVE = 3


def fit_literal(type: pa.DataType, operator: Operator, value: Value) -> tuple[Operator, pa.Scalar] | bool:
    """Rewrite ``operator value`` as an operator and a scalar that ``type`` can store.

    If the result does not depend on the row, return it as a boolean, which holds for all non-null rows.

    ``type`` is the type of a :func:`comparable` array. Times and dates compare as their stored integers, NaN like any
    other scalar.
    """
    if pa.types.is_floating(type):
        place, scalar = (Place.EXACT, pa.scalar(value)) if value != value else locate_float(value)
    else:
        place, scalar = locate(value, type)
    match place:
        case Place.EXACT:
            return operator, scalar
        case Place.BETWEEN if operator in ("<", "<="):
            return "<=", scalar
        case Place.BETWEEN if operator in (">", ">="):
            return ">", scalar
        case Place.BELOW:
            return operator in ("!=", ">", ">=")
        case Place.ABOVE:
            return operator in ("!=", "<", "<=")
    return operator == "!="


def locate(value: Any, type: pa.DataType) -> tuple[Place, Any]:
    """Return the position of ``value`` relative to the values of ``type``, and a scalar.

    The scalar is the greatest of the stored type that does not exceed ``value``; None if ``value`` is out of range.
    """
    if pa.types.is_boolean(type):
        return Place.EXACT, pa.scalar(value)
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return Place.EXACT, pa.scalar(value, type)
    if value != value or value == inf:
        return Place.ABOVE, None
    if value == -inf:
        return Place.BELOW, None
    exact = Fraction(value) * _units(type)
    floor = exact.numerator // exact.denominator
    low, high = range_of(type)
    if floor < low:
        return Place.BELOW, None
    if floor > high:
        return Place.ABOVE, None
    place = Place.EXACT if floor == exact else Place.BETWEEN
    if pa.types.is_decimal(type):
        return place, pa.scalar(_remove_scale(floor, type.scale), type)
    if pa.types.is_temporal(type):
        type = pa.int32() if type.bit_width == 32 else pa.int64()
    return place, pa.scalar(floor, type)


def locate_float(value: Any) -> tuple[Place, Any]:
    try:
        near = float(value)
    except OverflowError:
        near = inf if value > 0 else -inf
    if near > value:
        near = nextafter(near, -inf)
    return (Place.EXACT if near == value else Place.BETWEEN), pa.scalar(near, pa.float64())


def _units(type: pa.DataType) -> Fraction:
    """Return the number of stored integer units in one unit of the comparison value."""
    if pa.types.is_decimal(type):
        return Fraction(10**type.scale) if type.scale >= 0 else Fraction(1, 10**-type.scale)
    if pa.types.is_timestamp(type) or pa.types.is_time(type):
        return Fraction(1, NANOSECONDS[type.unit])
    if pa.types.is_date64(type):
        return Fraction(86_400_000)
    return Fraction(1)


def range_of(type: pa.DataType) -> tuple[int, int]:
    """Return the smallest and largest integer that the type stores."""
    if pa.types.is_decimal(type):
        return 1 - 10**type.precision, 10**type.precision - 1
    if pa.types.is_unsigned_integer(type):
        return 0, (1 << type.bit_width) - 1
    return -1 << (type.bit_width - 1), (1 << (type.bit_width - 1)) - 1


def _remove_scale(integer: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(integer))))
    return Decimal((int(integer < 0), digits, -scale))
