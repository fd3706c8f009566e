"""Open a version of a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pqext.dataset.table_snapshot import TableSnapshot
from pqext.tables.delta.snapshot import open_delta


def open_table(
    source: Any, version: int | None = None, timestamp: str | datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> TableSnapshot:
    """Open a version of a table for a scan.

    Args:
        source: A ``deltalake.DeltaTable`` or ``"delta:PATH_OR_URL"``.
        version: The version, by default the current one.
        timestamp: The time of the version, as ISO 8601 text or a datetime with a time zone.
        storage_options: Credentials and other options of the object store.

    Raises:
        ValueError: If both ``version`` and ``timestamp`` are passed, or ``source`` is no table.
        ImportError: If the library of the table format is not installed.
        FileNotFoundError: If there is no table or no such version.
        UnsupportedError: If the table uses a feature that cannot be read.
    """
    if version is not None and timestamp is not None:
        raise ValueError("pass either version or timestamp")
    table = source.removeprefix("delta:") if isinstance(source, str) else source
    return open_delta(table, version, timestamp, storage_options)
