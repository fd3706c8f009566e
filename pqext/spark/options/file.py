"""Options that select files, under the names of Spark's file sources and of pqext."""

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
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.options.read_write import InvalidUtf8, ReadOptions, RebaseMode
from pqext.core.read.reader import ParquetFile
from pqext.dataset.files.folders import compile_pattern, expand_braces
from pqext.dataset.files.sources import folder_of, source_name
from pqext.variant.timezones import find_timezone

_OF_SPARK: dict[str, tuple[str, Mapping[str, str | None]]] = {
    "basepath": ("base_path", {}),
    "casesensitive": ("case_sensitive", {}),
    "ignorecorruptfiles": ("on_invalid", {"true": "skip", "false": None}),
    "datetimerebasemode": ("datetime_rebase_mode", {}),
    "ignoremissingfiles": ("ignore_missing_files", {}),
    "int96rebasemode": ("int96_rebase_mode", {}),
    "mergeschema": ("merge_schema", {}),
    "modifiedafter": ("modified_after", {}),
    "modifiedbefore": ("modified_before", {}),
    "pathglobfilter": ("path_glob_filter", {}),
    "recursivefilelookup": ("partitioning", {"true": "none", "false": None}),
    "secret_storage_options": ("storage_options", {}),
    "timezone": ("timezone", {}),
}
"""Options of Spark's file sources, each with pqext's option, and its values if they differ."""


class FileOptions(TypedDict, total=False):
    """Options of :func:`pqext.spark.read` that select files and define the interpretation of ambiguous values."""

    base_path: str
    modified_after: str | datetime
    modified_before: str | datetime
    on_invalid: Literal["raise", "skip"]
    ignore_missing_files: bool
    invalid_utf8: InvalidUtf8
    legacy_timezone: str
    datetime_rebase_mode: RebaseMode
    int96_rebase_mode: RebaseMode
    version: int
    timestamp: str | datetime


def encode_file_options(arguments: Mapping[str, Any], timezone: str) -> dict[str, str]:
    """Convert :class:`FileOptions` to options of the data source. Local times are in ``timezone``."""
    options: dict[str, str] = {}
    for name, value in arguments.items():
        if name.startswith("modified_") or name == "timestamp":
            time = value.isoformat() if isinstance(value, datetime) else value
            options[name] = parse_instant(time, timezone).isoformat()
        else:
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return options


def normalize_options(options: Mapping[str, str]) -> dict[str, str]:
    """Replace Spark's option names with pqext's names.

    Raises ``ValueError`` if a value is invalid, or if an option has different values under both names.
    """
    normalized: dict[str, str] = {}
    for key, text in options.items():
        name, values = _OF_SPARK.get(key.lower(), (key.lower(), {}))
        value: str | None = text
        if values:
            if text.lower() not in values:
                raise ValueError(f"option {key} must be {' or '.join(values)}, not {text!r}")
            value = values[text.lower()]
        if value is not None and normalized.setdefault(name, value) != value:
            raise ValueError(f"option {name} is set twice, under different names")
    return normalized


@dataclass(frozen=True)
class FileFilter:
    """Filter of files by name and modification time."""

    name_pattern: str | None = None
    modified_after: datetime | None = None
    modified_before: datetime | None = None

    def apply(self, files: Iterable[tuple[str, Any]], paths: Sequence[str]) -> list[tuple[str, Any]]:
        """Return the matching ``files`` with their locations. Raises ``FileNotFoundError`` if no file matches."""
        selected = [*files]
        if self.name_pattern is not None:
            matchers = [*map(compile_pattern, expand_braces(self.name_pattern))]
            selected = [file for file in selected if any(match(_base_name(file[1])) for match in matchers)]
        locations = ", ".join(map(redact_uri, paths))
        if not selected:
            raise FileNotFoundError(errno.ENOENT, f"no file has a name that matches {self.name_pattern!r}", locations)
        if self.modified_after is not None or self.modified_before is not None:
            selected = [file for file in selected if self._matches_time(_modification_time(*file))]
        if not selected:
            times = {"modified_after": self.modified_after, "modified_before": self.modified_before}
            limits = " and ".join(f"{name}={time.isoformat()}" for name, time in times.items() if time is not None)
            raise FileNotFoundError(errno.ENOENT, f"no file has a modification time that matches {limits}", locations)
        return selected

    def _matches_time(self, mtime: float) -> bool:
        after, before = self.modified_after, self.modified_before
        return (after is None or mtime > after.timestamp()) and (before is None or mtime < before.timestamp())


def _base_name(location: Any) -> str:
    return source_name(location).replace(os.sep, "/").rpartition("/")[2]


def _modification_time(file: str, location: Any) -> float:
    """Return the modification time in seconds, truncated to milliseconds as in Spark."""
    if not isinstance(location, Location):
        return os.stat(location).st_mtime_ns // 1_000_000 / 1000
    if location.listed is None or location.listed.modified_ms is None:
        raise ValueError(f"the store does not report a modification time for {location.path}; pass its folder")
    return location.listed.modified_ms / 1000


def parse_instant(text: str, timezone: str | None) -> datetime:
    """Parse a time in ISO 8601 to UTC. A time without an offset is a local time in ``timezone``.

    Raises ``ValueError`` for other text, and for a local time if the zone is None or unknown.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected a time such as 2024-05-01T12:00:00, not {text!r}") from None
    if time.tzinfo is not None:
        return time.astimezone(UTC)
    if timezone is None:
        raise ValueError(f"{text} has no UTC offset: append an offset, as in {text}Z, or pass option timezone")
    find_timezone(timezone)  # raises for a time zone that does not exist
    local = pa.scalar(time, pa.timestamp("us"))
    result: datetime = pc.assume_timezone(local, timezone, ambiguous="earliest", nonexistent="earliest").as_py()
    return result.astimezone(UTC)


def check_base_path(base: str, root: str | None, locations: Sequence[Any]) -> None:
    """Raise ``ValueError`` if a file is not below the base path ``base``. ``root`` is the folder of the base path."""
    for location in locations:
        folder = folder_of(location)
        separator = "/" if isinstance(location, Location) else os.sep
        if root is None or folder is None or not f"{folder}{separator}".startswith(root.rstrip(separator) + separator):
            raise ValueError(f"option base_path: {source_name(location)} is not below {redact_uri(base)}")


def find_readable_files(
    files: Sequence[tuple[str, Any]], options: ReadOptions, limits: Limits
) -> list[tuple[str, Any]]:
    """Return the files that can be opened. Raises the last error if no file can be opened."""
    readable: list[tuple[str, Any]] = []
    error: CorruptFileError | None = None
    for file in files:
        try:
            with ParquetFile(file[1], options, limits=limits):
                readable.append(file)
        except CorruptFileError as caught:
            error = caught
    if error is not None and not readable:
        raise error
    return readable
