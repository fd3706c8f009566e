"""A data-skipping store as a read names it: text that goes through Spark's options."""

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
class StoreGiven:
    """Where a store lies, and how it is opened."""

    path: str
    """An absolute path or a URL."""
    on_foreign: str = "raise"
    keys: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Keys of an encrypted store by their labels, in base 64."""

    @classmethod
    def of(cls, given: Any) -> StoreGiven:
        """What ``skipping=`` is given: a path, a URL, or a store that is open.

        Raises ``TypeError`` for anything else, and ``UnsupportedError`` for a store that does not fit into options.
        """
        if isinstance(given, str | os.PathLike):
            return cls(_absolute(os.fspath(given)))
        if not isinstance(given, Store):
            raise TypeError(f"skipping is a data-skipping store or its path, not {type(given).__name__}")
        if given.decryption is not None and not isinstance(given.decryption, Mapping):
            raise UnsupportedError(
                "Spark plans reads in another process, to which a key retriever cannot go: open the store with "
                "decryption={label: key}",
                feature="stores with key retrievers",
            )
        if given.limits != DEFAULT_LIMITS:
            raise UnsupportedError(
                "Spark plans reads in another process, with the usual limits: open the store without limits=",
                feature="stores with limits of their own",
            )
        path = given.location.path if isinstance(given.location, Location) else os.fspath(given.location)
        keys = [(label, base64.b64encode(key).decode()) for label, key in (given.decryption or {}).items()]
        return cls(_absolute(path), given.on_foreign, tuple(sorted(keys)))

    def as_text(self) -> str:
        """The store as an option: its path, or an object of JSON."""
        if self.on_foreign == "raise" and not self.keys and not self.path.startswith("{"):
            return self.path
        return json.dumps({"path": self.path, "on_foreign": self.on_foreign, "keys": dict(self.keys)})

    @classmethod
    def from_text(cls, text: str) -> StoreGiven:
        """The store of which :meth:`as_text` made ``text``, or a user. Raises ``ValueError`` for anything else."""
        if not text.lstrip().startswith("{"):
            if not text:
                raise ValueError("expected the path of a data-skipping store")
            return cls(_absolute(text))
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        path, foreign, keys = found.get("path"), found.get("on_foreign", "raise"), found.get("keys", {})
        if not found.keys() <= _NAMES or not isinstance(path, str) or not isinstance(keys, dict):
            raise ValueError('expected {"path": ..., "on_foreign": "raise" or "ignore", "keys": {label: base 64}}')
        if foreign not in ("raise", "ignore") or not all(isinstance(key, str) for key in keys.values()):
            raise ValueError('on_foreign is "raise" or "ignore", and keys map labels to base 64')
        return cls(_absolute(path), foreign, tuple(sorted(keys.items())))

    def open(self, storage_options: Mapping[str, Any] | None) -> Store:
        """The store; ``storage_options`` are those of the files, and count where the store is given by a URL."""
        keys = {label: base64.b64decode(key) for label, key in self.keys} or None
        return open_store(
            self.path, decryption=keys, on_foreign=cast(OnForeign, self.on_foreign),
            storage_options=storage_options if is_remote(self.path) else None,
        )  # fmt: skip


def _absolute(path: str) -> str:
    return path if is_remote(path) else local_path(path)
