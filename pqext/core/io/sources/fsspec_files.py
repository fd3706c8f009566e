"""Access files through fsspec: every protocol that fsspec supports, from ``memory://`` to ``sftp://``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from math import floor, isfinite
from typing import Any

from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.remote import RemoteSource, Version, call_with_retries
from pqext.core.io.sources.store import ListedFile, Store, Upload, temporary_path
from pqext.core.io.sources.store_errors import StoreErrorContext, redact_uri

_ETAGS = ("ETag", "etag", "e_tag", "md5", "content_md5", "generation", "sha")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "timeModified", "created")


class FsspecStore(Store):
    """Store that uses an fsspec file system.

    File systems that are not asynchronous are used by one thread at a time.
    """

    def __init__(self, filesystem: Any, secrets: frozenset[str] = frozenset()) -> None:
        super().__init__(secrets)
        self.filesystem = filesystem
        self.lock: Any = nullcontext() if getattr(filesystem, "async_impl", False) else threading.RLock()

    def arguments(self) -> tuple[Any, ...]:
        return self.filesystem, self.secrets

    def name(self, path: str) -> str:
        if "://" in path:
            return redact_uri(path)
        protocol = self.filesystem.protocol
        return redact_uri(f"{protocol if isinstance(protocol, str) else protocol[0]}://{path.lstrip('/')}")

    def open(self, path: str, name: str) -> FsspecFile:
        info = call_with_retries(self, name, "the size of the file", lambda _: self.info(path), is_opening=True)
        if info.get("type") == "directory":
            raise IsADirectoryError(21, "the path is a folder, not a file", name)
        if info.get("size") is None:
            message = "the file system does not report the size of the file: copy the file to a local path"
            raise UnsupportedError(message, feature="files of unknown size", path=name)
        file = FsspecFile(self, path, name, int(info["size"]), version_of(info))
        file.usage.add_fetch(0, 0.0)
        return file

    def info(self, path: str) -> dict[str, Any]:
        """Return the current metadata of a file."""
        with self.lock:
            self.filesystem.invalidate_cache(self.filesystem._parent(path))  # cached listings may be stale
            info: dict[str, Any] = self.filesystem.info(path)
            return info

    def files(self, path: str) -> list[ListedFile]:
        def attempt(_: int) -> list[ListedFile]:
            with self.lock:
                self.filesystem.invalidate_cache(path)
                return [
                    _to_listed_file(str(name), info) for name, info in self.filesystem.find(path, detail=True).items()
                ]

        files: list[ListedFile] = call_with_retries(
            self, self.name(path), "the list of files", attempt, is_opening=True
        )
        return files

    def create(self, path: str, name: str) -> Upload:
        return _Stream(self, path, name)

    def remove(self, path: str) -> None:
        with self.lock, StoreErrorContext(self.name(path), self.secrets), suppress(FileNotFoundError):
            self.filesystem.rm_file(path)


def _to_listed_file(name: str, info: dict[str, Any]) -> ListedFile:
    etag, time = _first_value(info, _ETAGS), _first_value(info, _TIMES)
    if isinstance(time, datetime):
        time = time.timestamp()
    is_number = isinstance(time, int | float) and not isinstance(time, bool) and isfinite(time)
    modified = floor(time * 1000 + 0.01) if is_number else None  # an integer may be stored as a slightly smaller double
    size = info.get("size")
    return ListedFile(name, size if isinstance(size, int) else None, modified, None if etag is None else str(etag))


def version_of(info: dict[str, Any]) -> Version | None:
    """Return the version of a file from its metadata: the etag or, if missing, the modification time; None without
    either.
    """
    etag, time = _first_value(info, _ETAGS), _first_value(info, _TIMES)
    if etag is not None:
        return Version(f"etag {etag}")
    if time is None:
        return None
    if isinstance(time, datetime):
        return Version.from_timestamp(time.timestamp(), time.isoformat())
    if isinstance(time, int | float):
        return Version.from_timestamp(time, str(time))
    return Version(f"modified {time}", is_certain=False)


def _first_value(info: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((info[key] for key in keys if info.get(key)), None)


class FsspecFile(RemoteSource):
    """File of an fsspec file system. Each read checks the version of the file."""

    _store: FsspecStore

    def _request(self, offset: int, length: int, failed_attempts: int) -> Any:
        with self._store.lock:
            return self._store.filesystem.cat_file(self._path, start=offset, end=offset + length)

    def _check_version(self) -> None:
        self.usage.add_fetch(0, 0.0)
        info = call_with_retries(
            self._store, self.path or "", "the version of the file", lambda _: self._store.info(self._path)
        )
        version, size = version_of(info), info.get("size")
        if size != self.size or str(version) != str(self.version):
            raise self.changed_error(f"{version} with {size} bytes")


class _Stream:
    """Output file. If the file system supports commits, the file is invisible until it is committed.

    Otherwise it has a temporary name until it is complete.
    """

    def __init__(self, store: FsspecStore, path: str, name: str) -> None:
        self.path = name
        self._store = store
        self._final = path
        self._temporary: str | None = None
        with StoreErrorContext(name, store.secrets), store.lock:
            self._open()

    def _open(self) -> None:
        from fsspec.spec import AbstractBufferedFile

        opened: Callable[..., Any] = self._store.filesystem.open
        if type(self._store.filesystem).__name__ in _COMMITS:
            file = opened(self._final, "wb", autocommit=False)
            if isinstance(file, AbstractBufferedFile) and file.autocommit is False:
                self._file = file
                return
            with suppress(Exception):
                file.close()
        self._temporary = temporary_path(self._final)
        self._file = opened(self._temporary, "wb")

    def write(self, buffers: Sequence[memoryview]) -> None:
        with StoreErrorContext(self.path, self._store.secrets), self._store.lock:
            for buffer in buffers:
                self._file.write(buffer)

    def commit(self) -> None:
        with StoreErrorContext(self.path, self._store.secrets), self._store.lock:
            self._file.close()
            if self._temporary is None:
                self._file.commit()
            else:
                self._store.filesystem.mv(self._temporary, self._final)

    def abort(self) -> None:
        with suppress(Exception), self._store.lock:
            if self._temporary is None:
                self._file.discard()
                self._file.closed = True
            else:
                with suppress(Exception):
                    self._file.close()
                self._store.filesystem.rm_file(self._temporary)


_COMMITS = frozenset({"S3FileSystem", "GCSFileSystem"})
"""File systems whose files become visible when they are committed, and are removed if they are discarded."""
