"""Files that are read from their start, wherever they lie, and decompressed as their names tell."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pqext.core.source import Source
    from pqext.core.sources.store import Location

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli"}
"""The ends of names of compressed files, and Arrow's names of the codecs."""
REMOTE_BYTES = 8 << 20
"""Bytes that are asked of a store at a time."""


def codec_of(path: str) -> str | None:
    """The codec by which the file is compressed as a whole, as its name tells; None for a file that is not."""
    return CODECS.get(os.path.splitext(path)[1].lower())


def open_stream(place: str | Location) -> Any:
    """The bytes of a local path or a place in a store, decompressed, as a binary file that is to be closed.

    One that is not compressed can seek. Raises ``OSError`` as :func:`open` does, and ``SourceError`` for a store.
    """
    import pyarrow as pa

    codec = codec_of(str(place))
    if isinstance(place, str):
        return open(place, "rb", buffering=0) if codec is None else pa.CompressedInputStream(pa.OSFile(place), codec)
    read = io.BufferedReader(_Bytes(place.open(), str(place)), REMOTE_BYTES)
    return read if codec is None else pa.CompressedInputStream(pa.PythonFile(read, "r"), codec)


class _Bytes(io.RawIOBase):
    """The bytes of a source as a file."""

    def __init__(self, source: Source, name: str) -> None:
        self.name = name
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to an offset from the start, from here or from the end."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence])
        return self._at

    def readinto(self, into: Any) -> int:
        """Fill ``into``, as far as there are bytes."""
        count = max(0, min(len(into), self._source.size - self._at))
        if count:
            memoryview(into).cast("B")[:count] = self._source.read(self._at, count).data
            self._at += count
        return count

    def close(self) -> None:
        """Close the source."""
        if not self.closed:
            self._source.close()
        super().close()
