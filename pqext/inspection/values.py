"""Format types and values of statistics for users."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from uuid import UUID

import numpy as np

from pqext.core.format.metadata import EdgeInterpolationAlgorithm, LogicalType, Type
from pqext.core.format.predicate import Value
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.types.geometries import crs_label

_EPOCH = date(1970, 1, 1)
_MAX_BYTES = 64
_MAX_SCALE = 1000


@lru_cache(maxsize=256)
def enum_name(enum_type: type[IntEnum], value: int) -> str:
    """Return the name of an enum value, or its number if it is unknown."""
    try:
        return enum_type(value).name
    except ValueError:
        return str(value)


def logical_type(logical: LogicalType | None) -> str | None:
    """Format a logical type with its parameters, such as ``DECIMAL(9, 2)``; None without a logical type."""
    if logical is None:
        return None
    if logical.member is None:
        return "unknown"
    arguments = ", ".join(_arguments(logical))
    return f"{logical.member}({arguments})" if arguments else logical.member


def _arguments(logical: LogicalType) -> list[str]:
    if logical.DECIMAL is not None:
        return [str(logical.DECIMAL.precision), str(logical.DECIMAL.scale)]
    if logical.INTEGER is not None:
        return [str(logical.INTEGER.bitWidth), "signed" if logical.INTEGER.isSigned else "unsigned"]
    timed = logical.TIME or logical.TIMESTAMP
    if timed is not None:
        return [timed.unit.member or "unknown", "UTC" if timed.isAdjustedToUTC else "local"]
    if logical.VARIANT is not None:
        return [str(logical.VARIANT.specification_version or 1)]
    if logical.GEOMETRY is not None:
        return [crs_label(logical.GEOMETRY.crs)]
    if logical.GEOGRAPHY is not None:
        algorithm = logical.GEOGRAPHY.algorithm
        edges = enum_name(EdgeInterpolationAlgorithm, 0 if algorithm is None else algorithm)
        return [crs_label(logical.GEOGRAPHY.crs), edges]
    return []


def format_bound(node: SchemaNode, value: Value | None) -> str | None:
    """Format a bound of the leaf ``node``; return None for None. Bytes without a logical type become hexadecimal."""
    if value is None:
        return None
    kind = node.logical_name
    if isinstance(value, bytes):
        return _format_bytes(kind, value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        # A corrupt scale would result in text with as many digits.
        return format(value, "f") if -_MAX_SCALE <= int(value.as_tuple().exponent) <= 0 else str(value)
    if isinstance(value, int) and kind in ("DATE", "TIME", "TIMESTAMP"):
        return _format_time(node, kind, value)
    if isinstance(value, float) and node.physical_type == Type.FLOAT:
        return str(float(str(np.float32(value))))  # format with the fewest digits for the type
    return str(value)


def _format_bytes(type_name: str, value: bytes) -> str:
    if type_name in ("STRING", "ENUM", "JSON"):
        return value.decode("utf-8", "backslashreplace")
    if type_name == "UUID" and len(value) == 16:
        return str(UUID(bytes=value))
    return "0x" + value[:_MAX_BYTES].hex() + ("…" if len(value) > _MAX_BYTES else "")


def _format_time(node: SchemaNode, type_name: str, value: int) -> str:
    # Comparison values are days, or nanoseconds regardless of the column's unit.
    try:
        if type_name == "DATE":
            return (_EPOCH + timedelta(days=value)).isoformat()
        seconds, nanoseconds = divmod(value, 1_000_000_000)
        fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
        if type_name == "TIME":
            return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{value} {'days' if type_name == 'DATE' else 'ns'}"
    timestamp = node.logical_type.TIMESTAMP if node.logical_type is not None else None
    zone = "Z" if timestamp is not None and timestamp.isAdjustedToUTC else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + zone
