"""What users give for a file or a folder, told apart: paths, URLs, places of file systems, open files."""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pqext.core.base.local_paths import scheme_of, split_uri, with_home
from pqext.core.io.sources.store import Location, Store, remembered

__all__ = ["Location", "are_same", "is_place", "list_files", "locate", "may_be_same"]

_SYNONYMS = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes by which the same stores are reached."""


def locate(source: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Any:
    """Where ``source`` lies: a :class:`Location` in a store, a ``str`` for a local path, else ``source`` as it is.

    ``source`` is a path or a URL: ``s3://``, ``gs://``, ``abfss://`` and ``hdfs://`` by ``pyarrow.fs``, ``https://``
    by obstore, ``file://``, and every protocol of fsspec. With ``filesystem``, of ``pyarrow.fs``, fsspec or obstore,
    it is a path there; a pair of both may be given for it, an fsspec ``OpenFile``, or a file opened by fsspec, which
    is read by ranges rather than through its buffer. ``storage_options`` are credentials and other options of the
    store that a URL names, by the names of pyarrow's arguments or those that polars, fsspec and obstore use.

    Raises ``UnsupportedError`` for a URL that nothing installed opens, and ``ValueError`` for options that are unknown
    or have nothing to apply to. Nothing is asked of the store but, by pyarrow, the region of a bucket.
    """
    if is_place(source):
        filesystem, source = source
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options maps names to values, not a {type(storage_options).__name__}")
    if filesystem is not None:
        if storage_options:
            raise ValueError("storage_options are for URLs: the filesystem has its own")
        return _within(filesystem, source)
    found = _by_fsspec(source)
    if found is not None:
        return _within(*found)
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        scheme = scheme_of(path)
        if scheme is not None:
            from pqext.core.io.sources.uris import at_uri

            return at_uri(path, scheme, storage_options or {})
        source = with_home(path)
    if storage_options:
        raise ValueError("storage_options are for URLs, s3://bucket/key for example")
    return source


def are_same(one: Any, other: Any) -> bool:
    """Are two results of :func:`locate` one place, where a file is if it is local?"""
    if isinstance(one, str | os.PathLike) and isinstance(other, str | os.PathLike):
        return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
    return isinstance(one, Location) and one == other


def may_be_same(one: Any, other: Any) -> bool:
    """As :func:`are_same`, where nothing may be lost: also of places named in two ways, open files, and URLs alike."""
    if are_same(one, other):
        return True
    files = _local_file(one), _local_file(other)
    if None not in files:
        return files[0] == files[1]
    (scheme, path), (other_scheme, other_path) = _bare(one), _bare(other)
    return path is not None and path == other_path and (scheme == other_scheme or not scheme or not other_scheme)


def _local_file(place: Any) -> tuple[int, int] | None:
    """Device and number of the local file that a path or an open file leads to; None for others."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = os.stat(place) if isinstance(place, str | os.PathLike) else os.fstat(place.fileno())
        return found.st_dev, found.st_ino
    return None


def _bare(place: Any) -> tuple[str, str | None]:
    """Scheme and path of a place in a store, without what lets one file have several URLs; None for local ones."""
    url = place.path if isinstance(place, Location) else place
    if not isinstance(place, Location) and (not isinstance(url, str) or scheme_of(url) is None):
        return "", None
    scheme, told, rest = url.partition("://")
    if scheme.lower() in ("http", "https"):
        rest = rest.partition("?")[0]
    elif told:
        parts = split_uri(url)
        rest = parts.netloc + parts.path
    path = posixpath.normpath("/" + (rest if told else scheme).lstrip("/"))
    return _SYNONYMS.get(scheme.lower(), scheme.lower()) if told else "", path


def list_files(
    folder: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> list[Location]:
    """The files below a folder of a store, at any depth, hidden ones too, sorted by path; arguments as `locate`.

    Raises ``TypeError`` for a folder of the local file system.
    """
    found = locate(folder, filesystem, storage_options)
    if not isinstance(found, Location):
        raise TypeError(f"{folder!r} is in no store")
    return found.files()


def is_place(source: Any) -> bool:
    """Is ``source`` a pair of a file system and a path in it?"""
    return isinstance(source, tuple) and len(source) == 2 and _is_filesystem(source[0])


def _is_filesystem(given: Any) -> bool:
    return any(kind.__module__.split(".")[0] in ("pyarrow", "fsspec", "obstore") for kind in type(given).__mro__) and (
        any(hasattr(given, name) for name in ("open_input_file", "cat_file", "get_range"))
    )


def _by_fsspec(source: Any) -> tuple[Any, Any] | None:
    """The file system and path of an fsspec file, open or not, or of a path that fsspec serves."""
    if "fsspec.spec" not in sys.modules or not hasattr(source, "fs") or not hasattr(source, "path"):
        return None
    from fsspec.core import OpenFile
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

    if not isinstance(source.fs, AbstractFileSystem) or isinstance(source, Location):
        return None
    if isinstance(source, OpenFile):
        if source.compression is not None:
            raise ValueError("the file is compressed as a whole: open it, or decompress it first")
        return source.fs, source.path
    if isinstance(source, AbstractBufferedFile):
        return (source.fs, source.path) if source.mode == "rb" else None
    return None if hasattr(source, "read") else (source.fs, source.path)  # universal_pathlib


def _within(filesystem: Any, source: Any) -> Any:
    """A path within a file system, which is a path of the local one where that is what it is."""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"with a filesystem the source is a path, not a {type(source).__name__}")
    path = os.fsdecode(source)
    arrow, spec = sys.modules.get("pyarrow.fs"), sys.modules.get("fsspec.spec")
    if arrow is not None and isinstance(filesystem, arrow.FileSystem):
        if isinstance(filesystem, arrow.PyFileSystem) and isinstance(filesystem.handler, arrow.FSSpecHandler):
            return _within(filesystem.handler.fs, path)
        if isinstance(filesystem, arrow.LocalFileSystem):
            return path
        from pqext.core.io.sources.arrow_files import ArrowStore

        store = remembered(filesystem, lambda: ArrowStore(filesystem))
        return _at(store, path.partition("://")[2] if scheme_of(path) else path)
    if spec is not None and isinstance(filesystem, spec.AbstractFileSystem):
        path = filesystem._strip_protocol(path)
        if getattr(filesystem, "local_file", False):
            return path
        from pqext.core.io.sources.fsspec_files import FsspecStore

        return _at(remembered(filesystem, lambda: FsspecStore(filesystem)), path)
    if _is_filesystem(filesystem):
        from pqext.core.io.sources.object_files import ObjectStore

        return _at(remembered(filesystem, lambda: ObjectStore(filesystem)), path.lstrip("/"))
    raise TypeError(
        f"a filesystem is one of pyarrow.fs or fsspec, or a store of obstore, not a {type(filesystem).__name__}"
    )


def _at(store: Store, path: str) -> Location:
    return Location(store, path, store.name(path))
