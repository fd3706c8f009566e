"""Resolve the paths of a data source to files, on the local file system and in object stores."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from copy import copy
from typing import Any
from urllib.parse import unquote

from pqext.core.base import local_paths
from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import find_sources
from pqext.dataset.writing.targets import Target, open_target

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*|$)", re.DOTALL)
_DELTA, _ICEBERG = "delta:", "iceberg:"
"""Prefixes of tables: a path or URL, and a name in a catalog or a path or URL of metadata."""
_DRIVE = re.compile(r"/[A-Za-z]:")
_LOCAL_HOSTS = ("", "localhost")
DBFS = "/dbfs"
"""Folder where Databricks mounts the file system with ``dbfs:/`` URIs."""


def option_paths(options: Mapping[str, str], *, allow_urls: bool = False) -> list[str]:
    """Return the paths in option ``path`` or, as a JSON list, in option ``paths``.

    Local paths become absolute, because executors run in other working directories than the driver. URLs of
    object stores are returned unchanged with ``allow_urls``, and raise ``UnsupportedError`` without it, as in
    :func:`local_path`. Raises ``ValueError`` if there is no path.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths or not all(paths):
        raise ValueError("the path is missing: pass a path to load() or save()")
    are_urls = [allow_urls and (is_remote(path) or path.startswith((_DELTA, _ICEBERG))) for path in paths]
    return [path if is_url else local_path(path) for path, is_url in zip(paths, are_urls, strict=True)]


def replace_table(options: MutableMapping[str, str]) -> MutableMapping[str, str]:
    """Replace option ``table`` with option ``path``, as an absolute path.

    Raises ``ValueError`` if it is not the name of a table, or if there is a path too.
    """
    if "table" not in options:
        return options
    table = options["table"]
    if "path" in options or "paths" in options:
        raise ValueError("pass either option table or a path, not both")
    if not table.startswith((_DELTA, _ICEBERG)):
        names = "delta:PATH or iceberg:CATALOG.NAMESPACE.TABLE"
        raise ValueError(f"option table must be {names}, not {redact_uri(table)!r}")
    replaced = copy(options)
    del replaced["table"]
    replaced["path"] = str(absolute_paths(table))
    return replaced


def absolute_paths(path: str | Sequence[str]) -> str | list[str]:
    """Make relative local paths absolute, because Spark would resolve them in its own working directory.

    Paths are relative to the working directory of this process, for reads and for saves.
    """
    if isinstance(path, str):
        if path.startswith(_DELTA):
            return _DELTA + str(absolute_paths(path.removeprefix(_DELTA)))
        if path.startswith(_ICEBERG):
            metadata = path.removeprefix(_ICEBERG)
            return _ICEBERG + os.path.abspath(metadata) if os.path.exists(metadata) else path
        return os.path.join(os.getcwd(), path) if path and _URI.match(path) is None else path
    return [str(absolute_paths(item)) for item in path]


def is_remote(path: str) -> bool:
    """Return whether a path is the URL of an object store."""
    scheme = scheme_of(path)
    return scheme not in (None, "file") and not (scheme == "dbfs" and os.path.isdir(DBFS))


def local_path(path: str) -> str:
    """Return the absolute local path of a path or ``file:`` URI. Escapes such as ``%20`` are decoded in URIs only.

    On Databricks, ``dbfs:/x`` becomes ``/dbfs/x``. Raises ``UnsupportedError`` for a URI with another scheme
    (``hdfs:/x``, ``s3://b/x``) or on another machine (``file://host/x``), and ``ValueError`` for an empty path.
    """
    local_paths.check_target(path)
    match = _URI.match(path)
    if match is None:
        return os.path.join(os.getcwd(), path)
    scheme, host, rest = match[1].lower(), (match[2] or "//")[2:], match[3]
    if scheme == "file" and host.lower() in _LOCAL_HOSTS and rest:
        path = unquote(rest)
        return path[1:] if local_paths.ON_WINDOWS and _DRIVE.match(path) else path
    if scheme == "dbfs" and rest and not host and os.path.isdir(DBFS):
        return os.path.join(DBFS, rest.lstrip("/"))
    if scheme == "dbfs":
        reason, advice = (
            f"on Databricks' file system, but this machine has no folder {DBFS}",
            "pass the path of a volume (/Volumes/...) or the URL of its store (s3://, abfss://, gs://)",
        )
    elif scheme == "file" and rest:
        machine = redact_uri(path)[len("file://") :].partition("/")[0]
        reason, advice = f"on the machine {machine!r}", "omit the machine (file:/path) if all machines mount the path"
    else:
        reason, advice = (
            "not on a local file system",
            "mount it and pass the path of the mount, or copy the files",
        )
    raise UnsupportedError(f"{redact_uri(path)} is {reason}: {advice}", feature=f"{scheme} paths")


def resolve_target(path: str, storage_options: Mapping[str, Any] | None) -> Target:
    """Return the target of a save. Raises ``UnsupportedError`` for a store without support for atomic commits."""
    return open_target(path if is_remote(path) else local_path(path), storage_options)


def list_files(paths: Iterable[str], *, ignore_table_format: bool = False) -> list[str]:
    """List the files at ``paths``, without hidden files.

    Paths are files, folders (searched recursively) and patterns.
    """
    return [str(file) for file in find_sources(list(paths), ignore_table_format=ignore_table_format)]


def list_sources(
    paths: Sequence[str], storage_options: Mapping[str, Any] | None, *, ignore_table_format: bool = False
) -> Iterator[tuple[str, Any]]:
    """Yield the files at paths and URLs: for each file, the path or URL with which it is opened, and the location.

    Raises ``ValueError`` if storage options are passed without URLs, and ``TableFormatError`` for the folder of a table
    unless ``ignore_table_format`` is true.
    """
    if not any(map(is_remote, paths)):
        if storage_options:
            raise ValueError("storage_options are for URLs, such as s3://bucket/key; omit them for local paths")
        yield from ((path, path) for path in list_files(paths, ignore_table_format=ignore_table_format))
        return
    for path in paths:
        options = storage_options if is_remote(path) else None
        for location in find_sources(path, None, options, ignore_table_format=ignore_table_format):
            if isinstance(location, str):
                yield location, location
                continue
            # The URL of a single file may contain secrets, such as a signature, that `location.path` omits.
            yield path if location.key == locate(path, None, options).key else location.path, location


def slice_bytes(total: int, max_bytes: int) -> int:
    """Return the number of bytes per task that divides ``total`` into two tasks per processor.

    The number is at most ``max_bytes``, but at least 1 MiB.
    """
    return max(1 << 20, min(max_bytes, total // (2 * (os.cpu_count() or 1))))
