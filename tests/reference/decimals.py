"""Decimals of Parquet, slowly and plainly."""

from __future__ import annotations


def stored(unscaled: int, width: int | None = None) -> bytes:
    """Big-endian two's complement in ``width`` bytes, or in the fewest."""
    if width is None:
        width = next(n for n in range(1, 40) if -(1 << (8 * n - 1)) <= unscaled < 1 << (8 * n - 1))
    return unscaled.to_bytes(width, "big", signed=True)
