"""The files that a summary names, each opened with what the summary has of it instead of its own footer."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import overload

from pqext.core.buffers import EMPTY, Bytes
from pqext.core.errors import ChangedFileError, CorruptFileError
from pqext.core.files.external import FileResolver, is_plain
from pqext.core.files.summary_note import NotedFile, noted
from pqext.core.footer import FootedSource, Footer, read_footer
from pqext.core.kernels.summary import files_of
from pqext.core.limits import Limits
from pqext.core.metadata import FileMetaData, KeyValue, RowGroup
from pqext.core.source import PathSource, changed
from pqext.core.text import visible
from pqext.core.thrift import LazyStructs
from pqext.core.usage import Usage

Stamp = tuple[int, int]
"""Size and time of the last change, in nanoseconds."""


class NotByFileError(Exception):
    """A summary that does not say of each row group in which one file it lies."""


class Summary:
    """The summary at ``path``, in whose ``groups`` the row groups of each file are found by its name.

    Raises ``NotByFileError``, ``OSError``, and ``ParquetError`` where it is damaged.
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.path = path
        with PathSource(path) as source:
            self._footer = read_footer(source, limits)
            self.usage: Usage = source.usage
        if self._footer.decryptor is not None:
            raise NotByFileError("it is encrypted")
        self._all = self.metadata.row_groups
        index = self._all.untouched if isinstance(self._all, LazyStructs) else None
        found = None if index is None else files_of(index)
        if found is None:
            raise NotByFileError("it has row groups that do not lie in one file each")
        self._rows = found[1]
        self._starts = found[2]
        self.groups: dict[str, list[int]] = {}
        for position, name in enumerate(found[0]):
            self.groups.setdefault(name.decode("utf-8", "surrogateescape"), []).append(position)
        if not all(map(is_plain, self.groups)):
            raise NotByFileError("it names files that do not lie below its folder")

    @property
    def metadata(self) -> FileMetaData:
        """The footer of all files."""
        return self._footer.metadata

    @cached_property
    def noted(self) -> dict[str, NotedFile] | None:
        """The files as the summary notes them; None where it does not, or has other files or rows than it says."""
        found = noted(self.metadata)
        is_whole = found is not None and self.groups.keys() <= found.keys()
        return found if is_whole and self.metadata.num_rows == sum(self._rows) else None

    def contradiction(self) -> CorruptFileError | None:
        """What cannot be true of any files: rows below zero, rows that are missing, a row group that is there twice."""
        total = sum(self._rows)
        message = None
        if any(rows < 0 for rows in self._rows):
            message = f"a row group of {min(self._rows)} rows"
        elif self.metadata.num_rows > total:
            message = (
                f"the footer counts {self.metadata.num_rows} rows where its row groups hold {total}: "
                "row groups are missing"
            )
        for name, positions in self.groups.items():
            starts = [self._starts[position] for position in positions if self._rows[position]]
            if len(set(starts)) < len(starts):
                message = f"a row group of {visible(name)} is there twice"
        return None if message is None else CorruptFileError(message, path=self.path)

    def trusted(self, name: str, place: str) -> SummarisedSource:
        """The file ``name`` at ``place``, taken for what the summary says.

        Raises ``CorruptFileError`` where there is none, and ``ChangedFileError`` for one of another size than is noted.
        """
        resolver = FileResolver(self.path, "folder")
        try:
            found = os.stat(place)
        except (OSError, ValueError) as error:
            raise CorruptFileError(
                f"the column chunk's file {name!r} cannot be opened: {error}", path=self.path
            ) from None
        if not stat.S_ISREG(found.st_mode):
            raise CorruptFileError(f"the column chunk's file {name!r} is no regular file", path=self.path)
        stamp, file = (found.st_size, found.st_mtime_ns), (self.noted or {}).get(name)
        if file is not None and file.size != found.st_size:  # the time alone differs in copies
            raise ChangedFileError(
                f"it has {found.st_size} bytes where {visible(self.path)} notes {file.size}: "
                "pqext.write_summary makes the summary anew, and a scan of the folder needs none", path=place,
            )
        return self._source(name, place, stamp, self.metadata.key_value_metadata, lambda: resolver.open(name))

    def unchanged(self, name: str, place: str) -> SummarisedSource | None:
        """The file ``name`` at ``place``; None where it is not the one that the summary notes."""
        file = (self.noted or {}).get(name)
        try:
            found = os.stat(place)
        except (OSError, ValueError):
            return None
        if file is None or (found.st_size, found.st_mtime_ns) != file.stamp or not stat.S_ISREG(found.st_mode):
            return None
        return self._source(name, place, file.stamp, file.pairs, lambda: PathSource(place))

    def _source(
        self, name: str, place: str, stamp: Stamp, pairs: Sequence[KeyValue] | None, open: Callable[[], PathSource]
    ) -> SummarisedSource:
        positions, whole = self.groups.get(name, []), self.metadata
        metadata = FileMetaData(
            version=whole.version, schema=whole.schema, num_rows=sum(self._rows[position] for position in positions),
            row_groups=_RowGroups(self._all, positions), key_value_metadata=pairs, created_by=whole.created_by,
            column_orders=whole.column_orders,
        )
        return SummarisedSource(place, name, stamp, Footer(metadata, stamp[0], 0, EMPTY), open)


class SummarisedSource(FootedSource):
    """A file whose footer a summary tells: it is opened when a byte of it is asked for, if it is still the one."""

    merge_gap = PathSource.merge_gap
    gathered_bytes = PathSource.gathered_bytes
    tail_bytes = 0
    is_opened = False

    def __init__(
        self, path: str, name: str, stamp: Stamp, footer: Footer, open: Callable[[], PathSource]
    ) -> None:
        super().__init__(path, stamp[0])
        self.known_as = name
        self.footer = footer
        self._stamp = stamp
        self._open = open
        self._file: PathSource | None = None

    def _fetch(self, offset: int, length: int) -> Bytes:
        with self._lock:
            if self._file is None:
                file = self._open()
                if file.stamp != self._stamp:
                    file.close()
                    raise changed(self.path, self._stamp, file.stamp)
                self._file, self.is_opened = file, True
        return self._file._fetch(offset, length)

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._file is not None:
            self._file.close()


class _RowGroups(Sequence[RowGroup]):
    """Row groups of one file among those of all, each made anew when it is asked for."""

    __slots__ = ("_all", "_positions")

    def __init__(self, all: Sequence[RowGroup], positions: Sequence[int]) -> None:
        self._all = all
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, position: int) -> RowGroup: ...
    @overload
    def __getitem__(self, position: slice) -> list[RowGroup]: ...
    def __getitem__(self, position: int | slice) -> RowGroup | list[RowGroup]:
        if isinstance(position, slice):
            return [self[at] for at in range(*position.indices(len(self)))]
        at = self._positions[position]
        return self._all.peek(at) if isinstance(self._all, LazyStructs) else self._all[at]
