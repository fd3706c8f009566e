"""Build and query the entries of a store that contain Bloom filters of Spark.

A filter is a serialised ``org.apache.spark.util.sketch.BloomFilterImpl``: the version, the number of hash functions and
words of 64 bits, all big-endian; the second version has a seed before the words. Java serialises xskipper's object that
contains it. Integers of any width are hashed as 64 bits, strings as UTF-8.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.buffers import EMPTY, Bytes, numbers, view
from pqext.core.base.errors import ParquetError
from pqext.skipping.format.java_object import ClassDescription, find_custom_data, write_object
from pqext.skipping.kernels import spark_bloom

_LONG = range(-(1 << 63), 1 << 63)
_MOST_BYTES = 128 << 20
"""Maximum size of a new filter."""
_MOST_FUNCTIONS = 1024
"""Maximum number of hash functions. The kernel treats filters with more as corrupt."""
_MOST_PREFIXES = 8
"""Maximum number of entry prefixes to match against all entries together; a writer uses one prefix."""
_WRAPPER = (
    ClassDescription(
        "io.xskipper.index.metadata.BloomFilterMetaData", 1, 2,
        (("bloomFilter", "Lorg/apache/spark/util/sketch/BloomFilter;"),),
    ),
    ClassDescription("io.xskipper.index.metadata.MetadataType", 0x603F5D1B7B764446, 2, ()),
)  # fmt: skip
# Serial version UID of the class in Spark 3.5, the last version that xskipper supports; it differs between versions.
_FILTER = (
    ClassDescription(
        "org.apache.spark.util.sketch.BloomFilterImpl", 0xA6DEA6A4_8CBA1FF6, 3,
        (("numHashFunctions", "I"), ("bits", "Lorg/apache/spark/util/sketch/BitArray;")),
    ),
)  # fmt: skip


def build_bloom(values: pa.Array | pa.ChunkedArray, distinct_count: int, fpp: float) -> bytes:
    """Build a store entry that contains a Bloom filter of ``values``; see :class:`BloomBuilder`."""
    builder = BloomBuilder(distinct_count, fpp)
    builder.add(values)
    return builder.finish()


class BloomBuilder:
    """Builder of a Bloom filter for ``distinct_count`` distinct values with a false positive probability of ``fpp``.

    Raises ``ValueError`` if ``distinct_count`` is below 1, if ``fpp`` is not between 0 and 1, or if the filter would
    exceed 128 MiB or :data:`_MOST_FUNCTIONS`.
    """

    def __init__(self, distinct_count: int, fpp: float) -> None:
        if distinct_count < 1:
            raise ValueError(f"the number of distinct values must be positive, not {distinct_count}")
        if not 0 < fpp < 1:
            raise ValueError(f"fpp must be between 0 and 1, not {fpp}")
        bits = max(1, int(-distinct_count * math.log(fpp) / (math.log(2) * math.log(2))))
        if bits > _MOST_BYTES * 8:
            required = f"{distinct_count:,} values at fpp {fpp} need {bits:,} bits"
            raise ValueError(f"{required}; the maximum is {_MOST_BYTES * 8:,}; use a greater fpp")
        self.functions = max(1, math.floor(bits / distinct_count * math.log(2) + 0.5))
        if self.functions > _MOST_FUNCTIONS:
            required = f"fpp {fpp} needs {self.functions} hash functions"
            raise ValueError(f"{required}; the maximum is {_MOST_FUNCTIONS}; use a greater fpp")
        self._words = np.zeros(-(-bits // 64), np.uint64)

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add all non-null values.

        Raises ``TypeError`` for uint64, and for types other than integers, strings, binary and null.
        """
        if isinstance(values, pa.ChunkedArray):
            for chunk in values.chunks:
                self.add(chunk)
            return
        if pa.types.is_dictionary(values.type):
            values = pc.take(values.dictionary, pc.unique(values.indices.drop_null()))
        if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
            values = values.cast(pa.large_binary())
        if values.null_count:
            values = values.drop_null()
        type = values.type
        if pa.types.is_integer(type) and type != pa.uint64():
            longs = np.ascontiguousarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
            spark_bloom.insert_longs(longs, self.functions, self._words)
        elif _is_bytes(type):
            data, offsets = _bytes_of(values)
            spark_bloom.insert_bytes(data, offsets, self.functions, self._words)
        elif not pa.types.is_null(type):
            raise TypeError(f"a Bloom filter needs strings, binary values or integers other than uint64, not {type}")

    def merge(self, other: BloomBuilder) -> None:
        """Add the values of ``other``. Raises ``ValueError`` if sizes or numbers of hash functions differ."""
        if (len(self._words), self.functions) != (len(other._words), other.functions):
            raise ValueError("Bloom filters built with different distinct_count or fpp cannot be merged")
        self._words |= other._words

    def finish(self) -> bytes:
        """Return the filter as a store entry in xskipper's format. More values may be added later."""
        head = struct.pack(">iii", 1, self.functions, len(self._words))
        return wrap_filter(head + self._words.astype(">u8").tobytes())


def wrap_filter(payload: bytes) -> bytes:
    """Convert a filter, serialised in version 1 of Spark's format, to a store entry in xskipper's format."""
    return write_object(_WRAPPER, _FILTER, payload)


def may_contain_any(cells: pa.Array | pa.ChunkedArray, values: Sequence[int | bytes]) -> NDArray[np.bool_]:
    """Return False for each store entry whose filter contains none of ``values``, otherwise True.

    The result is True for null, corrupt and unknown entries, and for all entries if an integer exceeds 64 bits. Strings
    are passed as UTF-8.
    """
    if isinstance(cells, pa.ChunkedArray):
        parts = [may_contain_any(chunk, values) for chunk in cells.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)
    if not _is_bytes(cells.type):
        return np.ones(len(cells), np.bool_)
    longs, texts = [], []
    for value in values:
        if isinstance(value, bytes):
            texts.append(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            longs.append(value)
        else:
            raise TypeError(f"values must be integers or bytes, not {type(value).__name__}")
    if any(value not in _LONG for value in longs):
        return np.ones(len(cells), np.bool_)
    if not values or not len(cells):
        return np.zeros(len(cells), np.bool_)
    return _Query(longs, texts).evaluate(cells)


class _Query:
    """Values to look up in filters, in the layout that the kernel requires."""

    def __init__(self, longs: list[int], texts: list[bytes]) -> None:
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        hashes = np.empty((2, len(longs) + len(texts)), np.uint32)
        self._values = np.array(longs, np.int64), view(b"".join(texts)), ends, hashes

    def evaluate(self, cells: pa.Array) -> NDArray[np.bool_]:
        data, offsets = _bytes_of(cells)
        out = np.full(len(cells), spark_bloom.UNDECIDED, np.uint8)
        if cells.null_count:
            out[np.asarray(cells.is_null())] = 1
        prefixes: set[bytes] = set()
        while (pending := np.flatnonzero(out == spark_bloom.UNDECIDED)).size:
            if len(prefixes) == _MOST_PREFIXES:
                for row in pending:
                    out[row] = self._evaluate_cell(data[offsets[row] : offsets[row + 1]])
                break
            row = pending[0]
            cell = data[offsets[row] : offsets[row + 1]]
            prefix = _prefix(cell)
            if prefix is None or prefix in prefixes:
                out[row] = self._evaluate_cell(cell)
                continue
            prefixes.add(prefix)
            spark_bloom.query_cells(data, offsets, view(prefix), *self._values, out)
        may_contain: NDArray[np.bool_] = out != 0
        return may_contain

    def _evaluate_cell(self, cell: Bytes) -> bool:
        """Return whether the filter in ``cell`` may contain one of the values. The cell is parsed as a Java object."""
        payload = unwrap_filter(cell.tobytes())
        return payload is None or spark_bloom.query_payload(view(payload), *self._values)


def unwrap_filter(cell: bytes) -> bytes | None:
    """Return the filter in a store entry; None if the entry does not contain a filter of Spark."""
    try:
        own_bytes = find_custom_data(cell)
    except ParquetError:
        return None
    return own_bytes.join(cell) if _is_filter(own_bytes.name) else None


def _prefix(cell: Bytes) -> bytes | None:
    """Return the bytes that precede the filter in a store entry; None if the entry contains no filter of Spark."""
    raw = cell.tobytes()
    try:
        own_bytes = find_custom_data(raw)
    except ParquetError:
        return None
    return raw[: own_bytes.start] if _is_filter(own_bytes.name) else None


def _is_filter(name: str) -> bool:
    return name in ("org.apache.spark.util.sketch.BloomFilterImpl", "org.apache.spark.util.sketch.BloomFilterImplV2")


def _is_bytes(type: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type) or pa.types.is_string(type) or pa.types.is_large_binary(type)
        or pa.types.is_large_string(type)
    )  # fmt: skip


def _bytes_of(values: pa.Array) -> tuple[Bytes, NDArray[Any]]:
    """Return the data buffer of an array of strings or binary values, and the offset of each value in the buffer."""
    _, offset_buffer, data = values.buffers()
    is_large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    if not len(values):
        return EMPTY, np.zeros(1, np.int32)
    offsets = numbers(offset_buffer, np.int64 if is_large else np.int32, values.offset, len(values) + 1)
    return EMPTY if data is None else view(data), offsets
