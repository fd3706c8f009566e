"""Compress and decompress pages. Codecs are identified by their numbers in the format.

Implements the Compression document. Each call uses its own codec, since codecs are not thread-safe. The decompressed
size in a page header may be corrupt or malicious. Before memory is allocated, it is compared with the codec's maximum
compression ratio for the available bytes; afterwards it is compared with the size of the result.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import cramjam
import pyarrow as pa
import zstandard

from pqext.core.base.buffers import EMPTY, Bytes, allocate, view
from pqext.core.base.errors import CorruptFileError, UnsupportedError
from pqext.core.base.threads import ThreadLocalValue
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
"""Codecs for writing pages.

LZO, and the deprecated LZ4 with its ill-defined framing, can only be read.
"""

_Decompressor = Callable[[Sequence[Bytes], Sequence[int]], Iterable[Any]]

_GZIP_LEVEL = 6
_GZIP_WINDOW = 1 << 14
"""Input size per call for members after the first. zlib copies unused input, which would be all the rest for tiny
members.
"""
_HADOOP_EMPTY = 64
"""Maximum number of empty chunks and blocks in Hadoop's framing.

No writer produces many, and each takes time to read.
"""
_LZ4_FRAME_MAGIC = b"\x04\x22\x4d\x18"

_zstd_contexts = ThreadLocalValue(zstandard.ZstdDecompressor)


def levels(codec: str) -> tuple[int, int] | None:
    """Return the lowest and highest compression level of a codec of :data:`WRITABLE`; None if it has no levels."""
    if codec in ("uncompressed", "snappy"):
        return None
    return pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)


def decompress(codec: int, data: Bytes, size: int) -> Bytes:
    """Decompress ``data`` to exactly ``size`` bytes, like :func:`decompress_all`."""
    return decompress_all(codec, [data], [size])[0]


def decompress_all(codec: int, pages: Sequence[Bytes], sizes: Sequence[int]) -> list[Bytes]:
    """Decompress ``pages``, each to exactly its size. Uncompressed pages are returned without a copy.

    Raises ``UnsupportedError`` for an unknown codec or a missing library, and ``CorruptFileError`` if the data is
    corrupt or its size differs.
    """
    if not pages:
        return []
    if codec == CompressionCodec.UNCOMPRESSED:
        for data, size in zip(pages, sizes, strict=True):
            if len(data) != size:
                raise CorruptFileError(f"an uncompressed page has {len(data)} bytes, but its header states {size}")
        return list(pages)
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise UnsupportedError(f"unsupported compression codec {codec}", feature=f"codec {codec}")
    function, max_ratio = decompressor
    _check_sizes(codec, pages, sizes, max_ratio)
    try:
        results = [view(part) for part in function(pages, sizes)]
    except (OSError, MemoryError, zlib.error, pa.ArrowInvalid, cramjam.DecompressionError) as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    for result, size in zip(results, sizes, strict=True):
        if len(result) != size:
            raise CorruptFileError(f"a page decompresses to {len(result)} bytes, but its header states {size}")
    return results


def _check_sizes(codec: int, pages: Sequence[Any], sizes: Sequence[int], max_ratio: int) -> None:
    for data, size in zip(pages, sizes, strict=True):
        if size < 0:
            raise CorruptFileError(f"a page header states a negative uncompressed size: {size}")
        if size > len(data) * max_ratio + 64:
            raise CorruptFileError(
                f"a page of {len(data)} bytes cannot decompress to the {size} bytes that its header states for "
                f"{CompressionCodec(codec).name}"
            )


def is_known(codec: int) -> bool:
    """Return whether pages of this codec can be read."""
    return codec == CompressionCodec.UNCOMPRESSED or codec in _DECOMPRESSORS


def unpacker(codec: int) -> Callable[[Sequence[Any], Sequence[int]], Sequence[Any]]:
    """Return a function like :func:`decompress_all` for pages of a supported codec. It accepts any buffers."""
    if codec == CompressionCodec.SNAPPY:
        return _snappy_all
    if codec == CompressionCodec.ZSTD:
        return _zstd_all
    return lambda pages, sizes: decompress_all(codec, [view(page) for page in pages], sizes)


def page_unpacker(codec: int) -> Callable[[Any, int], Any]:
    """Return a decompressor for small pages of a supported codec. Its arguments are a page and its decompressed size.

    Its result is valid until the next call. It raises ``CorruptFileError`` for a corrupt page.
    """
    if codec == CompressionCodec.ZSTD:
        return lambda page, size: _zstd_all([page], [size])[0]
    if codec != CompressionCodec.SNAPPY:
        return lambda page, size: decompress_all(codec, [view(page)], [size])[0]
    buffer, unpack = memoryview(bytearray(_SMALL)), cramjam.snappy.decompress_raw_into

    def small_snappy(page: Any, size: int) -> Any:
        if size > _SMALL:
            return _snappy_all([page], [size])[0]
        part = buffer[:size]
        try:
            if size and unpack(page, part) != size:
                raise CorruptFileError(f"a page does not decompress to the {size} bytes that its header states")
        except cramjam.DecompressionError as error:
            raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
        return part

    return small_snappy


def _snappy_all(pages: Sequence[Any], sizes: Sequence[int]) -> Sequence[Any]:
    if len(sizes) == 1 and sizes[0] < _SMALL:
        return [_small_snappy(pages[0], sizes[0])]
    _check_sizes(CompressionCodec.SNAPPY, pages, sizes, _DECOMPRESSORS[CompressionCodec.SNAPPY][1])
    buffer, at, parts = allocate(sum(sizes)).data, 0, []
    unpack = cramjam.snappy.decompress_raw_into
    try:
        for data, size in zip(pages, sizes, strict=True):
            parts.append(buffer[at : at + size])
            if size and unpack(data, parts[-1]) != size:
                raise CorruptFileError(f"a page does not decompress to the {size} bytes that its header states")
            at += size
    except cramjam.DecompressionError as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    return parts


def _small_snappy(data: Any, size: int) -> Any:
    """Decompress one Snappy page. The caller has checked that the declared size is small."""
    buffer = bytearray(size)
    try:
        if size and cramjam.snappy.decompress_raw_into(data, buffer) != size:
            raise CorruptFileError(f"a page does not decompress to the {size} bytes that its header states")
    except cramjam.DecompressionError as error:
        raise CorruptFileError(f"a page cannot be decompressed: {error}") from error
    return buffer


def compress(codec: int, data: Any, level: int | None = None) -> Bytes:
    """Compress ``data``. ``level`` is the compression level if the codec has levels; None selects the default level."""
    return compressor(codec, level)(data)


def compressor(codec: int, level: int | None = None) -> Callable[[Any], Bytes]:
    """Return a function that compresses one buffer per call. Only one thread may use the function at a time."""
    if codec == CompressionCodec.UNCOMPRESSED:
        return view
    if codec == CompressionCodec.GZIP and level is None:
        level = _GZIP_LEVEL
    arrow = pa.Codec(CompressionCodec(codec).name.lower(), compression_level=level)
    return lambda data: view(arrow.compress(data))


_SMALL = 1 << 16
"""Maximum size of pages that are (de)compressed into Python memory, which costs less than Arrow's buffers."""


def page_compressor(codec: int, level: int | None = None) -> Callable[[Any], Any]:
    """Return a compressor like :func:`compressor`, for memoryviews. Its result may be any buffer."""
    if codec == CompressionCodec.GZIP and level is None:
        level = _GZIP_LEVEL
    if codec == CompressionCodec.ZSTD:  # Arrow's codec creates a new context for each page
        level = pa.Codec.default_compression_level("zstd") if level is None else level
        return zstandard.ZstdCompressor(level=level).compress
    compress_page = pa.Codec(CompressionCodec(codec).name.lower(), compression_level=level).compress
    return lambda data: compress_page(data, asbytes=len(data) < _SMALL)


def _page_decompressor(function: Callable[[Any, int], Any]) -> _Decompressor:
    """Return a decompressor that applies ``function`` to each page that is not empty."""
    return lambda pages, sizes: [
        function(data, size) if size else EMPTY for data, size in zip(pages, sizes, strict=True)
    ]


def _snappy(pages: Sequence[Any], sizes: Sequence[int]) -> Iterator[Any]:
    # This is several times faster than Arrow's decompressor. The memory comes from Arrow's pool.
    rest: Any = allocate(sum(sizes))
    for data, size in zip(pages, sizes, strict=True):
        part, rest = rest[:size], rest[size:]
        count = cramjam.snappy.decompress_raw_into(data, part) if size else 0
        yield part if count == size else part[:count]


def _zstd_all(pages: Sequence[Any], sizes: Sequence[int]) -> Sequence[Any]:
    _check_sizes(CompressionCodec.ZSTD, pages, sizes, _DECOMPRESSORS[CompressionCodec.ZSTD][1])
    results = _zstd_frames(pages, sizes)
    return results or decompress_all(CompressionCodec.ZSTD, [view(page) for page in pages], sizes)


def _zstd(pages: Sequence[Bytes], sizes: Sequence[int]) -> Iterable[Any]:
    results = _zstd_frames(pages, sizes)
    if results is not None:
        return results
    codec = pa.Codec("zstd")
    return (
        codec.decompress(data, decompressed_size=size) if size else EMPTY
        for data, size in zip(pages, sizes, strict=True)
    )


def _zstd_frames(pages: Sequence[Any], sizes: Sequence[int]) -> list[Any] | None:
    """Decompress pages, each a single zstd frame, with the thread's decompression context.

    Return None if Arrow must decompress them or report the error.
    """
    decompress_frame, results = _zstd_contexts.get().decompress, []
    try:
        for data, size in zip(pages, sizes, strict=True):
            # The size in the frame would be allocated; it is -1 if the frame does not contain it.
            if size and zstandard.frame_content_size(data) not in (size, -1):
                return None
            result = decompress_frame(data, max_output_size=size, allow_extra_data=False) if size else b""
            if len(result) != size:
                return None
            results.append(result)
    except zstandard.ZstdError:
        return None
    return results


def _gzip(data: Any, size: int) -> Any:
    """Decompress all members of the stream, which may be padded with zeros."""
    parts: list[bytes] = []
    at = total = 0
    window = len(data)
    while at < len(data) and (data[at] or data[at:].any()):
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            chunk = data[at : at + window]
            if not len(chunk):
                raise CorruptFileError("a gzip member is truncated")
            parts.append(member.decompress(chunk, size - total + 1))
            total += len(parts[-1])
            if total > size:
                raise CorruptFileError(f"a gzip page decompresses to more than the {size} bytes that its header states")
            at += len(chunk) - len(member.unused_data)
        window = _GZIP_WINDOW
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _stream(name: str) -> Callable[[Any, int], Any]:
    # A stream returns the actual number of bytes, unlike a one-shot call.
    def read(data: Any, size: int) -> Any:
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
            return stream.read(size + 1)

    return read


def _lz4_raw(data: Any, size: int) -> Any:
    block_size = lz4_size(data)
    if block_size < 0:
        raise CorruptFileError("an LZ4 block is corrupt")
    if block_size != size:
        raise CorruptFileError(f"an LZ4 block decompresses to {block_size} bytes, but its page header states {size}")
    return pa.Codec("lz4_raw").decompress(data, decompressed_size=size)


def _lz4(data: Any, size: int) -> Any:
    """Decompress the deprecated LZ4 codec: blocks in Hadoop's framing, one bare block, or the LZ4 frame of old writers.
    """
    if bytes(data[:4]) == _LZ4_FRAME_MAGIC:
        return _stream("lz4")(data, size)

    def block(part: Any, max_size: int) -> Any:
        block_size = lz4_size(part)
        _check_block("LZ4", block_size, max_size)
        return pa.Codec("lz4_raw").decompress(part, decompressed_size=block_size)

    unframed = _hadoop(data, size, block)
    return unframed if unframed is not None else _lz4_raw(data, size)


def _lzo(data: Any, size: int) -> Any:
    """Decompress LZO1X: blocks in Hadoop's framing as written by parquet-mr, or one bare block."""
    try:
        from lzallright import LZOCompressor, LZOError
    except ImportError:
        raise UnsupportedError(
            "LZO pages need the package lzallright: pip install 'pqext[lzo]'",
            feature="codec LZO",
        ) from None

    def block(part: Any, max_size: int) -> Any:
        block_size = lzo_size(part)
        _check_block("LZO", block_size, max_size)  # the library treats the size as a hint and decompresses everything
        try:
            return LZOCompressor.decompress(part.tobytes(), block_size)
        except LZOError as error:
            raise CorruptFileError(f"an LZO block is corrupt: {error}") from None

    unframed = _hadoop(data, size, block)
    return unframed if unframed is not None else block(data, size)


def _check_block(codec: str, block_size: int, max_size: int) -> None:
    """Raise ``CorruptFileError`` if ``block_size`` is negative, which means a corrupt block, or exceeds ``max_size``.
    """
    if block_size < 0:
        raise CorruptFileError(f"an {codec} block is corrupt")
    if block_size > max_size:
        raise CorruptFileError(
            f"an {codec} block decompresses to {block_size} bytes, but at most {max_size} are expected"
        )


def _hadoop(data: Any, size: int, block: Callable[[Any, int], Any]) -> bytes | None:
    """Decompress Hadoop's framing: the decompressed size, then length-prefixed blocks, all big-endian.

    Return None if the bytes do not have this framing, or do not decompress to ``size`` bytes.
    """
    parts: list[Any] = []
    at = total = empty = 0
    while at < len(data):
        goal = total + int.from_bytes(data[at : at + 4], "big")
        at += 4
        empty += goal == total
        if goal > size or empty > _HADOOP_EMPTY:
            return None
        while total < goal:
            length = int.from_bytes(data[at : at + 4], "big")
            at += 4
            if not 0 < length <= len(data) - at:
                return None
            try:
                parts.append(block(data[at : at + length], goal - total))
            except (CorruptFileError, OSError):
                return None
            total += len(parts[-1])
            at += length
            empty += not parts[-1]
            if empty > _HADOOP_EMPTY:
                return None
        if total != goal:
            return None
    return b"".join(parts) if total == size else None


_DECOMPRESSORS: dict[int, tuple[_Decompressor, int]] = {
    # The number is the maximum compression ratio: 64 bytes copied by 3, 258 bytes by 2 bits, 255 bytes per extra byte,
    # blocks of 128 KiB by 4 bytes, copies of 16 MiB by few more.
    CompressionCodec.SNAPPY: (_snappy, 22),
    CompressionCodec.GZIP: (_page_decompressor(_gzip), 1032),
    CompressionCodec.LZO: (_page_decompressor(_lzo), 255),
    CompressionCodec.BROTLI: (_page_decompressor(_stream("brotli")), 1 << 22),
    CompressionCodec.LZ4: (_page_decompressor(_lz4), 255),
    CompressionCodec.ZSTD: (_zstd, 1 << 15),
    CompressionCodec.LZ4_RAW: (_page_decompressor(_lz4_raw), 255),
}
