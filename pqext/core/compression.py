"""Codecs of the pages, by their number in the format. Each call makes its own codec: they are not thread-safe."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pqext.core.buffers import EMPTY, Bytes, view
from pqext.core.errors import CorruptFileError, UnsupportedError
from pqext.core.metadata import CompressionCodec

_ARROW_NAME = {CompressionCodec.SNAPPY: "snappy", CompressionCodec.ZSTD: "zstd"}

WRITABLE = {
    "uncompressed": CompressionCodec.UNCOMPRESSED,
    "snappy": CompressionCodec.SNAPPY,
    "zstd": CompressionCodec.ZSTD,
}


def decompress(codec: int, data: Any, size: int) -> Bytes:
    """``data`` decompressed to exactly ``size`` bytes, without a copy when it is not compressed.

    Raises ``UnsupportedError`` for a codec that is not known and ``CorruptFileError`` for damaged data.
    """
    if codec == CompressionCodec.UNCOMPRESSED:
        if len(data) != size:
            raise CorruptFileError(f"an uncompressed page holds {len(data)} bytes, its header says {size}")
        return view(data)
    if size == 0:
        return EMPTY
    try:
        return view(_codec(codec).decompress(data, decompressed_size=size))
    except (OSError, ValueError, MemoryError) as error:
        if isinstance(error, UnsupportedError):
            raise
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error


def compress(codec: int, data: Any) -> Bytes:
    """``data`` compressed."""
    if codec == CompressionCodec.UNCOMPRESSED:
        return view(data)
    return view(_codec(codec).compress(data))


def _codec(codec: int) -> pa.Codec:
    name = _ARROW_NAME.get(codec)  # type: ignore[call-overload]
    if name is None:
        known = codec in CompressionCodec.__members__.values()
        label = CompressionCodec(codec).name if known else str(codec)
        raise UnsupportedError(f"compression codec {label} cannot be read", feature=f"codec {label}")
    return pa.Codec(name)
