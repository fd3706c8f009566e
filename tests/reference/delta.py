"""DELTA_BINARY_PACKED and the two byte array encodings built on it, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    return varint(value * 2 if value >= 0 else -value * 2 - 1)


def wrapped(value: int, bits: int) -> int:
    """The signed number of ``bits`` bits that is congruent to ``value``."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def encode(
    values: Sequence[int], bits: int, block: int = 128, miniblocks: int = 4, *, extra_width: int = 0, junk: int = 0
) -> bytes:
    """``extra_width`` bits more than needed in each miniblock; ``junk`` as padding and as unneeded bit widths."""
    out = varint(block) + varint(miniblocks) + varint(len(values)) + zigzag(values[0] if values else 0)
    size = block // miniblocks
    deltas = [wrapped(b - a, bits) for a, b in pairwise(values)]
    for start in range(0, len(deltas), block):
        part = deltas[start : start + block]
        least = min(part)
        relative = [(delta - least) % (1 << bits) for delta in part]
        widths, bodies = [], b""
        for first in range(0, block, size):
            mini = relative[first : first + size]
            if not mini:
                widths.append(junk & 0xFF)
                continue
            width = min(max(mini).bit_length() + extra_width, bits)
            mini += [junk & ((1 << width) - 1)] * (size - len(mini))
            packed = sum(value << (i * width) for i, value in enumerate(mini))
            widths.append(width)
            bodies += packed.to_bytes(size * width // 8, "little")
        out += zigzag(least) + bytes(widths) + bodies
    return out


def decode(data: bytes, bits: int) -> tuple[list[int], int]:
    """(all values, number of bytes they took)."""
    at = 0

    def number() -> int:
        nonlocal at
        result = shift = 0
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def signed() -> int:
        value = number()
        return -(value + 1) // 2 if value % 2 else value // 2

    block, miniblocks, count = number(), number(), number()
    values = [signed()]
    if count == 0:
        return [], at
    size = block // miniblocks
    while len(values) < count:
        least = signed()
        widths = data[at : at + miniblocks]
        at += miniblocks
        for width in widths:
            if len(values) == count:
                break
            packed = int.from_bytes(data[at : at + size * width // 8], "little")
            at += size * width // 8
            for i in range(min(size, count - len(values))):
                delta = (packed >> (i * width)) & ((1 << width) - 1)
                values.append(wrapped(values[-1] + least + delta, bits))
    return [wrapped(value, bits) for value in values], at


def encode_lengths(values: Sequence[bytes]) -> bytes:
    """DELTA_LENGTH_BYTE_ARRAY."""
    return encode([len(value) for value in values], 32) + b"".join(values)


def decode_lengths(data: bytes) -> list[bytes]:
    lengths, at = decode(data, 32)
    values = []
    for length in lengths:
        values.append(data[at : at + length])
        at += length
    return values


def encode_strings(values: Sequence[bytes]) -> bytes:
    """DELTA_BYTE_ARRAY."""
    prefixes, suffixes, before = [], [], b""
    for value in values:
        shared = 0
        while shared < min(len(value), len(before)) and value[shared] == before[shared]:
            shared += 1
        prefixes.append(shared)
        suffixes.append(value[shared:])
        before = value
    return encode(prefixes, 32) + encode_lengths(suffixes)


def decode_strings(data: bytes) -> list[bytes]:
    prefixes, at = decode(data, 32)
    values: list[bytes] = []
    for prefix, suffix in zip(prefixes, decode_lengths(data[at:]), strict=True):
        values.append((values[-1] if values else b"")[:prefix] + suffix)
    return values
