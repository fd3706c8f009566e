"""Walking over expressions: a fold from the leaves up, and what the tree itself is asked for by it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import chain
from typing import Generic, TypeVar

from pqext.dataset.expressions import (
    NEGATED,
    And,
    Base,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    Operand,
    Or,
    Relation,
    Spatial,
    bases,
    operand_column,
)

T = TypeVar("T")


class Visitor(ABC, Generic[T]):
    """What :func:`fold` makes of each kind of node, from the leaves up."""

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
    """Visit every node of the tree, operands before what joins them, and return what the root gave."""
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


def normal(expression: Expression, negate: bool = False) -> Expression:
    """``expression``, or with ``negate`` its opposite, with Not pushed down to the leaves.

    What stays under Not are the leaves without an opposite: IsIn, Matches, and the spatial ones but ``intersects`` and
    ``disjoint``. Nulls keep their place, because a leaf and its opposite are null on the same rows.
    """
    match expression:
        case And() | Or():
            operands = tuple(normal(operand, negate) for operand in expression.operands)
            return And(operands) if isinstance(expression, And) != negate else Or(operands)
        case Not():
            return normal(expression.operand, not negate)
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
            return Spatial(expression.column, "disjoint", expression.geometry)
        case Spatial(operation="disjoint"):
            return Spatial(expression.column, "intersects", expression.geometry)
    return Not(expression)


def paths(expression: Expression) -> tuple[tuple[str, ...], ...]:
    """Paths of the columns that the condition reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(operand_column(operand).path for operand in operands(expression)))


def columns(expression: Expression) -> tuple[str, ...]:
    """Names of the top-level columns that the condition reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(path[0] for path in paths(expression)))


def compared_columns(expression: Expression) -> frozenset[str]:
    """The top-level columns of which only values are compared: neither geometries nor what lies within VARIANTs."""
    found, others = fold(expression, _Compared())
    return found - others


class _Compared(Visitor[tuple[frozenset[str], frozenset[str]]]):
    """Top-level columns of which values are compared, and those of which something else is asked."""

    def visit_and(self, operands: list[tuple[frozenset[str], frozenset[str]]]) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset().union(*(one for one, _ in operands)), frozenset().union(*(two for _, two in operands))

    visit_or = visit_and

    def visit_not(self, operand: tuple[frozenset[str], frozenset[str]]) -> tuple[frozenset[str], frozenset[str]]:
        return operand

    def visit_comparison(
        self, node: Comparison | IsIn | Matches | IsNull | IsNotNull
    ) -> tuple[frozenset[str], frozenset[str]]:
        tops = _tops(node.operand)
        return (tops, frozenset()) if isinstance(node.operand, Column) else (frozenset(), tops)

    visit_is_in = visit_matches = visit_is_null = visit_is_not_null = visit_comparison

    def visit_relation(self, node: Relation) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), _tops(node.left) | _tops(node.right)

    def visit_spatial(self, node: Spatial) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(), _tops(node.column)


def _tops(operand: Operand) -> frozenset[str]:
    return frozenset(operand_column(base).path[0] for base in bases(operand))


def operands(expression: Expression) -> list[Base]:
    """The columns, and fields of VARIANT columns, that every leaf asks about, in order."""
    return fold(expression, _Bases())


class _Bases(Visitor[list[Base]]):
    def visit_and(self, operands: list[list[Base]]) -> list[Base]:
        return list(chain.from_iterable(operands))

    visit_or = visit_and

    def visit_not(self, operand: list[Base]) -> list[Base]:
        return operand

    def visit_comparison(self, node: Comparison | IsIn | Matches | IsNull | IsNotNull) -> list[Base]:
        return bases(node.operand)

    visit_is_in = visit_matches = visit_is_null = visit_is_not_null = visit_comparison

    def visit_relation(self, node: Relation) -> list[Base]:
        return [*bases(node.left), *bases(node.right)]

    def visit_spatial(self, node: Spatial) -> list[Base]:
        return bases(node.column)
