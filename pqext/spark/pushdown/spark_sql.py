"""Conditions of Spark SQL, as text or as a ``Column``, for reads that evaluate as much of them as pqext can.

Each clause is one of three. *Plain* clauses mean the same to pqext and to Spark, so pqext alone evaluates them; so
are those that Spark does not know, such as ``event:$.mag > 5``. Of the rest Spark evaluates every row that is read,
with its own functions, casts and errors, and pqext reads only rows for which a bound of the clause holds: a condition
that is true wherever the clause is true or fails (:mod:`pqext.spark.pushdown.sql_bounds`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
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
from pqext.dataset.expressions.timezones import in_timezone
from pqext.dataset.notations.sql import from_sql
from pqext.spark.base.timezones import session_timezone
from pqext.spark.columns.names import resolve_case
from pqext.spark.pushdown.column_text import column_text
from pqext.spark.pushdown.conditions import condition
from pqext.spark.pushdown.sql_bounds import function_bound, value_bound
from pqext.spark.pushdown.sql_clauses import clauses, with_standard_quotes, without_brackets
from pqext.spark.pushdown.sql_differences import TIME, differs_in_spark, names_within

_COLUMN = r"(?!`|\s*(?:[=<>!]|(?:is|in|between|not|like|and|or)\b|$))"
"""No text follows that makes the name before it the name of a column."""
_OF_SPARK = re.compile(
    rf"\b(variant_get|try_variant_get|timestamp|timestamp_ltz|interval|size|cardinality)\b{_COLUMN}"
    r"|(\bas\s+|::\s*)(timestamp|timestamp_ltz|interval)\b",
    re.I,
)
"""Functions and types that pqext and Spark do not take in quite the same way."""
_OF_TIME = re.compile(
    rf"(timestamp_ntz|timestamp_ltz|timestamp|interval){_COLUMN}|(\bas|::)\s*(timestamp|interval)", re.I
)
_DOUBLE = re.compile(r"\d\.?e|\d\.?[df]\b|\b(double|float|real)\b", re.I)
"""Numbers that are doubles to Spark, which takes others with a point for decimals."""
_OTHER_TYPE = re.compile(r"\s*([-+.\d].*|t|f|y|n|true|false|yes|no|inf.*|nan)\s*", re.S | re.I)
"""Texts that Spark casts where they are compared with values of another type."""
_RAW = re.compile(r"\br['\"]", re.I)
"""Texts in which a backslash is no more than that."""
_UNKNOWN = ("UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "UNBOUND_SQL_PARAMETER", "PARSE_SYNTAX_ERROR")
_LITERAL_ERRORS = ("INVALID_TYPED_LITERAL", "INVALID_NUMERIC_LITERAL_RANGE")
_SLACK = timedelta(hours=2)
_ANY_ZONE = timedelta(hours=28)
"""PySpark shows instants of a ``Column`` in the time zone of the JVM, which may not be that of the session."""


@dataclass(frozen=True)
class SparkCondition:
    """A condition in two parts, which rows must both meet."""

    tree: Expression | None
    """What pqext evaluates."""
    rest: Column | None
    """What Spark evaluates, after it."""


def is_spark_sql(where: Any) -> bool:
    """Whether a filter is a ``Column`` or the text of an SQL condition."""
    return isinstance(where, Column) or (isinstance(where, str) and not where.lstrip().startswith("{"))


def needs_schema(where: Any) -> bool:
    """Whether it depends on the types of columns who evaluates a filter of Spark SQL."""
    if not isinstance(where, str):
        return isinstance(where, Column)
    if not is_spark_sql(where):
        return False
    tree = _understood(where)
    if isinstance(tree, ValueError) or _OF_SPARK.search(where) or "\\" in where or differs_in_spark(where):
        return True
    return not all(map(_is_plain_of_any_type, visitors.leaves(tree)))


def spark_condition(df: DataFrame, where: str | Column, bounded: bool = True) -> SparkCondition:
    """Split a condition on the columns of ``df``, with bounds of what Spark evaluates if ``bounded``.

    Raises ``ValueError`` for text that neither pqext nor Spark understands, and Spark's error for other mistakes.
    """
    if isinstance(where, Column):
        text = column_text(where, names_within(df.schema))
        if text is None:
            return SparkCondition(None, where)
        split = _Splitter(df, bounded, is_column=True).split(text)
        return SparkCondition(split.tree, where if split.rest else None)
    split = _Splitter(df, bounded).split(where)
    if not split.rest:
        return SparkCondition(split.tree, None)
    rest = F.expr(" AND ".join(f"({clause}\n)" for clause in split.rest))  # a comment may end the clause
    try:
        _analysed(df, rest)
    except AnalysisException as error:
        if _is_unknown(error) and split.error is not None:
            raise split.error from None
        raise
    return SparkCondition(split.tree, rest)


@dataclass
class _Split:
    tree: Expression | None
    rest: list[str]
    error: Exception | None
    """Why pqext does not understand the first clause of ``rest``."""


class _Splitter:
    def __init__(self, df: DataFrame, bounded: bool, is_column: bool = False) -> None:
        self.df, self.bounded = df, bounded
        self.timezone = session_timezone(df.sparkSession)
        self.is_column = is_column
        """Whether the text is that of a ``Column``, which does not tell doubles from decimals."""
        self.slack = _ANY_ZONE if is_column else _SLACK

    def split(self, text: str) -> _Split:
        if "\\" in text and self._has_raw_texts(text) and (self.is_column or self._is_known(text)):
            return _Split(None, [text], None)
        trees: list[Expression] = []
        rest: list[str] = []
        first: Exception | None = None
        for clause in clauses(without_brackets(text), "and"):
            tree = self._tree(clause)
            if isinstance(tree, Expression) and (self._is_plain(clause, tree) or not self._is_known(clause)):
                trees.append(tree)
                continue
            rest.append(clause)
            if not isinstance(tree, Expression):
                first = first or tree
            bound = self._bound(clause) if self.bounded else None
            if bound is not None:
                trees.append(bound)
        return _Split(all_of(trees) if trees else None, rest, first)

    def _has_raw_texts(self, text: str) -> bool:
        escaped = self.df.sparkSession.conf.get("spark.sql.parser.escapedStringLiterals", "false")
        return escaped == "true" or _RAW.search(text) is not None

    def _tree(self, clause: str) -> Expression | Exception:
        """A clause as an expression on the columns, or why it is none."""
        tree = _understood(clause)
        if isinstance(tree, ValueError):
            return tree
        try:
            return self._on_columns(tree)
        except (ValueError, TypeError) as error:
            return error

    def _on_columns(self, tree: Expression) -> Expression:
        tree = resolve_case(in_timezone(tree, self.timezone), self.df)
        condition(self.df, tree)  # raises if a column is missing or a literal does not compare
        return tree

    def _is_known(self, clause: str) -> bool:
        """Whether Spark understands a clause, in which pqext takes texts in double quotes for names."""
        try:
            _analysed(self.df, F.expr(clause))
        except AnalysisException as error:
            return not _is_unknown(error)
        return '"' not in clause

    def _is_plain(self, clause: str, tree: Expression) -> bool:
        if _OF_SPARK.search(clause) or differs_in_spark(clause):
            return False
        return all(self._is_plain_leaf(leaf, clause) for leaf in visitors.leaves(tree))

    def _is_plain_leaf(self, leaf: Expression, clause: str) -> bool:
        operands = visitors.leaf_operands(leaf)
        if not all(isinstance(operand, E.Column | VariantField) for operand in operands):
            return False
        types = [self._type(operand) for operand in operands]
        match leaf:
            case Comparison(value=value):
                return self._is_exact(types[0], value, clause)
            case IsIn(values=values):
                return all(self._is_exact(types[0], value, clause) for value in values)
            case Relation():
                return types[0] == types[1] and types[0] is not None and self._is_exact(types[0], 0, clause)
            case Matches(how=how):
                return how != "ilike" and types[0] in (None, T.StringType())
        return True

    def _is_same(self, leaf: Expression, clause: str) -> bool:
        """Whether pqext and Spark evaluate a leaf of a clause alike."""
        is_variant = any(isinstance(operand, VariantField) for operand in visitors.leaf_operands(leaf))
        return not is_variant and self._is_plain_leaf(leaf, clause)

    def _is_exact(self, type: T.DataType | None, value: Any, clause: str) -> bool:
        """Whether Spark compares values of a type with a literal as pqext does, by their exact values."""
        match type:
            case T.LongType() | T.DecimalType():
                return not isinstance(value, float) or not (self.is_column or _DOUBLE.search(clause))
            case T.ByteType() | T.ShortType() | T.IntegerType():
                return not isinstance(value, float) or not _DOUBLE.search(clause)
            case T.DateType() | T.TimestampType() | T.TimestampNTZType():
                return not isinstance(value, str) or TIME.fullmatch(value) is not None
            case T.DoubleType() | T.FloatType():
                most = 1 << (53 if isinstance(type, T.DoubleType) else 24)
                return isinstance(value, float) or (isinstance(value, int) and abs(value) <= most)
            case T.StringType():
                return type == T.StringType()
            case T.DayTimeIntervalType() | T.YearMonthIntervalType():
                return False
        return True

    def _type(self, operand: Any) -> T.DataType | None:
        """The type of a column; None of a value within a VARIANT."""
        if isinstance(operand, VariantField):
            return None
        type: T.DataType = self.df.schema
        for name in operand.path:
            type = type[name].dataType  # type: ignore[index]
        return type

    def _named_type(self, column: E.Column) -> T.DataType | None:
        return self._type(self._on_columns(column.is_null()).operand)  # type: ignore[attr-defined]

    def _bound(self, text: str) -> Expression | None:
        """What is true wherever a clause of Spark is true or fails; None if nothing is known of it."""
        text = without_brackets(text)
        for word in ("or", "and"):
            parts = clauses(text, word)
            if len(parts) > 1:
                bounds = [self._bound(part) for part in parts]
                known = [bound for bound in bounds if bound is not None]
                if word == "or":
                    return E.any_of(known) if len(known) == len(parts) else None
                return all_of(known) if known else None
        if differs_in_spark(text):
            return None
        tree = self._tree(text)
        if isinstance(tree, Expression):
            if self._is_plain(text, tree):
                return tree
            return None if _OF_TIME.search(text) else value_bound(tree, partial(self._is_same, clause=text), self._type)
        try:
            bound = function_bound(with_standard_quotes(text), self._named_type, self.timezone, self.slack)
            return None if bound is None else self._on_columns(bound)
        except (ValueError, TypeError):
            return None


def _understood(text: str) -> Expression | ValueError:
    """Text as pqext's own SQL has it, or why it is none."""
    try:
        return from_sql(with_standard_quotes(text))
    except ValueError as error:
        return error


def _is_plain_of_any_type(leaf: Expression) -> bool:
    """Whether pqext evaluates a leaf as Spark does, or raises an error, whatever the types of the columns."""
    if not all(isinstance(operand, E.Column | VariantField) for operand in visitors.leaf_operands(leaf)):
        return False
    match leaf:
        case Comparison(value=value):
            return _is_of_one_type(value)
        case IsIn(values=values):
            return all(map(_is_of_one_type, values))
        case Matches(how=how):
            return how != "ilike"
    return isinstance(leaf, IsNull | IsNotNull | Spatial)


def _is_of_one_type(value: Any) -> bool:
    if isinstance(value, str):
        return _OTHER_TYPE.fullmatch(value) is None
    return isinstance(value, bool | bytes) or (isinstance(value, int) and abs(value) <= 1 << 24)


def _is_unknown(error: AnalysisException) -> bool:
    """Whether Spark does not understand a text, or has no column or function of a name in it."""
    condition = str(error.getCondition())
    return condition.startswith(_UNKNOWN) or (isinstance(error, ParseException) and condition not in _LITERAL_ERRORS)


def _analysed(df: DataFrame, rest: Column) -> None:
    """Raise Spark's error for a condition that ``df`` cannot be filtered by."""
    type(df).where(df, rest).schema  # noqa: B018  Connect analyses no sooner
