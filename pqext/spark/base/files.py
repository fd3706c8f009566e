"""The files that a data source's paths name: on the file system of the machine that asks, and in stores."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from pqext.core.base import local_paths
from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import scheme_of
from pqext.core.io.sources.locations import locate
from pqext.core.io.sources.store_errors import redact_uri
from pqext.dataset.files.sources import find_sources
from pqext.dataset.writing.targets import Target, target_at

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*|$)", re.DOTALL)
_DRIVE = re.compile(r"/[A-Za-z]:")
_LOCAL_HOSTS = ("", "localhost")
DBFS = "/dbfs"
"""Where machines of Databricks mount the file system that ``dbfs:/`` names."""


def option_paths(options: Mapping[str, str], *, remote: bool = False) -> list[str]:
    """The local paths given to ``load`` or ``save``: option ``path`` or, as a JSON list, ``paths``.

    They are absolute: executors stand in other folders than the driver, which calls this. ``remote``: URLs of stores
    are given as they are. Raises ``ValueError`` when there are none and ``UnsupportedError`` as :func:`local_path`.
    """
    paths = json.loads(options["paths"]) if "paths" in options else [options["path"]] if "path" in options else []
    if not paths or not all(paths):
        raise ValueError("no path: give one to load() or save()")
    return [path if remote and is_remote(path) else local_path(path) for path in paths]


def is_remote(path: str) -> bool:
    """Is this the URL of a store?"""
    scheme = scheme_of(path)
    return scheme not in (None, "file") and not (scheme == "dbfs" and os.path.isdir(DBFS))


def local_path(path: str) -> str:
    """The absolute path that ``path`` names, which may be a ``file:`` URI; only there ``%20`` stands for a space.

    ``dbfs:/x`` is ``/dbfs/x`` on machines of Databricks, which mount it there.

    Raises ``UnsupportedError`` for the URI of another scheme (``hdfs:/x``, ``s3://b/x``) or of another machine
    (``file://host/x``).
    """
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
            f"on Databricks' file system, and there is no folder {DBFS} on this machine",
            "give the path of a volume (/Volumes/...) or the URL of the store (s3://, abfss://, gs://) that it lies in",
        )
    elif scheme == "file" and rest:
        machine = redact_uri(path)[len("file://") :].partition("/")[0]
        reason, advice = f"on the machine {machine!r}", "leave the machine out (file:/path) when all machines mount it"
    else:
        reason, advice = (
            "not on a local file system",
            "mount it and give the path where it is mounted, or copy the files",
        )
    raise UnsupportedError(f"{redact_uri(path)} is {reason}: {advice}", feature=f"{scheme} paths")


def target_of(path: str, storage_options: Mapping[str, Any] | None) -> Target:
    """The folder that a save writes to. Raises ``UnsupportedError`` for a store that jobs cannot be committed to."""
    return target_at(path if is_remote(path) else local_path(path), storage_options)


def list_files(paths: Iterable[str], *, ignore_table_format: bool = False) -> list[str]:
    """All files that ``paths`` name: files, folders with all below them, and patterns; hidden ones left out."""
    return [str(found) for found in find_sources(list(paths), ignore_table_format=ignore_table_format)]


def list_sources(
    paths: Sequence[str], storage_options: Mapping[str, Any] | None, *, ignore_table_format: bool = False
) -> Iterator[tuple[str, Any]]:
    """All files that ``paths`` and URLs name: the path or URL that opens each, and where it lies.

    Raises ``ValueError`` for options with nothing that they apply to, and ``TableFormatError`` for the folder of a
    table, unless ``ignore_table_format``.
    """
    if not any(map(is_remote, paths)):
        if storage_options:
            raise ValueError("storage_options are for URLs, such as s3://bucket/key")
        yield from ((path, path) for path in list_files(paths, ignore_table_format=ignore_table_format))
        return
    for given in paths:
        options = storage_options if is_remote(given) else None
        for place in find_sources(given, None, options, ignore_table_format=ignore_table_format):
            if isinstance(place, str):
                yield place, place
                continue
            # What is named outright may need what names in messages leave out, a signature for example.
            yield given if place.key == locate(given, None, options).key else place.path, place


def slice_bytes(total: int, upper: int) -> int:
    """Bytes for one task: few enough that every processor has work, at least 1 MiB and at most ``upper``."""
    return max(1 << 20, min(upper, total // (2 * (os.cpu_count() or 1))))
