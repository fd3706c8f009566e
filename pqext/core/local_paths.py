"""Paths of the local file system, told from those of others."""

from __future__ import annotations

import os
import re

ON_WINDOWS = os.name == "nt"
"""Paths may have drives and backslashes, folders cannot be opened, and open files cannot be replaced."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:::[A-Za-z][A-Za-z0-9+.-]*)*://")


def with_home(path: str) -> str:
    """``path`` with the home folder that ``~`` or ``~user`` at its start stands for, unless there is a file so named.

    >>> with_home("a/~b")
    'a/~b'
    """
    if not path.startswith("~") or os.path.lexists(re.split(r"[/\\\\]", path, maxsplit=1)[0]):
        return path
    return os.path.expanduser(path)


def scheme_of(path: str) -> str | None:
    """``s3`` of ``s3://bucket/key``, in small letters, and None for a path of the local file system.

    The name of a local folder may look like a URL, so one that exists is none. Neither is a drive of Windows.
    """
    found = _SCHEME.match(path)
    return found[1].lower() if found and not os.path.exists(os.path.dirname(path)) else None
