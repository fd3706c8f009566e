"""Moments that :class:`datetime.datetime` cannot hold: with nanoseconds, or in years it does not reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import Literal

import numpy as np
import pyarrow as pa

from pqext.variant import encoding
from pqext.variant.encoding import PrimitiveType
from pqext.variant.types import variant_type

EMPTY_METADATA = b"\x11\x00\x00"

_KINDS = {
    ("us", True): PrimitiveType.TIMESTAMP,
    ("us", False): PrimitiveType.TIMESTAMP_NTZ,
    ("ns", True): PrimitiveType.TIMESTAMP_NANOS,
    ("ns", False): PrimitiveType.TIMESTAMP_NTZ_NANOS,
}


@total_ordering
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Timestamp:
    """A variant's timestamp exactly: ``ticks`` of ``unit``, ``"us"`` or ``"ns"``, since 1970-01-01 00:00.

    ``utc``: a moment in UTC rather than a date and time without time zone. Two are equal, and ordered, by the time
    they stand for, whatever their unit; those in UTC and those without time zone are never equal and have no order.

    Raises ``ValueError`` for ticks beyond 64 bits and other units.

    >>> str(Timestamp(1, "ns", utc=True))
    '1970-01-01 00:00:00.000000001+00:00'
    """

    ticks: int
    unit: Literal["us", "ns"]
    utc: bool

    def __post_init__(self) -> None:
        if (self.unit, self.utc) not in _KINDS:
            raise ValueError(f"unit must be 'us' or 'ns', not {self.unit!r}")
        if not -(1 << 63) <= self.ticks < 1 << 63:
            raise ValueError(f"{self.ticks} does not fit into 64 bits")

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds since 1970-01-01 00:00."""
        return self.ticks * (1000 if self.unit == "us" else 1)

    def to_datetime64(self) -> np.datetime64:
        """The instant as ``numpy.datetime64``, which has no time zone."""
        return np.datetime64(self.ticks, self.unit)

    def encode(self) -> bytes:
        """The variant value of the type of this unit and kind."""
        return encoding.encode_primitive(_KINDS[self.unit, self.utc], self.ticks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return (self.nanoseconds, self.utc) == (other.nanoseconds, other.utc)

    def __lt__(self, other: Timestamp) -> bool:
        if not isinstance(other, Timestamp) or self.utc != other.utc:
            return NotImplemented
        return self.nanoseconds < other.nanoseconds

    def __hash__(self) -> int:
        return hash((self.nanoseconds, self.utc))

    def __str__(self) -> str:
        from pqext.variant.json.text import to_json

        row = {"metadata": EMPTY_METADATA, "value": self.encode()}
        text: str = to_json(pa.array([row], variant_type()))[0].as_py()
        return text.strip('"')

    def __repr__(self) -> str:
        return f"Timestamp({self.ticks}, {self.unit!r}, utc={self.utc})"
