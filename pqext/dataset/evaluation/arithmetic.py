"""Arithmetic on Arrow arrays. Results that cannot be computed are null.

Integers are computed exactly in 64 bits, ``uint64`` as decimals of 20 digits. Decimals are computed exactly, with as
many digits as the result needs, and floating-point numbers as IEEE 754 doubles. ``/`` returns doubles, infinity on
division by zero. ``%`` has the sign of the dividend. A result that does not fit its type is null, and so is the
remainder of an integer or decimal divided by zero.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pqext.dataset.expressions.literals import Literal

_MAX_DIGITS = 76
_EXACT = Context(prec=2 * _MAX_DIGITS + 2)
_INT64 = (-(1 << 63), (1 << 63) - 1)
_CHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked,
}  # fmt: skip
_UNCHECKED: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add, "-": pc.subtract, "*": pc.multiply, "/": pc.divide,
}  # fmt: skip


def number_type(type: pa.DataType) -> pa.DataType | None:
    """Return the type to which arithmetic converts numbers of ``type``; None if ``type`` is not numeric."""
    types = pa.types
    if types.is_uint64(type):
        return pa.decimal128(20, 0)
    if types.is_integer(type):
        return pa.int64()
    if types.is_floating(type):
        return pa.float64()
    if types.is_decimal(type) and type.scale >= 0:
        return _decimal(type.precision, type.scale)
    return pa.null() if types.is_null(type) else None


def constant_type(value: Literal, other_type: pa.DataType) -> pa.DataType:
    """Return the type of a constant in arithmetic. ``other_type`` is the :func:`number_type` of the other operand."""
    if isinstance(value, float) and not (pa.types.is_decimal(other_type) and np.isfinite(value)):
        return pa.float64()
    if pa.types.is_floating(other_type):
        return pa.float64()
    if isinstance(value, int) and _INT64[0] <= value <= _INT64[1] and not pa.types.is_decimal(other_type):
        return pa.int64()
    _, digits, exponent = _to_decimal(value).as_tuple()
    scale = max(0, -int(exponent))
    return _decimal(max(len(digits) + max(0, int(exponent)), scale, 1), scale)


def constant_scalar(value: Literal, type: pa.DataType) -> pa.Scalar:
    """Convert a number to a scalar of ``type``, which :func:`constant_type` returned for the number."""
    if pa.types.is_floating(type) and isinstance(value, int | float | Decimal):
        try:
            return pa.scalar(float(value), type)
        except OverflowError:
            return pa.scalar(float("inf") if value > 0 else float("-inf"), type)
    return pa.scalar(_to_decimal(value), type) if pa.types.is_decimal(type) else pa.scalar(value, type)


def result_type(operator: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of ``left operator right``, where both types are results of :func:`number_type`.

    Raises ``TypeError`` if the result would be a decimal of more than 76 digits.
    """
    types = pa.types
    if types.is_null(left) or types.is_null(right):
        return pa.null()
    if operator == "/" or types.is_floating(left) or types.is_floating(right):
        return pa.float64()
    if types.is_integer(left) and types.is_integer(right):
        return pa.int64()
    (p1, s1), (p2, s2) = _digits(left), _digits(right)
    if operator == "*":
        return _decimal(p1 + p2 + 1, s1 + s2)
    scale = max(s1, s2)
    return _decimal(max(p1 - s1, p2 - s2) + scale + (operator != "%"), scale)


def arithmetic(operator: str, left: Any, right: Any) -> pa.Array:
    """Compute ``left operator right`` for two arrays, or an array and a scalar.

    Both have types that :func:`number_type` or :func:`constant_type` returned. Raises the errors of
    :func:`result_type`.
    """
    array = left if isinstance(left, pa.Array) else right
    type = result_type(operator, left.type, right.type)
    if pa.types.is_null(type):
        return pa.nulls(len(array), type)
    if operator == "/":
        return pc.divide(_to_doubles(left), _to_doubles(right))
    if pa.types.is_floating(type):
        left, right = _to_doubles(left), _to_doubles(right)
        return _remainder(left, right, len(array)) if operator == "%" else _UNCHECKED[operator](left, right)
    if operator == "%":
        return _remainder(left, _zeros_to_null(right), len(array)) if type == pa.int64() else _decimal_remainder(
            left, right, len(array), type
        )
    if pa.types.is_integer(type):
        try:
            return _CHECKED[operator](left, right)
        except pa.ArrowInvalid:
            wide = pa.decimal256(19, 0)
            exact = _UNCHECKED[operator](left.cast(wide), right.cast(wide))
            low, high = (pa.scalar(Decimal(bound), exact.type) for bound in _INT64)
            fits = pc.and_(pc.greater_equal(exact, low), pc.less_equal(exact, high))
            return pc.if_else(fits, exact, pa.scalar(None, exact.type)).cast(pa.int64())
    left, right = (side.cast(_widen_decimal(side.type, type)) for side in (left, right))
    return _UNCHECKED[operator](left, right).cast(type)


def negate(array: pa.Array) -> pa.Array:
    """Negate each number. The result is null for the minimum of 64-bit integers, whose negation does not fit."""
    if pa.types.is_integer(array.type):
        return arithmetic("-", pa.scalar(0, pa.int64()), array)
    return pc.negate(array)


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > _MAX_DIGITS:
        raise TypeError(
            f"the result needs a decimal of {precision} digits; the maximum is {_MAX_DIGITS}: cast an operand to double"
        )
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _digits(type: pa.DataType) -> tuple[int, int]:
    return (type.precision, type.scale) if pa.types.is_decimal(type) else (19, 0)


def _widen_decimal(type: pa.DataType, result: pa.DataType) -> pa.DataType:
    """Return the decimal type with the precision and scale of ``type`` and the bit width of ``result``."""
    precision, scale = _digits(type)
    return pa.decimal256(precision, scale) if pa.types.is_decimal256(result) else pa.decimal128(precision, scale)


def _to_decimal(value: Any) -> Decimal:
    """Convert a number to a decimal: exactly, except that a float becomes the shortest decimal that rounds to it."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _to_doubles(side: Any) -> Any:
    """Convert numbers to the nearest doubles. (Arrow's cast of decimals can be off by one unit in the last place.)"""
    if pa.types.is_decimal(side.type):
        from pqext.variant.access.targets import widen_column

        near = widen_column(side, pa.float64()) if isinstance(side, pa.Array) else None
        return pc.cast(pc.cast(side, pa.string()), pa.float64()) if near is None else near
    return side if pa.types.is_float64(side.type) else pc.cast(side, pa.float64(), safe=False)


def _zeros_to_null(side: Any) -> Any:
    """Replace zeros in ``side`` with nulls."""
    zero = pa.scalar(Decimal(0), side.type) if pa.types.is_decimal(side.type) else pa.scalar(0, side.type)
    return pc.if_else(pc.equal(side, zero), pa.scalar(None, side.type), side)


def _remainder(dividend: Any, divisor: Any, rows: int) -> pa.Array:
    fill_value = pa.scalar(1, divisor.type)
    values = [np.asarray(_fill_nulls(side, fill_value)) for side in (dividend, divisor)]
    with np.errstate(all="ignore"):
        result = np.fmod(*values)
    valid = pc.and_(_validity(dividend, rows), _validity(divisor, rows))
    return pc.if_else(valid, pa.array(np.broadcast_to(result, rows), dividend.type), pa.scalar(None, dividend.type))


def _decimal_remainder(dividends: Any, divisors: Any, rows: int, type: pa.DataType) -> pa.Array:
    def remainder(dividend: Any, divisor: Any) -> Decimal | None:
        if dividend is None or not divisor:
            return None
        return _EXACT.remainder(Decimal(dividend), Decimal(divisor))

    sides = (dividends, divisors)
    values = [side.to_pylist() if isinstance(side, pa.Array) else [side.as_py()] * rows for side in sides]
    return pa.array([remainder(dividend, divisor) for dividend, divisor in zip(*values, strict=True)], type)


def _fill_nulls(side: Any, fill_value: pa.Scalar) -> Any:
    if isinstance(side, pa.Scalar):
        return side.as_py() if side.is_valid else fill_value.as_py()
    return pc.fill_null(side, fill_value).to_numpy(zero_copy_only=False)


def _validity(side: Any, rows: int) -> Any:
    return pc.is_valid(side) if isinstance(side, pa.Array) else pa.repeat(side.is_valid, rows)
