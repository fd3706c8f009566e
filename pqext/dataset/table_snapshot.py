"""Snapshots of Delta and Iceberg tables: the files of a version, and the metadata of these files in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.lazy_imports import load_service
from pqext.dataset.table.partitions import Partitions

if TYPE_CHECKING:
    from pqext.dataset.files.file_set import TableView
    from pqext.dataset.skipping import Skipping

_SCHEMES = ("delta:", "iceberg:")
_CLASSES = (("deltalake", "DeltaTable"), ("pyiceberg", "Table"))
"""Package and class name of the tables of other libraries, which are recognised without importing these."""


@dataclass(frozen=True, eq=False)
class TableSnapshot:
    """One version of a table: the schema, the files, and the metadata that the table's log stores for each file.

    ``schema`` has all columns. ``constants`` has those that have one value per file, and ``values`` contains these
    values by file name and column.
    """

    name: str
    schema: pa.Schema
    files: tuple[Any, ...]
    constants: pa.Schema
    values: Mapping[str, Mapping[str, Any]]
    statistics: Skipping | None
    """Prunes files by the statistics in the log."""
    view: TableView | None
    """Renames columns and excludes deleted rows."""

    @property
    def partitions(self) -> Partitions:
        """The constant columns as partition columns."""
        return Partitions(None, self.constants, stated=self.values)


def is_table(source: Any) -> bool:
    """Return whether ``source`` is a ``delta:`` or ``iceberg:`` name, a table object of a library, or a snapshot."""
    if isinstance(source, str):
        return source.startswith(_SCHEMES)
    return isinstance(source, TableSnapshot) or any(
        each.__module__.partition(".")[0] == package and each.__name__ == name
        for each in type(source).__mro__
        for package, name in _CLASSES
    )


def open_snapshot(
    source: Any, version: int | None, timestamp: str | datetime | None, storage_options: Mapping[str, Any] | None
) -> TableSnapshot:
    """Open the given version of a table, the version at ``timestamp``, or by default the current version.

    Raises ``ImportError`` if the library of the table format is not installed, and ``ValueError`` if another version of
    a snapshot is requested.
    """
    if isinstance(source, TableSnapshot):
        if version is not None or timestamp is not None:
            raise ValueError(f"a snapshot of {source.name} has one version; pass the table name to select a version")
        return source
    snapshot: TableSnapshot = load_service("open_table")(
        source, version, timestamp, storage_options=storage_options
    )
    return snapshot
