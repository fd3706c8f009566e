"""Patterns of Cython code: whole lines found within a definition and replaced there, whatever the indentation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

NAMED = re.compile(r"(?:cdef |cpdef |ctypedef |packed )*(?:class|struct|union|enum|extern) (\w+)")
FUNCTION = re.compile(r"(?:async )?(?:cdef|cpdef|def)\b[^=]*?(\w+) ?\(")
VALUE = re.compile(r"(?:cdef\b[^=()]*?\b)?(\w+)(?:\[[^=]*\])? *(?::[^=]*)?=(?!=)")


@dataclass(frozen=True)
class Definition:
    """Lines ``start`` to before ``stop``, counted from 0, which define ``name``: dotted, within its module."""

    name: str
    start: int
    stop: int


def definitions(text: str) -> Iterator[Definition]:
    """Functions, classes, structures, and names that a module assigns."""
    lines = text.split("\n")
    outer: list[tuple[int, str]] = []
    for start, line in enumerate(lines):
        code = line.strip()
        indentation = len(line) - len(line.lstrip())
        header = NAMED.match(code) or FUNCTION.match(code)
        match = header or (VALUE.match(code) if indentation == 0 else None)
        if match is None:
            continue
        while outer and outer[-1][0] >= indentation:
            outer.pop()
        name = ".".join([*(name for _, name in outer), match[1]])
        if header:
            outer.append((indentation, match[1]))
        yield Definition(name, start, _end(lines, start, indentation))


def _end(lines: list[str], start: int, indentation: int) -> int:
    """The line after the definition: the first that is not deeper, after the brackets of its head are closed."""
    stop, depth = start, 0
    while stop < len(lines):
        line = lines[stop]
        code = line.partition("#")[0].strip()
        if code and stop > start and depth <= 0 and len(line) - len(line.lstrip()) <= indentation:
            break
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        stop += 1
    return stop


def matches(text: str, definition: Definition, pattern: str) -> Iterator[tuple[int, int]]:
    """Spans of lines of ``definition`` that are those of ``pattern``; blank lines and spacing do not count."""
    lines = text.split("\n")
    target = [_normalised(line) for line in pattern.split("\n") if line.strip()]
    numbers = [number for number in range(definition.start, definition.stop) if lines[number].strip()]
    for first in range(len(numbers) - len(target) + 1):
        span = numbers[first : first + len(target)]
        if target and [_normalised(lines[number]) for number in span] == target:
            yield span[0], span[-1] + 1


def replace(text: str, span: tuple[int, int], code: str) -> str:
    """``text`` with ``code`` in place of the lines of ``span``, indented as the first of them."""
    lines = text.split("\n")
    first = lines[span[0]]
    indentation = first[: len(first) - len(first.lstrip())]
    code = textwrap.indent(textwrap.dedent(code).rstrip("\n"), indentation)
    lines[slice(*span)] = code.split("\n") if code else []
    return "\n".join(lines)


def _normalised(line: str) -> str:
    return " ".join(line.split())
