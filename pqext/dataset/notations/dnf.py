"""Filters as lists of tuples in disjunctive normal form, as in pyarrow and pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from pqext.core.base.suggestions import excerpt
from pqext.core.format.predicate import COMPARE
from pqext.dataset.expressions import Comparison, Expression, Not, Value, all_of, any_of, col
from pqext.dataset.expressions.operators import Predicates, as_condition
from pqext.dataset.notations.json_text import from_json

Condition: TypeAlias = Expression | Value | tuple[Any, str, Any]
"""An expression, a boolean column, or a tuple of a column, an operator and a literal."""
Filter: TypeAlias = Condition | Sequence[Condition | Sequence[Condition]] | str | None
"""Types accepted by ``filter=`` and Spark's ``where=``.

An expression or a boolean column, a tuple, lists of these in disjunctive normal form, an SQL condition
(:func:`pqext.filters.from_sql`), or an expression's JSON text (:func:`pqext.filters.to_json`).
"""


def from_dnf(filters: Sequence[Any]) -> Expression:
    """Convert ``[[("a", ">", 3), ("b", "in", [1, 2])], [("c", "=", "x")]]`` to an expression.

    Inner lists are conjunctions, and the outer list is their disjunction; a single list of tuples is a conjunction. A
    tuple consists of a column (a dotted name or a list of path components), an operator (``= == != < <= > >= in`` or
    ``not in``) and a literal. A single tuple needs no list. Expressions and boolean columns can replace tuples. NaN
    compares as in :func:`pqext.col`: it is greater than every number, unlike in pyarrow and pandas.

    Raises:
        ValueError: If ``filters`` has any other structure.
    """
    if not isinstance(filters, list | tuple) or not filters:
        raise ValueError("filters must be a non-empty list of tuples, or of lists of tuples")
    if isinstance(filters, tuple) and len(filters) == 3 and isinstance(filters[1], str):
        return _condition(filters)
    if all(isinstance(item, _CONDITIONS) for item in filters):
        return all_of([_condition(item) for item in filters])
    if not all(isinstance(item, list) and item for item in filters):
        items = ", ".join(str(item) if isinstance(item, Expression) else repr(item) for item in filters)
        raise ValueError(
            "a filter must be a list of tuples such as ('id', '>', 1) or of expressions, or a list of these lists, "
            f"not [{excerpt(items, limit=100)}]"
        )
    return any_of([all_of([_condition(item) for item in conjunction]) for conjunction in filters])


def as_expression(filter: Any) -> Expression | None:
    """Convert a filter of any type in :data:`Filter` to an expression. Return None if ``filter`` is None."""
    if filter is None or isinstance(filter, Expression):
        return filter
    if isinstance(filter, Predicates):
        return as_condition(filter)
    if isinstance(filter, str):
        return from_text(filter)
    if isinstance(filter, list | tuple):
        return from_dnf(filter)
    kind = type(filter)
    name = kind.__name__ if kind.__module__.startswith(("pqext.", "builtins")) else f"{kind.__module__}.{kind.__name__}"
    if name.startswith(("pyarrow.", "polars.")):
        raise TypeError(
            "a filter must be an expression of pqext, like pqext.col('a') > 5, pqext.col('a').isin([1, 2]) and "
            f"pqext.col('a').is_null(), joined with &, | and ~, not {name}"
        )
    raise TypeError(
        f"a filter must be an expression like pqext.col('a') > 5, a list of tuples or text like 'a > 5', not {name}"
    )


def from_text(text: str) -> Expression:
    """Parse a filter from text: as JSON if it starts with a brace, otherwise as an SQL condition."""
    if text.lstrip().startswith("{"):
        return from_json(text)
    from pqext.dataset.notations.sql import from_sql

    return from_sql(text)


_CONDITIONS = (tuple, Expression, Predicates)


def _condition(item: Any) -> Expression:
    if isinstance(item, Expression | Predicates):
        return as_condition(item)
    if not isinstance(item, tuple) or len(item) != 3:
        raise ValueError(f"a condition must be an expression or a tuple (column, operator, value), not {item!r}")
    path, operator, value = item
    column = col(path)
    if operator == "in":
        return column.isin(value)
    if operator == "not in":
        return Not(column.isin(value))
    operator = "==" if operator == "=" else operator
    if operator not in COMPARE:
        raise ValueError(f"unknown operator {operator!r}; use one of =, {', '.join(COMPARE)}, in, not in")
    return Comparison(column, operator, value)
