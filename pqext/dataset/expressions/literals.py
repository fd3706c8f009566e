"""Literals of expressions: convert them to a canonical form, and to values that are compared with a column.

An expression stores each literal in canonical form: there is one Python type for each type of value, so that equal
literals are equal objects. :func:`to_value` converts a literal to the value that is compared with statistics and
arrays. It raises ``TypeError`` if the column and the literal cannot be compared. Values beyond a column's range keep
their value; they never overflow.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa

from pqext.core.base.suggestions import excerpt
from pqext.core.format.predicate import Value
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.expressions import iso_text

Literal: TypeAlias = bool | int | float | Decimal | str | bytes | UUID | date | time | datetime | timedelta | pa.Scalar
"""A canonical literal. Datetimes are naive or in UTC. Timestamps, times and durations that Python cannot represent
(nanoseconds, far years) are Arrow scalars; no other literals are."""

NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds in each of Arrow's time units."""

MAX_EXPONENT = 1000
"""Decimals are limited to 10**-1000 to 10**1000, integers to 2**3000: beyond every column, cheap to compare."""

_DAY = 86_400 * NANOSECONDS["s"]
_NUMPY_UNITS = {**NANOSECONDS, "m": 60 * NANOSECONDS["s"], "h": 3600 * NANOSECONDS["s"]}
_EPOCH = date(1970, 1, 1).toordinal()


def to_literal(value: Any) -> Literal:
    """Convert a Python, numpy, pandas or Arrow scalar to a canonical literal.

    Raises ``ValueError`` for nulls and values out of range, and ``TypeError`` for values that are not literals.
    """
    if type(value) is int and -(1 << 63) <= value < 1 << 63:  # the common case, first
        return value
    if value is None:
        raise ValueError("comparisons with null are never true; use is_null() or is_not_null()")
    if isinstance(value, pa.Scalar):
        return _from_arrow(value)
    if isinstance(value, np.datetime64):
        return _from_datetime64(value)
    if isinstance(value, timedelta | np.timedelta64):
        return _from_timedelta(value)
    if isinstance(value, np.generic) and not isinstance(value, np.longdouble):
        value = value.item()
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > 3 * MAX_EXPONENT:
            raise ValueError(f"integer literal is out of range: its magnitude exceeds 2**{3 * MAX_EXPONENT}")
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{excerpt(repr(value))} contains a lone surrogate and is not valid text") from None
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, UUID):
        return value
    if isinstance(value, datetime):
        return _from_datetime(value)
    if isinstance(value, date):
        return value
    if isinstance(value, time):
        if value.tzinfo is not None:
            raise TypeError(f"time of day {value} has a timezone, but columns have none; use replace(tzinfo=None)")
        return value.replace(fold=0)
    raise TypeError(f"{type(value).__name__} is not a literal")


def is_null(value: Any) -> bool:
    """Return whether a value is null: None, or an Arrow scalar that is not valid."""
    return value is None or (isinstance(value, pa.Scalar) and not value.is_valid)


def key(literal: Literal) -> tuple[str, str]:
    """Return a key that distinguishes literals by type and text, so that ``1``, ``1.0`` and ``True`` differ."""
    if isinstance(literal, pa.Scalar):
        return (str(literal.type), str(literal.value))
    return (type(literal).__name__, repr(literal))


def timestamp_nanoseconds(literal: datetime | pa.Scalar) -> int:
    """Return the nanoseconds since the Unix epoch of a canonical timestamp."""
    if isinstance(literal, datetime):
        days = literal.toordinal() - _EPOCH
        return days * _DAY + time_nanoseconds(literal.time())
    nanoseconds: int = literal.value * NANOSECONDS[literal.type.unit]
    return nanoseconds


def time_nanoseconds(literal: time | pa.Scalar) -> int:
    """Return the nanoseconds since midnight of a canonical time of day."""
    if isinstance(literal, time):
        seconds = (literal.hour * 60 + literal.minute) * 60 + literal.second
        return seconds * NANOSECONDS["s"] + literal.microsecond * NANOSECONDS["us"]
    nanoseconds: int = literal.value * NANOSECONDS[literal.type.unit]
    return nanoseconds


def duration_nanoseconds(literal: timedelta | pa.Scalar) -> int:
    """Return the length of a canonical duration in nanoseconds."""
    if isinstance(literal, timedelta):
        return (literal.days * 86_400 + literal.seconds) * NANOSECONDS["s"] + literal.microseconds * NANOSECONDS["us"]
    nanoseconds: int = literal.value * NANOSECONDS[literal.type.unit]
    return nanoseconds


def duration_literal(nanoseconds: int) -> timedelta | pa.Scalar:
    """Return the canonical duration of ``nanoseconds``."""
    try:
        if nanoseconds % 1000:
            return pa.scalar(nanoseconds, pa.duration("ns"))
        return timedelta(microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise ValueError(f"duration of {nanoseconds} nanoseconds is out of range") from error


def is_duration(literal: Any) -> bool:
    """Return whether a canonical literal is a duration."""
    return isinstance(literal, timedelta) or (isinstance(literal, pa.Scalar) and pa.types.is_duration(literal.type))


def timestamp_literal(nanoseconds: int, utc: bool) -> datetime | pa.Scalar:
    """Return the canonical timestamp ``nanoseconds`` after the Unix epoch, in UTC or without a timezone."""
    zone = UTC if utc else None
    days, rest = divmod(nanoseconds, _DAY)
    if nanoseconds % 1000 == 0 and 1 <= days + _EPOCH <= date.max.toordinal():
        return datetime.combine(date.fromordinal(days + _EPOCH), _time_of_day(rest), zone)
    for unit in ("ns", "us", "ms", "s"):
        if nanoseconds % NANOSECONDS[unit] == 0 and -(1 << 63) <= nanoseconds // NANOSECONDS[unit] < 1 << 63:
            return pa.scalar(nanoseconds // NANOSECONDS[unit], pa.timestamp(unit, "UTC" if utc else None))
    raise ValueError(f"timestamp is out of range: {nanoseconds} nanoseconds since 1970-01-01")


def time_literal(nanoseconds: int) -> time | pa.Scalar:
    """Return the canonical time of day ``nanoseconds`` after midnight, up to 24:00, which Python cannot represent."""
    if not 0 <= nanoseconds <= _DAY:
        raise ValueError("a time of day must be between 00:00 and 24:00")
    if nanoseconds % 1000 or nanoseconds == _DAY:
        return pa.scalar(nanoseconds, pa.time64("ns"))
    return _time_of_day(nanoseconds)


def pack(literal: Literal) -> Any:
    """Return a picklable representation of a literal; :func:`unpack` restores the literal.

    Arrow pickles scalars as Python values, but some of the scalars used as literals have no Python equivalent.
    """
    return (literal.value, literal.type) if isinstance(literal, pa.Scalar) else literal


def unpack(representation: Any) -> Literal:
    """Restore a literal from :func:`pack`."""
    return pa.scalar(*representation) if isinstance(representation, tuple) else representation


def scalar_text(literal: pa.Scalar) -> str:
    """Format a timestamp, time of day or duration outside the range or resolution of Python's types."""
    if pa.types.is_time(literal.type):
        return time_text(literal)
    if pa.types.is_duration(literal.type):
        return f"{duration_nanoseconds(literal)} ns"
    zone = "" if literal.type.tz is None else "+00:00"
    return f"{literal.cast(pa.timestamp(literal.type.unit)).cast(pa.string())}{zone}"


def time_text(literal: time | pa.Scalar) -> str:
    """Format a canonical time of day. (Arrow would format 24:00 as 00:00.)"""
    if time_nanoseconds(literal) == _DAY:
        return "24:00:00"
    return str(literal.cast(pa.string()) if isinstance(literal, pa.Scalar) else literal)


def _time_of_day(nanoseconds: int) -> time:
    seconds, rest = divmod(nanoseconds, NANOSECONDS["s"])
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest // 1000)


def _from_arrow(scalar: pa.Scalar) -> Literal:
    if not scalar.is_valid:
        return to_literal(None)
    type = scalar.type
    if pa.types.is_timestamp(type):
        return timestamp_literal(scalar.value * NANOSECONDS[type.unit], type.tz is not None)
    if pa.types.is_time(type):
        return time_literal(scalar.value * NANOSECONDS[type.unit])
    if pa.types.is_duration(type):
        return duration_literal(scalar.value * NANOSECONDS[type.unit])
    if pa.types.is_nested(type) or pa.types.is_interval(type):
        raise TypeError(f"an Arrow scalar of type {type} cannot be a literal; pass a Python value")
    try:
        return to_literal(scalar.as_py())
    except OverflowError as error:
        raise ValueError(f"literal of type {type} is out of range for Python's types") from error
    except UnicodeDecodeError:
        problem = f"{type} literal {scalar.cast(pa.large_binary()).as_py()[:20]!r} is not UTF-8"
        raise ValueError(f"{problem}; compare a binary column with bytes") from None


def _from_datetime64(value: np.datetime64) -> Literal:
    if np.isnat(value):
        return to_literal(None)
    unit, count = np.datetime_data(value.dtype)
    if unit in ("Y", "M", "W", "D"):
        days = int(value.astype("datetime64[D]").astype(np.int64))
        if not 1 <= days + _EPOCH <= date.max.toordinal():
            raise ValueError(f"date {value} is out of range: the years are 1 to 9999")
        return date.fromordinal(days + _EPOCH)
    nanoseconds = _NUMPY_UNITS.get(unit)
    if nanoseconds is None:
        raise TypeError(f"datetime64[{unit}] has a finer unit than any Parquet column; use datetime64[ns]")
    return timestamp_literal(int(value.astype(np.int64)) * count * nanoseconds, utc=False)


def _from_timedelta(value: timedelta | np.timedelta64) -> Literal:
    if value != value:  # NaT
        return to_literal(None)
    if isinstance(value, timedelta):
        extra = int(getattr(value, "nanoseconds", 0))  # a pandas.Timedelta
        return duration_literal(duration_nanoseconds(value) + extra)
    unit, count = np.datetime_data(value.dtype)
    nanoseconds = {**_NUMPY_UNITS, "D": _DAY, "W": 7 * _DAY}.get(unit)
    if nanoseconds is None:
        raise TypeError(f"timedelta64[{unit}] has no fixed length in nanoseconds; use days")
    return duration_literal(int(value.astype(np.int64)) * count * nanoseconds)


def _from_datetime(value: datetime) -> Literal:
    if value != value:  # pandas.NaT
        return to_literal(None)
    extra = int(getattr(value, "nanosecond", 0))  # a pandas.Timestamp
    plain = datetime.combine(
        date(value.year, value.month, value.day),
        time(value.hour, value.minute, value.second, value.microsecond),
        value.tzinfo,
    ).replace(fold=value.fold)
    if plain.utcoffset() is not None:
        try:
            plain = plain.astimezone(UTC)
        except OverflowError as error:
            raise ValueError(f"datetime {plain} is out of range in UTC: the years are 1 to 9999") from error
    else:
        plain = plain.replace(tzinfo=None, fold=0)
    if extra:
        return timestamp_literal(timestamp_nanoseconds(plain) + extra, plain.tzinfo is not None)
    return plain


def _decimal(value: Decimal) -> Decimal | float:
    if not value.is_finite():
        if value.is_snan():
            raise ValueError("a signalling NaN is not a literal")
        return float(value)
    if abs(value.adjusted()) > MAX_EXPONENT or len(value.as_tuple().digits) > MAX_EXPONENT:
        limit = f"at most {MAX_EXPONENT} digits and a magnitude between 10**-{MAX_EXPONENT} and 10**{MAX_EXPONENT}"
        raise ValueError(f"decimal literal is out of range: {limit}")
    return Decimal(value)


@dataclass(frozen=True, slots=True)
class ValueType:
    """Category of a column's values for comparisons. ``uuid`` includes every fixed-size binary of 16 bytes.

    ``utc`` applies to timestamps only: True for instants, False for wall-clock times without a timezone. ``unit``
    applies to durations only, which compare by their stored integers.
    """

    name: str
    utc: bool = False
    unit: str = ""

    def __str__(self) -> str:
        if self.name == "uuid":
            return "binary or UUID"
        if self.name != "timestamp":
            return f"{self.name}[{self.unit}]" if self.unit else self.name
        return "timestamp in UTC" if self.utc else "timestamp without timezone"


def value_type_of_node(node: SchemaNode) -> ValueType | None:
    """Return the comparison category of a column in a file's schema, or None if its values cannot be compared.

    It is the category of the column's Arrow type, so that conditions on statistics and on values are evaluated
    identically.
    """
    if not node.is_leaf or find_by_logical_type(node.logical_name) is not None:
        return None
    return value_type_of_arrow(node.leaf_type.arrow_type())


def value_type_of_arrow(type: pa.DataType) -> ValueType | None:
    """Return the comparison category of an Arrow type, or None if its values cannot be compared."""
    types = pa.types
    if isinstance(type, pa.BaseExtensionType):
        return value_type_of_arrow(type.storage_type)
    if types.is_dictionary(type) or types.is_run_end_encoded(type):
        return value_type_of_arrow(type.value_type)
    if types.is_timestamp(type):
        return ValueType("timestamp", type.tz is not None)
    if types.is_duration(type):
        return ValueType("duration", unit=type.unit)
    for is_kind, name in (
        (types.is_boolean, "boolean"),
        (types.is_integer, "integer"),
        (types.is_floating, "float"),
        (types.is_decimal, "decimal"),
        (types.is_date, "date"),
        (types.is_time, "time"),
        (types.is_null, "null"),
    ):
        if is_kind(type):
            return ValueType(name)
    if types.is_string(type) or types.is_large_string(type) or types.is_string_view(type):
        return ValueType("string")
    if types.is_fixed_size_binary(type):
        return ValueType("uuid" if type.byte_width == 16 else "binary")
    if types.is_binary(type) or types.is_large_binary(type) or types.is_binary_view(type):
        return ValueType("binary")
    return None


def to_value(literal: Literal, value_type: ValueType, column: str) -> Value:
    """Convert ``literal`` to the type of value that is compared with a column of ``value_type``.

    Numbers keep their value whatever the column's width. A float compared with a decimal column becomes the shortest
    decimal that reads as that float, so that ``1.2`` matches 1.20 as in SQL. Text compared with dates, times and
    timestamps is parsed by :mod:`pqext.dataset.expressions.iso_text`; other text is not parsed.

    Raises:
        TypeError: If the literal cannot be compared with the column, which the message names. Booleans are not
            numbers, and a timestamp without a timezone is not an instant.
    """
    name, why = value_type.name, ""
    if name == "null":
        return False
    if name in ("integer", "float", "decimal"):
        if name == "decimal" and isinstance(literal, float) and isfinite(literal):
            return Decimal(repr(literal))
        if isinstance(literal, int | float | Decimal) and not isinstance(literal, bool):
            return literal
    elif name == "duration":
        if is_duration(literal):
            ticks = Decimal(duration_nanoseconds(literal)) / NANOSECONDS[value_type.unit]
            return int(ticks) if ticks == int(ticks) else ticks
    elif name == "boolean":
        if isinstance(literal, bool):
            return literal
    elif name == "string":
        if isinstance(literal, str):
            return literal.encode()
    elif name in ("binary", "uuid"):
        if isinstance(literal, bytes):
            return literal
        if name == "uuid" and isinstance(literal, UUID):
            return literal.bytes
        if name == "uuid" and isinstance(literal, str):
            with suppress(ValueError):
                return UUID(literal).bytes
            why = ": a UUID is written as '123e4567-e89b-12d3-a456-426614174000'"
    elif isinstance(literal, str):
        try:
            return _parse_temporal(literal, value_type)
        except ValueError as error:
            why = f": {error}"
    elif name == "date":
        if isinstance(literal, date) and not isinstance(literal, datetime):
            return literal.toordinal() - _EPOCH
    elif name == "time":
        if isinstance(literal, time) or (isinstance(literal, pa.Scalar) and pa.types.is_time(literal.type)):
            return time_nanoseconds(literal)
    elif name == "timestamp":
        value = _timestamp_value(literal, value_type.utc)
        if value is not None:
            return value
    if isinstance(literal, bool) and not why:
        why = "; only a column of booleans is a condition by itself"
    literal_text = f"{_describe(literal)}{why}"
    raise TypeError(f"column {column} contains {value_type} values, which cannot be compared with {literal_text}")


def _parse_temporal(text: str, value_type: ValueType) -> int:
    """Parse text as a value of a temporal category. The ``ValueError`` for invalid text shows the expected format."""
    match value_type.name:
        case "date":
            return iso_text.parse_date(text)
        case "time":
            return iso_text.parse_time(text)
    return iso_text.parse_timestamp(text, value_type.utc)


def value_text(value: Value, value_type: ValueType | None) -> str:
    """Format a comparison value for display, in the notation of ``value_type`` if it is known."""
    try:
        match value, value_type:
            case bytes(), ValueType("string"):
                return repr(value.decode())
            case bytes(), ValueType("uuid"):
                return value.hex()
            case int(), ValueType("date"):
                return date.fromordinal(value + _EPOCH).isoformat()
            case int(), ValueType("time"):
                return time_text(time_literal(value))
            case int(), ValueType("timestamp", utc):
                result = timestamp_literal(value, utc)
                return scalar_text(result) if isinstance(result, pa.Scalar) else str(result)
    except (ValueError, OverflowError):
        pass  # statistics may contain invalid values
    return str(value)


def _timestamp_value(literal: Literal, utc: bool) -> int | None:
    if isinstance(literal, datetime):
        return timestamp_nanoseconds(literal) if (literal.tzinfo is not None) == utc else None
    if isinstance(literal, date):
        return None if utc else (literal.toordinal() - _EPOCH) * _DAY
    if isinstance(literal, pa.Scalar) and pa.types.is_timestamp(literal.type):
        return timestamp_nanoseconds(literal) if (literal.type.tz is not None) == utc else None
    return None


def _describe(literal: Literal) -> str:
    if isinstance(literal, pa.Scalar):
        return f"{scalar_text(literal)} ({literal.type})"
    if isinstance(literal, datetime):
        return f"{literal.isoformat()} (datetime {'in UTC' if literal.tzinfo else 'without timezone'})"
    return f"{excerpt(repr(literal))} ({type(literal).__name__})"
