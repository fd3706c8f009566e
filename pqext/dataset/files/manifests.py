"""Read small JSON files that state which files of their folder belong to the dataset."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from typing import Any, BinaryIO

from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.io.sources.pending_files import check_manifest_size

LINE_BYTES = 1 << 20
"""Maximum length of a line."""


def read_manifest(path: str) -> bytes:
    """Return the content of the regular file at ``path``.

    Raises ``CorruptFileError`` if it is not a regular file, ``LimitError`` if it is too large, and ``OSError`` if it
    cannot be opened.
    """
    with _open_regular(path) as file:
        check_manifest_size(os.fstat(file.fileno()).st_size, path)
        return file.read()


def iter_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of the regular file at ``path`` without loading it into memory, since a manifest can be large.

    Raises the errors of :func:`read_manifest`, and ``LimitError`` if a line is too long.
    """
    with _open_regular(path) as file:
        while line := file.readline(LINE_BYTES):
            if len(line) == LINE_BYTES:
                raise LimitError(f"a line of the manifest has {LINE_BYTES:,} bytes or more", path=path)
            yield line


def _open_regular(path: str) -> BinaryIO:
    """Open the regular file at ``path``.

    Raises ``CorruptFileError`` for a pipe or a device, because reading it could block or never end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptFileError("not a regular file; remove it", path=path)
    return os.fdopen(descriptor, "rb")


def parse_json(text: bytes | str) -> Any:
    """Parse JSON text. Raises ``ValueError`` if it is invalid or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def parse_integer(number: Any) -> int:
    """Return ``number``, a value in a JSON document. Raises ``ValueError`` if it is not an integer."""
    if type(number) is not int:
        raise ValueError(f"expected an integer, not {type(number).__name__}")
    return number
