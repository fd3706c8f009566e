"""Traverse expressions: fold them from the bottom up, push Not down, and list their leaves, operands and columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
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
    OneOperand,
    Operand,
    Or,
    Relation,
    Spatial,
    bases,
    operand_column,
)

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


def normal(expression: Expression, negate: bool = False) -> Expression:
    """Push Not down to the leaves of ``expression``, or of its negation if ``negate``.

    Not remains on leaves whose negation is not a leaf: IsIn, Matches, and spatial predicates other than ``intersects``
    and ``disjoint``. Null results do not change, because a leaf and its negation are null on the same rows.
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
    """Return the top-level columns used only in value comparisons, not in spatial predicates or VARIANT paths."""
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
