"""Write pending files to a Google Cloud Storage bucket or an Azure container.

PendingUpload files are stored under hidden keys until the store copies them to their final keys. A copy within a bucket
transfers no data through this machine. Small files are claimed with conditional writes, which need ``obstore`` (extra
``remote``) because pyarrow does not support them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, TypeVar

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.local_paths import split_uri
from pqext.core.io.sources.pending_files import (
    PENDING_FOLDER,
    KeyErrorContext,
    PendingUpload,
    UnfinishedFile,
    check_manifest_size,
)
from pqext.core.io.sources.store import Location, Store, get_store
from pqext.core.io.sources.store_errors import classify_error, collect_secrets, redact_error, redact_uri
from pqext.core.io.sources.uris import obstore_arguments

_PART_BYTES = 16 << 20
T = TypeVar("T")


class Container:
    """A ``gs://`` bucket or ``abfss://`` container that implements
    :class:`pqext.core.io.sources.pending_files.PendingStore`.
    """

    def __init__(self, uri: str, scheme: str, storage_options: Mapping[str, Any] | None) -> None:
        if find_spec("obstore") is None:
            raise UnsupportedError(
                f"writing a folder on {scheme}:// from several tasks requires obstore: pip install 'pqext[remote]'",
                feature=f"commits on {scheme}://", path=redact_uri(uri),
            )
        parts = split_uri(redact_uri(uri))
        self.prefix = parts.path.strip("/")
        self._base = f"{parts.scheme}://{parts.netloc}/"
        self._secrets = collect_secrets(storage_options or {})
        self._store = _store(uri, scheme, storage_options or {}, self._secrets)

    def url(self, key: str) -> str:
        """Return the URL of a key."""
        return f"{self._base}{key}"

    def location(self, key: str) -> Location:
        """Return the location for readers of ``key``."""
        from pqext.core.io.sources.object_files import ObjectStore

        def make() -> Store:
            return ObjectStore(self._store, self._secrets, None, self._base)

        return Location(get_store(self._store, make), key, self.url(key))

    def create(self, key: str) -> CopiedFile:
        """Create a file that becomes pending when it is finished."""
        return CopiedFile(self, key)

    def pending_key(self, key: str) -> str:
        """Return a new hidden key for a pending file whose final key is ``key``."""
        inside = f"{self.prefix}/" if self.prefix else ""
        return f"{inside}{PENDING_FOLDER}/{uuid.uuid4().hex}/{key.removeprefix(inside)}"

    def complete(self, key: str, pending: PendingUpload) -> None:
        """Copy a pending file to ``key``, unless it was copied before."""
        import obstore

        try:
            self.call(key, lambda: obstore.copy(self._store, pending.upload, key))
        except FileNotFoundError:
            self.call(key, lambda: obstore.head(self._store, key))
        self.delete(pending.upload)

    def abort(self, key: str, upload: str) -> None:
        """Delete a pending file."""
        self.delete(upload)

    def iter_pending_files(self, prefix: str) -> Iterator[UnfinishedFile]:
        """Yield the pending files whose final keys begin with ``prefix``."""
        inside = f"{self.prefix}/" if self.prefix else ""
        folder = f"{inside}{PENDING_FOLDER}/"
        for meta in self._list(folder):
            key = inside + meta["path"].removeprefix(folder).partition("/")[2]
            if key.startswith(prefix):
                yield UnfinishedFile(key, meta["path"], meta["last_modified"])

    def keys(self, prefix: str) -> dict[str, str]:
        """Return the keys that begin with ``prefix``, with their etags."""
        return {meta["path"]: str(meta["e_tag"]) for meta in self._list(prefix)}

    def get(self, key: str) -> tuple[bytes, str]:
        """Return the bytes and the version of a small file. A released file counts as missing."""
        data, version = self._get(key)
        if not data:
            raise FileNotFoundError(2, "file not found", self.url(key))
        return data, version

    def put(self, key: str, data: bytes) -> str:
        """Store a small file and return its version."""
        return self._put(key, data, "overwrite")

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file and return its version. Raises ``FileExistsError`` unless the file is missing or empty."""
        try:
            return self._put(key, data, "create")
        except FileExistsError:
            existing, version = self._get(key)
            if existing:
                raise
            return self._put(key, data, json.loads(version))

    def replace(self, key: str, data: bytes, version: str | None) -> str:
        """Replace a small file if its version is still ``version`` (None: missing or empty). Return the new version.

        Raises ``FileExistsError`` or ``FileNotFoundError`` otherwise.
        """
        return self.claim(key, data) if version is None else self._put(key, data, json.loads(version))

    def release(self, key: str, version: str) -> None:
        """Replace a claimed file with an empty file if its version is still ``version``.

        obstore supports conditional overwriting on these stores, but not conditional deletion.
        """
        with suppress(FileExistsError, FileNotFoundError):
            self._put(key, b"", json.loads(version))

    def delete(self, key: str) -> None:
        """Delete a file, if it exists."""
        import obstore

        with suppress(FileNotFoundError):
            self.call(key, lambda: obstore.delete(self._store, key))

    def open(self, key: str) -> Any:
        """Open an output stream for ``key``. The file becomes visible when the stream is closed."""
        import obstore

        return self.call(key, lambda: obstore.open_writer(self._store, key, buffer_size=_PART_BYTES))

    def call(self, key: str, action: Callable[[], T]) -> T:
        """Call ``action``, which accesses ``key``, and return its result. Errors contain the URL of the key, but no
        secrets.
        """
        with KeyErrorContext(self.url(key), self._secrets):
            try:
                return action()
            except Exception as error:
                match classify_error(error):
                    case "missing":
                        raise FileNotFoundError(2, "file not found", self.url(key)) from None
                    case "conflict":
                        message = "the file already exists, or another process has changed it"
                        raise FileExistsError(17, message, self.url(key)) from None
                    case "denied":
                        raise PermissionError(13, "denied") from None
                raise

    def _list(self, prefix: str) -> list[Any]:
        import obstore

        folder, _, start = prefix.rpartition("/")  # obstore's prefixes are folders
        metas = self.call(prefix, lambda: [meta for page in obstore.list(self._store, folder or None) for meta in page])
        return [meta for meta in metas if meta["path"].startswith(prefix)] if start or prefix else metas

    def _get(self, key: str) -> tuple[bytes, str]:
        import obstore

        result = self.call(key, lambda: obstore.get(self._store, key))
        check_manifest_size(result.meta["size"], self.url(key))
        return self.call(key, lambda: bytes(result.bytes())), _version(result.meta)

    def _put(self, key: str, data: bytes, mode: Any) -> str:
        import obstore

        return _version(
            self.call(key, lambda: obstore.put(self._store, key, data, mode=mode, use_multipart=False))
        )


class CopiedFile:
    """Writer output that is stored under a hidden key until it is copied to its final key."""

    def __init__(self, container: Container, key: str) -> None:
        self._container = container
        self._key = key
        self._pending_key = container.pending_key(key)
        self._stream: Any = None

    def seekable(self) -> bool:
        """Return False, since bytes are written in order."""
        return False

    def write(self, data: Any) -> int:
        """Append ``data``."""
        if self._stream is None:
            self._stream = self._container.open(self._pending_key)
        self._container.call(self._key, lambda: self._stream.write(data))
        return len(data)

    def finish(self) -> PendingUpload:
        """Store the remaining bytes, and return the pending file."""
        self.write(b"")
        self._container.call(self._key, lambda: self._stream.close())
        return PendingUpload(self._pending_key)

    def abort(self) -> None:
        """Delete the file. Never raises."""
        self._stream = None  # a writer that is not closed uploads nothing
        with suppress(Exception):
            self._container.delete(self._pending_key)


def _version(meta: Mapping[str, Any]) -> str:
    return json.dumps({name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None})


def _store(uri: str, scheme: str, options: Mapping[str, Any], secrets: frozenset[str]) -> Any:
    from obstore.store import AzureStore, GCSStore

    arguments, name = obstore_arguments(uri, scheme, options)
    store_type: Any = GCSStore if scheme in ("gs", "gcs") else AzureStore
    try:
        return store_type(name, **arguments)
    except Exception as error:
        raise ValueError(f"{redact_uri(uri)} cannot be opened: {redact_error(error, secrets)}") from None
