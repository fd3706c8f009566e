"""Columns as text: names, ``*``, renamed columns and SQL expressions, as in ``--select`` and :meth:`Scan.select`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from pqext.core.base.suggestions import unknown_column_message
from pqext.dataset.expressions import Column, VariantField
from pqext.dataset.notations.sql import value_from_sql
from pqext.dataset.notations.sql_paths import PathError, path_spans

_ALIAS = re.compile(r"(?P<value>.*\S)\s+as\s+(?P<name>\w+|\"(?:[^\"]|\"\")+\")", re.S | re.I)
_STAR = re.compile(
    r"\*(?:\s+(?:exclude|except)\s*(?:\((?P<names>.+)\)|(?P<name>[\w.]+|\"(?:[^\"]|\"\")+\")))?", re.S | re.I
)
_RENAMED = re.compile(r"(?P<value>\S+)\s+(?P<name>\w+)")
_NAMED = re.compile(r"(?P<name>[^=<>!:'\"()]*[^=<>!:'\"()\s])\s*=\s*(?P<value>[^=\s].*)", re.S)
EXPRESSION = re.compile(r"[-+*/%()`:\"']")
"""Characters that are rare in names and present in every expression."""

Names = Callable[[], Iterable[str]]
"""Returns the names of columns and the dotted names of struct fields."""


def parse_selection(text: str, all_columns: Names = tuple, fields: Names = tuple) -> list[Any]:
    """Parse ``a,b.c,name=event:$.x::int,a * 2 as twice`` into columns for :func:`pqext.scan`.

    Args:
        text: Comma-separated columns and expressions.
        all_columns: Returns the columns that ``*`` selects; ``* exclude (a, b)`` omits some of them.
        fields: Returns names that are never parsed as expressions.

    Raises:
        ValueError: If an item is neither a name nor an expression.

    >>> parse_selection('a, "b,c"')
    ['a', 'b,c']
    >>> *names, (name, value) = parse_selection("*, a * 2 as twice", lambda: ["a", "b"])
    >>> names, name, str(value)
    (['a', 'b'], 'twice', 'a * 2')
    """
    items = [item.strip() for item in split_at_commas(text)]
    if not all(items):
        raise ValueError(f"column list {text!r} has an empty entry; expected a comma-separated list such as a,b.c")
    columns: list[Any] = []
    stars: set[str] = set()
    for item in items:
        star = _STAR.fullmatch(item)
        if star is None:
            columns.append(column_from_text(item, fields))
        else:
            stars.update(selected := _expand_star(star["names"] or star["name"], list(all_columns())))
            columns += selected
    for name, count in Counter(column for column in columns if isinstance(column, str)).items():
        if count > 1 and name in stars:
            raise ValueError(
                f"column {name!r} is selected twice; exclude it from *, as in \"* exclude ({name})\", or "
                f"rename it, as in \"{name} as other\""
            )
    return columns


def _expand_star(exclusion: str | None, names: list[str]) -> list[str]:
    """Return ``names`` without the comma-separated names in ``exclusion``. Raises ``ValueError`` for unknown names."""
    excluded = [_unquote(item.strip()) for item in split_at_commas(exclusion or "") if exclusion]
    for name in excluded:
        if name not in names:
            raise ValueError(unknown_column_message(name, names))
    return [name for name in names if name not in excluded]


def split_at_commas(text: str) -> list[str]:
    """Split text at commas that are not within quotes or brackets."""
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
    """Return the offsets inside VARIANT paths. Quotes and brackets at these offsets do not delimit columns."""
    if ":" not in text:
        return set()
    try:
        return {offset for span in path_spans(text) for offset in range(span.start, span.stop)}
    except PathError:  # the error is reported when the column is parsed
        return set()


def column_from_text(item: str, fields: Names) -> Any:
    """Parse one item of a column list. An item that equals a name in ``fields()`` is that column."""
    if re.fullmatch(r'"(?:[^"]|"")*"', item):
        return _unquote(item)
    plain = not EXPRESSION.search(item)
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
        value = value_from_sql(item)
        return (item, value) if _needs_name(value) else value
    return (_unquote(match["name"].strip()), value_from_sql(match["value"]))


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _needs_name(value: Any) -> bool:
    """Return whether an expression requires a name in the result, which columns and VARIANT fields do not."""
    return not isinstance(value, Column | VariantField)


def dotted_names(fields: Iterable[Any], prefix: Sequence[str] = ()) -> set[str]:
    """Return the names of Arrow fields, and the dotted names of fields within structs."""
    names = set()
    for field in fields:
        path = (*prefix, field.name)
        names.add(".".join(path))
        if pa.types.is_struct(field.type):
            names |= dotted_names(field.type, path)
    return names
