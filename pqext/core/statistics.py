"""Statistics of column chunks: written from Arrow values, read as bounds for pruning.

Implements ``Statistics`` and the orders of ``ColumnOrder``: minimum and maximum leave out nulls and NaN, a zero
bound of a float has the sign that widens it, and types whose order is undefined have neither.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core import leaf
from pqext.core.encodings import plain
from pqext.core.logical import LeafType
from pqext.core.metadata import ColumnOrder, Statistics, Type
from pqext.core.predicate import Bounds

MAX_BINARY_BOUND = 64
"""Longer minima and maxima of byte arrays are cut to this many bytes, the maximum then rounded up."""


def of_values(leaf_type: LeafType, values: pa.Array, null_count: int) -> Statistics:
    """The statistics of a chunk's dense ``values``, beside ``null_count`` nulls."""
    statistics = Statistics(null_count=null_count)
    if pa.types.is_floating(values.type):
        statistics.nan_count = pc.sum(pc.is_nan(values), min_count=0).as_py()
        values = values.filter(pc.invert(pc.is_nan(values))) if statistics.nan_count else values
    if leaf_type.order == "undefined" or not len(values):
        return statistics
    bounds = pc.min_max(values.cast(pa.binary()) if pa.types.is_string(values.type) else values)
    low, high = bounds["min"], bounds["max"]
    if pa.types.is_floating(values.type):
        low = pa.scalar(-0.0, values.type) if low.as_py() == 0 else low
        high = pa.scalar(0.0, values.type) if high.as_py() == 0 else high
    low_bytes, high_bytes = _plain(leaf_type, low), _plain(leaf_type, high)
    exact_low = exact_high = True
    if leaf_type.physical == Type.BYTE_ARRAY and leaf_type.member != "DECIMAL":
        text = leaf_type.member == "STRING"
        if len(low_bytes) > MAX_BINARY_BOUND:
            low_bytes, exact_low = _cut(low_bytes, text), False
        if len(high_bytes) > MAX_BINARY_BOUND:
            raised = _raise(_cut(high_bytes, text), text)
            if raised is not None:
                high_bytes, exact_high = raised, False
    statistics.min_value, statistics.is_min_value_exact = low_bytes, exact_low
    statistics.max_value, statistics.is_max_value_exact = high_bytes, exact_high
    return statistics


def _plain(leaf_type: LeafType, value: pa.Scalar) -> bytes:
    encoded = bytes(plain.encode(leaf.to_physical(pa.array([value], value.type), leaf_type)))
    return encoded[4:] if leaf_type.physical == Type.BYTE_ARRAY else encoded


def _cut(value: bytes, text: bool) -> bytes:
    cut = MAX_BINARY_BOUND
    while text and cut and value[cut] & 0xC0 == 0x80:
        cut -= 1
    return value[:cut]


def _raise(value: bytes, text: bool) -> bytes | None:
    """The shortest value above everything that starts with ``value``; ``None`` when there is none."""
    if text:
        characters = value.decode()
        for end in range(len(characters), 0, -1):
            code = ord(characters[end - 1]) + 1
            code = 0xE000 if 0xD800 <= code <= 0xDFFF else code
            if code <= 0x10FFFF:
                return (characters[: end - 1] + chr(code)).encode()
        return None
    stripped = value.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None


def to_bounds(leaf_type: LeafType, statistics: Statistics | None, num_values: int, order: ColumnOrder | None) -> Bounds:
    """What a chunk's statistics prove, trusting no more than the order of the type allows.

    Without a ``ColumnOrder`` that is known, ``min_value`` and ``max_value`` have no meaning.
    """
    is_float = leaf_type.physical in (Type.FLOAT, Type.DOUBLE) or leaf_type.member == "FLOAT16"
    if statistics is None:
        return Bounds(num_values=num_values, has_nan=None if is_float else False)
    null_count = statistics.null_count
    if null_count is not None and not 0 <= null_count <= num_values:
        null_count = None
    has_nan = False
    if is_float:
        # Without nan_count it is not known whether NaN occurs beside the bounds.
        unknown: Any = None
        has_nan = statistics.nan_count > 0 if statistics.nan_count is not None else unknown
    low = high = None
    if leaf_type.order != "undefined":
        ordered = order is not None and (order.TYPE_ORDER or order.IEEE_754_TOTAL_ORDER) is not None
        low, high = _ordered(leaf_type, statistics, ordered)
    return Bounds(minimum=low, maximum=high, null_count=null_count, num_values=num_values, has_nan=has_nan)


def _ordered(leaf_type: LeafType, statistics: Statistics, ordered: bool) -> tuple[Any, Any]:
    low_raw, high_raw = (statistics.min_value, statistics.max_value) if ordered else (None, None)
    fixed = leaf_type.physical not in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
    if low_raw is None and high_raw is None and fixed and leaf_type.order == "signed":
        # The deprecated fields were compared as signed numbers, whatever the type.
        low_raw, high_raw = statistics.min, statistics.max
    low = leaf_type.comparison_value(low_raw) if low_raw is not None else None
    high = leaf_type.comparison_value(high_raw) if high_raw is not None else None
    if any(isinstance(bound, float) and bound != bound for bound in (low, high)):
        return None, None
    if low is not None and high is not None and low > high:  # type: ignore[operator]
        return None, None
    return low, high
