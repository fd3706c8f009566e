"""Dates and instants in Spark's legacy calendar: Julian before 15 October 1582, and Gregorian from then on.

Spark before 3.0 used this calendar, and later versions use it on request (``LEGACY``). Readers convert values to the
proleptic Gregorian calendar, which Arrow and the format use; a value keeps its local year, month, day and time. 29
February becomes 1 March if the year is not a leap year in that calendar. The local time of an instant depends on a time
zone. The legacy calendar applied today's standard offset to all instants before 1900; the proleptic calendar applies
local mean time and the changes up to 1900.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.text import escape_text

VERSION, ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
DATES, INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
KEYS = frozenset({VERSION, ZONE, DATES, INT96})
"""Footer keys that determine the calendar of the values."""

_GREGORIAN_DAY = -141_427
"""1582-10-15, the first day that is the same in both calendars."""
_COMMON_ERA = -719_164
"""First day in Spark's table of changes."""
_MARCH_OF_ZERO = -719_470
"""1 March of the year 0 in the Julian calendar."""
_DAY = 86_400
_LATEST = -2_208_988_800
"""1900-01-01. Later instants are the same in both calendars for all time zones."""
_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?([0-5]\d)(?::?([0-5]\d))?)?|Z", re.ASCII)
_GREATEST_OFFSET = 18 * 3600


@dataclass(frozen=True, slots=True)
class LegacyCalendar:
    """Legacy calendar of a file.

    ``zone`` is the time zone of its writer, or None if it is unknown.
    """

    zone: str | None = None

    @staticmethod
    def from_zones(recorded_zone: str | None, option: str | None) -> LegacyCalendar:
        """Return the calendar in the time zone that a file records. A missing or unknown time zone is replaced by
        ``option``.

        Raises ``ValueError`` if ``option``, the reader's option ``legacy_timezone``, is not a time zone.
        """
        if option is not None and _find_offsets(option) is None:
            raise ValueError(
                f"legacy_timezone {escape_text(option)!r} is unknown; pass the name of a time zone, such as "
                '"Europe/Amsterdam", or an offset, such as "+02:00"'
            )
        if option is not None and (not recorded_zone or _find_offsets(recorded_zone) is None):
            return LegacyCalendar(option)
        return LegacyCalendar(recorded_zone or None)

    def convert_days(self, days: NDArray[np.int32]) -> NDArray[np.int32]:
        """Convert stored days to days of the proleptic Gregorian calendar."""
        if not len(days) or days.min() >= _GREGORIAN_DAY:
            return days
        return np.where(days < _GREGORIAN_DAY, _to_gregorian_days(days.astype(np.int64)), days).astype(np.int32)

    def convert_instants(self, instants: NDArray[np.int64], per_second: int) -> NDArray[np.int64]:
        """Convert stored instants, with ``per_second`` units per second, to the proleptic Gregorian calendar.

        Raises ``UnsupportedError`` for an instant before 1900 if the time zone is unknown.
        """
        seconds = instants // per_second
        if not len(seconds) or seconds.min() >= _LATEST:
            return instants
        return instants + _shifts(self._offsets(), seconds) * per_second

    def convert_day_bounds(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Convert bounds of stored days to bounds of the days that are read. A bound is None if it is unknown."""
        days = (None if day is None else np.array([day], np.int32) for day in (low, high))
        first, last = (None if day is None else int(self.convert_days(day)[0]) for day in days)
        return first, last

    def convert_instant_bounds(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Convert bounds of stored instants in nanoseconds to bounds of the instants that are read. A bound is None if
        it is unknown.

        Where a Julian 29 February becomes 1 March, a later stored instant may be read as an earlier instant.
        """
        if low is not None and low >= _LATEST * 10**9:
            return low, high
        try:
            offsets = self._offsets()
        except ValueError:
            return None, None
        changes = [change * 10**9 for change in offsets.changes]
        first = 0 if low is None else bisect_right(changes, low)
        last = len(changes) if high is None else bisect_right(changes, high)
        between = changes[first:last]
        if low is None or low < changes[0]:
            lowest = None
        else:
            lowest = min(_shift_instant(offsets, instant) for instant in (low, *between))
        if high is None or high < changes[0]:
            return lowest, None
        return lowest, max(_shift_instant(offsets, instant) for instant in (high, *(change - 1 for change in between)))

    def _offsets(self) -> _Offsets:
        if self.zone is None:
            raise UnsupportedError(
                "an instant before 1900 was stored in Spark's legacy calendar, and the file does not record the time "
                'zone of its writer; pass legacy_timezone="...", or legacy_calendar="stored" for instants as stored',
                feature="legacy calendar",
            )
        return offsets_of(self.zone)


@dataclass(frozen=True, slots=True)
class UnknownCalendar(LegacyCalendar):
    """Calendar for a file that records no calendar. A value that differs between the two calendars is an error.

    ``option`` is the reader's option that chooses a calendar.
    """

    option: str = "datetime_rebase_mode"

    def convert_days(self, days: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return ``days``. Raises ``UnsupportedError`` for a day before 15 October 1582."""
        if len(days) and days.min() < _GREGORIAN_DAY:
            raise self._error("a date before 1582-10-15")
        return days

    def convert_instants(self, instants: NDArray[np.int64], per_second: int) -> NDArray[np.int64]:
        """Return ``instants``. Raises ``UnsupportedError`` for an instant before 1900."""
        if len(instants) and instants.min() < _LATEST * per_second:
            raise self._error("an instant before 1900")
        return instants

    def convert_day_bounds(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Return bounds of days. An ambiguous bound becomes None."""
        first, last = (None if day is None or day < _GREGORIAN_DAY else day for day in (low, high))
        return first, last

    def convert_instant_bounds(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Return bounds of instants in nanoseconds. An ambiguous bound becomes None."""
        first, last = (None if instant is None or instant < _LATEST * 10**9 else instant for instant in (low, high))
        return first, last

    def _error(self, value: str) -> UnsupportedError:
        return UnsupportedError(
            f"READ_ANCIENT_DATETIME: {value} is ambiguous, because the file does not record its calendar; pass "
            f'{self.option}="legacy" for files of Spark 2 or Hive, or "corrected" for values as stored',
            feature="dates and instants of an unknown calendar",
        )


class _Offsets(NamedTuple):
    """Offsets of a time zone. ``standard`` is the standard offset in seconds east of UTC, used to determine days before
    1582.

    ``changes`` are in seconds, and ``shifts`` contains the seconds to add from each change on. Before 1582, the shift
    of days is added too.
    """

    standard: int
    changes: tuple[int, ...]
    shifts: tuple[int, ...]


def offsets_of(zone: str) -> _Offsets:
    """Return the offsets of a zone, given its name or an offset such as ``+02:00``.

    Raises ``UnsupportedError`` for an unknown zone.
    """
    offsets = _find_offsets(zone)
    if offsets is None:
        raise UnsupportedError(
            f"the time zone {escape_text(zone)!r} of a file in Spark's legacy calendar is unknown; "
            'pass legacy_timezone="..."', feature="legacy calendar",
        )
    return offsets


@lru_cache(256)
def _find_offsets(zone: str) -> _Offsets | None:
    known = _zones().get(zone)
    if known is None:
        fixed = _FIXED.fullmatch(zone)
        if fixed is None:
            return None
        sign, *parts = fixed.groups()
        seconds = sum(int(part or 0) * unit for part, unit in zip(parts, (3600, 60, 1), strict=False))
        if seconds > _GREATEST_OFFSET:
            return None
        known = (-seconds if sign == "-" else seconds), [0]
    standard, (before, *rest) = known
    julian = [int(day) * _DAY - standard for day in _julian_changes()]
    changes = (*julian, _GREGORIAN_DAY * _DAY - standard, *rest[::2])
    return _Offsets(standard, changes, (*[before] * (len(julian) + 1), *rest[1::2]))


@cache
def _zones() -> dict[str, tuple[int, list[int]]]:
    """Return, by zone name, the standard offset, and the shifts before and after each change since 1582.

    These are the offsets of Spark (``julian-gregorian-rebase-micros.json`` in its source). The offsets of some zones
    differ in other versions of the time zone database.
    """
    rows = json.loads(resources.files(__package__).joinpath("legacy_zones.json").read_text("utf-8"))
    return {name: (standard, shifts) for standard, shifts, names in rows for name in names}


def _julian_changes() -> Iterable[int]:
    """Return the first day of the table, and 1 March of each year that is a leap year in only one of the calendars."""
    centuries = (year for year in range(100, 1582, 100) if year % 400)
    return (_COMMON_ERA, *(_MARCH_OF_ZERO + 365 * year + year // 4 for year in centuries))


def _to_gregorian_days(days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert Julian days to Gregorian days. Years begin in March, so that a leap day is their last day."""
    cycles, within = np.divmod(days - _MARCH_OF_ZERO, 1461)
    years = 4 * cycles + np.minimum(within // 365, 3)
    rebased: NDArray[np.int64] = days + 2 - years // 100 + years // 400
    return rebased


def _shifts(offsets: _Offsets, seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of seconds to add to each instant."""
    places = np.maximum(np.searchsorted(np.array(offsets.changes), seconds, side="right") - 1, 0)
    shifts = np.array(offsets.shifts)[places]
    days = (seconds + offsets.standard) // _DAY
    return np.where(days < _GREGORIAN_DAY, shifts + (_to_gregorian_days(days) - days) * _DAY, shifts)


def _shift_instant(offsets: _Offsets, nanoseconds: int) -> int:
    return nanoseconds + int(_shifts(offsets, np.array([nanoseconds // 10**9], np.int64))[0]) * 10**9
