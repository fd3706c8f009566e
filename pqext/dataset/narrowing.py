"""How a question over files is narrowed to fewer columns, and what its filter's names stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from pqext.core.suggest import not_a_column
from pqext.dataset.expressions import Column, Expression, Operand, Value, VariantField
from pqext.dataset.planning.projection import Computed

Result = tuple["str | Computed", ...]


def selected(before: Result | None, wanted: Result) -> Result:
    """The ``wanted`` columns of a result that had those ``before``, all of the files' when None.

    A name stands for all parts of a column that there were, and a path for what lies within a column. Raises
    ``ValueError`` for a name that is not among them.
    """
    if before is None:
        return wanted
    found: list[str | Computed] = []
    for one in wanted:
        if isinstance(one, Computed):
            found.append(one)
            continue
        whole = [known for known in before if one == (known if isinstance(known, str) else known.name)]
        names = [known for known in before if isinstance(known, str)]
        parts = [known for known in names if known.startswith(one + ".")]
        above = [one] if any(one.startswith(known + ".") for known in names) else []
        if not (whole or parts or above):
            every = [known if isinstance(known, str) else known.name for known in before]
            raise ValueError(not_a_column(one, every).replace("the file has", "the scan has"))
        found += whole or above or parts
    return tuple(dict.fromkeys(found))


def with_computed(expression: Expression, computed: Sequence[Computed]) -> Expression:
    """``expression`` where names of ``computed`` columns stand for the values that they are."""
    if not computed:
        return expression
    made: Expression = _replaced(expression, {(one.name,): one.field for one in computed})
    return made


def _replaced(node: Any, known: dict[tuple[str, ...], Value]) -> Any:
    """The tree below ``node``, an immutable value, with the columns at ``known`` paths replaced."""
    if isinstance(node, Column):
        above = known.get(node.path[:1])
        if len(node.path) > 1 and isinstance(above, Column):  # a field of a struct under another name
            return Column((*above.path, *node.path[1:]))
        return known.get(node.path, node)
    if isinstance(node, tuple):
        return tuple(_replaced(part, known) for part in node)
    if not isinstance(node, Expression | Operand) or isinstance(node, VariantField):
        return node
    parts: dict[str, Any] = {}
    for one in filter(attrgetter("init"), fields(node)):
        old = getattr(node, one.name)
        new = _replaced(old, known)
        if new is not old and not (isinstance(old, tuple) and all(map(_is_same, old, new))):
            parts[one.name] = new
    return replace(node, **parts) if parts else node


def _is_same(one: Any, other: Any) -> bool:
    return one is other
