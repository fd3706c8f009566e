"""Open a version of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.arguments import check_arguments, format_of, utc_time
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
        timestamp: The time of the version, as ISO 8601 text or a datetime; in UTC if it has no time zone.
        storage_options: Credentials and other options of the object store; for Iceberg the properties of pyiceberg's
            catalog and file IO, such as ``s3.endpoint``.

    Raises:
        ValueError: If both ``version`` and ``timestamp`` are passed, ``source`` is not a table, ``version`` cannot be
            the number of a version, or ``timestamp`` is not ISO 8601.
        TypeError: If an argument has another type.
        ImportError: If the library of the table format is not installed.
        FileNotFoundError: If the table, the version or the snapshot does not exist.
        SourceError: If the catalog or the store cannot be reached.
        CorruptFileError: If the log cannot be read.
        UnsupportedError: If the table uses a feature that cannot be read.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import tables
        >>> commits = [tables.append("delta:steps", pyarrow.table({"n": [n]})) for n in (5, 6)]
        >>> pqext.scan(tables.open_table("delta:steps", version=0)).to_table()["n"].to_pylist()
        [5]
    """
    if version is not None and timestamp is not None:
        raise ValueError("pass either version or timestamp")
    check_arguments(version=version, storage_options=storage_options)
    time = None if timestamp is None else utc_time(timestamp)
    open_format = open_iceberg if format_of(source) == "iceberg" else open_delta
    return open_format(source.partition(":")[2] if isinstance(source, str) else source, version, time, storage_options)
