"""Unsigned LEB128 integers: seven bits a byte, the lowest first."""

from __future__ import annotations

from pqext.core.base.errors import CorruptFileError


def uleb(value: int) -> bytes:
    """``value`` in as few bytes as it takes."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uleb(data: bytes, at: int) -> tuple[int, int]:
    """The integer at ``at`` and the offset behind it.

    Raises ``CorruptFileError`` when it goes on after the last byte, takes more bytes than it needs, or has more
    than 32 bits.
    """
    value = 0
    for i in range(5):
        if at + i >= len(data):
            raise CorruptFileError("an integer goes on after the last byte")
        byte = data[at + i]
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if value >= 1 << 32 or (i and not byte):
                break
            return value, at + i + 1
    raise CorruptFileError("an integer of more bytes than it may take")
