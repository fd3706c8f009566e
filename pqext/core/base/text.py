"""Text for people: names and strings from files made harmless for terminals, numbers with nouns, sizes."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""``text`` with every control, formatting and unassigned character written as an escape.

    A name in a file can hold anything: escape sequences for terminals, line breaks, marks that turn the
    direction of writing. Whatever shows one goes through here, or through Python's ``repr``.

    >>> visible("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii") if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def counted(count: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


BYTE_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}  # fmt: skip
"""Bytes in each unit, as DuckDB has them: thousands in KB, 1,024 in KiB."""
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """A number of bytes with or without a unit; raises ``ValueError`` for other text.

    >>> parse_bytes("64MiB"), parse_bytes("1.5 GB"), parse_bytes("1000")
    (67108864, 1500000000, 1000)
    """
    match = _BYTES.fullmatch(text.strip())
    unit = BYTE_UNITS.get(match[2].lower() or "b") if match is not None else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not a size; write bytes or a unit, as in 1000, 64MB or 2GiB")
    return int(Decimal(match[1]) * unit)


def size(count: int) -> str:
    """``count`` bytes in the largest binary unit that leaves at least one.

    >>> size(999), size(123456)
    ('999 B', '120.6 KiB')
    """
    if abs(count) < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if abs(value) < 1024 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def shorten(text: str, limit: int) -> str:
    """``text``, or its beginning and an ellipsis, in at most ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printed(report: object) -> str:
    """What rich prints of ``report``, as plain text of at most 160 columns."""
    from io import StringIO

    from rich.console import Console

    out = StringIO()
    Console(file=out, width=160, color_system=None, legacy_windows=False).print(report)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip()
