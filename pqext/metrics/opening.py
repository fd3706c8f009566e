"""A data file opened for its metrics: what Parquet itself says of its columns, and nothing that other notes add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.options.encryption import FileDecryption
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.reader import ParquetFile


def open_file(
    source: Any, limits: Limits | None, decryption: FileDecryption | None, filesystem: Any,
    storage_options: Mapping[str, Any] | None,
) -> ParquetFile:
    """The file. Columns that GeoParquet's metadata alone calls geometries are the binaries that they are stored as.

    Raises ``CorruptFileError`` where rows are missing, and what :func:`pqext.open` raises.
    """
    options = ReadOptions(decryption=decryption, arrow_schema=False, geoparquet=False)
    file = ParquetFile(
        source, options, limits=limits or DEFAULT_LIMITS, filesystem=filesystem, storage_options=storage_options
    )
    try:
        file.check_rows()
    except BaseException:
        file.close()
        raise
    return file
