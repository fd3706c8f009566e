"""Commit files to Iceberg tables with ``pyiceberg``. Rejected and uncertain commits raise typed errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    UnauthorizedError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import Record

from pqext.core.base.errors import SourceError
from pqext.tables.backend import CommitStateUnknownError, TableConflictError
from pqext.tables.error_texts import error_reason

FAILURES = (CommitFailedException, ValidationException)
"""Errors after which a commit has not succeeded and can be repeated."""
_REJECTIONS = (AuthorizationExpiredError, BadRequestError, ForbiddenError, UnauthorizedError)


class CommitFailure(Exception):
    """A commit failed because another writer committed first. The commit can be repeated."""


class _SnapshotTable(Table):
    """Table that does not repeat failed commits on later snapshots.

    pyiceberg repeats failed commits on later snapshots without comparing schemas and partitions and, depending on the
    isolation level, without comparing files. Before it repeats a commit, it refreshes the table. This class then raises
    an error, unless the commit has succeeded although the catalog reported a failure.
    """

    snapshot_id: int | None = None
    """Id of the snapshot that the transaction commits."""

    def refresh(self) -> Table:
        try:
            super().refresh()
        except (NoSuchTableError, ValueError) as error:
            if _is_dropped(error):
                raise CommitFailedException("another writer has dropped the table") from None
            raise
        if self.metadata.snapshot_by_id(self.snapshot_id or 0) is None:
            raise CommitFailedException("another writer has changed the table")
        return self


def commit_files(
    table: Table, added: Sequence[DataFile], removed: Sequence[DataFile], name: str, secrets: Any,
    summary: dict[str, str],
) -> None:
    """Commit one snapshot that adds and removes files, and load it into ``table``.

    ``summary`` has additional properties of the snapshot. Messages do not contain the strings in ``secrets``.

    Raises:
        CommitFailure: If another writer has committed first.
        TableConflictError: If the table was dropped.
        SourceError: If the catalog rejects the commit.
        CommitStateUnknownError: If it is unknown whether the commit has succeeded.
    """
    retries = {
        TableProperties.COMMIT_NUM_RETRIES: "1", TableProperties.COMMIT_MIN_RETRY_WAIT_MS: "0",
        TableProperties.COMMIT_TOTAL_RETRY_TIME_MS: str(TableProperties.COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT),
    }
    metadata = table.metadata.model_copy(update={"properties": {**table.properties, **retries}})
    target = _SnapshotTable(table.name(), metadata, table.metadata_location, table.io, table.catalog, table.config)
    try:
        transaction = target.transaction()
        update = transaction.update_snapshot(summary)
        with update.overwrite() if removed else update.fast_append() as snapshot:
            target.snapshot_id = snapshot.snapshot_id
            for file in added:
                snapshot.append_data_file(file)
            if any(map(_has_nan, removed)):
                snapshot.delete_by_predicate(AlwaysTrue())
            for file in removed:
                snapshot.delete_data_file(_without_nan(file) if _has_nan(file) else file)
        _commit(target, transaction.commit_transaction, name, secrets)
    except FAILURES as error:
        raise CommitFailure(error_reason(error, secrets)) from None
    table.metadata, table.metadata_location = target.metadata, target.metadata_location


def _has_nan(file: DataFile) -> bool:
    values = (file.partition[position] for position in range(len(file.partition)))
    return any(isinstance(value, float) and math.isnan(value) for value in values)


def _without_nan(file: DataFile) -> DataFile:
    """Return a copy of an entry without partition values, so that pyiceberg searches all manifests for the file.

    pyiceberg selects manifests by partition values, but cannot compare NaN.
    """
    entry = DataFile.from_args(
        content=file.content, file_path=file.file_path, file_format=file.file_format,
        partition=Record(*[None] * len(file.partition)), record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
    )
    entry.spec_id = file.spec_id
    return entry


def _commit(target: _SnapshotTable, commit: Callable[[], Any], name: str, secrets: Any) -> None:
    try:
        commit()
    except FAILURES:
        raise
    except NoSuchTableError:
        raise _dropped_table(name) from None
    except _REJECTIONS as error:
        raise SourceError(
            f"the catalog has rejected the commit: {error_reason(error, secrets)}; nothing was changed", path=name
        ) from None
    except Exception as error:  # catalogs raise the errors of their HTTP, SQL and Thrift libraries
        with suppress(Exception):
            target.refresh()
            return
        raise CommitStateUnknownError(error_reason(error, secrets), name) from None


def refresh(table: Table, name: str, secrets: Any) -> None:
    """Load the current snapshot into ``table``.

    Raises ``TableConflictError`` if the table was dropped, and ``SourceError`` if the catalog cannot be read.
    """
    try:
        table.refresh()
    except Exception as error:  # catalogs raise the errors of their HTTP, SQL and Thrift libraries
        if _is_dropped(error):
            raise _dropped_table(name) from None
        raise SourceError(f"the catalog cannot be read: {error_reason(error, secrets)}", path=name) from None


def _is_dropped(error: Exception) -> bool:
    """Return whether ``error`` means that a table no longer exists, or that another table now has its name."""
    return isinstance(error, NoSuchTableError) or "UUID does not match" in str(error)


def _dropped_table(name: str) -> TableConflictError:
    return TableConflictError("another writer has dropped the table; nothing was changed", path=name)
