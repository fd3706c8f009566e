"""Derive pqext conditions that prune row groups for clauses that Spark evaluates.

A bound is true for every row where its clause is true or raises an error.
The bound of ``year(day) = 2024`` is ``day >= '2024-01-01' and day < '2025-01-01'``. Row groups are pruned with the
bound, and Spark evaluates the clause on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa
import sqlglot
from pyspark.sql import types as T
from sqlglot import exp

from pqext.core.format.predicate import Operator
from pqext.dataset import expressions as E
from pqext.dataset.expressions import (
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    OneOperand,
    VariantField,
    all_of,
    any_of,
    visitors,
)
from pqext.dataset.notations.sql import value_from_sql
from pqext.dataset.notations.sql_dialect import Filter
from pqext.dataset.notations.sql_literals import COMPARE, SWAPPED
from pqext.spark.pushdown.sql_clauses import TIME
from pqext.variant.access.targets import target_type

TypeOf = Callable[[E.Column], T.DataType | None]
"""Function that returns the type of a column."""

_DAY = timedelta(days=1)
_WIDTHS = {
    **dict.fromkeys(("year", "yyyy", "yy"), 366), "quarter": 92, **dict.fromkeys(("month", "mon", "mm"), 31),
    "week": 7, **dict.fromkeys(("day", "dd", "hour", "minute", "second"), 1),
}  # fmt: skip
"""Maximum number of days in a unit of date_trunc."""
_TEMPORAL = (T.DateType, T.TimestampType, T.TimestampNTZType)
_INTEGERS: dict[type, int] = {T.ByteType: 7, T.ShortType: 15, T.IntegerType: 31, T.LongType: 63}
_SAME_IN_VARIANTS: dict[pa.DataType, Any] = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32(), pa.int64()), int), pa.float64(): float | int,
    pa.bool_(): bool, pa.date32(): date | str,
}  # fmt: skip
"""Types to which pqext and Spark cast VARIANT values identically, and the types of literals that both compare
identically.
"""


def value_bound(
    tree: Expression, is_plain: Callable[[Expression], bool], get_type: Callable[[Any], T.DataType | None]
) -> Expression | None:
    """Return a condition that pqext can evaluate, and that selects all rows that match a clause or fail in Spark.

    ``is_plain`` returns whether Spark evaluates a leaf identically. Returns None if no condition is found.
    """
    risks: list[Expression] = []
    for leaf in visitors.leaves(tree):
        if is_plain(leaf):
            continue
        operand = leaf.operand if isinstance(leaf, OneOperand) else None
        values = _values(leaf)
        match operand:
            case VariantField():
                if not _is_same_in_variants(operand, values):
                    return None
            case E.Cast(operand=E.Column() as column, type="date") if isinstance(get_type(column), _TEMPORAL):
                pass
            case E.Arithmetic(
                operator="+" | "-" as sign, operands=(E.Column() as column, E.Constant(value=int(number)))
            ):
                bits = _INTEGERS.get(type(get_type(column)))
                if bits is None or abs(number) >= 1 << 31 or not all(isinstance(value, int) for value in values):
                    return None
                offset = number if sign == "+" else -number
                risks.append(column > (1 << bits) - 1 - offset if offset > 0 else column < -(1 << bits) - offset)
            case _:
                return None
    return any_of([tree, *risks]) if risks else tree


def _is_same_in_variants(field: VariantField, values: tuple[Any, ...]) -> bool:
    literal = _SAME_IN_VARIANTS.get(target_type(field.type))
    is_double = target_type(field.type) == pa.float64()
    if is_double and any(isinstance(value, int) and abs(value) > 1 << 53 for value in values):
        return False  # Spark rounds the integer to a double
    return literal is not None and all(isinstance(value, literal) for value in values)


def _values(leaf: Expression) -> tuple[Any, ...]:
    match leaf:
        case Comparison(value=value):
            return (value,)
        case IsIn(values=values):
            return values
    return ()


def function_bound(text: str, get_type: TypeOf, timezone: str, slack: timedelta) -> Expression | None:
    """Return a bound of a comparison that calls a function or compares a timestamp; None if unknown.

    ``slack`` is the maximum difference between local times of the text and those in ``timezone``.
    """
    try:
        node = sqlglot.parse_one(text, dialect=Filter)
    except sqlglot.errors.SqlglotError:
        return None
    return _Bounds(get_type, timezone, slack).bound(node)


class _Bounds:
    """Derivation of bounds from the nodes of a parsed clause."""

    def __init__(self, get_type: TypeOf, timezone: str, slack: timedelta) -> None:
        self.type_of, self.timezone, self.slack = get_type, timezone, slack

    def bound(self, node: Any) -> Expression | None:
        """Return the bound of a clause; None if unknown."""
        try:
            return self._bound(node)
        except (ValueError, TypeError, OverflowError):
            return None

    def _bound(self, node: Any) -> Expression | None:
        if any(value for name, value in node.args.items() if name not in _ARGUMENTS):
            return None
        match node:
            case exp.Paren():
                return self._bound(node.this)
            case exp.Between() if not node.args.get("negate"):
                low = self._bound_comparison(">=", node.this, node.args["low"])
                high = self._bound_comparison("<=", node.this, node.args["high"])
                bounds = [bound for bound in (low, high) if bound is not None]
                return all_of(bounds) if bounds else None
            case exp.In() if node.expressions and not node.args.get("negate"):
                bounds = [
                    bound for value in node.expressions
                    if (bound := self._bound_comparison("==", node.this, value)) is not None
                ]
                return any_of(bounds) if len(bounds) == len(node.expressions) else None
            case exp.NullSafeEQ():
                return self._bound_comparison("==", node.this, node.expression)
        operator = COMPARE.get(type(node))
        return None if operator in (None, "!=") else self._bound_comparison(operator, node.this, node.expression)

    def _bound_comparison(self, operator: Operator, operand: Any, literal: Any) -> Expression | None:
        value = _literal_value(literal)
        if value is None:
            operand, value, operator = literal, _literal_value(operand), SWAPPED[operator]
        if value is None:
            return None
        operand = operand.unnest()
        match operand:
            case exp.Anonymous():
                name, arguments = str(operand.this).lower(), operand.expressions
            case exp.Column() | exp.Dot():
                return self._bound_instant(_parse_column(operand), operator, value)
            case _:
                return None
        match name, len(arguments):
            case ("year", 1) if isinstance(value, int):
                return self._bound_year(_parse_column(arguments[0]), operator, value)
            case ("date" | "to_date", 1):
                return self._bound_truncated(_parse_column(arguments[0]), operator, value, 1)
            case ("date_trunc", 2) if (width := _WIDTHS.get(_string_value(arguments[0]))) is not None:
                return self._bound_truncated(_parse_column(arguments[1]), operator, value, width)
            case ("trunc", 2) if (width := _WIDTHS.get(_string_value(arguments[1]))) is not None:
                return self._bound_truncated(_parse_column(arguments[0]), operator, value, width)
            case ("date_add" | "date_sub" | "dateadd", 2) if isinstance(days := _literal_value(arguments[1]), int):
                shift = timedelta(days=-days if name == "date_sub" else days)
                return self._bound_truncated(_parse_column(arguments[0]), operator, _parse_local_time(value) - shift, 1)
            case ("coalesce" | "nvl" | "ifnull", _) if arguments:
                return self._bound_coalesce(arguments, operator, value)
            case ("variant_get", 3):
                field = _parse_column(arguments[0]).variant(
                    _string_value(arguments[1], False), _string_value(arguments[2])
                )
                return _bound_strict_cast(field, operator, value)
        return None

    def _bound_coalesce(self, arguments: list[Any], operator: Operator, value: Any) -> Expression | None:
        """Bound a comparison of ``coalesce`` with ``value``: the first argument matches or is null.

        All arguments must have the same type, without collation.
        """
        column = _parse_column(arguments[0])
        type = self.type_of(column)
        is_wide = isinstance(value, int) and abs(value) > 1 << 24  # Spark may compare the number as a float
        is_collated = isinstance(value, str) and type != T.StringType()
        if isinstance(value, datetime) and type != T.DateType():
            return None  # a local time that is ambiguous, nonexistent or in another time zone
        for argument in arguments[1:]:
            other = _literal_value(argument)
            if isinstance(other, str) and type != T.StringType():
                return None  # Spark may convert all arguments to strings
            if (
                (self.type_of(_parse_column(argument)) != type)
                if other is None
                else not isinstance(other, value.__class__)
            ):
                return None
        return None if is_wide or is_collated else column._compare(operator, value) | column.is_null()

    def _bound_year(self, column: E.Column, operator: Operator, year: int) -> Expression:
        first, after = datetime(year, 1, 1), datetime(year + 1, 1, 1)
        match operator:
            case "==":
                return all_of(
                    [self._compare_time(column, ">=", first, _DAY), self._compare_time(column, "<", after, _DAY)]
                )
            case ">" | "<=":
                return self._compare_time(column, ">=" if operator == ">" else "<", after, _DAY)
        return self._compare_time(column, operator, first, _DAY)

    def _bound_truncated(self, column: E.Column, operator: Operator, value: Any, width: int) -> Expression:
        """Bound a column whose truncated value, at most ``width`` days earlier, is compared with ``value``."""
        local, sides = _parse_local_time(value), []
        if operator in ("==", ">", ">="):
            sides.append(self._compare_time(column, ">=", local, _DAY + self.slack))
        if operator in ("==", "<", "<="):
            sides.append(self._compare_time(column, "<=", local + timedelta(days=width), _DAY + self.slack))
        return all_of(sides)

    def _bound_instant(self, column: E.Column, operator: Operator, value: Any) -> Expression | None:
        """Bound a timestamp that is compared with a local time; None for other columns and for integers."""
        if not isinstance(self.type_of(column), T.TimestampType | T.TimestampNTZType) or isinstance(value, int):
            return None
        local, sides = _parse_local_time(value), []
        if operator != "<" and operator != "<=":
            sides.append(self._compare_time(column, ">=", local, self.slack))
        if operator != ">" and operator != ">=":
            sides.append(self._compare_time(column, "<=", local, self.slack))
        return all_of(sides)

    def _compare_time(self, column: E.Column, operator: Operator, local: datetime, slack: timedelta) -> Expression:
        """Compare a column with a local time in its own type, relaxed by ``slack`` except for dates."""
        type = self.type_of(column)
        is_low = operator in (">", ">=")
        if isinstance(type, T.DateType):
            day = local.date()
            return column >= day if is_low else column <= day
        relaxed = local - slack if is_low else local + slack
        if isinstance(type, T.TimestampNTZType):
            value = relaxed
        elif isinstance(type, T.TimestampType):
            value = relaxed.replace(tzinfo=_parse_timezone(self.timezone)).astimezone(UTC)
        else:
            raise TypeError(f"expected a column of dates or timestamps, not {type}")
        return column >= value if is_low else column <= value


_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate"}
"""Arguments of SQL nodes that bounds take into account. Other arguments change the semantics."""


def _bound_strict_cast(field: VariantField, operator: Operator, value: Any) -> Expression | None:
    """Select rows whose value at a path matches or cannot be cast, because a failed cast is an error in Spark."""
    if not _is_same_in_variants(field, (value,)):
        return None
    present = field.column.variant(field.path, "variant")
    return any_of([Comparison(field, operator, value), all_of([IsNull(field), IsNotNull(present)])])


def _parse_timezone(name: str) -> tzinfo | None:
    """Return a time zone by its name or offset. Raises ``ValueError`` for other names."""
    try:
        return ZoneInfo(name)
    except ZoneInfoNotFoundError as error:
        zone = datetime.fromisoformat(f"2000-01-01T00:00:00{name}").tzinfo
        if zone is None:
            raise ValueError(name) from error
        return zone


def _parse_column(node: Any) -> E.Column:
    node = node.unnest()
    if not isinstance(node, exp.Column | exp.Dot):
        raise ValueError(f"expected a column, not {node}")
    column = value_from_sql(node.sql(dialect=Filter))
    if not isinstance(column, E.Column):
        raise ValueError(f"expected a column, not {node}")
    return column


def _literal_value(node: Any) -> Any:
    """Return the value of an integer, string, date or local time literal, or None for other nodes."""
    match node:
        case exp.Paren():
            return _literal_value(node.this)
        case exp.Literal():
            return node.this if node.is_string else int(node.this) if str(node.this).isdecimal() else None
        case exp.Cast(this=exp.Literal() as inner) if str(node.to.this.value) in ("DATE", "TIMESTAMP", "TIMESTAMPNTZ"):
            return _parse_local_time(inner.this) if inner.is_string else None
    return None


def _string_value(node: Any, is_word: bool = True) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise ValueError(f"expected a string, not {node}")
    return str(node.this).lower() if is_word else str(node.this)


def _parse_local_time(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if TIME.fullmatch(value.strip()) is None:
        raise ValueError(f"Spark parses the time {value!r} differently")
    local = datetime.fromisoformat(value.strip())
    if local.tzinfo is not None:
        raise ValueError(f"expected a time without an offset, not {value!r}")
    return local
