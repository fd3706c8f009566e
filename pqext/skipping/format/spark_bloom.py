"""Spark's Bloom filters in the cells of a store: made from values, and asked for values.

A filter is ``org.apache.spark.util.sketch.BloomFilterImpl``: version, functions (bits for each value) and words of 64
bits, all big-endian; the second version has a seed before the words. The original's object around it is serialised by
Java. Integers of any width are hashed as 64 bits, strings as UTF-8.
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

from pqext.core.base.buffers import EMPTY, Bytes, view
from pqext.core.base.errors import ParquetError
from pqext.skipping.format.java_object import Description, find_own_bytes, write_object
from pqext.skipping.kernels import spark_bloom

_LONG = range(-(1 << 63), 1 << 63)
_MOST_BYTES = 128 << 20
"""The largest filter that is made."""
_MOST_FUNCTIONS = 1024
"""Bits for each value that are set at most; the kernel takes filters with more for damaged."""
_MOST_PREFIXES = 8
"""Beginnings of cells that are tried on all cells at once; a store has one, but for parts of several writers."""
_WRAPPER = (
    Description(
        "io.xskipper.index.metadata.BloomFilterMetaData", 1, 2,
        (("bloomFilter", "Lorg/apache/spark/util/sketch/BloomFilter;"),),
    ),
    Description("io.xskipper.index.metadata.MetadataType", 0x603F5D1B7B764446, 2, ()),
)  # fmt: skip
# The number of the class in Spark 3.5, the last one that the original runs on: it changes with Spark's versions.
_FILTER = (
    Description(
        "org.apache.spark.util.sketch.BloomFilterImpl", 0xA6DEA6A4_8CBA1FF6, 3,
        (("numHashFunctions", "I"), ("bits", "Lorg/apache/spark/util/sketch/BitArray;")),
    ),
)  # fmt: skip


def build_bloom(values: pa.Array | pa.ChunkedArray, expected: int, fpp: float) -> bytes:
    """The cell with a filter of ``values``, as :class:`BloomBuilder` makes it."""
    builder = BloomBuilder(expected, fpp)
    builder.add(values)
    return builder.finish()


class BloomBuilder:
    """A filter for ``expected`` distinct values, of which a share of ``fpp`` is found that is not there.

    Raises ``ValueError`` for a share that is not between 0 and 1, and for a filter of more than 128 MiB.
    """

    def __init__(self, expected: int, fpp: float) -> None:
        if expected < 1:
            raise ValueError(f"a filter expects one value at least, not {expected}")
        if not 0 < fpp < 1:
            raise ValueError(f"fpp is a share between 0 and 1, not {fpp}")
        bits = max(1, int(-expected * math.log(fpp) / (math.log(2) * math.log(2))))
        if bits > _MOST_BYTES * 8:
            most = _MOST_BYTES * 8
            raise ValueError(f"{expected:,} values at fpp {fpp} need {bits:,} bits; a filter has {most:,} at most")
        self.functions = max(1, math.floor(bits / expected * math.log(2) + 0.5))
        if self.functions > _MOST_FUNCTIONS:
            raise ValueError(f"fpp {fpp} needs {self.functions} bits for each value; {_MOST_FUNCTIONS} are the most")
        self._words = np.zeros(-(-bits // 64), np.uint64)

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add values; nulls are none. Raises ``TypeError`` for other types than integers, strings and binary."""
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
        kind = values.type
        if pa.types.is_integer(kind) and kind != pa.uint64():
            longs = np.ascontiguousarray(values.cast(pa.int64()).to_numpy(zero_copy_only=False))
            spark_bloom.insert_longs(longs, self.functions, self._words)
        elif _is_bytes(kind):
            data, offsets = _bytes_of(values)
            spark_bloom.insert_bytes(data, offsets, self.functions, self._words)
        elif not pa.types.is_null(kind):
            raise TypeError(f"a Bloom filter holds integers of up to 64 bits, signed, strings or binary, not {kind}")

    def merge(self, other: BloomBuilder) -> None:
        """Add what ``other`` holds. Raises ``ValueError`` for one of another size or share."""
        if (len(self._words), self.functions) != (len(other._words), other.functions):
            raise ValueError("only filters for the same number of values and share are merged")
        self._words |= other._words

    def finish(self) -> bytes:
        """The cell: the filter within the object that the original reads. More values may be added afterwards."""
        head = struct.pack(">iii", 1, self.functions, len(self._words))
        return wrap(head + self._words.astype(">u8").tobytes())



def wrap(payload: bytes) -> bytes:
    """The cell that holds a filter of the first version, as the original serialises it."""
    return write_object(_WRAPPER, _FILTER, payload)


def may_contain_any(cells: pa.Array | pa.ChunkedArray, values: Sequence[int | bytes]) -> NDArray[np.bool_]:
    """For each cell, whether its filter may hold any of ``values``; False is a proof that it holds none.

    True for cells that are null or damaged, or hold something else, and for all when there is an integer among the
    values that 64 bits do not hold. Strings are given as UTF-8.
    """
    if isinstance(cells, pa.ChunkedArray):
        parts = [may_contain_any(chunk, values) for chunk in cells.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)
    if not _is_bytes(cells.type):
        return np.ones(len(cells), np.bool_)
    longs, texts = [], []
    for one in values:
        if isinstance(one, bytes):
            texts.append(one)
        elif isinstance(one, int) and not isinstance(one, bool):
            longs.append(one)
        else:
            raise TypeError(f"a Bloom filter is asked for integers and bytes, not {type(one).__name__}")
    if any(one not in _LONG for one in longs):
        return np.ones(len(cells), np.bool_)
    if not values or not len(cells):
        return np.zeros(len(cells), np.bool_)
    return _Question(longs, texts).of(cells)


class _Question:
    """The values that are asked for, in the form that the kernel takes."""

    def __init__(self, longs: list[int], texts: list[bytes]) -> None:
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        room = np.empty((2, len(longs) + len(texts)), np.uint32)
        self._values = np.array(longs, np.int64), view(b"".join(texts)), ends, room

    def of(self, cells: pa.Array) -> NDArray[np.bool_]:
        data, offsets = _bytes_of(cells)
        out = np.full(len(cells), spark_bloom.ASKED, np.uint8)
        if cells.null_count:
            out[np.asarray(cells.is_null())] = 1
        prefixes: set[bytes] = set()
        while (waiting := np.flatnonzero(out == spark_bloom.ASKED)).size:
            if len(prefixes) == _MOST_PREFIXES:
                for row in waiting:
                    out[row] = self._one(data[offsets[row] : offsets[row + 1]])
                break
            row = waiting[0]
            cell = data[offsets[row] : offsets[row + 1]]
            prefix = _prefix(cell)
            if prefix is None or prefix in prefixes:
                out[row] = self._one(cell)
                continue
            prefixes.add(prefix)
            spark_bloom.ask_cells(data, offsets, view(prefix), *self._values, out)
        found: NDArray[np.bool_] = out != 0
        return found

    def _one(self, cell: Bytes) -> bool:
        """One cell, read by the grammar of Java's objects rather than by its likeness to others."""
        payload = unwrap(cell.tobytes())
        return payload is None or spark_bloom.ask_payload(view(payload), *self._values)


def unwrap(cell: bytes) -> bytes | None:
    """The filter in a cell, as Spark writes it; None where the cell holds no filter that is understood."""
    try:
        found = find_own_bytes(cell)
    except ParquetError:
        return None
    return found.join(cell) if _is_filter(found.name) else None


def _prefix(cell: Bytes) -> bytes | None:
    """What stands before the filter in a cell."""
    raw = cell.tobytes()
    try:
        found = find_own_bytes(raw)
    except ParquetError:
        return None
    return raw[: found.start] if _is_filter(found.name) else None


def _is_filter(name: str) -> bool:
    return name in ("org.apache.spark.util.sketch.BloomFilterImpl", "org.apache.spark.util.sketch.BloomFilterImplV2")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    )  # fmt: skip


def _bytes_of(values: pa.Array) -> tuple[Bytes, NDArray[Any]]:
    """The buffer of an array of strings or binary, and the offsets of its values there."""
    _, held, data = values.buffers()
    is_large = pa.types.is_large_binary(values.type) or pa.types.is_large_string(values.type)
    if not len(values):
        return EMPTY, np.zeros(1, np.int32)
    offsets = np.frombuffer(held, np.int64 if is_large else np.int32)
    return EMPTY if data is None else view(data), offsets[values.offset : values.offset + len(values) + 1]
