"""Opening whatever holds a file, without loading what only remote files need where it is local."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pqext.core.local_paths import scheme_of
from pqext.core.source import ArrowSource, MemorySource, PathSource, Source, StreamSource
from pqext.core.sources.locate import locate


def open_source(source: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Source:
    """A :class:`Source` over whatever holds a file: see :func:`pqext.core.sources.locate.locate` for what may.

    A ``Source`` is returned as it is. Raises ``OSError`` when a file cannot be opened, ``UnsupportedError`` for an
    address that nothing installed opens, and ``TypeError`` for what holds no file.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, bytes | bytearray) and filesystem is None and not storage_options:
        return MemorySource(source)
    is_path = isinstance(source, str | os.PathLike)
    if is_path and filesystem is None and storage_options is None and scheme_of(path := os.fsdecode(source)) is None:
        return PathSource(path)
    from pqext.core.sources.store import Location

    found = locate(source, filesystem, storage_options)
    if isinstance(found, Location):
        return found.open()
    if isinstance(found, str):
        return PathSource(found)
    if isinstance(found, pa.NativeFile):
        return ArrowSource(found)
    if hasattr(found, "read") and hasattr(found, "seek"):
        return StreamSource(found)
    try:
        return MemorySource(found)
    except TypeError:
        raise TypeError(
            f"cannot read from {type(found).__name__}: give a path, a URL, bytes, a seekable binary file object "
            "or a pyarrow.NativeFile"
        ) from None
