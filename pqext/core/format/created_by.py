"""How writers name themselves in their files: pqext, and old ones whose files need care."""

from __future__ import annotations

import re
from functools import cache

UNCOUNTED_BYTES = 100
"""What the header of a dictionary page takes at most, in files whose chunks may not count it."""

_PARQUET_MR = re.compile(r"parquet-mr(?![\w-])(?:\s+version\s+(\d{1,9})\.(\d{1,9})\.(\d{1,9}))?", re.IGNORECASE)


def counts_dictionary_header(writer: str | None) -> bool:
    """Does ``total_compressed_size`` count the header of a dictionary page? Not so in parquet-mr before 1.2.9."""
    found = None if writer is None else _PARQUET_MR.match(writer.strip())
    return found is None or tuple(int(part or 0) for part in found.groups()) >= (1, 2, 9)


def bounds_bytes_rightly(writer: str | None) -> bool:
    """Do readers believe bounds of byte arrays of this writer?

    Not those of an unknown one, nor of parquet-mr before 1.8 (PARQUET-251), whose DELTA_BYTE_ARRAY has a fault too.
    """
    found = None if writer is None else _PARQUET_MR.match(writer.strip())
    return writer is not None and (found is None or tuple(int(part or 0) for part in found.groups()) >= (1, 8, 0))


@cache
def created_by() -> str:
    """The application and its version, in the form that the format prescribes.

    A name without a version is no such form: parquet-java then distrusts the file, and Spark's row reader refuses
    DELTA_BYTE_ARRAY in several row groups.
    """
    from importlib.metadata import PackageNotFoundError, version  # which imports much that readers do not need

    try:
        return f"pqext version {version('pqext')}"
    except PackageNotFoundError:
        return "pqext version unknown"
