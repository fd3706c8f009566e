"""Small texts for people: sizes, names from files made harmless."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""``text`` with every control, formatting and unassigned character written as an escape.

    A name in a file can hold anything: escape sequences for terminals, line breaks, marks that turn the
    direction of writing.

    >>> visible("a\nb\x1b[31m")
    'a\\nb\\x1b[31m'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode("ascii") if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


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


def counted(count: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
