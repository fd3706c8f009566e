"""The folders of a store: its own parts, pqext's own indexes within it, and parts that will replace others."""

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
from pqext.skipping.format.reading import part_files

SIDE = "_pqext"
"""The folder of the indexes that the specification does not know."""
PENDING = "_pending"
"""The folder of parts that are to take the place of others, which are read until these are gone."""
_LOOKS = 2
"""How often parts are looked for where there are none: they may be on their way."""
VERSION_COLUMN = IndexColumn.of("object", ["obj_name"])
"""The column of pqext's own parts with the version of the object that a row is about: its size and etag."""
VERSION = VERSION_COLUMN.name
VERSION_TYPE = pa.struct([("size", pa.int64()), ("etag", pa.string())])


def within(folder: Any, name: str) -> Any:
    """What lies in a folder, a path or a place in an object store."""
    if isinstance(folder, Location):
        return folder.at(posixpath.join(folder.key, name))
    return os.path.join(folder, name)


def pending(folder: Any) -> Any:
    """Where the parts lie that are to take the place of those in ``folder``, of a store or of its further indexes."""
    parent, _, name = str(folder.key if isinstance(folder, Location) else folder).rstrip("/").rpartition("/")
    if name != SIDE:
        return within(folder, PENDING)
    above = folder.at(parent) if isinstance(folder, Location) else parent or os.sep
    return within(within(above, PENDING), SIDE)


def parts_of(folder: Any) -> list[Any]:
    """The parts in a folder, or those that are about to take their place; none where there is no store."""
    for _ in range(_LOOKS):
        found = part_files(folder) or part_files(pending(folder))
        if found:
            return found
    return []


def all_parts(location: Any) -> list[Any]:
    """All parts of a store, the own ones first: rows of further indexes tell versions apart, and go last."""
    side = within(location, SIDE)
    return [part for one in (location, pending(location), side, pending(side)) for part in part_files(one)]


def substitute(location: Any, old: Sequence[Any]) -> None:
    """Put the parts that are pending into the place of ``old`` ones."""
    remove(old)
    for folder in (within(location, SIDE), location):
        move(pending(folder), folder)


def remove(parts: Sequence[Any]) -> None:
    """Delete parts, those that are gone already too."""
    for part in parts:
        if isinstance(part, str):
            with suppress(FileNotFoundError):
                os.remove(part)
        else:
            part.remove()


def move(source: Any, dest: Any) -> None:
    """Put the parts in one folder into another, which another process may be doing too."""
    for part in part_files(source):
        name = part.key.rpartition("/")[2] if isinstance(part, Location) else os.path.basename(part)
        with suppress(FileNotFoundError):
            if isinstance(part, Location):
                _copy(part, within(dest, name))
                part.remove()
            else:
                os.makedirs(dest, exist_ok=True)
                os.replace(part, within(dest, name))
    if not isinstance(source, Location):
        with suppress(OSError):
            os.rmdir(source)


def _copy(part: Location, dest: Location) -> None:
    with closing(part.open()) as opened, Sink(dest) as sink:
        sink.write(opened.read(0, opened.size))
