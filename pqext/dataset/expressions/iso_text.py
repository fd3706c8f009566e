"""Parse dates, times of day and timestamps in the unambiguous ISO 8601 format.

Every format is fixed: years have four digits, months and days two. Text that is compared with timestamps without a
timezone must have no offset, and text that is compared with instants must have one, because there is no session
timezone that would determine the missing offset.
"""

from __future__ import annotations

import re
from datetime import date, time

_DATE = r"(\d{4})-(\d\d)-(\d\d)"
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_ZONE = r"(Z|[+-]\d\d(?::?\d\d)?)"
_TIME_OF_DAY = re.compile(_TIME, re.ASCII)
_TIMESTAMP = re.compile(f"{_DATE}(?:[T ]{_TIME})?{_ZONE}?", re.ASCII)

_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_EPOCH = date(1970, 1, 1).toordinal()


def parse_date(text: str) -> int:
    """Return the number of days between 1970-01-01 and the date ``YYYY-MM-DD``.

    Raises ``ValueError`` for any other text.

    >>> parse_date("1970-02-01")
    31
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError("a date must be written as '2026-05-31'")
    if match[4] is not None or match[8] is not None:
        raise ValueError("a date must not have a time of day or a time zone")
    return _days(match)


def parse_time(text: str) -> int:
    """Return the nanoseconds since midnight of ``HH:MM``, ``HH:MM:SS`` or ``HH:MM:SS.fffffffff``.

    Raises ``ValueError`` for any other text.

    >>> parse_time("00:00:01.5")
    1500000000
    """
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        raise ValueError("a time of day must be written as '23:59:59'")
    return _nanoseconds(match.groups())


def parse_timestamp(text: str, utc: bool) -> int:
    """Parse a date, or a date and a time separated by ``T`` or a space, to nanoseconds since the Unix epoch.

    If ``utc``, the text must end with ``Z`` or an offset such as ``+02:00``; otherwise it must have no offset. Raises
    ``ValueError`` for any other text.

    >>> parse_timestamp("1970-01-01 00:00:01", utc=False), parse_timestamp("1970-01-01T02:00:00+02:00", utc=True)
    (1000000000, 0)
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        form = "'2026-05-31T23:59:59Z'" if utc else "'2026-05-31' or '2026-05-31T23:59:59'"
        raise ValueError(f"a timestamp must be written as {form}")
    zone = match[8]
    if (zone is not None) != utc:
        raise ValueError("the text needs a UTC offset, because the column contains instants" if utc else
                         "the text must not have a UTC offset, because the column has no time zone")
    whole = _days(match) * _DAY
    whole += 0 if match[4] is None else _nanoseconds(match.groups()[3:7])
    return whole - _offset(zone)


def _days(match: re.Match[str]) -> int:
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    except ValueError:
        raise ValueError("the date does not exist in the calendar") from None


def _nanoseconds(parts: tuple[str | None, ...]) -> int:
    hours, minutes, seconds, fraction = parts
    try:
        parsed = time(int(hours or 0), int(minutes or 0), int(seconds or 0))
    except ValueError:
        raise ValueError("the time of day is out of range") from None
    whole = (parsed.hour * 60 + parsed.minute) * 60 + parsed.second
    return whole * _SECOND + int((fraction or "").ljust(9, "0"))


def _offset(zone: str | None) -> int:
    """Return the UTC offset ``zone`` in nanoseconds, positive to the east; 0 if ``zone`` is None."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].removeprefix(":") or 0)
    if hours > 18 or minutes > 59:
        raise ValueError("the UTC offset is out of range")
    ahead = (hours * 60 + minutes) * 60 * _SECOND
    return -ahead if zone[0] == "-" else ahead
