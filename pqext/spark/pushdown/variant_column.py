"""Spark columns of VARIANT values with their shredded leaf, and conditions that consist of a guard and an exact part.

Both are ordinary Spark columns, on Spark Classic and Connect: the class of the session's columns is extended at run
time. A condition is the column ``guard AND exact``; ``&``, ``|`` and ``~`` join the parts separately, because Spark
pushes down ``(g1 OR g2) AND (e1 OR e2)``, but neither ``(g1 AND e1) OR (g2 AND e2)`` nor ``NOT (g AND e)``.
:func:`spark_path` formats paths within a VARIANT for Spark's own functions.
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
from pqext.spark.pushdown.guards import OPERATORS, extend_guard, leaf_guard, list_guard, plain_guard, spark_literal
from pqext.variant.access.path import Path

_MAX_INDEX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class ShreddedGroup:
    """Deepest group of a shredded struct on a path, and the remaining steps of the path.

    ``group`` lists the struct fields from the VARIANT down to the group of ``value`` and ``typed_value``. Values at the
    path are not stored elsewhere, because shredded fields never appear in the residuals of their parent objects
    (Variant Shredding, "Objects"). ``type`` is the Spark type of ``typed_value`` if the path ends at a primitive leaf.
    """

    group: tuple[str, ...]
    remaining_path: Path
    has_value: bool
    has_typed: bool
    type: T.DataType | None

    def member(self, variant: Column, name: str) -> Column:
        """Return member ``name`` of the group in the struct column ``variant``."""
        column = variant
        for step in (*self.group, name):
            column = column[step]
        return column


def find_leaf(struct: T.StructType, path: Path) -> ShreddedGroup:
    """Follow ``path`` through the typed objects of a shredded struct, and return the leaf or the last group."""
    group: list[str] = []
    node = struct
    steps = list(path)
    while steps:
        typed = node["typed_value"].dataType if "typed_value" in node.names else None
        if not isinstance(typed, T.StructType) or steps[0] not in typed.names:
            break
        step = str(steps.pop(0))
        child = typed[step].dataType
        assert isinstance(child, T.StructType)
        group += ["typed_value", step]
        node = child
    typed = node["typed_value"].dataType if "typed_value" in node.names else None
    # Fields that are not shredded are in the residual of their object.
    has_typed = typed is not None and not (steps and isinstance(typed, T.StructType))
    leaf = typed if not steps and typed is not None and typed.typeName() not in ("struct", "array") else None
    return ShreddedGroup(tuple(group), tuple(steps), "value" in node.names, has_typed, leaf)


@dataclass(frozen=True)
class Condition:
    """Boolean column ``exact``, with a guard for the condition and a guard for its negation.

    A guard is a necessary condition that Spark can push down.
    """

    exact: Column
    guard: Column | None = None
    guard_negated: Column | None = None

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            self.exact & other.exact,
            _conjunction(self.guard, other.guard),
            _combine_guards(self.guard_negated, other.guard_negated),
        )

    def __or__(self, other: Condition) -> Condition:
        return Condition(
            self.exact | other.exact,
            _combine_guards(self.guard, other.guard),
            _conjunction(self.guard_negated, other.guard_negated),
        )

    def __invert__(self) -> Condition:
        return Condition(~self.exact, self.guard_negated, self.guard)

    @property
    def column(self) -> Column:
        """Condition as a column for filters."""
        return self.exact if self.guard is None else self.guard & self.exact


def _conjunction(guard: Column | None, other: Column | None) -> Column | None:
    return guard & other if guard is not None and other is not None else guard if other is None else other


def _combine_guards(guard: Column | None, other: Column | None) -> Column | None:
    return guard | other if guard is not None and other is not None else None


@dataclass(frozen=True)
class Value:
    """Value extracted from a VARIANT as Spark type ``type``, with the columns of the leaf if the value is shredded."""

    exact: Column
    type: T.DataType
    leaf: Column | None = None
    leaf_type: T.DataType | None = None
    residual: Column | None = None

    def compare(self, op: Operator, other: Any) -> Condition:
        """Return ``value op other`` for a literal or column ``other``."""
        exact = OPERATORS[op](self.exact, spark_literal(other))
        if isinstance(other, Column) or self.leaf is None or self.leaf_type is None:
            return Condition(exact)
        guards = [leaf_guard(self.leaf, self.leaf_type, self.type, operator, other) for operator in (op, NEGATED[op])]
        return Condition(exact, *(extend_guard(guard, self.residual) for guard in guards))

    def is_in(self, values: Iterable[Any]) -> Condition:
        """Return whether the value is one of ``values``."""
        values = list(values)
        exact = self.exact.isin([spark_literal(value) for value in values])
        if self.leaf is None or self.leaf_type is None or any(isinstance(value, Column) for value in values):
            return Condition(exact)
        guard = list_guard(self.leaf, self.leaf_type, self.type, values)
        return Condition(exact, extend_guard(guard, self.residual))

    def is_not_null(self) -> Condition:
        """Return whether the value exists and can be cast to the type."""
        guard = None if self.leaf is None else extend_guard(self.leaf.isNotNull(), self.residual)
        return Condition(self.exact.isNotNull(), guard)

    def is_null(self) -> Condition:
        """Return whether the value is missing or cannot be cast to the type."""
        return ~self.is_not_null()

    @property
    def column(self) -> Column:
        """Value as a column whose comparisons have guards."""
        return _extend(self.exact, _ValueMixin, "_pqext_value", self)


def compare_plain_column(column: Column, op: Operator, value: Any) -> Condition:
    """Return ``column op value`` for a plain column, with guards to combine with guards of VARIANT values."""
    value = spark_literal(value)
    guards = (plain_guard(column, operator, value) for operator in (op, NEGATED[op]))
    return Condition(OPERATORS[op](column, value), *guards)


class _ConditionMixin:
    """Operators AND, OR and NOT of a condition's column. They combine both the guards and the exact conditions."""

    _pqext_condition: Condition

    def __and__(self, other: Any) -> Column:
        return _to_column(self._pqext_condition & _to_condition(other))

    def __rand__(self, other: Any) -> Column:
        return _to_column(_to_condition(other) & self._pqext_condition)

    def __or__(self, other: Any) -> Column:
        return _to_column(self._pqext_condition | _to_condition(other))

    def __ror__(self, other: Any) -> Column:
        return _to_column(_to_condition(other) | self._pqext_condition)

    def __invert__(self) -> Column:
        return _to_column(~self._pqext_condition)


class _ValueMixin:
    """Comparisons of a column that was extracted from a VARIANT. They add guards to the conditions."""

    _pqext_value: Value

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return _to_column(self._pqext_value.compare("==", other))

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return _to_column(self._pqext_value.compare("!=", other))

    def __lt__(self, other: Any) -> Column:
        return _to_column(self._pqext_value.compare("<", other))

    def __le__(self, other: Any) -> Column:
        return _to_column(self._pqext_value.compare("<=", other))

    def __gt__(self, other: Any) -> Column:
        return _to_column(self._pqext_value.compare(">", other))

    def __ge__(self, other: Any) -> Column:
        return _to_column(self._pqext_value.compare(">=", other))

    __hash__ = None  # type: ignore[assignment]

    def isin(self, *values: Any) -> Column:
        """Return ``Column.isin`` with a guard."""
        items = values[0] if len(values) == 1 and isinstance(values[0], list | set | tuple) else values
        return _to_column(self._pqext_value.is_in(items))

    def between(self, low: Any, high: Any) -> Column:
        """Return ``Column.between`` with a guard."""
        return _to_column(self._pqext_value.compare(">=", low) & self._pqext_value.compare("<=", high))

    def isNotNull(self) -> Column:
        """Return ``Column.isNotNull`` with a guard."""
        return _to_column(self._pqext_value.is_not_null())

    def isNull(self) -> Column:
        """Return ``Column.isNull`` with a guard."""
        return _to_column(self._pqext_value.is_null())


def _to_condition(column: Any) -> Condition:
    if isinstance(column, _ConditionMixin):
        return column._pqext_condition
    # A plain column is not its own guard, because a nondeterministic column must not be evaluated twice.
    return Condition(column if isinstance(column, Column) else F.lit(column))


def _to_column(condition: Condition) -> Column:
    return _extend(condition.column, _ConditionMixin, "_pqext_condition", condition)


def _extend(column: Column, mixin: type, attribute: str, value: object) -> Column:
    """Return a copy of ``column`` with its class extended by ``mixin``."""
    extended: Column = object.__new__(_subclass(column.__class__.__mro__, mixin))
    for name, member in {**vars(column), attribute: value}.items():
        setattr(extended, name, member)
    return extended


@cache
def _subclass(bases: tuple[type, ...], mixin: type) -> type[Any]:
    return type(mixin.__name__.strip("_"), (mixin, bases[0]), {})


def spark_path(steps: Path) -> str | None:
    """Format ``steps`` for Spark's ``variant_get``. Returns None if Spark cannot express the path.

    Spark has no escapes: a quoted name cannot contain its quote or a question mark, and a name after a dot cannot
    contain a dot or a bracket. Leading whitespace of a name is lost, and empty names are not supported.

    >>> spark_path(("a", 0, "x.y", "it's \\"so\\""))
    '$.a[0][\\'x.y\\'].it\\'s "so"'
    """
    parts = [_format_step(step) for step in steps]
    return None if None in parts else "$" + "".join(member for member in parts if member is not None)


def _format_step(step: str | int) -> str | None:
    if isinstance(step, int):
        return f"[{step}]" if step <= _MAX_INDEX else None
    if not step or step[0].isspace():
        return None
    if "." not in step and "[" not in step:
        return f".{step}"
    quotes = [quote for quote in "'\"" if quote not in step and "?" not in step]
    return f"[{quotes[0]}{step}{quotes[0]}]" if quotes else None
