"""Journal of a save to an object store, which lists the files that the save adds and replaces."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.store import Location
from pqext.dataset.files.manifests import parse_integer, parse_json

NOTE = "_pqext_commit.json"
_LONGEST = 1 << 30
_LISTINGS = 10
_JOB = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True)
class StoreJournal:
    """A committed job: its uploads by name, and the names of the files that they replace.

    ``after`` is the content of ``_SUCCESS`` when the old files were listed or the records of ingested files were read,
    or None if nothing depends on it. If another job has finished since then, the content differs, the journal is void,
    and its job writes a new one. ``batch`` is the query and batch number of a stream; the journal is void if another
    job has added the batch.
    """

    job: str
    uploads: Mapping[str, tuple[str, tuple[str, ...]]]
    old: tuple[str, ...]
    after: str | None = None
    batch: tuple[str, int] | None = None

    def dump(self) -> bytes:
        """Serialise the journal."""
        uploads = {name: [upload, [*etags]] for name, (upload, etags) in self.uploads.items()}
        document = {
            "version": 1, "job": self.job, "uploads": uploads, "old": [*self.old], "after": self.after,
            "batch": self.batch and [*self.batch],
        }
        return json.dumps(document).encode()

    @staticmethod
    def load(data: bytes, path: str) -> StoreJournal:
        """Parse a journal. Raises ``CorruptFileError`` if it is corrupt."""
        try:
            value: Any = parse_json(data)
            if value["version"] != 1:
                raise ValueError("unknown version")
            uploads = {_name(name): (str(item[0]), tuple(map(str, item[1]))) for name, item in value["uploads"].items()}
            after = value.get("after")
            old = tuple(map(_name, value["old"]))
            batch = value.get("batch")
            if not _JOB.fullmatch(value["job"]):
                raise ValueError("the job identifier is invalid")
            return StoreJournal(
                value["job"], uploads, old, None if after is None else str(after),
                None if batch is None else (str(batch[0]), parse_integer(batch[1])),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise CorruptFileError(
                f"the record of an unfinished job is corrupt ({error}), so it is unknown which files belong to the "
                "data: remove the record and the files of that job",
                path=path,
            ) from None


def _name(name: Any) -> str:
    """Check and return a name below the folder. Keys may have empty parts, but dots could lead out of the folder."""
    if not isinstance(name, str) or not name or {".", ".."}.intersection(name.split("/")):
        raise ValueError("a file is outside the folder")
    return name


def list_settled(folder: Location) -> Sequence[Location]:
    """List the files below a folder of a store that belong to the dataset.

    The new files of a pending job are excluded until all of them exist; after that, its old files are excluded.
    Journals are read both before and after a listing, because one job may end and another begin in between. Raises
    ``CorruptFileError`` if a journal is corrupt.
    """
    every: Sequence[Location] = ()
    hidden: Collection[str] = ()
    known: Mapping[str, bytes] = {}
    for _ in range(_LISTINGS):
        every = folder.files()
        notes = [element for element in every if element.key == NOTE or element.key.endswith(f"/{NOTE}")]
        try:
            contents = {note.key: _read(note) for note in notes}
        except FileNotFoundError:
            continue  # a job has ended
        there = {item.key for item in every}
        hidden = {key for note in notes for key in _hidden_names(note, contents[note.key], there)}
        if not contents or contents == known:
            break
        known = contents
    return [entry for entry in every if entry.key not in hidden]


def _read(note: Location) -> bytes:
    with note.open() as source:
        if source.size > _LONGEST:
            raise CorruptFileError(f"the record of a job exceeds {_LONGEST:,} bytes", path=note.path)
        return bytes(source.read(0, source.size))


def _hidden_names(note: Location, data: bytes, names: Collection[str]) -> Collection[str]:
    """Return the names of the files listed in a journal that readers must skip."""
    if not data:  # written at the end of a job in stores without conditional deletion
        return ()
    journal = StoreJournal.load(data, note.path)
    inside = note.key.removesuffix(NOTE)
    new = {inside + name for name in journal.uploads}
    return {inside + name for name in journal.old} if new <= set(names) else new
