"""Open a version of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.delta.snapshot import open_delta
from pqext.tables.iceberg.snapshot import open_iceberg


def open_table(
    source: Any, version: int | None = None, timestamp: str | datetime | None = None, *,
    storage_options: Mapping[str, Any] | None = None,
) -> TableSnapshot:
    """Open a version of a table for a scan.

    Args:
        source: A ``deltalake.DeltaTable`` or ``"delta:PATH_OR_URL"``, or a ``pyiceberg`` table,
            ``"iceberg:CATALOG.NAMESPACE.TABLE"`` or ``"iceberg:PATH_OR_URL"`` of a metadata file or table folder.
        version: The version, or the snapshot id of an Iceberg table; by default the current one.
        timestamp: The time of the version, as ISO 8601 text or a datetime with a time zone.
        storage_options: Credentials and other options of the object store; for Iceberg the properties of pyiceberg's
            catalog and file IO, such as ``s3.endpoint``.

    Raises:
        ValueError: If both ``version`` and ``timestamp`` are passed, or ``source`` is no table.
        ImportError: If the library of the table format is not installed.
        FileNotFoundError: If there is no table, or no such snapshot of an Iceberg table.
        CorruptFileError: If the log cannot be read, or there is no such version of a Delta table.
        UnsupportedError: If the table uses a feature that cannot be read.
    """
    if version is not None and timestamp is not None:
        raise ValueError("pass either version or timestamp")
    format, table = source.split(":", 1) if isinstance(source, str) else (_format_of(source), source)
    open_format = open_iceberg if format == "iceberg" else open_delta
    return open_format(table, version, timestamp, storage_options)


def _format_of(table: object) -> str:
    """Return the format of a table of another library, without importing the library."""
    packages = {each.__module__.partition(".")[0] for each in type(table).__mro__}
    return "iceberg" if "pyiceberg" in packages else "delta"
