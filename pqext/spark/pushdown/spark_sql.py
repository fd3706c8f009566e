"""Split Spark SQL conditions, as text or ``Column``, into a part that pqext evaluates and a part that Spark evaluates.

*Plain* clauses have the same semantics in pqext and Spark, so only pqext evaluates them. It also evaluates clauses that
Spark does not support, such as ``event:$.mag > 5``. Spark evaluates the other clauses on every row that is read, with
its own functions, casts and errors. pqext reads only rows that satisfy the *bound* of the clause: a condition that is
true if the clause is true or fails (:mod:`pqext.spark.pushdown.sql_bounds`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.dataset import expressions as E
from pqext.dataset.expressions import (
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Relation,
    Spatial,
    VariantField,
    all_of,
    visitors,
)
from pqext.dataset.expressions.visitors import set_timezone
from pqext.dataset.notations.dnf import as_expression
from pqext.dataset.notations.sql import from_sql
from pqext.dataset.planning.projection import ComputedColumn
from pqext.dataset.scan_planner import ScanPlanner
from pqext.spark.base.settings import Setting, pads_char_literals, session_setting, session_timezone
from pqext.spark.columns.char_columns import depends_on_padding, has_exact_padding
from pqext.spark.columns.names import quote, resolve_case
from pqext.spark.pushdown.column_text import column_text
from pqext.spark.pushdown.conditions import translate_condition
from pqext.spark.pushdown.sql_bounds import function_bound, value_bound
from pqext.spark.pushdown.sql_clauses import (
    TIME,
    differs_in_spark,
    field_names,
    split_clauses,
    standardize_quotes,
    strip_brackets,
    strip_literal_types,
)

_COLUMN = r"(?!`|\s*(?:[=<>!]|(?:is|in|between|not|like|and|or)\b|$))"
"""Lookahead that excludes names of columns."""
_OF_SPARK = re.compile(
    rf"\b(variant_get|try_variant_get|timestamp|timestamp_ltz|interval|size|cardinality)\b{_COLUMN}"
    r"|(\bas\s+|::\s*)(timestamp|timestamp_ltz|interval)\b",
    re.I,
)
"""Functions and types with different semantics in pqext and Spark."""
_OF_TIME = re.compile(
    rf"(timestamp_ntz|timestamp_ltz|timestamp|interval){_COLUMN}|(\bas|::)\s*(timestamp|interval)", re.I
)
_DOUBLE = re.compile(r"\d\.?e|\d\.?[df]\b|\b(double|float|real)\b", re.I)
"""Numbers that are doubles in Spark; other numbers with a decimal point are decimals."""
_OTHER_TYPE = re.compile(r"\s*([-+.\d].*|t|f|y|n|true|false|yes|no|inf.*|nan)\s*", re.S | re.I)
"""Strings that Spark casts if they are compared with values of another type."""
_BETWEEN = re.compile(r"\bbetween\b", re.I)
"""Operator whose literals Spark does not pad to the length of a CHAR column."""
_RAW = re.compile(r"\br['\"]", re.I)
"""Start of a raw string, which has no escapes."""
_UNKNOWN = ("UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "UNBOUND_SQL_PARAMETER", "PARSE_SYNTAX_ERROR")
_LITERAL_ERRORS = ("INVALID_TYPED_LITERAL", "INVALID_NUMERIC_LITERAL_RANGE", "UNSUPPORTED_TYPED_LITERAL")
_SLACK = timedelta(hours=2)
_ANY_ZONE = timedelta(hours=28)
"""Slack for instants in a ``Column``: PySpark prints them in the time zone of the JVM, not of the session."""


@dataclass(frozen=True)
class SparkCondition:
    """Condition as two parts, one for pqext and one for Spark. Rows must match both parts."""

    tree: Expression | None
    """Part that pqext evaluates."""
    remainder: Column | None
    """Part that Spark evaluates afterwards."""
    text: str = ""
    """``remainder`` as SQL text."""


def is_spark_sql(where: Any) -> bool:
    """Return whether a filter is a ``Column`` or the text of an SQL condition."""
    return isinstance(where, Column) or (isinstance(where, str) and not where.lstrip().startswith("{"))


def needs_schema(where: Any, setting: Setting) -> bool:
    """Return whether :func:`split_condition` needs the types of columns, given the settings of a session."""
    if not isinstance(where, str):
        return isinstance(where, Column)
    if not is_spark_sql(where):
        return False
    tree = _parse(where)
    if isinstance(tree, ValueError) or _OF_SPARK.search(where) or "\\" in where or differs_in_spark(where):
        return True
    is_padded = pads_char_literals(setting) and not _BETWEEN.search(where)
    return not all(
        _is_plain_of_any_type(leaf) and (is_padded or not _compares_text(leaf)) for leaf in visitors.leaves(tree)
    )


def split_condition(df: DataFrame, where: str | Column, is_bounded: bool = True) -> SparkCondition:
    """Split a condition on the columns of ``df`` into parts that pqext and Spark evaluate.

    If ``is_bounded``, the part of pqext includes bounds of the clauses that Spark evaluates.

    Raises ``ValueError`` for text that pqext and Spark cannot parse, and Spark's error for other mistakes.
    """
    if isinstance(where, Column):
        text = column_text(where, field_names(df.schema))
        if text is None:
            return SparkCondition(None, where, str(where))
        split = _Splitter(df, is_bounded, is_column=True).split(text)
        return SparkCondition(split.tree, where if split.clauses else None, " AND ".join(split.clauses))
    split = _Splitter(df, is_bounded).split(where)
    if not split.clauses:
        return SparkCondition(split.tree, None)
    remainder = F.expr(" AND ".join(f"({clause}\n)" for clause in split.operands))  # a comment may end the clause
    try:
        _analyse(df, remainder)
    except AnalysisException as error:
        if _is_unknown(error) and split.error is not None:
            raise split.error from None
        raise
    return SparkCondition(split.tree, remainder, " AND ".join(split.clauses))


@dataclass
class _Split:
    """Result of splitting a text: the condition of pqext, and the clauses that Spark evaluates."""

    tree: Expression | None
    clauses: list[str]
    """Clauses that Spark evaluates."""
    error: Exception | None
    """Error of pqext for the first clause that it does not support."""
    is_conjunction: bool = False
    """Whether the text joins several clauses, so that Spark casts each to BOOLEAN."""

    @property
    def operands(self) -> list[str]:
        """Clauses to join with AND for Spark. A single clause of a conjunction is joined with ``true``."""
        return ["true", *self.clauses] if self.is_conjunction and len(self.clauses) == 1 else self.clauses


class _Splitter:
    """Splitter of conditions on the columns of ``df`` by the engine that evaluates each clause."""

    def __init__(self, df: DataFrame, is_bounded: bool, is_column: bool = False) -> None:
        self.df, self.bounded = df, is_bounded
        self.timezone = session_timezone(df.sparkSession)
        self.is_column = is_column
        """Whether the text is from a ``Column``, which prints doubles like decimals."""
        self.slack = _ANY_ZONE if is_column else _SLACK

    def split(self, text: str) -> _Split:
        if "\\" in text and self._has_raw_strings(text) and (self.is_column or self._is_supported(text)):
            return _Split(None, [text], None)
        trees: list[Expression] = []
        remainder: list[str] = []
        error: Exception | None = None
        parts = split_clauses(strip_brackets(text), "and")
        for clause in parts:
            tree = self._parse_clause(clause)
            if isinstance(tree, Expression) and (self._is_plain(clause, tree) or not self._is_supported(clause)):
                trees.append(tree)
                continue
            remainder.append(clause)
            if not isinstance(tree, Expression) and strip_literal_types(clause) == clause:
                error = error or tree
            bound = self._bound(clause) if self.bounded else None
            if bound is not None:
                trees.append(bound)
        return _Split(all_of(trees) if trees else None, remainder, error, len(parts) > 1)

    def _has_raw_strings(self, text: str) -> bool:
        escaped = self.df.sparkSession.conf.get("spark.sql.parser.escapedStringLiterals", "false")
        return escaped == "true" or _RAW.search(text) is not None

    def _parse_clause(self, clause: str) -> Expression | Exception:
        """Parse a clause to an expression on the columns. Returns the error if pqext does not support the clause."""
        tree = _parse(clause)
        if isinstance(tree, ValueError):
            return tree
        try:
            return self._resolve_columns(tree)
        except (ValueError, TypeError) as error:
            return error

    def _resolve_columns(self, tree: Expression) -> Expression:
        tree = resolve_case(set_timezone(tree, self.timezone), self.df)
        translate_condition(self.df, tree)  # raises if a column is missing or a literal does not compare
        return tree

    def _is_supported(self, clause: str) -> bool:
        """Return whether Spark supports a clause.

        Double-quoted names of pqext, which are strings in Spark, are not supported. Types before strings are ignored,
        so that Spark raises its error for those that it does not support.
        """
        try:
            _analyse(self.df, F.expr(strip_literal_types(clause)))
        except AnalysisException as error:
            return not _is_unknown(error)
        return '"' not in clause

    def _is_plain(self, clause: str, tree: Expression) -> bool:
        """Return whether pqext and Spark evaluate a clause identically."""
        if _OF_SPARK.search(clause) or differs_in_spark(clause):
            return False
        return all(self._is_plain_leaf(leaf, clause) for leaf in visitors.leaves(tree))

    def _is_plain_leaf(self, leaf: Expression, clause: str) -> bool:
        """Return whether pqext and Spark evaluate a leaf identically, except for errors of VARIANT casts."""
        operands = visitors.leaf_operands(leaf)
        if not all(isinstance(operand, E.Column | VariantField) for operand in operands):
            return False
        types = [self._type(operand) for operand in operands]
        if depends_on_padding(leaf, self.df.schema):
            is_padded = pads_char_literals(session_setting(self.df.sparkSession)) and not _BETWEEN.search(clause)
            if not is_padded or not has_exact_padding(leaf, self.df.schema):
                return False
        match leaf:
            case Comparison(value=value):
                return self._is_exact(types[0], value, clause)
            case IsIn(values=values):
                return all(self._is_exact(types[0], value, clause) for value in values)
            case Relation():
                if types[0] != types[1] or types[0] is None:
                    return False
                return self._is_exact(types[0], 0, clause)
            case Matches(how=how):
                return how != "ilike" and types[0] in (None, T.StringType())
        return True

    def _is_same(self, leaf: Expression, clause: str) -> bool:
        """Return whether pqext and Spark evaluate a leaf of a clause identically."""
        is_variant = any(isinstance(operand, VariantField) for operand in visitors.leaf_operands(leaf))
        return not is_variant and self._is_plain_leaf(leaf, clause)

    def _is_exact(self, type: T.DataType | None, value: Any, clause: str) -> bool:
        """Return whether Spark compares values of a type with a literal by their exact values, as pqext does."""
        match type:
            case T.LongType() | T.DecimalType():
                return not isinstance(value, float) or not (self.is_column or _DOUBLE.search(clause))
            case T.ByteType() | T.ShortType() | T.IntegerType():
                return not isinstance(value, float) or not _DOUBLE.search(clause)
            case T.DateType() | T.TimestampType() | T.TimestampNTZType():
                return not isinstance(value, str) or TIME.fullmatch(value) is not None
            case T.DoubleType() | T.FloatType():
                limit = 1 << (53 if isinstance(type, T.DoubleType) else 24)
                return isinstance(value, float) or (isinstance(value, int) and abs(value) <= limit)
            case T.StringType():
                return type == T.StringType()
            case T.DayTimeIntervalType() | T.YearMonthIntervalType():
                return False
        return True

    def _type(self, operand: Any) -> T.DataType | None:
        """Return the type of a column, or None for a value within a VARIANT."""
        if isinstance(operand, VariantField):
            return None
        type: T.DataType = self.df.schema
        for name in operand.path:
            type = type[name].dataType  # type: ignore[index]
        return type

    def _named_type(self, column: E.Column) -> T.DataType | None:
        return self._type(self._resolve_columns(column.is_null()).operand)  # type: ignore[attr-defined]

    def _bound(self, text: str) -> Expression | None:
        """Return a condition that is true for all rows where a clause is true or fails in Spark; None if unknown."""
        text = strip_brackets(text)
        for word in ("or", "and"):
            parts = split_clauses(text, word)
            if len(parts) > 1:
                bounds = [bound for part in parts if (bound := self._bound(part)) is not None]
                if word == "or":
                    return E.any_of(bounds) if len(bounds) == len(parts) else None
                return all_of(bounds) if bounds else None
        if differs_in_spark(text):
            return None
        tree = self._parse_clause(text)
        if isinstance(tree, Expression):
            if self._is_plain(text, tree):
                return tree
            return None if _OF_TIME.search(text) else value_bound(tree, partial(self._is_same, clause=text), self._type)
        try:
            bound = function_bound(standardize_quotes(text), self._named_type, self.timezone, self.slack)
            resolved = None if bound is None else self._resolve_columns(bound)
        except (ValueError, TypeError):
            return None
        is_padded = resolved is not None and any(
            depends_on_padding(leaf, self.df.schema) for leaf in visitors.leaves(resolved)
        )
        return None if is_padded else resolved


def _parse(text: str) -> Expression | ValueError:
    """Parse text as pqext's SQL, and return the error if it is invalid."""
    try:
        return from_sql(standardize_quotes(text))
    except ValueError as error:
        return error


def _is_plain_of_any_type(leaf: Expression) -> bool:
    """Return whether, for every column type, pqext evaluates a leaf as Spark does or raises an error."""
    if not all(isinstance(operand, E.Column | VariantField) for operand in visitors.leaf_operands(leaf)):
        return False
    match leaf:
        case Comparison(value=value):
            return _has_unique_type(value)
        case IsIn(values=values):
            return all(map(_has_unique_type, values))
        case Matches(how=how):
            return how != "ilike"
    return isinstance(leaf, IsNull | IsNotNull | Spatial)


def _compares_text(leaf: Expression) -> bool:
    values = [leaf.value] if isinstance(leaf, Comparison) else leaf.values if isinstance(leaf, IsIn) else ()
    return any(isinstance(value, str) for value in values)


def _has_unique_type(value: Any) -> bool:
    """Return whether, for every column type, pqext compares a literal as Spark does or raises an error."""
    if isinstance(value, str):
        return _OTHER_TYPE.fullmatch(value) is None
    return isinstance(value, bool | bytes) or (isinstance(value, int) and abs(value) <= 1 << 24)


def _is_unknown(error: AnalysisException) -> bool:
    """Return whether an error means that Spark cannot parse a text, or that a column or function does not exist."""
    condition = str(error.getCondition())
    return condition.startswith(_UNKNOWN) or (isinstance(error, ParseException) and condition not in _LITERAL_ERRORS)


def _analyse(df: DataFrame, condition: Column) -> None:
    """Raise Spark's error if ``df`` cannot be filtered by a condition."""
    type(df).filter(df, condition).schema  # noqa: B018  Spark Connect analyses it only here


def refers_to_column(where: Any, column: str | None) -> bool:
    """Return whether a filter refers to ``column``, ignoring case."""
    expression = None if column is None else as_expression(where)
    if column is None or expression is None:
        return False
    return column.casefold() in {name.casefold() for name in visitors.columns(expression)}


def can_evaluate(make_query: Callable[[], Any]) -> bool:
    """Return whether pqext can evaluate the condition of a query on the first file of the query.

    Errors of the file are ignored.
    """
    try:
        query = make_query()
        ScanPlanner(query.query(query.files[:1], query.values_schema().names, query.filter())).plan()
    except (TypeError, ValueError):
        return False
    except OSError:
        pass
    return True


def find_session(where: Any) -> SparkSession | None:
    """Return the active session for a filter that Spark may evaluate; None for other filters or without a session.

    Raises ``ValueError`` if there is no session to evaluate a filter that pqext does not support.
    """
    session = SparkSession.getActiveSession() if is_spark_sql(where) else None
    if session is None and is_spark_sql(where) and isinstance(error := _parse(where), ValueError):
        raise ValueError(f"pqext cannot evaluate this condition; pass spark= if Spark evaluates it: {error}")
    return session


def may_split(where: Any, setting: Setting, make_query: Callable[[], Any]) -> bool:
    """Return whether Spark may have to evaluate a part of the query's filter ``where``."""
    return is_spark_sql(where) and (needs_schema(where, setting) or not can_evaluate(make_query))


def read_in_two_steps(
    read: Callable[..., DataFrame],
    columns: Sequence[Any] | None,
    condition: str | Column,
    where: Callable[[DataFrame, str | Column], DataFrame],
    stored_columns: Callable[[], Sequence[str]],
) -> DataFrame:
    """Read ``columns`` and the columns of ``condition``, filter the rows, and return ``columns``.

    ``read`` reads the columns, and ``where`` filters the result.
    """
    needed = add_condition_columns(columns, condition, stored_columns)
    filtered = where(read(needed), condition)
    if columns is None or needed == [*columns]:
        return filtered
    return filtered.select(*(quote(column if isinstance(column, str) else column.name) for column in columns))


def add_condition_columns(
    columns: Sequence[Any] | None, condition: str | Column, stored_columns: Callable[[], Sequence[str]]
) -> list[Any] | None:
    """Return ``columns`` and the stored columns that ``condition`` may refer to; None if ``columns`` is None."""
    return None if columns is None else [*columns, *condition_columns(columns, condition, stored_columns())]


def condition_columns(
    columns: Sequence[str | ComputedColumn], where: str | Column, stored_columns: Sequence[str]
) -> list[str]:
    """Return the ``stored_columns`` that a condition may refer to and that are not in the ``columns`` of a read.

    Raises ``ValueError`` if the condition may refer to a stored column with the name of a computed column.
    """
    text = str(where).casefold()
    words = set(re.findall(r"\w+", text))
    used = [name for name in stored_columns if (fold := name.casefold()) in words or (
        fold in text and re.search(r"\W", fold)
    )]
    if hidden := [column.name for column in columns if isinstance(column, ComputedColumn) and column.name in used]:
        raise ValueError(
            f"where= refers to the stored column {hidden[0]!r}, which a computed column hides: "
            "rename the computed column"
        )
    folds = [name.casefold() for name in stored_columns]
    names = [column if isinstance(column, str) else column.name for column in columns]
    read = {name.casefold() for name in names if folds.count(name.casefold()) == 1}
    return [name for name in used if name not in names and name.casefold() not in read]
