"""The files that a data source's paths name, on the file system of the machine that asks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from urllib.parse import unquote, urlsplit

from pqext.core.errors import UnsupportedError
from pqext.dataset.sources import find_sources


def option_paths(options: Mapping[str, str]) -> list[str]:
    """The local paths given to ``load`` or ``save``: option ``path`` or, as a JSON list, ``paths``.

    Raises ``ValueError`` when there are none and ``UnsupportedError`` for a scheme other than ``file:``.
    """
    if "paths" in options:
        return [local_path(path) for path in json.loads(options["paths"])]
    if "path" not in options:
        raise ValueError("no path: give one to load() or save()")
    return [local_path(options["path"])]


def local_path(path: str) -> str:
    """``path`` without its ``file:`` scheme; raises ``UnsupportedError`` for another one."""
    scheme, separator, rest = path.partition(":")
    if separator and scheme.lower() == "file":
        return unquote(urlsplit(path).path)
    if separator and rest.startswith("//") and "/" not in scheme:
        raise UnsupportedError(
            f"{path} is not on a local file system: mount it, or copy the files", feature=f"{scheme} paths"
        )
    return path


def list_files(paths: Iterable[str]) -> list[str]:
    """All files that ``paths`` name: files, folders with all below them, and patterns; hidden ones left out."""
    return [str(found) for found in find_sources(list(paths))]


def slice_bytes(total: int, upper: int) -> int:
    """Bytes for one task: few enough that every processor has work, at least 1 MiB and at most ``upper``."""
    return max(1 << 20, min(upper, total // (2 * (os.cpu_count() or 1))))
