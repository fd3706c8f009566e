"""Read local and remote files sequentially. Compressed files are detected by suffix or by their first bytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from pqext.core.base.errors import CorruptFileError, ParquetError
from pqext.core.base.local_paths import check_path

if TYPE_CHECKING:
    from pqext.core.io.source import Source
    from pqext.core.io.sources.store import Location

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli", ".xz": "xz"}
"""Suffixes of compressed files, with the names of Arrow's codecs. Arrow does not support xz."""
_MARKS = (
    (b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\x00", "xz"), *((b"BZh%d1AY&SY" % level, "bz2") for level in range(1, 10)),
)  # fmt: skip
"""First bytes of compressed files. No text begins with them."""
MARK_BYTES = 10
REMOTE_BYTES = 8 << 20
"""Size of a request to a store in bytes."""


def codec_of(path: str) -> str | None:
    """Return the codec of a compressed file according to its suffix; None for any other suffix."""
    return CODECS.get(os.path.splitext(path)[1].lower())


def codec_of_content(head: bytes) -> str | None:
    """Return the codec of a compressed file that begins with ``head``; None for any other file."""
    return next((codec for mark, codec in _MARKS if head.startswith(mark)), None)


def open_stream(location: str | Location, is_range: bool = False) -> Any:
    """Open a local path or a location in a store as a binary file of decompressed bytes.

    The codec is detected from the file's suffix or its first bytes. An uncompressed file is seekable. ``is_range`` is
    true if only a byte range of the file will be read. Raises ``OSError`` like :func:`open`, ``SourceError`` for a file
    in a store, and ``CorruptFileError`` if ``is_range`` is true and the file is compressed without a compression
    suffix.
    """
    if isinstance(location, str):
        check_path(location)
    file: Any = (
        open(location, "rb", buffering=0)  # noqa: SIM115
        if isinstance(location, str)
        else io.BufferedReader(_SourceFile(location.open(), str(location)), REMOTE_BYTES)
    )
    named = codec_of(str(location))
    try:
        codec = named or (codec_of_content(_head(file)) if file.seekable() else None)
        if is_range and codec is not None and named is None:
            suffix = next(end for end, name in CODECS.items() if name == codec)
            reason = f"the file is compressed with {codec}, but its name does not end in {suffix}: rename it"
            raise CorruptFileError(reason, path=str(location))
        if codec is None:
            return file
        if isinstance(location, str) and file.seekable():
            import pyarrow as pa

            file.close()
            file = pa.OSFile(location)  # closes itself
        return decompress(file, codec)
    except BaseException:
        file.close()
        raise


def decompress(file: IO[bytes], codec: str) -> Any:
    """Return a file with the decompressed bytes of the binary file ``file``. Closing it also closes ``file``."""
    import pyarrow as pa

    return _Xz(file) if codec == "xz" else pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)


@contextmanager
def codec_errors(path: str) -> Iterator[None]:
    """Turn errors of a codec into ``CorruptFileError``."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or isinstance(error, ParquetError):
            raise
        reason = f"the compressed file cannot be read: {error}; copy it again, or exclude it from the paths"
        raise CorruptFileError(reason, path=path) from None


def _head(file: Any) -> bytes:
    """Read the first bytes of a file and seek back to its start."""
    head: bytes = file.read(MARK_BYTES)
    file.seek(0)
    return head


class _Xz(io.RawIOBase):
    """Decompressed bytes of an xz file. Corrupt data raises ``OSError``, as with Arrow's codecs."""

    def __init__(self, file: IO[bytes]) -> None:
        import lzma

        self._file = file
        self._bytes = lzma.LZMAFile(file)  # noqa: SIM115
        self._error = lzma.LZMAError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into ``buffer``, and return their number."""
        try:
            return self._bytes.readinto(buffer)
        except (self._error, EOFError) as error:
            raise OSError(f"xz: {error}") from None

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._bytes.close()
            self._file.close()
        super().close()


class _SourceFile(io.RawIOBase):
    """Binary file that reads from a source."""

    def __init__(self, source: Source, name: str) -> None:
        self.name = name
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek to an offset from the start, the current position or the end; return the new position."""
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read bytes into ``buffer``, and return their number."""
        count = max(0, min(len(buffer), self._source.size - self._at))
        if count:
            memoryview(buffer).cast("B")[:count] = self._source.read(self._at, count).data
            self._at += count
        return count

    def close(self) -> None:
        """Close the source."""
        if not self.closed:
            self._source.close()
        super().close()
