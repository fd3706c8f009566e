"""Logical types: how a leaf's stored values are meant, what Arrow type shows them, and how they compare.

Implements the LogicalTypes document: the translation between LogicalType and the older ConvertedType in both
directions, the Arrow type of each leaf, and the order of its values.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from pqext.core.errors import CorruptFileError, UnsupportedError
from pqext.core.metadata import (
    ConvertedType,
    DateType,
    DecimalType,
    IntType,
    ListType,
    LogicalType,
    MapType,
    MicroSeconds,
    MilliSeconds,
    NanoSeconds,
    SchemaElement,
    StringType,
    TimestampType,
    TimeType,
    TimeUnit,
    Type,
    UUIDType,
)
from pqext.core.predicate import Value

Order = Literal["signed", "unsigned", "undefined"]

UUID_MARK = {b"ARROW:extension:name": b"arrow.uuid", b"ARROW:extension:metadata": b""}

_NANOSECONDS = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}
_ARROW_UNIT = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_TIME_UNIT = {
    "ms": TimeUnit(MILLIS=MilliSeconds()),
    "us": TimeUnit(MICROS=MicroSeconds()),
    "ns": TimeUnit(NANOS=NanoSeconds()),
}

_CONVERTED: dict[int, LogicalType] = {
    ConvertedType.UTF8: LogicalType(STRING=StringType()),
    ConvertedType.MAP: LogicalType(MAP=MapType()),
    ConvertedType.MAP_KEY_VALUE: LogicalType(MAP=MapType()),
    ConvertedType.LIST: LogicalType(LIST=ListType()),
    ConvertedType.DATE: LogicalType(DATE=DateType()),
    ConvertedType.TIME_MILLIS: LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=_TIME_UNIT["ms"])),
    ConvertedType.TIME_MICROS: LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=_TIME_UNIT["us"])),
    ConvertedType.TIMESTAMP_MILLIS: LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=_TIME_UNIT["ms"])),
    ConvertedType.TIMESTAMP_MICROS: LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=_TIME_UNIT["us"])),
    **{
        ConvertedType[f"{sign}_{width}"]: LogicalType(INTEGER=IntType(bitWidth=width, isSigned=sign == "INT"))
        for sign in ("INT", "UINT")
        for width in (8, 16, 32, 64)
    },
}
_CONVERTED_BY_MEMBER = {
    "STRING": ConvertedType.UTF8,
    "MAP": ConvertedType.MAP,
    "LIST": ConvertedType.LIST,
    "DECIMAL": ConvertedType.DECIMAL,
    "DATE": ConvertedType.DATE,
}


def from_element(element: SchemaElement) -> LogicalType | None:
    """The logical type of a schema element, its ConvertedType translated where no LogicalType is written."""
    if element.logicalType is not None and element.logicalType.member is not None:
        return element.logicalType
    if element.converted_type is None or element.logicalType is not None:
        return element.logicalType
    if element.converted_type == ConvertedType.DECIMAL:
        return LogicalType(DECIMAL=DecimalType(scale=element.scale or 0, precision=element.precision or 0))
    return _CONVERTED.get(element.converted_type)


def converted_type(logical: LogicalType | None) -> ConvertedType | None:
    """The ConvertedType that old readers need beside ``logical``, if there is one."""
    if logical is None or logical.member is None:
        return None
    if logical.INTEGER is not None:
        return ConvertedType[f"{'INT' if logical.INTEGER.isSigned else 'UINT'}_{logical.INTEGER.bitWidth}"]
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        # Local times take the legacy annotation too, so that old readers keep the unit.
        return ConvertedType.__members__.get(f"{logical.member}_{timed.unit.member}")
    return _CONVERTED_BY_MEMBER.get(logical.member)


@dataclass(frozen=True, slots=True)
class LeafType:
    """The stored type of a leaf: physical type, its length when fixed, and the logical type upon it."""

    physical: Type
    length: int | None = None
    logical: LogicalType | None = None

    @property
    def member(self) -> str:
        """The name of the logical type, empty when there is none."""
        return (self.logical.member or "") if self.logical is not None else ""

    @property
    def width(self) -> int | None:
        """Bytes of one stored value in memory, ``None`` for BYTE_ARRAY; booleans take one."""
        if self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            return self.length
        return _WIDTHS[self.physical]

    @property
    def order(self) -> Order:
        """How values compare in statistics (LogicalTypes, the sort order of each type)."""
        if self.member in _UNDEFINED_ORDER or self.physical == Type.INT96:
            return "undefined"
        if self.logical is not None and self.logical.INTEGER is not None:
            return "signed" if self.logical.INTEGER.isSigned else "unsigned"
        if self.member == "DECIMAL":
            return "signed"
        if self.logical is not None and (self.member == "" or self.member not in _KNOWN):
            return "undefined"
        return "unsigned" if self.physical in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY) else "signed"

    def arrow_type(self) -> pa.DataType:
        """The Arrow type that shows the values; unknown logical types show the physical type."""
        if self.logical is not None:
            shown = _arrow_logical(self)
            if shown is not None:
                return shown
        if self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            return pa.binary(self.length)
        if self.physical not in _ARROW_PHYSICAL:
            raise UnsupportedError(f"physical type {self.physical!r} cannot be read", feature=str(self.physical))
        return _ARROW_PHYSICAL[self.physical]

    def comparison_value(self, raw: bytes) -> Value | None:
        """A PLAIN-encoded statistics value in the form of :data:`pqext.core.predicate.Value`.

        ``None`` when the bytes have the wrong length for the type.
        """
        if self.physical == Type.BYTE_ARRAY or self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            if self.member == "DECIMAL":
                return self._scaled(int.from_bytes(raw, "big", signed=True)) if raw else None
            return raw
        if len(raw) != _STATISTICS_WIDTHS.get(self.physical):
            return None
        if self.physical == Type.BOOLEAN:
            return raw != b"\0"
        if self.physical in (Type.FLOAT, Type.DOUBLE):
            return float(struct.unpack("<f" if self.physical == Type.FLOAT else "<d", raw)[0])
        number = int.from_bytes(raw, "little", signed=self.order != "unsigned")
        if self.logical is None:
            return number
        if self.member == "DECIMAL":
            return self._scaled(number)
        timed = self.logical.TIME or self.logical.TIMESTAMP
        return number * _NANOSECONDS[timed.unit.member] if timed is not None and timed.unit.member else number

    def _scaled(self, unscaled: int) -> Decimal:
        assert self.logical is not None
        assert self.logical.DECIMAL is not None
        digits = tuple(int(digit) for digit in str(abs(unscaled)))
        return Decimal((int(unscaled < 0), digits, -self.logical.DECIMAL.scale))


_WIDTHS: dict[int, int | None] = {
    Type.BOOLEAN: 1,
    Type.INT32: 4,
    Type.INT64: 8,
    Type.INT96: 12,
    Type.FLOAT: 4,
    Type.DOUBLE: 8,
    Type.BYTE_ARRAY: None,
}
_STATISTICS_WIDTHS: dict[int, int] = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.FLOAT: 4, Type.DOUBLE: 8}
_ARROW_PHYSICAL: dict[int, pa.DataType] = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.BYTE_ARRAY: pa.binary(),
}
_KNOWN = frozenset({"STRING", "ENUM", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "INTEGER", "JSON", "BSON", "UUID"})
_UNDEFINED_ORDER = frozenset({"GEOMETRY", "GEOGRAPHY", "INTERVAL", "UNKNOWN"})


def max_precision(width: int) -> int:
    """Decimal digits that ``width`` bytes of two's complement hold whatever the digits are."""
    return len(str((1 << (8 * width - 1)) - 1)) - 1


def _arrow_logical(leaf: LeafType) -> pa.DataType | None:
    logical, physical = leaf.logical, leaf.physical
    assert logical is not None
    if (logical.STRING or logical.ENUM or logical.JSON) is not None and physical == Type.BYTE_ARRAY:
        return pa.string()
    if logical.DECIMAL is not None:
        return _arrow_decimal(leaf, logical.DECIMAL)
    if logical.DATE is not None and physical == Type.INT32:
        return pa.date32()
    if logical.INTEGER is not None:
        width, base = logical.INTEGER.bitWidth, 32 if physical == Type.INT32 else 64 if physical == Type.INT64 else 0
        if width not in (8, 16, 32, 64) or (width == 64) != (base == 64) or not base:
            raise CorruptFileError(f"INTEGER({width}) does not fit physical type {Type(physical).name}")
        return pa.type_for_alias(f"{'' if logical.INTEGER.isSigned else 'u'}int{width}")
    if logical.TIME is not None or logical.TIMESTAMP is not None:
        return _arrow_time(leaf)
    if logical.UUID is not None and physical == Type.FIXED_LEN_BYTE_ARRAY and leaf.length == 16:
        return pa.binary(16)
    return None


def _arrow_decimal(leaf: LeafType, decimal: DecimalType) -> pa.DataType:
    precision, scale = decimal.precision, decimal.scale
    if precision < 1 or not 0 <= scale <= precision:
        raise CorruptFileError(f"DECIMAL({precision}, {scale}) is not a decimal type")
    if leaf.width is not None and precision > max_precision(leaf.width):
        raise CorruptFileError(f"DECIMAL({precision}, {scale}) does not fit {leaf.width} bytes")
    if precision > 38:
        raise UnsupportedError(f"DECIMAL({precision}, {scale}) has more than 38 digits", feature="decimal256")
    return pa.decimal128(precision, scale)


def _arrow_time(leaf: LeafType) -> pa.DataType:
    assert leaf.logical is not None
    timed = leaf.logical.TIME or leaf.logical.TIMESTAMP
    assert timed is not None
    unit = _ARROW_UNIT.get(timed.unit.member or "")
    if unit is None:
        raise UnsupportedError("a time unit that is not known", feature="time unit")
    if leaf.logical.TIMESTAMP is not None and leaf.physical == Type.INT64:
        return pa.timestamp(unit, "UTC" if timed.isAdjustedToUTC else None)
    if leaf.logical.TIME is not None and leaf.physical == (Type.INT32 if unit == "ms" else Type.INT64):
        return pa.time32("ms") if unit == "ms" else pa.time64(unit)
    raise CorruptFileError(f"{leaf.member} in {unit} does not fit physical type {Type(leaf.physical).name}")


def from_arrow(arrow: pa.DataType, metadata: dict[bytes, bytes] | None = None) -> LeafType | None:
    """How values of a non-nested Arrow type are stored; ``None`` when they cannot be.

    A field's ``PARQUET:physical_type`` metadata chooses among the four stored forms of a decimal.
    """
    types = pa.types
    if types.is_decimal(arrow):
        return _decimal_leaf(arrow, (metadata or {}).get(b"PARQUET:physical_type"))
    if types.is_integer(arrow):
        signed = types.is_signed_integer(arrow)
        physical = Type.INT64 if arrow.bit_width == 64 else Type.INT32
        plain = signed and arrow.bit_width >= 32
        return LeafType(
            physical,
            logical=None if plain else LogicalType(INTEGER=IntType(bitWidth=arrow.bit_width, isSigned=signed)),
        )
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return LeafType(Type.BYTE_ARRAY, logical=LogicalType(STRING=StringType()))
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return LeafType(Type.BYTE_ARRAY)
    if types.is_fixed_size_binary(arrow) and arrow.byte_width:  # the format has no length 0
        uuid = arrow.byte_width == 16 and (metadata or {}).get(b"ARROW:extension:name") == b"arrow.uuid"
        return LeafType(
            Type.FIXED_LEN_BYTE_ARRAY, arrow.byte_width, LogicalType(UUID=UUIDType()) if uuid else None
        )
    if types.is_boolean(arrow):
        return LeafType(Type.BOOLEAN)
    if types.is_float32(arrow):
        return LeafType(Type.FLOAT)
    if types.is_float64(arrow):
        return LeafType(Type.DOUBLE)
    if types.is_date(arrow):
        return LeafType(Type.INT32, logical=LogicalType(DATE=DateType()))
    if types.is_timestamp(arrow):
        unit = _TIME_UNIT["ms" if arrow.unit == "s" else arrow.unit]
        return LeafType(
            Type.INT64, logical=LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=arrow.tz is not None, unit=unit))
        )
    if types.is_time(arrow):
        unit = _TIME_UNIT["ms" if arrow.unit == "s" else arrow.unit]
        physical = Type.INT32 if types.is_time32(arrow) else Type.INT64
        return LeafType(physical, logical=LogicalType(TIME=TimeType(isAdjustedToUTC=False, unit=unit)))
    return None


def _decimal_leaf(arrow: pa.DataType, wanted: bytes | None) -> LeafType | None:
    precision, scale = arrow.precision, arrow.scale
    if precision > 38 or scale < 0 or scale > precision:
        return None
    logical = LogicalType(DECIMAL=DecimalType(scale=scale, precision=precision))
    if wanted is None:
        physical = Type.INT32 if precision <= 9 else Type.INT64 if precision <= 18 else Type.FIXED_LEN_BYTE_ARRAY
    else:
        physical = Type.__members__.get(wanted.decode("utf-8", "replace"), Type.BOOLEAN)
    if physical == Type.BYTE_ARRAY:
        return LeafType(physical, logical=logical)
    if physical == Type.FIXED_LEN_BYTE_ARRAY:
        width = next(n for n in range(1, 17) if max_precision(n) >= precision)
        return LeafType(physical, width, logical)
    leaf = LeafType(physical, logical=logical)
    return leaf if leaf.width is not None and precision <= max_precision(leaf.width) else None
