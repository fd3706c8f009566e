"""Interface of the table formats: the files of a version, the layout of new files, commits, and the history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import pyarrow as pa

from pqext.core.base.errors import ParquetError, UnsupportedError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.table_snapshot import TableSnapshot
from pqext.dataset.writing.part_files import Division, WrittenFile

TARGET_FILE_BYTES = 128 << 20
"""Approximate size of new files in bytes."""
MIN_AGE = timedelta(days=7)
"""Age after which a file without references is a leftover, and not a file of a running job."""


class TableConflictError(ParquetError):
    """Another writer committed a change that contradicts this one. Nothing was changed."""


class CommitStateUnknownError(ParquetError):
    """The store or the catalog failed during a commit, which may have succeeded, or may still do so.

    The new files are retained. If their rows are not in the table later, write them again; ``clean`` removes the files.
    """

    def __init__(self, reason: str, table: str) -> None:
        super().__init__(
            f"it is unknown whether the commit has succeeded: {reason}; the new files are retained; look for their "
            "rows in the table before writing them again, because the commit may still succeed", path=table,
        )


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table version. ``path`` identifies it in the log, ``location`` can be opened."""

    path: str
    location: Any
    size: int
    rows: int | None
    partition: Mapping[str, Any]
    """The values of the partition columns; without those that an earlier definition of the partitions lacks."""
    has_deleted_rows: bool


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file for a commit: the file that was written, and its entry for the log.

    It can be pickled, so that the process that writes the file need not be the one that commits it.
    """

    file: WrittenFile
    entry: Any
    partition: tuple[Any, ...]
    """The values of the partition columns."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Schema and options of new data files, derived from the schema of the rows and of the table.

    ``schema`` has the columns of the rows under the names in files. ``convert`` converts a batch of rows to it. The
    layout can be pickled by cloudpickle, so that other processes can write and describe the files.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...]
    options: Mapping[str, Any]
    convert: Callable[[pa.RecordBatch], pa.RecordBatch]
    describe: Callable[[WrittenFile, Any], NewFile]
    """Describes a written file for the log, with statistics read from the file at its location."""
    definition: Any
    """Schema, partitions and properties of the table. A commit to a table with another definition is a conflict."""
    new_schema: str | None = None
    """Schema of the table that the commit creates, as JSON; None if the table exists."""
    divide: Callable[[pa.RecordBatch], Iterable[tuple[str, pa.RecordBatch]]] | None = None
    """Divides converted rows by partitions, in a table whose files contain the partition columns."""

    def division(self, max_records_per_file: int | None, target_file_bytes: int | None) -> Division:
        """Return the rules that divide rows into files."""
        by = () if self.divide is not None else self.partition_by
        return Division(by, max_records_per_file, target_file_bytes, self.divide)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file in the folder of a table to which no version refers. ``modified`` is in milliseconds since 1970."""

    path: str
    location: Any
    size: int
    modified: int


def partition_key(values: Iterable[Any]) -> tuple[str, ...]:
    """Return a key of partition values that is equal for the same values, also for NaN, and different for 0 and -0."""
    return tuple(map(repr, values))


def expired_version_error(version: int | None, name: str) -> TableConflictError:
    """Return the error for a commit whose conflicts are unknown, because the planned version no longer exists."""
    return TableConflictError(
        f"version {version}, to which this call applies, no longer exists; nothing was changed; write again", path=name
    )


def check_unchanged(paths: Sequence[str], files: Mapping[str, TableFile], name: str) -> None:
    """Raise ``TableConflictError`` unless the files at ``paths`` are in a table, without rows deleted since.

    ``files`` are the files of the current version of the table ``name``.
    """
    for path in paths:
        if path not in files or files[path].has_deleted_rows:
            change = "removed" if path not in files else "deleted rows of"
            message = f"another writer has {change} {redact_uri(path)}, which this call replaces; nothing was changed"
            raise TableConflictError(message, path=name)


class TableWriter(Protocol):
    """A version of a table to which files can be added."""

    name: str
    root: str
    """Path or URL of the folder for new files."""
    locate: Callable[[str], Any]
    """Returns the local path, or the location in a store, of a file in the folder for new files. It can be pickled."""
    is_committing: bool
    """Whether a commit is running, or was interrupted, so that it may succeed."""

    @property
    def version(self) -> int | None:
        """Number of the version; None if the table does not exist."""

    @property
    def partitions(self) -> pa.Schema:
        """The partition columns."""

    def files(self) -> list[TableFile]:
        """Return the data files of the version."""

    def paths(self, version: int | None) -> frozenset[str]:
        """Return the paths of the data files of an earlier version; none if it is None.

        Raises ``TableConflictError`` if the version no longer exists.
        """

    def snapshot(self) -> TableSnapshot:
        """Return the version for scans."""

    def check(self, removes_rows: bool) -> None:
        """Raise ``UnsupportedError`` if files cannot be added, or rows cannot be removed if ``removes_rows``."""

    def check_removal(self, files: Sequence[TableFile]) -> None:
        """Raise ``UnsupportedError`` if the library cannot commit the removal of one of ``files``."""

    def layout(
        self, schema: pa.Schema, partition_by: Sequence[str], options: Mapping[str, Any],
        allow_undeclared_shredding: bool,
    ) -> FileLayout:
        """Return the layout of new files for rows of ``schema``.

        Raises ``SchemaMismatchError`` if the rows do not match the table, and ``UnsupportedError`` if the table format
        cannot represent a column.
        """

    def commit(
        self, layout: FileLayout, added: Sequence[NewFile], removed: Sequence[str] | Callable[[], Sequence[str]],
        data_change: bool, order: str | None = None,
    ) -> int:
        """Commit added and removed files in one version, and return its number.

        ``removed`` contains the paths of the files to remove, or is a function that returns them and is called for
        each version to which the commit is applied. Commits that remove files, or may, apply to the version whose
        files were selected; other commits also apply to later versions. ``order`` identifies the order of the rows
        in the added files, and is recorded.

        Raises ``TableConflictError`` if another writer has removed one of these files, or changed the definition of
        the table since ``layout`` was made, and ``CommitStateUnknownError`` if the commit may have succeeded.
        """

    def clusterings(self) -> Mapping[str, tuple[Any, str]]:
        """Return a commit and the order that it records, by the paths of the files that it adds.

        Files of commits without an order are missing.
        """

    def is_committed(self, paths: Sequence[str]) -> bool:
        """Return whether any of the files at ``paths`` was added to the table."""

    def stored_files(self) -> Iterator[Leftover]:
        """Yield the files in the folder for new files, whether or not the table contains them.

        Raises ``UnsupportedError`` if the folder cannot be listed.
        """

    def leftovers(self, older_than: timedelta) -> list[Leftover]:
        """Return the files in the folder that no version refers to, and that are older than ``older_than``."""

    def describe(self) -> Mapping[str, Any]:
        """Return the format, protocol and properties of the table."""


@dataclass(frozen=True, slots=True)
class Append:
    """Files that a version adds to a table, as its format describes them. Empty if the version only rewrites files."""

    version: int
    files: tuple[Any, ...]


class TableHistory(Protocol):
    """Versions of a table, in the order of their commits."""

    name: str

    @property
    def version(self) -> int:
        """Number of the current version."""

    def previous(self, version: int) -> int:
        """Return the version before ``version``, for which :meth:`appends` starts with it."""

    def open(self, version: int) -> TableSnapshot:
        """Return all files of ``version`` for scans."""

    def appends(self, after: int, until: int, skip_change_commits: bool) -> Iterator[Append]:
        """Yield the appends of the versions after ``after`` up to ``until``, without their schema.

        The commit of a version is read when its append is requested. Rewrites that change no rows are empty.

        Raises ``FileNotFoundError`` if a version does not exist or the log no longer contains it, ``ValueError`` if
        ``after`` is later than ``until``, and ``UnsupportedError`` for a version that removes or changes rows, unless
        these versions are to be skipped.
        """

    def snapshot(self, appends: Iterable[Append], until: int) -> TableSnapshot:
        """Return the files of ``appends`` for scans, with the schema of version ``until``."""


def changed_rows_error(version: int, name: str) -> UnsupportedError:
    """Return the error for a version that removes or changes rows."""
    return UnsupportedError(
        f"version {version} removes or changes rows, which a scan of appended rows cannot represent; skip these "
        "versions with skip_change_commits", feature="changed rows in scans of appends", path=name,
    )
