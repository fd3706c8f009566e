"""Words for errors: what may have been meant by a name that is not there, what there is, what of a text to quote."""

from __future__ import annotations

from collections.abc import Iterable

MAX_LISTED = 30
MAX_NAME = 200
"""Characters of a name to which others may be close."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'lat'?`` when a known name is close to ``name``, in any case of its letters; else nothing.

    >>> did_you_mean("latt", ["lon", "lat"])
    "; did you mean 'lat'?"
    """
    from difflib import get_close_matches

    if len(name) > MAX_NAME:
        return ""
    by_lower = {one.lower(): one for one in known}
    close = get_close_matches(name.lower(), by_lower, 1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def listed(names: Iterable[str]) -> str:
    """The names, separated by commas; of a long list the first ones and how many more there are."""
    every = list(names)
    more = f" and {len(every) - MAX_LISTED} more" if len(every) > MAX_LISTED else ""
    return ", ".join(every[:MAX_LISTED]) + more


def around(text: str, position: int = 0, limit: int = 300) -> str:
    """``text``, or the ``limit`` characters of it around a position, with dots where something is left out."""
    start = max(0, min(position, len(text)) - limit // 2)
    stop = start + limit
    return ("..." if start else "") + text[start:stop] + ("..." if len(text) > stop else "")


def not_a_leaf(name: str, leaves: Iterable[str]) -> str:
    """What to say after the ``name`` of a column that is none of the dotted paths of ``leaves``.

    It is a group of some of them, or it is close to one, or all are listed.
    """
    every = list(leaves)
    below = [leaf for leaf in every if leaf.startswith(name + ".")]
    if below:
        return f", which is a group: name a column within it, {listed(below)}"
    meant = did_you_mean(name, every)
    return f"{meant} The columns are {listed(every)}" if meant else f"; the columns are {listed(every)}"


def not_a_column(name: str, columns: Iterable[str]) -> str:
    """What to say of a column that is none of the top-level ``columns``: what may have been meant, or what there is."""
    every = list(columns)
    meant = did_you_mean(name, every) if isinstance(name, str) else ""
    return f"no column {around(str(name))!r}{meant or '; the file has ' + around(listed(every), 0, 3000)}"
