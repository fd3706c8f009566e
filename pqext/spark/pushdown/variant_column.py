"""Columns that know where their variant's leaf lies, and conditions that carry a guard beside the exact form.

Both are ordinary Spark columns, on Classic and on Connect: the class of the session's own columns is extended
at run time. A condition is the column ``guard AND exact``; ``&``, ``|`` and ``~`` join the parts separately,
because Spark pushes neither ``(g1 AND e1) OR (g2 AND e2)`` nor ``NOT (g AND e)``, but does push
``(g1 OR g2) AND (e1 OR e2)``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.format.predicate import Operator
from pqext.dataset.expressions import NEGATED
from pqext.spark.pushdown.guards import OPERATORS, leaf_guard, list_guard, plain_guard, spark_literal, with_residual


@dataclass(frozen=True)
class Condition:
    """A boolean column ``exact``, and what can be pushed beside it for it and for its negation."""

    exact: Column
    guard: Column | None = None
    guard_negated: Column | None = None

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            self.exact & other.exact,
            _both(self.guard, other.guard),
            _either(self.guard_negated, other.guard_negated),
        )

    def __or__(self, other: Condition) -> Condition:
        return Condition(
            self.exact | other.exact,
            _either(self.guard, other.guard),
            _both(self.guard_negated, other.guard_negated),
        )

    def __invert__(self) -> Condition:
        return Condition(~self.exact, self.guard_negated, self.guard)

    @property
    def column(self) -> Column:
        """The condition as one column, to filter by."""
        return self.exact if self.guard is None else self.guard & self.exact


def _both(left: Column | None, right: Column | None) -> Column | None:
    return left & right if left is not None and right is not None else left if right is None else right


def _either(left: Column | None, right: Column | None) -> Column | None:
    return left | right if left is not None and right is not None else None


@dataclass(frozen=True)
class Value:
    """A value taken out of a variant, of Spark type ``type``, with its leaf's columns where it has a leaf."""

    exact: Column
    type: T.DataType
    leaf: Column | None = None
    leaf_type: T.DataType | None = None
    residual: Column | None = None

    def compare(self, op: Operator, other: Any) -> Condition:
        """``value op other``, where ``other`` is a literal or a column."""
        exact = OPERATORS[op](self.exact, spark_literal(other))
        if isinstance(other, Column) or self.leaf is None or self.leaf_type is None:
            return Condition(exact)
        guards = [leaf_guard(self.leaf, self.leaf_type, self.type, o, other) for o in (op, NEGATED[op])]
        return Condition(exact, *(with_residual(guard, self.residual) for guard in guards))

    def is_in(self, values: Iterable[Any]) -> Condition:
        """Is the value one of ``values``?"""
        values = list(values)
        exact = self.exact.isin([spark_literal(value) for value in values])
        if self.leaf is None or self.leaf_type is None or any(isinstance(value, Column) for value in values):
            return Condition(exact)
        guard = list_guard(self.leaf, self.leaf_type, self.type, values)
        return Condition(exact, with_residual(guard, self.residual))

    def is_not_null(self) -> Condition:
        """Is there a value that casts to the type?"""
        guard = None if self.leaf is None else with_residual(self.leaf.isNotNull(), self.residual)
        return Condition(self.exact.isNotNull(), guard)

    def is_null(self) -> Condition:
        """Is there no value, or one that does not cast to the type?"""
        return ~self.is_not_null()

    @property
    def column(self) -> Column:
        """The value as a column whose comparisons carry guards."""
        return _extend(self.exact, _ValueMixin, "_pqext_value", self)


def plain_comparison(column: Column, op: Operator, value: Any) -> Condition:
    """``column op value`` for a plain column, in a form that does not spoil the guards beside it."""
    value = spark_literal(value)
    guards = (plain_guard(column, o, value) for o in (op, NEGATED[op]))
    return Condition(OPERATORS[op](column, value), *guards)


class _ConditionMixin:
    """What a condition's column does differently from any other column."""

    _pqext_condition: Condition

    def __and__(self, other: Any) -> Column:
        return _as_column(self._pqext_condition & _as_condition(other))

    def __rand__(self, other: Any) -> Column:
        return _as_column(_as_condition(other) & self._pqext_condition)

    def __or__(self, other: Any) -> Column:
        return _as_column(self._pqext_condition | _as_condition(other))

    def __ror__(self, other: Any) -> Column:
        return _as_column(_as_condition(other) | self._pqext_condition)

    def __invert__(self) -> Column:
        return _as_column(~self._pqext_condition)


class _ValueMixin:
    """What a variant value's column does differently from any other column."""

    _pqext_value: Value

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return _as_column(self._pqext_value.compare("==", other))

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return _as_column(self._pqext_value.compare("!=", other))

    def __lt__(self, other: Any) -> Column:
        return _as_column(self._pqext_value.compare("<", other))

    def __le__(self, other: Any) -> Column:
        return _as_column(self._pqext_value.compare("<=", other))

    def __gt__(self, other: Any) -> Column:
        return _as_column(self._pqext_value.compare(">", other))

    def __ge__(self, other: Any) -> Column:
        return _as_column(self._pqext_value.compare(">=", other))

    __hash__ = None  # type: ignore[assignment]

    def isin(self, *values: Any) -> Column:
        """As ``Column.isin``."""
        listed = values[0] if len(values) == 1 and isinstance(values[0], list | set | tuple) else values
        return _as_column(self._pqext_value.is_in(listed))

    def between(self, low: Any, high: Any) -> Column:
        """As ``Column.between``."""
        return _as_column(self._pqext_value.compare(">=", low) & self._pqext_value.compare("<=", high))

    def isNotNull(self) -> Column:
        """As ``Column.isNotNull``."""
        return _as_column(self._pqext_value.is_not_null())

    def isNull(self) -> Column:
        """As ``Column.isNull``."""
        return _as_column(self._pqext_value.is_null())


def _as_condition(column: Any) -> Condition:
    if isinstance(column, _ConditionMixin):
        return column._pqext_condition
    # A plain column could be its own guard, but what is random must not be evaluated twice.
    return Condition(column if isinstance(column, Column) else F.lit(column))


def _as_column(condition: Condition) -> Column:
    return _extend(condition.column, _ConditionMixin, "_pqext_condition", condition)


def _extend(column: Column, mixin: type, attribute: str, value: object) -> Column:
    """``column`` as an instance of its own class extended by ``mixin``."""
    extended: Column = object.__new__(_subclass(column.__class__.__mro__, mixin))
    extended.__dict__.update(column.__dict__)
    extended.__dict__[attribute] = value
    return extended


@cache
def _subclass(bases: tuple[type, ...], mixin: type) -> type[Any]:
    return type(mixin.__name__.strip("_"), (mixin, bases[0]), {})
