"""What went wrong with a request, told from the errors of the libraries that make them."""

from __future__ import annotations

import re
from typing import Literal

Fault = Literal["transient", "missing", "taken", "denied", "final"]
"""``taken``: another file, or another version of it, is there than the request allows."""

_STATUS = re.compile(r"(?:status(?: code)?:?|HTTP status|HTTP)[ (:]*([1-5]\d\d)\b", re.IGNORECASE)
_AGAIN = frozenset({408, 425, 429})
_BY_NAME: dict[str, Fault] = {
    "FileNotFoundError": "missing",
    "NotFoundError": "missing",
    "FileExistsError": "taken",
    "AlreadyExistsError": "taken",
    "PreconditionError": "taken",
    "PermissionError": "denied",
    "PermissionDeniedError": "denied",
    "UnauthenticatedError": "denied",
    "NotSupportedError": "final",
    "InvalidPathError": "final",
    "NotImplementedError": "final",
}
_CAUSES = (
    (re.compile(r'\bOs \{\s*code: \d+,\s*kind: \w+,\s*message: "([^"\\]{1,100})"'), ""),
    (re.compile(r'"failed to lookup address information: ([^"\\]{1,100})"'), "the name of the host is not found: "),
    (re.compile(r"\bInvalidCertificate\(\s*(\w{1,50})"), "the server's certificate is not valid: "),
    (re.compile(r"\bInvalidMessage\(\s*(\w{1,50})"), "the answer is not TLS: "),
)
"""Causes within what obstore tells for debugging, which holds nothing of the request."""
_TEXTS: tuple[tuple[str, Fault], ...] = (
    ("ACCESS_DENIED", "denied"), ("Unsatisfiable", "final"), ("Empty path component", "final"),
    ("empty path segment", "final"),
)


class AnswerError(OSError):
    """A server answered a request otherwise than it was asked; ``again`` where it may do better."""

    def __init__(self, message: str, *, again: bool) -> None:
        super().__init__(message)
        self.again = again


def fault_of(error: Exception) -> Fault:
    """Whether a request may succeed if it is made again, and if not, why."""
    if isinstance(error, AnswerError):
        return "transient" if error.again else "final"
    for kind in type(error).__mro__:
        if kind.__name__ in _BY_NAME:
            return _BY_NAME[kind.__name__]
    text = str(error)
    status = getattr(error, "status", None)
    found = _STATUS.search(text)
    code = status if isinstance(status, int) else int(found[1]) if found else 0
    if code in (401, 403):
        return "denied"
    if code in (404, 410):
        return "missing"
    if 300 <= code < 500 and code not in _AGAIN:
        return "final"
    return next((known for part, known in _TEXTS if part in text), "transient")


def cause_of(error: Exception) -> str:
    """``: why`` a server could not be reached, where the first line of an error does not say so; else nothing."""
    first, _, rest = str(error).partition("\n")
    for pattern, meaning in _CAUSES:
        found = pattern.search(rest)
        if found is not None:
            return "" if found[1] in first else f": {meaning}{found[1]}"
    return ": it timed out" if re.search(r"\bTimedOut\b", rest) and "timed out" not in first else ""
