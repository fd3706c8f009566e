"""Warnings in the name of the line outside the library that led to them, however deep they arise."""

from __future__ import annotations

import sys
import warnings

from pqext.core.base.text import visible

_LIBRARY = __name__.partition(".")[0]
_BETWEEN = (_LIBRARY, "functools", "contextlib")
"""Whose frames are no user's: the library's, and those of cached properties and contexts within it."""


def warn(message: str, category: type[Warning]) -> None:
    """As ``warnings.warn``, at the first caller that is not of this library; in its own threads that is Python's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(visible(message), category, stacklevel=level)


def warn_of_file(path: str | None, message: str, category: type[Warning]) -> None:
    """As :func:`warn`, of the file at ``path``, where it has one."""
    warn(f"{path}: {message}" if path else message, category)
