"""Where recovery reads and where it writes: never the same file, however the two are named."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pqext.core.source import Source
from pqext.core.sources.locate import are_same, locate


def refuse_same(
    source: Any, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Raise ``ValueError`` where ``dest`` is the damaged file: by another name, a URL, a link or an open file."""
    read = source.path if isinstance(source, Source) else locate(source, filesystem, storage_options)
    written = dest if hasattr(dest, "write") else locate(dest)
    files = _file(read), _file(written)
    is_one_file = None not in files and files[0] == files[1]
    if written is source or is_one_file or are_same(read, written):
        raise ValueError("dest is the damaged file itself, which is never touched: name another")


def _file(place: Any) -> tuple[int, int] | None:
    """Device and number of the local file that a path or an open file leads to; None for others."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = os.stat(place) if isinstance(place, str | os.PathLike) else os.fstat(place.fileno())
        return found.st_dev, found.st_ino
    return None
