"""Names and messages without what they must not show: user names, passwords, keys and signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

_USER = re.compile(r"(?<=://)(?:[^/\s'\"]*|[^/@:\s'\"]*:(?!\d*(?:[/?#\s'\"]|$))[^\s'\"]*)@")
"""User and password. A password that was not escaped may hold slashes, so what follows a colon is one unless it is a
port."""
_PORT = re.compile(r"(?:[^:]*|\[[^]]*\])(?::\d*)?")
_LINK = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""Between the URLs of a chain of fsspec."""
_SIGNED = re.compile(r"(?<=[A-Za-z0-9_./%~=-])\?[^\s'\"<>)]*")
_LONGEST = 300
_SHORTEST = 4
"""Shorter option values, ``true`` and ``eu`` for example, are not searched for in messages."""
_OPEN = frozenset({"true", "false", "none", "http", "https"})


def shown(uri: str) -> str:
    """``uri`` as messages show it: without user, password, query and fragment.

    >>> shown("https://me:word@host/a/b.parquet?signature=1#x")
    'https://host/a/b.parquet'
    """
    return "::".join(map(_link, _LINK.split(uri)))


def _link(uri: str) -> str:
    """One URL of a chain."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return uri
    head = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" not in head and not _PORT.fullmatch(head):  # a password with a slash, ? or # that was not escaped
        rest = rest.rpartition("@")[2] if "@" in rest else "***"
    if scheme.lower().rpartition("::")[2] in ("http", "https"):
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    else:
        rest = rest.split("?", 1)[0] if "=" in rest.partition("?")[2] else rest
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    if scheme.lower().startswith(("abfs", "wasb")):  # where the part before @ begins with the name of the container
        container = user.partition(":")[0]
        host = f"{container}@{host}" if container else host
    return f"{scheme}://{host}{slash}{path}"


def scrubbed(error: object, secrets: Iterable[str] = ()) -> str:
    """The first line of what ``error`` says, without user names, queries of URLs and ``secrets``."""
    text = str(error) or type(error).__name__
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _SIGNED.sub("", _USER.sub("", re.split(r"\n|: <\?xml|: <!", text.strip(), maxsplit=1)[0]))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def secrets_of(options: Any) -> frozenset[str]:
    """The texts among the values of ``options``, nested ones too, which no message may hold.

    Of URLs, users and passwords are texts of their own.
    """
    if isinstance(options, Mapping):
        return frozenset().union(*map(secrets_of, options.values()))
    if isinstance(options, list | tuple):
        return frozenset().union(*map(secrets_of, options))
    if isinstance(options, bytes):
        options = options.decode("utf-8", "replace")
    if not isinstance(options, str):
        return frozenset()
    # What precedes @ in a URL that may be malformed.
    user = options.rpartition("@")[0].rpartition("://")[2]
    texts = {options, user, *user.split(":", 1)}
    texts |= {unquote(text) for text in texts}
    return frozenset(text for text in texts if len(text) >= _SHORTEST and text.lower() not in _OPEN)
