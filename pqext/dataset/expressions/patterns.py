"""Text patterns: prefix, suffix, substring and LIKE matching, and the bounds of matching values."""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias, get_args

import pyarrow as pa
import pyarrow.compute as pc

How = Literal["starts_with", "ends_with", "contains", "like", "ilike"]
HOW: tuple[How, ...] = get_args(How)

MAX_PATTERN = 10_000
"""Maximum length of a pattern."""

ESCAPE = "\\"
"""Default escape of LIKE, as in Spark and Postgres."""


class Wildcard(Enum):
    """Wildcards of LIKE patterns."""

    ANY = "%"
    ONE = "_"


Parts: TypeAlias = tuple[str | Wildcard, ...]
"""A parsed LIKE pattern: literal texts and the wildcards between them."""


def check_pattern(operator: str, pattern: object, escape: object) -> None:
    """Raise ``TypeError`` or ``ValueError`` if the operator, the pattern or the escape character is invalid."""
    if operator not in HOW:
        raise ValueError(f"unknown operator {operator!r}; use one of {', '.join(HOW)}")
    is_like = operator in ("like", "ilike")
    if not isinstance(pattern, str if is_like else str | bytes):
        raise TypeError(f"the pattern of {operator} must be text, not {type(pattern).__name__}")
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"the pattern has more than {MAX_PATTERN:,} characters")
    if isinstance(pattern, str):
        try:
            pattern.encode()
        except UnicodeEncodeError:
            raise ValueError(f"the pattern {pattern!r} is not valid Unicode: it contains lone surrogates") from None
    if not isinstance(escape, str) or len(escape) != 1 or not (is_like or escape == ESCAPE):
        raise ValueError("escape must be a single character, and only like and ilike accept it")
    if is_like:
        like_parts(str(pattern), escape)


def like_parts(pattern: str, escape: str) -> Parts:
    """Split a LIKE pattern at its wildcards.

    Raises ``ValueError`` if ``escape`` precedes a character other than a wildcard or itself.
    """
    parts: list[str | Wildcard] = []
    text = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            after = next(characters, "")
            if after not in ("%", "_", escape):
                hint = "; write it twice, or pass another escape" if escape == ESCAPE else ""
                raise ValueError(
                    f"pattern {pattern!r}: the escape {escape!r} must precede %, _ or itself{hint}"
                )
            text += after
        elif character not in "%_":
            text += character
        else:
            parts += [text] if text else []
            text = ""
            if character == "_" or parts[-1:] != [Wildcard.ANY]:
                parts.append(Wildcard(character))
    return (*parts, text) if text else tuple(parts)


def matches(array: pa.Array, operator: How, pattern: str | bytes, escape: str) -> pa.BooleanArray:
    """Return whether each value of an array of strings or bytes matches the pattern; null for nulls."""
    array = _to_plain_layout(array)
    if isinstance(pattern, str) and operator in ("like", "ilike"):
        parts = like_parts(pattern, escape)
        if operator == "ilike":
            return pc.match_like(array, "".join(map(_escape_for_arrow, parts)), ignore_case=True)
        match parts:
            case () | (str(),):
                return pc.equal(array, pa.scalar("".join(map(str, parts)), array.type))
            case (str(text), Wildcard.ANY):
                operator, pattern = "starts_with", text
            case (Wildcard.ANY, str(text)):
                operator, pattern = "ends_with", text
            case (Wildcard.ANY, str(text), Wildcard.ANY):
                operator, pattern = "contains", text
            case _:
                return pc.match_like(array, "".join(map(_escape_for_arrow, parts)))
    if isinstance(pattern, str) and not _is_text(array.type):
        pattern = pattern.encode()
    function = {"starts_with": pc.starts_with, "ends_with": pc.ends_with, "contains": pc.match_substring}[operator]
    return function(array, pattern)


def prefix_of(operator: How, pattern: str | bytes, escape: str) -> tuple[bytes, bool]:
    """Return the literal prefix of the pattern, and whether the pattern matches all values with this prefix."""
    if operator == "starts_with":
        return (pattern.encode() if isinstance(pattern, str) else pattern), True
    if operator != "like" or isinstance(pattern, bytes):
        return b"", False
    parts = like_parts(pattern, escape)
    first = parts[0] if parts else ""
    prefix = first if isinstance(first, str) else ""
    return prefix.encode(), parts in ((prefix, Wildcard.ANY), (Wildcard.ANY,))


def is_exact(operator: How, pattern: str | bytes, escape: str) -> bool:
    """Return whether the pattern is a LIKE pattern without wildcards, which matches a single value."""
    if operator != "like" or isinstance(pattern, bytes):
        return False
    parts = like_parts(pattern, escape)
    return not any(isinstance(part, Wildcard) for part in parts)


def successor(prefix: bytes) -> bytes | None:
    """Return the minimum of the values that are greater than all values with ``prefix``; None if there are none."""
    retained = prefix.rstrip(b"\xff")
    return retained[:-1] + bytes([retained[-1] + 1]) if retained else None


def _escape_for_arrow(part: str | Wildcard) -> str:
    """Escape a part of a LIKE pattern for Arrow, where the escape character is the backslash."""
    if isinstance(part, Wildcard):
        return part.value
    return "".join("\\" + item if item in "%_\\" else item for item in part)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _to_plain_layout(array: pa.Array) -> pa.Array:
    """Cast ``array`` to a layout that Arrow's string functions accept."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array.cast(pa.binary()) if pa.types.is_fixed_size_binary(array.type) else array
