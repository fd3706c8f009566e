"""Writer names in files: the name of pqext, and old writers whose files need workarounds."""

from __future__ import annotations

import re
from functools import cache

UNCOUNTED_BYTES = 100
"""Maximum size of a dictionary page header in files whose chunk sizes may exclude it."""

_PARQUET_MR = re.compile(r"parquet-mr(?![\w-])(?:\s+version\s+(\d{1,9})\.(\d{1,9})\.(\d{1,9}))?", re.IGNORECASE)


def counts_dictionary_header(writer: str | None) -> bool:
    """Return whether ``total_compressed_size`` includes the dictionary page header, which parquet-mr before 1.2.9
    omits.
    """
    match = None if writer is None else _PARQUET_MR.match(writer.strip())
    return match is None or tuple(int(part or 0) for part in match.groups()) >= (1, 2, 9)


def has_valid_byte_array_bounds(writer: str | None) -> bool:
    """Return whether bounds of byte arrays in files of ``writer`` can be trusted.

    Unknown writers are not trusted. Neither is parquet-mr before 1.8 (PARQUET-251), whose DELTA_BYTE_ARRAY is also
    faulty.
    """
    match = None if writer is None else _PARQUET_MR.match(writer.strip())
    return writer is not None and (match is None or tuple(int(part or 0) for part in match.groups()) >= (1, 8, 0))


@cache
def created_by() -> str:
    """Return the value of ``created_by`` in files of pqext: name and version, in the syntax of the format.

    A name without a version violates this syntax. parquet-java then distrusts the file's bounds, and Spark's row reader
    rejects DELTA_BYTE_ARRAY in several row groups.
    """
    from importlib.metadata import PackageNotFoundError, version  # slow to import, and not needed by readers

    try:
        return f"pqext version {version('pqext')}"
    except PackageNotFoundError:
        return "pqext version unknown"
