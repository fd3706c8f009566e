"""Open files that contain column chunks of a summary file, resolved relative to the summary's folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeVar

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.usage import Usage
from pqext.core.io.source import PathSource, Source, Span, changed_file_error

T = TypeVar("T")

ExternalFiles = Literal["folder", "any", "reject"]
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]")
"""Start of an absolute path, a drive or a URL."""


def make_spans(ranges: Sequence[tuple[Source, tuple[int, int]]]) -> list[Span]:
    """Create spans like ``Source.spans``, for ranges in several sources."""
    return _map_by_source(ranges, Source.spans)


def read_many(ranges: Sequence[tuple[Source, tuple[int, int]]], *, is_metadata: bool = False) -> list[Bytes]:
    """Read ranges like ``Source.read_many``, for ranges in several sources."""
    return _map_by_source(ranges, partial(Source.read_many, is_metadata=is_metadata))


def _map_by_source(
    ranges: Sequence[tuple[Source, tuple[int, int]]], read: Callable[[Source, Sequence[tuple[int, int]]], list[T]]
) -> list[T]:
    positions: dict[Source, list[int]] = {}
    for position, (source, _) in enumerate(ranges):
        positions.setdefault(source, []).append(position)
    results: dict[int, T] = {}
    for source, indexes in positions.items():
        results.update(zip(indexes, read(source, [ranges[index][1] for index in indexes]), strict=True))
    return [results[position] for position in range(len(ranges))]


class FileResolver:
    """Resolver of the ``file_path`` of column chunks, relative to the folder of the file at ``path``.

    Several threads can share a resolver.

    Args:
        path: Path of the summary file; None if it was not opened from a path.
        allowed_files: ``"folder"`` accepts files in that folder and below it, after links are followed. ``"any"`` also
            accepts absolute paths and ``..``. ``"reject"`` accepts no files.
        usage: Counts the bytes read from the files.
    """

    def __init__(self, path: str | None, allowed_files: ExternalFiles, usage: Usage | None = None) -> None:
        self._path = path
        self.usage = usage
        self._allowed = allowed_files
        self._sources: dict[str, Source] = {}

    def source(self, file_path: str) -> Source:
        """Return the source of the file at ``file_path``.

        Raises ``UnsupportedError`` if the reader's option ``external_files`` forbids it, and ``CorruptFileError`` if
        the file cannot be opened.
        """
        source = self._sources.get(file_path)
        return source if source is not None else self._sources.setdefault(file_path, _ExternalSource(self, file_path))

    def open(self, file_path: str) -> PathSource:
        """Open the file at ``file_path``, which the caller must close. Raises the same errors as :meth:`source`."""
        path = self._resolve(file_path)
        try:
            return PathSource(path)
        except (OSError, ValueError) as error:
            raise CorruptFileError(
                f"the column chunk's file {file_path!r} cannot be opened: {error}", path=self._path
            ) from None

    def _resolve(self, file_path: str) -> str:
        if self._allowed == "reject":
            raise self._forbidden_error(file_path, 'external_files is "reject"')
        if self._path is None:
            raise self._forbidden_error(file_path, "the file that references it was not opened from a path")
        if not file_path or "\0" in file_path:
            raise CorruptFileError(f"{file_path!r} is not a valid file path of a column chunk", path=self._path)
        folder = os.path.dirname(os.path.abspath(self._path))
        if self._allowed == "any":
            return os.path.join(folder, file_path)
        if _ABSOLUTE.match(file_path):
            raise self._forbidden_error(file_path, "the path is not relative")
        if ".." in re.split(r"[/\\]", file_path):
            raise self._forbidden_error(file_path, "the path contains '..'")
        path = os.path.realpath(os.path.join(folder, file_path))
        if not _is_below(path, os.path.realpath(folder)):
            raise self._forbidden_error(file_path, "a symbolic link leads out of the folder")
        return path

    def _forbidden_error(self, file_path: str, reason: str) -> UnsupportedError:
        return UnsupportedError(
            f"the column chunk is in another file, {file_path[:1000]!r}, which is not opened: {reason}; "
            'pass external_files="any" to open files outside the folder',
            feature="external files", path=self._path,
        )


def is_plain_path(file_path: str) -> bool:
    """Return whether a path is relative and normalised, and does not leave its folder."""
    if "\0" in file_path or _ABSOLUTE.match(file_path):
        return False
    return not {"", ".", ".."} & {*re.split(r"[/\\]", file_path)}


def _is_below(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([path, folder]) == folder
    except ValueError:  # on another drive
        return False


class _ExternalSource(Source):
    """File that is open only during reads, because a summary may refer to more files than a process can open."""

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
                raise changed_file_error(opened.path, self._stamp, opened.stamp)
            return opened.read(offset, length)
