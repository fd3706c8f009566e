"""Parse ``--select`` and ``--order-by``: column names, ``*``, VARIANT paths and SQL expressions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_ALIAS = re.compile(r"(?P<value>.*\S)\s+as\s+(?P<name>\w+|\"(?:[^\"]|\"\")+\")", re.S | re.I)
_STAR = re.compile(
    r"\*(?:\s+(?:exclude|except)\s*(?:\((?P<names>.+)\)|(?P<name>[\w.]+|\"(?:[^\"]|\"\")+\")))?", re.S | re.I
)
_RENAMED = re.compile(r"(?P<value>\S+)\s+(?P<name>\w+)")
_NAMED = re.compile(r"(?P<name>[^=<>!:'\"()]*[^=<>!:'\"()\s])\s*=\s*(?P<value>[^=\s].*)", re.S)
_EXPRESSION = re.compile(r"[-+*/%()`:\"']")
"""Characters that are rare in names and present in every expression."""

Names = Callable[[], Iterable[str]]
"""Returns the names of columns and the dotted names of struct fields."""


def selection(text: str, every: Names = tuple, fields: Names = tuple) -> list[Any]:
    """Parse ``a,b.c,name=event:$.x::int,a * 2 as twice`` into columns for :func:`pqext.scan`.

    Args:
        text: Comma-separated columns and expressions.
        every: Returns the columns that ``*`` selects; ``* exclude (a, b)`` omits some of them.
        fields: Returns names that are never parsed as expressions.

    Raises:
        ValueError: If an item is neither a name nor an expression.

    >>> selection('a, "b,c"')
    ['a', 'b,c']
    >>> *names, (name, value) = selection("*, a * 2 as twice", lambda: ["a", "b"])
    >>> names, name, str(value)
    (['a', 'b'], 'twice', 'a * 2')
    """
    items = [item.strip() for item in _split(text)]
    if not all(items):
        raise ValueError(f"empty column list {text!r}; expected a comma-separated list such as a,b.c")
    columns: list[Any] = []
    stars: set[str] = set()
    for item in items:
        star = _STAR.fullmatch(item)
        if star is None:
            columns.append(_column(item, fields))
        else:
            stars.update(selected := _expand_star(star["names"] or star["name"], list(every())))
            columns += selected
    for name, count in Counter(column for column in columns if isinstance(column, str)).items():
        if count > 1 and name in stars:
            raise ValueError(
                f"column {name!r} is selected twice; rename one, as in \"{name} as other\", "
                f"or exclude it from *, as in \"* exclude ({name})\""
            )
    return columns


def ordering(text: str, fields: Names = tuple) -> tuple[list[Any], list[bool], list[bool]]:
    """Parse ``a desc nulls first, b * 2`` into columns, descending flags and nulls-first flags.

    >>> ordering("mag desc, id")
    (['mag', 'id'], [True, False], [False, False])
    """
    from pqext.core.options.indexes import sort_keys

    items = [item.strip() for item in _split(text)]
    if not all(items):
        raise ValueError(f"--order-by {text!r} names no column: write mag desc, id")
    keys = [sort_keys([item])[0] for item in items]
    for item, key in zip(items, keys, strict=True):
        name, *words = key.path.split()
        if words and not _EXPRESSION.search(key.path) and name in fields() and key.path not in fields():
            raise ValueError(f"--order-by {item!r}: after {name} write asc or desc, then nulls first or nulls last")
    columns = [_column(key.path, fields) for key in keys]
    values = [column[1] if isinstance(column, tuple) else column for column in columns]
    return values, [key.descending for key in keys], [key.nulls_first for key in keys]


def _expand_star(exclusion: str | None, names: list[str]) -> list[str]:
    """Return the columns of ``*`` without the excluded ones."""
    excluded = [_unquote(item.strip()) for item in _split(exclusion or "") if exclusion]
    for name in excluded:
        if name not in names:
            from pqext.core.base.suggestions import unknown_column_message

            raise ValueError(unknown_column_message(name, names))
    return [name for name in names if name not in excluded]


def _split(text: str) -> list[str]:
    """Split text at commas outside quotes and brackets."""
    items, depth, quote, path_offsets = [""], 0, "", _path_offsets(text)
    for offset, character in enumerate(text):
        if offset in path_offsets:
            pass
        elif quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        else:
            depth = max(0, depth + (character in "([<") - (character in ")]>"))
            if character == "," and not depth:
                items.append("")
                continue
        items[-1] += character
    return items


_QUOTES = "\"'`"


def _path_offsets(text: str) -> set[int]:
    """Return the offsets within VARIANT paths, whose quotes and brackets do not count."""
    if ":" not in text:
        return set()
    from pqext.dataset.notations.sql_paths import PathError, path_spans

    try:
        return {offset for span in path_spans(text) for offset in range(span.start, span.stop)}
    except PathError:  # reported when the column is read
        return set()


def _column(item: str, fields: Names) -> Any:
    if re.fullmatch(r'"(?:[^"]|"")*"', item):
        return _unquote(item)
    plain = not _EXPRESSION.search(item)
    match = _ALIAS.fullmatch(item) or _NAMED.fullmatch(item)
    if plain and match is None:
        renamed = _RENAMED.fullmatch(item)
        if renamed is not None and renamed["value"] in fields() and item not in fields():
            name = "name" if renamed["name"].lower() == "as" else renamed["name"]
            raise ValueError(f"no column {item!r}; to rename a column, write {renamed['value']} as {name}")
        return item
    if item in fields():
        return item
    if match is None:
        value = _value(item)
        return (item, value) if _needs_name(value) else value
    return (_unquote(match["name"].strip()), _value(match["value"]))


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _value(text: str) -> Any:
    from pqext.dataset.notations.sql import value_from_sql

    return value_from_sql(text)


def _needs_name(value: Any) -> bool:
    """Return whether an expression has no name, unlike columns and VARIANT fields."""
    from pqext.dataset.expressions import Column, VariantField

    return not isinstance(value, Column | VariantField)


def dotted(fields: Iterable[Any], above: Sequence[str] = ()) -> set[str]:
    """Return the names of Arrow fields, and the dotted names of struct fields."""
    import pyarrow as pa

    names = set()
    for field in fields:
        path = (*above, field.name)
        names.add(".".join(path))
        if pa.types.is_struct(field.type):
            names |= dotted(field.type, path)
    return names
