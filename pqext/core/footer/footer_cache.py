"""Long footers whose structures were found before, for files that are opened again.

What is kept is found by the bytes of the footer alone, all of which are compared: a file that has changed is never
answered for by what it was. Of remote files these bytes are kept too (:mod:`pqext.core.io.sources.cache`); both are
bounded by one number of bytes.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

from pqext.core.base.buffers import Bytes
from pqext.core.base.limits import Limits
from pqext.core.base.lru import LRU
from pqext.core.format.metadata import FileMetaData
from pqext.core.format.thrift import LazyStructs, decode
from pqext.core.io.sources.cache import CACHE, when_cleared
from pqext.core.kernels.footer_places import same_bytes


class _Kept(NamedTuple):
    about: tuple[str, int, Limits]
    raw: Bytes
    metadata: FileMetaData
    end: int


_kept: LRU[str, _Kept] = LRU(CACHE.limit)


def decoded(raw: Bytes, limits: Limits, base: int, path: str | None) -> tuple[FileMetaData, int]:
    """The footer that begins with ``raw``, and where it ends in it; as :func:`pqext.core.format.thrift.decode`."""
    if path is None:  # bytes in memory, which are not to be held longer than their owner does
        return decode(FileMetaData, raw, limits=limits, base=base)
    about = path, base, limits
    found = _kept.get(path)
    if found is not None and found.about == about and same_bytes(found.raw, raw):
        return _copy(found.metadata), found.end
    metadata, end = decode(FileMetaData, raw, limits=limits, base=base, path=path)
    if metadata.encryption_algorithm is None:
        _kept.limit = CACHE.limit
        # The places of structures take about as much as the bytes.
        _kept.put(path, _Kept(about, raw, _copy(metadata), end), 2 * len(raw))
    return metadata, end


def _copy(metadata: FileMetaData) -> FileMetaData:
    """Another object that says the same, by the same bytes."""
    made = copy(metadata)
    for name in ("schema", "row_groups", "column_orders"):
        structures = getattr(metadata, name)
        if isinstance(structures, LazyStructs):
            setattr(made, name, LazyStructs(structures._index))
    if metadata.key_value_metadata is not None:
        made.key_value_metadata = [copy(pair) for pair in metadata.key_value_metadata]
    return made


when_cleared(_kept.clear)
