"""A bucket of Google Cloud Storage or a container of Azure: files in it wait under hidden keys, until the store copies
them where they belong, and small ones are claimed by their versions.

By ``obstore`` (extra ``remote``), since pyarrow cannot write a file on the condition that there is none. A copy within
a bucket moves no byte through this machine.
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
from pqext.core.io.sources.faults import fault_of
from pqext.core.io.sources.pending_files import WAITING, Begun, ErrorsOfKey, Pending, check_note
from pqext.core.io.sources.secrets import scrubbed, secrets_of, shown
from pqext.core.io.sources.store import Location, Store, remembered
from pqext.core.io.sources.uris import obstore_arguments

_PART_BYTES = 16 << 20
T = TypeVar("T")


class Container:
    """A ``gs://`` bucket or an ``abfss://`` container: :class:`pqext.core.io.sources.pending_files.PendingStore`."""

    def __init__(self, uri: str, scheme: str, storage_options: Mapping[str, Any] | None) -> None:
        if find_spec("obstore") is None:
            raise UnsupportedError(
                f"writing a folder of {scheme}:// in several tasks needs obstore: pip install 'pqext[remote]'",
                feature=f"commits on {scheme}://", path=shown(uri),
            )
        parts = split_uri(shown(uri))
        self.prefix = parts.path.strip("/")
        self._base = f"{parts.scheme}://{parts.netloc}/"
        self._secrets = secrets_of(storage_options or {})
        self._store = _store(uri, scheme, storage_options or {}, self._secrets)

    def url(self, key: str) -> str:
        """The URL of a key."""
        return f"{self._base}{key}"

    def place(self, key: str) -> Location:
        """Where readers find a key."""
        from pqext.core.io.sources.object_files import ObjectStore

        def make() -> Store:
            return ObjectStore(self._store, self._secrets, None, self._base)

        return Location(remembered(self._store, make), key, self.url(key))

    def create(self, key: str) -> CopiedFile:
        """A file that waits when it is finished."""
        return CopiedFile(self, key)

    def waiting(self, key: str) -> str:
        """A key under which a file waits that belongs at ``key``."""
        inside = f"{self.prefix}/" if self.prefix else ""
        return f"{inside}{WAITING}/{uuid.uuid4().hex}/{key.removeprefix(inside)}"

    def complete(self, key: str, pending: Pending) -> None:
        """Copy a file that waits to ``key``, if that is not done already."""
        import obstore

        try:
            self.call(key, lambda: obstore.copy(self._store, pending.upload, key))
        except FileNotFoundError:
            self.call(key, lambda: obstore.head(self._store, key))
        self.delete(pending.upload)

    def abort(self, key: str, upload: str) -> None:
        """Delete a file that waits."""
        self.delete(upload)

    def begun(self, prefix: str) -> Iterator[Begun]:
        """The files that wait below the folder, of which ``prefix`` is that of their keys."""
        inside = f"{self.prefix}/" if self.prefix else ""
        folder = f"{inside}{WAITING}/"
        for one in self._listed(folder):
            key = inside + one["path"].removeprefix(folder).partition("/")[2]
            if key.startswith(prefix):
                yield Begun(key, one["path"], one["last_modified"])

    def keys(self, prefix: str) -> dict[str, str]:
        """The keys below ``prefix`` with their etags."""
        return {one["path"]: str(one["e_tag"]) for one in self._listed(prefix)}

    def get(self, key: str) -> tuple[bytes, str]:
        """The bytes of a small file, and what tells its version. One that was released is not there."""
        data, version = self._got(key)
        if not data:
            raise FileNotFoundError(2, "there is no such file", self.url(key))
        return data, version

    def put(self, key: str, data: bytes) -> str:
        """Store a small file; gives what tells its version."""
        return self._put(key, data, "overwrite")

    def claim(self, key: str, data: bytes) -> str:
        """Store a small file where there is none, or an empty one. Raises ``FileExistsError`` elsewhere."""
        try:
            return self._put(key, data, "create")
        except FileExistsError:
            there, version = self._got(key)
            if there:
                raise
            return self._put(key, data, json.loads(version))

    def release(self, key: str, version: str) -> None:
        """Leave an empty file of what was claimed, if it is that version still.

        These stores overwrite under a condition, and obstore does not delete under one.
        """
        with suppress(FileExistsError, FileNotFoundError):
            self._put(key, b"", json.loads(version))

    def delete(self, key: str) -> None:
        """Delete a file, if it is there."""
        import obstore

        with suppress(FileNotFoundError):
            self.call(key, lambda: obstore.delete(self._store, key))

    def open(self, key: str) -> Any:
        """A stream into the file at ``key``, which is there when it is closed."""
        import obstore

        return self.call(key, lambda: obstore.open_writer(self._store, key, buffer_size=_PART_BYTES))

    def call(self, key: str, action: Callable[[], T]) -> T:
        """What ``action`` about a key gives. Its errors have the URL, and nothing secret."""
        with ErrorsOfKey(self.url(key), self._secrets):
            try:
                return action()
            except Exception as error:
                match fault_of(error):
                    case "missing":
                        raise FileNotFoundError(2, "there is no such file", self.url(key)) from None
                    case "taken":
                        raise FileExistsError(17, "another file is there", self.url(key)) from None
                    case "denied":
                        raise PermissionError(13, "denied") from None
                raise

    def _listed(self, prefix: str) -> list[Any]:
        import obstore

        folder, _, start = prefix.rpartition("/")  # obstore's prefixes are folders
        every = self.call(prefix, lambda: [one for part in obstore.list(self._store, folder or None) for one in part])
        return [one for one in every if one["path"].startswith(prefix)] if start or prefix else every

    def _got(self, key: str) -> tuple[bytes, str]:
        import obstore

        found = self.call(key, lambda: obstore.get(self._store, key))
        check_note(found.meta["size"], self.url(key))
        return self.call(key, lambda: bytes(found.bytes())), _version(found.meta)

    def _put(self, key: str, data: bytes, mode: Any) -> str:
        import obstore

        return _version(
            self.call(key, lambda: obstore.put(self._store, key, data, mode=mode, use_multipart=False))
        )


class CopiedFile:
    """What a writer writes to: a file under a hidden key."""

    def __init__(self, container: Container, key: str) -> None:
        self._container = container
        self._key = key
        self._waiting = container.waiting(key)
        self._stream: Any = None

    def seekable(self) -> bool:
        """Bytes come in order."""
        return False

    def write(self, data: Any) -> int:
        """Append ``data``."""
        if self._stream is None:
            self._stream = self._container.open(self._waiting)
        self._container.call(self._key, lambda: self._stream.write(data))
        return len(data)

    def finish(self) -> Pending:
        """Store what is left; the file waits."""
        self.write(b"")
        self._container.call(self._key, lambda: self._stream.close())
        return Pending(self._waiting)

    def give_up(self) -> None:
        """Leave nothing behind. Raises nothing."""
        self._stream = None  # without its end the upload is of nothing
        with suppress(Exception):
            self._container.delete(self._waiting)


def _version(told: Mapping[str, Any]) -> str:
    return json.dumps({name: told[name] for name in ("e_tag", "version") if told.get(name) is not None})


def _store(uri: str, scheme: str, options: Mapping[str, Any], secrets: frozenset[str]) -> Any:
    from obstore.store import AzureStore, GCSStore

    arguments, name = obstore_arguments(uri, scheme, options)
    kind: Any = GCSStore if scheme in ("gs", "gcs") else AzureStore
    try:
        return kind(name, **arguments)
    except Exception as error:
        raise ValueError(f"{shown(uri)} cannot be opened: {scrubbed(error, secrets)}") from None
