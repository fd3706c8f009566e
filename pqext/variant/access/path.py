"""Paths into a variant: ``$.a.b[0]['x.y']``.

A path is a tuple of steps, a string for a field of an object and an integer for an element of an array. In paths to
explode, :data:`Wildcard` members represent every element (``[*]``) and every field (``.*``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from pqext.core.base.suggestions import excerpt

Path = tuple[str | int, ...]


class Wildcard(Enum):
    """Path step that selects several values: all elements of an array, or all fields of an object."""

    ELEMENTS = "[*]"
    FIELDS = ".*"


ManyPath = tuple[str | int | Wildcard, ...]

MAX_INDEX = (1 << 32) - 1
"""Largest element index that the encoding supports."""

_NAME = re.compile(r"[^.\[]+")
_INDEX = re.compile(r"-?[0-9]+")
# Within quotes, a backslash before the quote or a backslash is an escape; other backslashes are literal.
_QUOTED = {quote: re.compile(rf"{quote}((?:[^{quote}\\]++|\\[{quote}\\]|\\(?!{quote}))*+){quote}") for quote in "'\""}
_ESCAPED = {quote: re.compile(rf"\\([{quote}\\])") for quote in "'\""}


def parse(text: str, *, from_end: bool = False) -> Path:
    """Parse a path; ``$`` alone is the root.

    Steps are ``.name`` (up to the next ``.`` or ``[``), ``."name"``, ``['name']``, ``["name"]`` and ``[index]``. Inside
    quotes, a backslash escapes a quote or a backslash. With ``from_end``, negative indexes count from the end of the
    array. Raises ``ValueError`` with the position.

    >>> parse("$.a.b[0]['x.y']")
    ('a', 'b', 0, 'x.y')
    """
    return _parse(text, False, from_end)  # type: ignore[return-value]


def parse_wildcard_path(text: str) -> ManyPath:
    """Parse a path that may contain the wildcards ``[*]`` and ``.*``. A field with the name ``*`` is ``['*']``.

    Raises ``ValueError`` with the position.

    >>> parse_wildcard_path("$.a[*].b")
    ('a', <Wildcard.ELEMENTS: '[*]'>, 'b')
    """
    return _parse(text, True, False)


_FROM_END = (
    "element indexes must be 0 or more here, as in Spark; pqext.variant.get accepts negative indexes, which count from "
    "the end"
)
_MANY = "a wildcard selects many values; use variant.explode"


@lru_cache(maxsize=4096)
def _parse(text: str, allow_wildcards: bool, from_end: bool) -> ManyPath:
    if not text.startswith("$"):
        raise _path_error(text, 0, "a path starts with $, as in $.name")
    steps: list[str | int | Wildcard] = []
    at = 1
    while at < len(text):
        step: str | int | Wildcard
        if text.startswith("[*]", at):
            if not allow_wildcards:
                raise _path_error(text, at, _MANY)
            step, at = Wildcard.ELEMENTS, at + 3
        elif text[at] == ".":
            is_quoted = text.startswith('"', at + 1)
            step, at = _parse_quoted_step(text, at + 1) if is_quoted else _parse_name(text, at + 1)
            if step == "*" and not is_quoted:
                if not allow_wildcards:
                    raise _path_error(text, at - 1, f"{_MANY}; a field of that name is ['*']")
                step = Wildcard.FIELDS
        elif text[at] == "[":
            step, at = _parse_bracket(text, at + 1, from_end)
        else:
            raise _path_error(text, at, "expected . or [")
        steps.append(step)
    return tuple(steps)


def as_path(path: str | Sequence[str | int], *, from_end: bool = False) -> Path:
    """Convert text or a sequence of steps to a path. With ``from_end``, indexes may be negative.

    Raises ``ValueError`` if the path is invalid, and ``TypeError`` if it is neither text nor a sequence of steps.
    """
    if isinstance(path, str):
        return parse(path, from_end=from_end)
    return _check_steps(path, (str, int), from_end)  # type: ignore[return-value]


def as_wildcard_path(path: str | Sequence[str | int | Wildcard]) -> ManyPath:
    """Convert text or a sequence of steps, which may contain wildcards, to a path.

    Errors are as for :func:`as_path`.
    """
    return parse_wildcard_path(path) if isinstance(path, str) else _check_steps(path, (str, int, Wildcard))


def _check_steps(
    path: Sequence[str | int | Wildcard], step_types: tuple[type, ...], from_end: bool = False
) -> ManyPath:
    if not isinstance(path, Sequence) or isinstance(path, bytes | bytearray):
        raise TypeError(f"a path must be a string or a sequence of steps, not {type(path).__name__}")
    steps = tuple(path)
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, step_types):
            raise TypeError(f"a path step must be a field name or an element index, not {step!r}")
        if from_end and isinstance(step, int):
            step = abs(step)
        if isinstance(step, int) and not 0 <= step <= MAX_INDEX:
            raise ValueError(f"element index {step} is out of range; the range is 0 to {MAX_INDEX}")
    return steps


def format_path(steps: Sequence[str | int | Wildcard]) -> str:
    """Format steps as text that :func:`parse` or :func:`parse_wildcard_path` parses as the same steps.

    >>> format_path(("a", 0, "x.y"))
    "$.a[0]['x.y']"
    """
    return "$" + "".join(_format_step(step) for step in steps)


def _format_step(step: str | int | Wildcard) -> str:
    if isinstance(step, Wildcard):
        return str(step.value)
    if isinstance(step, int):
        return f"[{step}]"
    if step and step != "*" and not any(c in ".[]'\"\\" or c.isspace() for c in step):
        return f".{step}"
    quoted = step.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{quoted}']"


def _parse_name(text: str, start: int) -> tuple[str, int]:
    match = _NAME.match(text, start)
    if match is None:
        raise _path_error(text, start, "a field name is empty; write ['']")
    return match[0], match.end()


def _parse_bracket(text: str, start: int, from_end: bool) -> tuple[str | int, int]:
    step: str | int
    if text[start : start + 1] in ("'", '"'):
        step, at = _parse_quoted_step(text, start)
    else:
        index = _INDEX.match(text, start)
        if index is None:
            raise _path_error(text, start, "expected an element index or a quoted field name")
        if index[0].startswith("-") and not from_end:
            raise _path_error(text, start, _FROM_END)
        at = index.end()
        if len(index[0].lstrip("-0")) > 10 or abs(int(index[0])) > MAX_INDEX:
            raise _path_error(text, start, "element index is out of range")
        step = int(index[0])
    if text[at : at + 1] != "]":
        raise _path_error(text, at, "expected ]")
    return step, at + 1


def _parse_quoted_step(text: str, start: int) -> tuple[str, int]:
    match = _QUOTED[text[start]].match(text, start)
    if match is None:
        raise _path_error(text, start, "the quoted field name is not closed")
    return _ESCAPED[text[start]].sub(r"\1", match[1]), match.end()


def _path_error(text: str, position: int, reason: str) -> ValueError:
    return ValueError(f"path {excerpt(text, position)!r}, position {position}: {reason}")
