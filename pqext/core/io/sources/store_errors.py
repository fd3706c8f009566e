"""Classify errors of stores for retries, and remove user names, passwords, keys and signatures from messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import unquote

from pqext.core.base.errors import SourceError

ErrorCategory = Literal["transient", "missing", "conflict", "denied", "final"]
"""Category of an error.

``conflict`` means that the file exists, or exists in a different version from the requested one.
"""

_STATUS = re.compile(r"(?:status(?: code)?:?|HTTP status|HTTP)[ (:]*([1-5]\d\d)\b", re.IGNORECASE)
_TRANSIENT_STATUS = frozenset({408, 425, 429})
_BY_NAME: dict[str, ErrorCategory] = {
    "FileNotFoundError": "missing",
    "NotFoundError": "missing",
    "FileExistsError": "conflict",
    "AlreadyExistsError": "conflict",
    "PreconditionError": "conflict",
    "PermissionError": "denied",
    "PermissionDeniedError": "denied",
    "UnauthenticatedError": "denied",
    "NotSupportedError": "final",
    "InvalidPathError": "final",
    "NotImplementedError": "final",
}
_CAUSES = (
    (re.compile(r'\bOs \{\s*code: \d+,\s*kind: \w+,\s*message: "([^"\\]{1,100})"'), ""),
    (re.compile(r'"failed to lookup address information: ([^"\\]{1,100})"'), "the host name cannot be resolved: "),
    (re.compile(r"\bInvalidCertificate\(\s*(\w{1,50})"), "the server's certificate is not valid: "),
    (re.compile(r"\bInvalidMessage\(\s*(\w{1,50})"), "the response is not TLS: "),
)
"""Patterns of causes in obstore's debug output, whose matches contain nothing about the request."""
_TEXTS: tuple[tuple[str, ErrorCategory], ...] = (
    ("ACCESS_DENIED", "denied"), ("Unsatisfiable", "final"), ("Empty path component", "final"),
    ("empty path segment", "final"),
)

_USER = re.compile(r"(?<=://)(?:[^/\s'\"]*|[^/@:\s'\"]*:(?!\d*(?:[/?#\s'\"]|$))[^\s'\"]*)@")
"""User and password. An unescaped password may contain slashes, so the text after a colon counts as a password unless
it is a port.
"""
_PORT = re.compile(r"(?:[^:]*|\[[^]]*\])(?::\d*)?")
_CHAIN = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.-]*://)")
"""Separator of the URLs of an fsspec chain."""
_SIGNED = re.compile(r"(?<=[A-Za-z0-9_./%~=-])\?[^\s'\"<>)]*")
_MAX_TEXT = 300
_MIN_SECRET = 4
"""Minimum length of option values that are redacted in messages, so that values like ``eu`` are not redacted."""
_PUBLIC = frozenset({"true", "false", "none", "http", "https"})


class ResponseError(OSError):
    """Error for a response that does not match the request. ``is_retryable`` is true if a further attempt may succeed.
    """

    def __init__(self, message: str, *, is_retryable: bool) -> None:
        super().__init__(message)
        self.is_retryable = is_retryable


def classify_error(error: Exception) -> ErrorCategory:
    """Return the category of an error: ``transient`` if a repeated request may succeed, otherwise the reason."""
    if isinstance(error, ResponseError):
        return "transient" if error.is_retryable else "final"
    for base in type(error).__mro__:
        if base.__name__ in _BY_NAME:
            return _BY_NAME[base.__name__]
    text = str(error)
    status = getattr(error, "status", None)
    match = _STATUS.search(text)
    code = status if isinstance(status, int) else int(match[1]) if match else 0
    if code in (401, 403):
        return "denied"
    if code in (404, 410):
        return "missing"
    if 300 <= code < 500 and code not in _TRANSIENT_STATUS:
        return "final"
    return next((category for part, category in _TEXTS if part in text), "transient")


def describe_cause(error: Exception) -> str:
    """Return the cause of a failed connection, as ``: cause``, if the first line of the error does not contain it;
    otherwise an empty string.
    """
    first, _, rest = str(error).partition("\n")
    for pattern, prefix in _CAUSES:
        match = pattern.search(rest)
        if match is not None:
            return "" if match[1] in first else f": {prefix}{match[1]}"
    return ": it timed out" if re.search(r"\bTimedOut\b", rest) and "timed out" not in first else ""


def redact_uri(uri: str) -> str:
    """Return ``uri`` without user, password, query and fragment, for messages.

    >>> redact_uri("https://me:word@host/a/b.parquet?signature=1#x")
    'https://host/a/b.parquet'
    """
    return "::".join(map(_redact_link, _CHAIN.split(uri)))


def _redact_link(uri: str) -> str:
    """Redact one URL of a chain such as ``zip::s3://bucket/key``."""
    scheme, mark, rest = uri.partition("://")
    if not mark:
        return uri
    head = re.split("[/?#]", rest, maxsplit=1)[0]
    if "@" not in head and not _PORT.fullmatch(head):  # an unescaped password with a slash, ? or #
        rest = rest.rpartition("@")[2] if "@" in rest else "***"
    if scheme.lower().rpartition("::")[2] in ("http", "https"):
        rest = re.split(r"[?#]", rest, maxsplit=1)[0]
    else:
        rest = rest.split("?", 1)[0] if "=" in rest.partition("?")[2] else rest
    authority, slash, path = rest.partition("/")
    user, _, host = authority.rpartition("@")
    if scheme.lower().startswith(("abfs", "wasb")):  # the part before @ begins with the name of the container
        container = user.partition(":")[0]
        host = f"{container}@{host}" if container else host
    return f"{scheme}://{host}{slash}{path}"


def redact_error(error: object, secrets: Iterable[str] = ()) -> str:
    """Return the first line of an error's message without users, passwords, URL queries and ``secrets``."""
    text = str(error) or type(error).__name__
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _SIGNED.sub("", _USER.sub("", re.split(r"\n|: <\?xml|: <!", text.strip(), maxsplit=1)[0]))
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "..."


def collect_secrets(options: Any) -> frozenset[str]:
    """Return the strings in ``options`` (including nested values) that messages must not contain.

    Users and passwords in URLs are also returned as separate strings.
    """
    if isinstance(options, Mapping):
        return frozenset().union(*map(collect_secrets, options.values()))
    if isinstance(options, list | tuple):
        return frozenset().union(*map(collect_secrets, options))
    if isinstance(options, bytes):
        options = options.decode("utf-8", "replace")
    if not isinstance(options, str):
        return frozenset()
    # The part before @ in a URL that may be malformed.
    user = options.rpartition("@")[0].rpartition("://")[2]
    texts = {options, user, *user.split(":", 1)}
    texts |= {unquote(text) for text in texts}
    return frozenset(text for text in texts if len(text) >= _MIN_SECRET and text.lower() not in _PUBLIC)


class StoreErrorContext:
    """Context that converts errors of a store's library to ``SourceError`` or ``PermissionError``, with the redacted
    file name.
    """

    def __init__(self, name: str, secrets: frozenset[str]) -> None:
        self._name = name
        self._secrets = secrets

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, Exception) or isinstance(error, SourceError):
            return
        text = redact_error(error, self._secrets)
        if isinstance(error, PermissionError):
            raise PermissionError(13, f"the store denies access ({text})", self._name) from None
        raise SourceError(f"the file could not be written: {text}", path=self._name) from None
