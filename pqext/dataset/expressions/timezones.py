"""Apply the reader's time zone to casts between instants and local times in an expression."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

from pqext.dataset.expressions.operands import Cast, VariantField
from pqext.variant.access.targets import depends_on_timezone, target_type
from pqext.variant.timezones import find_timezone

T = TypeVar("T")


def in_timezone(node: T, timezone: str) -> T:
    """Return a copy of ``node`` in which casts without a timezone use ``timezone``.

    ``node`` is an expression, a value, a named value or a tuple of these. If no cast depends on the timezone, ``node``
    itself is returned. Raises ``ValueError`` if the timezone is unknown.

    >>> from pqext import col
    >>> in_timezone(col("at").cast("date") > "2024-05-01", "Europe/Paris").operand.timezone
    'Europe/Paris'
    """
    result: T = _in_timezone(node, timezone)
    return result


def _in_timezone(node: Any, timezone: str) -> Any:
    if isinstance(node, tuple):
        parts = tuple(_in_timezone(part, timezone) for part in node)
        return parts if any(new is not old for new, old in zip(parts, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {}
    for member in filter(attrgetter("init"), fields(node)):
        old = getattr(node, member.name)
        new = _in_timezone(old, timezone)
        if new is not old:
            changed[member.name] = new
    if isinstance(node, Cast | VariantField) and _depends_on_timezone(node, timezone):
        changed["timezone"] = timezone
    return replace(node, **changed) if changed else node


def _depends_on_timezone(node: Cast | VariantField, timezone: str) -> bool:
    """Return whether a cast without a timezone has other results in ``timezone`` than in UTC."""
    is_open = node.timezone is None and depends_on_timezone(target_type(node.type))
    return is_open and find_timezone(timezone) is not None
