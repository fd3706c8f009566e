"""Opening whatever holds a file, without loading what only remote files need where it is local."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pqext.core.base.local_paths import scheme_of, with_home
from pqext.core.io.source import ArrowSource, MemorySource, PathSource, Source, StreamSource
from pqext.core.io.sources.locations import locate


def open_source(source: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None) -> Source:
    """A :class:`Source` over whatever holds a file: see :func:`pqext.core.io.sources.locations.locate` for what may.

    A ``Source`` is returned as it is. Raises ``OSError`` when a file cannot be opened, ``UnsupportedError`` for an
    address that nothing installed opens, and ``TypeError`` for what holds no file.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, bytes | bytearray) and filesystem is None and not storage_options:
        return MemorySource(source)
    is_path = isinstance(source, str | os.PathLike)
    if is_path and filesystem is None and storage_options is None and scheme_of(path := os.fsdecode(source)) is None:
        return PathSource(with_home(path))
    from pqext.core.io.sources.store import Location

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
        if any(hasattr(found, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow")):
            raise TypeError(
                f"a {type(found).__name__} holds its rows already, so there is nothing to read: "
                "pqext.write_table(table, path) makes a file of it"
            ) from None
        raise TypeError(
            f"cannot read from {type(found).__name__}: give a path, a URL, bytes, a seekable binary file object "
            "or a pyarrow.NativeFile"
        ) from None
