"""Resolve inputs to files and folders: paths, URLs, paths in file systems, and open files."""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from pqext.core.base.local_paths import expand_home, scheme_of, split_uri
from pqext.core.io.source import ArrowSource, MemorySource, PathSource, Source, StreamSource
from pqext.core.io.sources.store import Location, Store, get_store

__all__ = [
    "Location", "is_filesystem_path", "is_same_file", "list_files", "locate", "may_be_same_file", "open_source",
]

_SYNONYMS = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that are synonyms of other schemes."""


def open_source(source: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Source:
    """Open a file as a :class:`Source`. For the arguments, see :func:`locate`.

    A ``Source`` is returned unchanged. Raises ``OSError`` if a file cannot be opened, ``UnsupportedError`` for a URL
    that no installed library can open, and ``TypeError`` for an object that is not a file.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, bytes | bytearray) and filesystem is None and not storage_options:
        return MemorySource(source)
    is_path = isinstance(source, str | os.PathLike)
    if is_path and filesystem is None and storage_options is None and scheme_of(path := os.fsdecode(source)) is None:
        return PathSource(expand_home(path))
    file = locate(source, filesystem, storage_options)
    if isinstance(file, Location):
        return file.open()
    if isinstance(file, str):
        return PathSource(file)
    if isinstance(file, pa.NativeFile):
        return ArrowSource(file)
    if hasattr(file, "read") and hasattr(file, "seek"):
        return StreamSource(file)
    try:
        return MemorySource(file)
    except TypeError:
        if any(hasattr(file, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow")):
            raise TypeError(
                f"a {type(file).__name__} is already in memory, not a file: pass a path, "
                "or write it with pqext.write_table(table, path)"
            ) from None
        raise TypeError(
            f"cannot read from {type(file).__name__}: pass a path, a URL, bytes, a seekable binary file object "
            "or a pyarrow.NativeFile"
        ) from None


def locate(source: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Any:
    """Resolve ``source`` to a local path or a :class:`Location` in a store. Other objects are returned unchanged.

    The store is not queried, except that pyarrow may look up the region of a bucket.

    Args:
        source: A path or a URL: ``s3://``, ``gs://``, ``abfss://`` and ``hdfs://`` are opened by ``pyarrow.fs``,
            ``https://`` by obstore, and every other protocol by fsspec. Also a pair of a file system and a path, an
            fsspec ``OpenFile``, or a file opened by fsspec, which is read by ranges instead of through its buffer.
        filesystem: File system of ``pyarrow.fs``, fsspec or obstore that contains the path ``source``.
        storage_options: Credentials and other options of the store of a URL, by the names of pyarrow's arguments or
            those of polars, fsspec and obstore.

    Raises:
        UnsupportedError: For a URL that no installed library can open.
        ValueError: For unknown options, or options without a URL.
    """
    if is_filesystem_path(source):
        filesystem, source = source
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options must map names to values, not {type(storage_options).__name__}")
    if storage_options and not all(isinstance(name, str) for name in storage_options):
        types = {type(name).__name__ for name in storage_options}
        raise TypeError(f"names in storage_options must be strings, not {', '.join(sorted(types - {'str'}))}")
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs; configure the filesystem instead")
        return _locate_within(filesystem, source)
    fsspec_path = _fsspec_path(source)
    if fsspec_path is not None:
        return _locate_within(*fsspec_path)
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        scheme = scheme_of(path)
        if scheme is not None:
            from pqext.core.io.sources.uris import locate_uri

            return locate_uri(path, scheme, storage_options or {})
        source = expand_home(path)
    if storage_options:
        raise ValueError("storage_options are for URLs, such as s3://bucket/key; omit them for local paths")
    return source


def is_same_file(first: Any, second: Any) -> bool:
    """Return whether two results of :func:`locate` are the same location. Local files must exist."""
    if isinstance(first, str | os.PathLike) and isinstance(second, str | os.PathLike):
        return os.path.exists(first) and os.path.exists(second) and os.path.samefile(first, second)
    return isinstance(first, Location) and first == second


def may_be_same_file(first: Any, second: Any) -> bool:
    """Return whether two results of :func:`locate` may refer to the same file.

    Files in stores may be the same if their paths are equal and their schemes are equal, synonymous or unknown.
    """
    if is_same_file(first, second):
        return True
    files = _local_file(first), _local_file(second)
    if None not in files:
        return files[0] == files[1]
    (scheme, path), (second_scheme, second_path) = _bare_path(first), _bare_path(second)
    return path is not None and path == second_path and (scheme == second_scheme or not scheme or not second_scheme)


def _local_file(file: Any) -> tuple[int, int] | None:
    """Return device and inode number of a local path or open file; None for other objects."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        status = os.stat(file) if isinstance(file, str | os.PathLike) else os.fstat(file.fileno())
        return status.st_dev, status.st_ino
    return None


def _bare_path(file: Any) -> tuple[str, str | None]:
    """Return the scheme and path of a URL in normalised form, for comparison with other URLs.

    The path is None for local files.
    """
    url = file.path if isinstance(file, Location) else file
    if not isinstance(file, Location) and (not isinstance(url, str) or scheme_of(url) is None):
        return "", None
    scheme, mark, rest = url.partition("://")
    if scheme.lower() in ("http", "https"):
        rest = rest.partition("?")[0]
    elif mark:
        parts = split_uri(url)
        rest = parts.netloc + parts.path
    path = posixpath.normpath("/" + (rest if mark else scheme).lstrip("/"))
    return _SYNONYMS.get(scheme.lower(), scheme.lower()) if mark else "", path


def list_files(
    folder: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> list[Location]:
    """Return the files below a folder of a store, including hidden files, sorted by path.

    For the arguments, see :func:`locate`. Raises ``TypeError`` for a local folder.
    """
    location = locate(folder, filesystem, storage_options)
    if not isinstance(location, Location):
        raise TypeError(f"{folder!r} is not a folder in an object store; pass a URL such as s3://bucket/folder")
    return location.files()


def is_filesystem_path(source: Any) -> bool:
    """Return whether ``source`` is a pair of a file system and a path in it."""
    return isinstance(source, tuple) and len(source) == 2 and _is_filesystem(source[0])


def _is_filesystem(value: Any) -> bool:
    packages = {base.__module__.split(".")[0] for base in type(value).__mro__}
    return not packages.isdisjoint(("pyarrow", "fsspec", "obstore")) and (
        any(hasattr(value, name) for name in ("open_input_file", "cat_file", "get_range"))
    )


def _fsspec_path(source: Any) -> tuple[Any, Any] | None:
    """Return the file system and path of an fsspec file (open or not), or of a path object that uses fsspec.

    Return None for other objects.
    """
    if "fsspec.spec" not in sys.modules or not hasattr(source, "fs") or not hasattr(source, "path"):
        return None
    from fsspec.core import OpenFile
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

    if not isinstance(source.fs, AbstractFileSystem) or isinstance(source, Location):
        return None
    if isinstance(source, OpenFile):
        if source.compression is not None:
            raise ValueError(
                f"fsspec file {source.path!r} is opened with compression={source.compression!r}, which prevents random "
                "access; pass the file object that its open() returns, or decompress the file first"
            )
        return source.fs, source.path
    if isinstance(source, AbstractBufferedFile):
        return (source.fs, source.path) if source.mode == "rb" else None
    return None if hasattr(source, "read") else (source.fs, source.path)  # universal_pathlib


def _locate_within(filesystem: Any, source: Any) -> Any:
    """Resolve a path in a file system. The result is a local path if the file system is local."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"if filesystem is passed, the source must be a path, not {type(source).__name__}")
    path = os.fsdecode(source)
    arrow, spec = sys.modules.get("pyarrow.fs"), sys.modules.get("fsspec.spec")
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        if isinstance(filesystem, arrow.PyFileSystem) and isinstance(filesystem.handler, arrow.FSSpecHandler):
            return _locate_within(filesystem.handler.fs, path)
        if isinstance(filesystem, arrow.LocalFileSystem):
            return path
        from pqext.core.io.sources.arrow_files import ArrowStore

        store = get_store(filesystem, lambda: ArrowStore(filesystem))
        return _make_location(store, path.partition("://")[2] if scheme_of(path) else path)
    if spec is not None and isinstance(filesystem, spec.AbstractFileSystem):
        path = filesystem._strip_protocol(path)
        if getattr(filesystem, "local_file", False):
            return path
        from pqext.core.io.sources.fsspec_files import FsspecStore

        return _make_location(get_store(filesystem, lambda: FsspecStore(filesystem)), path)
    if _is_filesystem(filesystem):
        from pqext.core.io.sources.object_files import ObjectStore

        return _make_location(get_store(filesystem, lambda: ObjectStore(filesystem)), path.lstrip("/"))
    raise TypeError(
        f"filesystem must be a file system of pyarrow.fs, fsspec or obstore, not {type(filesystem).__name__}"
    )


def _make_location(store: Store, path: str) -> Location:
    return Location(store, path, store.name(path))
