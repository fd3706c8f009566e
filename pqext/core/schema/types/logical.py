"""Logical types: interpretation of a leaf's stored values, their Arrow type, and their order.

Implements the LogicalTypes document: the translation between LogicalType and the older ConvertedType in both
directions, the Arrow type of each leaf, and the order of its values. The storage of an Arrow type is in
:mod:`pqext.core.schema.types.physical_types`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import pyarrow as pa

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format.metadata import (
    BsonType,
    ConvertedType,
    DateType,
    DecimalType,
    EnumType,
    IntType,
    JsonType,
    ListType,
    LogicalType,
    MapType,
    MicroSeconds,
    MilliSeconds,
    NanoSeconds,
    NullType,
    SchemaElement,
    StringType,
    TimestampType,
    TimeType,
    TimeUnit,
    Type,
)
from pqext.core.format.predicate import Value
from pqext.core.schema.types.int96 import nanoseconds
from pqext.core.schema.types.legacy_calendar import LegacyCalendar

Order = Literal["signed", "unsigned", "chronological", "undefined"]
"""Sort order of values. ``chronological`` is the order of INT96, which only its own ColumnOrder guarantees."""

Unit = Literal["s", "ms", "us", "ns"]

_NANOSECONDS = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}
_ARROW_UNIT = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
TIME_UNITS = {
    "ms": TimeUnit(MILLIS=MilliSeconds()),
    "us": TimeUnit(MICROS=MicroSeconds()),
    "ns": TimeUnit(NANOS=NanoSeconds()),
}


class IntervalAnnotation(LogicalType):
    """INTERVAL annotation. It exists only as a ConvertedType; LogicalType reserves a number but defines no member."""

    __slots__ = ()

    @property
    def member(self) -> str | None:
        return "INTERVAL"


IntervalAnnotation.fields = LogicalType.fields

_NULL = 24
"""Converted type that parquet-cpp wrote for columns of nulls before version 0.14. The format does not define it."""
_CONVERTED: dict[int, LogicalType] = {
    ConvertedType.UTF8: LogicalType(STRING=StringType()),
    ConvertedType.ENUM: LogicalType(ENUM=EnumType()),
    ConvertedType.JSON: LogicalType(JSON=JsonType()),
    ConvertedType.BSON: LogicalType(BSON=BsonType()),
    ConvertedType.INTERVAL: IntervalAnnotation(),
    ConvertedType.MAP: LogicalType(MAP=MapType()),
    ConvertedType.MAP_KEY_VALUE: LogicalType(MAP=MapType()),
    ConvertedType.LIST: LogicalType(LIST=ListType()),
    _NULL: LogicalType(UNKNOWN=NullType()),
    ConvertedType.DATE: LogicalType(DATE=DateType()),
    ConvertedType.TIME_MILLIS: LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=TIME_UNITS["ms"])),
    ConvertedType.TIME_MICROS: LogicalType(TIME=TimeType(isAdjustedToUTC=True, unit=TIME_UNITS["us"])),
    ConvertedType.TIMESTAMP_MILLIS: LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=TIME_UNITS["ms"])),
    ConvertedType.TIMESTAMP_MICROS: LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=True, unit=TIME_UNITS["us"])),
    **{
        ConvertedType[f"{sign}_{width}"]: LogicalType(INTEGER=IntType(bitWidth=width, isSigned=sign == "INT"))
        for sign in ("INT", "UINT")
        for width in (8, 16, 32, 64)
    },
}
_CONVERTED_BY_MEMBER = {
    "STRING": ConvertedType.UTF8,
    **{name: ConvertedType[name] for name in ("MAP", "LIST", "ENUM", "DECIMAL", "DATE", "JSON", "BSON", "INTERVAL")},
}


def from_element(element: SchemaElement) -> LogicalType | None:
    """Return the logical type of a schema element, converted from its ConvertedType if it has no LogicalType."""
    if element.logicalType is not None and element.logicalType.member is not None:
        return element.logicalType
    if element.converted_type is None or element.logicalType is not None:
        return element.logicalType
    if element.converted_type == ConvertedType.DECIMAL:
        return LogicalType(DECIMAL=DecimalType(scale=element.scale or 0, precision=element.precision or 0))
    return _CONVERTED.get(element.converted_type)


def to_logical(logical: LogicalType | None) -> LogicalType | None:
    """Return the LogicalType to write for ``logical``; None if the format has no such type."""
    return None if isinstance(logical, IntervalAnnotation) else logical


def converted_type(logical: LogicalType | None) -> ConvertedType | None:
    """Return the ConvertedType that old readers need in addition to ``logical``; None if there is no equivalent."""
    if logical is None or logical.member is None:
        return None
    if logical.INTEGER is not None:
        return ConvertedType.__members__.get(
            f"{'INT' if logical.INTEGER.isSigned else 'UINT'}_{logical.INTEGER.bitWidth}"
        )
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        # Local times also get the legacy annotation, so that old readers know the unit.
        return ConvertedType.__members__.get(f"{logical.member}_{timed.unit.member}")
    return _CONVERTED_BY_MEMBER.get(logical.member)


@dataclass(frozen=True, slots=True)
class LeafType:
    """Stored type of a leaf: physical type, length if fixed, logical type and calendar.

    ``calendar`` is None for the proleptic Gregorian calendar. For INT96 timestamps, ``is_utc`` selects instants in UTC,
    and ``int96_step`` is the unit in nanoseconds.
    """

    physical: Type
    length: int | None = None
    logical: LogicalType | None = None
    calendar: LegacyCalendar | None = None
    is_utc: bool = False
    int96_step: int = 1
    member: str = field(init=False, default="", compare=False, repr=False)
    """Name of the logical type; empty if the type is missing or does not match the physical type."""
    width: int | None = field(init=False, default=None, compare=False, repr=False)
    """Size of a stored value in memory in bytes; None for BYTE_ARRAY. Booleans take one byte."""

    def __post_init__(self) -> None:
        is_fixed = self.physical == Type.FIXED_LEN_BYTE_ARRAY
        object.__setattr__(self, "width", self.length if is_fixed else _WIDTHS.get(self.physical))
        if self.logical is not None:
            member = self.logical.member
            if member is not None and _is_allowed(self, self.logical):
                object.__setattr__(self, "member", member)

    @property
    def order(self) -> Order:
        """Sort order of values in statistics (LogicalTypes, sort order of each type)."""
        member = self.member
        if not member:
            if self.logical is not None:
                return "undefined"
            if self.physical == Type.INT96:
                return "chronological"
        if member in _UNDEFINED_ORDER:
            return "undefined"
        if member == "INTEGER":
            assert self.logical is not None
            assert self.logical.INTEGER is not None
            return "signed" if self.logical.INTEGER.isSigned else "unsigned"
        if member in ("DECIMAL", "FLOAT16"):
            return "signed"
        return "unsigned" if self.physical in (Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY) else "signed"

    @property
    def ignored_reason(self) -> str | None:
        """Reason that an annotated leaf is read as its physical type; None if the annotation is used."""
        if self.logical is None:
            return None
        physical = self.physical.name
        if self.logical.member is None:
            return f"its logical type is unknown to this version; its {physical} values are returned unchanged"
        if not self.member:
            return f"{self.logical.member} cannot annotate {_physical_name(self)}; its values are returned unchanged"
        decimal = self.logical.DECIMAL
        if decimal is not None and decimal.precision > MAX_DIGITS:
            return f"DECIMAL({decimal.precision}, {decimal.scale}) has more digits than Arrow supports; read as binary"
        return None

    def arrow_type(self, int96: Unit = "ns") -> pa.DataType:
        """Return the Arrow type of the values. If the logical type is unknown or does not match, use the physical type.

        ``int96`` is the unit of INT96 timestamps. Raises ``UnsupportedError`` for an unknown time unit, and
        ``CorruptFileError`` for a DECIMAL that contradicts itself.
        """
        member = self.member
        if not member and self.logical is None and self.physical == Type.INT96:
            return pa.timestamp(int96, "UTC" if self.is_utc else None)
        shown = _arrow_logical(self, member) if member else None
        return shown if shown is not None else self.physical_arrow_type()

    def physical_arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the stored values, ignoring the logical type."""
        if self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            return pa.binary(self.length)
        return _ARROW_PHYSICAL[self.physical]

    def comparison_value(self, raw: bytes) -> Value | None:
        """Convert a PLAIN-encoded statistics value to the form of :data:`pqext.core.format.predicate.Value`.

        FLOAT16 becomes float, and INT96 nanoseconds since the Unix epoch. Return None if the bytes have the wrong
        length for the type.
        """
        member = self.member
        if self.physical == Type.BYTE_ARRAY or self.physical == Type.FIXED_LEN_BYTE_ARRAY:
            if member == "DECIMAL":
                return self._apply_scale(int.from_bytes(raw, "big", signed=True)) if raw else None
            if member == "FLOAT16":
                return float(struct.unpack("<e", raw)[0]) if len(raw) == 2 else None
            return raw
        if len(raw) != _WIDTHS[self.physical]:
            return None
        if self.physical == Type.BOOLEAN:
            return raw != b"\0"
        if self.physical == Type.INT96:
            return nanoseconds(raw)
        if self.physical in (Type.FLOAT, Type.DOUBLE):
            return float(struct.unpack("<f" if self.physical == Type.FLOAT else "<d", raw)[0])
        number = int.from_bytes(raw, "little", signed=self.order != "unsigned")
        if not member or self.logical is None:
            return number
        if member == "DECIMAL":
            return self._apply_scale(number)
        return number * self.nanoseconds

    @property
    def nanoseconds(self) -> int:
        """Number of nanoseconds in a unit of a TIME or TIMESTAMP; 1 for other types."""
        timed = (self.logical.TIME or self.logical.TIMESTAMP) if self.logical is not None else None
        return _NANOSECONDS[timed.unit.member] if timed is not None and timed.unit.member else 1

    def convert_bounds(self, low: Value | None, high: Value | None) -> tuple[Value | None, Value | None]:
        """Convert bounds of stored values to bounds of the values that readers return. A bound is None if it is
        unknown.

        Readers may return truncated values, or values in another calendar.
        """
        if self.calendar is not None:
            is_date = self.member == "DATE"
            convert = self.calendar.convert_day_bounds if is_date else self.calendar.convert_instant_bounds
            low, high = convert(low, high)
        if self.int96_step != 1:
            low, high = (bound // self.int96_step * self.int96_step if isinstance(bound, int) else bound
                         for bound in (low, high))
        return low, high

    def _apply_scale(self, unscaled_value: int) -> Decimal:
        assert self.logical is not None
        assert self.logical.DECIMAL is not None
        digits = tuple(int(digit) for digit in str(abs(unscaled_value)))
        return Decimal((int(unscaled_value < 0), digits, -self.logical.DECIMAL.scale))


_WIDTHS: dict[int, int | None] = {
    Type.BOOLEAN: 1,
    Type.INT32: 4,
    Type.INT64: 8,
    Type.INT96: 12,
    Type.FLOAT: 4,
    Type.DOUBLE: 8,
    Type.BYTE_ARRAY: None,
}
_ARROW_PHYSICAL: dict[int, pa.DataType] = {
    Type.BOOLEAN: pa.bool_(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.INT96: pa.binary(12),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.BYTE_ARRAY: pa.binary(),
}
_UNDEFINED_ORDER = frozenset({"GEOMETRY", "GEOGRAPHY", "INTERVAL", "UNKNOWN"})
GROUP_MEMBERS = frozenset({"LIST", "MAP", "VARIANT", "FILE"})
"""Logical types of groups. All other logical types annotate leaves."""
_FIXED_LENGTHS = {"UUID": 16, "FLOAT16": 2, "INTERVAL": 12}

MAX_DIGITS = 76
"""Maximum number of digits of Arrow's decimals."""


def max_precision(width: int) -> int:
    """Return the maximum precision for which every decimal fits into ``width`` bytes of two's complement."""
    return len(str((1 << (8 * min(width, 1 << 10) - 1)) - 1)) - 1


def _physical_name(leaf: LeafType) -> str:
    return leaf.physical.name + (f"({leaf.length})" if leaf.physical == Type.FIXED_LEN_BYTE_ARRAY else "")


def _is_allowed(leaf: LeafType, logical: LogicalType) -> bool:
    """Return whether the annotation is allowed for the leaf's physical type."""
    member, physical = logical.member, leaf.physical
    if member in _FIXED_LENGTHS:
        return physical == Type.FIXED_LEN_BYTE_ARRAY and leaf.length == _FIXED_LENGTHS[member]
    if logical.INTEGER is not None:
        widths = {Type.INT32: (8, 16, 32), Type.INT64: (64,)}
        return logical.INTEGER.bitWidth in widths.get(physical, ())
    if logical.TIME is not None:
        unit = logical.TIME.unit.member
        return physical == (Type.INT32 if unit == "MILLIS" else Type.INT64) or unit is None
    if logical.DECIMAL is not None:
        return physical in (Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY, Type.BYTE_ARRAY)
    if member in ("STRING", "ENUM", "JSON", "BSON", "GEOMETRY", "GEOGRAPHY"):
        return physical == Type.BYTE_ARRAY
    if member == "TIMESTAMP":
        return physical == Type.INT64
    return member == "UNKNOWN" or (member == "DATE" and physical == Type.INT32)


def _arrow_logical(leaf: LeafType, member: str) -> pa.DataType | None:
    logical = leaf.logical
    assert logical is not None
    if member in ("STRING", "ENUM", "JSON"):
        return pa.string()
    if logical.DECIMAL is not None:
        return _arrow_decimal(leaf, logical.DECIMAL)
    if logical.INTEGER is not None:
        return pa.type_for_alias(f"{'' if logical.INTEGER.isSigned else 'u'}int{logical.INTEGER.bitWidth}")
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        return _arrow_time(member, timed)
    return _ARROW_LOGICAL.get(member)


_ARROW_LOGICAL: dict[str, pa.DataType] = {
    "DATE": pa.date32(),
    "FLOAT16": pa.float16(),
    "INTERVAL": pa.month_day_nano_interval(),
    "UNKNOWN": pa.null(),
}


def _arrow_decimal(leaf: LeafType, decimal: DecimalType) -> pa.DataType | None:
    precision, scale = decimal.precision, decimal.scale
    if precision < 1 or not 0 <= scale <= precision:
        raise CorruptFileError(
            f"DECIMAL({precision}, {scale}) is invalid: the precision must be positive, and the scale from 0 to the "
            "precision"
        )
    if leaf.width is not None and precision > max_precision(leaf.width):
        raise CorruptFileError(f"DECIMAL({precision}, {scale}) does not fit into {_physical_name(leaf)}")
    if precision > MAX_DIGITS:
        return None
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _arrow_time(member: str, time_type: TimeType | TimestampType) -> pa.DataType:
    unit = _ARROW_UNIT.get(time_type.unit.member or "")
    if unit is None:
        raise UnsupportedError(
            f"{member} has an unknown time unit; a later version of pqext may support it", feature="time unit"
        )
    if member == "TIMESTAMP":
        return pa.timestamp(unit, "UTC" if time_type.isAdjustedToUTC else None)
    return pa.time32("ms") if unit == "ms" else pa.time64(unit)
