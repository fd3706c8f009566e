"""Expressions over the columns of a row: an immutable tree, built with :func:`col`.

    (col("mag") >= 5) & col("event").variant("$.place", "string").is_not_null()

SQL's three-valued logic holds throughout: a comparison with null is null, ``not null`` is null, and a
filter keeps the rows where the expression is true. Floating-point numbers are in SQL's total order, NaN
equal to itself and above everything else, so that ``~(x > 5)`` and ``x <= 5`` are one question. Strings
and binary values compare by their unsigned bytes, numbers by their exact value whatever their types.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import pyarrow as pa

from pqext.core.predicate import COMPARE, Operator
from pqext.core.text import visible
from pqext.dataset.literals import Literal, canonical, key, time_text
from pqext.dataset.spatial import (
    Geometry,
    SpatialQuestions,
    canonical_distance,
    canonical_geometry,
    geometry_text,
)
from pqext.geo.predicates.boxes import Operation
from pqext.variant.access.path import as_path, format_path

MAX_DEPTH = 100
"""Nesting of And, Or and Not; chains of one operator are flat and count once."""

NEGATED: dict[Operator, Operator] = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""The operator that is true where another is false, null apart."""


class Expression(ABC):
    """A condition on a row: true, false or null. Combine with ``&``, ``|`` and ``~``; ``==`` is structural."""

    __slots__ = ()

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """What equal expressions have in common."""

    @property
    def depth(self) -> int:
        """Levels of And, Or and Not above the deepest leaf."""
        return 0

    def equals(self, other: Expression) -> bool:
        """Are both the same tree, literals of the same type included?"""
        return isinstance(other, Expression) and self._key() == other._key()

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __and__(self, other: Expression) -> Expression:
        return And((self, other)) if isinstance(other, Expression) else NotImplemented

    def __or__(self, other: Expression) -> Expression:
        return Or((self, other)) if isinstance(other, Expression) else NotImplemented

    def __invert__(self) -> Expression:
        return self.operand if isinstance(self, Not) else Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value before it meets a row: write & for and, | for or, ~ for not, "
            "parentheses around comparisons, and (low <= c) & (c <= high) for low <= c <= high"
        )


class Operand(ABC):
    """What is compared: a column, or a field of a VARIANT column. Its comparisons make expressions."""

    __slots__ = ()
    __array_ufunc__ = None  # so that a numpy scalar on the left leaves the comparison to us

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """What equal operands have in common."""

    def equals(self, other: Operand) -> bool:
        """Are both the same operand? (``==`` builds a comparison.)"""
        return isinstance(other, Operand) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, value: object) -> Comparison:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: object) -> Comparison:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: Any) -> Comparison:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Comparison:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Comparison:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Comparison:
        return self._compare(">=", value)

    def __bool__(self) -> NoReturn:
        raise TypeError("a column has no truth value: compare it, for a boolean column with == True")

    def isin(self, values: Iterable[Any]) -> IsIn:
        """Is the value one of ``values``? Null on null; nothing is in an empty list."""
        if isinstance(values, str | bytes | bytearray):
            raise TypeError("isin takes a list of values")
        return IsIn(self, tuple(values))

    def is_null(self) -> IsNull:
        """Is there no value?"""
        return IsNull(self)

    def is_not_null(self) -> IsNotNull:
        """Is there a value?"""
        return IsNotNull(self)

    def is_nan(self) -> Comparison:
        """Is the value NaN? Null on null, as in pyarrow; the same as ``== math.nan``, for NaN is equal to itself."""
        return self._compare("==", math.nan)

    def _compare(self, operator: Operator, value: object) -> Comparison:
        if isinstance(value, Operand | Expression):
            raise TypeError("a column compares with a literal, not with another column or expression")
        return Comparison(self, operator, cast(Literal, value))


@dataclass(frozen=True, slots=True, eq=False)
class Column(Operand, SpatialQuestions["Spatial"]):
    """A column by its path: the top-level name, then the names of struct fields."""

    path: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", _column_path(self.path))

    def variant(self, path: str | Sequence[str | int], type: Any) -> VariantField:
        """The value at ``path`` (``$.a.b[0]``) of this VARIANT column, cast to ``type``, or null.

        ``type`` is a type's name or an Arrow type, and casts are those of ``pqext.variant.get``. Raises
        ``ValueError`` for a path or a type that is none. Lists, structs, maps and variants can be selected, and be
        null or not; they compare with no literal.
        """
        from pqext.variant.access.targets import type_name

        return VariantField(self, format_path(as_path(path)), type_name(type))

    def _spatial(self, operation: Operation, geometry: Any, distance: float | None = None) -> Spatial:
        return Spatial(self, operation, geometry, distance)

    def __str__(self) -> str:
        return visible(".".join(self.path))

    def _key(self) -> tuple[Any, ...]:
        return ("column", self.path)


@dataclass(frozen=True, slots=True, eq=False)
class VariantField(Operand):
    """The value at a path of a VARIANT column, cast to a type; null where it is missing or does not cast."""

    column: Column
    path: str
    type: str

    def __post_init__(self) -> None:
        if not isinstance(self.column, Column) or not isinstance(self.type, str):
            raise TypeError("a variant field has a column, a path and the name of a type")
        from pqext.variant.access.targets import target_type

        target_type(self.type)
        object.__setattr__(self, "path", format_path(as_path(self.path)))

    def __str__(self) -> str:
        return f"{self.column}[{visible(self.path)}: {visible(self.type)}]"

    def _key(self) -> tuple[Any, ...]:
        return ("variant", self.column.path, self.path, self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Expression):
    """``operand operator value``."""

    operand: Operand
    operator: Operator
    value: Literal

    def __post_init__(self) -> None:
        _check_operand(self.operand)
        if self.operator not in COMPARE:
            raise ValueError(f"{self.operator!r} is not one of {', '.join(COMPARE)}")
        object.__setattr__(self, "value", canonical(self.value))

    def __str__(self) -> str:
        return f"{self.operand} {self.operator} {literal_text(self.value)}"

    def _key(self) -> tuple[Any, ...]:
        return (self.operator, self.operand._key(), key(self.value))


@dataclass(frozen=True, slots=True, eq=False)
class IsIn(Expression):
    """Is the operand one of ``values`` (each kept once)?"""

    operand: Operand
    values: tuple[Literal, ...]

    def __post_init__(self) -> None:
        _check_operand(self.operand)
        distinct = {key(literal): literal for literal in map(canonical, self.values)}
        object.__setattr__(self, "values", tuple(distinct.values()))

    def __str__(self) -> str:
        shown = [literal_text(literal) for literal in self.values[:10]]
        shown += [f"{len(self.values) - 10} more"] if len(self.values) > 10 else []
        return f"{self.operand} in ({', '.join(shown)})"

    def _key(self) -> tuple[Any, ...]:
        return ("in", self.operand._key(), tuple(map(key, self.values)))


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Expression):
    """Is the operand null? Never null itself."""

    operand: Operand

    def __post_init__(self) -> None:
        _check_operand(self.operand)

    def __str__(self) -> str:
        return f"{self.operand} is null"

    def _key(self) -> tuple[Any, ...]:
        return ("is_null", self.operand._key())


@dataclass(frozen=True, slots=True, eq=False)
class IsNotNull(Expression):
    """Is the operand not null? Never null itself."""

    operand: Operand

    def __post_init__(self) -> None:
        _check_operand(self.operand)

    def __str__(self) -> str:
        return f"{self.operand} is not null"

    def _key(self) -> tuple[Any, ...]:
        return ("is_not_null", self.operand._key())


@dataclass(frozen=True, slots=True, eq=False)
class Spatial(Expression):
    """How the geometries of a column lie to a box or a geometry in the column's own coordinates.

    ``dwithin`` alone has a ``distance``.
    """

    column: Column
    operation: Operation
    geometry: Geometry
    distance: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, Column):
            raise TypeError(f"expected a column, not {type(self.column).__name__}")
        object.__setattr__(self, "geometry", canonical_geometry(self.operation, self.geometry))
        object.__setattr__(self, "distance", canonical_distance(self.operation, self.distance))

    def __str__(self) -> str:
        distance = "" if self.distance is None else f" {self.distance!r} of"
        return f"{self.column} {self.operation}{distance} {geometry_text(self.geometry)}"

    def _key(self) -> tuple[Any, ...]:
        return (self.operation, self.column.path, repr(self.geometry), self.distance)


@dataclass(frozen=True, slots=True, eq=False)
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
            raise ValueError(f"{type(self).__name__} joins at least two expressions")
        object.__setattr__(self, "operands", tuple(flat))
        _check_depth(self)

    @property
    def depth(self) -> int:
        return 1 + max(operand.depth for operand in self.operands)

    def __str__(self) -> str:
        return "(" + f" {self.word} ".join(map(str, self.operands)) + ")"

    def _key(self) -> tuple[Any, ...]:
        return (self.word, *(operand._key() for operand in self.operands))


@dataclass(frozen=True, slots=True, eq=False)
class And(_Junction):
    """True when all operands are, false when one is, else null."""

    word: ClassVar[str] = "and"


@dataclass(frozen=True, slots=True, eq=False)
class Or(_Junction):
    """True when one operand is, false when all are, else null."""

    word: ClassVar[str] = "or"


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expression):
    """True when the operand is false, false when it is true, null when it is null."""

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


def col(path: str | Sequence[str]) -> Column:
    """A column by its dotted path, or by its path in parts where a name holds a dot itself.

    NaN is equal to itself and greater than every number, as in Spark, DuckDB, PostgreSQL and polars: ``col("f") > 0``
    keeps it, ``(col("f") > 0) & (col("f") != math.nan)`` does not. In pyarrow, pandas and numpy every comparison with
    NaN is false but ``!=``. ``col("f").is_nan()`` asks for NaN alone.

    >>> str((col("a.b") > 3) & col(["x.y"]).is_null())
    '(a.b > 3 and x.y is null)'
    """
    return Column(tuple(path.split(".")) if isinstance(path, str) else tuple(path))


def all_of(expressions: Sequence[Expression]) -> Expression:
    """The conjunction of one or more expressions."""
    return expressions[0] if len(expressions) == 1 else And(tuple(expressions))


def any_of(expressions: Sequence[Expression]) -> Expression:
    """The disjunction of one or more expressions."""
    return expressions[0] if len(expressions) == 1 else Or(tuple(expressions))


def operand_column(operand: Operand) -> Column:
    """The column that an operand reads."""
    return operand.column if isinstance(operand, VariantField) else cast(Column, operand)


def literal_text(literal: Literal) -> str:
    """A literal for people to read."""
    if isinstance(literal, pa.Scalar) and pa.types.is_time(literal.type):
        return time_text(literal)
    return repr(literal) if isinstance(literal, str | bytes) else str(literal)


def _column_path(path: Sequence[str]) -> tuple[str, ...]:
    if isinstance(path, str) or not path or not all(isinstance(name, str) for name in path):
        raise TypeError("a column's path is a non-empty sequence of names")
    return tuple(path)


def _check_operand(operand: Operand) -> None:
    if not isinstance(operand, Operand):
        raise TypeError(f"expected a column or a variant field, not {type(operand).__name__}")


def _check_depth(expression: Expression) -> None:
    if expression.depth > MAX_DEPTH:
        raise ValueError(f"the expression nests And, Or and Not more than {MAX_DEPTH} levels deep")
