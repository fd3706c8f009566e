"""Access files in object stores and on web servers with ``obstore`` (extra ``remote``).

The first response contains the end of a file, its size and its etag. Each later response contains the file's version.
obstore rejects responses with a different range than requested, but not bodies that are longer or shorter than the
range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.cache import CACHE
from pqext.core.io.sources.remote import RemoteSource, Version, call_with_retries
from pqext.core.io.sources.store import ListedFile, Store, Upload
from pqext.core.io.sources.store_errors import ResponseError, StoreErrorContext, redact_uri

_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "abfss", "MemoryStore": "memory", "LocalStore": "file"}
_BUCKETS = {"S3Store": "bucket", "GCSStore": "bucket", "AzureStore": "container_name"}


class ObjectStore(Store):
    """Store that uses obstore.

    ``make`` creates the obstore object again after a failed attempt, to get new connections.

    ``base`` is the redacted URL of the store's root.
    """

    def __init__(
        self, store: Any, secrets: frozenset[str] = frozenset(), make: Callable[[], Any] | None = None,
        base: str | None = None,
    ) -> None:
        super().__init__(secrets)
        self.store = store
        self._make = make
        self._base = _base_of(store) if base is None else base
        self.has_folders = type(store).__name__ != "HTTPStore"
        self.has_suffix_ranges = not type(store).__name__.startswith("Azure")

    def arguments(self) -> tuple[Any, ...]:
        return self.store, self.secrets, self._make, self._base

    def name(self, path: str) -> str:
        return self._base + path

    def store_for_attempt(self, failed_attempts: int) -> Any:
        """Return the store for the next attempt. After ``failed_attempts`` it has a new connection."""
        if failed_attempts and self._make is not None:
            self.store = self._make()
        return self.store

    def open(self, path: str, name: str) -> ObjectFile:
        import obstore

        tail_bytes = self.link.tail

        def fetch_tail(failed_attempts: int) -> tuple[dict[str, Any] | None, int, Bytes | None]:
            options: Any = {"range": {"suffix": tail_bytes}}
            cached = CACHE.latest_version((self.number, path))
            if cached is not None and cached[0].startswith("etag "):
                options["if_none_match"] = cached[0].removeprefix("etag ")
            try:
                result = obstore.get(self.store_for_attempt(failed_attempts), path, options=options)
                start, stop = result.range
                meta: Any = result.meta
                data = view(result.bytes())
                if len(data) != stop - start:
                    message = f"the response has {len(data)} bytes instead of {stop - start}"
                    raise ResponseError(message, is_retryable=len(data) < stop - start)
                return meta, start, data
            except obstore.exceptions.NotModifiedError:
                assert cached is not None
                return {"e_tag": cached[0].removeprefix("etag "), "size": cached[1], "last_modified": None}, 0, None
            except obstore.exceptions.NotSupportedError:
                self.has_suffix_ranges = False
            except obstore.exceptions.GenericError as error:
                if "416" not in str(error):  # an empty file has no suffix
                    raise
            return None, 0, None

        def fetch_size(failed_attempts: int) -> Any:
            return obstore.head(self.store_for_attempt(failed_attempts), path)

        meta: Any = None
        tail: Bytes | None = None
        start = 0
        if self.has_suffix_ranges:
            meta, start, tail = call_with_retries(
                self, name, f"the last {tail_bytes} bytes", fetch_tail, is_opening=True
            )
        if meta is None:
            meta = call_with_retries(self, name, "the size of the file", fetch_size, is_opening=True)
        file = ObjectFile(self, path, name, meta["size"], version_of(meta))
        file.usage.add_fetch(0 if tail is None else len(tail), 0.0)
        if tail is not None:
            file.add_tail(start, tail)
        return file

    def files(self, path: str) -> list[ListedFile]:
        import obstore

        def attempt(failed_attempts: int) -> list[ListedFile]:
            return [
                _to_listed_file(meta) for page in obstore.list(
                    self.store_for_attempt(failed_attempts), path or None
                ) for meta in page
            ]

        try:
            files: list[ListedFile] = call_with_retries(
                self, self.name(path), "the list of files", attempt, is_opening=True
            )
        except FileNotFoundError:
            return []
        return files

    def create(self, path: str, name: str) -> Upload:
        if not self.has_folders:
            raise UnsupportedError(
                "web servers are read-only: write to a store or to a local file", feature="writing to https",
                path=name,
            )
        return _Stream(self, path, name)

    def remove(self, path: str) -> None:
        import obstore

        with StoreErrorContext(self.name(path), self.secrets), suppress(FileNotFoundError):
            obstore.delete(self.store_for_attempt(0), path)


def _to_listed_file(meta: Any) -> ListedFile:
    modified = round(meta["last_modified"].timestamp() * 1000)
    return ListedFile(meta["path"], meta["size"], modified, meta.get("e_tag"))


def _base_of(store: Any) -> str:
    type_name = type(store).__name__
    if type_name == "HTTPStore":
        return redact_uri(str(store.url)).rstrip("/") + "/"
    config = getattr(store, "config", None) or {}
    bucket, prefix = config.get(_BUCKETS.get(type_name, "")), getattr(store, "prefix", None)
    parts = [str(part).strip("/") for part in (bucket, prefix) if part]
    return f"{_SCHEMES.get(type_name, type_name)}://{'/'.join([*parts, ''])}"


def version_of(meta: Any) -> Version | None:
    """Return the version of an object from its metadata; None if the metadata has no etag and no modification time."""
    if meta["e_tag"]:
        return Version(f"etag {meta['e_tag']}")
    modified = meta["last_modified"]
    return None if modified is None else Version.from_timestamp(modified.timestamp(), modified.isoformat())


class ObjectFile(RemoteSource):
    """File in an object store. Each response contains the version of the object."""

    _store: ObjectStore
    has_response_versions = True

    def add_tail(self, start: int, data: Bytes) -> None:
        """Cache ``data``, the bytes from offset ``start`` that were fetched when the file was opened."""
        data.flags.writeable = False
        self._cached.add(start, data)

    def _request(self, offset: int, length: int, failed_attempts: int) -> Any:
        import obstore

        store = self._store.store_for_attempt(failed_attempts)
        result = obstore.get(store, self._path, options={"range": (offset, offset + length)})
        meta = result.meta
        version = version_of(meta)
        if meta["size"] != self.size or str(version) != str(self.version):
            raise self.changed_error(f"{version} with {meta['size']} bytes")
        return result.bytes()


class _Stream:
    """Multipart upload, which becomes visible when it is completed."""

    def __init__(self, store: ObjectStore, path: str, name: str) -> None:
        import obstore

        self.path = name
        self._store = store
        with StoreErrorContext(name, store.secrets):
            self._stream: Any = obstore.open_writer(store.store, path)

    def write(self, buffers: Sequence[memoryview]) -> None:
        with StoreErrorContext(self.path, self._store.secrets):
            for buffer in buffers:
                self._stream.write(buffer)

    def commit(self) -> None:
        with StoreErrorContext(self.path, self._store.secrets):
            self._stream.close()

    def abort(self) -> None:
        with suppress(Exception):
            self._stream = None  # a writer that is not closed uploads nothing
