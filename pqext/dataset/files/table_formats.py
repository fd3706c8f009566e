"""Folders of Delta, Iceberg and Hudi tables, whose metadata and not the listing decide which files count.

A file that the table has removed may still be in its folder, and a file that is added without the table's own library
is not part of it. So a folder at, within or above such a table is an error, for readers unless they ask for every file.
Files that are named one by one, as the table's library lists them, are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pqext.core.errors import UnsupportedError
from pqext.core.sources.store import Location

_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
"""Formats by the folder in which a table has its log."""
_PARTITION = ".hoodie_partition_metadata"
"""The file in each partition of a Hudi table."""
_METADATA, _ICEBERG = "metadata", (".metadata.json", ".metadata.json.gz")
"""The folder of an Iceberg table's metadata, and how the names of the files that describe the table end."""
_LISTED_BY = {
    "Delta": "deltalake.DeltaTable(path).file_uris()",
    "Iceberg": "pyiceberg's table.scan().plan_files()",
    "Hudi": "Hudi's own reader",
}


class TableFormatError(UnsupportedError):
    """A folder belongs to a table, of which only the table's own library knows the files."""

    def __init__(self, format: str, folder: str, *, is_write: bool = False) -> None:
        article = "an" if format == "Iceberg" else "a"
        found = f"the folder belongs to {article} {format} table"
        if is_write:
            advice = (
                f"files that are added, replaced or removed without {format}'s own library corrupt it: write with that "
                "library, or save to another folder"
            )
        else:
            advice = (
                "its files include some that the table has removed: pass the paths of the files that the table lists "
                f"({_LISTED_BY[format]}), or pass ignore_table_format=True to read every file"
            )
        super().__init__(f"{found}, and {advice}", feature=f"{format} tables", path=folder)
        self.format = format
        self.folder = folder


@contextmanager
def writing() -> Iterator[None]:
    """Errors of tables within say what a writer can do."""
    try:
        yield
    except TableFormatError as error:
        raise TableFormatError(error.format, error.folder, is_write=True) from None


def format_of_entry(entry: os.DirEntry[str]) -> str | None:
    """The format of the table in whose folder an entry is, by the entry alone."""
    if entry.name == _PARTITION:
        return "Hudi"
    if entry.name in _LOGS:
        return _LOGS[entry.name] if entry.is_dir() else None
    return "Iceberg" if entry.name == _METADATA and _is_iceberg(entry.path) else None


def check_folder(folder: str) -> None:
    """Raise ``TableFormatError`` if a local folder is that of a table, or within one.

    The table's own log and metadata can be read.
    """
    path, below = os.path.abspath(folder), ""
    while True:
        for log, format in _LOGS.items():
            if below != log and os.path.isdir(os.path.join(path, log)):
                raise TableFormatError(format, path)
        if below != _METADATA and _is_iceberg(os.path.join(path, _METADATA)):
            raise TableFormatError("Iceberg", path)
        parent, below = os.path.split(path)
        if parent == path:
            return
        path = parent


def check_listing(folder: Location, names: Iterable[str]) -> None:
    """Raise ``TableFormatError`` if the names of the files below a folder of a store, relative to it, show a table."""
    for name in names:
        if "_delta_log/" not in name and ".hoodie" not in name and not name.endswith(_ICEBERG):
            continue
        *folders, file = _parts(name)
        for at, part in enumerate(folders):
            if part in _LOGS:
                raise TableFormatError(_LOGS[part], _url(folder, folders[:at]))
        if file == _PARTITION:
            raise TableFormatError("Hudi", _url(folder, folders))
        if folders[-1:] == [_METADATA] and file.endswith(_ICEBERG):
            raise TableFormatError("Iceberg", _url(folder, folders[:-1]))


def check_parents(folder: Location) -> None:
    """Raise ``TableFormatError`` if a folder of a store is a partition, or the data, of a table.

    A request is made only for a folder whose name is that of a partition, ``key=value``, or ``data``.
    """
    parts = _parts(folder.key)
    base = [*parts]
    while base and "=" in base[-1]:
        base.pop()
    root = folder.at("/" if folder.key.startswith("/") else "")
    if 0 < len(base) < len(parts) and _at(root, [*base, "_delta_log"]).files():
        raise TableFormatError("Delta", _url(root, base))
    if len(base) > 1 and base[-1] == "data":
        table = base[:-1]
        if any(one.key.endswith(_ICEBERG) for one in _at(root, [*table, _METADATA]).files()):
            raise TableFormatError("Iceberg", _url(root, table))


def _at(folder: Location, parts: Sequence[str]) -> Location:
    start = folder.key if folder.key.endswith("/") or not folder.key else f"{folder.key}/"
    return folder.at(start + "/".join(parts))


def _url(folder: Location, parts: Sequence[str]) -> str:
    return _at(folder, parts).path if parts else folder.path


def _parts(key: str) -> list[str]:
    return [part for part in key.split("/") if part]


def _is_iceberg(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return any(entry.name.endswith(_ICEBERG) for entry in entries)
    except OSError:
        return False
