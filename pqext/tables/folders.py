"""List all data files in the folder of a table, including files to which the table does not refer."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from pqext.core.io.sources.locations import list_files, locate
from pqext.dataset.files.sources import source_name
from pqext.tables.backend import Leftover

_TABLE = re.compile(r"(?<![^/])(_delta_log|metadata)/[^/]*\.json$")
"""Log files. They identify tables within the folder of another table."""


def file_key(location: Any) -> str:
    """Return a key for comparing file locations: the real path of a local file, or the name of another source."""
    return os.path.realpath(location) if isinstance(location, str) else source_name(location)


def data_files(folder_uri: str, storage_options: Mapping[str, Any] | None) -> Iterator[Leftover]:
    """Yield the Parquet files and unfinished pqext files in the folder ``folder_uri`` and its subfolders."""
    uri = urlsplit(folder_uri)
    path = unquote(uri.path).rstrip("/")
    if uri.scheme == "file":
        yield from _local_files(path, path)
        return
    root = f"{uri.scheme}://{uri.netloc}{path}"
    prefix = locate(root, None, storage_options).key.rstrip("/")
    files = list_files(root, None, storage_options)
    locations = {location.key.removeprefix(prefix).lstrip("/"): location for location in files}
    nested = {name[: match.start()] for name in locations if (match := _TABLE.search(name)) and match.start()}
    for name, location in locations.items():
        hidden = any(part.startswith(("_", ".")) for part in name.split("/")[:-1])
        is_nested = any(name.startswith(folder) for folder in nested)
        if location.listed is not None and not hidden and not is_nested and _is_data(name.rpartition("/")[2]):
            yield Leftover(name, location, location.listed.size or 0, location.listed.modified_ms or 1 << 62)


def _local_files(folder: str, root: str) -> Iterator[Leftover]:
    with os.scandir(folder) as entries:
        items = sorted(entries, key=lambda entry: entry.name)
    for item in items:
        if item.is_dir(follow_symlinks=False):
            is_hidden = item.name.startswith(".") or (item.name.startswith("_") and "=" not in item.name)
            if not is_hidden and not _is_table(item.path):
                yield from _local_files(item.path, root)
        elif item.is_file(follow_symlinks=False) and _is_data(item.name):
            try:
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # renamed by its writer
            yield Leftover(os.path.relpath(item.path, root), item.path, status.st_size, int(status.st_mtime * 1000))


def _is_table(folder: str) -> bool:
    """Return whether a local folder contains the log of a table."""
    logs = (os.path.join(folder, name) for name in ("_delta_log", "metadata"))
    return any(name.endswith(".json") for log in logs if os.path.isdir(log) for name in os.listdir(log))


def _is_data(name: str) -> bool:
    is_unfinished = name.startswith(".pqext-") and name.endswith(".tmp")
    return is_unfinished or (name.endswith(".parquet") and not name.startswith(("_", ".")))
