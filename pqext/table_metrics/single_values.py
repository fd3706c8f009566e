"""Serialise bounds for Iceberg manifests, according to the type of the table's column.

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


@dataclass(frozen=True, slots=True)
class Mode:
    """Metrics mode of a column: none, counts, or counts and bounds with strings and binary truncated to ``length``."""

    kind: Literal["none", "counts", "bounds"]
    length: int | None = None


_TRUNCATE = re.compile(r"truncate\(([1-9][0-9]{0,8})\)")


def parse_mode(text: str) -> Mode:
    """Parse the metrics mode ``none``, ``counts``, ``truncate(N)`` or ``full``.

    Raises ``ValueError`` for other text.
    """
    lower = text.strip().lower() if isinstance(text, str) else ""
    if lower == "none" or lower == "counts":
        return Mode("none" if lower == "none" else "counts")
    if lower == "full":
        return Mode("bounds")
    match = _TRUNCATE.fullmatch(lower)
    if match is None:
        raise ValueError(f"metrics mode must be none, counts, truncate(N) or full, not {text!r}")
    return Mode("bounds", int(match[1]))


def iceberg_type(leaf: LeafType) -> str | None:
    """Return the Iceberg type of a stored column, or None if Iceberg does not support it, such as unsigned 64 bits.

    Geometries and variants are handled by the caller.
    """
    member, physical = leaf.member, leaf.physical
    if not member and leaf.logical is not None:
        return None  # unknown or unsuitable annotation
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
_PROMOTIONS = {
    ("int", "long"), ("float", "double"), ("timestamp", "timestamp_ns"), ("timestamp_ns", "timestamp"),
    ("timestamptz", "timestamptz_ns"), ("timestamptz_ns", "timestamptz"), ("binary", "string"), ("fixed[16]", "uuid"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def can_promote(stored_type: str, table_type: str) -> bool:
    """Return whether Iceberg can promote values of type ``stored_type`` to the type ``table_type`` of the table."""
    if stored_type == table_type or (stored_type, table_type) in _PROMOTIONS:
        return True
    narrow, wide = _DECIMAL.fullmatch(stored_type), _DECIMAL.fullmatch(table_type)
    return bool(narrow and wide and narrow[2] == wide[2] and int(narrow[1]) <= int(wide[1]))


_NUMBERS = {"int": "<i", "date": "<i", "long": "<q", "float": "<f", "double": "<d", "boolean": "<?"}
_MICROSECONDS = frozenset({"time", "timestamp", "timestamptz"})


def serialize(table_type: str, value: Value, mode: Mode, *, upper: bool) -> bytes | None:
    """Serialise a bound for the type ``table_type``.

    Return None if the type cannot represent the bound, or if the bound cannot be truncated.

    ``value`` is in the representation used for comparisons: times in nanoseconds, rounded outward to microseconds.
    """
    if table_type == "string":
        text = (truncate_upper_text if upper else truncate_lower_text)(_check_bytes(value), mode.length)
        return None if text is None else text.encode()
    if table_type == "binary":
        return (truncate_upper_bytes if upper else truncate_lower_bytes)(_check_bytes(value), mode.length)
    if table_type.startswith("fixed["):
        return _check_bytes(value)
    if (decimal := _DECIMAL.fullmatch(table_type)) is not None:
        return _encode_decimal(value, int(decimal[2]))
    if table_type in _MICROSECONDS or table_type.endswith("_ns"):
        if not isinstance(value, int):
            return None
        unit = 1 if table_type.endswith("_ns") else 1_000
        return _pack("<q", -(-value // unit) if upper else value // unit)
    code = _NUMBERS.get(table_type)
    return None if code is None else _pack(code, value)


def widen_uuid_bounds(low: bytes, high: bytes) -> tuple[bytes, bytes] | None:
    """Widen UUID bounds to be valid both for unsigned bytes and for pairs of signed 64-bit integers.

    Readers use one order or the other. The first eight bytes are moved outward by one, so the last eight are
    irrelevant. Return None if that is not possible, or if the first bit of the bounds differs, as the orders then
    differ.
    """
    first, last = (int.from_bytes(bound[:8], "big") for bound in (low, high))
    if first >> 63 != last >> 63 or first in _HALVES or last + 1 in _HALVES:
        return None
    return (first - 1).to_bytes(8, "big") + bytes(8), (last + 1).to_bytes(8, "big") + bytes(8)


_HALVES = (0, 1 << 63, 1 << 64)


def _check_bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"bounds of strings and binary must be bytes, not {type(value).__name__}")
    return value


def _pack(code: str, value: Value) -> bytes | None:
    try:
        packed = struct.pack(code, value)
    except (struct.error, OverflowError):
        return None
    return packed if struct.unpack(code, packed)[0] == value else None


def _encode_decimal(value: Value, scale: int) -> bytes | None:
    unscaled = unscaled_value(value, scale)
    if unscaled is None:
        return None
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return unscaled.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def unscaled_value(value: Value, scale: int) -> int | None:
    """Return the unscaled integer of a number with ``scale`` fractional digits; None if there are more digits."""
    if not isinstance(value, (Decimal, int)):
        return None
    sign, digits, exponent = Decimal(value).as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        return None
    number: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -number if sign else number


LAST = "\U0010ffff"
"""Greatest code point."""


def truncate_lower_text(raw: bytes, length: int | None) -> str | None:
    """Truncate a lower bound to ``length`` code points. Return None if ``raw`` is not UTF-8.

    ``raw`` may end within a character, which is omitted.
    """
    text = raw.decode("utf-8", "ignore") if _is_truncated_text(raw) else _decode_text(raw)
    return text if text is None or length is None else text[:length]


def _decode_text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_truncated_text(raw: bytes) -> bool:
    """Return whether ``raw`` is UTF-8 except for an incomplete last character."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def truncate_upper_text(raw: bytes, length: int | None) -> str | None:
    """Truncate an upper bound to ``length`` code points, rounded up.

    The last code point that is not the maximum is incremented. Return None if all code points are the maximum, or if
    ``raw`` is not UTF-8.
    """
    text = _decode_text(raw)
    if text is None or length is None or len(text) <= length:
        return text
    for end in range(length, 0, -1):
        code = ord(text[end - 1]) + 1
        code = 0xE000 if 0xD800 <= code <= 0xDFFF else code
        if code <= 0x10FFFF:
            return text[: end - 1] + chr(code)
    return None


def truncate_upper_text_for_delta(raw: bytes, length: int) -> str | None:
    """Truncate an upper bound to ``length`` code points followed by the maximum code point, like Delta's writers.

    The result is longer if the string continues with maximum code points. Return None if ``raw`` is not UTF-8.
    """
    text = _decode_text(raw)
    if text is None or len(text) <= length:
        return text
    while length < len(text) and text[length] == LAST:
        length += 1
    return text[:length] + LAST if length < len(text) else text


def truncate_lower_bytes(raw: bytes, length: int | None) -> bytes:
    """Return the first ``length`` bytes of ``raw``."""
    return raw[:length]


def truncate_upper_bytes(raw: bytes, length: int | None) -> bytes | None:
    """Truncate an upper bound to ``length`` bytes, rounded up. Return None if all of these bytes are 0xff."""
    if length is None or len(raw) <= length:
        return raw
    head = raw[:length].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
