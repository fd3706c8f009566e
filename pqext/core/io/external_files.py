"""The other files that a summary file's column chunks lie in, found below the summary's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeVar

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.usage import Usage
from pqext.core.io.source import PathSource, Source, Span, changed

T = TypeVar("T")

ExternalFiles = Literal["folder", "any", "refuse"]
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]")
"""How an absolute path, a drive or an address begins."""


def spans_of(ranges: Sequence[tuple[Source, tuple[int, int]]]) -> list[Span]:
    """As ``Source.spans``, of ranges in several sources."""
    return _apart(ranges, Source.spans)


def read_many(ranges: Sequence[tuple[Source, tuple[int, int]]], *, keep: bool = False) -> list[Bytes]:
    """As ``Source.read_many``, of ranges in several sources."""
    return _apart(ranges, partial(Source.read_many, keep=keep))


def _apart(
    ranges: Sequence[tuple[Source, tuple[int, int]]], read: Callable[[Source, Sequence[tuple[int, int]]], list[T]]
) -> list[T]:
    positions: dict[Source, list[int]] = {}
    for position, (source, _) in enumerate(ranges):
        positions.setdefault(source, []).append(position)
    found: dict[int, T] = {}
    for source, places in positions.items():
        found.update(zip(places, read(source, [ranges[place][1] for place in places]), strict=True))
    return [found[position] for position in range(len(ranges))]


class FileResolver:
    """Finds the files that ``file_path`` names, relative to the folder of the file at ``path``.

    ``allowed``: ``"folder"`` takes files in that folder and below it, links followed; ``"any"`` takes absolute
    paths and ``..`` too; ``"refuse"`` takes none. Threads may share a resolver.
    ``usage`` counts what is read of them.
    """

    def __init__(self, path: str | None, allowed: ExternalFiles, usage: Usage | None = None) -> None:
        self._path = path
        self.usage = usage
        self._allowed = allowed
        self._known: dict[str, Source] = {}

    def source(self, file_path: str) -> Source:
        """The file called ``file_path``.

        Raises ``UnsupportedError`` where the reader's option ``external_files`` forbids it, ``CorruptFileError``
        where there is no such file.
        """
        found = self._known.get(file_path)
        return found if found is not None else self._known.setdefault(file_path, _ExternalSource(self, file_path))

    def open(self, file_path: str) -> PathSource:
        """The file called ``file_path``, opened; the caller closes it. Raises as `source` does."""
        place = self._place(file_path)
        try:
            return PathSource(place)
        except (OSError, ValueError) as error:
            raise CorruptFileError(
                f"the column chunk's file {file_path!r} cannot be opened: {error}", path=self._path
            ) from None

    def _place(self, file_path: str) -> str:
        if self._allowed == "refuse":
            raise self._refused(file_path, 'external_files is "refuse"')
        if self._path is None:
            raise self._refused(file_path, "the file that names it was not opened by a path")
        if not file_path or "\0" in file_path:
            raise CorruptFileError(f"{file_path!r} is no name of a file", path=self._path)
        folder = os.path.dirname(os.path.abspath(self._path))
        if self._allowed == "any":
            return os.path.join(folder, file_path)
        if _ELSEWHERE.match(file_path):
            raise self._refused(file_path, "the path is not relative")
        if ".." in re.split(r"[/\\]", file_path):
            raise self._refused(file_path, "the path goes upwards")
        place = os.path.realpath(os.path.join(folder, file_path))
        if not _is_below(place, os.path.realpath(folder)):
            raise self._refused(file_path, "a link leads out of the folder")
        return place

    def _refused(self, file_path: str, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"the column chunk lies in another file, {file_path[:1000]!r}, which is not opened: {reason}. "
            'Files outside the folder are opened with external_files="any"',
            feature="external files", path=self._path,
        )


def is_plain(file_path: str) -> bool:
    """Is it a relative path that leads down, in the one spelling that such a path has?"""
    if "\0" in file_path or _ELSEWHERE.match(file_path):
        return False
    return not {"", ".", ".."} & {*re.split(r"[/\\]", file_path)}


def _is_below(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # on another drive
        return False


class _ExternalSource(Source):
    """A file that is open only while it is read: a summary may name more files than a process may open."""

    merge_gap = PathSource.merge_gap
    tail_bytes = 0

    def __init__(self, files: FileResolver, file_path: str) -> None:
        self._files = files
        self._name = file_path
        with files.open(file_path) as opened:
            super().__init__(opened.path, opened.size)
            self._stamp = opened.stamp
        if files.usage is not None:
            self.usage = files.usage

    def _fetch(self, offset: int, length: int) -> Bytes:
        with self._files.open(self._name) as opened:
            if opened.stamp != self._stamp:
                raise changed(opened.path, self._stamp, opened.stamp)
            return opened.read(offset, length)
