"""Resolve dotted names: a column with exactly that name wins over a field of a struct.

``col("a.b")`` is ambiguous until it is resolved against columns. :func:`exact` decides: the column named ``a.b`` wins.
``col("a").field("b")`` and ``col(["a", "b"])`` are the field, ``col(["a.b"])`` is the column.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, TypeVar

from pqext.dataset.expressions.conditions import Expression, Operand
from pqext.dataset.expressions.operands import Column, NamedValue, VariantField

T = TypeVar("T")


def exact(node: T, names: Container[str]) -> T:
    """Resolve the dotted names in a condition or value that equal one of ``names``."""
    if not dotted_columns(node):
        return node
    made: T = replace_columns(node, lambda column: column.exact(names))
    return made


def dotted_columns(node: Any) -> list[Column]:
    """Return the columns of a condition or value whose dotted names may also be names of top-level columns."""
    results: list[Column] = []

    def collect(column: Column) -> Column:
        if column.dotted > 1:
            results.append(column)
        return column

    replace_columns(node, collect)
    return results


def replace_columns(node: Any, replacement: Callable[[Column], Any]) -> Any:
    """Replace each column in ``node``, an immutable tree; return ``node`` itself if nothing changes."""
    if isinstance(node, Column):
        return replacement(node)
    if isinstance(node, VariantField):
        column = replacement(node.column)
        is_same = column is node.column or not isinstance(column, Column)  # VARIANT columns cannot be computed
        return node if is_same else replace(node, column=column)
    if isinstance(node, tuple):
        parts = tuple(replace_columns(part, replacement) for part in node)
        return parts if any(new is not old for old, new in zip(node, parts, strict=True)) else node
    if not isinstance(node, Expression | Operand | NamedValue):
        return node
    changed: dict[str, Any] = {}
    for field in filter(attrgetter("init"), fields(node)):
        old = getattr(node, field.name)
        first = old[:2] if isinstance(old, tuple) else (old,)  # lists of literals may be long, and contain no columns
        is_tree = any(isinstance(item, Expression | Operand) for item in first)
        new = replace_columns(old, replacement) if is_tree else old
        if new is not old:
            changed[field.name] = new
    return replace(node, **changed) if changed else node
