"""ALP pages, value by value, in numpy scalars of the value's own precision."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

KINDS: dict[type, tuple[str, int]] = {np.float32: ("<i", 4), np.float64: ("<q", 8)}
"""Type -> (format of its integers, bytes)."""


def power(kind: Any, exponent: int) -> Any:
    """A correctly rounded power of ten: numpy parses the decimal literal."""
    return kind(f"1e{exponent}")


def decoded(kind: Any, integer: int, exponent: int, factor: int) -> Any:
    return kind(integer) * power(kind, factor) * power(kind, -exponent)


def encode_vector(kind: Any, values: Any, exponent: int, factor: int, *, extra_width: int = 0) -> bytes:
    """A vector of an array with the given scale: whatever does not come back to the bit becomes an exception."""
    integer_format, size = KINDS[kind]
    integers: list[int | None] = []
    for value in values:
        scaled = float(value) * 10.0 ** (exponent - factor)
        integer = round(scaled) if math.isfinite(scaled) and abs(scaled) < 2.0 ** (8 * size - 1) else None
        if integer is not None and abs(integer) >= 2 ** (8 * size - 1):
            integer = None
        if integer is not None:
            back = decoded(kind, integer, exponent, factor)
            if back.tobytes() != value.tobytes():
                integer = None
        integers.append(integer)
    exceptions = [i for i, integer in enumerate(integers) if integer is None]
    placeholder = next((integer for integer in integers if integer is not None), 0)
    filled = [placeholder if integer is None else integer for integer in integers]
    least = min(filled)
    width = min((max(filled) - least).bit_length() + extra_width, 8 * size)
    packed = sum((integer - least) << (i * width) for i, integer in enumerate(filled))
    return (
        struct.pack("<BBH", exponent, factor, len(exceptions))
        + struct.pack(integer_format, least)
        + bytes([width])
        + packed.to_bytes((len(values) * width + 7) // 8, "little")
        + b"".join(struct.pack("<H", i) for i in exceptions)
        + b"".join(values[i].tobytes() for i in exceptions)
    )


def page(kind: Any, vectors: Sequence[bytes], count: int, log_vector: int) -> bytes:
    """The header, the offsets and the vectors."""
    offsets, at = b"", 4 * len(vectors)
    for vector in vectors:
        offsets += struct.pack("<I", at)
        at += len(vector)
    return struct.pack("<BBBi", 0, 0, log_vector, count) + offsets + b"".join(vectors)


def encode(
    kind: Any, values: Any, exponent: int, factor: int, log_vector: int, *, extra_width: int = 0
) -> bytes:
    size = 1 << log_vector
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    vectors = [encode_vector(kind, part, exponent, factor, extra_width=extra_width) for part in parts]
    return page(kind, vectors, len(values), log_vector)


def decode(kind: Any, data: bytes) -> list[bytes]:
    """The values as their IEEE bytes, so that NaN and zeros compare."""
    integer_format, size = KINDS[kind]
    mode, integers, log_vector, count = struct.unpack_from("<BBBi", data)
    assert (mode, integers) == (0, 0)
    body, values = data[7:], []
    for v in range(-(-count // (1 << log_vector))):
        (at,) = struct.unpack_from("<I", body, 4 * v)
        here = min(1 << log_vector, count - len(values))
        exponent, factor, failed = struct.unpack_from("<BBH", body, at)
        (least,) = struct.unpack_from(integer_format, body, at + 4)
        width = body[at + 4 + size]
        at += 5 + size
        length = (here * width + 7) // 8
        packed = int.from_bytes(body[at : at + length], "little")
        at += length
        part = []
        for i in range(here):
            integer = (least + ((packed >> (i * width)) & ((1 << width) - 1))) % (1 << (8 * size))
            integer -= (integer >> (8 * size - 1)) << (8 * size)
            part.append(decoded(kind, integer, exponent, factor).tobytes())
        for i in range(failed):
            (position,) = struct.unpack_from("<H", body, at + 2 * i)
            start = at + 2 * failed + size * i
            part[position] = body[start : start + size]
        values += part
    return values
