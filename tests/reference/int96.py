"""INT96 timestamps by the definition: nanoseconds of the day, then the Julian day."""

from __future__ import annotations

UNIX_EPOCH = 2_440_588


def microseconds(low: int, middle: int, day: int) -> int:
    """Microseconds since 1970 of the three 32-bit words, rounded down."""
    nanoseconds = low | middle << 32
    return (day - UNIX_EPOCH) * 86_400_000_000 + nanoseconds // 1000
