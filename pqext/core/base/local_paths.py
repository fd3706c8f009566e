"""Paths of the local file system, told from those of others."""

from __future__ import annotations

import os
import re
from urllib.parse import SplitResult

ON_WINDOWS = os.name == "nt"
"""Paths may have drives and backslashes, folders cannot be opened, and open files cannot be replaced."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:::[A-Za-z][A-Za-z0-9+.-]*)*://")


_URI = re.compile(
    r"(?P<scheme>[^:]+)://(?P<netloc>[^/?]*)(?P<path>.*?)"
    r"(?:\?(?P<query>[A-Za-z_][\w-]*=[^&]*(?:&[A-Za-z_][\w-]*=[^&]*)*))?",
    re.DOTALL,
)


def split_uri(uri: str) -> SplitResult:
    """The parts of a URL of a file system or store, of which ``?`` and ``#`` may be in the path.

    A query is only what names options, ``?name=value&...`` at the end of the URL; there is no fragment.

    >>> split_uri("s3://bucket/q?1#2.parquet?region=eu").path
    '/q?1#2.parquet'
    """
    found = _URI.fullmatch(uri)
    if found is None:
        return SplitResult("", "", uri, "", "")
    return SplitResult(found["scheme"].lower(), found["netloc"], found["path"], found["query"] or "", "")


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
