"""Order of a column's values: how its minima and maxima are compared, written and interpreted.

Implements ``ColumnOrder``: the order of the type, IEEE 754's total order for floating-point columns, and the
chronological order of INT96 timestamps. A column with an undefined or unknown order has no bounds.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pqext.core.format.metadata import ColumnOrder, IEEE754TotalOrder, Int96TimestampOrder, Type, TypeDefinedOrder
from pqext.core.format.predicate import Value
from pqext.core.schema.types.logical import LeafType

Kind = Literal["undefined", "type", "total", "chronological"]
FloatOrder = Literal["type", "ieee754"]

DECIMAL_BYTES = 64
"""Maximum size of decimal bounds. Longer bounds are ignored, because no decimal needs more bytes."""

_BITS: dict[int, tuple[str, int]] = {2: ("<h", 0x7FFF), 4: ("<i", 0x7FFFFFFF), 8: ("<q", 0x7FFFFFFFFFFFFFFF)}
_NUMBERS = {Type.INT32: ("i", "I"), Type.INT64: ("q", "Q"), Type.FLOAT: ("f", "f"), Type.DOUBLE: ("d", "d")}
"""Format characters for signed and unsigned numbers in :mod:`struct` and numpy."""
_WIDTHS = {Type.INT32: 4, Type.INT64: 8, Type.FLOAT: 4, Type.DOUBLE: 8}
_AS_STORED = frozenset({"", "INTEGER", "DATE", "STRING", "ENUM", "JSON", "BSON", "UUID", "TIME", "TIMESTAMP"})
"""Logical types whose values compare like the physical type: integers by their sign, times in their unit."""


def is_float(leaf: LeafType) -> bool:
    """Return whether values of the leaf can be NaN."""
    return leaf.physical in (Type.FLOAT, Type.DOUBLE) or leaf.member == "FLOAT16"


@dataclass(frozen=True, slots=True)
class BoundOrder:
    """Order of one column's bounds. ``kind`` is ``undefined`` if the bounds have no meaning."""

    leaf: LeafType
    kind: Kind

    @property
    def is_defined(self) -> bool:
        """Whether minima and maxima are meaningful."""
        return self.kind != "undefined"

    @property
    def is_float(self) -> bool:
        """Whether values can be NaN."""
        return is_float(self.leaf)

    @property
    def numbers(self) -> np.dtype[Any] | None:
        """Data type of bounds that are stored as plain numbers; None for other bounds."""
        leaf = self.leaf
        is_number = leaf.member in _AS_STORED and leaf.physical in _WIDTHS and leaf.calendar is None
        if self.kind != "type" or not is_number:
            return None
        return np.dtype("<" + _NUMBERS[leaf.physical][leaf.order == "unsigned"])

    def value(self, raw: bytes) -> Value | None:
        """Convert a bound to comparison form; return None if it is not a value of this type."""
        return self.values([raw])[0]

    def values(self, raws: Sequence[bytes]) -> list[Value | None]:
        """Convert bounds to comparison form. The result is None for each bound that is not a value of this type."""
        leaf, member = self.leaf, self.leaf.member
        physical = leaf.physical
        if member in _AS_STORED:
            if physical == Type.BYTE_ARRAY:
                return list(raws)
            if physical == Type.FIXED_LEN_BYTE_ARRAY:
                return [raw if len(raw) == leaf.length else None for raw in raws]
            width = _WIDTHS.get(physical)
            if width is not None and all(len(raw) == width for raw in raws):
                code = _NUMBERS[physical][leaf.order == "unsigned"]
                numbers = struct.unpack(f"<{len(raws)}{code}", b"".join(raws))
                unit = leaf.nanoseconds
                return list(numbers) if unit == 1 else [number * unit for number in numbers]
        return [leaf.comparison_value(raw) if self._may_be_bound(raw, member) else None for raw in raws]

    def _may_be_bound(self, raw: bytes, member: str) -> bool:
        """Return whether the bytes may be a bound of this type."""
        physical = self.leaf.physical
        if physical == Type.FIXED_LEN_BYTE_ARRAY and len(raw) != self.leaf.length:
            return False
        if member == "DECIMAL" and len(raw) > DECIMAL_BYTES:
            return False
        return physical != Type.BOOLEAN or raw in (b"\0", b"\1")

    def keys(self, raws: Sequence[bytes]) -> list[Any]:
        """Return sort keys of bounds in this order. The key is None for each bound that is not a value of this type."""
        if self.kind != "total":
            return list(self.values(raws))
        width = self.leaf.width
        assert width is not None
        code, mask = _BITS[width]
        return [_total_key(struct.unpack(code, raw)[0], mask) if len(raw) == width else None for raw in raws]

    def key(self, raw: bytes) -> Any:
        """Return the sort key of a bound; None if the bound is not a value of this type."""
        return self.keys([raw])[0]

    def column_order(self) -> ColumnOrder:
        """Return the ColumnOrder for the footer. An undefined order becomes the order of the type."""
        if self.kind == "total":
            return ColumnOrder(IEEE_754_TOTAL_ORDER=IEEE754TotalOrder())
        if self.kind == "chronological":
            return ColumnOrder(INT96_TIMESTAMP_ORDER=Int96TimestampOrder())
        return ColumnOrder(TYPE_ORDER=TypeDefinedOrder())


def _total_key(bits: int, mask: int) -> int:
    return bits ^ mask if bits < 0 else bits


def written_order(leaf: LeafType, float_order: FloatOrder = "type") -> BoundOrder:
    """Return the order of bounds that are written for ``leaf``. ``float_order`` applies to floating-point columns."""
    if is_float(leaf):
        return BoundOrder(leaf, "total" if float_order == "ieee754" else "type")
    if leaf.order == "undefined":
        return BoundOrder(leaf, "undefined")
    return BoundOrder(leaf, "chronological" if leaf.physical == Type.INT96 else "type")


def declared_order(leaf: LeafType, order: ColumnOrder | None) -> BoundOrder:
    """Return the order for ``leaf`` that a file's ``ColumnOrder`` declares.

    The order is undefined if ``order`` is None or does not match the type.
    """
    kind: Kind = "undefined"
    if order is not None:
        if order.IEEE_754_TOTAL_ORDER is not None:
            kind = "total" if is_float(leaf) else "undefined"
        elif order.INT96_TIMESTAMP_ORDER is not None:
            kind = "chronological" if leaf.physical == Type.INT96 and leaf.order != "undefined" else "undefined"
        elif order.TYPE_ORDER is not None and leaf.physical != Type.INT96:
            kind = "type" if is_float(leaf) or leaf.order != "undefined" else "undefined"
    return BoundOrder(leaf, kind)
