"""Checkpoints the slow way, from the text of ``specs/error-recovery.md``: where each frame lies, and its footer."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID
from zlib import crc32

import zstandard

OWNER = UUID("2f6a1c0e-8a3b-4d57-9b1e-5c7d3e9f0a64").bytes


class Found(NamedTuple):
    start: int
    stop: int
    before: tuple[int, int]
    footer: bytes


def number(data: bytes) -> int:
    return sum(byte << 8 * i for i, byte in enumerate(data))


def checkpoints(data: bytes) -> list[Found]:
    """All that are whole, in the order of the file."""
    found = []
    for at in range(len(data) - 15):
        if data[at : at + 16] != OWNER or at < 12:
            continue
        crc, size, crc_of_size = data[at - 12 : at - 8], data[at - 8 : at - 4], data[at - 4 : at]
        start = at - 12 - number(size)
        payload = data[max(start, 0) : at - 12]
        if start < 0 or number(crc_of_size) != crc32(size) or number(crc) != crc32(payload) or len(payload) < 29:
            continue
        tail = payload[-29:]
        if tail[0] != 1 or number(tail[25:]) != crc32(tail[:25]) or number(tail[5:13]) != start:
            continue
        footer = zstandard.ZstdDecompressor().decompress(payload[:-29], max_output_size=number(tail[1:5]))
        assert len(footer) == number(tail[1:5])
        found.append(Found(start, at + 16, (number(tail[13:21]), number(tail[21:25])), footer))
    return found
