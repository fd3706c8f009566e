"""Writing to a store: nothing is visible at the path until the file is whole."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from pqext.core.base.errors import SourceError
from pqext.core.io.sources.secrets import scrubbed

_HELD_BYTES = 1 << 20
"""Small pieces are gathered until they are so many bytes."""


class Upload(Protocol):
    """A file on its way to a store. ``path`` names it in messages."""

    @property
    def path(self) -> str | None: ...

    def write(self, pieces: Sequence[memoryview]) -> None:
        """Append ``pieces``."""

    def commit(self) -> None:
        """Finish: the file is there, and takes the place of one that was."""

    def abort(self) -> None:
        """Give up: the path keeps what it had before. Raises nothing."""


def hidden_beside(path: str) -> str:
    """A path beside ``path`` that readers of the folder pass over, for what is not finished."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}.pqext-{os.urandom(8).hex()}.tmp"


class ErrorsNameFile:
    """Gives errors of a store's library the name of the file, and takes from them what must not be shown."""

    def __init__(self, name: str, hidden: frozenset[str]) -> None:
        self._name = name
        self._hidden = hidden

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, Exception) or isinstance(error, SourceError):
            return
        text = scrubbed(error, self._hidden)
        if isinstance(error, PermissionError):
            raise PermissionError(13, f"the store refuses access ({text})", self._name) from None
        raise SourceError(f"the file could not be written: {text}", path=self._name) from None


class Gathered:
    """Gathers small pieces for an upload, and calls ``written`` after it. One that is forgotten is given up."""

    def __init__(self, upload: Upload, written: Callable[[], None]) -> None:
        self.path = upload.path
        self._written = written
        self._upload = upload
        self._held = bytearray()
        self._leftover = weakref.finalize(self, _give_up, self._upload, os.getpid())

    def write(self, pieces: Sequence[memoryview]) -> None:
        if sum(map(len, pieces)) + len(self._held) < _HELD_BYTES:
            for piece in pieces:
                self._held += piece
            return
        held, self._held = memoryview(self._held), bytearray()
        self._upload.write([held, *pieces] if len(held) else pieces)

    def commit(self) -> None:
        self._upload.write([memoryview(self._held)])
        self._upload.commit()
        self._leftover.detach()
        self._written()

    def abort(self) -> None:
        self._held = bytearray()
        self._leftover()


def _give_up(upload: Upload, process: int) -> None:
    """A forked child leaves its parent's upload alone."""
    if os.getpid() == process:
        with suppress(Exception):
            upload.abort()
