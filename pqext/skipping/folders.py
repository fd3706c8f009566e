"""The folders of a store: its own parts, further indexes within it, and parts that are to take the place of others."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

from pqext.core.sink import Sink
from pqext.core.sources.locate import Location
from pqext.skipping.format.reading import part_files

SIDE = "_pqext"
"""The folder of the indexes that the specification does not know."""
UPGRADED = "_upgraded"
"""The folder of parts of the latest version, while they take the place of older ones."""
_LOOKS, _PAUSE = 3, 0.02
"""How often parts are looked for where there are none, and the seconds between: a store may be taking their place."""


def within(folder: Any, name: str) -> Any:
    """What lies in a folder, a path or a place in an object store."""
    if isinstance(folder, Location):
        return folder.at(posixpath.join(folder.key, name))
    return os.path.join(folder, name)


def parts_of(folder: Any) -> list[Any]:
    """The parts in a folder, or those that are about to take their place; none where there is no store."""
    for look in range(_LOOKS):
        found = part_files(folder) or part_files(within(folder, UPGRADED))
        if found:
            return found
        if look + 1 < _LOOKS and exists(folder):
            time.sleep(_PAUSE)
    return []


def exists(folder: Any) -> bool:
    """Is there a folder, or, in an object store, anything below it?"""
    return bool(folder.files()) if isinstance(folder, Location) else os.path.isdir(folder)


def all_parts(location: Any) -> list[Any]:
    """All parts of a store, the own ones first: rows of further indexes tell versions apart, and go last."""
    folders = [location, within(location, UPGRADED), within(location, SIDE), within(within(location, SIDE), UPGRADED)]
    return [part for folder in folders for part in part_files(folder)]


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
