"""Local file paths: distinguish them from URLs, check them, and expand them."""

from __future__ import annotations

import errno
import os
import re
from urllib.parse import SplitResult

ON_WINDOWS = os.name == "nt"
"""Whether paths may have drives and backslashes, folders cannot be opened, and open files cannot be replaced."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)(?:::[A-Za-z][A-Za-z0-9+.-]*)*://")


_TABLE_PREFIXES = ("delta:", "iceberg:")
_URI = re.compile(
    r"(?P<scheme>[^:]+)://(?P<netloc>[^/?]*)(?P<path>.*?)"
    r"(?:\?(?P<query>[A-Za-z_][\w-]*=[^&]*(?:&[A-Za-z_][\w-]*=[^&]*)*))?",
    re.DOTALL,
)


def split_uri(uri: str) -> SplitResult:
    """Split the URL of a file system or object store. ``?`` and ``#`` may occur in its path.

    Only ``?name=value&...`` at the end of the URL is a query. The result has no fragment. Text without a scheme is a
    path.

    >>> split_uri("s3://bucket/q?1#2.parquet?region=eu").path
    '/q?1#2.parquet'
    """
    match = _URI.fullmatch(uri)
    if match is None:
        return SplitResult("", "", uri, "", "")
    return SplitResult(match["scheme"].lower(), match["netloc"], match["path"], match["query"] or "", "")


def check_path(path: str) -> None:
    """Raise ``ValueError`` if ``path`` contains a null character or lone surrogates, or is the name of a table."""
    if path.startswith(_TABLE_PREFIXES) and not os.path.lexists(path):
        raise ValueError(
            f"{path.partition(':')[0]}:... is the name of a table, not of a file: read it with pqext.scan, "
            "or write to it with pqext.tables.append"
        )
    if "\0" in path:
        raise ValueError(f"{path[:300]!r} is not a valid path: it contains a null character")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(f"{path[:300]!r} is not a valid path: it contains lone surrogates") from None


def check_target(path: object, name: str = "path") -> None:
    """Raise ``ValueError`` if the path of a file or folder to write is empty, because "" means the working folder."""
    if isinstance(path, str | bytes | os.PathLike) and not os.fspath(path):
        raise ValueError(f"{name} is empty; pass a path or a URL")


def explain_broken_link(error: OSError, path: str) -> OSError:
    """Return ``error`` with a remedy if ``path`` is a broken symbolic link; otherwise ``error`` itself."""
    if error.errno not in (errno.ENOENT, errno.ELOOP) or not os.path.islink(path):
        return error
    reason = f"it is a symbolic link to {os.readlink(path)!r}; remove the link, or replace it with a file or folder"
    return OSError(error.errno, f"{os.strerror(error.errno)}: {reason}", path)


def expand_home(path: str) -> str:
    """Expand ``~`` or ``~user`` at the start of ``path`` to the home folder.

    The path is unchanged if the working folder contains a file or folder of that name. Raises ``ValueError`` if
    :func:`check_path` does.

    >>> expand_home("a/~b")
    'a/~b'
    """
    check_path(path)
    if not path.startswith("~") or os.path.lexists(re.split(r"[/\\\\]", path, maxsplit=1)[0]):
        return path
    return os.path.expanduser(path)


def scheme_of(path: str) -> str | None:
    """Return the lower-case scheme of a URL, such as ``s3`` for ``s3://bucket/key``; None for a local path.

    Text that looks like a URL is a local path if its folder exists. A Windows drive is not a scheme.
    """
    match = _SCHEME.match(path)
    return match[1].lower() if match and not os.path.exists(os.path.dirname(path)) else None
