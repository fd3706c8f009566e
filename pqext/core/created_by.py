"""How pqext names itself in the files that it writes."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def created_by() -> str:
    """The application and its version, in the form that the format prescribes."""
    try:
        return f"pqext version {version('pqext')}"
    except PackageNotFoundError:
        return "pqext"
