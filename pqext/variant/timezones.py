"""Time zones for casts: offsets for the kernels, and bounds of shifted times across transitions.

A local time that a transition skips or repeats has the offset before the transition, as in Java and Spark.
"""

from __future__ import annotations

import io
import re
import zoneinfo
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from importlib import resources
from itertools import pairwise
from pathlib import Path
from struct import unpack_from

import numpy as np

from pqext.core.base.suggestions import excerpt
from pqext.variant.kernels.zone import Zone

DEFAULT = "UTC"
"""Default time zone of casts."""

_SECOND = 1_000_000_000
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d)(?::?(\d\d))?)?", re.ASCII)
_UTC = re.compile(r"(Z|UTC|GMT|UT|Etc/(UTC|GMT|UCT|Universal|Zulu)|UCT|Universal|Zulu)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HORIZON = int((datetime(2500, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds())
_STEP = 14 * 86_400
"""Step in seconds for finding transitions. No rule of a zone lasts less than two weeks; older exceptions are listed."""


@dataclass(frozen=True)
class Shift:
    """Function that adds seconds to a time. The number of seconds changes at the times in ``changes``."""

    changes: tuple[int, ...]
    added: tuple[int, ...]
    """Seconds added before the first change, and from each change on."""

    def minimum_result(self, nanoseconds: int) -> int:
        """Return the earliest result of the shift for times at or after ``nanoseconds``."""
        second = nanoseconds // _SECOND
        if second >= _HORIZON - _STEP:
            return nanoseconds + min(self.added) * _SECOND
        place = bisect_right(self.changes, second)
        return min(nanoseconds + self.added[place] * _SECOND, self._minimum_results[place] * _SECOND)

    def maximum_result(self, nanoseconds: int) -> int:
        """Return the latest result of the shift for times at or before ``nanoseconds``."""
        second = nanoseconds // _SECOND
        if second >= _HORIZON - _STEP:
            return nanoseconds + max(self.added) * _SECOND
        place = bisect_right(self.changes, second)
        return max(nanoseconds + self.added[place] * _SECOND, self._result_limits[place] * _SECOND - 1)

    @cached_property
    def _minimum_results(self) -> list[int]:
        """For each change, the earliest result, in seconds, for times at or after the change."""
        least = [_HORIZON * 2]
        for change, added in zip(reversed(self.changes), reversed(self.added), strict=False):
            least.append(min(least[-1], change + added))
        return least[::-1]

    @cached_property
    def _result_limits(self) -> list[int]:
        """For each change, the exclusive upper bound, in seconds, of results for times before the change."""
        above = [-_HORIZON * 1000]
        for change, added in zip(self.changes, self.added, strict=False):
            above.append(max(above[-1], change + added))
        return above


@dataclass(frozen=True)
class TimeZone:
    """Time zone: its transitions, and its offset from UTC before the first and after each transition."""

    name: str
    transitions: tuple[int, ...]
    """Seconds since 1970."""
    offsets: tuple[int, ...]
    """Seconds east of UTC, before the first transition and after each."""

    @cached_property
    def to_local(self) -> Shift:
        """Shift from instants to local times."""
        return Shift(self.transitions, self.offsets)

    @cached_property
    def to_instant(self) -> Shift:
        """Shift from local times to instants."""
        return Shift(self._local_transitions, tuple(-offset for offset in self.offsets))

    @cached_property
    def kernel(self) -> Zone:
        """Time zone for the kernels."""
        return Zone(self.transitions, self._local_transitions, self.offsets, _HORIZON)

    @property
    def _local_transitions(self) -> tuple[int, ...]:
        """Local times of the transitions: for each transition, the end of the skipped or repeated time."""
        return tuple(
            second + max(offsets) for second, offsets in zip(self.transitions, pairwise(self.offsets), strict=True)
        )


@lru_cache(maxsize=64)
def find_timezone(name: str) -> TimeZone | None:
    """Return the time zone with an IANA name (``Europe/Paris``) or an offset (``+05:30``); None for UTC.

    Raises ``ValueError`` if ``name`` is neither, and ``TypeError`` if it is not a string.

    >>> find_timezone("+05:30").offsets
    (19800,)
    """
    if not isinstance(name, str):
        raise TypeError(f"a time zone must be a name such as 'Europe/Paris', not {type(name).__name__}")
    if _UTC.fullmatch(name):
        return None
    if match := _OFFSET.fullmatch(name):
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[1:])
        offset = (hours * 60 + minutes) * 60 + seconds
        if minutes > 59 or seconds > 59 or offset > 18 * 3600:
            raise ValueError(f"time zone {name!r}: an offset must be between -18:00 and +18:00")
        return TimeZone(name, (), (-offset if match[1] == "-" else offset,)) if offset else None
    try:
        data = _read_tzif(name)
        rules = zoneinfo.ZoneInfo.from_file(io.BytesIO(data), key=name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError, ModuleNotFoundError) as error:
        hint = "" if zoneinfo.available_timezones() else "; no time zones are installed: pip install tzdata"
        raise ValueError(
            f"time zone {excerpt(repr(name))} is unknown; pass an IANA name such as 'Europe/Paris' or an offset such "
            "as "
            f"'+02:00'{hint}"
        ) from error
    transitions, offsets = _parse_tzif(data)
    return TimeZone(name, *_continue_rules(transitions, offsets, rules))


def _read_tzif(name: str) -> bytes:
    """Read the TZif file of a zone, from the database that ``zoneinfo`` uses."""
    zoneinfo.ZoneInfo(name)  # ValueError for a name that escapes the database folder
    for folder in zoneinfo.TZPATH:
        path = Path(folder, *name.split("/"))
        if path.is_file():
            return path.read_bytes()
    return resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).read_bytes()


def _parse_tzif(data: bytes) -> tuple[list[int], list[int]]:
    """Parse a TZif file of version 2 or later (RFC 9636).

    Returns the transitions, and the offsets before and after them.
    """
    counts = unpack_from(">4sc15x6l", data)
    if counts[0] != b"TZif" or counts[1] < b"2":
        raise ValueError("the time zone file is not TZif version 2 or later")
    is_utc, is_standard, leaps, times, types, characters = counts[2:]
    start = 44 + times * 5 + types * 6 + characters + leaps * 8 + is_standard + is_utc
    *_, times, types, _ = unpack_from(">4sc15x6l", data, start)
    seconds = unpack_from(f">{times}q", data, start + 44)
    indices = unpack_from(f">{times}B", data, start + 44 + times * 8)
    known = [unpack_from(">l", data, start + 44 + times * 9 + place * 6)[0] for place in range(types)]
    return list(seconds), [known[0], *(known[index] for index in indices)]


def _continue_rules(
    seconds: list[int], offsets: list[int], rules: zoneinfo.ZoneInfo
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Continue the transitions up to the horizon with the zone's last rule.

    Returns the transitions that change the offset, and the offsets.
    """

    def offset(second: int) -> int:
        result = rules.fromutc((_EPOCH + timedelta(seconds=second)).replace(tzinfo=rules)).utcoffset()
        assert result is not None
        return result.days * 86_400 + result.seconds

    last = max(seconds[-1] if seconds else 0, 0)
    samples: Sequence[int] = range(last + 1, _HORIZON + _STEP, _STEP)
    known = [offset(second) for second in samples]
    for (low, high), (before, after) in zip(pairwise(samples), pairwise(known), strict=True):
        if before != after:
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            seconds.append(high)
            offsets.append(after)
    changed = np.flatnonzero(np.diff(offsets)).tolist()
    return tuple(seconds[place] for place in changed), (offsets[0], *(offsets[place + 1] for place in changed))
