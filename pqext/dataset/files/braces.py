"""Alternatives within a pattern: ``{a,b}`` stands for one or the other, as in Spark and in shells."""

from __future__ import annotations

from collections.abc import Iterator

from pqext.core.errors import LimitError

_MOST = 10_000


def alternatives(pattern: str) -> list[str]:
    """The patterns that ``pattern`` stands for, in order: itself where it has no braces with a comma between.

    Raises ``LimitError`` where they are more than 10,000.
    """
    found: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        parts = next(_groups(one), None)
        if parts is None:
            found.append(one)
        else:
            before, choices, after = parts
            waiting += [before + choice + after for choice in reversed(choices)]
        if len(found) + len(waiting) > _MOST:
            raise LimitError(f"pattern {pattern[:60]!r} stands for more than {_MOST:,} others: name folders instead")
    return list(dict.fromkeys(found))


def _groups(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Pairs of braces with a comma between, outermost first: what is before, the choices, and what is behind."""
    start = text.find("{")
    while start >= 0:
        depth, cuts = 0, [start]
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 1 and text[at] == ",":
                cuts.append(at)
            if depth == 0:
                if len(cuts) > 1:
                    ends = [*cuts[1:], at]
                    yield text[:start], [text[a + 1 : b] for a, b in zip(cuts, ends, strict=True)], text[at + 1 :]
                break
        start = text.find("{", start + 1)
