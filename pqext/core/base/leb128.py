"""Unsigned LEB128 integers: seven bits per byte, least significant first."""

from __future__ import annotations

from pqext.core.base.errors import CorruptFileError


def uleb(value: int) -> bytes:
    """Encode ``value`` in the minimum number of bytes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uleb(data: bytes, position: int) -> tuple[int, int]:
    """Decode the integer at ``position``; return the integer and the offset after it.

    Raises ``CorruptFileError`` if the integer is truncated, longer than necessary, or has more than 32 bits.
    """
    value = 0
    for i in range(5):
        if position + i >= len(data):
            raise CorruptFileError("LEB128 integer is truncated")
        byte = data[position + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if value >= 1 << 32 or (i and not byte):
                break
            return value, position + i + 1
    raise CorruptFileError("LEB128 integer is longer than necessary or exceeds 32 bits")
