"""The objects of a table as they are now: what tells one version of a file from another."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.sources.store import Location

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
    """What a store calls the version, null where it does not."""

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
    paths: list[str | None] = [None] * len(sources)
    etags: list[str | None] = [None] * len(sources)
    for at, source in enumerate(sources):
        if isinstance(source, str):
            paths[at] = os.path.abspath(source)
            try:
                found = os.stat(source)
            except OSError:  # which reading tells
                continue
            modified[at], sizes[at] = found.st_mtime_ns // 1_000_000, found.st_size
        elif isinstance(source, Location):
            paths[at] = canonical(source.path)
            listed = source.listed
            if listed is not None and listed.modified_ms is not None and listed.size is not None:
                modified[at], sizes[at], etags[at] = listed.modified_ms, listed.size, listed.etag
    return Objects(tuple(sources), pa.array(paths, pa.string()), modified, sizes, pa.array(etags, pa.string()))


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
