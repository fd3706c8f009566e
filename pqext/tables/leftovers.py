"""Describe tables, and remove files that interrupted writers left in their folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pqext.core.base.text import with_noun
from pqext.tables.arguments import check_arguments
from pqext.tables.backend import MIN_AGE, Leftover
from pqext.tables.conversion import type_name
from pqext.tables.writing import open_writer


@dataclass(frozen=True, slots=True)
class TableDescription:
    """Version, files and protocol of a table, and leftover files in its folder."""

    table: str
    format: str
    version: int
    files: int
    bytes: int
    rows: int | None
    files_with_deleted_rows: int
    partition_by: tuple[str, ...]
    columns: Mapping[str, str]
    """Types of the columns: VARIANT, GEOMETRY or GEOGRAPHY with its CRS, or Arrow types."""
    reader_version: int
    writer_version: int
    features: tuple[str, ...]
    properties: Mapping[str, str]
    leftovers: tuple[str, ...]
    """Paths of files, relative to the table, to which no version refers."""
    leftover_bytes: int


@dataclass(frozen=True, slots=True)
class TableCleanup:
    """Result of :func:`clean`: paths of the leftover files, relative to the table, and their total size."""

    table: str
    files: tuple[str, ...]
    bytes: int
    dry_run: bool

    def __str__(self) -> str:
        verb = "can be removed" if self.dry_run else "removed"
        return f"{self.table}: {with_noun(len(self.files), 'leftover file')} ({with_noun(self.bytes, 'byte')}) {verb}"


def describe(
    table: Any, *, older_than: timedelta = MIN_AGE, storage_options: Mapping[str, Any] | None = None
) -> TableDescription:
    """Describe the current version of a table.

    Args:
        table: A Delta or Iceberg table, as in :func:`append`.
        older_than: Minimum age of leftovers, as in :func:`clean`.
        storage_options: Credentials and other options of the object store.

    Raises:
        FileNotFoundError: If the table does not exist.
        CorruptFileError: If the log cannot be read.
        UnsupportedError: If the table requires features that are not supported.

    Example:
        >>> import pyarrow
        >>> from pqext import tables
        >>> commit = tables.append("delta:birds", pyarrow.table({"id": [1, 2], "name": ["kea", "emu"]}))
        >>> description = tables.describe("delta:birds")
        >>> description.version, description.rows, description.columns
        (0, 2, {'id': 'int64', 'name': 'string'})
    """
    check_arguments(older_than=older_than)
    writer = open_writer(table, storage_options)
    snapshot, files, details = writer.snapshot(), writer.files(), writer.describe()
    leftovers = writer.find_leftovers(older_than)
    counts = [file.rows for file in files]
    return TableDescription(
        writer.name, details["format"], writer.version or 0, len(files), sum(file.size for file in files),
        None if None in counts else sum(count or 0 for count in counts),
        sum(file.has_deleted_rows for file in files), tuple(details["partition_by"]),
        {field.name: type_name(field) for field in snapshot.schema}, details["reader_version"],
        details["writer_version"], tuple(sorted({*details["reader_features"], *details["writer_features"]})),
        details["properties"], tuple(file.path for file in leftovers), sum(file.size for file in leftovers),
    )


def clean(
    table: Any, *, older_than: timedelta = MIN_AGE, dry_run: bool = True,
    storage_options: Mapping[str, Any] | None = None,
) -> TableCleanup:
    """Remove leftovers: data files in a table's folder to which no version of the table refers.

    Leftovers remain if a writer is killed before its commit. Files of previous versions are not leftovers. To remove
    them, vacuum a Delta table or expire the snapshots of an Iceberg table.

    Args:
        table: A Delta or Iceberg table, as in :func:`append`.
        older_than: Minimum age of leftovers. It must exceed the duration of the longest job that writes to
            the table, because no version refers to the files of a job before its commit.
        dry_run: Whether to return the leftovers without removing them.
        storage_options: Credentials and other options of the object store.

    Raises:
        ValueError: If ``older_than`` is negative.
        FileNotFoundError: If the table does not exist.
        CorruptFileError: If the log cannot be read.

    Example:
        >>> import datetime, pathlib, pyarrow
        >>> from pqext import tables
        >>> commit = tables.append("delta:herds", pyarrow.table({"id": [1]}))
        >>> written = pathlib.Path("herds/unfinished.parquet").write_bytes(b"PAR1")
        >>> tables.clean("delta:herds", older_than=datetime.timedelta(0), dry_run=False).files
        ('unfinished.parquet',)
    """
    check_arguments(older_than=older_than, dry_run=dry_run)
    writer = open_writer(table, storage_options)
    leftovers = writer.find_leftovers(older_than)
    if not dry_run:
        for file in leftovers:
            _remove(file)
    return TableCleanup(
        writer.name, tuple(file.path for file in leftovers), sum(file.size for file in leftovers), dry_run
    )


def _remove(file: Leftover) -> None:
    if isinstance(file.location, str):
        with suppress(FileNotFoundError):  # another process removes leftovers too
            os.remove(file.location)
    else:
        file.location.remove()
