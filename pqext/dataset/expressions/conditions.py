"""Conditions of expressions: an immutable tree of comparisons and predicates, joined by And, Or and Not.

Conditions apply to operands; see :mod:`pqext.dataset.expressions.operands`. They follow SQL's three-valued logic: a
comparison with null is null, ``not null`` is null, and a filter selects the rows where the expression is true.
Floating-point numbers have a total order, where NaN is equal to itself and greater than all other values, so ``~(x >
5)`` and ``x <= 5`` are equivalent. Strings and binary values compare by their unsigned bytes, and numbers by their
exact value regardless of type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import pyarrow as pa

from pqext.core.format.predicate import COMPARE, Operator
from pqext.dataset.expressions.literals import Literal, is_null, key, pack, scalar_text, to_literal, unpack
from pqext.dataset.expressions.patterns import ESCAPE, How, check_pattern
from pqext.dataset.expressions.spatial import Geometry, canonical_distance, canonical_geometry, geometry_text
from pqext.geo.predicates.boxes import Operation

MAX_DEPTH = 100
"""Maximum nesting of And, Or and Not, and of computed values; chains of And or of Or are flat and count once."""

NEGATED: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The opposite operator: true exactly if the original is false, never if it is null."""

SWAPPED: dict[Operator, Operator] = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The equivalent operator if the two sides are exchanged."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expression:
    """A condition on a row: true, false or null. Combine with ``&``, ``|`` and ``~``; ``==`` is structural."""

    def _key(self) -> tuple[Any, ...]:
        """Return a key that is equal for structurally equal expressions."""
        raise NotImplementedError

    @property
    def depth(self) -> int:
        """Number of levels of And, Or and Not above the deepest leaf."""
        return 0

    def equals(self, other: Expression) -> bool:
        """Return whether the expressions are structurally equal; literals must also have the same type."""
        return isinstance(other, Expression) and self._key() == other._key()

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return str(self)

    def __and__(self, other: Expression) -> Expression:
        return And((self, other)) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Expression) -> Expression:
        return Or((self, other)) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.operand if isinstance(self, Not) else Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value until it is evaluated on rows; write & for and, | for or, ~ for not, "
            "parentheses around comparisons, and (low <= c) & (c <= high) for low <= c <= high"
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operand:
    """A value of each row, to which conditions apply."""

    def _key(self) -> tuple[Any, ...]:
        """Return a key that is equal for structurally equal operands."""
        raise NotImplementedError

    @property
    def depth(self) -> int:
        """Number of levels of computation above the columns."""
        return 0

    def equals(self, other: Operand) -> bool:
        """Return whether the operands are structurally equal. (``==`` builds a comparison.)"""
        return isinstance(other, Operand) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return str(self)


class StoredOperand(Operand):
    """A column that a file stores, in contrast to a computed value."""

    __slots__ = ()

    path: tuple[str, ...]
    """The top-level name, then the names of struct fields."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OneOperand(Expression):
    """A condition on one operand."""

    operand: Operand

    def __post_init__(self) -> None:
        _check_operand(self.operand)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(OneOperand):
    """Comparison ``operand operator value`` with a literal."""

    operator: Operator
    value: Literal

    def __post_init__(self) -> None:
        OneOperand.__post_init__(self)
        _check_operator(self.operator)
        object.__setattr__(self, "value", to_literal(self.value))

    def __str__(self) -> str:
        return f"{self.operand} {self.operator} {literal_text(self.value)}"

    def _key(self) -> tuple[Any, ...]:
        return (self.operator, self.operand._key(), key(self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        return _comparison, (self.operand, self.operator, pack(self.value))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsIn(OneOperand):
    """Test whether the operand equals any of the distinct ``values``.

    ``has_null`` is true if the list also contained a null. The result is then null, not false, for a value that is not
    in the list.
    """

    values: tuple[Literal, ...]
    has_null: bool = False
    _kept: tuple[Any, ...] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    """Hash value, computed once because lists may be long and conditions are dictionary keys."""

    def __post_init__(self) -> None:
        OneOperand.__post_init__(self)
        values = [value for value in self.values if not is_null(value)]
        distinct = {key(literal): literal for literal in map(to_literal, values)}
        object.__setattr__(self, "has_null", self.has_null or len(values) < len(self.values))
        object.__setattr__(self, "values", tuple(distinct.values()))
        object.__setattr__(self, "_kept", ("in", self.operand._key(), tuple(distinct), self.has_null))
        object.__setattr__(self, "_hash", hash(self._kept))

    def __str__(self) -> str:
        shown = [literal_text(literal) for literal in self.values[:10]]
        shown += [f"{len(self.values) - 10} more"] if len(self.values) > 10 else []
        shown += ["null"] if self.has_null else []
        return f"{self.operand} in ({', '.join(shown)})"

    def _key(self) -> tuple[Any, ...]:
        return self._kept

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _is_in, (self.operand, self.has_null, *map(pack, self.values))  # hash values differ between processes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNull(OneOperand):
    """Test whether the operand is null; never null itself."""

    def __str__(self) -> str:
        return f"{self.operand} is null"

    def _key(self) -> tuple[Any, ...]:
        return ("is_null", self.operand._key())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class IsNotNull(OneOperand):
    """Test whether the operand is not null; never null itself."""

    def __str__(self) -> str:
        return f"{self.operand} is not null"

    def _key(self) -> tuple[Any, ...]:
        return ("is_not_null", self.operand._key())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relation(Expression):
    """Comparison ``left operator right`` of two operands; null if either side is null."""

    left: Operand
    operator: Operator
    right: Operand

    def __post_init__(self) -> None:
        _check_operand(self.left)
        _check_operand(self.right)
        _check_operator(self.operator)

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def _key(self) -> tuple[Any, ...]:
        return (self.operator, self.left._key(), self.right._key())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Matches(OneOperand):
    """Test whether text starts with, ends with, contains or is LIKE ``pattern``; null for null operands.

    In a LIKE pattern, a wildcard or escape character after ``escape`` is a literal character.
    """

    how: How
    pattern: str | bytes
    escape: str = ESCAPE

    def __post_init__(self) -> None:
        OneOperand.__post_init__(self)
        check_pattern(self.how, self.pattern, self.escape)

    def __str__(self) -> str:
        shown = literal_text(self.pattern)
        if self.how not in ("like", "ilike"):
            return f"{self.how}({self.operand}, {shown})"
        return f"{self.operand} {self.how} {shown}" + (f" escape {self.escape!r}" if self.escape != ESCAPE else "")

    def _key(self) -> tuple[Any, ...]:
        return (self.how, self.operand._key(), self.pattern, self.escape)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Spatial(Expression):
    """Spatial relation between the geometries of an operand and a box or geometry in the same CRS.

    Only ``dwithin`` has a ``distance``.
    """

    operand: Operand
    operation: Operation
    geometry: Geometry
    distance: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.operand, StoredOperand) and not getattr(self.operand, "is_geometry", False):
            kind = self.operand if isinstance(self.operand, Operand) else type(self.operand).__name__
            raise TypeError(f"expected a column of geometries, not {kind}")
        object.__setattr__(self, "geometry", canonical_geometry(self.operation, self.geometry))
        object.__setattr__(self, "distance", canonical_distance(self.operation, self.distance))

    def __str__(self) -> str:
        distance = "" if self.distance is None else f" {self.distance!r} of"
        return f"{self.operand} {self.operation}{distance} {geometry_text(self.geometry)}"

    def _key(self) -> tuple[Any, ...]:
        return (self.operation, self.operand._key(), repr(self.geometry), self.distance)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Junction(Expression):
    operands: tuple[Expression, ...]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        flat: list[Expression] = []
        for operand in self.operands:
            if not isinstance(operand, Expression):
                raise TypeError(f"expected an expression, not {type(operand).__name__}")
            flat.extend(operand.operands if isinstance(operand, _Junction) and operand.word == self.word else [operand])
        if len(flat) < 2:
            raise ValueError(f"{type(self).__name__} requires at least two expressions")
        object.__setattr__(self, "operands", tuple(flat))
        _check_depth(self)

    @property
    def depth(self) -> int:
        return 1 + max(operand.depth for operand in self.operands)

    def __str__(self) -> str:
        return "(" + f" {self.word} ".join(map(str, self.operands)) + ")"

    def _key(self) -> tuple[Any, ...]:
        return (self.word, *(operand._key() for operand in self.operands))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class And(_Junction):
    """True if all operands are true, false if any is false, otherwise null."""

    word: ClassVar[str] = "and"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(_Junction):
    """True if any operand is true, false if all are false, otherwise null."""

    word: ClassVar[str] = "or"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Not(Expression):
    """True if the operand is false, false if it is true, null if it is null."""

    operand: Expression

    def __post_init__(self) -> None:
        if not isinstance(self.operand, Expression):
            raise TypeError(f"expected an expression, not {type(self.operand).__name__}")
        _check_depth(self)

    @property
    def depth(self) -> int:
        return 1 + self.operand.depth

    def __str__(self) -> str:
        return f"not ({self.operand})"

    def _key(self) -> tuple[Any, ...]:
        return ("not", self.operand._key())


def all_of(expressions: Sequence[Expression]) -> Expression:
    """Return the conjunction of one or more expressions."""
    return expressions[0] if len(expressions) == 1 else And(tuple(expressions))


def any_of(expressions: Sequence[Expression]) -> Expression:
    """Return the disjunction of one or more expressions."""
    return expressions[0] if len(expressions) == 1 else Or(tuple(expressions))


def literal_text(literal: Literal) -> str:
    """Format a literal for display."""
    if isinstance(literal, pa.Scalar):
        return scalar_text(literal)
    return repr(literal) if isinstance(literal, str | bytes) else str(literal)


def _comparison(operand: Operand, operator: Operator, value: Any) -> Comparison:
    return Comparison(operand, operator, unpack(value))


def _is_in(operand: Operand, has_null: bool, *values: Any) -> IsIn:
    return IsIn(operand, tuple(map(unpack, values)), has_null)


def _check_operand(operand: Operand) -> None:
    if not isinstance(operand, Operand):
        raise TypeError(f"expected a column or a computed value, not {type(operand).__name__}")


def _check_operator(operator: Operator) -> None:
    if operator not in COMPARE:
        raise ValueError(f"unknown operator {operator!r}; use one of {', '.join(COMPARE)}")


def _check_depth(expression: Expression) -> None:
    if expression.depth > MAX_DEPTH:
        raise ValueError(f"the expression nests And, Or and Not more than {MAX_DEPTH} levels deep")
