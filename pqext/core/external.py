"""The other files that a summary file's column chunks lie in, found below the summary's folder."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from pqext.core.buffers import Bytes
from pqext.core.errors import CorruptFileError, UnsupportedError
from pqext.core.source import PathSource, Source, Span

T = TypeVar("T")

ExternalFiles = Literal["folder", "any", "refuse"]
OPEN_FILES = 64
"""Other files that stay open at a time."""
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]")
"""How an absolute path, a drive or an address begins."""


def spans_of(ranges: Sequence[tuple[Source, tuple[int, int]]]) -> list[Span]:
    """As ``Source.spans``, of ranges in several sources."""
    return _apart(ranges, Source.spans)


def read_many(ranges: Sequence[tuple[Source, tuple[int, int]]]) -> list[Bytes]:
    """As ``Source.read_many``, of ranges in several sources."""
    return _apart(ranges, Source.read_many)


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
    """Opens the files that ``file_path`` names, relative to the folder of the file at ``path``.

    ``allowed``: ``"folder"`` opens files in that folder and below it, links followed; ``"any"`` takes absolute
    paths and ``..`` too; ``"refuse"`` opens none. Threads may share a resolver.
    """

    def __init__(self, path: str | None, allowed: ExternalFiles) -> None:
        self._path = path
        self._allowed = allowed
        self._open: OrderedDict[str, Source] = OrderedDict()
        self._lock = threading.Lock()

    def source(self, file_path: str) -> Source:
        """The file called ``file_path``.

        Raises ``UnsupportedError`` where the reader's option ``external_files`` forbids it, ``CorruptFileError``
        where there is no such file.
        """
        with self._lock:
            found = self._open.get(file_path)
            if found is None:
                # One that makes room is not closed here: a thread may be reading from it. It closes when none does.
                while len(self._open) >= OPEN_FILES:
                    self._open.popitem(last=False)
                found = self._open[file_path] = self._opened(file_path)
            self._open.move_to_end(file_path)
            return found

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            for source in self._open.values():
                source.close()
            self._open.clear()

    def _opened(self, file_path: str) -> Source:
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
        if os.path.commonpath([place, os.path.realpath(folder)]) != os.path.realpath(folder):
            raise self._refused(file_path, "a link leads out of the folder")
        return place

    def _refused(self, file_path: str, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"the column chunk lies in another file, {file_path!r}, which is not opened: {reason}. "
            'Files outside the folder are opened with external_files="any"',
            feature="external files", path=self._path,
        )
