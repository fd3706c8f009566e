"""Folders of a store: own parts, extra parts with pqext's indexes, and pending parts that replace these parts."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

import pyarrow as pa

from pqext.core.io.sink import Sink
from pqext.core.io.sources.locations import Location
from pqext.skipping.format.metadata import IndexColumn
from pqext.skipping.format.parts import part_files

EXTRA = "_pqext"
"""Folder of the index types that the specification does not define."""
PENDING = "_pending"
"""Folder of replacement parts, which are read once the replaced parts are deleted."""
_LOOKS = 2
"""Number of listings if no parts are found, because another process may be moving them."""
VERSION_COLUMN = IndexColumn.create("object", ["obj_name"])
"""Column of the extra parts with the version of the row's object: its size and etag."""
VERSION = VERSION_COLUMN.name
VERSION_TYPE = pa.struct([("size", pa.int64()), ("etag", pa.string())])


def join_location(folder: Any, name: str) -> Any:
    """Return a path or object-store location within a folder."""
    if isinstance(folder, Location):
        return folder.with_key(posixpath.join(folder.key, name))
    return os.path.join(folder, name)


def pending_folder(folder: Any) -> Any:
    """Return the folder for new parts that will replace the parts in ``folder``, a folder of own or extra parts."""
    parent, _, name = str(folder.key if isinstance(folder, Location) else folder).rstrip("/").rpartition("/")
    if name != EXTRA:
        return join_location(folder, PENDING)
    above = folder.with_key(parent) if isinstance(folder, Location) else parent or os.sep
    return join_location(join_location(above, PENDING), EXTRA)


def current_parts(folder: Any) -> list[Any]:
    """Return the parts in a folder or, if there are none, the pending parts that will replace them."""
    for _ in range(_LOOKS):
        parts = part_files(folder) or part_files(pending_folder(folder))
        if parts:
            return parts
    return []


def list_all_parts(location: Any) -> list[Any]:
    """Return all parts of a store, including pending parts.

    Extra parts are last, because their rows state the versions of objects.
    """
    extra = join_location(location, EXTRA)
    folders = (location, pending_folder(location), extra, pending_folder(extra))
    return [part for folder in folders for part in part_files(folder)]


def replace_parts(location: Any, old_parts: Sequence[Any]) -> None:
    """Remove ``old_parts``, and move the pending parts into their folders."""
    remove_parts(old_parts)
    for folder in (join_location(location, EXTRA), location):
        move_parts(pending_folder(folder), folder)


def remove_parts(parts: Sequence[Any]) -> None:
    """Delete parts. Parts that are already deleted are ignored."""
    for part in parts:
        if isinstance(part, str):
            with suppress(FileNotFoundError):
                os.remove(part)
        else:
            part.remove()


def move_parts(source: Any, dest: Any) -> None:
    """Move the parts in one folder to another. Another process may move the same parts concurrently."""
    for part in part_files(source):
        name = part.key.rpartition("/")[2] if isinstance(part, Location) else os.path.basename(part)
        with suppress(FileNotFoundError):
            if isinstance(part, Location):
                _copy(part, join_location(dest, name))
                part.remove()
            else:
                os.makedirs(dest, exist_ok=True)
                os.replace(part, join_location(dest, name))
    if not isinstance(source, Location):
        with suppress(OSError):
            os.rmdir(source)


def _copy(part: Location, dest: Location) -> None:
    with closing(part.open()) as opened, Sink(dest) as sink:
        sink.write(opened.read(0, opened.size))
