"""Small files of JSON in a folder that say which of its files count. Whoever writes into the folder writes them."""

from __future__ import annotations

import json
import os
import stat
from typing import Any

from pqext.core.errors import CorruptFileError
from pqext.core.sources.pending import check_note


def read_note(path: str) -> bytes:
    """The bytes of the regular file at ``path``. Opening a pipe or a device would wait, or never end.

    Raises ``CorruptFileError`` for anything else, ``LimitError`` for a large one, and ``OSError`` where nothing can be
    opened.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise CorruptFileError("it is no regular file: remove it", path=path)
        check_note(found.st_size, path)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def parsed(text: bytes | str) -> Any:
    """The document in ``text``. Raises ``ValueError`` for all that Python makes no object of."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


def whole(number: Any) -> int:
    """A whole number of a document. Raises ``ValueError`` for anything else, such as numbers with a fraction."""
    if type(number) is not int:
        raise ValueError("no whole number where one belongs")
    return number
