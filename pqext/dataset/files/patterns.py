"""File name patterns: ``{a,b}`` for alternatives, ``[^a]`` for any other character, as in Hadoop."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from pqext.core.base.errors import LimitError

_MOST = 10_000
_MOST_READ = 1 << 22
"""Maximum length of a pattern."""
_MARKS = re.compile("[{},]")
_SET = re.compile(r"\[([!^]?)(\]?[^]]*\])")


def alternatives(pattern: str) -> list[str]:
    """The patterns that ``pattern`` stands for, in order: itself where it has no braces with a comma between.

    Raises ``LimitError`` where they are more than 10,000, or braces are very many and within one another.
    """
    found: list[str] = []
    waiting = [(pattern, 0)]
    left = _MOST_READ
    while waiting:
        one, start = waiting.pop()
        cuts = _group(one, start)
        left -= len(one) - start
        if left < 0:
            raise LimitError(f"pattern {pattern[:60]!r} has too many braces: name folders instead")
        if len(found) + len(waiting) + max(1, len(cuts) - 1) > _MOST:
            raise LimitError(f"pattern {pattern[:60]!r} stands for more than {_MOST:,} others: name folders instead")
        if not cuts:
            found.append(one)
            continue
        before, after = one[: cuts[0]], one[cuts[-1] + 1 :]
        choices = [one[a + 1 : b] for a, b in pairwise(cuts)]
        waiting += [(before + choice + after, len(before)) for choice in reversed(choices)]
    return list(dict.fromkeys(found))


def _group(text: str, start: int) -> list[int]:
    """Return the positions of the first pair of braces after ``start`` that contains commas, and of the commas.

    For nested pairs, the outermost; empty if there is no pair.
    """
    first: list[int] = []
    open_ones: list[list[int]] = []
    for mark in _MARKS.finditer(text, start):
        at = mark.start()
        if mark[0] == "{":
            open_ones.append([at])
        elif mark[0] == "," and open_ones:
            open_ones[-1].append(at)
        elif mark[0] == "}" and open_ones:
            closed = [*open_ones.pop(), at]
            if len(closed) > 2 and (not first or closed[0] < first[0]):
                first = closed
            if first and not open_ones:
                break
    return first


@lru_cache(1000)
def matcher(pattern: str) -> Callable[[str], re.Match[str] | None]:
    """Compile a pattern for names with ``*``, ``?``, ``[abc]``, and ``[!abc]`` or ``[^abc]`` for other characters.

    >>> [name for name in ("a", "b", "^") if matcher("[^b]")(name)]
    ['a', '^']
    """
    in_python = _SET.sub(lambda found: f"[{'!' if found[1] else ''}{found[2]}", pattern)
    return re.compile(fnmatch.translate(in_python)).match
