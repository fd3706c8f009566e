"""Find files in the folder of a Delta table to which no version in its log refers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from pqext.core.base.errors import CorruptFileError
from pqext.core.io.sources.locations import open_source
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.read.reader import ParquetFile
from pqext.tables.backend import Leftover
from pqext.tables.delta.log_statistics import log_files
from pqext.tables.delta.snapshot import file_location
from pqext.tables.folders import data_files, file_key

_LOG = "_delta_log"
_ACTIONS = ("add", "remove", "cdc")


def find_leftovers(
    table_uri: str, older_than: timedelta, storage_options: Mapping[str, Any] | None
) -> list[Leftover]:
    """Return the Parquet files and unfinished pqext files in a table's folder to which the log does not refer.

    Files that a version has removed from the table are not leftovers, because vacuuming removes them. Raises
    ``CorruptFileError`` if a part of the log cannot be read.
    """
    before = time.time() * 1000 - older_than.total_seconds() * 1000
    candidates = [file for file in data_files(table_uri, storage_options) if file.modified < before]
    if not candidates:
        return []  # files are listed before the log is read, so that the log refers to files committed in between
    paths = logged_paths(table_uri, storage_options)
    referenced = {file_key(file_location(table_uri, path, storage_options)) for path in paths}
    return [file for file in candidates if file_key(file.location) not in referenced]


def logged_paths(
    table_uri: str, storage_options: Mapping[str, Any] | None, after: int | None = None
) -> Iterator[str]:
    """Yield the paths of all files, as stored in the log. With ``after``, read only the commits of later versions."""
    for file, match in log_files(table_uri, storage_options):
        if after is not None and (int(match[1]) <= after or match[2] != "json"):
            continue
        name = f"delta:{redact_uri(table_uri)}/{_LOG}/{match[0]}"
        try:
            yield from _commit_paths(file) if match[2] == "json" else _checkpoint_paths(file)
        except FileNotFoundError:
            continue  # expired in the meantime
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptFileError(f"the log cannot be read: {error}", path=name) from None


def _commit_paths(file: Any) -> Iterator[str]:
    with open_source(file) as source:
        lines = bytes(source.read(0, source.size)).splitlines()
    if not any(map(bytes.strip, lines)):
        raise ValueError("the commit is empty; the files that it added are unknown")
    for line in lines:
        if line.strip():
            entry = json.loads(line)
            yield from (entry[action]["path"] for action in _ACTIONS if entry.get(action))


def _checkpoint_paths(file: Any) -> Iterator[str]:
    with ParquetFile(file) as checkpoint:
        for action in _ACTIONS:
            node = checkpoint.schema.root.child(action)
            if node is not None and node.child("path") is not None:
                column = checkpoint.read([f"{action}.path"])[action].combine_chunks()
                yield from (path for path in column.field("path").to_pylist() if path is not None)
