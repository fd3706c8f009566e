"""INTERVAL: months, days and milliseconds as three unsigned 32-bit numbers, and Arrow's month-day-nano interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import UnsupportedError

_STORED = np.dtype([("months", "<u4"), ("days", "<u4"), ("milliseconds", "<u4")])
_ARROW = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
_NANOSECONDS = 1_000_000


def to_arrow(values: NDArray[np.uint8]) -> NDArray[Any]:
    """Stored values of 12 bytes each in Arrow's layout of 16.

    Raises ``UnsupportedError`` for months or days beyond the 31 bits that Arrow has for them.
    """
    stored = values.view(_STORED)
    if any((stored[part] >= 1 << 31).any() for part in ("months", "days")):
        raise UnsupportedError("an INTERVAL has more months or days than Arrow can hold", feature="long intervals")
    out = np.empty(len(stored), _ARROW)
    out["months"], out["days"] = stored["months"], stored["days"]
    out["nanoseconds"] = stored["milliseconds"].astype(np.int64) * _NANOSECONDS
    return out.view(np.uint8)


def from_arrow(array: pa.Array) -> pa.Array:
    """Intervals without nulls in stored form.

    Raises ``ValueError`` for one that is negative, finer than a millisecond or too long.
    """
    data = np.frombuffer(array.buffers()[1], np.uint8) if len(array) else np.empty(0, np.uint8)
    values = data[array.offset * 16 : (array.offset + len(array)) * 16].view(_ARROW)
    milliseconds, finer = np.divmod(values["nanoseconds"], _NANOSECONDS)
    if (values["months"] < 0).any() or (values["days"] < 0).any() or (milliseconds < 0).any():
        raise ValueError("an interval is negative, which INTERVAL cannot be")
    if finer.any():
        raise ValueError("an interval is finer than a millisecond, INTERVAL is not")
    if (milliseconds >= 1 << 32).any():
        raise ValueError("an interval has more milliseconds than the 32 bits of INTERVAL hold")
    out = np.empty(len(values), _STORED)
    out["months"], out["days"], out["milliseconds"] = values["months"], values["days"], milliseconds
    return pa.Array.from_buffers(pa.binary(12), len(out), [None, pa.py_buffer(out.view(np.uint8))])
