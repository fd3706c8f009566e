"""Entries of data files in the log of a Delta table: partition values and statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from pqext.dataset.table.partitions import NULL
from pqext.dataset.writing.part_files import WrittenFile
from pqext.table_metrics.delta_statistics import delta as delta_statistics
from pqext.table_metrics.delta_statistics import dumps
from pqext.tables.backend import NewFile

COVERED = "pqext.covered"
"""Key in statistics for the geometry columns whose boxes pqext computed. Other writers may copy or omit boxes."""


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Fields of the ``add`` action of a file."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    statistics: str
    """Statistics as JSON."""


def describe_file(
    file: WrittenFile, location: Any, *, partition_by: Sequence[str], types: Sequence[pa.DataType],
    columns: Sequence[str], covered: Sequence[str],
) -> NewFile:
    """Describe a file, with the statistics of ``columns``; ``types`` are those of the partition columns.

    ``covered`` are the geometry columns whose covering columns were computed from the geometries of the file.
    """
    statistics = delta_statistics(location, exact=True, columns=columns)
    stated = statistics.to_dict() | ({COVERED: [*covered]} if covered else {})
    texts = _folder_values(file.name, len(partition_by))
    entry = AddEntry(file.name, statistics.size, dict(zip(partition_by, texts, strict=True)), dumps(stated))
    values = (pa.scalar(text, pa.string()).cast(type).as_py() for text, type in zip(texts, types, strict=True))
    return NewFile(file, entry, tuple(values))


def add_action(entry: AddEntry, data_change: bool) -> Any:
    """Return the ``AddAction`` of an entry for ``deltalake``."""
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    return AddAction(entry.path, entry.size, {**entry.partition_values}, now, data_change, entry.statistics)


def _folder_values(name: str, count: int) -> list[str | None]:
    """Return the partition values in the folders of a file."""
    texts = [unquote(folder.partition("=")[2]) for folder in name.split("/")[:count]]
    return [None if text == NULL else text for text in texts]


def partition_texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Return partition values as the log stores them."""
    return {
        name: None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }
