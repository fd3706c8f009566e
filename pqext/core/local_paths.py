"""Paths of the local file system, told from those of others."""

from __future__ import annotations

import os
import re

from pqext.core.errors import UnsupportedError
from pqext.core.suggest import around

ON_WINDOWS = os.name == "nt"
"""Paths may have drives and backslashes, folders cannot be opened, and open files cannot be replaced."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HINTS = {
    "read": "pyarrow.fs.FileSystem.open_input_file and fsspec.open give one, or download it first",
    "written": "pyarrow.fs.FileSystem.open_output_stream and fsspec.open give one, or write it here and upload it",
}


def check_local(path: str, purpose: str) -> None:
    """Raise UnsupportedError for a URL, ``s3://...`` for example, that is to be ``"read"`` or ``"written"``.

    The name of a local folder may look like one, so a file or folder that exists is no URL.
    """
    if _SCHEME.match(path) and not os.path.exists(os.path.dirname(path)):
        raise UnsupportedError(
            f"{around(path)!r} is not a local file, and no other is {purpose}: give an open binary file instead; "
            f"{_HINTS[purpose]}",
            feature="remote files",
        )
