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


def canonical_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the Arrow type that represents all layouts of the same values, such as string for string views.

    An UNKNOWN column contains only nulls, which are stored as nulls of an INT32 column.
    """
    types = pa.types
    if types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        return pa.string()
    if types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type):
        return pa.binary()
    if types.is_decimal(arrow_type):
        wide = pa.decimal128 if arrow_type.precision <= 38 else pa.decimal256
        return wide(arrow_type.precision, arrow_type.scale)
    if types.is_date64(arrow_type):
        return pa.date32()
    if types.is_timestamp(arrow_type) and arrow_type.unit == "s":
        return pa.timestamp("ms", arrow_type.tz)
    if types.is_time32(arrow_type) and arrow_type.unit == "s":
        return pa.time32("ms")
    if types.is_null(arrow_type):
        return pa.int32()
    return arrow_type


def from_arrow(arrow_type: pa.DataType, metadata: Mapping[bytes, bytes]) -> LeafType | None:
    """Return the storage of a non-nested Arrow type; None if it cannot be stored.

    ``metadata`` is the metadata of the field (see :mod:`pqext.core.schema.types.marks`). Raises ``ValueError`` if
    the metadata does not match the type.
    """
    if not metadata:
        return _unmarked_storage_type(arrow_type)
    requested = marks.logical_name(metadata)
    leaf = _storage_type(arrow_type, metadata, requested)
    if leaf is not None and requested and leaf.member != requested:
        raise ValueError(f"is marked {requested}, which cannot annotate {arrow_type}")
    return leaf


@lru_cache(maxsize=256)
def _unmarked_storage_type(arrow_type: pa.DataType) -> LeafType | None:
    return _storage_type(arrow_type, {}, "")


def _storage_type(arrow_type: pa.DataType, metadata: Mapping[bytes, bytes], annotation: str) -> LeafType | None:
    types = pa.types
    physical = metadata.get(marks.PHYSICAL_TYPE, b"").decode("utf-8", "replace")
    if types.is_decimal(arrow_type):
        return _decimal_storage(arrow_type, physical)
    if types.is_timestamp(arrow_type):
        return _timestamp_storage(arrow_type, physical)
    if physical:
        raise ValueError(f"PARQUET:physical_type applies to decimals and timestamps only, not to {arrow_type}")
    if types.is_string(arrow_type) or types.is_large_string(arrow_type) or types.is_string_view(arrow_type):
        text = annotation in ("ENUM", "JSON")
        return LeafType(Type.BYTE_ARRAY, logical=_MARKED[annotation] if text else LogicalType(STRING=StringType()))
    if types.is_binary(arrow_type) or types.is_large_binary(arrow_type) or types.is_binary_view(arrow_type):
        return LeafType(Type.BYTE_ARRAY, logical=_MARKED["BSON"] if annotation == "BSON" else None)
    if types.is_fixed_size_binary(arrow_type) and arrow_type.byte_width:  # the format does not allow length 0
        return LeafType(
            Type.FIXED_LEN_BYTE_ARRAY, arrow_type.byte_width,
            _MARKED["UUID"] if annotation == "UUID" and arrow_type.byte_width == 16 else None,
        )
    return _number_storage(arrow_type) or _temporal_storage(arrow_type, metadata)


def _number_storage(arrow_type: pa.DataType) -> LeafType | None:
    types = pa.types
    if types.is_integer(arrow_type):
        signed = types.is_signed_integer(arrow_type)
        plain = signed and arrow_type.bit_width >= 32  # implied by the physical types
        return LeafType(
            Type.INT64 if arrow_type.bit_width == 64 else Type.INT32,
            logical=None if plain else LogicalType(INTEGER=IntType(bitWidth=arrow_type.bit_width, isSigned=signed)),
        )
    if types.is_boolean(arrow_type):
        return LeafType(Type.BOOLEAN)
    if types.is_float16(arrow_type):
        return LeafType(Type.FIXED_LEN_BYTE_ARRAY, 2, LogicalType(FLOAT16=Float16Type()))
    if types.is_float32(arrow_type):
        return LeafType(Type.FLOAT)
    if types.is_float64(arrow_type):
        return LeafType(Type.DOUBLE)
    return LeafType(Type.INT32, logical=LogicalType(UNKNOWN=NullType())) if types.is_null(arrow_type) else None


def _temporal_storage(arrow_type: pa.DataType, metadata: Mapping[bytes, bytes]) -> LeafType | None:
    types = pa.types
    if types.is_date(arrow_type):
        return LeafType(Type.INT32, logical=LogicalType(DATE=DateType()))
    if types.is_time(arrow_type):
        unit = TIME_UNITS["ms" if arrow_type.unit == "s" else arrow_type.unit]
        adjusted = metadata.get(marks.ADJUSTED_TO_UTC) == b"true"
        return LeafType(
            Type.INT32 if types.is_time32(arrow_type) else Type.INT64,
            logical=LogicalType(TIME=TimeType(isAdjustedToUTC=adjusted, unit=unit)),
        )
    if types.is_duration(arrow_type):
        return LeafType(Type.INT64)
    if types.is_interval(arrow_type):
        return LeafType(Type.FIXED_LEN_BYTE_ARRAY, 12, IntervalAnnotation())
    return None


def _timestamp_storage(arrow_type: pa.DataType, physical: str) -> LeafType:
    if physical == "INT96":
        return LeafType(Type.INT96)
    if physical not in ("", "INT64"):
        raise ValueError(f"PARQUET:physical_type of a timestamp must be INT64 or INT96, not {physical!r}")
    unit = TIME_UNITS["ms" if arrow_type.unit == "s" else arrow_type.unit]
    return LeafType(
        Type.INT64, logical=LogicalType(TIMESTAMP=TimestampType(isAdjustedToUTC=arrow_type.tz is not None, unit=unit))
    )


def _decimal_storage(arrow_type: pa.DataType, physical_name: str) -> LeafType | None:
    precision, scale = arrow_type.precision, arrow_type.scale
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
    raise ValueError(f"PARQUET:physical_type {physical_name!r} cannot store {arrow_type}")
