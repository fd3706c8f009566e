"""Detect input files that earlier jobs ingested, by version or content, to avoid adding rows twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text, with_noun
from pqext.core.options.read_write import WriteOptions
from pqext.dataset.writing.ingest_records import Digest, IngestRecord, JobInput
from pqext.dataset.writing.targets import Target
from pqext.spark.ingest.task import IngestConfig
from pqext.spark.json.text_parts import Part, hash_range

OnChangedArguments = Literal["raise", "skip"]
WRITER_DEFAULTS: Mapping[str, Any] = {"threads": 1, "encodings": "auto"}
"""Default options of the writer in ingest jobs."""
_TIMEZONE = "session time zone"
_SHOWN = 80
"""Number of characters of an argument in a message."""


class ConcurrentIngestError(Exception):
    """A concurrent job has ingested input files of this job, or has replaced their rows."""


@dataclass(frozen=True)
class EarlierJobs:
    """Records of earlier jobs in a target, by name, as of the time when the current job listed its input."""

    target: Target
    records: Mapping[str, IngestRecord]
    used: set[str] = field(default_factory=set)
    """Names of the records that contain an input file."""

    @staticmethod
    def read(target: Target) -> EarlierJobs:
        """Read the records of earlier jobs in a target."""
        return EarlierJobs(target, target.ingest_records())

    def divide(
        self, parts: Sequence[Part], arguments: Mapping[str, str], on_changed_arguments: OnChangedArguments
    ) -> tuple[list[Part], list[Part]]:
        """Split input files into new files and files whose rows are already in the target.

        Raises ``ValueError`` if a file was ingested with other arguments and ``on_changed_arguments`` is ``"raise"``.
        """
        new: list[Part] = []
        ingested: list[Part] = []
        changed: list[tuple[Part, JobInput]] = []
        for part in parts:
            entries = {name: entry for name, record in self.records.items() if (entry := record.get(part.name))}
            entries = {name: entry for name, entry in entries.items() if _is_unchanged(part, entry)}
            self.used.update(entries)
            (ingested if entries else new).append(part)
            if entries and all(_find_changed_arguments(entry, arguments) for entry in entries.values()):
                changed.append((part, [*entries.values()][-1]))
        if changed and on_changed_arguments == "raise":
            part, entry = changed[0]
            raise ValueError(
                f"{with_noun(len(changed), 'input file')}, {escape_text(part.name)} first, "
                f"{'was' if len(changed) == 1 else 'were'} ingested into {self.target.path} with "
                f"other arguments ({_describe_changes(entry, arguments)}): pass the same arguments to skip "
                'these files, mode="overwrite" to replace all rows, again=True to add their rows a second time, or '
                'on_changed_arguments="skip" to keep the rows as they are'
            )
        return new, ingested

    def check(self, parts: Iterable[Part]) -> None:
        """Raise ``ConcurrentIngestError`` if the result of :meth:`divide` is out of date.

        The result is out of date if a later record contains one of the new files, or if an overwrite removed the record
        of an ingested file. Call this method while the target is locked for the commit.
        """
        current = self.target.ingest_records(self.records.keys() - self.used)
        later = [record for name, record in current.items() if name not in self.used]
        if not self.used <= current.keys() or any(
            (entry := record.get(part.name)) and _is_unchanged(part, entry) for part in parts for record in later
        ):
            raise ConcurrentIngestError


def encode_arguments(config: IngestConfig, csv: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the arguments that affect the written rows, as text, without keys and credentials."""
    arguments = {
        "column": config.column,
        "schema": None if config.shredding is None else config.shredding.options(),
        "geometry": [
            [column.kind, column.name, *column.paths, _to_text(field.metadata)]
            for column, field in config.geometry_columns
        ],
        "on_error": config.on_error,
        "error_column": config.error_column,
        "partition_by": config.partitions,
        _TIMEZONE: config.timezone if config.partitions else None,
        "max_records_per_file": config.division.max_records_per_file,
        "target_file_bytes": config.division.target_file_bytes,
        "format": config.format,
        "csv": csv,
        "numbers": config.numbers,
        "duplicate_keys": config.duplicate_keys,
        "max_bytes": config.max_bytes,
    }
    defaults = {field.name: field.default for field in fields(WriteOptions)}
    defaults |= {"profile": "spark", **WRITER_DEFAULTS}
    for name, value in config.options.items():
        if name == "threads" or value == defaults.get(name):
            continue
        arguments["options of geometry" if name == "geometry" else name] = "set" if name == "encryption" else value
    return {name: _to_text(value) for name, value in arguments.items()}


def combine_digests(ranges: Iterable[tuple[Part, str | None]]) -> Digest | None:
    """Return the digest of a file, computed from the hashes of its ranges, or None if a range has no hash."""
    ordered = sorted((part.start, part.size if part.stop is None else part.stop, text) for part, text in ranges)
    hashes = [(stop, text) for _, stop, text in ordered if text is not None]
    return tuple(hashes) if len(hashes) == len(ordered) else None


def _is_unchanged(part: Part, entry: JobInput) -> bool:
    """Return whether a file has the recorded stamp or content."""
    if entry.stamp == part.stamp:
        return True
    digest = entry.digest
    if not digest or digest[-1][0] != part.size:
        return False
    starts = [0, *(stop for stop, _ in digest)]
    return all(
        hash_range(part.path, start, stop) == text for start, (stop, text) in zip(starts, digest, strict=False)
    )


def _find_changed_arguments(entry: JobInput, arguments: Mapping[str, str]) -> list[str]:
    """Return the names of arguments that would change the rows of a file; empty if the record has no arguments.

    The time zone matters if both jobs have partitions, and ``on_error`` if documents of the file were invalid.
    """
    if entry.arguments is None:
        return []
    before = entry.arguments
    names = {name for name in before.keys() | arguments.keys() if before.get(name) != arguments.get(name)}
    if "null" in (before.get(_TIMEZONE), arguments.get(_TIMEZONE)):
        names.discard(_TIMEZONE)
    if not entry.bad_lines:
        names.discard("on_error")
    return sorted(names)


def _describe_changes(entry: JobInput, arguments: Mapping[str, str]) -> str:
    before = entry.arguments or {}
    names = _find_changed_arguments(entry, arguments)
    return ", ".join(
        f"{name} was {_format_argument(before, name)} and is {_format_argument(arguments, name)}" for name in names
    )


def _format_argument(arguments: Mapping[str, str], name: str) -> str:
    return escape_text(excerpt(arguments[name], 0, _SHOWN)) if name in arguments else "the default"


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_to_json_value(value), sort_keys=True, default=str)


def _to_json_value(value: Any) -> Any:
    """Convert a value to JSON types, with bytes and keys as strings."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(_to_json_value(key)): _to_json_value(item) for key, item in value.items()}
    return [*map(_to_json_value, value)] if isinstance(value, list | tuple) else value
