"""The objects of a table in their current versions, and how many of them and of their bytes a store skips."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.workers import Workers
from pqext.core.io.sources.store import Location
from pqext.core.kernels.local_files import stamp_files

_TOGETHER = 4096
"""Files that one thread asks the file system about at a time."""
UNKNOWN = -1
"""A time or a size that nobody tells."""


@dataclass(frozen=True)
class Objects:
    """Files, each with its name in stores and with what changes when it is written anew."""

    sources: tuple[Any, ...]
    paths: pa.Array
    """Names, null for what has none."""
    modified: NDArray[np.int64]
    """When each was written, in milliseconds since 1970."""
    sizes: NDArray[np.int64]
    """Bytes."""
    etags: pa.Array
    """What an object store calls the version; of a file of this machine when it or its name last changed. Null where
    nobody tells."""

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, chosen: NDArray[np.int64]) -> Objects:
        """Those of the objects with the numbers ``chosen``."""
        return Objects(
            tuple(self.sources[at] for at in chosen), self.paths.take(pa.array(chosen)), self.modified[chosen],
            self.sizes[chosen], self.etags.take(pa.array(chosen)),
        )


def objects_of(sources: Sequence[Any]) -> Objects:
    """What is known of files now: on this machine by asking the file system, in a store by what was listed."""
    modified, sizes = np.full(len(sources), UNKNOWN, np.int64), np.full(len(sources), UNKNOWN, np.int64)
    etags: list[str | None] = [None] * len(sources)
    paths = [_name(source) for source in sources]
    local = [at for at, source in enumerate(sources) if type(source) is str and "\0" not in source]
    if local:
        found = np.empty((3, len(local)), np.int64)
        _look([os.fsencode(sources[at]) for at in local], found)
        if (found[0] < 0).any():  # as all are on Windows
            _ask_again([str(sources[at]) for at in local], found)
        sizes[local] = found[0]
        modified[local] = np.where(found[0] < 0, UNKNOWN, found[1] // 1_000_000)
        for at, changed in zip(local, found[2].tolist(), strict=True):
            etags[at] = str(changed)
    if len(local) < len(sources):
        for at, source in enumerate(sources):
            listed = source.listed if isinstance(source, Location) else None
            if listed is not None and listed.modified_ms is not None and listed.size is not None:
                modified[at], sizes[at], etags[at] = listed.modified_ms, listed.size, listed.etag
    return Objects(tuple(sources), _texts(paths), modified, sizes, pa.array(etags, pa.string()))


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One file as it is now, as :class:`Objects` has many."""

    path: str
    modified_ms: int
    size: int
    etag: str | None


def version_of(source: Any) -> ObjectVersion | None:
    """What is known of one file now; None where its time, size or name is not.

    Raises ``ValueError`` for a path that is no text.
    """
    name = _name(source)
    if name is None:
        return None
    if not is_text(name):
        raise ValueError(f"a store names files by their paths, and {name!r} is no Unicode text: rename the file")
    if isinstance(source, Location):
        listed = source.listed
        if listed is None or listed.modified_ms is None or listed.size is None:
            return None
        return ObjectVersion(name, listed.modified_ms, listed.size, listed.etag)
    try:
        found = os.stat(source)
    except (OSError, ValueError):  # which reading tells
        return None
    return ObjectVersion(name, found.st_mtime_ns // 1_000_000, found.st_size, str(found.st_ctime_ns))


def _name(source: Any) -> str | None:
    """The one name of a file in stores; None for what has none."""
    if type(source) is str:
        is_plain = source[:1] == "/" and "//" not in source and "/." not in source and source[-1] != "/"
        return source if is_plain else os.path.abspath(source)
    return canonical(source.path) if isinstance(source, Location) else None


def _texts(names: list[str | None]) -> pa.Array:
    """Names, null for one that is no text and that no store knows."""
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError:
        return pa.array([name if name is not None and is_text(name) else None for name in names], pa.string())


def is_text(name: str) -> bool:
    """Is a name Unicode text? A path of this machine may be of any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _look(paths: list[bytes], found: NDArray[np.int64]) -> None:
    """Ask the file system of all files, by several threads where they are many."""
    if len(paths) <= _TOGETHER:
        stamp_files(paths, *found)
        return
    cuts = range(0, len(paths), _TOGETHER)
    with Workers(0, len(cuts)) as workers:
        parts = ((paths[at : at + _TOGETHER], *found[:, at : at + _TOGETHER]) for at in cuts)
        for _ in workers.map(stamp_files, *zip(*parts, strict=True)):
            pass


def _ask_again(paths: Sequence[str], found: NDArray[np.int64]) -> None:
    """Ask Python of files of which nothing was told."""
    for at in np.flatnonzero(found[0] < 0).tolist():
        try:
            told = os.stat(paths[at])
        except OSError:  # which reading tells
            continue
        found[:, at] = told.st_size, told.st_mtime_ns, told.st_ctime_ns


def canonical(path: str) -> str:
    """The one name of a path or URL by which it is found, whatever scheme it was written with.

    >>> canonical("file:///data/a.parquet"), canonical("s3a://bucket/a.parquet")
    ('/data/a.parquet', 's3://bucket/a.parquet')
    """
    scheme, colon, rest = path.partition(":")
    if not colon or "/" in scheme or not rest.startswith("/"):
        return path
    if scheme == "file":
        return "/" + rest.lstrip("/")
    return f"{_SCHEMES.get(scheme, scheme)}:{rest}"


_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}


@dataclass(frozen=True)
class SkippingStatistics:
    """What a store left out of one query, or of several: numbers of objects, and bytes of those whose size is known."""

    objects: int
    """All that were asked about."""
    skipped: int
    """Those that were refused, and are not opened."""
    bytes: int
    skipped_bytes: int
    queries: int = 1

    @classmethod
    def of(cls, objects: Objects, reasons: Sequence[str | None]) -> SkippingStatistics:
        """The statistics of a query that was answered by ``reasons``."""
        refused = np.array([reason is not None for reason in reasons], bool)
        sizes = np.where(objects.sizes == UNKNOWN, 0, objects.sizes)
        return cls(len(objects), int(refused.sum()), int(sizes.sum()), int(sizes[refused].sum()))

    @classmethod
    def sum(cls, several: Iterable[SkippingStatistics]) -> SkippingStatistics:
        """The statistics of several queries together."""
        every = [*several]
        return cls(
            sum(one.objects for one in every), sum(one.skipped for one in every), sum(one.bytes for one in every),
            sum(one.skipped_bytes for one in every), sum(one.queries for one in every),
        )  # fmt: skip

    def __str__(self) -> str:
        told = f"{self.skipped:,} of {self.objects:,} objects skipped, {self.skipped_bytes:,} of {self.bytes:,} bytes"
        return told if self.queries == 1 else f"{self.queries:,} queries: {told}"
