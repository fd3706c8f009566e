"""Where recovery reads and where it writes: never the same file, however the two are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pqext.core.io.source import Source
from pqext.core.io.sources.locations import locate, may_be_same


def refuse_same(
    source: Any, dest: Any, filesystem: Any = None, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Raise ``ValueError`` where ``dest`` is the damaged file: by another name, a URL, a link or an open file."""
    read = source.path if isinstance(source, Source) else locate(source, filesystem, storage_options)
    written = dest if hasattr(dest, "write") else locate(dest)
    if written is source or may_be_same(read, written):
        raise ValueError("dest is the damaged file itself, which is never touched: name another")
