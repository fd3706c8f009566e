"""Select the files of a table by conditions on its partition columns."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pqext.core.write.writer import write_table
from pqext.dataset.reading import scan
from pqext.dataset.table.partitions import NULL
from pqext.tables.backend import TableFile

_POSITION = "\0position"


def select_files(files: Sequence[TableFile], partitions: pa.Schema, filter: Any) -> list[TableFile]:
    """Return the files whose partition values satisfy ``filter``; all files if it is None.

    Raises ``ValueError`` if the filter refers to columns that are not partition columns.
    """
    if filter is None:
        return list(files)
    columns = [pa.array([file.partition[field.name] for file in files], field.type) for field in partitions]
    return [files[position] for position in _matches(partitions, columns, filter)]


def check_partitions(names: Sequence[str], partitions: pa.Schema, filter: Any) -> None:
    """Raise ``ValueError`` unless the partitions of the new files ``names`` satisfy ``filter``."""
    inside = set(_matches(partitions, folder_values(names, partitions), filter))
    outside = next((name for position, name in enumerate(names) if position not in inside), None)
    if outside is not None:
        raise ValueError(
            f"rows are in the partition {outside.rpartition('/')[0]}, which filter does not select; nothing was written"
        )


def folder_values(names: Sequence[str], partitions: pa.Schema) -> list[pa.Array]:
    """Return the values of each partition column in the folders of the new files ``names``."""
    columns = []
    for place, field in enumerate(partitions):
        texts = [unquote(name.split("/")[place].partition("=")[2]) for name in names]
        columns.append(pa.array([None if text == NULL else text for text in texts], pa.string()).cast(field.type))
    return columns


def _matches(partitions: pa.Schema, columns: Sequence[pa.Array], filter: Any) -> list[int]:
    """Return the positions of the partition values that satisfy ``filter``."""
    if not partitions.names:
        raise ValueError("the table has no partition columns, so filter= cannot select partitions")
    _scan_table(partitions.empty_table(), None, filter)  # raises errors in the filter, without the position column
    positions = pa.array(range(len(columns[0])), pa.int64())
    schema = pa.schema([*partitions, (_POSITION, pa.int64())])
    table = pa.Table.from_arrays([*columns, positions], schema=schema)
    result: list[int] = _scan_table(table, [_POSITION], filter)[_POSITION].to_pylist()
    return result


def _scan_table(table: pa.Table, columns: list[str] | None, filter: Any) -> pa.Table:
    sink = BytesIO()
    write_table(table, sink)
    return scan(sink.getvalue(), columns, filter).to_table()
