"""Standard input as a file that can be read at any offset, as Parquet needs it."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache

STREAM = "-"
"""Path that denotes standard input or output."""


def without_path(text: str) -> str:
    """``text`` with "standard input" in place of the path of the file that holds it."""
    return text.replace(stored(), "standard input") if stored.cache_info().currsize else text


def shown_path(path: str | None) -> str | None:
    """The ``path`` of a report, which is "standard input" if its file holds that."""
    return None if path is None else without_path(path)


@cache
def stored() -> str:
    """The path of a file with all of standard input, which is removed when the process ends."""
    import atexit
    import tempfile

    folder = tempfile.mkdtemp(prefix="pqext-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "standard-input")
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
