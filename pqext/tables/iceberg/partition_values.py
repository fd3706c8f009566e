"""Divide rows by identity partitions of an Iceberg table, and record the exact values of the partitions.

Spec: Apache Iceberg, "Partitioning", "Writing Data Files". Data files contain all columns, so the values are read from
the files. Folder names contain the values only for people; readers do not interpret them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Accessor, Schema
from pyiceberg.types import UUIDType

from pqext.core.base.errors import InvalidValueError
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.types.arrow_compute import take_rows
from pqext.dataset.table.partitions import NULL
from pqext.dataset.writing.part_files import escape
from pqext.tables.iceberg.schemas import arrow_type
from pqext.variant.types import storage_array

_MAX_NAME = 200
"""Maximum length of the text of a value in a folder name, in bytes."""
_SHORT = 40
"""Number of characters in a folder name of a text that exceeds ``_MAX_NAME``."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """Source column of an identity partition. ``position`` is the index in the table, then in each nested struct."""

    position: tuple[int, ...]
    field: pa.Field
    is_uuid: bool

    def values(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Return the values of this column. ``columns`` are all columns of the table."""
        column = storage_array(columns[self.position[0]])
        return pc.struct_field(column, self.position[1:]) if len(self.position) > 1 else column


def partition_columns(spec: PartitionSpec, schema: Schema) -> list[PartitionColumn | None]:
    """Return one item per field of ``spec``: the source column, or None if it was dropped or is transformed."""
    return [
        _partition_column(field.source_id, schema) if str(field.transform) == "identity" else None
        for field in spec.fields
    ]


def _partition_column(id: int, schema: Schema) -> PartitionColumn | None:
    name = schema.find_column_name(id)
    if name is None:
        return None
    position: list[int] = []
    accessor: Accessor | None = schema.accessor_for_field(id)
    while accessor is not None:
        position.append(accessor.position)
        accessor = accessor.inner
    field = schema.find_field(id)
    is_nullable = not field.required or len(position) > 1
    return PartitionColumn(
        tuple(position), pa.field(name, arrow_type(field), is_nullable), isinstance(field.field_type, UUIDType)
    )


def divide(batch: pa.RecordBatch, columns: Sequence[PartitionColumn]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Divide a batch by partition. Yield the folder path, ending in ``/``, and the rows of each partition in order.

    Different values have different folders, even if they are formatted as the same text.
    """
    arrays = [column.values(batch.columns) for column in columns]
    code = np.zeros(batch.num_rows, np.int64)
    for array in arrays:
        result = pc.dictionary_encode(array, null_encoding="encode")
        # Each round renumbers the partitions so far, so codes remain below the square of the number of rows.
        code = np.unique(code, return_inverse=True)[1] * len(result.dictionary) + result.indices.to_numpy()
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    is_single = len(starts) == 1
    for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
        rows = order[start:stop]
        path = "".join(
            f"{escape(column.field.name)}={_folder_text(column, array[int(rows[0])])}/"
            for column, array in zip(columns, arrays, strict=True)
        )
        yield path, batch if is_single else take_rows(batch, rows)


def _folder_text(column: PartitionColumn, scalar: pa.Scalar) -> str:
    """Format a partition value for a folder name. Different values have different texts."""
    try:
        value = partition_value(column, scalar)
    except UnicodeDecodeError:
        raise InvalidValueError(
            "a partition value is not valid UTF-8; replace it, or partition by another column", column=column.field.name
        ) from None
    if value is None:
        return NULL
    if isinstance(value, str):
        text = f"%{ord(value[0]):02X}{value[1:]}" if value == NULL else escape(value)
    elif isinstance(value, bytes):
        text = value.hex()
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and pa.types.is_temporal(scalar.type):
        text = _time_text(scalar, value)
    else:
        text = escape(str(value))
    if len(text.encode()) <= _MAX_NAME:
        return text
    return f"{text[:_SHORT]}-{sha256(text.encode()).hexdigest()}"


def _time_text(scalar: pa.Scalar, value: int) -> str:
    try:
        return escape(scalar.as_py().isoformat())
    except (OverflowError, ValueError):  # outside the years 1 to 9999
        return str(value)


def partition_value(column: PartitionColumn, scalar: pa.Scalar) -> Any:
    """Convert a value to the Python type that ``pyiceberg`` writes to manifests."""
    if scalar.is_valid and pa.types.is_temporal(scalar.type):
        return scalar.cast(pa.int32() if pa.types.is_date32(scalar.type) else pa.int64()).as_py()
    value = scalar.as_py()
    return UUID(bytes=value) if column.is_uuid and isinstance(value, bytes) else value


def read_partition(location: Any, names: Sequence[str], columns: Sequence[PartitionColumn | None]) -> tuple[Any, ...]:
    """Read the partition values of a data file from its first row.

    ``names`` are the columns of the table.
    """
    positions = sorted({column.position[0] for column in columns if column is not None})
    if not positions:
        return (None,) * len(columns)
    with ParquetFile(location) as file:
        first = file.head(1, [names[position] for position in positions]).combine_chunks()
    row: list[pa.Array] = [None] * len(names)
    for position, chunked in zip(positions, first.columns, strict=True):
        row[position] = chunked.chunk(0)
    return tuple(
        None if column is None else partition_value(column, column.values(row)[0].cast(column.field.type))
        for column in columns
    )
