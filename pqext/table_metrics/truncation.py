"""Bounds of text and bytes cut short: a lower bound downwards, an upper bound upwards.

A bound that cannot be cut on its side is None. Text is compared by code points, which is the order of its UTF-8 bytes.
"""

from __future__ import annotations

LAST = "\U0010ffff"
"""The greatest code point."""


def lower_text(raw: bytes, length: int | None) -> str | None:
    """Text of at most ``length`` code points that is not above ``raw``, UTF-8 that may be cut within a character."""
    text = raw.decode("utf-8", "ignore") if _is_cut_text(raw) else _text(raw)
    return text if text is None or length is None else text[:length]


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_cut_text(raw: bytes) -> bool:
    """Is ``raw`` UTF-8 but for a last character that is not whole?"""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


def upper_text(raw: bytes, length: int | None) -> str | None:
    """Text of at most ``length`` code points that is not below ``raw``.

    The last code point that is not the greatest is raised by one; text of nothing else has no such bound.
    """
    text = _text(raw)
    if text is None or length is None or len(text) <= length:
        return text
    for end in range(length, 0, -1):
        code = ord(text[end - 1]) + 1
        code = 0xE000 if 0xD800 <= code <= 0xDFFF else code
        if code <= 0x10FFFF:
            return text[: end - 1] + chr(code)
    return None


def upper_text_with_tie_breaker(raw: bytes, length: int) -> str | None:
    """Text not below ``raw``: its first ``length`` code points and the greatest one, as Delta's writers cut.

    More of the text is kept where it goes on with the greatest code point itself.
    """
    text = _text(raw)
    if text is None or len(text) <= length:
        return text
    while length < len(text) and text[length] == LAST:
        length += 1
    return text[:length] + LAST if length < len(text) else text


def lower_bytes(raw: bytes, length: int | None) -> bytes:
    """The first ``length`` bytes of ``raw``."""
    return raw[:length]


def upper_bytes(raw: bytes, length: int | None) -> bytes | None:
    """At most ``length`` bytes that are not below ``raw``; ``None`` where these all are the greatest byte."""
    if length is None or len(raw) <= length:
        return raw
    head = raw[:length].rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None
