"""Filters that Spark pushes to a data source, as expressions of pqext."""

from __future__ import annotations

from typing import Any

from pyspark.sql import datasource as spark

from pqext.core.schema import Schema
from pqext.dataset.binding import bind
from pqext.dataset.expressions import Expression, Operand, all_of, col
from pqext.spark.query import VIRTUAL, Query

_COMPARISONS: dict[type, str] = {
    spark.EqualTo: "__eq__",
    spark.LessThan: "__lt__",
    spark.LessThanOrEqual: "__le__",
    spark.GreaterThan: "__gt__",
    spark.GreaterThanOrEqual: "__ge__",
}


def translate(filter: Any, query: Query, schema: Schema) -> Expression | None:
    """An expression that is true wherever ``filter`` is; None when there is none that statistics could use."""
    try:
        expression = _translate(filter, query)
        if expression is not None:
            bind(expression, schema)
        return expression
    except (TypeError, ValueError):
        return None  # Spark evaluates it in any case


def _translate(filter: Any, query: Query) -> Expression | None:
    if isinstance(filter, spark.Not):
        return _negated(filter.child, query)
    operand = _operand(filter.attribute, query)
    if operand is None:
        return None
    if isinstance(filter, spark.IsNull):
        return operand.is_null()
    if isinstance(filter, spark.IsNotNull):
        return operand.is_not_null()
    if isinstance(filter, spark.EqualNullSafe):
        return operand.is_null() if filter.value is None else operand == filter.value
    if isinstance(filter, spark.In):
        return operand.isin([value for value in filter.value if value is not None])
    if isinstance(filter, spark.StringStartsWith):
        return _starts_with(operand, filter.value)
    compare = _COMPARISONS.get(type(filter))
    expression: Expression | None = getattr(operand, compare)(filter.value) if compare is not None else None
    return expression


def _negated(filter: Any, query: Query) -> Expression | None:
    """Only what is null on null in both worlds: ``NOT (a <=> 5)`` is true on null, which ``~(a == 5)`` is not."""
    if type(filter) in _COMPARISONS or (isinstance(filter, spark.In) and None not in filter.value):
        expression = _translate(filter, query)
        return None if expression is None else ~expression
    return None


def _operand(attribute: tuple[str, ...], query: Query) -> Operand | None:
    if attribute[0] == VIRTUAL and query.virtual:
        operand: Operand | None = query.virtual_operand(attribute[1:])
        return operand
    return col(list(attribute))


def _starts_with(operand: Operand, prefix: str) -> Expression | None:
    """Texts from ``prefix`` on, up to the prefix whose last character is the next one."""
    for at in range(len(prefix) - 1, -1, -1):
        following = ord(prefix[at]) + 1
        if following == 0xD800:
            following = 0xE000  # surrogates are not characters
        if following <= 0x10FFFF:
            return all_of([operand >= prefix, operand < prefix[:at] + chr(following)])
    return operand >= prefix if prefix else None
