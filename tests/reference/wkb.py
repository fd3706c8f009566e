"""Well-known binary, read and written by recursion over a tree of plain values: ISO WKB and EWKB."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

POINT, LINE_STRING, POLYGON, MULTI_POINT, MULTI_LINE_STRING, MULTI_POLYGON, COLLECTION = range(1, 8)
EWKB_Z, EWKB_M, EWKB_SRID = 0x80000000, 0x40000000, 0x20000000
Coordinate = tuple[float, ...]
Range = tuple[float, float] | None


class Malformed(Exception):
    """The bytes are no geometry; ``args[0]`` says why."""


@dataclass
class Geometry:
    """``dims``: 0 XY, 1 XYZ, 2 XYM, 3 XYZM. ``content``: coordinates of a point (one) or a line string, rings
    of a polygon, else geometries. How it is written: byte order, EWKB or ISO header, SRID."""

    base: int
    dims: int
    content: list[Any]
    little: bool = True
    extended: bool = False
    srid: int | None = None

    @property
    def code(self) -> int:
        return 1000 * self.dims + self.base


def width(dims: int) -> int:
    return 2 + dims % 2 + dims // 2


def encode(geometry: Geometry) -> bytes:
    end = "<" if geometry.little else ">"
    code, header = geometry.code, b""
    if geometry.extended:
        code = geometry.base | (EWKB_Z if geometry.dims & 1 else 0) | (EWKB_M if geometry.dims & 2 else 0)
        if geometry.srid is not None:
            code |= EWKB_SRID
            header = struct.pack(end + "I", geometry.srid)
    parts = [bytes([geometry.little]), struct.pack(end + "I", code), header]

    def coordinates(values: list[Coordinate]) -> bytes:
        return b"".join(struct.pack(f"{end}{width(geometry.dims)}d", *value) for value in values)

    if geometry.base != POINT:
        parts.append(struct.pack(end + "I", len(geometry.content)))
    if geometry.base in (POINT, LINE_STRING):
        parts.append(coordinates(geometry.content))
    elif geometry.base == POLYGON:
        parts += [struct.pack(end + "I", len(ring)) + coordinates(ring) for ring in geometry.content]
    else:
        parts += [encode(child) for child in geometry.content]
    return b"".join(parts)


class Reader:
    def __init__(self, data: bytes, max_depth: int) -> None:
        self.data, self.at, self.max_depth = data, 0, max_depth

    def take(self, format: str) -> tuple[Any, ...]:
        size = struct.calcsize(format)
        if self.at + size > len(self.data):
            raise Malformed("truncated")
        self.at += size
        return struct.unpack(format, self.data[self.at - size : self.at])

    def geometry(self, depth: int = 0, expected: int = 0) -> Geometry:
        order = self.take("B")[0]
        if order > 1:
            raise Malformed("byte order")
        end = "<" if order else ">"
        (code,) = self.take(end + "I")
        srid = None
        flags = code & 0xE0000000
        if flags:
            base = code & 0x1FFFFFFF
            dims = (1 if flags & EWKB_Z else 0) + (2 if flags & EWKB_M else 0)
            if flags & EWKB_SRID:
                (srid,) = self.take(end + "I")
        else:
            dims, base = divmod(code, 1000)
        if dims > 3 or not POINT <= base <= COLLECTION:
            raise Malformed("type code")
        if expected and base != expected:
            raise Malformed("part of another type")
        found = Geometry(base, dims, [], bool(order), bool(flags), srid)
        one = f"{end}{width(dims)}d"
        if base == POINT:
            found.content = [self.take(one)]
            return found
        (count,) = self.take(end + "I")
        if count > len(self.data):
            raise Malformed("count")
        for _ in range(count):
            if base == LINE_STRING:
                found.content.append(self.take(one))
            elif base == POLYGON:
                (points,) = self.take(end + "I")
                if points > len(self.data):
                    raise Malformed("count")
                found.content.append([self.take(one) for _ in range(points)])
            else:
                if depth >= self.max_depth:
                    raise Malformed("too deep")
                found.content.append(self.geometry(depth + 1, 0 if base == COLLECTION else base - 3))
        return found


def decode(data: bytes, max_depth: int = 128) -> Geometry:
    """The geometry that ``data`` is, all of it. Raises Malformed."""
    reader = Reader(data, max_depth)
    found = reader.geometry()
    if reader.at != len(data):
        raise Malformed("trailing bytes")
    return found


def is_strict(geometry: Geometry, dims: int | None = None) -> bool:
    """Are all rings closed, and do all parts with coordinates have the dimensions of the whole?"""
    dims = geometry.dims if dims is None else dims
    if geometry.base == POINT:
        return geometry.dims == dims or all(math.isnan(value) for value in geometry.content[0][:2])
    if geometry.content and geometry.dims != dims:
        return False
    if geometry.base == LINE_STRING:
        return True
    if geometry.base == POLYGON:
        return all(
            not ring or (len(ring) >= 4 and (repr(ring[0][:2]) == repr(ring[-1][:2]) or ring[0][:2] == ring[-1][:2]))
            for ring in geometry.content
        )
    return all(is_strict(child, dims) for child in geometry.content)


def to_iso(geometry: Geometry) -> Geometry:
    """The same without EWKB headers."""
    content = geometry.content
    if geometry.base >= MULTI_POINT:
        content = [to_iso(child) for child in content]
    return Geometry(geometry.base, geometry.dims, content, geometry.little)


def coordinates(geometry: Geometry) -> Iterator[tuple[float | None, ...]]:
    """x, y, z, m of every vertex, None for a dimension that the vertex does not have."""
    if geometry.base >= MULTI_POINT:
        for child in geometry.content:
            yield from coordinates(child)
        return
    rings = geometry.content if geometry.base == POLYGON else [geometry.content]
    for ring in rings:
        for values in ring:
            rest = list(values[2:])
            z = rest.pop(0) if geometry.dims & 1 else None
            m = rest.pop(0) if geometry.dims & 2 else None
            yield values[0], values[1], z, m


def box(geometries: list[Geometry]) -> tuple[Range, Range, Range, Range]:
    """The ranges of x, y, z and m, without nulls and NaN; None for a dimension without a value."""
    every = [vertex for geometry in geometries for vertex in coordinates(geometry)]
    ranges: list[Range] = []
    for axis in range(4):
        values = [v for vertex in every if (v := vertex[axis]) is not None and not math.isnan(v)]
        ranges.append((min(values), max(values)) if values else None)
    return ranges[0], ranges[1], ranges[2], ranges[3]


def hollow(geometry: Geometry, part: bool = False) -> bool:
    """Has it a part, or a hole, without coordinates?"""
    content = geometry.content
    if geometry.base == POINT:
        return part and all(math.isnan(value) for value in content[0][:2])
    if part and not content:
        return True
    if geometry.base == POLYGON:
        return not all(content[0 if part else 1 :])
    return geometry.base > POLYGON and any(hollow(child, True) for child in content)


def widest_gap(intervals: list[tuple[float, float]]) -> tuple[float, float] | None:
    """The widest open stretch between intervals, by sorting them."""
    best: tuple[float, float] | None = None
    end = None
    for low, high in sorted(intervals):
        if end is not None and low > end and (best is None or low - end > best[1] - best[0]):
            best = (end, low)
        end = high if end is None else max(end, high)
    return best
