"""The powers of ten that kernels read and write floating point with."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

HEADER = Path(__file__).resolve().parent.parent.parent / "pqext" / "core" / "kernels" / "powers.h"
LEAST, MOST = -342, 324


def top_bits(value: Fraction) -> Fraction:
    """``value`` times the power of two that brings it to 128 bits before the point."""
    shift = value.numerator.bit_length() - value.denominator.bit_length() - 128
    scaled = value / Fraction(2) ** shift
    while scaled >= 1 << 128:
        scaled /= 2
    while scaled < 1 << 127:
        scaled *= 2
    return scaled


def test_each_power_has_its_leading_bits() -> None:
    pairs = re.findall(r"\{0x([0-9A-F]{16})u, 0x([0-9A-F]{16})u\}", HEADER.read_text("ascii"))
    assert len(pairs) == MOST - LEAST + 1
    for power, (high, low) in zip(range(LEAST, MOST + 1), pairs, strict=True):
        exact = top_bits(Fraction(10) ** power)
        wanted = -(-exact.numerator // exact.denominator) if -27 <= power < 0 else exact // 1
        assert int(high + low, 16) == wanted, power


def test_rounding_up_never_overflows_the_low_half() -> None:
    assert "FFFFFFFFFFFFFFFFu}" not in HEADER.read_text("ascii")
