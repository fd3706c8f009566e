"""Access files through ``pyarrow.fs``: S3, Google Cloud Storage, Azure, HDFS and user-defined file systems."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import fs

from pqext.core.base.errors import warn
from pqext.core.io.sources.remote import RemoteSource, Version, call_with_retries
from pqext.core.io.sources.store import ListedFile, Store, Upload, temporary_path
from pqext.core.io.sources.store_errors import StoreErrorContext

_SCHEMES = {"gcs": "gs", "abfs": "abfss"}
_KEY_STORES = frozenset({"s3", "gcs", "abfs"})
"""File systems whose keys may be any text, including text that pyarrow rejects as a path."""
_ATOMIC = frozenset({"s3", "gcs"})
"""File systems on which a file becomes visible when its stream is closed.

On other file systems, a file is visible while it is written.
"""


class ArrowStore(Store):
    """Store that uses a ``pyarrow.fs.FileSystem``."""

    def __init__(self, filesystem: fs.FileSystem, secrets: frozenset[str] = frozenset()) -> None:
        super().__init__(secrets)
        self.filesystem = filesystem

    def arguments(self) -> tuple[Any, ...]:
        return self.filesystem, self.secrets

    def name(self, path: str) -> str:
        type = self.filesystem.type_name
        return f"{_SCHEMES.get(type, type)}://{path}"

    def open(self, path: str, name: str) -> ArrowFile:
        def attempt(_: int) -> pa.NativeFile:
            try:
                return self.filesystem.open_input_file(path)
            except FileNotFoundError:
                raise
            except OSError as error:
                if "regular file" in str(error) or "directory" in str(error):
                    raise IsADirectoryError(21, "the path is a folder, not a file", name) from None
                raise

        file = call_with_retries(self, name, "the file", attempt, is_opening=True)
        return ArrowFile(self, path, name, file)

    def files(self, path: str) -> list[ListedFile]:
        selector = fs.FileSelector(path.rstrip("/") or path, recursive=True, allow_not_found=True)

        def attempt(_: int) -> list[fs.FileInfo]:
            infos: list[fs.FileInfo] = self.filesystem.get_file_info(selector)
            return infos

        infos = call_with_retries(self, self.name(path), "the list of files", attempt, is_opening=True)
        files = [info for info in infos if info.is_file]
        if self.filesystem.type_name in _KEY_STORES and any("//" in info.path for info in files):
            odd = [info.path for info in files if "//" in info.path]
            files = [info for info in files if "//" not in info.path]
            others = f" and {len(odd) - 1} others are" if len(odd) > 1 else " is"
            warn(
                f"{self.name(odd[0])}{others} skipped: pyarrow cannot open keys with an empty segment (//); copy the "
                "object to another key",
                UserWarning,
            )
        return [
            ListedFile(info.path, info.size, None if info.mtime_ns is None else info.mtime_ns // 1_000_000)
            for info in files
        ]

    def create(self, path: str, name: str) -> Upload:
        return _Stream(self, path, name, None if self.filesystem.type_name in _ATOMIC else temporary_path(path))

    def remove(self, path: str) -> None:
        with StoreErrorContext(self.name(path), self.secrets), suppress(FileNotFoundError):
            self.filesystem.delete_file(path)

    def version(self, path: str, file: pa.NativeFile) -> Version | None:
        """Return the version of an open file; None if the file system reports no etag and no modification time."""
        metadata = {key.lower(): value.decode("utf-8", "replace") for key, value in _metadata(file).items()}
        if metadata.get("etag"):
            return Version(f"etag {metadata['etag']}")
        info = self.filesystem.get_file_info(path)
        return None if info.mtime_ns is None else Version.from_timestamp(info.mtime_ns / 1e9, str(info.mtime))


def _metadata(file: pa.NativeFile) -> Mapping[str, bytes]:
    with suppress(pa.ArrowNotImplementedError, NotImplementedError, AttributeError):
        return file.metadata() or {}
    return {}


class ArrowFile(RemoteSource):
    """Open file of a ``pyarrow.fs.FileSystem``. Each read checks the version of the file."""

    _store: ArrowStore

    def __init__(self, store: ArrowStore, path: str, name: str, file: pa.NativeFile) -> None:
        super().__init__(store, path, name, file.size(), store.version(path, file))
        self.usage.add_fetch(0, 0.0)
        self._file = file

    def _request(self, offset: int, length: int, failed_attempts: int) -> Any:
        if failed_attempts:
            self._file = self._store.filesystem.open_input_file(self._path)
        return self._file.read_at(length, offset)

    def _check_version(self) -> None:
        def attempt(_: int) -> tuple[Version | None, int]:
            with self._store.filesystem.open_input_file(self._path) as file:
                return self._store.version(self._path, file), file.size()

        self.usage.add_fetch(0, 0.0)
        version, size = call_with_retries(self._store, self.path or "", "the version of the file", attempt)
        if size != self.size or str(version) != str(self.version):
            raise self.changed_error(f"{version} with {size} bytes")

    def close(self) -> None:
        self._file.close()


class _Stream:
    """Output stream. If a file system shows incomplete files, the file has a temporary name until it is complete.

    pyarrow completes a file when its stream is closed, even by garbage collection. An aborted stream is therefore
    leaked.
    """

    def __init__(self, store: ArrowStore, path: str, name: str, temporary: str | None) -> None:
        self.path = name
        self._store = store
        self._final = path
        self._temporary = temporary
        with self._error_context():
            self._stream = store.filesystem.open_output_stream(temporary or path, compression=None)

    def _error_context(self) -> StoreErrorContext:
        return StoreErrorContext(self.path, self._store.secrets)

    def write(self, buffers: Sequence[memoryview]) -> None:
        with self._error_context():
            for buffer in buffers:
                self._stream.write(buffer)

    def commit(self) -> None:
        with self._error_context():
            self._stream.close()
            if self._temporary is not None:
                self._rename(self._temporary)

    def _rename(self, temporary: str) -> None:
        filesystem = self._store.filesystem
        try:
            filesystem.move(temporary, self._final)
        except NotImplementedError:  # Azure accounts without a hierarchical namespace: copies appear atomically
            filesystem.copy_file(temporary, self._final)
            filesystem.delete_file(temporary)

    def abort(self) -> None:
        if self._temporary is None:
            if not self._stream.closed:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._stream))
            return
        with suppress(Exception):
            self._stream.close()
        with suppress(Exception):
            self._store.filesystem.delete_file(self._temporary)
