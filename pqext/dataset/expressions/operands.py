"""Operands of expressions: columns and values computed from them, built with :func:`col`.

    (col("mag") >= 5) & col("event").variant("$.place", "string").starts_with("Fiji")

Operands are columns, values inside VARIANT columns, and values computed from these. Their comparisons and predicates
create the conditions of :mod:`pqext.dataset.expressions.conditions`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

from pqext.core.base.suggestions import SuggestionMixin, excerpt
from pqext.core.base.text import escape_text
from pqext.core.format.predicate import Operator
from pqext.dataset.expressions import literals
from pqext.dataset.expressions import spatial_functions as functions
from pqext.dataset.expressions.conditions import (
    MAX_DEPTH,
    SWAPPED,
    Comparison,
    Expression,
    IsIn,
    Matches,
    Operand,
    Relation,
    Spatial,
    StoredOperand,
    literal_text,
)
from pqext.dataset.expressions.operators import ARITHMETIC, ArithmeticOperator, ArithmeticOperators, Predicates
from pqext.dataset.expressions.spatial import SpatialPredicates
from pqext.dataset.expressions.spatial_functions import SpatialFunctions
from pqext.dataset.expressions.type_inference import UNTYPED, check_number, infer_common_type, infer_type, suggest_type
from pqext.geo.predicates.boxes import Operation
from pqext.variant.access.path import as_path, format_path


class Value(SuggestionMixin, Predicates, ArithmeticOperators["Arithmetic"]):
    """A value of each row: a column, a field of a VARIANT column, or a value computed from these.

    Comparisons create expressions, and arithmetic creates values. A value that cannot be computed is null: a sum beyond
    64 bits, the remainder of a division by zero, or text that cannot be cast. Therefore neither the order of evaluation
    nor skipped rows change the result. ``/`` returns doubles; division by zero returns infinity.
    """

    __slots__ = ()

    def _arithmetic(self, operator: ArithmeticOperator, *operands: Any) -> Arithmetic:
        return Arithmetic(operator, tuple(map(as_value, operands)))

    def cast(self, type: Any) -> Value:
        """Cast the value to ``type``, a type name or an Arrow type. The result is null if the cast fails.

        Casts are Spark's ``try_cast``, with the reader's ``timezone`` for local times, UTC by default: decimals are
        rounded half up, other numbers are rounded towards zero, text is parsed, decimals keep the digits of their scale
        as text (``1.30``), and a time of day is a number of seconds. Values within VARIANT columns cast as in
        :func:`pqext.variant.get`.

        >>> from pqext import col
        >>> str(col("code").cast("int64") > 5)
        'cast(code as int64) > 5'
        """
        from pqext.variant.access.targets import type_name

        return Cast(self, type_name(type))

    def list_length(self) -> ListLength:
        """Return the number of elements of a list, or of entries of a map; null if the list or map is null.

        >>> from pqext import col
        >>> str(col("tags").list_length() > 2)
        'list_length(tags) > 2'
        """
        return ListLength(cast(Base, self))

    def alias(self, name: str) -> NamedValue:
        """Name the value, so that it can be a column of the result, as in ``columns=``.

        >>> from pqext import col
        >>> str((col("price") * col("count")).alias("total"))
        'price * count as total'
        """
        return NamedValue(name, self)

    if not TYPE_CHECKING:  # so that type checkers reject indexing
        __iter__ = None

        def __getitem__(self, key: object) -> NoReturn:
            column = next(iter(bases(self)), self)
            name = repr(str(operand_column(column))) if isinstance(column, Base) else "'a'"
            inside = excerpt(key, 0, 60) if isinstance(key, str) else "b"
            path = f"$[{key:d}]" if isinstance(key, int) and 0 <= key < 1 << 31 else f"$.{inside}"
            raise TypeError(
                f"columns do not support brackets: a field of a struct is col({name}).field({inside!r}), "
                f"and a value within a VARIANT is col({name}).variant({path!r}, 'string')"
            )

    def _compare(self, operator: Operator, value: object) -> Expression:
        if isinstance(value, Expression):
            raise TypeError("a column can only be compared with a literal or another column, not with a condition")
        if isinstance(value, Operand):
            return relation(self, operator, value)
        return Comparison(self, operator, cast(literals.Literal, value))


class GeometryValue(Value, SpatialPredicates["Spatial"], SpatialFunctions["SpatialValue"]):
    """A value that may be a geometry: a column, or a function of geometries."""

    __slots__ = ()

    @overload
    def contains(self, part: str) -> Matches: ...

    @overload
    def contains(self, part: Any) -> Spatial: ...

    def contains(self, part: Any) -> Any:
        """Test whether text contains the text ``part``, or a geometry contains a box, WKB or a shapely geometry."""
        return Matches(self, "contains", part) if isinstance(part, str) else self._spatial("contains", part)

    def _spatial(self, operation: Operation, geometry: Any, distance: float | None = None) -> Spatial:
        return Spatial(self, operation, geometry, distance)

    def _spatial_value(self, function: str, *arguments: Any) -> SpatialValue:
        return SpatialValue(function, (self, *arguments))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Column(GeometryValue, StoredOperand):
    """A column, addressed by its path: the top-level name, followed by the names of struct fields."""

    path: tuple[str, ...]
    place: str | None = None
    """Position of the column in a filter's text, for errors; not part of its identity."""
    dotted: int = 0
    """Number of path components that come from one dotted name, which may also be the name of a column."""

    def __post_init__(self) -> None:
        if isinstance(self.path, str) or not self.path or not all(isinstance(name, str) for name in self.path):
            raise TypeError("the path of a column must be a non-empty sequence of names")
        object.__setattr__(self, "path", tuple(self.path))

    def resolve_name(self, names: Container[str]) -> Column:
        """Return the column with the dotted name if ``names`` contains the name, otherwise this struct field."""
        name = ".".join(self.path[: self.dotted])
        if self.dotted < 2 or name not in names:
            return self
        return Column((name, *self.path[self.dotted :]), self.place)

    def field(self, name: str) -> Column:
        """Return the field ``name`` of this struct: ``col("a").field("b")`` is ``col(["a", "b"])``.

        >>> from pqext import col
        >>> str(col("user").field("name") == "Bo")
        "user.name == 'Bo'"
        """
        if not isinstance(name, str):
            raise TypeError(f"a field name must be text, not {type(name).__name__}")
        return Column((*self.path, name), self.place, self.dotted)

    def variant(self, path: str | Sequence[str | int], type: Any = None) -> VariantField:
        """Return the value at ``path`` (``$.a.b[0]['x y']``) of this VARIANT column, cast to ``type``, or null.

        ``type`` is a type name or an Arrow type; casts follow ``pqext.variant.get``. Without a type, the value is a
        VARIANT, and a condition uses the type of its literal: ``double`` for all numbers. Lists, structs and maps can
        be selected and tested for null but not compared. Raises ``ValueError`` if the path or type is invalid.

        >>> from pqext import col
        >>> str(col("event").variant("$.user") == "Bo")
        "event[$.user: string] == 'Bo'"
        """
        from pqext.variant.access.targets import type_name

        return VariantField(self, format_path(as_path(path)), UNTYPED if type is None else type_name(type))

    def __str__(self) -> str:
        return escape_text(".".join(self.path))

    def _key(self) -> tuple[Any, ...]:
        return ("column", self.path)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VariantField(Value):
    """Value at a path of a VARIANT column, cast to a type; null if the value is missing or the cast fails."""

    column: Column
    path: str
    type: str
    timezone: str | None = None
    """Time zone of local times; None for the reader's time zone."""

    def __post_init__(self) -> None:
        if not isinstance(self.column, Column) or not isinstance(self.type, str):
            raise TypeError("a VARIANT field requires a column, a path and a type name")
        from pqext.variant.access.targets import target_type

        target_type(self.type)
        object.__setattr__(self, "path", format_path(as_path(self.path)))

    def cast(self, type: Any) -> Value:
        """Cast the value to another type. VARIANT values are cast as in :func:`pqext.variant.get`."""
        return self.column.variant(self.path, type) if self.type == UNTYPED else Value.cast(self, type)

    def isin(self, values: Iterable[Any]) -> IsIn:
        """Test whether the value is one of ``values``. A value without a type is cast to the type of the literals."""
        if self.type != UNTYPED or isinstance(values, str | bytes | bytearray):
            return Value.isin(self, values)
        values = tuple(values)
        return Value.isin(self._set_type(infer_common_type(values), next(iter(values), None)), values)

    def _compare(self, operator: Operator, value: object) -> Expression:
        is_typed = self.type != UNTYPED or isinstance(value, Operand | Expression)
        return Value._compare(self if is_typed else self._set_type(infer_type(value), value), operator, value)

    def _as_text(self) -> Operand:
        return self._set_type("string", "") if self.type == UNTYPED else self

    def _set_type(self, type: str | None, literal: Any) -> VariantField:
        if type is None:
            written = f"col({str(self.column)!r}).variant({self.path!r}, {suggest_type(literal)!r})"
            raise TypeError(f"write the type of {escape_text(self.path)}, as in {escape_text(written)}")
        return self.column.variant(self.path, type)

    def __str__(self) -> str:
        return f"{self.column}[{escape_text(self.path)}: {escape_text(self.type)}]"

    def _key(self) -> tuple[Any, ...]:
        return ("variant", self.column.path, self.path, self.type, self.timezone)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(Value):
    """A literal operand of arithmetic."""

    value: literals.Literal

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", literals.to_literal(self.value))

    def __str__(self) -> str:
        return literal_text(self.value)

    def _key(self) -> tuple[Any, ...]:
        return ("constant", literals.key(self.value))

    def __reduce__(self) -> tuple[Any, ...]:
        return _constant, (literals.pack(self.value),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Arithmetic(Value):
    """Addition, subtraction, multiplication, division or remainder of two numbers, or negation of a number."""

    operator: ArithmeticOperator
    operands: tuple[Value, ...]

    def __post_init__(self) -> None:
        if self.operator not in ARITHMETIC:
            raise ValueError(f"unknown operator {self.operator!r}; use one of {', '.join(ARITHMETIC)}")
        if len(self.operands) != 2 and (self.operator, len(self.operands)) != ("-", 1):
            raise ValueError(f"{self.operator} requires two values")
        for operand in self.operands:
            if not isinstance(operand, Value):
                name = type(operand).__name__
                raise TypeError(f"arithmetic operands must be columns, computed values or constants, not {name}")
            if isinstance(operand, Constant):
                check_number(operand.value)
        if not bases(self):
            raise ValueError("arithmetic requires at least one column")
        _check_depth(self)

    @property
    def depth(self) -> int:
        return 1 + max(operand.depth for operand in self.operands)

    def __str__(self) -> str:
        shown = [f"({operand})" if isinstance(operand, Arithmetic) else str(operand) for operand in self.operands]
        return f"-{shown[0]}" if len(shown) == 1 else f" {self.operator} ".join(shown)

    def _key(self) -> tuple[Any, ...]:
        return (self.operator, *(operand._key() for operand in self.operands))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cast(Value):
    """A value cast to another type; null if the cast fails."""

    operand: Value
    type: str
    timezone: str | None = None
    """Time zone of local times; None for the reader's time zone."""

    def __post_init__(self) -> None:
        from pqext.variant.access.targets import describe_leaf_type, target_type

        if not isinstance(self.operand, Value) or isinstance(self.operand, Constant):
            raise TypeError(f"only columns and computed values can be cast, not {type(self.operand).__name__}")
        if not isinstance(self.type, str):
            raise TypeError(f"the type of a cast must be a type name, not {self.type!r}")
        if describe_leaf_type(target_type(self.type)) is None:
            raise ValueError(f"a column can only be cast to a scalar type, not to {escape_text(self.type)}")
        _check_depth(self)

    @property
    def depth(self) -> int:
        return 1 + self.operand.depth

    def __str__(self) -> str:
        return f"cast({self.operand} as {escape_text(self.type)})"

    def _key(self) -> tuple[Any, ...]:
        return ("cast", self.operand._key(), self.type, self.timezone)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListLength(Value):
    """Number of elements of a list or map; null if the list or map is null."""

    operand: Base

    def __post_init__(self) -> None:
        if not isinstance(self.operand, Column | VariantField):
            raise TypeError(f"list_length requires a column or a VARIANT field, not {type(self.operand).__name__}")

    def __str__(self) -> str:
        return f"list_length({self.operand})"

    def _key(self) -> tuple[Any, ...]:
        return ("list_length", self.operand._key())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpatialValue(GeometryValue):
    """Result of a measure, property or construction of geometries; ``function`` is the SQL name of the function."""

    function: str
    arguments: tuple[functions.Argument, ...]
    """Columns and values that are geometries, constant geometries, numbers and flags."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", functions.arguments_of(self.function, self.arguments))
        _check_depth(self)

    @property
    def is_geometry(self) -> bool:
        """Whether the values are geometries."""
        return functions.returns_geometry(self.function)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The arguments that are columns or computed values."""
        return tuple(item for item in self.arguments if isinstance(item, Operand))

    @property
    def depth(self) -> int:
        return 1 + max(operand.depth for operand in self.operands)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(functions.argument_text, self.arguments))})"

    def _key(self) -> tuple[Any, ...]:
        return (self.function, *map(functions.argument_key, self.arguments))


Base = Column | VariantField
"""A column or field that is read from the file; all other operands are computed."""


@dataclass(frozen=True, slots=True, eq=False)
class NamedValue:
    """A value with a name, used as a column of the result."""

    name: str
    value: Value

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"a column name must be a string, not {type(self.name).__name__}")
        if not isinstance(self.value, Value) or isinstance(self.value, Constant):
            raise TypeError(f"a result column must be computed from columns, not {type(self.value).__name__}")

    def __str__(self) -> str:
        return f"{self.value} as {escape_text(self.name)}"


def col(path: str | Sequence[str]) -> Column:
    """Return a column by its name, by its dotted path or by a list of path components.

    The column called ``a.b`` takes precedence over the field ``b`` of a column ``a``, as in ``columns=``. Use
    ``col("a").field("b")`` or ``col(["a", "b"])`` for the field. ``col(["a.b"])`` is the column, never the field.

    NaN is equal to itself and greater than every number, as in Spark, DuckDB, PostgreSQL and polars: ``col("f") > 0``
    selects it, ``(col("f") > 0) & (col("f") != math.nan)`` does not. In pyarrow, pandas and numpy, every comparison
    with NaN except ``!=`` is false. ``col("f").is_nan()`` selects NaN only.

    >>> str((col("a.b") > 3) & col(["x.y"]).is_null())
    '(a.b > 3 and x.y is null)'
    """
    if not isinstance(path, str):
        return Column(tuple(path))
    parts = tuple(path.split("."))
    return Column(parts, dotted=len(parts))


def as_value(value: Any) -> Value:
    """Return an operand unchanged, or wrap a number as a constant."""
    if isinstance(value, Value):
        return value
    if isinstance(value, Expression):
        raise TypeError("arithmetic requires numbers, not conditions")
    return Constant(value)


def relation(left: Operand, operator: Operator, right: Operand) -> Expression:
    """Build the condition ``left operator right``: a comparison with a literal if one side is a constant."""
    if isinstance(right, Constant):
        return Comparison(left, operator, right.value)
    if isinstance(left, Constant):
        return Comparison(right, SWAPPED[operator], left.value)
    return Relation(left, operator, right)


def bases(operand: Operand) -> list[Base]:
    """Return the columns and VARIANT fields that an operand uses, in order of appearance."""
    match operand:
        case Column() | VariantField():
            return [operand]
        case Arithmetic() | SpatialValue():
            return [base for item in operand.operands for base in bases(item)]
        case Cast() | ListLength():
            return bases(operand.operand)
    return []


def operand_column(operand: Operand) -> Column:
    """Return the column of an operand that is a column or a VARIANT field."""
    return operand.column if isinstance(operand, VariantField) else cast(Column, operand)


def _check_depth(operand: Operand) -> None:
    if operand.depth > MAX_DEPTH:
        raise ValueError(f"computed values nest more than {MAX_DEPTH} levels deep")


def _constant(value: Any) -> Constant:
    return Constant(literals.unpack(value))
