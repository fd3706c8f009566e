"""The run-length and bit-packing hybrid, bit by bit."""

from __future__ import annotations


def decode(data: bytes, width: int, count: int) -> list[int]:
    values: list[int] = []
    at = 0
    while len(values) < count:
        header = shift = 0
        while True:
            byte = data[at]
            at += 1
            header |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        if header & 1:
            groups = header >> 1
            bits = int.from_bytes(data[at : at + groups * width], "little")
            at += groups * width
            values += [bits >> (i * width) & ((1 << width) - 1) for i in range(groups * 8)]
        else:
            length = (width + 7) // 8
            values += [int.from_bytes(data[at : at + length], "little")] * (header >> 1)
            at += length
    return values[:count]


def encode_packed(values: list[int], width: int) -> bytes:
    """One bit-packed run, padded with zeros."""
    groups = (len(values) + 7) // 8
    bits = sum(value << (i * width) for i, value in enumerate(values))
    return _varint(groups << 1 | 1) + bits.to_bytes(groups * width, "little")


def encode_runs(runs: list[tuple[int, int]], width: int) -> bytes:
    """One RLE run for each (value, length)."""
    return b"".join(_varint(length << 1) + value.to_bytes((width + 7) // 8, "little") for value, length in runs)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
