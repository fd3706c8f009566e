"""Monotone casts: bounds of cast values from the bounds of a leaf.

The table lists the supported casts, in comparison form (``pqext.core.format.predicate``). Other casts cannot prune:

| leaf | cast to | bounds | is injective |
|---|---|---|---|
| any | the same type | unchanged | yes |
| integer, decimal | integer | towards zero | when the leaf is an integer |
| integer, decimal | decimal | rounded half up | when the scale does not shrink |
| integer, decimal, float, double | double | one step outwards | float; integers below 2**53 |
| integer, decimal, float, double | float | one step outwards | no |
| string, binary | string, binary | unchanged | yes |
| timestamp | timestamp, both instants or both without zone | down to the unit | if the unit is not coarser |
| timestamp | timestamp, one of them an instant | local or UTC time, down to the unit | in UTC, as above |
| timestamp | date | local time, down to the day | no |
| date | timestamp | midnight, in local time for an instant | no, since the numbers differ |

Local times decrease when clocks are set back, and instants of local times decrease when clocks are set forward. Bounds
near such changes are widened to include all later or earlier times (:class:`pqext.variant.timezones.Shift`).

In an injective cast, only the leaf value that equals a literal casts to a value that equals it, so
a Bloom filter of the leaf may be queried for the literal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from pqext.core.format.predicate import Bounds, Comparison, IsIn, Predicate, Value
from pqext.variant.timezones import Shift, find_timezone
from pqext.variant.types import is_variant_type

_EXACT = Context(prec=200)
_DAY = 86_400_000_000_000
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}

_Bound = Callable[[Any, bool], Value]
"""Function that converts a bound to the target type; the second argument is True for the upper bound."""


@dataclass(frozen=True, slots=True)
class MonotoneCast:
    """Cast of a leaf that preserves the order of its values."""

    bound: _Bound | None
    """None if the cast preserves all bounds."""
    is_injective_at: Callable[[Value], bool]
    """Whether the only leaf value that casts to a value equal to a literal is the leaf value that equals the
    literal.
    """

    def bounds(self, leaf_bounds: Bounds) -> Bounds:
        """Return the bounds of the cast values."""
        return leaf_bounds if self.bound is None else replace(
            leaf_bounds,
            minimum=None if leaf_bounds.minimum is None else self.bound(leaf_bounds.minimum, False),
            maximum=None if leaf_bounds.maximum is None else self.bound(leaf_bounds.maximum, True),
        )

    def may_query_bloom_filter(self, predicate: Predicate) -> bool:
        """Return whether a Bloom filter of the leaf can evaluate a predicate on the cast values."""
        if isinstance(predicate, IsIn):
            return all(map(self.is_injective_at, predicate.values))
        if not isinstance(predicate, Comparison) or predicate.operator != "==":
            return False
        return self.is_injective_at(predicate.value)


def always_casts(leaf: pa.DataType | None, type: pa.DataType) -> bool:
    """Return whether every value of the leaf casts to ``type``."""
    if leaf is None:
        return False
    return bool(leaf == type or is_variant_type(type) or (_is_exact(leaf) and pa.types.is_float64(type)))


def monotone_cast(
    leaf: pa.DataType | None, type: pa.DataType, timezone: str | None = None
) -> MonotoneCast | None:
    """Return the cast from a leaf's type to ``type``; None if the cast does not preserve order.

    The default time zone is UTC.
    """
    if leaf is None or pa.types.is_nested(type):
        return None
    if leaf == type:
        return MonotoneCast(None, _accept_literal)
    if _is_exact(leaf) or pa.types.is_float32(leaf) or pa.types.is_float64(leaf):
        return _number_cast(leaf, type)
    if _is_bytes(leaf):
        return MonotoneCast(None, _accept_literal) if _is_bytes(type) else None
    if pa.types.is_timestamp(leaf):
        return _timestamp_cast(leaf, type, timezone)
    if pa.types.is_date32(leaf) and pa.types.is_timestamp(type):
        shift = _find_shift(None, type, timezone)
        if shift is None:
            return MonotoneCast(_days_to_nanos, _reject_literal)
        return MonotoneCast(lambda bound, upper: _shift_bound(shift, bound * _DAY, upper), _reject_literal)
    return None


def _timestamp_cast(leaf: pa.DataType, type: pa.DataType, timezone: str | None) -> MonotoneCast | None:
    if pa.types.is_timestamp(type):
        unit, own = _NANOSECONDS[type.unit], _NANOSECONDS[leaf.unit]
        is_injective_at, down = (_accept_literal if unit <= own else _reject_literal), _floor_to(unit)
    elif pa.types.is_date32(type):
        is_injective_at, down = _reject_literal, _floor_to_days
    else:
        return None
    shift = _find_shift(leaf.tz, type, timezone)
    if shift is None:
        return MonotoneCast(down, is_injective_at)
    return MonotoneCast(lambda bound, upper: down(_shift_bound(shift, bound, upper), upper), _reject_literal)


def _find_shift(zone: str | None, type: pa.DataType, timezone: str | None) -> Shift | None:
    """Return the shift that a cast to ``type`` applies: to local times if ``zone`` is None, otherwise to instants.

    Returns None if the cast does not shift values.
    """
    result = None if timezone is None else find_timezone(timezone)
    is_instant = pa.types.is_timestamp(type) and type.tz is not None
    if result is None or is_instant == (zone is not None):
        return None
    return result.to_instant if is_instant else result.to_local


def _shift_bound(shift: Shift, bound: int, is_upper: bool) -> int:
    return shift.maximum_result(bound) if is_upper else shift.minimum_result(bound)


def _number_cast(leaf: pa.DataType, type: pa.DataType) -> MonotoneCast | None:
    if _is_exact(leaf) and pa.types.is_integer(type):
        return MonotoneCast(_to_integer, _accept_literal if pa.types.is_integer(leaf) else _reject_literal)
    if _is_exact(leaf) and pa.types.is_decimal(type):
        own = leaf.scale if pa.types.is_decimal(leaf) else 0
        return MonotoneCast(_to_decimal(type.scale), _accept_literal if own <= type.scale else _reject_literal)
    if pa.types.is_float64(type):
        whole = _is_small if pa.types.is_integer(leaf) else _reject_literal
        return MonotoneCast(_to_double, _accept_literal if pa.types.is_float32(leaf) else whole)
    return MonotoneCast(_to_single, _reject_literal) if pa.types.is_float32(type) else None


def _is_exact(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_decimal(type))


def _is_bytes(type: pa.DataType) -> bool:
    types = pa.types
    is_text = types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
    return bool(is_text or types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type))


def _accept_literal(literal: Value) -> bool:
    return True


def _reject_literal(literal: Value) -> bool:
    return False


def _is_small(literal: Any) -> bool:
    """Return whether a double represents the integer exactly, and no other integer rounds to this double."""
    return not isinstance(literal, bytes) and abs(literal) < 1 << 53


def _to_integer(bound: Any, is_upper: bool) -> Value:
    return int(Decimal(bound).to_integral_value(rounding=ROUND_DOWN, context=_EXACT))


def _to_decimal(scale: int) -> _Bound:
    def cast(bound: Any, upper: bool) -> Value:
        return Decimal(bound).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)

    return cast


def _to_double(bound: Any, is_upper: bool) -> Value:
    return math.nextafter(float(bound), math.inf if is_upper else -math.inf)


def _to_single(bound: Any, is_upper: bool) -> Value:
    """Convert a bound to a 32-bit float, rounded outwards by at least one step."""
    value = float(bound)
    if math.isinf(value):
        return value
    margin = abs(value) * 2.0**-23 + 2.0**-149
    value = value + margin if is_upper else value - margin
    # Values beyond the largest float become infinite, for either bound.
    return math.copysign(math.inf, value) if abs(value) > _LARGEST_SINGLE else value


_LARGEST_SINGLE = float.fromhex("0x1.fffffep127")


def _floor_to(nanoseconds: int) -> _Bound:
    def cast(bound: int, upper: bool) -> Value:
        return bound // nanoseconds * nanoseconds

    return cast


def _floor_to_days(bound: int, is_upper: bool) -> Value:
    return bound // _DAY


def _days_to_nanos(bound: int, is_upper: bool) -> Value:
    return bound * _DAY
