"""Find files in the folder of an Iceberg table to which none of its snapshots refers."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.io.sources.store_errors import redact_uri
from pqext.tables.backend import Leftover
from pqext.tables.folders import data_files, file_key
from pqext.tables.iceberg.snapshot import locate_file

if TYPE_CHECKING:
    from pyiceberg.io import FileIO


def find_leftovers(
    folder: str, io: FileIO, older_than: timedelta, references: Callable[[], Iterable[str]], name: str
) -> list[Leftover]:
    """Return the Parquet files and unfinished pqext files in ``folder`` to which no snapshot refers.

    ``references`` reads the locations of the files of all snapshots. Raises the errors of :func:`stored_files`, and
    ``CorruptFileError`` if a file of a snapshot cannot be distinguished from a leftover.
    """
    before = time.time() * 1000 - older_than.total_seconds() * 1000
    files = {file_key(file.location): file for file in stored_files(folder, io, name)}
    if not any(file.modified < before for file in files.values()):
        return []  # files are listed before the log is read, so that the log refers to files committed in between
    locations = {path: locate_file(io, path) for path in references()}
    referenced = {path: file_key(location) for path, location in locations.items()}
    known = set(referenced.values())
    leftovers = {key: file for key, file in files.items() if key not in known and file.modified < before}
    names = {os.path.basename(key) for key in leftovers}
    for path, key in referenced.items():
        if key not in files and os.path.basename(key) in names:
            raise CorruptFileError(
                f"a snapshot refers to {redact_uri(path)}, but the folder {redact_uri(folder)} contains a file with "
                "this name at another path, so leftover files cannot be identified; nothing was removed", path=name,
            )
    return [*leftovers.values()]


def stored_files(folder: str, io: FileIO, name: str) -> Iterator[Leftover]:
    """Yield the Parquet files and unfinished pqext files in ``folder``, the folder for new files of a table.

    Raises ``UnsupportedError`` for folders in stores.
    """
    root = locate_file(io, folder)
    if not isinstance(root, str):
        raise UnsupportedError(
            "leftover files of Iceberg tables can be found only in local folders; call remove_orphan_files in Spark",
            feature="leftovers in stores", path=name,
        )
    if Path(root).is_dir():
        yield from data_files(Path(os.path.realpath(root)).as_uri(), None)
