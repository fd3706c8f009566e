"""Snappy's block format, a byte at a time."""

from __future__ import annotations


def decompressed(block: bytes) -> bytes | None:
    """What the block holds; ``None`` when it is damaged."""
    size = at = shift = 0
    while True:
        if at == len(block) or shift > 28:
            return None
        size |= (block[at] & 127) << shift
        shift += 7
        at += 1
        if block[at - 1] < 128:
            break
    out = bytearray()
    while at < len(block):
        kind, high = block[at] & 3, block[at] >> 2
        at += 1
        extra = (max(high - 59, 0), 1, 2, 4)[kind]
        if at + extra > len(block):
            return None
        number = int.from_bytes(block[at : at + extra], "little")
        at += extra
        if kind == 0:
            length = (number if extra else high) + 1
            if at + length > len(block):
                return None
            out += block[at : at + length]
            at += length
            continue
        length, distance = high + 1, number
        if kind == 1:
            length, distance = (high & 7) + 4, number | (high >> 3) << 8
        if not 0 < distance <= len(out):
            return None
        for _ in range(length):
            out.append(out[-distance])
    return bytes(out) if len(out) == size else None


def literal(data: bytes, extra: int = 0) -> bytes:
    """A literal whose length takes ``extra`` bytes behind the tag."""
    if not extra:
        return bytes([(len(data) - 1) << 2]) + data
    return bytes([(59 + extra) << 2]) + (len(data) - 1).to_bytes(extra, "little") + data


def copy(length: int, distance: int, kind: int) -> bytes:
    """A copy of a kind: 1 has 4 to 11 bytes from less than 2,048 before, 2 and 3 have 1 to 64 from farther."""
    if kind == 1:
        return bytes([1 | (length - 4) << 2 | distance >> 8 << 5, distance & 255])
    return bytes([kind | (length - 1) << 2]) + distance.to_bytes(2 if kind == 2 else 4, "little")


def block(size: int, parts: list[bytes]) -> bytes:
    """The parts behind the size that they are said to make."""
    head = bytearray()
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + b"".join(parts)
