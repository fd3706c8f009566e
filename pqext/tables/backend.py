"""Interface of table formats: list the files of a version, lay out and commit new files, and read the history."""

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
"""Minimum age of a leftover file. A younger file without references may belong to a running job."""


class TableConflictError(ParquetError):
    """Another writer has committed a conflicting change. The call has changed nothing."""


class CommitStateUnknownError(ParquetError):
    """The store or the catalog failed during a commit, so the outcome of the commit is unknown.

    The new files remain. Before you write the rows again, check that the table does not contain them. If the commit has
    failed, ``clean`` removes the files.
    """

    def __init__(self, reason: str, table: str) -> None:
        super().__init__(
            f"it is unknown whether the commit has succeeded: {reason}; the new files are retained; check that the "
            "table does not contain their rows before writing them again, because the commit may still succeed",
            path=table,
        )


@dataclass(frozen=True, slots=True)
class TableFile:
    """A data file of a table version. ``path`` is the path in the log, and ``location`` the path or object to open."""

    path: str
    location: Any
    size: int
    rows: int | None
    partition: Mapping[str, Any]
    """Values by partition column. Columns that became partition columns after the file was written are missing."""
    has_deleted_rows: bool


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file that was written for a commit, with the log entry.

    The object can be pickled, so that one process can write the file and another process can commit it.
    """

    file: WrittenFile
    entry: Any
    partition: tuple[Any, ...]
    """The values of the partition columns."""


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Schema and writer options of new data files, derived from the rows and the table.

    ``schema`` contains the columns of the rows under their names in files, and ``convert`` converts a batch of rows to
    it. cloudpickle can pickle the layout, so that other processes can write and describe the files.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...]
    options: Mapping[str, Any]
    convert: Callable[[pa.RecordBatch], pa.RecordBatch]
    describe: Callable[[WrittenFile, Any], NewFile]
    """Returns the entry for the log of a written file, with the statistics of the file at a location."""
    definition: Any
    """Schema, partitions and properties of the table. A commit to a table with another definition is a conflict."""
    new_schema: str | None = None
    """Schema of the table that the commit creates, as JSON; None if the table exists."""
    divide: Callable[[pa.RecordBatch], Iterable[tuple[str, pa.RecordBatch]]] | None = None
    """Divides converted rows by partition, if the files contain the partition columns."""

    def division(self, max_records_per_file: int | None, target_file_bytes: int | None) -> Division:
        """Return the rules that divide rows into files."""
        by = () if self.divide is not None else self.partition_by
        return Division(by, max_records_per_file, target_file_bytes, self.divide)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file in the folder of a table that no version refers to. ``modified`` is in milliseconds since 1970."""

    path: str
    location: Any
    size: int
    modified: int


def partition_key(values: Iterable[Any]) -> tuple[str, ...]:
    """Return a key for comparing partition values. NaN equals NaN, and 0.0 differs from -0.0."""
    return tuple(map(repr, values))


def expired_version_error(version: int | None, name: str) -> TableConflictError:
    """Return the error for a commit whose base version no longer exists, so that conflicts cannot be detected."""
    return TableConflictError(
        f"version {version}, on which this call is based, no longer exists; nothing was changed; repeat the call",
        path=name,
    )


def check_unchanged(paths: Sequence[str], files: Mapping[str, TableFile], name: str) -> None:
    """Raise ``TableConflictError`` if another writer has removed a file at ``paths``, or deleted rows of the file.

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
    """Whether a commit is running, or was interrupted and may still succeed."""

    @property
    def version(self) -> int | None:
        """Number of the version; None if the table does not exist."""

    @property
    def partitions(self) -> pa.Schema:
        """Schema of the partition columns."""

    def files(self) -> list[TableFile]:
        """Return the data files of the version."""

    def paths(self, version: int | None) -> frozenset[str]:
        """Return the data file paths of an earlier version; empty if ``version`` is None.

        Raises ``TableConflictError`` if the version no longer exists.
        """

    def snapshot(self) -> TableSnapshot:
        """Return the snapshot of the version for scans."""

    def check(self, removes_rows: bool) -> None:
        """Raise ``UnsupportedError`` if pqext cannot add files to the table or, with ``removes_rows``, remove rows."""

    def check_removal(self, files: Sequence[TableFile]) -> None:
        """Raise ``UnsupportedError`` if the table library cannot remove all ``files`` from the table."""

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
        """Add and remove files in one version, and return its number.

        ``removed`` contains the paths of the files to remove. If it is a function, it returns these paths, and is
        called again before the commit is repeated on a later version. ``order`` identifies the order of the rows in
        the added files, and is recorded in the log.

        Raises ``TableConflictError`` if another writer has removed one of these files, or changed the definition of
        the table since ``layout`` was made, and ``CommitStateUnknownError`` if the commit may have succeeded.
        """

    def clusterings(self) -> Mapping[str, tuple[Any, str]]:
        """Map file paths to the commit that added the file, and to the row order that the commit records.

        Files are missing if their commit records no order.
        """

    def is_committed(self, paths: Sequence[str]) -> bool:
        """Return whether any of the files at ``paths`` was added to the table."""

    def stored_files(self) -> Iterator[Leftover]:
        """Yield all files in the folder for new files, including files that the table does not contain.

        Raises ``UnsupportedError`` if the folder cannot be listed.
        """

    def find_leftovers(self, older_than: timedelta) -> list[Leftover]:
        """Return the files in the folder that are older than ``older_than`` and to which no version refers."""

    def describe(self) -> Mapping[str, Any]:
        """Return the format, protocol and properties of the table."""


@dataclass(frozen=True, slots=True)
class Append:
    """Log entries of the files that a version adds to a table; empty if the version only rewrites files."""

    version: int
    files: tuple[Any, ...]


class TableHistory(Protocol):
    """Versions of a table, in the order of their commits."""

    name: str

    @property
    def version(self) -> int:
        """Number of the current version."""

    def previous_version(self, version: int) -> int:
        """Return the version before ``version``. Pass it to :meth:`appends` as ``after`` to start at ``version``."""

    def open(self, version: int) -> TableSnapshot:
        """Return the snapshot of ``version`` for scans."""

    def appends(self, after: int, until: int, skip_change_commits: bool) -> Iterator[Append]:
        """Yield the files that each version after ``after``, up to ``until``, adds.

        A commit is read when its append is requested. The append of a version that only rewrites files is empty.

        Raises ``FileNotFoundError`` if a version does not exist or the log no longer contains it, ``ValueError`` if
        ``after`` is later than ``until``, and ``UnsupportedError`` if a version removes or changes rows, unless
        ``skip_change_commits`` is true.
        """

    def snapshot(self, appends: Iterable[Append], until: int) -> TableSnapshot:
        """Return a snapshot of the files in ``appends`` for scans, with the schema of version ``until``."""


def changed_rows_error(version: int, name: str) -> UnsupportedError:
    """Return the error for a version that removes or changes rows."""
    return UnsupportedError(
        f"version {version} removes or changes rows, but a scan of appended rows can only add rows; skip versions of "
        "this type with skip_change_commits", feature="changed rows in scans of appends", path=name,
    )
