"""BYTE_STREAM_SPLIT and BIT_PACKED, byte by byte and bit by bit."""

from __future__ import annotations


def split(values: list[bytes]) -> bytes:
    """BYTE_STREAM_SPLIT of values of one width."""
    return b"".join(bytes(value[k] for value in values) for k in range(len(values[0]))) if values else b""


def bit_packed(levels: list[int], width: int) -> bytes:
    """BIT_PACKED levels: the most significant bit first, padded with zeros."""
    bits = "".join(format(level, f"0{width}b") for level in levels)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))
