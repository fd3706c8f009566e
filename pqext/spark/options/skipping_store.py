"""References to data-skipping stores as text, for the options of a read."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pqext.core.base.errors import UnsupportedError
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.io.sources.locations import Location
from pqext.skipping.store.store import OnForeign, Store, open_store
from pqext.spark.base.files import is_remote, local_path

_NAMES = {"path", "on_foreign", "keys"}


@dataclass(frozen=True)
class StoreReference:
    """Location of a store, and the arguments with which to open it."""

    path: str
    """Absolute path or URL."""
    on_foreign: str = "raise"
    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Keys of an encrypted store by label, in base 64."""

    @classmethod
    def from_argument(cls, skipping: Any) -> StoreReference:
        """Create a reference from argument ``skipping``: a path, a URL or an open store.

        Raises ``TypeError`` for other arguments, and ``UnsupportedError`` for a store that text cannot represent.
        """
        if isinstance(skipping, str | os.PathLike):
            return cls(_absolute_path(os.fspath(skipping)))
        if not isinstance(skipping, Store):
            raise TypeError(f"skipping must be a data-skipping store or its path, not {type(skipping).__name__}")
        if skipping.decryption is not None and not isinstance(skipping.decryption, Mapping):
            raise UnsupportedError(
                "Spark plans reads in another process, without access to a key retriever: open the store with "
                "decryption={label: key}",
                feature="stores with key retrievers",
            )
        if skipping.limits != DEFAULT_LIMITS:
            raise UnsupportedError(
                "Spark plans reads in another process, with default limits: open the store without limits=",
                feature="stores with custom limits",
            )
        location = skipping.location
        path = location.path if isinstance(location, Location) else os.fspath(location)
        keys = [(label, base64.b64encode(key).decode()) for label, key in (skipping.decryption or {}).items()]
        return cls(_absolute_path(path), skipping.on_foreign, tuple(sorted(keys)))

    def as_text(self) -> str:
        """Return the reference as an option: a path, or a JSON object."""
        if self.on_foreign == "raise" and not self.keys and not self.path.startswith("{"):
            return self.path
        return json.dumps({"path": self.path, "on_foreign": self.on_foreign, "keys": dict(self.keys)})

    @classmethod
    def from_text(cls, text: str) -> StoreReference:
        """Parse an option, written by :meth:`as_text` or by a user. Raises ``ValueError`` for other text."""
        if not text.lstrip().startswith("{"):
            if not text:
                raise ValueError("expected the path of a data-skipping store")
            return cls(_absolute_path(text))
        try:
            data = json.loads(text)
        except ValueError:
            data = {}
        path, foreign, keys = data.get("path"), data.get("on_foreign", "raise"), data.get("keys", {})
        if not data.keys() <= _NAMES or not isinstance(path, str) or not isinstance(keys, dict):
            raise ValueError('expected {"path": ..., "on_foreign": "raise" or "ignore", "keys": {label: base64}}')
        if foreign not in ("raise", "ignore") or not all(isinstance(key, str) for key in keys.values()):
            raise ValueError('on_foreign must be "raise" or "ignore", and keys must map labels to base64')
        return cls(_absolute_path(path), foreign, tuple(sorted(keys.items())))

    def open(self, storage_options: Mapping[str, Any] | None) -> Store:
        """Open the store. If it is a URL, the ``storage_options`` of the files apply."""
        keys = {label: base64.b64decode(key) for label, key in self.keys} or None
        return open_store(
            self.path, decryption=keys, on_foreign=cast(OnForeign, self.on_foreign),
            storage_options=storage_options if is_remote(self.path) else None,
        )  # fmt: skip


def _absolute_path(path: str) -> str:
    return path if is_remote(path) else local_path(path)
