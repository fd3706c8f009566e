"""Texts for people: names and strings from files, made harmless for terminals, and numbers with their nouns."""

from __future__ import annotations

import unicodedata

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
