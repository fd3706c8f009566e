"""Derive bounds and buckets of columns from the partition of a data file.

Spec: Apache Iceberg, "Partition Transforms", Appendix B, "32-bit Hash Requirements". A partition field limits its
source column to one value, a range of values or a bucket of hashes. Early writers rounded times before 1970 towards
zero, so the partition of a time transform with a value of 0 or less also includes the preceding period.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np

from pqext.core.format.predicate import Bounds, Value

DAY = 86_400_000_000_000
UNITS: Mapping[str, int] = {
    "time": 1_000, "timestamp": 1_000, "timestamptz": 1_000, "timestamp_ns": 1, "timestamptz_ns": 1,
}
"""Nanoseconds in the unit of each type."""
_TRANSFORMS = frozenset({"identity", "bucket", "truncate", "year", "month", "day", "hour"})
_PERIODS = {"day": DAY, "hour": DAY // 24}
"""Nanoseconds of each partition."""
_CALENDAR = {"year": "Y", "month": "M"}
_MAX_PERIOD = 1_000_000
"""Largest year or month that is converted to days."""
_INTEGERS = frozenset({"int", "long", "date"})
_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class Bucket:
    """Bucket number of a partition, with the number of buckets and the column type."""

    type: str
    count: int
    number: int

    def may_contain(self, value: Value) -> bool:
        """Return False if the bucket cannot contain ``value``, which is in comparison form."""
        hash_input = _hash_input(self.type, value)
        if hash_input is None or self.count < 1:
            return True
        from mmh3 import hash  # a dependency of pyiceberg

        return (hash(hash_input) & 0x7FFFFFFF) % self.count == self.number


def bucket(transform: str, type: str, value: Any) -> Bucket | None:
    """Return the bucket of the partition ``value``; None if the value is null or ``transform`` is not a bucket."""
    name, _, count = transform.removesuffix("]").partition("[")
    return Bucket(type, int(count), value) if name == "bucket" and isinstance(value, int) else None


def _hash_input(type: str, value: Value) -> bytes | None:
    """Return the bytes that the bucket transform hashes for ``value``; None if they are unknown."""
    if isinstance(value, bytes):
        return value
    if type.startswith("decimal("):
        if isinstance(value, bool | float):
            return None
        scale = int(type.removesuffix(")").rpartition(",")[2])
        unscaled = _EXACT.scaleb(Decimal(value), scale)
        if unscaled != unscaled.to_integral_value():
            return None
        number = int(unscaled)
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if type in UNITS:
        value //= 1_000
    elif type not in _INTEGERS:
        return None
    return struct.pack("<q", value) if -(1 << 63) <= value < 1 << 63 else None


def partition_bounds(transform: str, type: str, value: Any, num_rows: int) -> Bounds | None:
    """Return the column bounds that follow from the partition ``value``; None if the transform has no bounds.

    ``transform`` has the format of table metadata. ``value`` is a value that ``pyiceberg`` reads from a manifest.
    """
    name, _, width = transform.removesuffix("]").partition("[")
    if name not in _TRANSFORMS:
        return None
    if value is None:  # these transforms return null for null only
        return Bounds(null_count=num_rows, num_values=num_rows)
    low, high = _partition_range(name, int(width or 0), type, value)
    return Bounds(low, high, 0, num_rows)


def _partition_range(name: str, width: int, type: str, value: Any) -> tuple[Value | None, Value | None]:
    if name == "identity" or (name == "day" and type == "date"):
        bound = _comparable(type, value)
        return bound, bound
    if name == "truncate" and type == "string" and isinstance(value, str):
        return value.encode(), value.encode() if len(value) < width else None
    if not isinstance(value, int):
        return None, None
    if name == "truncate" and type in ("int", "long"):
        return value, value + width - 1
    first = value - 1 if value <= 0 else value  # of the periods that the partition may include
    if name in _PERIODS and type in UNITS:
        period = _PERIODS[name]
        return first * period, (value + 1) * period - 1
    if name in _CALENDAR and abs(value) < _MAX_PERIOD and (type == "date" or type in UNITS):
        scale = 1 if type == "date" else DAY
        return _first_day(name, first) * scale, _first_day(name, value + 1) * scale - 1
    return None, None


def _first_day(name: str, value: int) -> int:
    """Convert a year or month, counted from 1970, to its first day, in days since 1970."""
    start: np.datetime64 = np.datetime64(value, _CALENDAR[name])  # type: ignore[call-overload]
    return int(start.astype("datetime64[D]").astype(np.int64))


def _comparable(type: str, value: Any) -> Value | None:
    """Return a partition value in comparison form; None if its order is unknown."""
    if type == "string":
        return str(value).encode()
    if isinstance(value, bytes | bool | Decimal):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, int):
        return value * UNITS.get(type, 1)
    return None
