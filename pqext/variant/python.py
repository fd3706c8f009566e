"""Convert Python objects to variants and back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import total_ordering
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.variant import encoding, faults
from pqext.variant.binary_value import BinaryVariant, encode_metadata, walk
from pqext.variant.encoding import PrimitiveType, ScaledDecimal
from pqext.variant.kernels.binary import Fault
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
    """Exact timestamp of a variant: ``ticks`` of ``unit``, ``"us"`` or ``"ns"``, since 1970-01-01 00:00.

    If ``utc``, it is an instant in UTC, otherwise a date and time without a time zone. Timestamps are compared by their
    time, whatever their unit. A timestamp in UTC and one without a time zone are never equal and have no order.

    Raises ``ValueError`` if the ticks exceed 64 bits or the unit is unknown.

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
            raise ValueError(f"{self.ticks} ticks do not fit into 64 bits")

    @property
    def nanoseconds(self) -> int:
        """Nanoseconds since 1970-01-01 00:00."""
        return self.ticks * (1000 if self.unit == "us" else 1)

    def to_datetime64(self) -> np.datetime64:
        """Return the timestamp as ``numpy.datetime64``, which has no time zone."""
        return np.datetime64(self.ticks, self.unit)

    def encode(self) -> bytes:
        """Encode the timestamp as a variant value, in the type for its unit and time zone."""
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


_T = PrimitiveType
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_ATTOSECONDS = {unit: 1000**power for power, unit in enumerate(("as", "fs", "ps", "ns", "us", "ms", "s"))}
_ATTOSECONDS |= {"m": 60 * 1000**6, "h": 3600 * 1000**6}
_FIRST, _LAST = (datetime.min - _EPOCH) // _MICROSECOND, (datetime.max - _EPOCH) // _MICROSECOND


def encode(obj: Any, max_depth: int) -> tuple[bytes, bytes]:
    """Encode a Python object as a variant. Returns the value and the metadata.

    See :meth:`pqext.variant.Variant.from_python`.
    """
    nodes: list[Any] = [obj]
    depths = [0]
    spans: dict[int, tuple[int, list[str] | None]] = {}  # first child and field names of a container
    names: set[str] = set()
    for i, node in enumerate(nodes):  # the loop appends children after their parents
        node = to_plain(node)
        nodes[i] = node
        if not isinstance(node, Mapping | list | tuple):
            continue
        if depths[i] >= max_depth:
            raise ValueError(f"the object is nested more than {max_depth} levels deep")
        keys = None
        children: list[Any] = list(node)
        if isinstance(node, Mapping):
            other = next((type(key).__name__ for key in node if not isinstance(key, str)), None)
            if other is not None:
                raise TypeError(f"the keys of a dict must be strings, not {other}")
            keys = sorted(node, key=lambda key: key.encode("utf-8"))
            children = [node[key] for key in keys]
            names.update(keys)
        spans[i] = len(nodes), keys
        nodes += children
        depths += [depths[i] + 1] * len(children)
    ids = {name: i for i, name in enumerate(sorted(names, key=lambda name: name.encode("utf-8")))}
    encoded: list[bytes] = [b""] * len(nodes)
    for i in reversed(range(len(nodes))):
        if i not in spans:
            encoded[i] = encode_scalar(nodes[i])
            continue
        first, keys = spans[i]
        values = encoded[first : first + len(nodes[i])]
        if keys is None:
            encoded[i] = encoding.encode_array(values)
        else:
            fields = [(ids[key], value) for key, value in zip(keys, values, strict=True)]
            encoded[i] = encoding.encode_object(fields, len(ids))
    return encoded[0], encode_metadata(names)


def to_plain(obj: Any) -> Any:
    """Convert variants and numpy scalars to Python objects, arrays to lists, and missing-value markers to None.

    Other objects, including numpy's float32, datetime64 and timedelta64 scalars, are returned unchanged.
    """
    if type(obj).__name__ in ("NAType", "NaTType"):  # pandas may not be installed
        return None
    if obj is np.ma.masked:
        return None
    if isinstance(obj, np.ndarray):
        return list(obj) if obj.ndim else to_plain(obj[()])
    if isinstance(obj, BinaryVariant):
        return decode(obj)
    if isinstance(obj, np.generic) and not isinstance(obj, np.datetime64 | np.timedelta64 | np.float32):
        return obj.item()
    return obj


def encode_scalar(obj: Any) -> bytes:
    """Encode a Python object as a primitive. Raises ``TypeError`` for mappings, lists and unsupported types."""
    if obj is None:
        return encoding.encode_primitive(_T.NULL)
    for types, encoder in _ENCODERS:
        if isinstance(obj, types):
            return encoder(obj)
    raise TypeError(f"{type(obj).__name__} objects cannot be represented as variants; convert them first")


def _encode_decimal(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"Decimal {number} is not finite; use a float for NaN and infinity")
    if len(digits) > encoding.MAX_SCALE or exponent > encoding.MAX_SCALE:
        raise ValueError(f"{number:.3E} has more than 38 digits")
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1) * 10 ** max(0, exponent)
    return encoding.encode_decimal(ScaledDecimal(unscaled, max(0, -exponent)))


def _encode_datetime(moment: datetime) -> bytes:
    aware = moment.utcoffset() is not None
    # Not astimezone(): in UTC, the first and last day may exceed the range of datetime.
    micros = (moment.replace(tzinfo=None) - _EPOCH - (moment.utcoffset() or timedelta())) // _MICROSECOND
    nanos = getattr(moment, "nanosecond", 0)  # in pandas only
    if nanos:
        return encoding.encode_primitive(_T.TIMESTAMP_NANOS if aware else _T.TIMESTAMP_NTZ_NANOS, micros * 1000 + nanos)
    return encoding.encode_primitive(_T.TIMESTAMP if aware else _T.TIMESTAMP_NTZ, micros)


def _encode_datetime64(moment: np.datetime64) -> bytes:
    if np.isnat(moment):
        return encoding.encode_primitive(_T.NULL)
    unit, step = np.datetime_data(moment.dtype)
    count = int(moment.astype(np.int64))
    if unit in ("Y", "M"):  # not a multiple of days
        months = count * step * (12 if unit == "Y" else 1)
        if abs(months) >= 12 << 31:
            raise ValueError(f"numpy.datetime64({count * step}, {unit!r}) is outside the date range of variants")
        days = int(np.datetime64(months, "M").astype("datetime64[D]").astype(np.int64))
        return encoding.encode_primitive(_T.DATE, days)
    if unit in ("W", "D"):
        return encoding.encode_primitive(_T.DATE, count * step * (7 if unit == "W" else 1))
    # Use Python integers, because numpy's casts to a finer unit overflow silently.
    attoseconds = count * step * _ATTOSECONDS[unit]
    micros, rest = divmod(attoseconds, _ATTOSECONDS["us"])
    if not rest:
        return encoding.encode_primitive(_T.TIMESTAMP_NTZ, micros)
    nanos, rest = divmod(attoseconds, _ATTOSECONDS["ns"])
    if rest:
        raise ValueError(f"{moment} has a fraction of a nanosecond, which VARIANT cannot store; round the value")
    return encoding.encode_primitive(_T.TIMESTAMP_NTZ_NANOS, nanos)


def _encode_time(moment: time) -> bytes:
    if moment.tzinfo is not None:
        raise TypeError("times of day with a time zone cannot be represented as variants; remove tzinfo")
    seconds = (moment.hour * 60 + moment.minute) * 60 + moment.second
    return encoding.encode_primitive(_T.TIME_NTZ, seconds * 1_000_000 + moment.microsecond)


_ENCODERS: list[tuple[Any, Callable[[Any], bytes]]] = [
    (bool, lambda obj: encoding.encode_primitive(_T.TRUE if obj else _T.FALSE)),
    (int, encoding.encode_integer),
    (np.float32, lambda obj: encoding.encode_primitive(_T.FLOAT, float(obj))),
    (float, lambda obj: encoding.encode_primitive(_T.DOUBLE, obj)),
    (Decimal, _encode_decimal),
    (str, lambda obj: encoding.encode_primitive(_T.STRING, obj)),
    ((bytes, bytearray, memoryview), lambda obj: encoding.encode_primitive(_T.BINARY, obj)),
    (datetime, _encode_datetime),
    (date, lambda obj: encoding.encode_primitive(_T.DATE, (obj - _EPOCH.date()).days)),
    (time, _encode_time),
    (uuid.UUID, lambda obj: encoding.encode_primitive(_T.UUID, obj)),
    (np.datetime64, _encode_datetime64),
    (Timestamp, Timestamp.encode),
]


def decode(variant: BinaryVariant) -> Any:
    """Convert a variant to Python objects; see :meth:`pqext.variant.Variant.to_python`."""
    open_containers: list[Any] = []
    names: list[str | None] = [None]  # of the next value in each open container
    result: Any = None
    for event, data in walk(variant):
        if event == "":
            names[-1] = data
            continue
        if event == "]":
            result = open_containers.pop()
            names.pop()
        elif event == "{":
            open_containers.append({})
            names.append(None)
            continue
        elif event == "[":
            open_containers.append([])
            names.append(None)
            continue
        elif isinstance(event, PrimitiveType):
            result = python_primitive(event, data)
        else:
            raise UnsupportedError(f"{event} cannot be represented in Python", feature="variant primitive type")
        if open_containers:
            if isinstance(open_containers[-1], dict):
                open_containers[-1][names[-1]] = result
            else:
                open_containers[-1].append(result)
    return result


def python_primitive(type: PrimitiveType, data: Any) -> Any:
    """Convert a primitive's data, as returned by :func:`pqext.variant.encoding.decode_primitive`, to a Python object.
    """
    match type:
        case _T.DECIMAL4 | _T.DECIMAL8 | _T.DECIMAL16:
            digits = tuple(map(int, str(abs(data.unscaled))))
            return Decimal((int(data.unscaled < 0), digits, -data.scale))
        case _T.DATE:
            if _FIRST // _DAY <= data <= _LAST // _DAY:
                return _EPOCH.date() + timedelta(days=data)
            return np.datetime64(data, "D")
        case _T.TIME_NTZ:
            if not 0 <= data < _DAY:
                faults.fail(Fault.FAULT_TIME)
            return (_EPOCH + timedelta(microseconds=data)).time()
        case _T.FLOAT:
            return np.float32(data)
        case _T.TIMESTAMP | _T.TIMESTAMP_NANOS | _T.TIMESTAMP_NTZ | _T.TIMESTAMP_NTZ_NANOS:
            utc = type in (_T.TIMESTAMP, _T.TIMESTAMP_NANOS)
            return _decode_timestamp(data, nanos=type in (_T.TIMESTAMP_NANOS, _T.TIMESTAMP_NTZ_NANOS), utc=utc)
    return data


def _decode_timestamp(data: int, nanos: bool, utc: bool) -> datetime | Timestamp:
    micros, rest = divmod(data, 1000) if nanos else (data, 0)
    if rest or not _FIRST <= micros <= _LAST:
        return Timestamp(data, "ns" if nanos else "us", utc)
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.replace(tzinfo=UTC) if utc else moment
