"""Files of object stores and web servers, by ``obstore`` (extra ``remote``).

The end of a file comes with its size and etag in one answer, and each later answer shows that the file is the same.
obstore rejects responses whose range differs from the requested one, but not bodies longer or shorter than the range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pqext.core.base.buffers import Bytes, view
from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.cache import CACHE
from pqext.core.io.sources.faults import AnswerError
from pqext.core.io.sources.remote import RemoteSource, Version, persistent
from pqext.core.io.sources.secrets import shown
from pqext.core.io.sources.store import Listed, Store
from pqext.core.io.sources.upload import ErrorsNameFile, Upload

_SCHEMES = {"S3Store": "s3", "GCSStore": "gs", "AzureStore": "abfss", "MemoryStore": "memory", "LocalStore": "file"}
_BUCKETS = {"S3Store": "bucket", "GCSStore": "bucket", "AzureStore": "container_name"}


class ObjectStore(Store):
    """A store of obstore's, or what makes one, anew after each fault so that the next attempt has new connections.

    ``base`` is the URL of what the store holds, without what must not be shown.
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
        self.knows_suffixes = not type(store).__name__.startswith("Azure")

    def arguments(self) -> tuple[Any, ...]:
        return self.store, self.secrets, self._make, self._base

    def name(self, path: str) -> str:
        return self._base + path

    def of_attempt(self, failed: int) -> Any:
        """The store for an attempt after ``failed`` others."""
        if failed and self._make is not None:
            self.store = self._make()
        return self.store

    def open(self, path: str, name: str) -> ObjectFile:
        import obstore

        wanted = self.link.tail

        def end(failed: int) -> tuple[dict[str, Any] | None, int, Bytes | None]:
            options: Any = {"range": {"suffix": wanted}}
            known = CACHE.latest((self.number, path))
            if known is not None and known[0].startswith("etag "):
                options["if_none_match"] = known[0].removeprefix("etag ")
            try:
                result = obstore.get(self.of_attempt(failed), path, options=options)
                start, stop = result.range
                meta: Any = result.meta
                data = view(result.bytes())
                if len(data) != stop - start:
                    raise AnswerError(f"the answer has {len(data)} bytes", again=len(data) < stop - start)
                return meta, start, data
            except obstore.exceptions.NotModifiedError:
                assert known is not None
                return {"e_tag": known[0].removeprefix("etag "), "size": known[1], "last_modified": None}, 0, None
            except obstore.exceptions.NotSupportedError:
                self.knows_suffixes = False
            except obstore.exceptions.GenericError as error:
                if "416" not in str(error):  # an empty file has no last bytes
                    raise
            return None, 0, None

        def size(failed: int) -> Any:
            return obstore.head(self.of_attempt(failed), path)

        meta: Any = None
        tail: Bytes | None = None
        start = 0
        if self.knows_suffixes:
            meta, start, tail = persistent(self, name, f"the last {wanted} bytes", end, opening=True)
        if meta is None:
            meta = persistent(self, name, "the size of the file", size, opening=True)
        file = ObjectFile(self, path, name, meta["size"], version_of(meta))
        file.usage.add_fetch(0 if tail is None else len(tail), 0.0)
        if tail is not None:
            file.take_tail(start, tail)
        return file

    def files(self, path: str) -> list[Listed]:
        import obstore

        def attempt(failed: int) -> list[Listed]:
            return [_listed(meta) for part in obstore.list(self.of_attempt(failed), path or None) for meta in part]

        try:
            found: list[Listed] = persistent(self, self.name(path), "the list of files", attempt, opening=True)
        except FileNotFoundError:
            return []
        return found

    def create(self, path: str, name: str) -> Upload:
        if not self.has_folders:
            raise UnsupportedError(
                "nothing is written to web servers: write to a store or to a local file", feature="writing to https",
                path=name,
            )
        return _Stream(self, path, name)

    def remove(self, path: str) -> None:
        import obstore

        with ErrorsNameFile(self.name(path), self.secrets), suppress(FileNotFoundError):
            obstore.delete(self.of_attempt(0), path)


def _listed(meta: Any) -> Listed:
    modified = round(meta["last_modified"].timestamp() * 1000)
    return Listed(meta["path"], meta["size"], modified, meta.get("e_tag"))


def _base_of(store: Any) -> str:
    kind = type(store).__name__
    if kind == "HTTPStore":
        return shown(str(store.url)).rstrip("/") + "/"
    config = getattr(store, "config", None) or {}
    bucket, prefix = config.get(_BUCKETS.get(kind, "")), getattr(store, "prefix", None)
    parts = [str(part).strip("/") for part in (bucket, prefix) if part]
    return f"{_SCHEMES.get(kind, kind)}://{'/'.join([*parts, ''])}"


def version_of(meta: Any) -> Version | None:
    """The version of an object of which ``meta`` is told."""
    if meta["e_tag"]:
        return Version(f"etag {meta['e_tag']}")
    modified = meta["last_modified"]
    return None if modified is None else Version.at(modified.timestamp(), modified.isoformat())


class ObjectFile(RemoteSource):
    """An object. Each answer tells which version it is of."""

    _store: ObjectStore
    answers_tell = True

    def take_tail(self, start: int, data: Bytes) -> None:
        """The bytes from ``start`` on came when the file was opened."""
        data.flags.writeable = False
        self._kept.add(start, data)

    def _request(self, offset: int, length: int, failed: int) -> Any:
        import obstore

        store = self._store.of_attempt(failed)
        result = obstore.get(store, self._path, options={"range": (offset, offset + length)})
        meta = result.meta
        version = version_of(meta)
        if meta["size"] != self.size or str(version) != str(self.version):
            raise self.changed(f"{version} with {meta['size']} bytes")
        return result.bytes()


class _Stream:
    """An upload in parts, which exists when it is completed and not before."""

    def __init__(self, store: ObjectStore, path: str, name: str) -> None:
        import obstore

        self.path = name
        self._store = store
        with ErrorsNameFile(name, store.secrets):
            self._stream: Any = obstore.open_writer(store.store, path)

    def write(self, pieces: Sequence[memoryview]) -> None:
        with ErrorsNameFile(self.path, self._store.secrets):
            for piece in pieces:
                self._stream.write(piece)

    def commit(self) -> None:
        with ErrorsNameFile(self.path, self._store.secrets):
            self._stream.close()

    def abort(self) -> None:
        with suppress(Exception):
            self._stream = None  # without its end the upload is of nothing
