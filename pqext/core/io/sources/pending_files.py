"""Files of a store that stay invisible until a job, perhaps in another process, commits them.

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
from pqext.core.io.sources.store_errors import StoreErrorContext

PENDING_FOLDER = "_pqext_waiting"
"""Hidden folder for pending files on stores without pending uploads."""
MAX_MANIFEST_BYTES = 256 << 20
"""Maximum size of a folder's manifest that is read; jobs of some millions of files write manifests of this size."""


def check_manifest_size(size: int, path: str) -> None:
    """Raise ``LimitError`` for a manifest that is too large, before it is read or decides about a save."""
    if size > MAX_MANIFEST_BYTES:
        raise LimitError(
            f"the folder's manifest has {size:,} bytes, above the limit of {MAX_MANIFEST_BYTES:,}: save fewer files at "
            "a time, and never delete a manifest without its files",
            path=path,
        )


@dataclass(frozen=True)
class Pending:
    """A pending file: the id or key of its upload, and the etags of its parts if it has parts."""

    upload: str
    etags: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnfinishedFile:
    """A file that is pending or being written: its final key, its upload, and its start time."""

    key: str
    upload: str
    at: datetime


class PendingFile(Protocol):
    """Output of a writer."""

    def seekable(self) -> bool:
        """Return False: bytes are written in order."""

    def write(self, data: Any) -> int:
        """Append ``data``."""

    def finish(self) -> Pending:
        """Finish writing; the file is pending from now on."""

    def abort(self) -> None:
        """Discard the file. Never raises."""


class KeyErrorContext(StoreErrorContext):
    """Add the URL of a key to errors of a store's library; ``FileNotFoundError`` and ``FileExistsError`` have it."""

    def __exit__(self, type: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, FileNotFoundError | FileExistsError):
            super().__exit__(type, error, trace)


class PendingStore(Protocol):
    """A bucket or container, and the folder ``prefix`` in it, without slashes at its ends.

    Methods raise ``FileNotFoundError``, ``FileExistsError``, ``PermissionError`` or ``SourceError`` with the URL of
    the key, and no secrets.
    """

    prefix: str

    def url(self, key: str) -> str:
        """Return the URL of a key."""

    def location(self, key: str) -> Location:
        """Return the location of a key for readers."""

    def create(self, key: str) -> PendingFile:
        """Create a file that is pending once it is finished."""

    def complete(self, key: str, pending: Pending) -> None:
        """Publish a pending file at ``key``, unless that is already done."""

    def abort(self, key: str, upload: str) -> None:
        """Discard a pending file."""

    def iter_pending_files(self, prefix: str) -> Iterator[UnfinishedFile]:
        """Yield the files below ``prefix`` that are pending or being written."""

    def keys(self, prefix: str) -> dict[str, str]:
        """Return the keys below ``prefix`` with their versions."""

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the bytes and the version of a small file."""

    def put(self, key: str, data: bytes) -> str:
        """Store a small file; return its version."""

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file, which must be missing or released. Raises ``FileExistsError`` otherwise."""

    def release(self, key: str, version: str) -> None:
        """Give up a claimed file, if it still has that version. An empty file may remain."""

    def delete(self, key: str) -> None:
        """Delete a file, if it exists."""
