"""Maps whose entries repeat a key: the last entry of each key is the one that counts (LogicalTypes, Maps)."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.kernels.map_keys import flag_superseded
from pqext.core.types.decoded import is_view
from pqext.core.types.stored import normal
from pqext.core.types.views import taken

_SEED = int.from_bytes(os.urandom(8))


@dataclass(frozen=True, slots=True)
class Kept:
    """Which entries are left, and where each map's begin among them."""

    places: NDArray[np.int64]
    offsets: NDArray[np.int32]

    def apply(self, entries: pa.Array) -> pa.Array:
        """``entries`` (keys or items) without the superseded ones."""
        return taken(entries, self.places)


def last_of_each(keys: pa.Array, offsets: NDArray[np.int32]) -> Kept | None:
    """The last entry of each key in each map, ``None`` when no map repeats a key.

    Map ``i`` holds ``keys[offsets[i]:offsets[i + 1]]``; ``keys`` has no nulls. Keys are the same when their bytes are.
    """
    keep = np.ones(len(keys), np.uint8)
    if len(keys) < 2 or not _flag(keys, offsets, keep):
        return None
    before = np.concatenate([[0], np.cumsum(keep, dtype=np.int64)])
    return Kept(np.flatnonzero(keep), before[offsets].astype(np.int32))


def _flag(keys: pa.Array, maps: NDArray[np.int32], keep: NDArray[np.uint8]) -> int:
    kind = keys.type
    if isinstance(kind, pa.BaseExtensionType):
        return _flag(keys.storage, maps, keep)
    if is_view(kind):
        return _flag(keys.cast(normal(kind)), maps, keep)
    if pa.types.is_boolean(kind):
        keys = keys.cast(pa.uint8())
    elif pa.types.is_nested(kind) or pa.types.is_null(kind):
        return _flag(_codes(keys), maps, keep)
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _flag(keys.dictionary_encode().indices, maps, keep)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
        data = keys.buffers()[2]
        held = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return flag_superseded(maps, held, ends, 0, len(keys), keep, _SEED)
    width = keys.type.bit_width // 8
    held = np.frombuffer(keys.buffers()[1], np.uint8)[keys.offset * width : (keys.offset + len(keys)) * width]
    return flag_superseded(maps, held, None, width, len(keys), keep, _SEED)


def _codes(keys: pa.Array) -> pa.Array:
    """A number for each different key of a nested type, by what Python shows of it."""
    known: dict[str, int] = {}
    return pa.array([known.setdefault(repr(key), len(known)) for key in keys.to_pylist()], pa.int32())
