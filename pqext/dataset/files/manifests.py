"""Manifests: JSON files that list the files of a folder that belong to the dataset.

A query that Spark streams into a folder first writes the files of a batch and then lists them in ``_spark_metadata`` in
one step. A failed batch that was repeated leaves unlisted files, whose rows would be duplicates. A save to an object
store lists the files that it adds and replaces in a journal.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from pqext.core.base.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.io.sources.pending_files import check_manifest_size
from pqext.core.io.sources.store import Location

LINE_BYTES = 1 << 20
"""Maximum length of a line."""
SINK_LOG = "_spark_metadata"
_BATCH = re.compile(r"([0-9]{1,18})(\.compact)?")
_ATTEMPTS = 5
"""Number of attempts to list the log, because Spark deletes the logs of single batches some time after compaction."""
Parts = tuple[str, ...]
JOURNAL = "_pqext_commit.json"
_LONGEST = 1 << 30
_LISTINGS = 10
_JOB = re.compile(r"[\w-]+", re.ASCII)


def read_manifest(path: str) -> bytes:
    """Return the content of the regular file at ``path``.

    Raises ``CorruptFileError`` if it is not a regular file, ``LimitError`` if it is too large, and ``OSError`` if it
    cannot be opened.
    """
    with _open_regular(path) as file:
        check_manifest_size(os.fstat(file.fileno()).st_size, path)
        return file.read()


def _iter_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of the regular file at ``path``. The file is not loaded into memory, because it can be large.

    Raises the errors of :func:`read_manifest`, and ``LimitError`` if a line is too long.
    """
    with _open_regular(path) as file:
        while line := file.readline(LINE_BYTES):
            if len(line) == LINE_BYTES:
                raise LimitError(f"a line of the manifest has {LINE_BYTES:,} bytes or more", path=path)
            yield line


def _open_regular(path: str) -> BinaryIO:
    """Open the regular file at ``path``.

    Raises ``CorruptFileError`` for a pipe or a device, because reading it could block or never end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptFileError("the manifest is not a regular file; remove it", path=path)
    return os.fdopen(descriptor, "rb")


def parse_json(text: bytes | str) -> Any:
    """Parse JSON text. Raises ``ValueError`` if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def parse_integer(number: Any) -> int:
    """Return ``number``, a value in a JSON document. Raises ``ValueError`` if it is not an integer."""
    if type(number) is not int:
        raise ValueError(f"expected an integer, not {type(number).__name__}")
    return number


@dataclass(frozen=True)
class SinkLog:
    """Committed files in the log at ``path``. Each file is the tuple of its original path components."""

    path: str
    files: tuple[Parts, ...]

    @staticmethod
    def read(folder: str) -> SinkLog | None:
        """Read the log of ``folder``; return None if it does not exist.

        Raises ``CorruptFileError`` if the log is corrupt or lacks a batch, and ``UnsupportedError`` if its version is
        not 1.
        """
        path = os.path.join(folder, SINK_LOG)
        for attempt in range(_ATTEMPTS):
            try:
                names = os.listdir(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                return SinkLog(path, tuple(_replay_log([os.path.join(path, name) for name in _log_files(path, names)])))
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def committed_files(self, files: Sequence[Parts], is_complete: bool) -> set[Parts]:
        """Return the committed files among ``files``, each a tuple of the components of a path in the folder.

        The folder may have been moved since its log was written, so only the ends of paths are compared. Raises
        ``FileNotFoundError`` if a committed file is missing and ``files`` are all files of the folder
        (``is_complete``).
        """
        lengths: dict[str, set[int]] = {}
        for parts in files:
            lengths.setdefault(parts[-1], set()).add(len(parts))
        ends: dict[Parts, list[Parts]] = {}
        for entry in self.files:
            for length in lengths.get(entry[-1], ()):
                ends.setdefault(entry[-length:], []).append(entry)
        result = {parts: ends.get(parts, []) for parts in files}
        if is_complete:
            present = {entry for entries in result.values() for entry in entries}
            for entry in self.files:
                if entry not in present:
                    name = os.path.join(os.sep, *entry)
                    raise FileNotFoundError(
                        f"{name}: the file is listed in the log of a streaming sink, {self.path}, but does not exist"
                    )
        return {parts for parts, entries in result.items() if entries}


def _log_files(folder: str, names: Sequence[str]) -> list[str]:
    """Return the names of the log files to read: the last compacted file and all files after it."""
    matches = [match for match in map(_BATCH.fullmatch, names) if match]
    if not matches:
        return []
    together = max((int(match[1]) for match in matches if match[2]), default=None)
    after = {int(match[1]): match[0] for match in matches if together is None or int(match[1]) > together}
    first = 0 if together is None else together + 1
    for number in range(first, max(after, default=first - 1) + 1):
        if number not in after:
            raise CorruptFileError(f"the log of a streaming sink does not contain batch {number}", path=folder)
    retained = [] if together is None else [f"{together}.compact"]
    return retained + [after[number] for number in sorted(after)]


def _replay_log(paths: Sequence[str]) -> Iterator[Parts]:
    added: dict[Parts, None] = {}
    deleted = set()
    for path in paths:
        for parts, action in _entries(path):
            if action == "add":
                added[parts] = None
            else:
                deleted.add(parts)
    return (parts for parts in added if parts not in deleted)


def _entries(path: str) -> Iterator[tuple[Parts, str]]:
    """Yield the path components and the action, ``add`` or ``delete``, of each entry of a log file."""
    try:
        lines = (line.decode() for line in _iter_lines(path))
        version = next(lines, "")
        if version.strip() != "v1":
            raise UnsupportedError(
                f"the log of a streaming sink begins with {version[:20]!r}, not with 'v1'",
                feature="logs of streaming sinks in another version",
                path=path,
            )
        for line in lines:
            if not line.strip():
                continue
            entry = parse_json(line)
            if entry["action"] not in ("add", "delete"):
                raise ValueError(f"unknown action {entry['action']!r}")
            parts = tuple(part for part in unquote(urlsplit(entry["path"]).path).split("/") if part)
            if not parts:
                raise ValueError("an entry has no path")
            if not entry.get("isDir"):
                yield parts, entry["action"]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        if isinstance(error, ParquetError):
            raise
        reason = f"{type(error).__name__}: {error}"
        raise CorruptFileError(f"the log of a streaming sink is corrupt ({reason})", path=path) from None


@dataclass(frozen=True)
class StoreJournal:
    """Journal of a committed job: the names of uploads, and the names of the files replaced by the uploads.

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
            uploads = {
                _check_name(name): (str(item[0]), tuple(map(str, item[1]))) for name, item in value["uploads"].items()
            }
            after = value.get("after")
            old = tuple(map(_check_name, value["old"]))
            batch = value.get("batch")
            if not _JOB.fullmatch(value["job"]):
                raise ValueError("the job identifier is invalid")
            return StoreJournal(
                value["job"], uploads, old, None if after is None else str(after),
                None if batch is None else (str(batch[0]), parse_integer(batch[1])),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise CorruptFileError(
                f"the journal of an unfinished job is corrupt ({error}); remove the journal and the files of the job",
                path=path,
            ) from None


def _check_name(name: Any) -> str:
    """Return ``name``; raise ``ValueError`` unless it is a file name without the components ``.`` and ``..``."""
    if not isinstance(name, str) or not name or {".", ".."}.intersection(name.split("/")):
        raise ValueError(f"file name {name!r} is outside the folder")
    return name


def list_committed_files(folder: Location) -> Sequence[Location]:
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
        journal_files = [element for element in every if element.key == JOURNAL or element.key.endswith(f"/{JOURNAL}")]
        try:
            contents = {journal_file.key: _read(journal_file) for journal_file in journal_files}
        except FileNotFoundError:
            continue  # a job has ended
        there = {item.key for item in every}
        hidden = {key for file in journal_files for key in _hidden_names(file, contents[file.key], there)}
        if not contents or contents == known:
            break
        known = contents
    return [entry for entry in every if entry.key not in hidden]


def _read(journal_file: Location) -> bytes:
    with journal_file.open() as source:
        if source.size > _LONGEST:
            raise CorruptFileError(f"the journal of a job exceeds {_LONGEST:,} bytes", path=journal_file.path)
        return bytes(source.read(0, source.size))


def _hidden_names(journal_file: Location, data: bytes, names: Collection[str]) -> Collection[str]:
    """Return the names of files to hide: replaced files if all uploads of the job exist, otherwise the uploads."""
    if not data:  # written at the end of a job in stores without conditional deletion
        return ()
    journal = StoreJournal.load(data, journal_file.path)
    inside = journal_file.key.removesuffix(JOURNAL)
    new = {inside + name for name in journal.uploads}
    return {inside + name for name in journal.old} if new <= set(names) else new
