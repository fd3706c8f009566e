"""Determine the current versions of a table's objects, and the statistics of skipped objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.text import with_noun
from pqext.core.base.threads import Workers
from pqext.core.io.sources.store import Location
from pqext.core.kernels.local_files import stamp_files

_TOGETHER = 4096
"""Maximum number of files that one thread queries at a time."""
UNKNOWN = -1
"""An unknown time or size."""


@dataclass(frozen=True)
class Objects:
    """Files of a table, with the names that stores use and with their current versions."""

    sources: tuple[Any, ...]
    paths: pa.Array
    """Names, null for a file without a name."""
    modified: NDArray[np.int64]
    """Times of the last change, in milliseconds since 1970."""
    sizes: NDArray[np.int64]
    """Sizes in bytes."""
    etags: pa.Array
    """Versions reported by an object store; for local files, the time of the last change of the file or its name. Null
    if unknown."""

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, indices: NDArray[np.int64]) -> Objects:
        """Return the objects at ``indices``."""
        return Objects(
            tuple(self.sources[at] for at in indices), self.paths.take(pa.array(indices)), self.modified[indices],
            self.sizes[indices], self.etags.take(pa.array(indices)),
        )


def current_objects(sources: Sequence[Any]) -> Objects:
    """Return files with their current versions, from the local file system or the listing of an object store."""
    modified, sizes = np.full(len(sources), UNKNOWN, np.int64), np.full(len(sources), UNKNOWN, np.int64)
    etags: list[str | None] = [None] * len(sources)
    paths = [_canonical_name(source) for source in sources]
    local = [at for at, source in enumerate(sources) if type(source) is str and "\0" not in source]
    if local:
        stamps = np.empty((3, len(local)), np.int64)
        _stat([os.fsencode(sources[at]) for at in local], stamps)
        if (stamps[0] < 0).any():  # always the case on Windows
            _stat_in_python([str(sources[at]) for at in local], stamps)
        sizes[local] = stamps[0]
        modified[local] = np.where(stamps[0] < 0, UNKNOWN, stamps[1] // 1_000_000)
        for at, changed in zip(local, stamps[2].tolist(), strict=True):
            etags[at] = str(changed)
    if len(local) < len(sources):
        for at, source in enumerate(sources):
            listed = source.listed if isinstance(source, Location) else None
            if listed is not None and listed.modified_ms is not None and listed.size is not None:
                modified[at], sizes[at], etags[at] = listed.modified_ms, listed.size, listed.etag
    return Objects(tuple(sources), _names(paths), modified, sizes, pa.array(etags, pa.string()))


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """The current version of one file."""

    path: str
    modified_ms: int
    size: int
    etag: str | None


def current_version(source: Any) -> ObjectVersion | None:
    """Return the current version of one file; None if its time, size or name is unknown.

    Raises ``ValueError`` for a path that is not valid Unicode.
    """
    name = _canonical_name(source)
    if name is None:
        return None
    if not is_valid_unicode(name):
        raise ValueError(f"the path {name!r} is not valid Unicode and cannot be stored: rename the file")
    if isinstance(source, Location):
        listed = source.listed
        if listed is None or listed.modified_ms is None or listed.size is None:
            return None
        return ObjectVersion(name, listed.modified_ms, listed.size, listed.etag)
    try:
        stat = os.stat(source)
    except (OSError, ValueError):  # reading raises the same error
        return None
    return ObjectVersion(name, stat.st_mtime_ns // 1_000_000, stat.st_size, str(stat.st_ctime_ns))


def _canonical_name(source: Any) -> str | None:
    """Return the name of a file as stores record it; None if the file has no name."""
    if type(source) is str:
        is_plain = source[:1] == "/" and "//" not in source and "/." not in source and source[-1] != "/"
        return source if is_plain else os.path.abspath(source)
    return canonical_path(source.path) if isinstance(source, Location) else None


def _names(names: list[str | None]) -> pa.Array:
    """Convert names to an array. Names that are not valid Unicode become null, because no store contains them."""
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError:
        return pa.array([name if name is not None and is_valid_unicode(name) else None for name in names], pa.string())


def is_valid_unicode(name: str) -> bool:
    """Return whether a name is valid Unicode. Local paths may contain any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stat(paths: list[bytes], stamps: NDArray[np.int64]) -> None:
    """Store the sizes and times of files in ``stamps``. Several threads are used for more than ``_TOGETHER`` files."""
    if len(paths) <= _TOGETHER:
        stamp_files(paths, *stamps)
        return
    starts = range(0, len(paths), _TOGETHER)
    with Workers(0, len(starts)) as workers:
        batches = ((paths[at : at + _TOGETHER], *stamps[:, at : at + _TOGETHER]) for at in starts)
        for _ in workers.map(stamp_files, *zip(*batches, strict=True)):
            pass


def _stat_in_python(paths: Sequence[str], stamps: NDArray[np.int64]) -> None:
    """Store the size and time of each file whose size in ``stamps`` is negative, using :func:`os.stat`."""
    for at in np.flatnonzero(stamps[0] < 0).tolist():
        try:
            stat = os.stat(paths[at])
        except OSError:  # reading raises the same error
            continue
        stamps[:, at] = stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def canonical_path(path: str) -> str:
    """Return the canonical spelling of a path or URL. Aliases of URL schemes are replaced.

    >>> canonical_path("file:///data/a.parquet"), canonical_path("s3a://bucket/a.parquet")
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
    """Skipping statistics of one or more queries: numbers of objects, and bytes of objects whose size is known."""

    objects: int
    """Objects that were checked."""
    skipped: int
    """Objects that were excluded and not opened."""
    bytes: int
    skipped_bytes: int
    queries: int = 1

    @classmethod
    def from_reasons(cls, objects: Objects, reasons: Sequence[str | None]) -> SkippingStatistics:
        """Return the statistics of a query. An object with a reason was skipped."""
        is_skipped = np.array([reason is not None for reason in reasons], bool)
        sizes = np.where(objects.sizes == UNKNOWN, 0, objects.sizes)
        return cls(len(objects), int(is_skipped.sum()), int(sizes.sum()), int(sizes[is_skipped].sum()))

    @classmethod
    def sum(cls, statistics: Iterable[SkippingStatistics]) -> SkippingStatistics:
        """Add up the statistics of several queries."""
        items = [*statistics]
        return cls(
            sum(each.objects for each in items), sum(each.skipped for each in items), sum(each.bytes for each in items),
            sum(each.skipped_bytes for each in items), sum(each.queries for each in items),
        )  # fmt: skip

    def __str__(self) -> str:
        objects, total = with_noun(self.objects, "object"), with_noun(self.bytes, "byte")
        text = f"{self.skipped:,} of {objects} skipped, {self.skipped_bytes:,} of {total}"
        return text if self.queries == 1 else f"{self.queries:,} queries: {text}"
