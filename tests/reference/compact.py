"""Thrift's compact protocol, read and written one byte at a time and without a schema.

A structure is a list of fields ``(id, wire type, value)``. Values are bool, int, float, bytes, and for
containers ``("list", wire type, values)`` and ``("map", key wire type, value wire type, pairs)``; a set is
read as a list, and a nested structure is again a list of fields.
"""

from __future__ import annotations

import struct
from typing import Any

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)
Fields = list[tuple[int, int, Any]]


class Malformed(Exception):
    """The bytes are not a structure."""


class Reader:
    """Reads structures; ``spans`` holds, for each field of the outermost, header, value and end offsets."""

    def __init__(self, data: bytes, at: int = 0, max_depth: int = 64) -> None:
        self.data = data
        self.at = at
        self.max_depth = max_depth
        self.spans: list[tuple[int, int, int]] = []

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise Malformed("truncated")
        self.at += 1
        return self.data[self.at - 1]

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise Malformed("truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if value >= 1 << 64 or shift > 70:
                raise Malformed("varint")
            if byte < 0x80:
                return value

    def zigzag(self) -> int:
        value = self.varint()
        return value >> 1 if value % 2 == 0 else -(value + 1 >> 1)

    def struct(self, depth: int = 0) -> Fields:
        if depth >= self.max_depth:
            raise Malformed("depth")
        fields: Fields = []
        id = 0
        while True:
            start = self.at
            header = self.byte()
            if header == STOP:
                return fields
            wire = header % 16
            if wire == STOP or wire > UUID:
                raise Malformed("wire type")
            if header >= 16:
                id += header >> 4
            else:
                id = self.zigzag()
            value_start = self.at
            value: Any = wire == TRUE if wire in (TRUE, FALSE) else self.value(wire, depth + 1)
            if depth == 0:
                self.spans.append((start, value_start, self.at))
            fields.append((id, wire, value))

    def value(self, wire: int, depth: int) -> Any:
        match wire:
            case 1 | 2:
                return self.byte() == TRUE
            case 3:
                return self.byte()
            case 4 | 5 | 6:
                return self.zigzag()
            case 7:
                return struct.unpack("<d", self.take(8))[0]
            case 8:
                return self.take(self.varint())
            case 9 | 10:
                return self.list(depth)
            case 11:
                return self.map(depth)
            case 12:
                return self.struct(depth)
            case 13:
                return self.take(16)
        raise Malformed("wire type")

    def list(self, depth: int) -> Any:
        if depth >= self.max_depth:
            raise Malformed("depth")
        header = self.byte()
        count = header >> 4 if header < 0xF0 else self.varint()
        if count > len(self.data) - self.at:
            raise Malformed("count")
        return "list", header % 16, [self.value(header % 16, depth + 1) for _ in range(count)]

    def map(self, depth: int) -> Any:
        if depth >= self.max_depth:
            raise Malformed("depth")
        count = self.varint()
        if count > len(self.data) - self.at:
            raise Malformed("count")
        if count == 0:
            return "map", 0, 0, []
        types = self.byte()
        pairs = [(self.value(types >> 4, depth + 1), self.value(types % 16, depth + 1)) for _ in range(count)]
        return "map", types >> 4, types % 16, pairs


def write_varint(value: int) -> bytes:
    out = []
    while value >= 0x80:
        out.append(value % 0x80 + 0x80)
        value //= 0x80
    return bytes([*out, value])


def write_zigzag(value: int) -> bytes:
    return write_varint(2 * value if value >= 0 else -2 * value - 1)


def write_header(id: int, wire: int, before: int) -> bytes:
    """The header of field ``id`` that follows field ``before``."""
    if 0 < id - before <= 15:
        return bytes([(id - before) * 16 + wire])
    return bytes([wire]) + write_zigzag(id)


def write_struct(fields: Fields) -> bytes:
    out = b""
    before = 0
    for id, wire, value in fields:
        if wire in (TRUE, FALSE):
            wire = TRUE if value else FALSE
        out += write_header(id, wire, before)
        if wire not in (TRUE, FALSE):
            out += write_value(wire, value)
        before = id
    return out + b"\x00"


def write_value(wire: int, value: Any) -> bytes:
    match wire:
        case 1 | 2:
            return bytes([TRUE if value else FALSE])
        case 3:
            return bytes([value % 256])
        case 4 | 5 | 6:
            return write_zigzag(value)
        case 7:
            return struct.pack("<d", value)
        case 8:
            return write_varint(len(value)) + bytes(value)
        case 9 | 10:
            _, element, values = value
            head = bytes([min(len(values), 15) * 16 + element])
            head += write_varint(len(values)) if len(values) >= 15 else b""
            return head + b"".join(write_value(element, one) for one in values)
        case 11:
            _, key, item, pairs = value
            if not pairs:
                return b"\x00"
            head = write_varint(len(pairs)) + bytes([key * 16 + item])
            return head + b"".join(write_value(key, a) + write_value(item, b) for a, b in pairs)
        case 12:
            return write_struct(value)
    return bytes(value)
