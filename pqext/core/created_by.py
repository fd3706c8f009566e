"""How pqext names itself in the files that it writes."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def created_by() -> str:
    """The application and its version, in the form that the format prescribes.

    A name without a version is no such form: parquet-java then distrusts the file, and Spark's row reader refuses
    DELTA_BYTE_ARRAY in several row groups.
    """
    try:
        return f"pqext version {version('pqext')}"
    except PackageNotFoundError:
        return "pqext version unknown"
