"""Select the files of a table by conditions on its partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa

from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.write.writer import write_table
from pqext.dataset.reading import scan
from pqext.tables.backend import NewFile, TableFile

_POSITION = "\0position"


def select_files(files: Sequence[TableFile], partitions: pa.Schema, filter: Any) -> list[TableFile]:
    """Return the files whose partition values satisfy ``filter``; all files if it is None.

    Raises ``ValueError`` if the filter refers to columns that are not partition columns, and ``UnsupportedError`` if
    the partition values of a file are unknown.
    """
    if filter is None:
        return list(files)
    values = [partition_values(file, partitions.names) for file in files]
    return [files[position] for position in _matching_positions(partitions, values, filter)]


def partition_values(file: TableFile, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of the partition columns ``names``.

    Raises ``UnsupportedError`` if a column became a partition column after the file was written.
    """
    missing = next((name for name in names if name not in file.partition), None)
    if missing is not None:
        raise UnsupportedError(
            f"{redact_uri(file.path)} was written before the table was partitioned by {missing!r}, so its partition "
            "is unknown; rewrite all files with tables.recluster, without filter=", feature="evolution of partitions",
            path=redact_uri(file.path),
        )
    return tuple(file.partition[name] for name in names)


def check_partitions(added: Sequence[NewFile], partitions: pa.Schema, filter: Any) -> None:
    """Raise ``ValueError`` unless the partitions of the new files satisfy ``filter``."""
    inside = set(_matching_positions(partitions, [new.partition for new in added], filter))
    outside = next((new.file.name for position, new in enumerate(added) if position not in inside), None)
    if outside is not None:
        raise ValueError(
            f"the source has rows in the partition {outside.rpartition('/')[0]}, which filter= does not select; "
            "nothing was written"
        )


def _matching_positions(partitions: pa.Schema, values: Sequence[tuple[Any, ...]], filter: Any) -> list[int]:
    """Return the positions of the partition values that satisfy ``filter``."""
    if not partitions.names:
        raise ValueError("filter= selects partitions, but the table has no partition columns; omit filter=")
    _scan_table(partitions.empty_table(), None, filter)  # raises errors in the filter, without the position column
    columns = [
        pa.array([getattr(row[index], "bytes", row[index]) for row in values], field.type)  # UUIDs have the attribute
        for index, field in enumerate(partitions)
    ]
    positions = pa.array(range(len(values)), pa.int64())
    schema = pa.schema([*partitions, (_POSITION, pa.int64())])
    table = pa.Table.from_arrays([*columns, positions], schema=schema)
    result: list[int] = _scan_table(table, [_POSITION], filter)[_POSITION].to_pylist()
    return result


def _scan_table(table: pa.Table, columns: list[str] | None, filter: Any) -> pa.Table:
    sink = BytesIO()
    write_table(table, sink)
    return scan(sink.getvalue(), columns, filter).to_table()
