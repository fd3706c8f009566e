"""Storage of Arrow types: physical type and annotation, according to the tables in the LogicalTypes document."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pyarrow as pa

from pqext.core.format.metadata import (
    BsonType,
    DateType,
    DecimalType,
    EnumType,
    Float16Type,
    IntType,
    JsonType,
    LogicalType,
    NullType,
    StringType,
    TimestampType,
    TimeType,
    Type,
    UUIDType,
)
from pqext.core.schema.types import marks
from pqext.core.schema.types.logical import TIME_UNITS, IntervalAnnotation, LeafType, max_precision

_MARKED = {
    "ENUM": LogicalType(ENUM=EnumType()),
    "JSON": LogicalType(JSON=JsonType()),
    "BSON": LogicalType(BSON=BsonType()),
    "UUID": LogicalType(UUID=UUIDType()),
}


def normal(arrow: pa.DataType) -> pa.DataType:
    """Return the Arrow type that represents all layouts of the same values, such as strings for string views.

    An UNKNOWN column contains only nulls, which are stored as nulls of an INT32 column.
    """
    types = pa.types
    if types.is_large_string(arrow) or types.is_string_view(arrow):
        return pa.string()
    if types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return pa.binary()
    if types.is_decimal(arrow):
        wide = pa.decimal128 if arrow.precision <= 38 else pa.decimal256
        return wide(arrow.precision, arrow.scale)
    if types.is_date64(arrow):
        return pa.date32()
    if types.is_timestamp(arrow) and arrow.unit == "s":
        return pa.timestamp("ms", arrow.tz)
    if types.is_time32(arrow) and arrow.unit == "s":
        return pa.time32("ms")
    if types.is_null(arrow):
        return pa.int32()
    return arrow


def from_arrow(arrow: pa.DataType, metadata: Mapping[bytes, bytes]) -> LeafType | None:
    """Return the storage of a non-nested Arrow type; None if it cannot be stored.

    ``metadata`` is the metadata of the field (see :mod:`pqext.core.schema.types.marks`). Raises ``ValueError`` if
    the metadata does not match the type.
    """
    if not metadata:
        return _unmarked_storage_type(arrow)
    requested = marks.logical_name(metadata)
    leaf = _storage_type(arrow, metadata, requested)
    if leaf is not None and requested and leaf.member != requested:
        raise ValueError(f"is marked {requested}, which cannot annotate {arrow}")
    return leaf


@lru_cache(maxsize=256)
def _unmarked_storage_type(arrow: pa.DataType) -> LeafType | None:
    return _storage_type(arrow, {}, "")


def _storage_type(arrow: pa.DataType, metadata: Mapping[bytes, bytes], annotation: str) -> LeafType | None:
    types = pa.types
    physical = metadata.get(marks.PHYSICAL_TYPE, b"").decode("utf-8", "replace")
    if types.is_decimal(arrow):
        return _decimal(arrow, physical)
    if types.is_timestamp(arrow):
        return _timestamp(arrow, physical)
    if physical:
        raise ValueError(f"PARQUET:physical_type applies to decimals and timestamps only, not to {arrow}")
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        text = annotation in ("ENUM", "JSON")
        return LeafType(Type.BYTE_ARRAY, logical=_MARKED[annotation] if text else LogicalType(STRING=StringType()))
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return LeafType(Type.BYTE_ARRAY, logical=_MARKED["BSON"] if annotation == "BSON" else None)
    if types.is_fixed_size_binary(arrow) and arrow.byte_width:  # the format does not allow length 0
        return LeafType(
            Type.FIXED_LEN_BYTE_ARRAY, arrow.byte_width,
            _MARKED["UUID"] if annotation == "UUID" and arrow.byte_width == 16 else None,
        )
    return _number(arrow) or _temporal(arrow, metadata)


def _number(arrow: pa.DataType) -> LeafType | None:
    types = pa.types
    if types.is_integer(arrow):
        signed = types.is_signed_integer(arrow)
        plain = signed and arrow.bit_width >= 32  # implied by the physical types
        return LeafType(
            Type.INT64 if arrow.bit_width == 64 else Type.INT32,
            logical=None if plain else LogicalType(INTEGER=IntType(bitWidth=arrow.bit_width, isSigned=signed)),
        )
    if types.is_boolean(arrow):
        return LeafType(Type.BOOLEAN)
    if types.is_float16(arrow):
        return LeafType(Type.FIXED_LEN_BYTE_ARRAY, 2, LogicalType(FLOAT16=Float16Type()))
    if types.is_float32(arrow):
        return LeafType(Type.FLOAT)
    if types.is_float64(arrow):
        return LeafType(Type.DOUBLE)
    return LeafType(Type.INT32, logical=LogicalType(UNKNOWN=NullType())) if types.is_null(arrow) else None


def _temporal(arrow: pa.DataType, metadata: Mapping[bytes, bytes]) -> LeafType | None:
    types = pa.types
    if types.is_date(arrow):
        return LeafType(Type.INT32, logical=LogicalType(DATE=DateType()))
    if types.is_time(arrow):
        unit = TIME_UNITS["ms" if arrow.unit == "s" else arrow.unit]
        adjusted = metadata.get(marks.ADJUSTED_TO_UTC) == b"true"
        return LeafType(
            Type.INT32 if types.is_time32(arrow) else Type.INT64,
            logical=LogicalType(TIME=TimeType(isAdjustedToUTC=adjusted, unit=unit)),
        )
    if types.is_duration(arrow):
        return LeafType(Type.INT64)
    if types.is_interval(arrow):
        return LeafType(Type.FIXED_LEN_BYTE_ARRAY, 12, IntervalAnnotation())
    return None


def _timestamp(arrow: pa.DataType, physical: str) -> LeafType:
    if physical == "INT96":
        return LeafType(Type.INT96)
    if physical not in ("", "INT64"):
        raise ValueError(f"PARQUET:physical_type of a timestamp is INT64 or INT96, not {physical!r}")
    unit = TIME_UNITS["ms" if arrow.unit == "s" else arrow.unit]
    return LeafType(
        Type.INT64, logical=LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=arrow.tz is not None, unit=unit))
    )


def _decimal(arrow: pa.DataType, physical_name: str) -> LeafType | None:
    precision, scale = arrow.precision, arrow.scale
    if not 0 <= scale <= precision:
        return None
    logical = LogicalType(DECIMAL=DecimalType(scale=scale, precision=precision))
    if physical_name:
        physical = Type.__members__.get(physical_name)
    else:
        physical = Type.INT32 if precision <= 9 else Type.INT64 if precision <= 18 else Type.FIXED_LEN_BYTE_ARRAY
    if physical == Type.BYTE_ARRAY:
        return LeafType(physical, logical=logical)
    if physical == Type.FIXED_LEN_BYTE_ARRAY:
        width = next(n for n in range(1, 33) if max_precision(n) >= precision)
        return LeafType(physical, width, logical)
    if physical in (Type.INT32, Type.INT64):
        leaf = LeafType(physical, logical=logical)
        if leaf.width is not None and precision <= max_precision(leaf.width):
            return leaf
    raise ValueError(f"PARQUET:physical_type {physical_name!r} cannot store {arrow}")
