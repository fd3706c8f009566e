"""Codecs of the pages, by their number in the format. Each call makes its own codec: they are not thread-safe.

Implements the Compression document. What a page unpacks to is known from its header, which damage or malice may
have written: before anything is allocated the claim is held against the most that the codec can make of the bytes
that exist, and afterwards against what they did make.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import cramjam
import pyarrow as pa
import zstandard

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.format import zstd_library
from pqext.core.format.metadata import CompressionCodec
from pqext.core.kernels.decode.block_sizes import lz4_size, lzo_size

WRITABLE = {
    "uncompressed": CompressionCodec.UNCOMPRESSED,
    "snappy": CompressionCodec.SNAPPY,
    "gzip": CompressionCodec.GZIP,
    "brotli": CompressionCodec.BROTLI,
    "lz4_raw": CompressionCodec.LZ4_RAW,
    "zstd": CompressionCodec.ZSTD,
}
"""The codecs that pages are written in. LZO and the deprecated LZ4, whose framing is ill-defined, are read only."""

_Decompressor = Callable[[Sequence[Bytes], Sequence[int]], Iterable[Any]]

_GZIP_LEVEL = 6
_GZIP_WINDOW = 1 << 14
"""Input given to a further member at once: zlib copies what it leaves, which for tiny members would be all the rest."""
_HADOOP_EMPTY = 64
"""Stretches and blocks of Hadoop's framing that may hold nothing: no writer makes many, and each would be looked at."""
_MAGIC_OF_FRAME = b"\x04\x22\x4d\x18"


def levels(codec: str) -> tuple[int, int] | None:
    """The lowest and highest compression level of a codec of :data:`WRITABLE`, ``None`` when it has no levels."""
    if codec in ("uncompressed", "snappy"):
        return None
    return pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)


def decompress(codec: int, data: Bytes, size: int) -> Bytes:
    """``data`` decompressed to exactly ``size`` bytes; see :func:`decompress_all`."""
    return decompress_all(codec, [data], [size])[0]


def decompress_all(codec: int, pages: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
    """``pages`` decompressed, each to exactly its size, without a copy when they are not compressed.

    Raises ``UnsupportedError`` for a codec that is not known or whose library is missing and ``CorruptFileError``
    for damaged data or data that makes more or fewer bytes.
    """
    if not pages:
        return []
    if codec == CompressionCodec.UNCOMPRESSED:
        for data, size in zip(pages, sizes, strict=True):
            if len(data) != size:
                raise CorruptFileError(f"an uncompressed page holds {len(data)} bytes, its header says {size}")
        return list(pages)
    known = _DECOMPRESSORS.get(codec)
    if known is None:
        raise UnsupportedError(f"compression codec {codec} cannot be read", feature=f"codec {codec}")
    function, most = known
    _refuse_claims(codec, pages, sizes, most)
    try:
        results = [view(part) for part in function(pages, sizes)]
    except (OSError, MemoryError, zlib.error, pa.ArrowInvalid, cramjam.DecompressionError) as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    for result, size in zip(results, sizes, strict=True):
        if len(result) != size:
            raise CorruptFileError(f"a page decompresses to {len(result)} bytes, its header says {size}")
    return results


def _refuse_claims(codec: int, pages: Sequence[Any], sizes: Sequence[int], most: int) -> None:
    for data, size in zip(pages, sizes, strict=True):
        if size < 0:
            raise CorruptFileError(f"a page header claims {size} bytes of uncompressed data")
        if size > len(data) * most + 64:
            raise CorruptFileError(
                f"a page of {len(data)} bytes cannot hold the {size} bytes that its header claims for "
                f"{CompressionCodec(codec).name}"
            )


def is_known(codec: int) -> bool:
    """Can pages of this codec be read?"""
    return codec == CompressionCodec.UNCOMPRESSED or codec in _DECOMPRESSORS


def unpacker(codec: int) -> Callable[[Sequence[Any], Sequence[int]], Sequence[Any]]:
    """:func:`decompress_all` for pages of one known codec, which may be any buffers."""
    if codec == CompressionCodec.SNAPPY:
        return _snappy_all
    if codec == CompressionCodec.ZSTD:
        return _zstd_all
    return lambda pages, sizes: decompress_all(codec, [view(page) for page in pages], sizes)


def page_unpacker(codec: int) -> Callable[[Any, int], Any]:
    """For small pages of one known codec, one after another: of their bytes, and as many as they unpack to.

    What it gives is good until the next page. Raises ``CorruptFileError`` for a page that is damaged.
    """
    if codec == CompressionCodec.ZSTD:
        return lambda page, size: _zstd_all([page], [size])[0]
    if codec != CompressionCodec.SNAPPY:
        return lambda page, size: decompress_all(codec, [view(page)], [size])[0]
    room, unpack = memoryview(bytearray(_SMALL)), cramjam.snappy.decompress_raw_into

    def small_snappy(page: Any, size: int) -> Any:
        if size > _SMALL:
            return _snappy_all([page], [size])[0]
        part = room[:size]
        try:
            if size and unpack(page, part) != size:
                raise CorruptFileError(f"a page does not decompress to {size} bytes")
        except cramjam.DecompressionError as error:
            raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
        return part

    return small_snappy


def _snappy_all(pages: Sequence[Any], sizes: Sequence[int]) -> Sequence[Any]:
    if len(sizes) == 1 and sizes[0] < _SMALL:
        return [_small_snappy(pages[0], sizes[0])]
    _refuse_claims(CompressionCodec.SNAPPY, pages, sizes, _DECOMPRESSORS[CompressionCodec.SNAPPY][1])
    whole, at, parts = allocate(sum(sizes)).data, 0, []
    unpack = cramjam.snappy.decompress_raw_into
    try:
        for data, size in zip(pages, sizes, strict=True):
            parts.append(whole[at : at + size])
            if size and unpack(data, parts[-1]) != size:
                raise CorruptFileError(f"a page does not decompress to {size} bytes")
            at += size
    except cramjam.DecompressionError as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    return parts


def _small_snappy(data: Any, size: int) -> Any:
    """One page; its claim is too small to be worth a look before it is unpacked."""
    room = bytearray(size)
    try:
        if size and cramjam.snappy.decompress_raw_into(data, room) != size:
            raise CorruptFileError(f"a page does not decompress to {size} bytes")
    except cramjam.DecompressionError as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    return room


def compress(codec: int, data: Any, level: int | None = None) -> Bytes:
    """``data`` compressed, at ``level`` where the codec has levels; ``None`` is the codec's default."""
    return compressor(codec, level)(data)


def compressor(codec: int, level: int | None = None) -> Callable[[Any], Bytes]:
    """A function that does so again and again, on one thread at a time."""
    if codec == CompressionCodec.UNCOMPRESSED:
        return view
    if codec == CompressionCodec.GZIP and level is None:
        level = _GZIP_LEVEL
    arrow = pa.Codec(CompressionCodec(codec).name.lower(), compression_level=level)
    return lambda data: view(arrow.compress(data))


_SMALL = 1 << 16
"""Pages of fewer bytes are compressed and decompressed into Python's memory, which costs less than Arrow's buffers."""


def page_compressor(codec: int, level: int | None = None) -> Callable[[Any], Any]:
    """As :func:`compressor`, for memoryviews and to any buffer."""
    if codec == CompressionCodec.GZIP and level is None:
        level = _GZIP_LEVEL
    if codec == CompressionCodec.ZSTD:  # whose context the codec in Arrow makes anew for each page
        level = pa.Codec.default_compression_level("zstd") if level is None else level
        return zstandard.ZstdCompressor(level=level).compress
    held = pa.Codec(CompressionCodec(codec).name.lower(), compression_level=level).compress
    return lambda data: held(data, asbytes=len(data) < _SMALL)


def _each(function: Callable[[Any, int], Any]) -> _Decompressor:
    """Page after page; one of no bytes is not looked at."""
    return lambda pages, sizes: [
        function(data, size) if size else EMPTY for data, size in zip(pages, sizes, strict=True)
    ]


def _snappy(pages: Sequence[Any], sizes: Sequence[int]) -> Iterator[Any]:
    # Several times quicker than the decompressor in Arrow, in memory that Arrow keeps.
    left: Any = allocate(sum(sizes))
    for data, size in zip(pages, sizes, strict=True):
        part, left = left[:size], left[size:]
        made = cramjam.snappy.decompress_raw_into(data, part) if size else 0
        yield part if made == size else part[:made]


def _zstd_all(pages: Sequence[Any], sizes: Sequence[int]) -> Sequence[Any]:
    _refuse_claims(CompressionCodec.ZSTD, pages, sizes, _DECOMPRESSORS[CompressionCodec.ZSTD][1])
    made = _zstd_at_once(pages, sizes)
    return made or decompress_all(CompressionCodec.ZSTD, [view(page) for page in pages], sizes)


def _zstd(pages: Sequence[Bytes], sizes: Sequence[int]) -> Iterable[Any]:
    made = _zstd_at_once(pages, sizes)
    if made is not None:
        return made
    codec = pa.Codec("zstd")
    return (
        codec.decompress(data, decompressed_size=size) if size else EMPTY
        for data, size in zip(pages, sizes, strict=True)
    )


def _zstd_at_once(pages: Sequence[Any], sizes: Sequence[int]) -> list[Any] | None:
    """All pages by one call that leaves the interpreter; ``None`` where it cannot, or does not say what is wrong."""
    context = zstd_library.context()
    if context is None:
        return None
    room = allocate(sum(sizes))
    if context.unpack_all(pages, sizes, room) >= 0:
        return None
    whole, ends = room.data, accumulate(sizes)
    return [whole[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _gzip(data: Any, size: int) -> Any:
    """All members of the stream, one after another; zeros may pad the end."""
    parts: list[bytes] = []
    at = made = 0
    window = len(data)
    while at < len(data) and (data[at] or data[at:].any()):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = data[at : at + window]
            if not len(piece):
                raise CorruptFileError("a gzip member is cut short")
            parts.append(member.decompress(piece, size - made + 1))
            made += len(parts[-1])
            if made > size:
                raise CorruptFileError(f"a gzip page makes more than the {size} bytes of its header")
            at += len(piece) - len(member.unused_data)
        window = _GZIP_WINDOW
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _stream(name: str) -> Callable[[Any, int], Any]:
    # A stream tells how much it made, which the codec called at once does not.
    def read(data: Any, size: int) -> Any:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
            return stream.read(size + 1)

    return read


def _lz4_raw(data: Any, size: int) -> Any:
    found = lz4_size(data)
    if found != size:
        raise CorruptFileError(f"an LZ4 block makes {found} bytes, its page header says {size}")
    return pa.Codec("lz4_raw").decompress(data, decompressed_size=size)


def _lz4(data: Any, size: int) -> Any:
    """The deprecated LZ4: blocks in Hadoop's framing, one bare block, or the LZ4 frame of some old writers."""
    if bytes(data[:4]) == _MAGIC_OF_FRAME:
        return _stream("lz4")(data, size)

    def block(part: Any, room: int) -> Any:
        found = lz4_size(part)
        if not 0 <= found <= room:
            raise CorruptFileError(f"an LZ4 block makes {found} bytes where {room} are left")
        return pa.Codec("lz4_raw").decompress(part, decompressed_size=found)

    framed = _hadoop(data, size, block)
    return framed if framed is not None else _lz4_raw(data, size)


def _lzo(data: Any, size: int) -> Any:
    """LZO1X: blocks in Hadoop's framing as parquet-mr writes them, or one bare block."""
    try:
        from lzallright import LZOCompressor, LZOError
    except ImportError:
        raise UnsupportedError(
            "the page is compressed with LZO, which needs the package lzallright: pip install 'pqext[lzo]'",
            feature="codec LZO",
        ) from None

    def block(part: Any, room: int) -> Any:
        found = lzo_size(part)
        if not 0 <= found <= room:  # the library takes its size for a guess and makes whatever there is
            raise CorruptFileError(f"an LZO block makes {found} bytes where {room} are left")
        try:
            return LZOCompressor.decompress(part.tobytes(), found)
        except LZOError as error:
            raise CorruptFileError(f"an LZO block is damaged: {error}") from None

    framed = _hadoop(data, size, block)
    return framed if framed is not None else block(data, size)


def _hadoop(data: Any, size: int, block: Callable[[Any, int], Any]) -> bytes | None:
    """Hadoop's framing taken off: the size of what follows, then blocks behind their lengths, all big-endian.

    ``None`` when the bytes are not framed so.
    """
    parts: list[Any] = []
    at = made = empty = 0
    while at < len(data):
        goal = made + int.from_bytes(data[at : at + 4], "big")
        at += 4
        empty += goal == made
        if goal > size or empty > _HADOOP_EMPTY:
            return None
        while made < goal:
            length = int.from_bytes(data[at : at + 4], "big")
            at += 4
            if not 0 < length <= len(data) - at:
                return None
            try:
                parts.append(block(data[at : at + length], goal - made))
            except (CorruptFileError, OSError):
                return None
            made += len(parts[-1])
            at += length
            empty += not parts[-1]
            if empty > _HADOOP_EMPTY:
                return None
        if made != goal:
            return None
    return b"".join(parts) if made == size else None


_DECOMPRESSORS: dict[int, tuple[_Decompressor, int]] = {
    # The number is the most that one byte can stand for: a copy of 64 in 3 bytes, a 258-byte match in 2 bits,
    # runs of 255 an extra byte, blocks of 128 KiB in 4 bytes, copies of 16 MiB in few more.
    CompressionCodec.SNAPPY: (_snappy, 22),
    CompressionCodec.GZIP: (_each(_gzip), 1032),
    CompressionCodec.LZO: (_each(_lzo), 255),
    CompressionCodec.BROTLI: (_each(_stream("brotli")), 1 << 22),
    CompressionCodec.LZ4: (_each(_lz4), 255),
    CompressionCodec.ZSTD: (_zstd, 1 << 15),
    CompressionCodec.LZ4_RAW: (_each(_lz4_raw), 255),
}
