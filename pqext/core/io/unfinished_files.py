"""Files that writers which died have left next to those that they were to be."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from zlib import crc32

from pqext.core.base.local_paths import with_home


def prefix_of(path: str) -> str:
    """How the names of unfinished files begin that are to be ``path``."""
    return f".pqext-{crc32(os.fsencode(os.path.basename(path))):08x}"


def unfinished(path: str) -> list[str]:
    """What writers that died have left next to ``path``, which it was to be; the last changed first."""
    real = os.path.realpath(with_home(path))
    with suppress(OSError):
        found = [entry for entry in os.scandir(os.path.dirname(real)) if entry.name.startswith(prefix_of(real))]
        found = [entry for entry in found if entry.name.endswith(".tmp") and entry.is_file()]
        return [entry.path for entry in sorted(found, key=lambda entry: entry.stat().st_mtime, reverse=True)]
    return []


def with_unfinished(error: FileNotFoundError, source: Any) -> FileNotFoundError:
    """The error, or one that names what a writer that died has left of the file ``source``."""
    left = unfinished(os.fsdecode(source)) if isinstance(source, (str, os.PathLike)) else []
    if not left:
        return error
    told = f"{error.strerror}, but a writer that died has left {left[0]}: recover that"
    return FileNotFoundError(error.errno, told, error.filename)
