"""INT96 timestamps: eight bytes of nanoseconds within a day, then four bytes of the Julian day, all little-endian.

They are deprecated, but Spark and Impala still write them. Their range exceeds the range of 64-bit nanoseconds, so
every conversion is checked: a value out of range raises an error and never wraps around.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers
from pqext.core.base.errors import UnsupportedError
from pqext.core.schema.types.legacy_calendar import LegacyCalendar

Int96 = Literal["auto", "s", "ms", "us", "ns"]
"""Unit for reading INT96. ``auto`` is the unit of the file's writer."""
JULIAN_EPOCH = 2_440_588
"""Julian day of 1970-01-01."""

_STORED = np.dtype([("nanoseconds", "<i8"), ("day", "<i4")])
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY = 86_400

SPARK_KEYS = frozenset({"org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata"})
"""Footer keys that identify Spark as the writer. Its timestamps are whole microseconds."""


def unit_for(keys: Iterable[str]) -> Literal["us", "ns"]:
    """Return the default unit for reading a file's INT96 timestamps, given the ``keys`` of its metadata.

    The unit is microseconds for Spark, whose timestamps are whole microseconds, and nanoseconds for other writers.
    """
    return "us" if any(key in SPARK_KEYS for key in keys) else "ns"


def nanoseconds_of(unit: str) -> int:
    """Return the number of nanoseconds in a unit."""
    return 10**9 // _A_SECOND[unit]


def nanoseconds(raw: bytes) -> int:
    """Convert a stored value of 12 bytes to nanoseconds since the Unix epoch."""
    day = int.from_bytes(raw[8:], "little", signed=True) - JULIAN_EPOCH
    return day * _DAY * 10**9 + int.from_bytes(raw[:8], "little", signed=True)


def to_timestamps(array: pa.Array, unit: str, calendar: LegacyCalendar | None = None) -> pa.Array:
    """Convert stored values of 12 bytes each to timestamps in ``unit``. Fractions of ``unit`` are rounded down.

    Raises ``UnsupportedError`` for a value that does not fit into 64 bits of the unit.
    """
    values = _value_bytes(array).view(_STORED)
    days = values["day"].astype(np.int64) - JULIAN_EPOCH
    within = values["nanoseconds"] // (10**9 // _A_SECOND[unit])
    if array.null_count:
        missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
        days[missing], within[missing] = 0, 0
    a_day = _DAY * _A_SECOND[unit]
    # The product may wrap around, but the sum is correct if the exact sum fits. Floats show whether it fits.
    with np.errstate(over="ignore"):
        result = days * a_day + within
    if len(result):
        true = days.astype(np.float64) * a_day + within
        if np.abs(result - true).max() > 2.0**62:
            advice = {"ns": '; read with int96="us"', "us": '; read with int96="ms"'}.get(unit, "")
            raise UnsupportedError(
                f"an INT96 timestamp is outside the range of 64-bit {unit}{advice}", feature="far INT96 timestamps"
            )
    if calendar is not None:
        result = calendar.convert_instants(result, _A_SECOND[unit])
    validity = array.buffers()[0] if array.null_count and not array.offset else None
    if array.null_count and validity is None:
        return pa.array(result, pa.int64(), mask=missing).view(pa.timestamp(unit))
    return pa.Array.from_buffers(pa.timestamp(unit), len(array), [validity, pa.py_buffer(result)])


def from_timestamps(array: pa.Array) -> pa.Array:
    """Convert timestamps without nulls to stored values.

    Raises ``ValueError`` for a day that does not fit into 32 bits.
    """
    unit = array.type.unit
    counts = numbers(array.buffers()[1], np.int64, array.offset, len(array))
    day, within = np.divmod(counts, _DAY * _A_SECOND[unit])
    julian = day + JULIAN_EPOCH
    if len(julian) and (julian.min() < -(1 << 31) or julian.max() >= 1 << 31):
        raise ValueError(f"a timestamp[{unit}] value is outside the range of INT96; write the column as INT64")
    out = np.empty(len(counts), _STORED)
    out["nanoseconds"], out["day"] = within * (10**9 // _A_SECOND[unit]), julian
    return pa.Array.from_buffers(pa.binary(12), len(out), [None, pa.py_buffer(out.view(np.uint8))])


def _value_bytes(values: pa.Array) -> NDArray[Any]:
    if not len(values):
        return np.empty(0, np.uint8)
    return np.frombuffer(values.buffers()[1], np.uint8)[values.offset * 12 : (values.offset + len(values)) * 12]
