"""Log of a Spark streaming sink, which lists the committed files of a folder.

A query that Spark streams into a folder first writes the files of a batch and then lists them in ``_spark_metadata`` in
one step. A failed batch that was repeated leaves unlisted files, whose rows would be duplicates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pqext.core.base.errors import CorruptFileError, ParquetError, UnsupportedError
from pqext.dataset.files.manifests import iter_lines, parse_json

FOLDER = "_spark_metadata"
_BATCH = re.compile(r"([0-9]{1,18})(\.compact)?")
_ATTEMPTS = 5
"""Number of attempts to list the log, because Spark deletes the logs of single batches some time after compaction."""

Parts = tuple[str, ...]


@dataclass(frozen=True)
class SinkLog:
    """The committed files listed in the log at ``path``, by the components of their paths when they were written."""

    path: str
    files: tuple[Parts, ...]

    @staticmethod
    def read(folder: str) -> SinkLog | None:
        """Read the log of ``folder``; return None if there is no log.

        Raises ``CorruptFileError`` if the log is corrupt or lacks a batch, and ``UnsupportedError`` if its version is
        not 1.
        """
        path = os.path.join(folder, FOLDER)
        for attempt in range(_ATTEMPTS):
            try:
                names = os.listdir(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            try:
                return SinkLog(path, tuple(_replay_log([os.path.join(path, name) for name in _batches(path, names)])))
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def committed_files(self, files: Sequence[Parts], is_complete: bool) -> set[Parts]:
        """Return the committed files among ``files``, which are paths below the folder, split into components.

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


def _batches(folder: str, names: Sequence[str]) -> list[str]:
    """Return the names of the log files to read: the last compacted file and all files after it."""
    matches = [match for match in map(_BATCH.fullmatch, names) if match]
    if not matches:
        return []
    together = max((int(match[1]) for match in matches if match[2]), default=None)
    after = {int(match[1]): match[0] for match in matches if together is None or int(match[1]) > together}
    first = 0 if together is None else together + 1
    for number in range(first, max(after, default=first - 1) + 1):
        if number not in after:
            raise CorruptFileError(f"batch {number} is missing from the log of a streaming sink", path=folder)
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
        lines = (line.decode() for line in iter_lines(path))
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
