"""List folders consistently during saves, and match names with glob patterns, including ``{a,b}`` and ``[^a]``.

A pending or interrupted save is visible either completely or not at all.

pqext's Spark sink collects a job's files in a hidden folder. Renaming that folder to ``_pqext_commit-<job>`` commits
the job. From then on, files that its ``journal.json`` lists as new belong to the dataset, wherever they are, and files
listed as old do not. Afterwards, the new files are moved and the old files are deleted, which any process that detects
the folder can do (:mod:`pqext.dataset.writing.commit`). Without a commit folder, all files belong to the dataset,
except in the folder of a Spark streaming sink, where its log lists them (:mod:`pqext.dataset.files.manifests`).

A complete save may happen while a folder is being listed. A listing is therefore accepted only if no folder changed
since it began. If a folder changed, or changed so recently that its timestamp is inconclusive, the folder is listed
again until two listings agree.
"""

from __future__ import annotations

import errno
import fnmatch
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from pqext.core.base import local_paths
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.io.table_formats import TableFormatError, TableGuard, format_of_entry, is_metadata_folder
from pqext.dataset.files.manifests import SinkLog, parse_json, read_manifest

_MOST = 10_000
_MOST_READ = 1 << 22
"""Maximum length of a pattern."""
_MARKS = re.compile("[{},]")
_SET = re.compile(r"\[([!^]?)(\]?[^]]*\])")


def expand_braces(pattern: str) -> list[str]:
    """Expand ``{a,b}`` in ``pattern``, and return the patterns in order. Braces without a comma are not expanded.

    Raises ``LimitError`` for more than 10,000 patterns, or for too many nested braces.
    """
    found: list[str] = []
    waiting = [(pattern, 0)]
    left = _MOST_READ
    while waiting:
        one, start = waiting.pop()
        cuts = _find_braces(one, start)
        left -= len(one) - start
        if left < 0:
            raise LimitError(f"pattern {pattern[:60]!r} has too many braces; pass a list of folders")
        if len(found) + len(waiting) + max(1, len(cuts) - 1) > _MOST:
            raise LimitError(f"pattern {pattern[:60]!r} expands to over {_MOST:,} patterns; pass a list of folders")
        if not cuts:
            found.append(one)
            continue
        before, after = one[: cuts[0]], one[cuts[-1] + 1 :]
        choices = [one[a + 1 : b] for a, b in pairwise(cuts)]
        waiting += [(before + choice + after, len(before)) for choice in reversed(choices)]
    return list(dict.fromkeys(found))


def _find_braces(text: str, start: int) -> list[int]:
    """Find the first pair of braces after ``start`` that contains commas; return the positions of braces and commas.

    If pairs with commas are nested, the outermost pair is used. The list is empty if no pair is found.
    """
    first: list[int] = []
    open_ones: list[list[int]] = []
    for mark in _MARKS.finditer(text, start):
        at = mark.start()
        if mark[0] == "{":
            open_ones.append([at])
        elif mark[0] == "," and open_ones:
            open_ones[-1].append(at)
        elif mark[0] == "}" and open_ones:
            closed = [*open_ones.pop(), at]
            if len(closed) > 2 and (not first or closed[0] < first[0]):
                first = closed
            if first and not open_ones:
                break
    return first


@lru_cache(1000)
def compile_pattern(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Return a function that matches a name against a glob pattern.

    The pattern may contain ``*``, ``?``, ``[abc]``, and the negations ``[!abc]`` and ``[^abc]``.

    >>> [name for name in ("a", "b", "^") if compile_pattern("[^b]")(name)]
    ['a', '^']
    """
    in_python = _SET.sub(lambda found: f"[{'!' if found[1] else ''}{found[2]}", pattern)
    return re.compile(fnmatch.translate(in_python)).match


COMMIT = "_pqext_commit-"
"""Name prefix of a folder whose save is committed but not finished."""
JOURNAL = "journal.json"
_OURS = re.compile(r"part-\d+-[0-9a-f]{32}-[\w-]+\.parquet")
_WALKS = 50
"""Number of traversals after which a folder that keeps changing is an error."""
_FRESH = 2 * 10**9
"""Nanoseconds within which two changes of a folder can have equal timestamps, on the coarsest file systems."""


@dataclass(frozen=True)
class ReplacedFile:
    """A file that a save replaces: its path relative to the folder, and the identity of its content."""

    name: str
    size: int
    mtime_ns: int

    @staticmethod
    def from_path(name: str, path: str) -> ReplacedFile:
        """Record the identity of the file at ``path``. Raises ``OSError`` if it does not exist."""
        stat = os.lstat(path)
        return ReplacedFile(name, stat.st_size, stat.st_mtime_ns)


@dataclass(frozen=True)
class Journal:
    """Journal of a committed save: the names of the added files, and the files to be replaced."""

    new: tuple[str, ...]
    old: tuple[ReplacedFile, ...]

    def dump(self) -> bytes:
        """Serialise ``journal.json``."""
        old = [[item.name, item.size, item.mtime_ns] for item in self.old]
        return json.dumps({"version": 1, "new": self.new, "old": old}).encode()

    @staticmethod
    def load(folder: str) -> Journal | None:
        """Load the journal in ``folder``; return None if the journal no longer exists.

        Raises ``CorruptFileError`` if the journal is corrupt or names a file outside the dataset.
        """
        path = os.path.join(folder, JOURNAL)
        try:
            data = read_manifest(path)
        except FileNotFoundError:
            return None
        try:
            content = parse_json(data)
            if content["version"] != 1:
                raise ValueError("unknown version")
            new = tuple(map(_check_path, content["new"]))
            old = tuple(ReplacedFile(_check_path(name), int(size), int(mtime)) for name, size, mtime in content["old"])
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise CorruptFileError(
                f"the journal of an interrupted save is corrupt ({error}); to discard the save, remove the folder that "
                "contains the journal; to keep its files, first move them one folder up",
                path=path,
            ) from None
        return Journal(new, old)

    def replaced_paths(self, target: str) -> list[str]:
        """Return the paths of the replaced files below ``target``, including files that no longer exist.

        Raises ``CorruptFileError`` if one of them has been written again since, because it is unknown whether it
        belongs to the dataset.
        """
        paths = [join_path(target, item.name) for item in self.old]
        for element, path in zip(self.old, paths, strict=True):
            with suppress(FileNotFoundError, NotADirectoryError):
                if ReplacedFile.from_path(element.name, path) != element:
                    raise CorruptFileError(
                        "this file has changed since an interrupted save tried to replace it: remove the file, or "
                        f"rename it if its rows are still needed, then run pqext.spark.clean({target!r})",
                        path=path,
                    )
        return paths


def _check_path(name: Any) -> str:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in name:
        raise ValueError(f"path {name!r} is outside the folder")
    if local_paths.ON_WINDOWS and re.search(r"[\\:]", name):
        raise ValueError(f"path {name!r} contains a drive or backslashes")
    os.fsencode(name)  # raises a ValueError for an invalid file name
    return str(name)


def join_path(folder: str, name: str) -> str:
    """Join ``folder`` and ``name``, a relative path separated by slashes, into a local path."""
    return os.path.join(folder, *name.split("/"))


def is_hidden(name: str) -> bool:
    """Return whether readers skip files or folders with this name, as in Spark."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def list_files(
    directory: str, pattern: Sequence[str] = (), *, ignore_table_format: bool = False
) -> dict[str, str]:
    """Return the visible files below ``directory`` in order, as a mapping from final paths to current paths.

    With a ``pattern``, one part per level (``**`` matches any number of levels), only matching files and files in
    matching folders are returned; hidden names never match. The two paths of a file differ as long as the save that
    adds it is unfinished.

    Raises ``OSError`` if a folder cannot be read or keeps changing, ``CorruptFileError`` if a journal is corrupt, and
    ``TableFormatError`` for the folder of a table unless ``ignore_table_format``.
    """
    before: _Walk | None = None
    for _ in range(_WALKS):
        walk = _Walk(directory, tuple(pattern), ignore_table_format)
        if walk.is_stable or (before is not None and walk.agrees(before)):
            return walk.found
        before = walk
    raise OSError(errno.EBUSY, f"The folder changed during each of {_WALKS} attempts to list it; try again", directory)


def matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the path with the components ``names``, or a folder that contains it, matches a pattern."""
    if not pattern:
        return not any(map(is_hidden, names))
    if pattern[0] == "**":
        return any(matches(names[at:], pattern[1:]) for at in range(len(names)) if not any(map(is_hidden, names[:at])))
    if not names or is_hidden(names[0]) or not compile_pattern(pattern[0])(names[0]):
        return False
    return matches(names[1:], pattern[1:]) if len(names) > 1 or len(pattern) > 1 else True


def may_contain_matches(folders: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the folder with the path components ``folders`` can contain, at any depth, matching files."""
    if not folders:
        return True
    if not pattern or pattern[0] == "**":
        return not any(map(is_hidden, folders))
    is_named = not is_hidden(folders[0]) and compile_pattern(pattern[0])(folders[0]) is not None
    return is_named and may_contain_matches(folders[1:], pattern[1:])


class _Folder:
    """Listing of one folder, including the files that interrupted saves to this folder add and replace."""

    def __init__(self, path: str) -> None:
        self.path = path
        without_journal: set[str] = set()
        while True:
            self.files: dict[str, str] = {}
            self.deeper: dict[str, str] = {}
            self.folders: list[str] = []
            self.links: list[str] = []
            self.commits: list[str] = []
            self.format: str | None = None  # format of the table in this folder
            self.old: set[str] = set()
            self._scan()
            journals = {commit: Journal.load(commit) for commit in self.commits}
            ended = {commit for commit, journal in journals.items() if journal is None}
            if ended <= without_journal:
                break
            # A save ended after the scan began, which may have seen files that the save removed.
            without_journal |= ended
        for commit, journal in journals.items():
            if journal is not None:
                self.old.update(journal.replaced_paths(path))
                for name in journal.new:
                    if not any(map(is_hidden, name.split("/"))):
                        self._add(commit, name)
        self.files = dict(sorted(self.files.items()))
        self.folders.sort()

    def _scan(self) -> None:
        start, files = os.path.join(self.path, ""), self.files
        with os.scandir(self.path or os.curdir) as entries:
            for entry in entries:
                name = entry.name
                try:
                    if name[0] in "._" or entry.is_dir():
                        self._classify(entry, start + name)
                        continue
                except OSError as error:
                    raise local_paths.explain_broken_link(error, start + name) from None
                path = start + name
                files[path] = path

    def _classify(self, entry: os.DirEntry[str], path: str) -> None:
        self.format = self.format or format_of_entry(entry)
        if entry.name.startswith(COMMIT) and entry.is_dir():
            self.commits.append(path)
        elif is_hidden(entry.name):
            return
        elif not entry.is_dir():
            self.files[path] = path
        elif entry.is_symlink():
            self.links.append(path)
        else:
            self.folders.append(path)

    def _add(self, commit: str, name: str) -> None:
        """Add a file of a commit, from the folder of the commit or from its final path. Skip a missing file."""
        files = self.deeper if "/" in name else self.files
        place = join_path(self.path, name)
        if os.path.exists(here := join_path(commit, name)):
            files[place] = here
        elif os.path.exists(place):
            files[place] = place


class _Walk:
    """One traversal of a folder and of the subfolders that may match a pattern."""

    def __init__(self, directory: str, pattern: tuple[str, ...], ignore_table_format: bool) -> None:
        self._ignore_table_format = ignore_table_format
        self._guard = TableGuard()
        self.commits: set[str] = set()
        self.stamps: dict[str, int] = {}
        self.complete = True
        self._found: dict[str, str] = {}
        self._old: set[str] = set()
        self._logged: list[tuple[str, SinkLog, bool]] = []
        # A stack, because folders can be nested deeper than Python's call stack. Each folder is entered once per
        # remaining pattern.
        waiting = [(directory, pattern)]
        seen: set[tuple[str, tuple[str, ...]]] = set()
        while waiting:
            step = waiting.pop()
            if step not in seen:
                seen.add(step)
                waiting += reversed(self._list_folder(*step, is_root=len(seen) == 1))
        self.found = {path: here for path, here in self._found.items() if path not in self._old}
        for folder, log, whole in self._logged:
            self._apply_log(folder, log, whole)

    def _list_folder(
        self, directory: str, pattern: tuple[str, ...], *, is_root: bool
    ) -> list[tuple[str, tuple[str, ...]]]:
        """List a folder and add its entries and logs to the results of the traversal.

        Return the folders to enter next, in order, each with the remaining pattern.
        """
        try:
            stamp = os.stat(directory or os.curdir).st_mtime_ns
            log = SinkLog.read(directory)  # read before the files, which exist when the log lists them
            folder = _Folder(directory)
        except FileNotFoundError:
            if is_root:
                raise
            self.complete = False
            return []
        if folder.format is not None and not self._ignore_table_format:
            raise TableFormatError(folder.format, directory)
        if folder.format is not None:
            folder.folders = [path for path in folder.folders if not is_metadata_folder(path)]
        self.stamps.setdefault(directory, stamp)
        self.commits.update(folder.commits)
        self._old |= folder.old
        start = len(os.path.join(directory, ""))
        self._found |= {
            path: at for path, at in folder.deeper.items() if matches(path[start:].split(os.sep), pattern)
        }
        if log is not None:
            self._logged.append((directory, log, pattern in ((), ("**",))))
        return self._descend(folder, pattern)

    def _apply_log(self, folder: str, log: SinkLog, is_complete: bool) -> None:
        """Remove files below ``folder`` that are not listed in the folder's log."""
        start = os.path.join(folder, "")
        files = {path: tuple(path[len(start) :].split(os.sep)) for path in self.found if path.startswith(start)}
        retained = log.committed_files([*files.values()], is_complete)
        for path, parts in files.items():
            if parts not in retained:
                del self.found[path]

    def _descend(self, folder: _Folder, pattern: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
        if pattern in ((), ("**",)):
            self._found |= folder.files
            return [(path, ()) for path in folder.folders]
        if pattern[0] == "**":
            return self._descend(folder, pattern[1:]) + [(path, pattern) for path in folder.folders]
        matches = compile_pattern(pattern[0])
        if len(pattern) == 1:
            self._found |= {path: at for path, at in folder.files.items() if matches(os.path.basename(path))}
        links = [path for path in folder.links if matches(os.path.basename(path))]
        if not self._ignore_table_format:
            for path in links:
                self._guard.check(path)
        folders = [path for path in folder.folders if matches(os.path.basename(path))]
        return [(path, pattern[1:]) for path in sorted(folders + links)]

    @property
    def is_stable(self) -> bool:
        """Whether no folder can have changed since the traversal began."""
        known = time.time_ns() - _FRESH
        try:
            return self.complete and all(
                os.stat(path or os.curdir).st_mtime_ns == stamp < known for path, stamp in self.stamps.items()
            )
        except FileNotFoundError:
            return False

    def agrees(self, previous_walk: _Walk) -> bool:
        """Return whether no save or removal occurred after ``previous_walk``. Files added otherwise are ignored."""
        added = self.found.keys() - previous_walk.found.keys()
        return (
            self.commits == previous_walk.commits
            and previous_walk.found.items() <= self.found.items()
            and not any(_OURS.fullmatch(os.path.basename(path)) for path in added)
        )
