"""What went wrong with a request, told from the errors of the libraries that make them."""

from __future__ import annotations

import re
from typing import Literal

Fault = Literal["transient", "missing", "denied", "final"]

_STATUS = re.compile(r"(?:status(?: code)?:?|HTTP status|HTTP)[ (:]*([1-5]\d\d)\b", re.IGNORECASE)
_AGAIN = frozenset({408, 425, 429})
_BY_NAME: dict[str, Fault] = {
    "FileNotFoundError": "missing",
    "NotFoundError": "missing",
    "PermissionError": "denied",
    "PermissionDeniedError": "denied",
    "UnauthenticatedError": "denied",
    "NotSupportedError": "final",
    "InvalidPathError": "final",
    "NotImplementedError": "final",
}
_TEXTS: tuple[tuple[str, Fault], ...] = (("ACCESS_DENIED", "denied"), ("Unsatisfiable", "final"))


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
