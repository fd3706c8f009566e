"""Bounds of single values as Iceberg's manifests store them, by the type of the table's column.

Spec: Apache Iceberg, Appendix D, "Binary single-value serialization"; metrics modes from the table properties.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from pqext.core.format.metadata import Type
from pqext.core.format.predicate import Value
from pqext.core.schema.types.logical import LeafType
from pqext.table_metrics.truncation import lower_bytes, lower_text, upper_bytes, upper_text


@dataclass(frozen=True, slots=True)
class Mode:
    """Which metrics a column has: none, its counts alone, or bounds too, of text and binary cut to ``length``."""

    kind: Literal["none", "counts", "bounds"]
    length: int | None = None


_TRUNCATE = re.compile(r"truncate\(([1-9][0-9]{0,8})\)")


def mode_of(text: str) -> Mode:
    """The metrics mode ``none``, ``counts``, ``truncate(N)`` or ``full``; ``ValueError`` for other text."""
    lower = text.strip().lower() if isinstance(text, str) else ""
    if lower == "none" or lower == "counts":
        return Mode("none" if lower == "none" else "counts")
    if lower == "full":
        return Mode("bounds")
    match = _TRUNCATE.fullmatch(lower)
    if match is None:
        raise ValueError(f"a metrics mode is none, counts, truncate(N) or full, not {text!r}")
    return Mode("bounds", int(match[1]))


def iceberg_type(leaf: LeafType) -> str | None:
    """The Iceberg type of a column that is stored so; ``None`` where Iceberg has none, as for unsigned 64 bits.

    Geometries and variants are told apart before this is asked.
    """
    member, physical = leaf.member, leaf.physical
    if not member and leaf.logical is not None:
        return None  # its annotation is not known or does not suit it
    if leaf.logical is not None:
        if leaf.logical.INTEGER is not None:
            width, signed = leaf.logical.INTEGER.bitWidth, leaf.logical.INTEGER.isSigned
            return "int" if width < 32 or (signed and width == 32) else "long" if signed or width == 32 else None
        if leaf.logical.DECIMAL is not None:
            precision, scale = leaf.logical.DECIMAL.precision, leaf.logical.DECIMAL.scale
            return f"decimal({precision}, {scale})" if 0 <= scale <= precision <= 38 else None
        if leaf.logical.TIMESTAMP is not None:
            zone = "timestamptz" if leaf.logical.TIMESTAMP.isAdjustedToUTC else "timestamp"
            return zone + "_ns" if leaf.logical.TIMESTAMP.unit.member == "NANOS" else zone
        return _LOGICAL.get(member)
    if physical == Type.FIXED_LEN_BYTE_ARRAY:
        return f"fixed[{leaf.length}]"
    return _PHYSICAL[physical]


_LOGICAL = {
    "DATE": "date", "TIME": "time", "STRING": "string", "ENUM": "string", "JSON": "string", "BSON": "binary",
    "UUID": "uuid", "UNKNOWN": "unknown",
}
_PHYSICAL = {
    Type.BOOLEAN: "boolean", Type.INT32: "int", Type.INT64: "long", Type.INT96: "timestamptz", Type.FLOAT: "float",
    Type.DOUBLE: "double", Type.BYTE_ARRAY: "binary",
}
_SUITS = {
    ("int", "long"), ("float", "double"), ("timestamp", "timestamp_ns"), ("timestamp_ns", "timestamp"),
    ("timestamptz", "timestamptz_ns"), ("timestamptz_ns", "timestamptz"), ("binary", "string"), ("fixed[16]", "uuid"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def suits(stored: str, table: str) -> bool:
    """May a column of the table type ``table`` be read from values of type ``stored``, by promotion at most?"""
    if stored == table or (stored, table) in _SUITS:
        return True
    own, wider = _DECIMAL.fullmatch(stored), _DECIMAL.fullmatch(table)
    return bool(own and wider and own[2] == wider[2] and int(own[1]) <= int(wider[1]))


_NUMBERS = {"int": "<i", "date": "<i", "long": "<q", "float": "<f", "double": "<d", "boolean": "<?"}
_MICROSECONDS = frozenset({"time", "timestamp", "timestamptz"})


def serialize(table: str, value: Value, mode: Mode, *, upper: bool) -> bytes | None:
    """A bound of a column of type ``table``; ``None`` where the type cannot hold it, or it cannot be cut on its side.

    ``value`` is in the form in which values compare: times in nanoseconds, which a type of microseconds rounds outward.
    """
    if table == "string":
        text = (upper_text if upper else lower_text)(_bytes(value), mode.length)
        return None if text is None else text.encode()
    if table == "binary":
        return (upper_bytes if upper else lower_bytes)(_bytes(value), mode.length)
    if table.startswith("fixed["):
        return _bytes(value)
    if (decimal := _DECIMAL.fullmatch(table)) is not None:
        return _decimal(value, int(decimal[2]))
    if table in _MICROSECONDS or table.endswith("_ns"):
        if not isinstance(value, int):
            return None
        unit = 1 if table.endswith("_ns") else 1_000
        return _packed("<q", -(-value // unit) if upper else value // unit)
    code = _NUMBERS.get(table)
    return None if code is None else _packed(code, value)


def uuid_bounds(low: bytes, high: bytes) -> tuple[bytes, bytes] | None:
    """Bounds of UUIDs in the order of their unsigned bytes that hold in the order of pairs of signed numbers as well.

    Readers compare UUIDs in the one order or the other. The first eight bytes are moved outward by one, so that the
    last eight do not count. ``None`` where the orders differ: where the first bit is set in some UUIDs and not in all.
    """
    first, last = (int.from_bytes(bound[:8], "big") for bound in (low, high))
    if first >> 63 != last >> 63 or first in _HALVES or last + 1 in _HALVES:
        return None
    return (first - 1).to_bytes(8, "big") + bytes(8), (last + 1).to_bytes(8, "big") + bytes(8)


_HALVES = (0, 1 << 63, 1 << 64)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"a bound of text or binary is bytes, not {type(value).__name__}")
    return value


def _packed(code: str, value: Value) -> bytes | None:
    try:
        packed = struct.pack(code, value)
    except (struct.error, OverflowError):
        return None
    return packed if struct.unpack(code, packed)[0] == value else None


def _decimal(value: Value, scale: int) -> bytes | None:
    unscaled = unscaled_of(value, scale)
    if unscaled is None:
        return None
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def unscaled_of(value: Value, scale: int) -> int | None:
    """The integer that stands for a decimal of ``scale`` digits after the point; ``None`` where it takes more."""
    if not isinstance(value, (Decimal, int)):
        return None
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        return None
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number
