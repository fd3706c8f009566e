"""Skipping row groups by a question about a path of a variant (Variant Shredding, "Data Skipping").

A row group is skipped on the evidence of two columns, the leaf's ``typed_value`` and the ``value`` beside
it. That these two are enough follows from the layout. Take a row and a path ``$.a.b``:

- A value that is an object has a non-null ``typed_value`` group wherever there is one, and its shredded fields
  never stand in the ``value`` beside that group. So ``a.b`` stands in the columns of ``b``, whatever the
  residuals of the root and of ``a`` hold.
- Where the group of the root or of ``a`` is null, the value there is no object (or missing), so that it has no
  ``b``: the result is null. Both columns of ``b`` are null in such a row, and count as nulls.
- So in every row the result is the cast ``typed_value`` where that is not null, else the cast ``value``, else
  null. When ``value`` is all null, or holds nothing but variant nulls, whose cast is null, each result that is
  not null comes from ``typed_value`` and lies within its bounds.

``IS NULL`` is also true of values that do not cast, so that only a leaf without nulls whose every value casts
refuses it. What is not known is answered True.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa

from pqext.core.errors import ParquetError
from pqext.core.predicate import Bounds, IsNull, Predicate, Value
from pqext.core.predicate import may_match as core_may_match
from pqext.core.reader import RowGroup
from pqext.core.schema import SchemaNode
from pqext.variant.cast import target_type
from pqext.variant.path import Path, as_path, format_path
from pqext.variant.schema import leaf_type

VARIANT_NULL = b"\0"

_EXACT = Context(prec=200)
_DAY = 86_400_000_000_000


@dataclass(frozen=True, slots=True, init=False)
class VariantPredicate:
    """``predicate`` on the value at ``path`` cast to ``type``, as ``pqext.variant.get`` casts it.

    The predicate's literals are in the comparison form of ``type`` (see ``pqext.core.predicate``).
    """

    path: Path
    type: pa.DataType
    predicate: Predicate

    def __init__(self, path: str | Sequence[str | int], type: str | pa.DataType, predicate: Predicate) -> None:
        object.__setattr__(self, "path", as_path(path))
        object.__setattr__(self, "type", target_type(type))
        object.__setattr__(self, "predicate", predicate)

    def __str__(self) -> str:
        return f"{format_path(self.path)} as {self.type}: {self.predicate}"


def find_group(node: SchemaNode, path: Path) -> SchemaNode | None:
    """The group of ``value`` and ``typed_value`` that holds what stands at ``path``; None when it has no group."""
    for step in path:
        typed = node.child("typed_value")
        if typed is None or typed.is_leaf or not isinstance(step, str) or typed.logical_name:
            return None
        member = typed.child(step)
        if member is None or member.is_leaf:
            return None
        node = member
    return node


def may_match(node: SchemaNode, row_group: RowGroup, predicate: VariantPredicate) -> bool:
    """Can a row of the row group satisfy ``predicate`` on the VARIANT group ``node``? ``False`` is a proof."""
    if node.max_repetition_level:
        return True  # a variant in a list: the columns do not hold one value a row
    group = find_group(node, predicate.path)
    if group is None:
        return True
    value, typed = group.child("value"), group.child("typed_value")
    if typed is not None and not typed.is_leaf:
        return True
    is_variant = isinstance(predicate.type, pa.StructType)
    try:
        residual = row_group.chunk(value).bounds() if value is not None else _NOTHING
        bounds = row_group.chunk(typed).bounds() if typed is not None else _NOTHING
    except ParquetError:
        return True  # statistics that cannot be read prove nothing; reading the column will say why
    if isinstance(predicate.predicate, IsNull):
        return typed is None or bounds.null_count != 0 or not _always_casts(_leaf(typed), predicate.type)
    if not (residual.all_null or (not is_variant and _only_variant_nulls(residual))):
        return True
    if bounds.all_null or typed is None:
        return False
    cast = _monotone_cast(_leaf(typed), predicate.type)
    if cast is None:
        return True
    return core_may_match(predicate.predicate, _cast_bounds(bounds, cast))


_NOTHING = Bounds(null_count=0, num_values=0)
"""A column that does not exist holds nothing."""


def _only_variant_nulls(residual: Bounds) -> bool:
    """Is every value that is there a variant null?

    No value sorts above ``00``, and the only other bytes that do not, the empty string, are no value.
    """
    return residual.maximum == VARIANT_NULL


def _leaf(node: SchemaNode) -> pa.DataType | None:
    """The leaf type of a ``typed_value`` column, None when it is none that a variant may have."""
    try:
        return leaf_type(node.leaf_type.arrow_type())
    except (ParquetError, ValueError):
        return None


# --- Casts of bounds -----------------------------------------------------------------------------

_Cast = Callable[[Any, bool], Value]
"""Brings a bound to the type asked for; the second argument says whether it is the upper one."""


def _is_exact(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_decimal(type))


def _always_casts(leaf: pa.DataType | None, type: pa.DataType) -> bool:
    """Does every value of the leaf cast to ``type``?"""
    if leaf is None:
        return False
    return bool(leaf == type or isinstance(type, pa.StructType) or (_is_exact(leaf) and pa.types.is_float64(type)))


def _monotone_cast(leaf: pa.DataType | None, type: pa.DataType) -> _Cast | None:
    """How bounds of the leaf bound the values cast to ``type``: only for casts that keep the order."""
    if leaf is None or isinstance(type, pa.StructType):
        return None
    if leaf == type:
        return _unchanged
    if _is_exact(leaf):
        if pa.types.is_integer(type):
            return _to_integer
        if pa.types.is_decimal(type):
            return _to_decimal(type.scale)
    if _is_exact(leaf) or pa.types.is_floating(leaf):
        return _to_double if pa.types.is_float64(type) else _to_single if pa.types.is_float32(type) else None
    if pa.types.is_string(leaf) or pa.types.is_binary(leaf):
        return _unchanged if pa.types.is_string(type) or pa.types.is_binary(type) else None
    if pa.types.is_timestamp(leaf):
        if pa.types.is_timestamp(type):
            return _floor_to_micros if type.unit == "us" else _unchanged
        return _floor_to_days if pa.types.is_date32(type) else None
    if pa.types.is_date32(leaf) and pa.types.is_timestamp(type):
        return _days_to_nanos
    return None


def _unchanged(bound: Value, upper: bool) -> Value:
    return bound


def _to_integer(bound: Any, upper: bool) -> Value:
    return int(Decimal(bound).to_integral_value(rounding=ROUND_DOWN, context=_EXACT))


def _to_decimal(scale: int) -> _Cast:
    def cast(bound: Any, upper: bool) -> Value:
        return Decimal(bound).quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_UP, context=_EXACT)

    return cast


def _to_double(bound: Any, upper: bool) -> Value:
    return math.nextafter(float(bound), math.inf if upper else -math.inf)


def _to_single(bound: Any, upper: bool) -> Value:
    """Rounded outwards by at least one step of a 32-bit float."""
    value = float(bound)
    if math.isinf(value):
        return value
    margin = abs(value) * 2.0**-23 + 2.0**-149
    return value + margin if upper else value - margin


def _floor_to_micros(bound: Any, upper: bool) -> Value:
    return bound // 1000 * 1000  # type: ignore[no-any-return]


def _floor_to_days(bound: Any, upper: bool) -> Value:
    return bound // _DAY  # type: ignore[no-any-return]


def _days_to_nanos(bound: Any, upper: bool) -> Value:
    return bound * _DAY  # type: ignore[no-any-return]


def _cast_bounds(bounds: Bounds, cast: _Cast) -> Bounds:
    return replace(
        bounds,
        minimum=None if bounds.minimum is None else cast(bounds.minimum, False),
        maximum=None if bounds.maximum is None else cast(bounds.maximum, True),
    )
