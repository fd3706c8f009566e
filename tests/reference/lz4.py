"""LZ4 blocks and Snappy's length, slowly and plainly; Hadoop's framing put around blocks."""

from __future__ import annotations

import struct
from collections.abc import Callable


def unpack(block: bytes) -> bytes:
    """The bytes of an LZ4 block. Raises ``ValueError`` or ``IndexError`` for one that is damaged."""
    out, at = bytearray(), 0
    while True:
        token = block[at]
        at += 1
        length = token >> 4
        if length == 15:
            while True:
                more = block[at]
                at += 1
                length += more
                if more != 255:
                    break
        if at + length > len(block):
            raise ValueError("literals leave the block")
        out += block[at : at + length]
        at += length
        if at == len(block):
            return bytes(out)
        offset = struct.unpack_from("<H", block, at)[0]
        at += 2
        length = (token & 15) + 4
        if token & 15 == 15:
            while True:
                more = block[at]
                at += 1
                length += more
                if more != 255:
                    break
        if not 0 < offset <= len(out):
            raise ValueError("a match before the start")
        for _ in range(length):
            out.append(out[-offset])


def hadoop(data: bytes, compress: Callable[[bytes], bytes], block: int, chunk: int) -> bytes:
    """``data`` in Hadoop's framing: a size before each ``block`` bytes, within which each ``chunk`` is compressed."""
    framed = b""
    for start in range(0, len(data), block):
        part = data[start : start + block]
        framed += struct.pack(">I", len(part))
        for at in range(0, len(part), chunk):
            packed = compress(part[at : at + chunk])
            framed += struct.pack(">I", len(packed)) + packed
    return framed
