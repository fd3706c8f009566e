"""Files of a store that wait unseen until somebody, perhaps another process, says that they count.

On S3 these are uploads that are not completed (:mod:`pqext.core.io.sources.multipart`). Elsewhere they lie under hidden
keys, and the store copies them (:mod:`pqext.core.io.sources.container`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from pqext.core.base.errors import LimitError
from pqext.core.io.sources.store import Location
from pqext.core.io.sources.upload import ErrorsNameFile

WAITING = "_pqext_waiting"
"""The folder, hidden from readers, in which files wait on stores whose uploads cannot."""
NOTE_BYTES = 256 << 20
"""The largest note of a folder that is read, as jobs of some millions of files leave it."""


def check_note(size: int, path: str) -> None:
    """Raise ``LimitError`` for a note of more than ``NOTE_BYTES``, before it is read or a save is decided by it."""
    if size > NOTE_BYTES:
        told = f"a note of {size:,} bytes says which files count, of which {NOTE_BYTES:,} are read at most"
        raise LimitError(f"{told}: save fewer files at a time, and remove no note without its files", path=path)


@dataclass(frozen=True)
class Pending:
    """A file that waits: the number or the key of its upload, and the etags of its parts where there are some."""

    upload: str
    etags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Begun:
    """A file that waits, or that somebody is at work on: the key where it belongs, its upload, and since when."""

    key: str
    upload: str
    at: datetime


class PendingFile(Protocol):
    """What a writer writes to."""

    def seekable(self) -> bool:
        """Bytes come in order."""

    def write(self, data: Any) -> int:
        """Append ``data``."""

    def finish(self) -> Pending:
        """All is written: from now on the file waits."""

    def give_up(self) -> None:
        """Leave nothing behind. Raises nothing."""


class ErrorsOfKey(ErrorsNameFile):
    """Errors of a store's library get the URL of a key; ``FileNotFoundError`` and ``FileExistsError`` have it."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, FileNotFoundError | FileExistsError):
            super().__exit__(kind, error, trace)


class PendingStore(Protocol):
    """A bucket or container, and a folder in it, the ``prefix``, without slashes at its ends.

    Methods raise ``FileNotFoundError``, ``FileExistsError``, ``PermissionError`` or ``SourceError`` with the URL of
    the key, and nothing secret.
    """

    prefix: str

    def url(self, key: str) -> str:
        """The URL of a key."""

    def place(self, key: str) -> Location:
        """Where readers find a key."""

    def create(self, key: str) -> PendingFile:
        """A file that waits when it is finished."""

    def complete(self, key: str, pending: Pending) -> None:
        """Let a file that waits appear at ``key``, if that is not done already."""

    def abort(self, key: str, upload: str) -> None:
        """Give a file up that waits."""

    def begun(self, prefix: str) -> Iterator[Begun]:
        """The files below ``prefix`` that wait or are being written."""

    def keys(self, prefix: str) -> dict[str, str]:
        """The keys below ``prefix``, and what tells their versions."""

    def get(self, key: str) -> tuple[bytes, str]:
        """The bytes of a small file, and what tells its version."""

    def put(self, key: str, data: bytes) -> str:
        """Store a small file; gives what tells its version."""

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file where there is none, or one that was released. Raises ``FileExistsError`` elsewhere."""

    def release(self, key: str, version: str) -> None:
        """End what was claimed, while it is that version. It may be there afterwards, without a meaning."""

    def delete(self, key: str) -> None:
        """Delete a file, if it is there."""
