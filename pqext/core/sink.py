"""Where a file is written: a local path, which appears only when the file is whole, or a binary file object."""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import weakref
from collections.abc import Sequence
from typing import IO, Any

from pqext.core.buffers import Bytes
from pqext.core.local_paths import check_local

_PIECES = 512
"""Pieces given to one call: systems take at least that many, and most of them 1,024."""


class Sink:
    """Bytes appended in order. ``commit`` makes them the file at ``path``; ``abort`` leaves nothing behind.

    A file that is there already keeps its permissions, a link to it stays one. Raises ``OSError`` where a path cannot
    be written, and ``ValueError`` for one of a device or pipe, which is ``UnsupportedError`` for a
    remote one.
    """

    def __init__(self, dest: Any) -> None:
        self.offset = 0
        """Bytes written so far."""
        self._path: str | None = None
        self._temporary: str | None = None
        self._stream: IO[bytes]
        if hasattr(dest, "write"):
            self._stream = dest
            if hasattr(dest, "seekable") and dest.seekable() and dest.tell():
                raise ValueError("the file object is not at its start: a Parquet file cannot be appended to another")
            return
        given = os.fsdecode(dest)
        check_local(given, "written")
        if os.path.isdir(given):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), given)
        if os.path.exists(given) and not os.path.isfile(given):
            raise ValueError(f"{given} is not a regular file, so none can take its place: open it and give the object")
        # The file that a link leads to is replaced, not the link.
        self._path = os.path.realpath(given)
        folder, name = os.path.split(self._path)
        # Next to the destination, so that the rename is atomic; hidden, so that readers pass over it.
        temporary = os.path.join(folder, f".{name}.{secrets.token_hex(8)}.tmp")
        try:
            self._stream = io.BufferedWriter(io.FileIO(temporary, "x"))
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, error.strerror, given) from None
        if os.path.exists(self._path):
            shutil.copymode(self._path, temporary)
        self._temporary = temporary
        self._leftover = weakref.finalize(self, _remove, self._stream, temporary)

    @property
    def path(self) -> str | None:
        """The destination, when it is a path."""
        return self._path

    def write(self, data: Any) -> None:
        """Append ``data``."""
        left = memoryview(data).cast("B")
        self.offset += len(left)
        # A raw file may take less than it is given; one that does not say how much has taken all.
        while (taken := self._stream.write(left)) is not None and taken < len(left):
            left = left[taken:]

    def write_all(self, pieces: Sequence[bytes | Bytes]) -> None:
        """Append all ``pieces``, many of them with one call to the system where the file is ours."""
        if self._temporary is None or not hasattr(os, "writev"):
            for piece in pieces:
                self.write(piece)
            return
        self._stream.flush()
        for start in range(0, len(pieces), _PIECES):
            part: Sequence[Any] = pieces[start : start + _PIECES]
            size = sum(map(len, part))
            self.offset += size
            written = os.writev(self._stream.fileno(), part)
            # A disk that is full, or a signal, ends a call early.
            if written < size:
                self._stream.write(b"".join(part)[written:])

    def commit(self) -> None:
        """Finish: the file is whole."""
        if self._path is None or self._temporary is None:
            self._stream.flush()
            return
        self._stream.close()
        os.replace(self._temporary, self._path)
        self._leftover.detach()

    def abort(self) -> None:
        """Give up: a path keeps whatever it had before."""
        if self._temporary is not None:
            self._leftover()


def _remove(stream: IO[bytes], temporary: str) -> None:
    """Leave nothing of a file that was not finished, whether it was given up or forgotten."""
    stream.close()
    if os.path.exists(temporary):
        os.unlink(temporary)
