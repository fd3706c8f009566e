"""Find the files of a dataset from paths, folders and patterns."""

from __future__ import annotations

import errno
import glob
import os
import posixpath
import stat
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pqext.core.base.local_paths import explain_broken_link
from pqext.core.base.suggestions import closest_name
from pqext.core.io.sources.locations import Location, is_filesystem_path, locate
from pqext.core.io.table_formats import TableGuard, check_listing, check_parents, without_metadata
from pqext.dataset.files.folders import expand_braces, is_hidden, list_files, matches, may_contain_matches
from pqext.dataset.files.manifests import list_committed_files


def find_sources(
    sources: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None,
    *, ignore_table_format: bool = False,
) -> tuple[Any, ...]:
    """Expand paths, folders and patterns in ``sources`` to files, in order; return other sources unchanged.

    A directory represents all files below it, and a pattern (``*``, ``?``, ``[...]``, ``**``, ``{a,b}``) the paths that
    it matches, both sorted by name. ``[!a]`` and ``[^a]`` match any character but ``a``, as in Hadoop. As in Spark,
    names that start with ``.``, or with ``_`` and contain no ``=``, are hidden. Files in the folder of a Spark
    streaming sink that are missing from its log are hidden too. A file that is named explicitly is never hidden. Links
    to folders are followed if a path names them or if a part of a pattern other than ``**`` matches them. Links inside
    a directory are not followed, because they might lead back to it. ``filesystem`` and ``storage_options`` resolve
    paths and URLs, as in :func:`pqext.core.io.sources.locations.locate`.

    Raises:
        FileNotFoundError: If a path does not exist, or a file listed in the log is missing.
        TableFormatError: If a folder or pattern is at, within or above a Delta, Iceberg or Hudi table, unless
            ``ignore_table_format``.
    """
    several = locate_sources(sources, filesystem, storage_options)
    if not several:
        raise ValueError("the list of sources is empty; pass at least one path")
    is_single, guard = len(several) == 1, None if ignore_table_format else TableGuard()
    return tuple(result for source in several for result in _find(source, is_single, guard))


def common_root(sources: Sequence[Any]) -> str | None:
    """Return the folder that contains all ``sources``, as returned by :func:`locate_sources`.

    The paths of partition folders start at this folder. A folder contains itself. For a pattern, only the part before
    the first wildcard is used. Return None if no source is a path, or if the sources are on several drives or in
    several stores.
    """
    places = [source for source in sources if isinstance(source, Location)]
    roots = {root for source in sources if isinstance(source, str) for root in _roots(source)}
    roots |= {_remote_root(place.with_key(key)) for place in places for key in expand_braces(place.key)}
    if len({one.store for one in places}) + any(isinstance(source, str) for source in sources) > 1:
        return None
    try:
        return (posixpath if places else os.path).commonpath(roots) if roots else None
    except ValueError:  # on several drives
        return None


def folder_of(source: Any) -> str | None:
    """Return the folder of a file, in the format of :func:`common_root`; None if the source has no path."""
    if isinstance(source, Location):
        return posixpath.dirname("/" + source.key.lstrip("/"))
    return os.path.dirname(os.path.abspath(source)) if isinstance(source, str) else None


def source_name(source: Any) -> str:
    """Format a source for messages."""
    if isinstance(source, str):
        return source
    name = getattr(source, "path", None) or getattr(source, "name", None)
    return name if isinstance(name, str) else f"<{type(source).__name__}>"


def locate_sources(
    sources: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> list[Any]:
    """Resolve each path or URL to a local path or an object-store location. Other sources are returned unchanged."""
    places = []
    several = sources if isinstance(sources, list | tuple) and not is_filesystem_path(sources) else [sources]
    for source in several:
        if isinstance(source, os.PathLike) and not isinstance(os.fspath(source), str):
            raise TypeError(f"a path must be text, not {os.fspath(source)!r}")
        places.append(source if isinstance(source, Location) else locate(source, filesystem, storage_options))
    return places


def _find(path: Any, is_single: bool, guard: TableGuard | None) -> Iterable[Any]:
    if isinstance(path, Location):
        return _find_remote(path, is_single, guard)
    if not isinstance(path, str):
        return [path]
    mode = _file_mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        if guard is not None:
            guard.check(path)
        results = [*list_files(path, ignore_table_format=guard is None).values()]
        reason = "The folder contains only hidden files" if os.listdir(path) else "The folder is empty"
    elif mode is not None:
        return [path]
    elif (several := expand_braces(path)) != [path]:
        results = sorted({item for alternative in several for item in _find_alternative(alternative, guard)})
        reason = "No file matches this pattern"
    else:
        results = _match_pattern(path, guard)
        reason = "No file matches this pattern" if glob.has_magic(path) else os.strerror(
            errno.ENOENT
        ) + _suggest_path(path)
    if not results:
        raise explain_broken_link(FileNotFoundError(errno.ENOENT, reason, path), path)
    return results


def _find_alternative(alternative: Any, guard: TableGuard | None) -> Iterable[Any]:
    """Return the paths that match one alternative of a pattern; no paths if the alternative matches nothing."""
    try:
        return _find(alternative, False, guard)
    except FileNotFoundError:
        return ()


def _suggest_path(path: str) -> str:
    """Return a hint that suggests an existing path similar to ``path``; empty if there is no similar path."""
    folder, name = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            near = closest_name(name, islice((entry.name for entry in entries), _MOST_NAMES), _ALIKE)
    except OSError:
        return ""
    return "" if near is None else f"; did you mean {os.path.join(folder, near)!r}?"


_MOST_NAMES = 10_000
_ALIKE = 0.85
"""Minimum similarity of a suggested path."""


def _find_remote(location: Location, is_single: bool, guard: TableGuard | None) -> Sequence[Location]:
    """Return the files at a location in a store: a file, the visible files of a folder, or the matches of a pattern.

    The store is queried for the type of a single source. In a list, a name with an extension is assumed to be a file.
    """
    if (several := expand_braces(location.key)) != [location.key] and not (is_single and location.is_file()):
        named = {
            element.key: element for key in several for element in _find_alternative(location.with_key(key), guard)
        }
        if not named:
            raise FileNotFoundError(errno.ENOENT, "No file matches this pattern", location.path)
        return [named[key] for key in sorted(named)]
    name = location.key.rpartition("/")[2]
    if glob.has_magic(location.key) and not (is_single and location.is_file()):
        parts = location.key.split("/")
        fixed = next(at for at, part in enumerate(parts) if glob.has_magic(part))
        root, pattern = location.with_key("/".join(parts[:fixed])), [part for part in parts[fixed:] if part]
        start = len(_parts(root))
        every = _list_files(root, guard, pattern)
        results = [item for item in every if matches(_parts(item)[start:], pattern)]
        if not results:
            raise FileNotFoundError(errno.ENOENT, "No file matches this pattern", location.path)
        return results
    if ("." in name and not is_single) or location.is_file():
        return [location]
    start = len(_parts(location))
    every = _list_files(location, guard)
    results = [entry for entry in every if not any(map(is_hidden, _parts(entry)[start:]))]
    if not results:
        reason = "The folder contains only hidden files" if every else os.strerror(errno.ENOENT)
        raise FileNotFoundError(errno.ENOENT, reason, location.path)
    return results


def _list_files(folder: Location, guard: TableGuard | None, pattern: Sequence[str] = ()) -> Sequence[Location]:
    """List the files below a folder of a store.

    Raises ``TableFormatError`` if a table below it can contain files that match the pattern, unless ``guard`` is None.
    """
    every = list_committed_files(folder)
    if guard is None:
        return without_metadata(folder, every)
    start = len(folder.key.rstrip("/"))
    check_listing(folder, (one.key[start:] for one in every), lambda folders: may_contain_matches(folders, pattern))
    check_parents(folder)
    return every


def _parts(location: Location) -> list[str]:
    return [part for part in location.key.split("/") if part]


def _remote_root(location: Location) -> str:
    parts = _parts(location)
    fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    if parts and fixed == len(parts) and "." in parts[-1][-10:] and "=" not in parts[-1]:
        fixed -= 1  # its name looks like that of a file
    return "/" + "/".join(parts[:fixed])


def _match_pattern(pattern: str, guard: TableGuard | None) -> list[str]:
    parts, fixed = Path(pattern).parts, _fixed_parts(pattern)
    if fixed == len(parts):
        return []
    only_folders = ["**"] if pattern.endswith((os.sep, os.altsep or os.sep)) else []
    root = os.path.join("", *parts[:fixed])
    if guard is not None:
        guard.check(root)
    try:
        below = list_files(root, [*parts[fixed:], *only_folders], ignore_table_format=guard is None)
        return [*below.values()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _fixed_parts(pattern: str) -> int:
    """Return the number of path components before the first component with a wildcard."""
    parts = Path(pattern).parts
    return next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))


def _roots(path: str) -> list[str]:
    """Return the root folders of a path, as defined in :func:`common_root`: one for each alternative in braces."""
    mode = _file_mode(path)
    if mode is not None:
        absolute = os.path.abspath(path)
        return [absolute if stat.S_ISDIR(mode) else os.path.dirname(absolute)]
    several = expand_braces(path)
    if several != [path]:
        return [root for alternative in several for root in _roots(alternative)]
    return [os.path.abspath(os.path.join("", *Path(path).parts[: _fixed_parts(path)]))]


def _file_mode(path: str) -> int | None:
    """Return the mode of the file or folder at a path; None if it does not exist."""
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None
