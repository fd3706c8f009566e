"""Decimals as bytes, one Python integer at a time."""

from __future__ import annotations


def narrow(numbers: list[int], length: int) -> bytes:
    """Big-endian two's complement numbers of ``length`` bytes."""
    return b"".join(number.to_bytes(length, "big", signed=True) for number in numbers)
