"""Entries of data files in the log of a Delta table: partition values and statistics."""

from __future__ import annotations

import json
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
CLUSTERED = "pqext.clustered"
"""Key in statistics for an id of the commit that sorted the rows of the file, and for their order."""


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
    """Return a written file with its log entry, which contains statistics of ``columns``.

    ``types`` are the types of the partition columns. ``covered`` are the geometry columns for which the writer computed
    covering columns.
    """
    statistics = delta_statistics(location, exact=True, columns=columns)
    content = statistics.to_dict() | ({COVERED: [*covered]} if covered else {})
    texts = _folder_values(file.name, len(partition_by))
    entry = AddEntry(file.name, statistics.size, dict(zip(partition_by, texts, strict=True)), dumps(content))
    values = (pa.scalar(text, pa.string()).cast(type).as_py() for text, type in zip(texts, types, strict=True))
    return NewFile(file, entry, tuple(values))


def add_action(entry: AddEntry, data_change: bool, clustering: tuple[str, str] | None = None) -> Any:
    """Return the ``AddAction`` of ``deltalake`` for an entry.

    Its statistics record ``clustering``: the id of the commit, and the order of the rows.
    """
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    statistics = entry.statistics
    if clustering is not None:  # extended as text, because parsed decimals would lose digits
        statistics = f"{statistics[:-1]}, {json.dumps(CLUSTERED)}: {json.dumps(clustering)}}}"
    return AddAction(entry.path, entry.size, {**entry.partition_values}, now, data_change, statistics)


def _folder_values(name: str, count: int) -> list[str | None]:
    """Parse partition values from the first ``count`` folder names in the path of a file."""
    texts = [unquote(folder.partition("=")[2]) for folder in name.split("/")[:count]]
    return [None if text == NULL else text for text in texts]


def partition_texts(values: Mapping[str, Any]) -> dict[str, str | None]:
    """Format partition values as text, as the log stores them."""
    return {
        name: None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
    }
