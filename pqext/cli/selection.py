"""The columns that ``--select`` asks for, as text: names, ``*``, paths of VARIANT columns, and what is computed."""

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
_COMPUTED = re.compile(r"[-+*/%()`:\"']")
"""What a name holds seldom, and a computed value always."""

Names = Callable[[], Iterable[str]]
"""The names of columns and, dotted, of fields of structs, where they are needed."""


def selection(text: str, every: Names = tuple, known: Names = tuple) -> list[Any]:
    """The columns that ``a,b.c,name=event:$.x::int,a * 2 as twice`` stands for, as :func:`pqext.scan` takes them.

    ``every`` gives the columns that ``*`` stands for, of which ``* exclude (a, b)`` leaves some out, and ``known`` the
    names that are never read as what is computed.
    Raises ``ValueError`` for text that is neither.

    >>> selection('a, "b,c"')
    ['a', 'b,c']
    >>> *names, (name, value) = selection("*, a * 2 as twice", lambda: ["a", "b"])
    >>> names, name, str(value)
    (['a', 'b'], 'twice', 'a * 2')
    """
    items = [item.strip() for item in _split(text)]
    if not all(items):
        raise ValueError(f"{text!r} names no columns: write a,b.c")
    found: list[Any] = []
    stars: set[str] = set()
    for item in items:
        star = _STAR.fullmatch(item)
        if star is None:
            found.append(_column(item, known))
        else:
            stars.update(columns := _all(star["names"] or star["name"], list(every())))
            found += columns
    for name, count in Counter(one for one in found if isinstance(one, str)).items():
        if count > 1 and name in stars:
            raise ValueError(
                f"column {name!r} is asked for twice: name one of them, as in \"{name} as other\", "
                f"or leave it out of *, as in \"* exclude ({name})\""
            )
    return found


def ordering(text: str, known: Names = tuple) -> tuple[list[Any], list[bool], list[bool]]:
    """The columns of ``a desc nulls first, b * 2``, which of them descend, and which have nulls first.

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
        if words and not _COMPUTED.search(key.path) and name in known() and key.path not in known():
            raise ValueError(f"--order-by {item!r}: after {name} write asc or desc, then nulls first or nulls last")
    columns = [_column(key.path, known) for key in keys]
    values = [column[1] if isinstance(column, tuple) else column for column in columns]
    return values, [key.descending for key in keys], [key.nulls_first for key in keys]


def _all(without: str | None, names: list[str]) -> list[str]:
    """The columns of ``*``, but for those that it excludes."""
    left_out = [_unquoted(one.strip()) for one in _split(without or "") if without]
    for name in left_out:
        if name not in names:
            from pqext.core.base.suggestions import unknown_column_message

            raise ValueError(unknown_column_message(name, names))
    return [name for name in names if name not in left_out]


def _split(text: str) -> list[str]:
    """The parts between commas that stand neither in quotes nor in brackets."""
    parts, depth, quote, within = [""], 0, "", _paths(text)
    for at, character in enumerate(text):
        if at in within:
            pass
        elif quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        else:
            depth = max(0, depth + (character in "([<") - (character in ")]>"))
            if character == "," and not depth:
                parts.append("")
                continue
        parts[-1] += character
    return parts


_QUOTES = "\"'`"


def _paths(text: str) -> set[int]:
    """The places within paths of VARIANT columns, whose quotes and brackets are their own."""
    if ":" not in text:
        return set()
    from pqext.dataset.notations.sql_paths import PathError, path_spans

    try:
        return {at for span in path_spans(text) for at in range(span.start, span.stop)}
    except PathError:  # reported when the column is read
        return set()


def _column(item: str, known: Names) -> Any:
    if re.fullmatch(r'"(?:[^"]|"")*"', item):
        return _unquoted(item)
    plain = not _COMPUTED.search(item)
    match = _ALIAS.fullmatch(item) or _NAMED.fullmatch(item)
    if plain and match is None:
        renamed = _RENAMED.fullmatch(item)
        if renamed is not None and renamed["value"] in known() and item not in known():
            name = "name" if renamed["name"].lower() == "as" else renamed["name"]
            told = f"there is no column {item!r}: another name is given by as"
            raise ValueError(f"{told}, write {renamed['value']} as {name}")
        return item
    if item in known():
        return item
    if match is None:
        value = _value(item)
        return (item, value) if _needs_name(value) else value
    return (_unquoted(match["name"].strip()), _value(match["value"]))


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _value(text: str) -> Any:
    from pqext.dataset.notations.sql import value_from_sql

    return value_from_sql(text)


def _needs_name(value: Any) -> bool:
    """Columns and values within VARIANT columns have names of their own."""
    from pqext.dataset.expressions import Column, VariantField

    return not isinstance(value, Column | VariantField)


def dotted(fields: Iterable[Any], above: Sequence[str] = ()) -> set[str]:
    """The names of Arrow fields and, dotted, of those within structs."""
    import pyarrow as pa

    found = set()
    for field in fields:
        path = (*above, field.name)
        found.add(".".join(path))
        if pa.types.is_struct(field.type):
            found |= dotted(field.type, path)
    return found
