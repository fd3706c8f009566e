"""Interfaces of pending files: files of a store that stay invisible until a job commits them.

Another process may commit them. On S3 they are incomplete uploads (:mod:`pqext.core.io.sources.multipart`). Other
stores have them under hidden keys and copy them (:mod:`pqext.core.io.sources.container`).
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
"""Maximum size of a folder's manifest that is read. Jobs with some millions of files write manifests of this size."""


def check_manifest_size(size: int, path: str) -> None:
    """Raise ``LimitError`` if a manifest is too large, before it is read or written."""
    if size > MAX_MANIFEST_BYTES:
        raise LimitError(
            f"the folder's manifest has {size:,} bytes, above the limit of {MAX_MANIFEST_BYTES:,}; save fewer files at "
            "a time, and never delete a manifest without its files",
            path=path,
        )


@dataclass(frozen=True)
class PendingUpload:
    """File that is stored but not yet visible: the id or key of the upload, and the etags of uploaded parts, if any."""

    upload: str
    etags: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnfinishedFile:
    """File that is pending or being written: its final key, its upload, and its start time."""

    key: str
    upload: str
    at: datetime


class PendingFile(Protocol):
    """Writer output in a store. The file becomes pending when it is finished."""

    def seekable(self) -> bool:
        """Return False, since bytes are written in order."""

    def write(self, data: Any) -> int:
        """Append ``data``."""

    def finish(self) -> PendingUpload:
        """Finish writing, and return the pending file."""

    def abort(self) -> None:
        """Discard the file. Never raises."""


class KeyErrorContext(StoreErrorContext):
    """Context that adds the URL of a key to errors of a store's library, unless the errors contain the URL."""

    def __exit__(self, type: Any, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, FileNotFoundError | FileExistsError):
            super().__exit__(type, error, trace)


class PendingStore(Protocol):
    """Folder ``prefix`` of a bucket or container. ``prefix`` has no leading or trailing slash.

    Methods raise ``FileNotFoundError``, ``FileExistsError``, ``PermissionError`` or ``SourceError``. Errors contain the
    URL of the key, but no secrets.
    """

    prefix: str

    def url(self, key: str) -> str:
        """Return the URL of a key."""

    def location(self, key: str) -> Location:
        """Return the location for readers of ``key``."""

    def create(self, key: str) -> PendingFile:
        """Create a file that becomes pending when it is finished."""

    def complete(self, key: str, pending: PendingUpload) -> None:
        """Publish a pending file at ``key``, unless it was published before."""

    def abort(self, key: str, upload: str) -> None:
        """Discard a pending file."""

    def iter_pending_files(self, prefix: str) -> Iterator[UnfinishedFile]:
        """Yield the files with keys that begin with ``prefix`` and are pending or being written."""

    def keys(self, prefix: str) -> dict[str, str]:
        """Return the keys that begin with ``prefix``, with their versions."""

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the bytes and the version of a small file."""

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file and return its version.

        Raises ``FileExistsError`` unless the file is missing or released.
        """

    def replace(self, key: str, data: bytes, version: str | None) -> str:
        """Replace a small file if its version is still ``version`` (None: missing). Return the new version.

        Raises ``FileExistsError`` or ``FileNotFoundError`` otherwise.
        """

    def release(self, key: str, version: str) -> None:
        """Release a claimed file if its version is still ``version``. An empty file may remain."""

    def delete(self, key: str) -> None:
        """Delete a file if it exists."""
