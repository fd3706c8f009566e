"""Input files that earlier jobs ingested: found by version or content, so that no row is added twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from pqext.core.base.suggestions import excerpt
from pqext.core.base.text import escape_text, with_noun
from pqext.core.options.read_write import WriteOptions
from pqext.dataset.writing.ingest_notes import Digest, Note, Noted
from pqext.dataset.writing.targets import Target
from pqext.spark.ingest.plan import Ingestion
from pqext.spark.json.text_parts import Part, digest_of

OnChangedArguments = Literal["raise", "skip"]
WRITER_DEFAULTS: Mapping[str, Any] = {"threads": 1, "encodings": "auto"}
"""Options of the writer that differ in jobs from its own defaults."""
_TIMEZONE = "session time zone"
_SHOWN = 80
"""Characters of an argument that a message shows."""


class ChangedByAnotherJob(Exception):
    """Another job added some of the input files, or replaced their rows, while this one was at work."""


@dataclass(frozen=True)
class EarlierJobs:
    """The notes in a target, by their names, when a job listed its input."""

    target: Target
    notes: Mapping[str, Note]
    used: set[str] = field(default_factory=set)
    """The names of the notes by which a file is ingested."""

    @staticmethod
    def of(target: Target) -> EarlierJobs:
        """The notes that are there now."""
        return EarlierJobs(target, target.ingested())

    def divide(
        self, parts: Sequence[Part], arguments: Mapping[str, str], on_changed_arguments: OnChangedArguments
    ) -> tuple[list[Part], list[Part]]:
        """Divide input files into new ones and those whose rows are in the target.

        Raises ``ValueError`` if a file was ingested with other arguments, unless these are to be skipped.
        """
        new: list[Part] = []
        ingested: list[Part] = []
        changed: list[tuple[Part, Noted]] = []
        for part in parts:
            by_note = {name: noted for name, note in self.notes.items() if (noted := note.get(part.name))}
            by_note = {name: noted for name, noted in by_note.items() if _is_of(part, noted)}
            self.used.update(by_note)
            found = [*by_note.values()]
            (ingested if found else new).append(part)
            if found and not any(_same(noted, arguments) for noted in found):
                changed.append((part, found[-1]))
        if changed and on_changed_arguments == "raise":
            part, noted = changed[0]
            raise ValueError(
                f"{with_noun(len(changed), 'input file')}, {escape_text(part.name)} first, "
                f"{'was' if len(changed) == 1 else 'were'} ingested into {self.target.path} with "
                f"other arguments ({_difference(noted, arguments)}): pass the same arguments to skip "
                'these files, mode="overwrite" to replace all rows, again=True to add their rows a second time, or '
                'on_changed_arguments="skip" to keep the rows as they are'
            )
        return new, ingested

    def check(self, parts: Iterable[Part]) -> None:
        """Raise ``ChangedByAnotherJob`` if what :meth:`divide` found is out of date.

        It is if a later note names one of the new files, and if an overwrite has removed a note by which a file is
        ingested. Call this where commits take turns.
        """
        now = self.target.ingested(self.notes.keys() - self.used)
        later = [note for name, note in now.items() if name not in self.used]
        if not self.used <= now.keys() or any(
            (noted := note.get(part.name)) and _is_of(part, noted) for part in parts for note in later
        ):
            raise ChangedByAnotherJob


def text_of_arguments(how: Ingestion, csv: Mapping[str, Any] | None) -> dict[str, str]:
    """The arguments that decide what a job writes into Parquet, as text. Keys and credentials are left out."""
    arguments = {
        "column": how.column,
        "schema": None if how.shredding is None else how.shredding.options(),
        "geometry": [[made.kind, made.name, *made.paths, _text(marked.metadata)] for made, marked in how.made],
        "on_error": how.on_error,
        "error_column": how.error_column,
        "partition_by": how.partitions,
        _TIMEZONE: how.timezone if how.partitions else None,
        "max_records_per_file": how.division.max_records_per_file,
        "target_file_bytes": how.division.target_file_bytes,
        "form": how.form,
        "csv": csv,
        "numbers": how.numbers,
        "duplicate_keys": how.duplicate_keys,
        "max_bytes": how.max_bytes,
    }
    defaults = {field.name: field.default for field in fields(WriteOptions)}
    defaults |= {"profile": "spark", **WRITER_DEFAULTS}
    for name, value in how.options.items():
        if name == "threads" or value == defaults.get(name):
            continue
        arguments["options of geometry" if name == "geometry" else name] = "set" if name == "encryption" else value
    return {name: _text(value) for name, value in arguments.items()}


def content_of(ranges: Iterable[tuple[Part, str | None]]) -> Digest | None:
    """The digest of a file of its ranges' hashes; None if one has no hash."""
    found = sorted((part.start, part.size if part.stop is None else part.stop, text) for part, text in ranges)
    hashes = [(stop, text) for _, stop, text in found if text is not None]
    return tuple(hashes) if len(hashes) == len(found) else None


def _is_of(part: Part, noted: Noted) -> bool:
    """Whether a note speaks of a file as it is: by its stamp, else by its content."""
    if noted.stamp == part.stamp:
        return True
    digest = noted.digest
    if not digest or digest[-1][0] != part.size:
        return False
    starts = [0, *(stop for stop, _ in digest)]
    return all(
        digest_of(part.path, start, stop) == text for start, (stop, text) in zip(starts, digest, strict=False)
    )


def _same(noted: Noted, arguments: Mapping[str, str]) -> bool:
    return noted.arguments is None or not _differing(noted, arguments)


def _differing(noted: Noted, arguments: Mapping[str, str]) -> list[str]:
    """The names of the arguments with which the rows of a file would differ from those in the target.

    A time zone counts if both jobs have partitions, and ``on_error`` if documents of the file had faults.
    """
    before = noted.arguments or {}
    names = {name for name in before.keys() | arguments.keys() if before.get(name) != arguments.get(name)}
    if "null" in (before.get(_TIMEZONE), arguments.get(_TIMEZONE)):
        names.discard(_TIMEZONE)
    if not noted.bad_lines:
        names.discard("on_error")
    return sorted(names)


def _difference(noted: Noted, arguments: Mapping[str, str]) -> str:
    before = noted.arguments or {}
    return ", ".join(
        f"{name} was {_shown(before, name)} and is {_shown(arguments, name)}" for name in _differing(noted, arguments)
    )


def _shown(arguments: Mapping[str, str], name: str) -> str:
    return escape_text(excerpt(arguments[name], 0, _SHOWN)) if name in arguments else "the default"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(_plain(value), sort_keys=True, default=str)


def _plain(value: Any) -> Any:
    """A value with bytes as text and keys as strings, as JSON has them."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(one) for key, one in value.items()}
    return [*map(_plain, value)] if isinstance(value, list | tuple) else value
