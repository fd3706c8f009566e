"""Files of fsspec's file systems: whatever has a protocol there, from ``memory://`` to ``sftp://``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from math import floor, isfinite
from typing import Any

from pqext.core.base.errors import UnsupportedError
from pqext.core.io.sources.remote import RemoteSource, Version, persistent
from pqext.core.io.sources.secrets import shown
from pqext.core.io.sources.store import Listed, Store
from pqext.core.io.sources.upload import ErrorsNameFile, Upload, hidden_beside

_ETAGS = ("ETag", "etag", "e_tag", "md5", "content_md5", "generation", "sha")
_TIMES = ("LastModified", "last_modified", "mtime", "updated", "modified", "timeModified", "created")


class FsspecStore(Store):
    """An fsspec file system. Those that are not asynchronous are asked by one thread at a time."""

    def __init__(self, filesystem: Any, secrets: frozenset[str] = frozenset()) -> None:
        super().__init__(secrets)
        self.filesystem = filesystem
        self.turn: Any = nullcontext() if getattr(filesystem, "async_impl", False) else threading.RLock()

    def arguments(self) -> tuple[Any, ...]:
        return self.filesystem, self.secrets

    def name(self, path: str) -> str:
        if "://" in path:
            return shown(path)
        protocol = self.filesystem.protocol
        return shown(f"{protocol if isinstance(protocol, str) else protocol[0]}://{path.lstrip('/')}")

    def open(self, path: str, name: str) -> FsspecFile:
        info = persistent(self, name, "the size of the file", lambda _: self.info(path), opening=True)
        if info.get("type") == "directory":
            raise IsADirectoryError(21, "it is a folder", name)
        if info.get("size") is None:
            raise UnsupportedError("the size of the file is not told", feature="files of unknown size", path=name)
        file = FsspecFile(self, path, name, int(info["size"]), version_of(info))
        file.usage.add_fetch(0, 0.0)
        return file

    def info(self, path: str) -> dict[str, Any]:
        """What the file system says of a file now."""
        with self.turn:
            self.filesystem.invalidate_cache(self.filesystem._parent(path))  # listings are kept, and may be old
            found: dict[str, Any] = self.filesystem.info(path)
            return found

    def files(self, path: str) -> list[Listed]:
        def attempt(_: int) -> list[Listed]:
            with self.turn:
                self.filesystem.invalidate_cache(path)
                return [_listed(str(name), info) for name, info in self.filesystem.find(path, detail=True).items()]

        found: list[Listed] = persistent(self, self.name(path), "the list of files", attempt, opening=True)
        return found

    def create(self, path: str, name: str) -> Upload:
        return _Stream(self, path, name)

    def remove(self, path: str) -> None:
        with self.turn, ErrorsNameFile(self.name(path), self.secrets), suppress(FileNotFoundError):
            self.filesystem.rm_file(path)


def _listed(name: str, info: dict[str, Any]) -> Listed:
    etag, told = _first(info, _ETAGS), _first(info, _TIMES)
    if isinstance(told, datetime):
        told = told.timestamp()
    is_number = isinstance(told, int | float) and not isinstance(told, bool) and isfinite(told)
    modified = floor(told * 1000 + 0.01) if is_number else None  # what is a whole number may be a double just below it
    size = info.get("size")
    return Listed(name, size if isinstance(size, int) else None, modified, None if etag is None else str(etag))


def version_of(info: dict[str, Any]) -> Version | None:
    """The version of a file of which ``info`` is told."""
    etag, told = _first(info, _ETAGS), _first(info, _TIMES)
    if etag is not None:
        return Version(f"etag {etag}")
    if told is None:
        return None
    if isinstance(told, datetime):
        return Version.at(told.timestamp(), told.isoformat())
    if isinstance(told, int | float):
        return Version.at(told, str(told))
    return Version(f"modified {told}", is_certain=False)


def _first(info: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((info[key] for key in keys if info.get(key)), None)


class FsspecFile(RemoteSource):
    """A file of an fsspec file system. What it is now is asked along with each read of its ranges."""

    _store: FsspecStore

    def _request(self, offset: int, length: int, failed: int) -> Any:
        with self._store.turn:
            return self._store.filesystem.cat_file(self._path, start=offset, end=offset + length)

    def _look(self) -> None:
        self.usage.add_fetch(0, 0.0)
        info = persistent(
            self._store, self.path or "", "the version of the file", lambda _: self._store.info(self._path)
        )
        version, size = version_of(info), info.get("size")
        if size != self.size or str(version) != str(self.version):
            raise self.changed(f"{version} with {size} bytes")


class _Stream:
    """A file opened to be committed where the file system knows that, else one of another name until it is whole."""

    def __init__(self, store: FsspecStore, path: str, name: str) -> None:
        self.path = name
        self._store = store
        self._final = path
        self._temporary: str | None = None
        with ErrorsNameFile(name, store.secrets), store.turn:
            self._open()

    def _open(self) -> None:
        from fsspec.spec import AbstractBufferedFile

        kind = type(self._store.filesystem)
        opened: Callable[..., Any] = self._store.filesystem.open
        if kind.__name__ in _COMMITS:
            file = opened(self._final, "wb", autocommit=False)
            if isinstance(file, AbstractBufferedFile) and file.autocommit is False:
                self._file = file
                return
            with suppress(Exception):
                file.close()
        self._temporary = hidden_beside(self._final)
        self._file = opened(self._temporary, "wb")

    def write(self, pieces: Sequence[memoryview]) -> None:
        with ErrorsNameFile(self.path, self._store.secrets), self._store.turn:
            for piece in pieces:
                self._file.write(piece)

    def commit(self) -> None:
        with ErrorsNameFile(self.path, self._store.secrets), self._store.turn:
            self._file.close()
            if self._temporary is None:
                self._file.commit()
            else:
                self._store.filesystem.mv(self._temporary, self._final)

    def abort(self) -> None:
        with suppress(Exception), self._store.turn:
            if self._temporary is None:
                self._file.discard()
                self._file.closed = True
            else:
                with suppress(Exception):
                    self._file.close()
                self._store.filesystem.rm_file(self._temporary)


_COMMITS = frozenset({"S3FileSystem", "GCSFileSystem"})
"""The file systems whose files appear when they are committed, not before, and never when they are discarded."""
