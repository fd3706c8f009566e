"""RLE: the run-length and bit-packing hybrid, for levels and booleans (Encodings, Run Length Encoding)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pqext.core.buffers import Bytes
from pqext.core.encodings import Dictionary
from pqext.core.errors import CorruptFileError, UnsupportedError
from pqext.core.kernels import rle
from pqext.core.kernels.byte_array import ByteArrayBuilder
from pqext.core.metadata import Type


def fixed(page: Bytes, count: int, physical: Type, width: int, dictionary: Dictionary | None) -> Bytes:
    """Booleans, behind a 4-byte length in pages of either version."""
    if physical != Type.BOOLEAN:
        raise CorruptFileError("RLE values in a column that is not BOOLEAN")
    length = int.from_bytes(page[:4], "little")
    if len(page) < 4 or length > len(page) - 4:
        raise CorruptFileError("run-length data leaves its page")
    out = np.empty(count, np.uint8)
    rle.decode_into(page[4 : 4 + length], 1, 2, out)
    return out


def byte_arrays(
    page: Bytes, count: int, builder: ByteArrayBuilder, present: Bytes, slots: int, dictionary: Dictionary | None
) -> None:
    """No byte array is encoded so."""
    raise UnsupportedError("RLE values in a BYTE_ARRAY column", feature="RLE byte arrays")


def decode_levels(data: Bytes, count: int, max_level: int, out: NDArray[np.int16]) -> None:
    """Fill ``out`` with ``count`` levels, none above ``max_level``."""
    rle.decode_into(data, max_level.bit_length(), max_level + 1, out[:count])


def encode_levels(levels: NDArray[np.int16], max_level: int) -> bytes:
    """Levels without a length prefix."""
    return rle.encode(levels, max_level.bit_length())
