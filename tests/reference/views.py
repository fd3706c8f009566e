"""Arrow's views of PLAIN byte arrays, value by value (Columnar Format, Variable-size Binary View Layout)."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def view(value: bytes, buffer: int, offset: int) -> bytes:
    """The 16 bytes of a value that lies at ``offset`` of a buffer."""
    if len(value) <= 12:
        return struct.pack("<i12s", len(value), value)
    return struct.pack("<i4sii", len(value), value[:4], buffer, offset)


def plain_views(pages: Sequence[bytes], flags: Sequence[Sequence[bool]], first: int) -> tuple[bytes, list[int]]:
    """The views of the flagged slots of each page, zero for others, and the pages that become buffers."""
    views, needed = b"", []
    for place, (page, present) in enumerate(zip(pages, flags, strict=True)):
        at, buffer, is_needed = 0, first + len(needed), False
        for flag in present:
            if not flag:
                views += bytes(16)
                continue
            (length,) = struct.unpack_from("<I", page, at)
            value = page[at + 4 : at + 4 + length]
            views += view(value, buffer, at + 4)
            is_needed = is_needed or length > 12
            at += 4 + length
        if is_needed:
            needed.append(place)
    return views, needed
