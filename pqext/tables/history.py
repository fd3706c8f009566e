"""Scan the rows that were added to a table between two versions, and open the history of a table for streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.dataset.reading import scan
from pqext.dataset.scan import Scan
from pqext.tables.arguments import check_arguments, format_of
from pqext.tables.backend import TableHistory


def open_history(table: Any, storage_options: Mapping[str, Any] | None) -> TableHistory:
    """Open the history of a table up to its current version. Raises the errors of :func:`pqext.tables.open_table`."""
    check_arguments(storage_options=storage_options)
    name = table.partition(":")[2] if isinstance(table, str) else table
    if format_of(table) == "iceberg":
        from pqext.tables.iceberg.history import IcebergHistory

        return IcebergHistory(name, storage_options)
    from pqext.tables.delta.history import DeltaHistory

    return DeltaHistory(name, storage_options)


def scan_appends(
    table: Any, after: int, until: int | None = None, *, skip_change_commits: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> Scan:
    """Scan the rows that were added to a table between two versions.

    Versions that only rewrite files, such as a :func:`compact` of a Delta table, add no rows. In an Iceberg table, a
    compaction is a change of rows, because pyiceberg commits it as an overwrite. The scan does not prune files by the
    statistics in the log.

    Args:
        table: A Delta or Iceberg table, as in :func:`pqext.scan`.
        after: The version, or snapshot id, after which the scan starts. -1 for Delta and 0 for Iceberg include all
            rows.
        until: The last version that is included; by default the current version.
        skip_change_commits: Whether to skip versions that remove or change rows, including the rows that they add.
        storage_options: Credentials and other options of the object store.

    Returns:
        A scan with the columns of version ``until``. It has no rows if ``after`` equals ``until``.

    Raises:
        FileNotFoundError: If the table or a version does not exist, or the log no longer contains its commit.
        TypeError: If a version is not an integer.
        ValueError: If ``after`` is later than ``until`` or, in an Iceberg table, is not an ancestor of ``until``.
        UnsupportedError: If a version after ``after``, up to ``until``, removes or changes rows.
        CorruptFileError: If the log cannot be read.

    Example:
        >>> import pyarrow
        >>> from pqext import tables
        >>> for day in (1, 2, 3):
        ...     _ = tables.append("delta:visits", pyarrow.table({"day": [day]}))
        >>> tables.scan_appends("delta:visits", after=0).to_table()["day"].to_pylist()
        [2, 3]
    """
    check_arguments(after=after, until=until, skip_change_commits=skip_change_commits)
    history = open_history(table, storage_options)
    last = history.version if until is None else until
    return scan(history.snapshot(history.appends(after, last, skip_change_commits), last))
