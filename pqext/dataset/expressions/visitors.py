"""Traverse expressions: fold trees, push Not down, list columns and leaves, resolve dotted names, set time zones.

``col("a.b")`` is ambiguous until :func:`resolve_dotted_names` resolves it against columns: the column named ``a.b``
takes precedence over a field of a struct. ``col("a").field("b")`` and ``col(["a", "b"])`` are the field,
``col(["a.b"])`` is the column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator
from dataclasses import fields, is_dataclass, replace
from operator import attrgetter
from typing import Any, Generic, TypeVar

from pqext.dataset.expressions import (
    NEGATED,
    And,
    Base,
    Cast,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    NamedValue,
    Not,
    OneOperand,
    Operand,
    Or,
    Relation,
    Spatial,
    Value,
    VariantField,
    bases,
    operand_column,
)
from pqext.dataset.expressions.mistakes import label_of
from pqext.dataset.expressions.type_inference import UNTYPED
from pqext.variant.access.path import as_path, format_path
from pqext.variant.access.targets import depends_on_timezone, target_type
from pqext.variant.timezones import find_timezone

T = TypeVar("T")


class Visitor(ABC, Generic[T]):
    """Visitor that returns a result for each type of node, used by :func:`fold`."""

    @abstractmethod
    def visit_and(self, operands: list[T]) -> T: ...

    @abstractmethod
    def visit_or(self, operands: list[T]) -> T: ...

    @abstractmethod
    def visit_not(self, operand: T) -> T: ...

    @abstractmethod
    def visit_comparison(self, node: Comparison) -> T: ...

    @abstractmethod
    def visit_is_in(self, node: IsIn) -> T: ...

    @abstractmethod
    def visit_relation(self, node: Relation) -> T: ...

    @abstractmethod
    def visit_matches(self, node: Matches) -> T: ...

    @abstractmethod
    def visit_is_null(self, node: IsNull) -> T: ...

    @abstractmethod
    def visit_is_not_null(self, node: IsNotNull) -> T: ...

    @abstractmethod
    def visit_spatial(self, node: Spatial) -> T: ...


def fold(expression: Expression, visitor: Visitor[T]) -> T:
    """Visit every node of the tree, operands before their parents, and return the result for the root."""
    match expression:
        case And():
            return visitor.visit_and([fold(operand, visitor) for operand in expression.operands])
        case Or():
            return visitor.visit_or([fold(operand, visitor) for operand in expression.operands])
        case Not():
            return visitor.visit_not(fold(expression.operand, visitor))
        case Comparison():
            return visitor.visit_comparison(expression)
        case IsIn():
            return visitor.visit_is_in(expression)
        case Relation():
            return visitor.visit_relation(expression)
        case Matches():
            return visitor.visit_matches(expression)
        case IsNull():
            return visitor.visit_is_null(expression)
        case IsNotNull():
            return visitor.visit_is_not_null(expression)
        case Spatial():
            return visitor.visit_spatial(expression)
    raise TypeError(f"expected an expression, not {type(expression).__name__}")


def push_down_not(expression: Expression, negate: bool = False) -> Expression:
    """Push Not down to the leaves of ``expression``, or of its negation if ``negate``.

    Not remains on leaves whose negation is not a leaf: IsIn, Matches, and spatial predicates other than ``intersects``
    and ``disjoint``. Null results do not change, because a leaf and its negation are null on the same rows.
    """
    match expression:
        case And() | Or():
            operands = tuple(push_down_not(operand, negate) for operand in expression.operands)
            return And(operands) if isinstance(expression, And) != negate else Or(operands)
        case Not():
            return push_down_not(expression.operand, not negate)
    if not negate:
        return expression
    match expression:
        case Comparison():
            return Comparison(expression.operand, NEGATED[expression.operator], expression.value)
        case Relation():
            return Relation(expression.left, NEGATED[expression.operator], expression.right)
        case IsNull():
            return IsNotNull(expression.operand)
        case IsNotNull():
            return IsNull(expression.operand)
        case Spatial(operation="intersects"):
            return Spatial(expression.operand, "disjoint", expression.geometry)
        case Spatial(operation="disjoint"):
            return Spatial(expression.operand, "intersects", expression.geometry)
    return Not(expression)


def paths(expression: Expression) -> tuple[tuple[str, ...], ...]:
    """Return the distinct paths of the columns that the condition reads, in order of appearance."""
    return tuple(dict.fromkeys(operand_column(operand).path for operand in operands(expression)))


def columns(expression: Expression) -> tuple[str, ...]:
    """Return the distinct names of the top-level columns that the condition reads, in order of appearance."""
    return tuple(dict.fromkeys(path[0] for path in paths(expression)))


def compared_columns(expression: Expression) -> frozenset[str]:
    """Return the top-level columns that the condition uses only in comparisons of stored values."""
    result, others = set[str](), set[str]()
    for leaf in leaves(expression):
        is_compared = isinstance(leaf, OneOperand) and isinstance(leaf.operand, Column)
        (result if is_compared else others).update(operand_column(base).path[0] for base in operands(leaf))
    return frozenset(result - others)


def operands(expression: Expression) -> list[Base]:
    """Return the columns and VARIANT fields that the leaves of an expression use, in order."""
    return [base for leaf in leaves(expression) for operand in leaf_operands(leaf) for base in bases(operand)]


def leaves(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions joined by And, Or and Not, in order."""
    match expression:
        case And() | Or():
            for operand in expression.operands:
                yield from leaves(operand)
        case Not():
            yield from leaves(expression.operand)
        case _:
            yield expression


def leaf_operands(leaf: Expression) -> tuple[Operand, ...]:
    """Return the operands of a leaf, including computed operands."""
    match leaf:
        case OneOperand() | Spatial():
            return (leaf.operand,)
        case Relation():
            return leaf.left, leaf.right
    raise TypeError(f"expected an expression, not {type(leaf).__name__}")


def resolve_dotted_names(node: T, names: Container[str]) -> T:
    """Replace each dotted name in a condition or value with the column of that name if ``names`` contains the name."""
    if not dotted_columns(node):
        return node
    made: T = replace_columns(node, lambda column: column.resolve_name(names))
    return made


def dotted_columns(node: Any) -> list[Column]:
    """Return the columns with dotted names in a condition or value. The names may also be top-level names."""
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
        return node if column is node.column else _value_within(column, node)
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


def _value_within(value: Value, field: VariantField) -> VariantField:
    """Replace the column of ``field`` with ``value``. Raises ``TypeError`` if it is not a column or a VARIANT."""
    if isinstance(value, Column):
        return replace(field, column=value)
    if not isinstance(value, VariantField) or value.type != UNTYPED:
        place = field.column.place or ""
        raise TypeError(f"column {label_of(field.column)} is computed as {value}, which is not a VARIANT{place}")
    return replace(field, column=value.column, path=format_path((*as_path(value.path), *as_path(field.path))))


def set_timezone(node: T, timezone: str) -> T:
    """Return a copy of ``node`` in which casts without a timezone use ``timezone``.

    ``node`` is an expression, a value, a named value or a tuple of these. If no cast depends on the timezone, ``node``
    itself is returned. Raises ``ValueError`` if the timezone is unknown.

    >>> from pqext import col
    >>> set_timezone(col("at").cast("date") > "2024-05-01", "Europe/Paris").operand.timezone
    'Europe/Paris'
    """
    result: T = node if find_timezone(timezone) is None else _set_timezone(node, timezone)
    return result


def _set_timezone(node: Any, timezone: str) -> Any:
    if isinstance(node, tuple):
        parts = tuple(_set_timezone(part, timezone) for part in node)
        return parts if any(new is not old for new, old in zip(parts, node, strict=True)) else node
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {}
    for member in filter(attrgetter("init"), fields(node)):
        old = getattr(node, member.name)
        new = _set_timezone(old, timezone)
        if new is not old:
            changed[member.name] = new
    if isinstance(node, Cast | VariantField) and _depends_on_timezone(node):
        changed["timezone"] = timezone
    return replace(node, **changed) if changed else node


def _depends_on_timezone(node: Cast | VariantField) -> bool:
    """Return whether a cast requires a timezone but does not specify one."""
    return node.timezone is None and depends_on_timezone(target_type(node.type))
