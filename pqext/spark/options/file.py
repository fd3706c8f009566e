"""Options that choose files: those of Spark's own file sources, by Spark's names and by pqext's."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.errors import CorruptFileError
from pqext.core.base.limits import Limits
from pqext.core.base.suggestions import did_you_mean
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.options.read_write import InvalidUtf8, ReadOptions
from pqext.core.read.reader import ParquetFile
from pqext.dataset.files.patterns import alternatives, matcher
from pqext.dataset.files.sources import folder_of, source_name
from pqext.variant.timezones import find_timezone

_OF_SPARK: dict[str, tuple[str, Mapping[str, str | None]]] = {
    "basepath": ("base_path", {}),
    "casesensitive": ("case_sensitive", {}),
    "ignorecorruptfiles": ("on_invalid", {"true": "skip", "false": None}),
    "ignoremissingfiles": ("ignore_missing_files", {}),
    "mergeschema": ("merge_schema", {}),
    "modifiedafter": ("modified_after", {}),
    "modifiedbefore": ("modified_before", {}),
    "pathglobfilter": ("path_glob_filter", {}),
    "recursivefilelookup": ("partitioning", {"true": "none", "false": None}),
    "timezone": ("timezone", {}),
}
"""Options of Spark's file sources: pqext's option, and its values where they are others."""


class FileOptions(TypedDict, total=False):
    """Which files :func:`pqext.spark.read` reads, and how it reads values that writers have left in doubt."""

    base_path: str
    modified_after: str | datetime
    modified_before: str | datetime
    on_invalid: Literal["raise", "skip"]
    ignore_missing_files: bool
    invalid_utf8: InvalidUtf8
    legacy_timezone: str


def as_options(given: Mapping[str, Any], timezone: str) -> dict[str, str]:
    """Options of the data source for those of :class:`FileOptions`; local times are in ``timezone``.

    Raises ``TypeError`` for an unknown name.
    """
    found: dict[str, str] = {}
    for name, value in given.items():
        if name not in FileOptions.__annotations__:
            raise TypeError(f"read has no argument {name!r}{did_you_mean(name, FileOptions.__annotations__)}")
        if name.startswith("modified_"):
            time = value.isoformat() if isinstance(value, datetime) else value
            found[name] = instant(time, timezone).isoformat()
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else value
    return found


def by_own_names(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a data source by pqext's names, for those that have Spark's.

    Raises ``ValueError`` for an unsuitable value, and for an option that both names give different values.
    """
    found: dict[str, str] = {}
    for key, text in options.items():
        name, words = _OF_SPARK.get(key.lower(), (key.lower(), {}))
        value: str | None = text
        if words:
            if text.lower() not in words:
                raise ValueError(f"option {key} is {' or '.join(words)}, not {text!r}")
            value = words[text.lower()]
        if value is not None and found.setdefault(name, value) != value:
            raise ValueError(f"option {name} is given twice")
    return found


@dataclass(frozen=True)
class FileFilter:
    """Which of the files that paths name are read."""

    name_pattern: str | None = None
    modified_after: datetime | None = None
    modified_before: datetime | None = None

    def apply(self, files: Iterable[tuple[str, Any]], paths: Sequence[str]) -> list[tuple[str, Any]]:
        """The chosen ``files``, each with its place. Raises ``FileNotFoundError`` if none of ``paths`` is chosen."""
        chosen = [*files]
        if self.name_pattern is not None:
            matches = [*map(matcher, alternatives(self.name_pattern))]
            chosen = [one for one in chosen if any(match(_base_name(one[1])) for match in matches)]
        places = ", ".join(map(redact_uri, paths))
        if not chosen:
            raise FileNotFoundError(errno.ENOENT, f"No file's name matches {self.name_pattern!r}", places)
        if self.modified_after is not None or self.modified_before is not None:
            chosen = [one for one in chosen if self._is_of_time(_modified(*one))]
        if not chosen:
            times = {"modified_after": self.modified_after, "modified_before": self.modified_before}
            stated = " and ".join(f"{name}={time.isoformat()}" for name, time in times.items() if time is not None)
            raise FileNotFoundError(errno.ENOENT, f"No file has a time of modification by {stated}", places)
        return chosen

    def _is_of_time(self, modified: float) -> bool:
        after, before = self.modified_after, self.modified_before
        return (after is None or modified > after.timestamp()) and (before is None or modified < before.timestamp())


def _base_name(place: Any) -> str:
    return source_name(place).replace(os.sep, "/").rpartition("/")[2]


def _modified(file: str, place: Any) -> float:
    """The time of modification in seconds, cut to milliseconds, as Spark has it."""
    if not isinstance(place, Location):
        return os.stat(place).st_mtime_ns // 1_000_000 / 1000
    if place.listed is None or place.listed.modified_ms is None:
        raise ValueError(f"the store does not state when {place.path} was modified: read its folder")
    return place.listed.modified_ms / 1000


def instant(text: str, timezone: str | None) -> datetime:
    """The point in time that ISO 8601 text names; without an offset, the local time in ``timezone``.

    Raises ``ValueError`` for other text, and for local time in an unknown zone.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2024-05-01T12:00:00, not {text!r}") from None
    if time.tzinfo is not None:
        return time.astimezone(UTC)
    if timezone is None:
        raise ValueError(f"{text} has no offset: add one, as in {text}Z, or give option timezone")
    find_timezone(timezone)  # raises for a time zone that does not exist
    local = pa.scalar(time, pa.timestamp("us"))
    found: datetime = pc.assume_timezone(local, timezone, ambiguous="earliest", nonexistent="earliest").as_py()
    return found.astimezone(UTC)


def check_base_path(base: str, root: str | None, places: Sequence[Any]) -> None:
    """Raise ``ValueError`` unless all files lie below the base path, which is the folder ``root``."""
    for place in places:
        folder = folder_of(place)
        separator = "/" if isinstance(place, Location) else os.sep
        if root is None or folder is None or not f"{folder}{separator}".startswith(root.rstrip(separator) + separator):
            raise ValueError(f"option base_path: {source_name(place)} does not lie below {redact_uri(base)}")


def readable(files: Sequence[tuple[str, Any]], options: ReadOptions, limits: Limits) -> list[tuple[str, Any]]:
    """The files that can be opened. Raises the error of the last if there are none."""
    found: list[tuple[str, Any]] = []
    error: CorruptFileError | None = None
    for file in files:
        try:
            with ParquetFile(file[1], options, limits=limits):
                found.append(file)
        except CorruptFileError as caught:
            error = caught
    if error is not None and not found:
        raise error
    return found
