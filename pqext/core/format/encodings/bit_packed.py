"""BIT_PACKED: levels of old files, most significant bit first (Encodings, Bit-packed). pqext never writes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.buffers import Bytes
from pqext.core.base.errors import CorruptFileError

_STEP = 1 << 16


def size(count: int, max_level: int) -> int:
    """Return the encoded size of ``count`` levels in bytes. The levels have no length prefix."""
    return (count * max_level.bit_length() + 7) // 8


def decode_levels(data: Bytes, count: int, max_level: int) -> NDArray[np.int16]:
    """Decode ``count`` levels from the start of ``data``.

    Raises ``CorruptFileError`` if ``data`` has less than :func:`size` bytes, or if a level exceeds ``max_level``.
    """
    if len(data) < size(count, max_level):
        raise CorruptFileError(f"bit-packed levels exceed their page: {count} levels do not fit into {len(data)} bytes")
    width = max_level.bit_length()
    places = np.left_shift(1, np.arange(width)[::-1]).astype(np.int16)
    out = np.empty(count, np.int16)
    # Each bit temporarily takes a byte. A step is a multiple of eight values, so it ends on a byte boundary.
    for start in range(0, count, _STEP):
        stop = min(start + _STEP, count)
        bits = np.unpackbits(data[start * width // 8 :], count=(stop - start) * width)
        np.matmul(bits.reshape(-1, width), places, out=out[start:stop])
    if count and int(out.max()) > max_level:
        raise CorruptFileError(f"a level exceeds {max_level}, the maximum of its column")
    return out
