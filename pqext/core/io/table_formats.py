"""Detect folders of Delta, Iceberg and Hudi tables, in which metadata, not the folder listing, determines the valid
files.

A file that was removed from the table may still be in its folder, and a file that was added without the table's library
is not part of the table. A folder at, within or above a table is therefore an error, unless readers pass
``ignore_table_format``. Files that are named individually, as the table's library lists them, can be read.

A folder is within a table if all folders between them have names that tables use. A table is recognised by the files of
its log or metadata, so an unrelated folder with the same name is not a table. An empty Delta log is one that lost its
files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.store import Location

_LOGS = {
    "_delta_log": ("Delta", re.compile(r"\d{20}\.(json|checkpoint\.(.+\.)?(parquet|json))|_last_checkpoint")),
    ".hoodie": ("Hudi", re.compile(r"hoodie\.properties")),
}
"""Format, and pattern of the files that identify a table, by the name of the table's log folder."""
_TABLE_FOLDERS = re.compile(r"[^=]+=.*|data|_change_data|[0-9A-Za-z]{2}|[01]{4}|[01]{8}|[0-9a-f]{8}|\d{4}")
"""Names of folders within tables: partitions (``key=value``; ``2024`` and ``05`` of Hudi), Iceberg's ``data`` and its
hashed folders, and Delta's change data and random prefixes."""
_PARTITION = ".hoodie_partition_metadata"
"""Name of a file in each partition of a Hudi table."""
_METADATA = "metadata"
_ICEBERG = re.compile(
    r"(v\d+|\d+-[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})(\.gz)?\.metadata\.json(\.gz)?|version-hint\.text"
)
"""Names of the metadata folder of an Iceberg table, and of the files that describe the table."""
_READERS = {
    "Delta": "scan the table, pqext.scan('delta:PATH')",
    "Iceberg": "scan the table, pqext.scan('iceberg:CATALOG.NAMESPACE.TABLE')",
    "Hudi": "pass the paths of the files that Hudi's own reader lists",
}


_ADD_FILE_HINT = "; ignore_table_format=True writes a file that you add to the table yourself"


class TableFormatError(UnsupportedError):
    """Error for a folder of a table. Only the library of the table format can determine the valid files."""

    def __init__(self, format: str, folder: str, *, is_write: bool = False, is_file: bool = False) -> None:
        article = "an" if format == "Iceberg" else "a"
        problem = f"the folder belongs to {article} {format} table"
        if is_write:
            advice = (
                f"files that are added, replaced or removed without {format}'s own library corrupt it: write with that "
                "library, or save to another folder" + (_ADD_FILE_HINT if is_file else "")
            )
        else:
            advice = (
                f"its files include some that the table has removed: {_READERS[format]}, or pass "
                "ignore_table_format=True to read every file"
            )
        super().__init__(f"{problem}, and {advice}", feature=f"{format} tables", path=folder)
        self.format = format
        self.folder = folder


def check_new_file(path: str) -> None:
    """Raise ``TableFormatError`` if a file at a local path would be in the folder of a table."""
    try:
        TableGuard().check_file(path)
    except TableFormatError as error:
        raise TableFormatError(error.format, error.folder, is_write=True, is_file=True) from None


@contextmanager
def writing() -> Iterator[None]:
    """Context that changes the remedy in :class:`TableFormatError` for a caller that writes to the folder."""
    try:
        yield
    except TableFormatError as error:
        raise TableFormatError(error.format, error.folder, is_write=True) from None


def format_of_entry(entry: os.DirEntry[str]) -> str | None:
    """Return the table format that a folder entry identifies; None if the entry does not identify a table."""
    if entry.name == _PARTITION:
        return "Hudi"
    if entry.name in _LOGS:
        return _format_of_log(entry.path)
    return "Iceberg" if entry.name == _METADATA and _is_iceberg(entry.path) else None


def is_metadata_folder(path: str) -> bool:
    """Return whether a local folder is the metadata folder of an Iceberg table, which contains no Parquet files."""
    return os.path.basename(path) == _METADATA and _is_iceberg(path)


def without_metadata(folder: Location, files: Sequence[Location]) -> Sequence[Location]:
    """Return the files below a folder of a store, except those in Iceberg metadata folders."""
    places = [file.key.rpartition("/") for file in files]
    metadata = {
        place for place, _, name in places if place.rpartition("/")[2] == _METADATA and _ICEBERG.fullmatch(name)
    } - {folder.key.rstrip("/")}
    return [file for file, (place, *_) in zip(files, places, strict=True) if place not in metadata]


class TableGuard:
    """Cached checks that folders are not within tables."""

    def __init__(self) -> None:
        self._formats: dict[str, str | None] = {}

    def check(self, folder: str) -> None:
        """Raise ``TableFormatError`` if a folder to read is within a table.

        The caller checks the entries of the folder itself.

        Reading the log and the metadata of a table is allowed.
        """
        path, name = os.path.split(os.path.realpath(folder))
        while name and _TABLE_FOLDERS.fullmatch(name):
            self._check(path)
            path, name = os.path.split(path)

    def check_target(self, folder: str) -> None:
        """Raise ``TableFormatError`` if a folder or file to write is a table or within a table."""
        path = os.path.realpath(folder)
        self._check(path)
        self.check_file(path)

    def check_file(self, path: str) -> None:
        """Raise ``TableFormatError`` if a file to write is within a table."""
        parent = os.path.dirname(os.path.realpath(path))
        self._check(parent)
        self.check(parent)

    def _check(self, path: str) -> None:
        if path not in self._formats:
            self._formats[path] = _format_of_folder(path)
        if (format := self._formats[path]) is not None:
            raise TableFormatError(format, path)


def check_listing(
    folder: Location, names: Iterable[str], is_read: Callable[[Sequence[str]], bool] = lambda folders: True
) -> None:
    """Raise ``TableFormatError`` if ``names``, paths relative to ``folder`` in a store, identify a table.

    A table is ignored if ``is_read`` returns False for the names of the folders that lead to it.
    """
    for name in names:
        if not any(mark in name for mark in ("_delta_log/", ".hoodie", ".metadata.json", "version-hint.text")):
            continue
        *folders, file = _split_path(name)
        for at, part in enumerate(folders):
            if part in _LOGS and _LOGS[part][1].fullmatch(file) and is_read(folders[:at]):
                raise TableFormatError(_LOGS[part][0], _url(folder, folders[:at]))
        if file == _PARTITION and is_read(folders):
            raise TableFormatError("Hudi", _url(folder, folders))
        if folders[-1:] == [_METADATA] and _ICEBERG.fullmatch(file) and is_read(folders[:-1]):
            raise TableFormatError("Iceberg", _url(folder, folders[:-1]))


def check_parents(folder: Location) -> None:
    """Raise ``TableFormatError`` if a folder of a store is a partition or the data folder of a table.

    The store is queried only if the folder has the name of a partition, ``key=value``, or is called ``data``.
    """
    parts = _split_path(folder.key)
    base = [*parts]
    while base and "=" in base[-1]:
        base.pop()
    root = folder.with_key("/" if folder.key.startswith("/") else "")
    if 0 < len(base) < len(parts):
        log = _child_location(root, [*base, "_delta_log"]).files()
        check_listing(_child_location(root, base), (f"_delta_log/{_split_path(file.key)[-1]}" for file in log))
    if len(base) > 1 and base[-1] == "data":
        table = base[:-1]
        files = _child_location(root, [*table, _METADATA]).files()
        if any(_ICEBERG.fullmatch(_split_path(file.key)[-1]) for file in files):
            raise TableFormatError("Iceberg", _url(root, table))


def _child_location(folder: Location, names: Sequence[str]) -> Location:
    start = folder.key if folder.key.endswith("/") or not folder.key else f"{folder.key}/"
    return folder.with_key(start + "/".join(names))


def _url(folder: Location, names: Sequence[str]) -> str:
    return _child_location(folder, names).path if names else folder.path


def _split_path(key: str) -> list[str]:
    return [part for part in key.split("/") if part]


def _format_of_folder(path: str) -> str | None:
    """Return the format of the table at ``path``; None if it is not a table."""
    logs = (_format_of_log(os.path.join(path, log)) for log in _LOGS)
    return next(filter(None, logs), None) or ("Iceberg" if _is_iceberg(os.path.join(path, _METADATA)) else None)


def _format_of_log(path: str) -> str | None:
    """Return the format of a table from its log folder at ``path``; None if the folder contains no log files."""
    format, proof = _LOGS[os.path.basename(path)]
    if format == "Delta" and os.path.isdir(path) and next(_names(path), None) is None:
        return format
    return format if any(map(proof.fullmatch, _names(path))) else None


def _is_iceberg(path: str) -> bool:
    return any(map(_ICEBERG.fullmatch, _names(path)))


def _names(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return
