"""Operators of columns and values: comparisons and predicates return conditions, arithmetic returns values."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Literal, NoReturn, TypeVar

import pyarrow as pa

from pqext.core.format.predicate import Operator
from pqext.core.schema.arrow_check import check_array
from pqext.dataset.expressions.conditions import Expression, IsIn, IsNotNull, IsNull, Matches, Operand
from pqext.dataset.expressions.patterns import ESCAPE

ArithmeticOperator = Literal["+", "-", "*", "/", "%"]
ARITHMETIC: tuple[ArithmeticOperator, ...] = ("+", "-", "*", "/", "%")

Number = TypeVar("Number", covariant=True)
"""The result of arithmetic."""


class ArithmeticOperators(Generic[Number]):
    """Arithmetic operators between values and numbers."""

    __slots__ = ()

    @abstractmethod
    def _arithmetic(self, operator: Any, *operands: Any) -> Number:
        """Build the result of ``operator`` on values and numbers."""

    def __add__(self, value: Any) -> Number:
        return self._arithmetic("+", self, value)

    def __radd__(self, value: Any) -> Number:
        return self._arithmetic("+", value, self)

    def __sub__(self, value: Any) -> Number:
        return self._arithmetic("-", self, value)

    def __rsub__(self, value: Any) -> Number:
        return self._arithmetic("-", value, self)

    def __mul__(self, value: Any) -> Number:
        return self._arithmetic("*", self, value)

    def __rmul__(self, value: Any) -> Number:
        return self._arithmetic("*", value, self)

    def __truediv__(self, value: Any) -> Number:
        return self._arithmetic("/", self, value)

    def __rtruediv__(self, value: Any) -> Number:
        return self._arithmetic("/", value, self)

    def __mod__(self, value: Any) -> Number:
        return self._arithmetic("%", self, value)

    def __rmod__(self, value: Any) -> Number:
        return self._arithmetic("%", value, self)

    def __neg__(self) -> Number:
        return self._arithmetic("-", self)


class Predicates(Operand):
    """Comparisons and predicates of an operand. They return conditions."""

    __slots__ = ()
    __array_ufunc__ = None  # so that a numpy scalar on the left side leaves the comparison to this class

    __hash__ = Operand.__hash__

    @abstractmethod
    def _compare(self, operator: Operator, value: object) -> Expression:
        """Build ``self operator value`` for a literal or another operand."""

    def _as_text(self) -> Operand:
        """Return the operand as text, for comparison with patterns."""
        return self

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("==", value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]
        return self._compare("!=", value)

    def __lt__(self, value: Any) -> Expression:
        return self._compare("<", value)

    def __le__(self, value: Any) -> Expression:
        return self._compare("<=", value)

    def __gt__(self, value: Any) -> Expression:
        return self._compare(">", value)

    def __ge__(self, value: Any) -> Expression:
        return self._compare(">=", value)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a column has no truth value until it is evaluated on rows; write & for and, | for or, ~ for not, "
            "and parentheses around comparisons"
        )

    def __invert__(self) -> Expression:
        return ~as_condition(self)

    def __and__(self, other: object) -> Expression:
        return as_condition(self) & _to_condition(other)

    def __rand__(self, other: object) -> Expression:
        return _to_condition(other) & as_condition(self)

    def __or__(self, other: object) -> Expression:
        return as_condition(self) | _to_condition(other)

    def __ror__(self, other: object) -> Expression:
        return _to_condition(other) | as_condition(self)

    def isin(self, values: Iterable[Any]) -> IsIn:
        """Test whether the value is one of ``values``. Null if the value is null; false for an empty list.

        A None among ``values`` is SQL's null, which equals no value. If the list contains None, the condition is null
        for all values that are not in the list, and its negation is not true for any row. Add ``|
        col("kind").is_null()`` to match nulls.

        >>> from pqext import col
        >>> str(col("kind").isin(["a", "b"]))
        "kind in ('a', 'b')"
        """
        if isinstance(values, str | bytes | bytearray):
            raise TypeError("isin requires a list of values")
        if isinstance(values, pa.Array | pa.ChunkedArray):
            check_array(values)
        return IsIn(self, tuple(values))

    def between(self, low: Any, high: Any) -> Expression:
        """Test whether the value lies between ``low`` and ``high``, both inclusive.

        >>> from pqext import col
        >>> str(col("mag").between(5, 6))
        '(mag >= 5 and mag <= 6)'
        """
        return self._compare(">=", low) & self._compare("<=", high)

    def is_null(self) -> IsNull:
        """Test whether the value is null."""
        return IsNull(self)

    def is_not_null(self) -> IsNotNull:
        """Test whether the value is not null."""
        return IsNotNull(self)

    def is_nan(self) -> Expression:
        """Test whether the value is NaN. Null for nulls, as in pyarrow. Equivalent to ``== math.nan``."""
        return self._compare("==", math.nan)

    def starts_with(self, prefix: str | bytes) -> Matches:
        """Test whether the text begins with ``prefix``. Bounds of row groups and pages are used for pruning.

        >>> from pqext import col
        >>> str(col("name").starts_with("Fi"))
        "starts_with(name, 'Fi')"
        """
        return Matches(self._as_text(), "starts_with", prefix)

    def ends_with(self, suffix: str | bytes) -> Matches:
        """Test whether the text ends with ``suffix``."""
        return Matches(self._as_text(), "ends_with", suffix)

    def contains(self, part: Any) -> Any:
        """Test whether the text contains ``part``."""
        return Matches(self._as_text(), "contains", part)

    def like(self, pattern: str, escape: str = ESCAPE) -> Matches:
        """Test whether the text is LIKE ``pattern``: ``%`` matches any text and ``_`` any one character.

        A wildcard after ``escape`` is a literal character, as in Spark and Postgres. Raises ``ValueError`` if
        ``escape`` precedes a character other than a wildcard or itself.

        >>> from pqext import col
        >>> str(col("name").like("%Fiji%"))
        "name like '%Fiji%'"
        """
        return Matches(self._as_text(), "like", pattern, escape)

    def ilike(self, pattern: str, escape: str = ESCAPE) -> Matches:
        """Test whether the text is LIKE ``pattern``, ignoring case."""
        return Matches(self._as_text(), "ilike", pattern, escape)


def as_condition(value: object) -> Expression:
    """Convert a boolean column to the condition ``column == True``; return a condition unchanged."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, Predicates):
        return value._compare("==", True)
    raise TypeError(f"expected a condition like col('a') > 5, or a column of booleans, not {type(value).__name__}")


def _to_condition(other: object) -> Expression:
    """Convert an operand of ``&`` or ``|`` to a condition; raise ``TypeError`` if the operand cannot be converted."""
    if not isinstance(other, Expression | Predicates):
        raise TypeError(
            "the operands of & and | must be conditions; write comparisons in parentheses, as in (a > 5) & (b > 3), "
            "because & and | have higher precedence"
        )
    return as_condition(other)
