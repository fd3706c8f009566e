"""Split-block Bloom filters: build, store, read and query them.

Implements "Parquet Bloom Filter": the XXH64 hash (seed 0) of a value's PLAIN bytes (BYTE_ARRAY without its length)
selects a block of 256 bits and one bit in each of its eight words. A filter reports a value as "absent" or "possibly
present".
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, numbers, view
from pqext.core.base.errors import CorruptFileError, LimitError
from pqext.core.base.limits import Limits
from pqext.core.base.lru import LRU
from pqext.core.encryption.modules import LENGTH_BYTES, Module, module_length
from pqext.core.format.metadata import (
    BloomFilterAlgorithm,
    BloomFilterCompression,
    BloomFilterHash,
    BloomFilterHeader,
    SplitBlockAlgorithm,
    Type,
    Uncompressed,
    XxHash,
)
from pqext.core.format.predicate import Value
from pqext.core.format.thrift import decode, encode
from pqext.core.io.source import Source
from pqext.core.kernels.hash import xxh64
from pqext.core.schema.orders import is_float
from pqext.core.schema.types.logical import LeafType

if TYPE_CHECKING:
    from pqext.core.encryption.reading import ChunkDecryptor
    from pqext.core.encryption.writing import ChunkEncryptor

BLOCK_BYTES = 32
HEADER_BYTES = 64
"""Sufficient number of bytes for a header in any encoding of its small integers, without unknown fields."""

Hashes = NDArray[np.uint64]
KEPT_BYTES = 16 << 20
"""Maximum total size of the filters that a file caches. The last filter is cached even if it is larger."""

_Key = tuple[int, int]


class SplitBlockFilter:
    """Bloom filter over the values of one column chunk. ``words`` are its 32-bit words, eight per block."""

    def __init__(self, leaf: LeafType, words: NDArray[np.uint32]) -> None:
        if len(words) < 8 or len(words) % 8:
            raise ValueError(f"the number of words must be a positive multiple of 8, not {len(words)}")
        self.leaf = leaf
        self._words = np.ascontiguousarray(words)

    @property
    def num_bytes(self) -> int:
        """Size of the bitset in bytes."""
        return self._words.nbytes

    @property
    def bitset(self) -> bytes:
        """Stored bitset."""
        return self._words.astype("<u4", copy=False).tobytes()

    def contains_hash(self, hash_value: int) -> bool:
        """Return whether a value with this XXH64 hash may have been inserted. False is definitive."""
        return bool(self.contains_hashes(np.array([hash_value], np.uint64))[0])

    def contains_hashes(self, hashes: Hashes) -> NDArray[np.uint8]:
        """Return, for each XXH64 hash, 1 if a value with this hash may have been inserted, otherwise 0.

        Only 0 is definitive.
        """
        flags = np.empty(len(hashes), np.uint8)
        xxh64.contains_hashes(hashes, self._words, flags)
        return flags

    def might_contain(self, value: Value) -> bool:
        """Return whether the chunk may contain ``value``, which is in comparison form. False is definitive.

        Return True if the stored representations of the value are unknown.
        """
        stored = plain_representations(self.leaf, value)
        return stored is None or any(self.contains_hash(xxhash.xxh64_intdigest(raw)) for raw in stored)

    @property
    def is_empty(self) -> bool:
        """Whether no value was inserted."""
        return not self._words.any()

    def __repr__(self) -> str:
        return f"<split-block Bloom filter of {self.num_bytes} bytes>"


class _UnknownRepresentationError(Exception):
    """Signal that the stored representations of a value are unknown, so a filter cannot exclude the value."""


def plain_representations(leaf: LeafType, value: Value) -> list[bytes] | None:
    """Return every PLAIN representation of ``value`` in a column of ``leaf``.

    Return an empty list if the column cannot contain the value, and None if its representations are unknown: different
    byte strings may represent the same BYTE_ARRAY decimal, INT96 timestamp, interval or geometry.
    """
    if value != value or isinstance(value, bool) or leaf.physical in (Type.BOOLEAN, Type.INT96):
        return None
    if leaf.logical is not None and leaf.member not in _ONE_FORM:
        return None
    try:
        if leaf.physical in (Type.FLOAT, Type.DOUBLE) or leaf.member == "FLOAT16":
            return _float_representations(leaf, value)
        if leaf.physical in (Type.INT32, Type.INT64) or leaf.member == "DECIMAL":
            return _integer_representations(leaf, value)
    except _UnknownRepresentationError:
        return None
    return [value] if isinstance(value, bytes) else None


_ONE_FORM = frozenset(
    {"STRING", "ENUM", "JSON", "BSON", "UUID", "INTEGER", "DECIMAL", "DATE", "TIME", "TIMESTAMP", "FLOAT16"}
)
_FLOATS = {2: "<e", 4: "<f", 8: "<d"}
_NANOSECONDS = {"MILLIS": 1_000_000, "MICROS": 1_000, "NANOS": 1}


def _float_representations(leaf: LeafType, value: Value) -> list[bytes]:
    """Return the bytes of the nearest float, because a comparison may round the value.

    For a zero, return both zeros.
    """
    if isinstance(value, bytes) or (not isinstance(value, float) and float(value) != value):
        raise _UnknownRepresentationError
    code = _FLOATS[leaf.width or 8]
    try:
        stored = struct.pack(code, float(value))
    except OverflowError:
        stored = struct.pack(code, math.copysign(math.inf, value))
    return [struct.pack(code, zero) for zero in (0.0, -0.0)] if struct.unpack(code, stored)[0] == 0 else [stored]


def _integer_representations(leaf: LeafType, value: Value) -> list[bytes]:
    """Return the bytes of the stored integer, or an empty list if the value is too large or finer than the unit."""
    if leaf.physical == Type.BYTE_ARRAY:
        raise _UnknownRepresentationError  # leading zeros are allowed
    number, exponent = _decimal_parts(value)
    divisor = 1
    if leaf.logical is not None and leaf.logical.DECIMAL is not None:
        exponent += leaf.logical.DECIMAL.scale
    timed = (leaf.logical.TIME or leaf.logical.TIMESTAMP) if leaf.logical is not None else None
    if timed is not None:
        if timed.unit.member not in _NANOSECONDS:
            raise _UnknownRepresentationError
        divisor = _NANOSECONDS[timed.unit.member]
    if abs(exponent) > 4096:
        raise _UnknownRepresentationError
    number, divisor = number * 10 ** max(exponent, 0), divisor * 10 ** max(-exponent, 0)
    if number % divisor:
        return []
    width, decimal = leaf.width or 8, leaf.physical == Type.FIXED_LEN_BYTE_ARRAY
    try:
        return [(number // divisor).to_bytes(width, "big" if decimal else "little", signed=leaf.order == "signed")]
    except OverflowError:
        return []


def _decimal_parts(value: Value) -> tuple[int, int]:
    """Split ``value`` into ``number`` and ``exponent``, so that it equals ``number * 10 ** exponent``.

    Raises :exc:`_UnknownRepresentationError` for other values.
    """
    if isinstance(value, int):
        return value, 0
    if isinstance(value, Decimal) and value.is_finite():
        sign, digits, exponent = value.as_tuple()
        number = int("".join(map(str, digits)) or "0") if len(digits) < 4096 else None
        if number is not None and isinstance(exponent, int):
            return (-number if sign else number), exponent
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value), 0
    raise _UnknownRepresentationError  # beyond this, many integers may equal one float


def hash_values(physical: pa.Array) -> Hashes:
    """Return the XXH64 of each dense stored value (see ``core.schema.types.leaf``)."""
    count, start = len(physical), physical.offset
    hashes = np.empty(count, np.uint64)
    held = physical.buffers()
    if not count:
        return hashes
    if pa.types.is_binary(physical.type):
        offsets = numbers(held[1], np.int32, start, count + 1)
        xxh64.hash_byte_arrays(view(held[2]) if held[2] is not None else EMPTY, offsets, hashes)
    else:
        width = physical.type.byte_width
        xxh64.hash_fixed(view(held[1])[start * width : (start + count) * width], width, hashes)
    return hashes


def false_positive_rate(bits: float) -> float:
    """Return the false-positive rate of a filter with ``bits`` bits per inserted value.

    The number of values in a block follows a Poisson distribution. In a block with ``n`` values, a given bit of each of
    the eight words is set with probability ``1 - (31 / 32) ** n``.
    """
    mean = 8 * BLOCK_BYTES / bits
    share, total, n = math.exp(-mean), 0.0, 0
    while n < mean or share > 1e-18:
        total += share * (1 - (31 / 32) ** n) ** 8
        n += 1
        share *= mean / n
    return total


@lru_cache
def _bits_per_value(fpp: float) -> float:
    """Return the number of bits per inserted value for which :func:`false_positive_rate` is ``fpp``."""
    low, high = 0.5, 4096.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if false_positive_rate(middle) <= fpp else (middle, high)
    return high


def filter_size(ndv: int, fpp: float, max_bytes: int) -> int:
    """Return the size in bytes of a filter for ``ndv`` distinct values with false-positive rate ``fpp``.

    The size is between one block and ``max_bytes``. It is a power of two, so that the filter can be folded.
    """
    needed = math.ceil(max(ndv, 1) * _bits_per_value(fpp) / 8)
    largest = 1 << (max_bytes.bit_length() - 1)
    return max(BLOCK_BYTES, min(largest, 1 << (needed - 1).bit_length()))


def build(leaf: LeafType, physical: pa.Array, *, fpp: float, ndv: int | None, max_bytes: int) -> SplitBlockFilter:
    """Build the filter of a chunk's dense stored values, or of its dictionary.

    Without ``ndv`` the filter is sized as if all values were distinct. The number of set bits then estimates the number
    of distinct values, and the filter is folded to the size required for them. A floating-point zero inserts both
    zeros, for readers that look up only one of them.
    """
    words = np.zeros(filter_size(len(physical) if ndv is None else ndv, fpp, max_bytes) // 4, np.uint32)
    xxh64.insert_hashes(hash_values(physical), words)
    if is_float(leaf) and SplitBlockFilter(leaf, words).might_contain(0.0):
        zeros = [xxhash.xxh64_intdigest(raw) for raw in plain_representations(leaf, 0.0) or ()]
        xxh64.insert_hashes(np.array(zeros, np.uint64), words)
    if ndv is None:
        target = filter_size(_estimate_distinct(words), fpp, max_bytes)
        while words.nbytes > target:
            words = fold(words)
    return SplitBlockFilter(leaf, words)


def fold(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Halve the number of blocks. The result equals a filter of half the size that is built from the same values."""
    pairs = words.reshape(-1, 2, 8)
    return (pairs[:, 0] | pairs[:, 1]).reshape(-1)


def _estimate_distinct(words: NDArray[np.uint32]) -> int:
    """Estimate the number of distinct hashes. Each hash sets one bit in each of the eight words of a block."""
    places = len(words) * 4  # bits of one word position in all blocks
    filled = xxh64.count_bits(words) / (len(words) * 32)
    return places * 64 if filled >= 1 else math.ceil(-places * math.log1p(-filled))


def serialise(bloom: SplitBlockFilter, encryptor: ChunkEncryptor | None = None) -> bytes:
    """Serialise header and bitset. Each is encrypted separately if there is an ``encryptor``."""
    header = encode(
        BloomFilterHeader(
            numBytes=bloom.num_bytes,
            algorithm=BloomFilterAlgorithm(BLOCK=SplitBlockAlgorithm()),
            hash=BloomFilterHash(XXHASH=XxHash()),
            compression=BloomFilterCompression(UNCOMPRESSED=Uncompressed()),
        )
    )
    if encryptor is None:
        return header + bloom.bitset
    return bytes(encryptor.encrypt(Module.BLOOM_FILTER_HEADER, header)) + bytes(
        encryptor.encrypt(Module.BLOOM_FILTER_BITSET, bloom.bitset)
    )


def read(
    source: Source, offset: int, length: int | None, leaf: LeafType, limits: Limits,
    decryptor: ChunkDecryptor | None = None,
) -> SplitBlockFilter | None:
    """Read the filter at ``offset``. ``length`` includes its header, and is None if the file does not record it.

    Return None if algorithm, hash or compression is unknown. Raises ``CorruptFileError`` if the filter is corrupt or
    extends beyond the file, and ``LimitError`` if it exceeds ``bloom_filter_bytes``.
    """
    if offset < 0 or (length is not None and (length <= 0 or offset > source.size - length)):
        message = f"a Bloom filter of {length} bytes at offset {offset} extends beyond the file"
        raise CorruptFileError(message, offset=offset)
    if length is not None and length > limits.bloom_filter_bytes + limits.page_header_bytes:
        raise _limit_error(length, limits)
    if decryptor is not None:
        return _read_encrypted(source, offset, leaf, limits, decryptor)
    room = source.size - offset
    window = source.read(offset, min(room, HEADER_BYTES if length is None else length), is_metadata=True)
    try:
        header, start = decode(BloomFilterHeader, window, limits=limits, base=offset)
    except CorruptFileError:
        if length is not None or room <= HEADER_BYTES:
            raise
        window = source.read(offset, min(room, limits.page_header_bytes), is_metadata=True)
        header, start = decode(BloomFilterHeader, window, limits=limits, base=offset)
    if not _is_known(header):
        return None
    size = _bitset_size(header, limits, offset)
    if length is not None and start + size != length:
        message = f"a Bloom filter has {start + size} bytes, but the column metadata states {length}"
        raise CorruptFileError(message, offset=offset)
    whole = start + size <= len(window)
    bitset = window[start : start + size] if whole else source.read(offset + start, size, is_metadata=True)
    return SplitBlockFilter(leaf, _to_words(bitset))


def _limit_error(size: int, limits: Limits) -> LimitError:
    return LimitError(
        f"a Bloom filter of {size} bytes exceeds bloom_filter_bytes={limits.bloom_filter_bytes}; "
        "raise the limit with limits=Limits(bloom_filter_bytes=...)"
    )


def _to_words(bitset: Bytes) -> NDArray[np.uint32]:
    return np.frombuffer(bitset.tobytes(), "<u4").astype(np.uint32, copy=False)  # a copy, since it may be unaligned


def _read_encrypted(
    source: Source, offset: int, leaf: LeafType, limits: Limits, decryptor: ChunkDecryptor
) -> SplitBlockFilter | None:
    stored, after = _read_module(source, offset, limits.page_header_bytes)
    header, _ = decode(BloomFilterHeader, decryptor.decrypt(Module.BLOOM_FILTER_HEADER, stored), limits=limits)
    if not _is_known(header):
        return None
    size = _bitset_size(header, limits, offset)
    stored, _ = _read_module(source, after, limits.bloom_filter_bytes + 64)
    bitset = decryptor.decrypt(Module.BLOOM_FILTER_BITSET, stored)
    if len(bitset) != size:
        raise CorruptFileError(f"a Bloom filter has {len(bitset)} bytes, but its header states {size}", offset=offset)
    return SplitBlockFilter(leaf, _to_words(bitset))


def _read_module(source: Source, offset: int, max_length: int) -> tuple[Bytes, int]:
    """Return an encrypted module with its length prefix, and the offset after it."""
    room = source.size - offset
    length = module_length(source.read(offset, min(LENGTH_BYTES, room)), room, max_length)
    return source.read(offset, length), offset + length


def _is_known(header: BloomFilterHeader) -> bool:
    parts = (header.algorithm.BLOCK, header.hash.XXHASH, header.compression.UNCOMPRESSED)
    return all(part is not None for part in parts)


def _bitset_size(header: BloomFilterHeader, limits: Limits, offset: int) -> int:
    size = header.numBytes
    if size <= 0 or size % BLOCK_BYTES:
        message = f"the size of a Bloom filter must be a positive multiple of {BLOCK_BYTES}, not {size}"
        raise CorruptFileError(message, offset=offset)
    if size > limits.bloom_filter_bytes:
        raise _limit_error(size, limits)
    return size


FilterCache = LRU[_Key, SplitBlockFilter | None]


def filter_cache(size: int = KEPT_BYTES) -> FilterCache:
    """Create a cache of filters by row group and leaf.

    The cache retains the most recently used filters: at most ``size`` bytes, but at least one filter.
    """
    return LRU(size, keeps_last=True)


def filter_bytes(bloom: SplitBlockFilter | None) -> int:
    """Return the size of a filter in bytes; 0 without a filter."""
    return 0 if bloom is None else bloom.num_bytes
