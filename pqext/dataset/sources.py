"""The files of a dataset: one, several, a directory's or a pattern's."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pqext.core.errors import UnsupportedError


def find_sources(sources: Any) -> tuple[Any, ...]:
    """The files that ``sources`` names, in order; what is not a path is passed on as it is.

    A directory stands for all files below it, a pattern (``*``, ``?``, ``[...]``, ``**``) for what it matches,
    both sorted by name. There, names that begin with ``_`` or ``.`` are hidden, as in Spark; a file named
    outright is not. Raises ``FileNotFoundError`` when a path names nothing.
    """
    if not isinstance(sources, list | tuple):
        return tuple(_find(sources))
    if not sources:
        raise ValueError("the list of sources is empty")
    return tuple(found for source in sources for found in _find(source))


def source_name(source: Any) -> str:
    """How messages name a source."""
    if isinstance(source, str):
        return source
    name = getattr(source, "path", None) or getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def _find(source: Any) -> Iterable[Any]:
    if not isinstance(source, str | os.PathLike):
        return [source]
    path = os.fspath(source)
    if not isinstance(path, str):
        raise TypeError("a path is text")
    if "://" in path:
        raise UnsupportedError(f"{path} is not a local file", feature="remote sources")
    if os.path.isdir(path):
        found = list(_files_below(path))
        reason = "No file in this folder but hidden ones"
    elif os.path.exists(path):
        return [path]
    else:
        found = [file for match in sorted(glob.glob(path, recursive=True)) for file in _matched(match, path)]
        reason = "No file matches this pattern" if glob.has_magic(path) else os.strerror(errno.ENOENT)
    if not found:
        raise FileNotFoundError(errno.ENOENT, reason, path)
    return found


def _matched(match: str, pattern: str) -> Iterable[str]:
    fixed = len(Path(pattern[: len(pattern) - len(pattern.lstrip("/"))]).parts)
    for part in Path(pattern).parts[fixed:]:
        if glob.has_magic(part):
            break
        fixed += 1
    if any(map(_is_hidden, Path(match).parts[fixed:])):
        return []
    return _files_below(match) if os.path.isdir(match) else [match]


def _files_below(directory: str) -> Iterator[str]:
    for folder, folders, files in os.walk(directory):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in sorted(files):
            if not _is_hidden(name):
                yield os.path.join(folder, name)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))
