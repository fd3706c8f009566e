"""The files of a dataset: one, several, a directory's or a pattern's."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pqext.core.local_paths import check_local
from pqext.dataset.folders import files_below


def find_sources(sources: Any) -> tuple[Any, ...]:
    """The files that ``sources`` names, in order; what is not a path is passed on as it is.

    A directory stands for all files below it, a pattern (``*``, ``?``, ``[...]``, ``**``) for what it matches,
    both sorted by name. There, names that begin with ``.``, or with ``_`` and hold no ``=``, are hidden, as in Spark,
    and so are files in the folder of a streaming sink of Spark that its log does not name; a file named outright is
    not. Links to folders are followed where a path names them or a part of a pattern other than ``**`` does, not within
    a directory, which might hold itself. Raises ``FileNotFoundError`` when a path names nothing, or the log a file that
    is not there.
    """
    if not isinstance(sources, list | tuple):
        return tuple(_find(sources))
    if not sources:
        raise ValueError("the list of sources is empty")
    return tuple(found for source in sources for found in _find(source))


def common_root(sources: Any) -> str | None:
    """The folder from which the folders of partitions count: what the roots of all paths in ``sources`` share.

    A folder is its own root, that of a pattern is what stands before the first part with a wildcard, that of a file
    its folder. None when no source is a path, or they lie on several drives.
    """
    several = sources if isinstance(sources, list | tuple) else [sources]
    roots = {_root(os.fspath(source)) for source in several if isinstance(source, str | os.PathLike)}
    try:
        return os.path.commonpath(roots) if roots else None
    except ValueError:  # on several drives
        return None


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
    check_local(path, "read")
    if os.path.isdir(path):
        found = [*files_below(path).values()]
        reason = "No file in this folder but hidden ones"
    elif os.path.exists(path):
        return [path]
    else:
        found = _matching(path)
        reason = "No file matches this pattern" if glob.has_magic(path) else os.strerror(errno.ENOENT)
    if not found:
        raise FileNotFoundError(errno.ENOENT, reason, path)
    return found


def _matching(pattern: str) -> list[str]:
    parts, fixed = Path(pattern).parts, _fixed_parts(pattern)
    if fixed == len(parts):
        return []
    only_folders = ["**"] if pattern.endswith((os.sep, os.altsep or os.sep)) else []
    try:
        return [*files_below(os.path.join("", *parts[:fixed]), [*parts[fixed:], *only_folders]).values()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _fixed_parts(pattern: str) -> int:
    """How many parts of the path stand before the first with a wildcard."""
    parts = Path(pattern).parts
    return next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))


def _root(path: str) -> str:
    if os.path.isdir(path):
        return os.path.abspath(path)
    if os.path.exists(path):
        return os.path.dirname(os.path.abspath(path))
    return os.path.abspath(os.path.join("", *Path(path).parts[: _fixed_parts(path)]))
