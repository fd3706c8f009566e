"""Compare arrays row by row, find their extremes, and convert literals to values that an Arrow type can store.

Comparisons are exact even if types differ. A type may not be able to represent a literal.
"""

from __future__ import annotations

from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.predicate import Operator, Value
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.dataset.expressions.literals import NANOSECONDS, ValueType, value_type_of_arrow

_NUMBERS = ("integer", "float", "decimal")
COMPARABLE = (*_NUMBERS, "binary", "uuid")
"""Categories whose values and bounds can be compared without conversion."""
_DAY = 86_400_000_000_000
_NEAR = 1e-9
"""Relative difference below which doubles and decimals are compared exactly."""
_COMPARED = {
    pa.float16(): pa.float32(), pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary(),
}  # fmt: skip
"""Types that Arrow cannot sort, with sortable types for the same values."""


def check_comparable(first: ValueType, second: ValueType, text: str) -> None:
    """Raise ``TypeError`` if values of the two types cannot be compared. The message quotes the comparison ``text``."""
    same = first == second or "null" in (first.name, second.name)
    numbers = first.name in _NUMBERS and second.name in _NUMBERS
    binary = {first.name, second.name} == {"binary", "uuid"}
    midnight = {first, second} == {ValueType("date"), ValueType("timestamp")}
    if not (same or numbers or binary or midnight):
        raise TypeError(f"{text}: {first} values cannot be compared with {second} values")


def compare_arrays(left: pa.Array, operator: Operator, right: pa.Array) -> pa.BooleanArray:
    """Compute ``left operator right`` for two arrays returned by :func:`evaluate.to_comparable`."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return pa.nulls(len(left), pa.bool_())
    less, equal = _order(left, right)
    match operator:
        case "==":
            return equal
        case "!=":
            return pc.invert(equal)
        case "<":
            return less
        case "<=":
            return pc.or_(less, equal)
        case ">":
            return pc.invert(pc.or_(less, equal))
    return pc.invert(less)


def _order(left: pa.Array, right: pa.Array) -> tuple[Any, Any]:
    """Return two boolean arrays: whether the left value is less, and whether the values are equal.

    If either value of a row is null, both results are null.
    """
    types = pa.types
    if types.is_temporal(left.type):
        return _ticks_order(left, right)
    floats = [types.is_floating(side.type) for side in (left, right)]
    if all(floats):
        return _floats_order(left, right)
    if any(floats):
        if floats[0]:
            less, equal = _order(right, left)
            return pc.invert(pc.or_(less, equal)), equal
        return _order_exact_and_float(left, right)
    if types.is_integer(left.type) and types.is_integer(right.type):
        left, right = _unify_integers(left, right)
    elif types.is_decimal(left.type) or types.is_decimal(right.type):
        left, right = _unify_decimals(left, right)
    elif types.is_binary(left.type) or types.is_large_binary(left.type):
        left, right = left.cast(pa.large_binary()), right.cast(pa.large_binary())
    return pc.less(left, right), pc.equal(left, right)


def _floats_order(first: pa.Array, second: pa.Array) -> tuple[Any, Any]:
    nans = pc.is_nan(first), pc.is_nan(second)
    equal = pc.or_(pc.equal(first, second), pc.and_(*nans))
    return pc.or_(pc.less(first, second), pc.and_(pc.invert(nans[0]), nans[1])), equal


def _unify_integers(first: pa.Array, second: pa.Array) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_uint64(first.type) == pa.types.is_uint64(second.type):
        return first, second
    wide = pa.decimal128(20, 0)
    return first.cast(wide), second.cast(wide)


def _unify_decimals(first: pa.Array, second: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Cast both arrays to a decimal type that can represent all values of both.

    If no type has enough digits, return the rank of each value among the values of both arrays.
    """
    digits = [
        (side.type.precision, side.type.scale) if pa.types.is_decimal(side.type) else (20, 0)
        for side in (first, second)
    ]
    scale = max(element for _, element in digits)
    precision = max(places - own for places, own in digits) + scale
    if precision <= 76 and min(own for _, own in digits) >= 0:
        wide = pa.decimal256(precision, scale)
        return first.cast(wide), second.cast(wide)
    ranks = {value: rank for rank, value in enumerate(sorted({*_values(first), *_values(second)}))}
    return tuple(
        pa.array([None if item is None else ranks[Fraction(item)] for item in side.to_pylist()], pa.int64())
        for side in (first, second)
    )


def _values(side: pa.Array) -> list[Fraction]:
    return [Fraction(item) for item in side.to_pylist() if item is not None]


def _order_exact_and_float(exact: pa.Array, floats: pa.Array) -> tuple[Any, Any]:
    """Compare integers or decimals with doubles. Return the same arrays as :func:`_order`.

    Rounding to doubles preserves the order of values that are not nearly equal. Nearly equal values are compared
    exactly.
    """
    if pa.types.is_integer(exact.type):
        near = exact.cast(pa.float64(), safe=False)
        inexact = pc.equal(near, floats)
    else:
        near = exact.cast(pa.float64(), safe=False)
        gap = pc.abs(pc.subtract(near, floats))
        inexact = pc.less_equal(gap, pc.multiply(pc.abs(near), pa.scalar(_NEAR)))
    less, equal = _floats_order(near, floats)
    rows = np.flatnonzero(pc.fill_null(inexact, False).to_numpy(zero_copy_only=False))
    if not len(rows):
        return less, equal
    if pa.types.is_integer(exact.type):
        few, other = exact.take(rows).to_numpy(zero_copy_only=False), floats.take(rows).to_numpy(zero_copy_only=False)
        signs = np.array([_sign(int(item), int(two)) for item, two in zip(few, other, strict=True)]) if (
            np.abs(other).max() > 1 << 53
        ) else np.zeros(len(rows), np.int64)
    else:
        pairs = zip(exact.take(rows).to_pylist(), floats.take(rows).to_pylist(), strict=True)
        signs = np.array([_sign(Fraction(element), Fraction(two)) for element, two in pairs])
    return _replace_at(less, rows, signs < 0), _replace_at(equal, rows, signs == 0)


def _sign(first: Any, second: Any) -> int:
    return int(first > second) - int(first < second)


def _replace_at(result: pa.Array, rows: Any, values: Any) -> pa.Array:
    mask = np.zeros(len(result), bool)
    mask[rows] = True
    return pc.replace_with_mask(result, pa.array(mask), pa.array(values))


def _ticks_order(left: pa.Array, right: pa.Array) -> tuple[Any, Any]:
    """Compare temporal values exactly, even if their units differ. Return the same arrays as :func:`_order`."""
    item, other = _unit_nanoseconds(left.type), _unit_nanoseconds(right.type)
    if item < other:
        less, equal = _ticks_order(right, left)
        return pc.invert(pc.or_(less, equal)), equal
    first, second = (
        side.view(pa.int32() if side.type.bit_width == 32 else pa.int64()).cast(pa.int64()) for side in (left, right)
    )
    valid = pc.and_(pc.is_valid(first), pc.is_valid(second))
    a, b = (pc.fill_null(side, 0).to_numpy(zero_copy_only=False) for side in (first, second))
    whole, rest = np.divmod(b, item // other)
    less = (a < whole) | ((a == whole) & (rest > 0))
    equal = (a == whole) & (rest == 0)
    null = pa.scalar(None, pa.bool_())
    return pc.if_else(valid, pa.array(less), null), pc.if_else(valid, pa.array(equal), null)


def _unit_nanoseconds(type: pa.DataType) -> int:
    """Return the number of nanoseconds in one unit of a temporal type."""
    if pa.types.is_date(type):
        return 1_000_000 if pa.types.is_date64(type) else _DAY
    return NANOSECONDS[type.unit]


def comparison_type(type: pa.DataType, text: str) -> ValueType:
    """Return the comparison category of a type. Raise ``TypeError`` if its values cannot be compared."""
    value_type = value_type_of_arrow(type)
    if value_type is None:
        raise TypeError(f"{text} of type {type} can only be compared with null")
    return value_type


def extreme(array: pa.Array, side: str) -> pa.Array:
    """Return an array of one value: the minimum of ``array`` if ``side`` is ``min``, otherwise the maximum.

    For a dictionary array, the returned array has the type of the values. Nulls and NaN are ignored; the result is
    null if no other values remain.
    """
    if pa.types.is_dictionary(array.type):
        return extreme(decode_dictionary(array.unique()), side)
    kind = array.type
    array = to_sortable(array)
    if pa.types.is_floating(array.type):
        array = array.filter(pc.invert(pc.is_nan(array)), null_selection_behavior="drop")
    try:
        return pa.repeat(pc.min_max(array)[side], 1).cast(kind) if len(array) else pa.nulls(1, kind)
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"values of type {kind} have no minimum and maximum") from error


def to_sortable(array: pa.Array) -> pa.Array:
    """Cast an array to a type that Arrow can sort. Return it unchanged if a cast is unnecessary or impossible."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        return to_sortable(decode_dictionary(array))
    compared = _COMPARED.get(kind)
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        compared = pa.decimal128(kind.precision, kind.scale)
    return array if compared is None else array.cast(compared)


def has_nan(array: pa.Array) -> bool:
    """Return whether any value is NaN."""
    return pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(array)).as_py())


def to_arrow_scalar(value: Value, type_: pa.DataType) -> pa.Scalar | None:
    """Convert a comparison value to an Arrow scalar of type ``type_``.

    Return None for a type without a conversion, and for a timestamp that is not a multiple of the type's unit.
    Raises ``ValueError`` or ``OverflowError`` if the type cannot hold the value.
    """
    types = pa.types
    if types.is_boolean(type_) or types.is_floating(type_) or types.is_decimal(type_) or types.is_binary(type_):
        return pa.scalar(value, type_)
    if types.is_integer(type_):
        return pa.scalar(value, type_)
    if types.is_string(type_) and isinstance(value, bytes):
        return pa.scalar(value.decode(), type_)
    if types.is_date32(type_):
        return pa.scalar(value, pa.int32()).cast(type_)
    if types.is_timestamp(type_) and isinstance(value, int):
        unit = NANOSECONDS[type_.unit]
        return pa.scalar(value // unit, pa.int64()).cast(type_) if value % unit == 0 else None
    return None


class Position(Enum):
    """Position of a value relative to the values that an Arrow type can represent."""

    BELOW = 0
    EXACT = 1
    BETWEEN = 2
    ABOVE = 3


def fit_literal(type: pa.DataType, operator: Operator, value: Value) -> tuple[Operator, pa.Scalar] | bool:
    """Rewrite ``operator value`` as an operator and a scalar that ``type`` can store.

    If the result does not depend on the row, return it as a boolean, which holds for all non-null rows.

    ``type`` is the type of an array that :func:`evaluate.to_comparable` returned. The scalar of a time or date is its
    stored integer. NaN is a value that floating-point types can store.
    """
    if pa.types.is_floating(type):
        place, scalar = (Position.EXACT, pa.scalar(value)) if value != value else locate_float(value)
    else:
        place, scalar = locate(value, type)
    match place:
        case Position.EXACT:
            return operator, scalar
        case Position.BETWEEN if operator in ("<", "<="):
            return "<=", scalar
        case Position.BETWEEN if operator in (">", ">="):
            return ">", scalar
        case Position.BELOW:
            return operator in ("!=", ">", ">=")
        case Position.ABOVE:
            return operator in ("!=", "<", "<=")
    return operator == "!="


def locate(value: Any, type: pa.DataType) -> tuple[Position, Any]:
    """Return the position of ``value`` relative to the values of ``type``, and the nearest scalar.

    The scalar has the storage type of ``type`` and is the greatest one not above ``value``. It is None if ``value`` is
    out of range.
    """
    if pa.types.is_boolean(type):
        return Position.EXACT, pa.scalar(value)
    if pa.types.is_binary(type) or pa.types.is_large_binary(type):
        return Position.EXACT, pa.scalar(value, type)
    if value != value or value == inf:
        return Position.ABOVE, None
    if value == -inf:
        return Position.BELOW, None
    exact = Fraction(value) * _units(type)
    floor = exact.numerator // exact.denominator
    low, high = range_of(type)
    if floor < low:
        return Position.BELOW, None
    if floor > high:
        return Position.ABOVE, None
    place = Position.EXACT if floor == exact else Position.BETWEEN
    if pa.types.is_decimal(type):
        return place, pa.scalar(_remove_scale(floor, type.scale), type)
    if pa.types.is_temporal(type):
        type = pa.int32() if type.bit_width == 32 else pa.int64()
    return place, pa.scalar(floor, type)


def locate_float(value: Any) -> tuple[Position, Any]:
    try:
        near = float(value)
    except OverflowError:
        near = inf if value > 0 else -inf
    if near > value:
        near = nextafter(near, -inf)
    return (Position.EXACT if near == value else Position.BETWEEN), pa.scalar(near, pa.float64())


def _units(type: pa.DataType) -> Fraction:
    """Return the factor that converts a comparison value to the integer that ``type`` stores."""
    if pa.types.is_decimal(type):
        return Fraction(10**type.scale) if type.scale >= 0 else Fraction(1, 10**-type.scale)
    if pa.types.is_timestamp(type) or pa.types.is_time(type):
        return Fraction(1, NANOSECONDS[type.unit])
    if pa.types.is_date64(type):
        return Fraction(86_400_000)
    return Fraction(1)


def range_of(type: pa.DataType) -> tuple[int, int]:
    """Return the smallest and the largest integer that ``type`` can store."""
    if pa.types.is_decimal(type):
        return 1 - 10**type.precision, 10**type.precision - 1
    if pa.types.is_unsigned_integer(type):
        return 0, (1 << type.bit_width) - 1
    return -1 << (type.bit_width - 1), (1 << (type.bit_width - 1)) - 1


def _remove_scale(integer: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(integer))))
    return Decimal((int(integer < 0), digits, -scale))
