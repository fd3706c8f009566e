"""Paths into VARIANT columns within SQL text: ``event:user.name``, ``event:`zip code` ``, ``event:$.a[0]['x y']``.

sqlglot parses colons differently, so paths are replaced by spaces before the text is split into tokens. Afterwards,
three tokens are inserted for each path: a string in brackets, which has the same precedence as a path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from pqext.variant.access.path import format_path


@dataclass(frozen=True, slots=True)
class PathSpan:
    """A VARIANT path, and the start and end of its text. The start is the position of the colon."""

    start: int
    stop: int
    steps: tuple[str | int, ...]


class PathError(ValueError):
    """Raised for an invalid path in SQL text, with the offset of the error."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset


_SKIPPED = re.compile(
    r"""'(?:[^']|'')*+'|"(?:[^"]|"")*+"|`(?:[^`]|``)*+`|--[^\n]*|/\*.*?\*/|::|\bstruct\s*<""", re.S | re.I
)
"""Quoted texts and names, comments, and other syntax with colons."""
_NAME = re.compile(r"\w+")
_INDEX = re.compile(r"\[\s*(-?\d{1,12})\s*\]")
_QUOTED_NAME = re.compile(r'"((?:[^"]|"")+)"|`((?:[^`]|``)+)`')
_QUOTED_KEY = re.compile(
    r"""\[\s*(?:'((?:[^'\\]|''|\\['\\]|\\(?!'))*+)'|"((?:[^"\\]|""|\\["\\]|\\(?!"))*+)"|`((?:[^`]|``)*+)`)\s*\]"""
)
_ESCAPED = {"'": re.compile(r"\\([\\'])|'(')"), '"': re.compile(r'\\([\\"])|"(")')}


def path_spans(text: str) -> list[PathSpan]:
    """Return the VARIANT paths of SQL text, in order. Raises :class:`PathError` for an invalid path."""
    results: list[PathSpan] = []
    at = 0
    while at < len(text):
        skipped = _SKIPPED.match(text, at)
        if skipped is not None:
            at = _type_end(text, skipped.end()) if skipped[0].endswith("<") else skipped.end()
        elif text[at] == ":":
            span = _parse_path(text, at)
            results.append(span)
            at = span.stop
        else:
            at += 1
    return results


def mask_paths(text: str, spans: Sequence[PathSpan]) -> str:
    """Replace the paths in the text with spaces, so that all other positions are unchanged."""
    for span in spans:
        text = text[: span.start] + " " * (span.stop - span.start) + text[span.stop :]
    return text


def insert_paths(tokens: Sequence[Token], spans: Sequence[PathSpan]) -> list[Token]:
    """Insert each path into the tokens of the masked text, as a string in brackets."""
    joined: list[Token] = []
    left = list(reversed(spans))
    for token in [*tokens, None]:
        while left and (token is None or left[-1].start < token.start):
            span = left.pop()
            line, col = (joined[-1].line, joined[-1].col) if joined else (1, 1)
            parts = (
                (TokenType.L_BRACKET, "["), (TokenType.STRING, format_path(span.steps)), (TokenType.R_BRACKET, "]"),
            )  # fmt: skip
            joined += [Token(kind, part, line, col, span.start + 1, span.stop - 1) for kind, part in parts]
        if token is not None:
            joined.append(token)
    return joined


def _type_end(text: str, position: int) -> int:
    """Return the position after the ``>`` that matches the ``<`` directly before ``position``."""
    depth = 1
    while position < len(text) and depth:
        depth += (text[position] == "<") - (text[position] == ">")
        position += 1
    return position


def _parse_path(text: str, start: int) -> PathSpan:
    at = start + 1
    while at < len(text) and text[at].isspace():
        at += 1
    steps: list[str | int] = []
    if text[at : at + 1] == "$":
        at += 1
    elif text[at : at + 1] != "[":
        first, at = _parse_name(text, at)
        steps.append(first)
    step: str | int
    while at < len(text):
        is_field = text[at] == "." or (text[at] == ":" and text[at : at + 2] != "::")
        if is_field:
            step, at = _parse_name(text, at + 1)
        elif text[at] == "[":
            step, at = _parse_bracket(text, at)
        else:
            break
        steps.append(step)
    return PathSpan(start, at, tuple(steps))


def _parse_name(text: str, position: int) -> tuple[str, int]:
    quoted = _QUOTED_NAME.match(text, position)
    if quoted is not None:
        name = quoted[2].replace("``", "`") if quoted[1] is None else quoted[1].replace('""', '"')
        return name, quoted.end()
    match = _NAME.match(text, position)
    if match is None:
        if text[position : position + 1] == "*":
            raise PathError(position, "a condition cannot use a path with a wildcard, which matches several values")
        raise PathError(position, "expected a field name; quote names other than plain words")
    return match[0], match.end()


def _parse_bracket(text: str, position: int) -> tuple[str | int, int]:
    index = _INDEX.match(text, position)
    if index is not None:
        if index[1].startswith("-"):
            raise PathError(position + 1, "element indexes must be 0 or more here, as in Spark")
        return int(index[1]), index.end()
    key = _QUOTED_KEY.match(text, position)
    if key is None:
        raise PathError(
            position, "brackets of a path contain an element index or a quoted name, as in event:['a b'][0]"
        )
    if key[3] is not None:
        return key[3].replace("``", "`"), key.end()
    quote, inside = ("'", key[1]) if key[2] is None else ('"', key[2])
    return _ESCAPED[quote].sub(lambda escaped: escaped[1] or escaped[2], inside), key.end()
