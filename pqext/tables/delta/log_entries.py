"""Entries of data files in the log of a Delta table: partition values and statistics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pqext.dataset.table.partitions import NULL
from pqext.dataset.writing.part_files import WrittenFile
from pqext.table_metrics.delta_statistics import delta as delta_statistics


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Fields of the ``add`` action of a file."""

    path: str
    size: int
    partition_values: Mapping[str, str | None]
    statistics: str
    """Statistics as JSON."""


def describe_file(
    file: WrittenFile, location: Any, *, partition_by: Sequence[str], columns: Sequence[str]
) -> AddEntry:
    """Return the entry of a file, with the statistics of ``columns``."""
    statistics = delta_statistics(location, exact=True, columns=columns)
    values = _folder_values(file.name, len(partition_by))
    return AddEntry(
        file.name, statistics.size, dict(zip(partition_by, values, strict=True)), statistics.to_json()
    )


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
