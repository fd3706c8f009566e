"""Sequential reading of local and remote files, decompressed by suffix or by their first bytes."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from pqext.core.base.errors import CorruptFileError, ParquetError

if TYPE_CHECKING:
    from pqext.core.io.source import Source
    from pqext.core.io.sources.store import Location

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zstd": "zstd", ".lz4": "lz4", ".br": "brotli", ".xz": "xz"}
"""The ends of names of compressed files, and Arrow's names of the codecs, of which it lacks xz."""
_MARKS = (
    (b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\x00", "xz"), *((b"BZh%d1AY&SY" % level, "bz2") for level in range(1, 10)),
)  # fmt: skip
"""First bytes of compressed files, with which no text begins."""
MARK_BYTES = 10
REMOTE_BYTES = 8 << 20
"""Bytes that are asked of a store at a time."""


def codec_of(path: str) -> str | None:
    """The codec by which the file is compressed as a whole, as its name tells; None for a file that is not."""
    return CODECS.get(os.path.splitext(path)[1].lower())


def codec_of_content(head: bytes) -> str | None:
    """The codec of a compressed file that begins with ``head``; None for any other file."""
    return next((codec for mark, codec in _MARKS if head.startswith(mark)), None)


def open_stream(place: str | Location, is_range: bool = False) -> Any:
    """The bytes of a local path or a place in a store, decompressed, as a binary file that is to be closed.

    The codec is detected by the file's suffix or its first bytes. An uncompressed file can seek. Raises ``OSError`` as
    :func:`open` does, and ``SourceError`` for a store. With ``is_range``, for a range of bytes of a file that is not
    compressed by its name, raises ``CorruptFileError`` if it is compressed nevertheless.
    """
    file: Any = (
        open(place, "rb", buffering=0)  # noqa: SIM115
        if isinstance(place, str)
        else io.BufferedReader(_Bytes(place.open(), str(place)), REMOTE_BYTES)
    )
    named = codec_of(str(place))
    try:
        codec = named or (codec_of_content(_head(file)) if file.seekable() else None)
        if is_range and codec is not None and named is None:
            suffix = next(end for end, name in CODECS.items() if name == codec)
            reason = f"the file is compressed with {codec}, but its name does not end in {suffix}: rename it"
            raise CorruptFileError(reason, path=str(place))
        if codec is None:
            return file
        if isinstance(place, str) and file.seekable():
            import pyarrow as pa

            file.close()
            file = pa.OSFile(place)  # which closes itself
        return decompressed(file, codec)
    except BaseException:
        file.close()
        raise


def decompressed(file: IO[bytes], codec: str) -> Any:
    """The decompressed bytes of a binary file, as another that closes it."""
    import pyarrow as pa

    return _Xz(file) if codec == "xz" else pa.CompressedInputStream(pa.PythonFile(file, "r"), codec)


@contextmanager
def damage(path: str) -> Iterator[None]:
    """Errors of a codec within are ``CorruptFileError``."""
    try:
        yield
    except OSError as error:
        if error.errno is not None or isinstance(error, ParquetError):
            raise
        raise CorruptFileError(f"the compressed file cannot be read: {error}", path=path) from None  # without a name


def _head(file: Any) -> bytes:
    """The first bytes of a file at its start, which stays there."""
    head: bytes = file.read(MARK_BYTES)
    file.seek(0)
    return head


class _Xz(io.RawIOBase):
    """The decompressed bytes of an xz file; damage is an ``OSError``, as of Arrow's codecs."""

    def __init__(self, file: IO[bytes]) -> None:
        import lzma

        self._file = file
        self._bytes = lzma.LZMAFile(file)  # noqa: SIM115
        self._error = lzma.LZMAError

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        """Fill ``into``, as far as there are bytes."""
        try:
            return self._bytes.readinto(into)
        except (self._error, EOFError) as error:
            raise OSError(f"xz: {error}") from None

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._bytes.close()
            self._file.close()
        super().close()


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
