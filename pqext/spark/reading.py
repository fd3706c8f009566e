"""Reading through data source ``pqext``, and conditions in the forms that reach the files' statistics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.dataset.dnf import as_expression
from pqext.dataset.expressions import (
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Spatial,
    VariantField,
    operand_column,
)
from pqext.dataset.visitors import Visitor, fold
from pqext.spark.datasource import ensure_registered
from pqext.spark.functions import group_get, quoted, st_relates, try_variant_get
from pqext.spark.guards import MAX_LISTED, plain_guard
from pqext.spark.leaves import find_leaf
from pqext.spark.planning import ReadPlan, plan_read
from pqext.spark.query import VIRTUAL, Query, encode_options
from pqext.spark.types import crs_of_srid, is_marked_struct, parse_type, spark_type
from pqext.spark.variant_column import Condition, Value, plain_comparison
from pqext.variant.access.path import Path, as_path, format_path
from pqext.variant.types import variant_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pqext.geo.types import Edges

Box = Sequence[float]


def read(
    spark: SparkSession,
    path: str | Sequence[str],
    columns: Sequence[str] | None = None,
    where: Any = None,
    bbox: Box | None = None,
    virtual: Mapping[str, Mapping[str, str]] | None = None,
    shredded: bool = False,
    bbox_column: str | None = None,
    metrics_path: str | None = None,
    partition_bytes: int | None = None,
) -> DataFrame:
    """Parquet files as a data frame, read by pqext.

    ``path`` is a file, a folder, a pattern or a list of them. ``where`` is an expression of ``pqext.col`` or a
    filter in lists of tuples, ``bbox`` a box ``(xmin, ymin, xmax, ymax)`` that the file's geometry column
    (``bbox_column`` when there are several) must intersect, crossing the antimeridian when ``xmin > xmax``.
    Both are evaluated exactly by pqext: row groups whose statistics refuse them are never read.

    ``virtual={"event": {"$.properties.mag": "double"}}`` adds a struct column ``_pqext`` with a field for each
    path of each VARIANT column; a condition on it (best through :func:`variant`) is pushed by Spark and reaches
    the statistics too. ``shredded=True`` gives shredded VARIANT columns as their storage structs.
    ``metrics_path`` is a folder in which tasks leave what they read, for :func:`read_metrics`.
    """
    options = encode_options(columns, where, bbox, bbox_column, virtual, shredded, metrics_path, partition_bytes)
    ensure_registered(spark)
    paths = path if isinstance(path, str) else list(path)
    return spark.read.format("pqext").options(**options).load(paths)


def explain_read(
    path: str | Sequence[str],
    columns: Sequence[str] | None = None,
    where: Any = None,
    bbox: Box | None = None,
    bbox_column: str | None = None,
    virtual: Mapping[str, Mapping[str, str]] | None = None,
) -> ReadPlan:
    """What :func:`read` with these arguments would read, by the same planner, run here on the footers."""
    options = encode_options(columns, where, bbox, bbox_column, virtual)
    paths = [path] if isinstance(path, str) else list(path)
    query = Query.from_options({**options, "paths": json.dumps(paths)}).resolved()
    return plan_read(query, query.schema().names)


@dataclass(frozen=True)
class BoundVariant:
    """Column ``name`` of ``df``, a VARIANT or a shredded struct, whose schema is known."""

    df: DataFrame
    name: str

    def get(self, path: str | Sequence[str | int], type: str | T.DataType) -> Column:
        """The value at ``path`` cast to ``type``, as :func:`pqext.spark.functions.try_variant_get` gives it.

        Where statistics can help, comparisons of the column carry a condition that Spark pushes down: on the
        virtual field of the path, or on the shredded leaf and its residual.
        """
        return self.value(path, type).column

    def value(self, path: str | Sequence[str | int], type: str | T.DataType) -> Value:
        """The value with what can be pushed beside it."""
        steps = as_path(path)
        text = format_path(steps)
        spark_type = parse_type(type) if isinstance(type, str) else type
        virtual = self._virtual(text, spark_type)
        if virtual is not None:
            return Value(virtual, spark_type)
        struct = self.df.schema[self.name].dataType
        column = self.df[quoted(self.name)]
        if isinstance(struct, T.VariantType):
            return Value(_native_get(column, steps, spark_type), spark_type)
        if not isinstance(struct, T.StructType) or not is_marked_struct(struct):
            raise TypeError(f"column {self.name!r} is {struct.simpleString()}, neither VARIANT nor a shredded one")
        leaf = find_leaf(struct, steps)
        value = leaf.part(column, "value") if leaf.has_value else None
        typed = leaf.part(column, "typed_value") if leaf.has_typed else None
        if value is None and typed is None:
            return Value(F.lit(None).cast(spark_type), spark_type)
        exact = group_get(column["metadata"], value, typed, format_path(leaf.rest), spark_type)
        if leaf.type is None or typed is None:
            return Value(exact, spark_type)
        return Value(exact, spark_type, typed, leaf.type, value)

    def _virtual(self, path: str, type: T.DataType) -> Column | None:
        if VIRTUAL not in self.df.columns:
            return None
        struct = self.df.schema[VIRTUAL].dataType
        if not isinstance(struct, T.StructType) or self.name not in struct.names:
            return None
        fields = struct[self.name].dataType
        if not isinstance(fields, T.StructType) or path not in fields.names or fields[path].dataType != type:
            return None
        return self.df[VIRTUAL][self.name][path]


def _native_get(column: Column, steps: Path, type: T.DataType) -> Column:
    """Spark's own function, which needs no Python, where it can spell the path."""
    if any(isinstance(step, str) and ("'" in step or "\\" in step) for step in steps):
        return try_variant_get(column, steps, type)
    return F.try_variant_get(column, format_path(steps), type.simpleString())


def variant(df: DataFrame, column: str) -> BoundVariant:
    """VARIANT (or shredded) ``column`` of ``df``, for ``.get(path, type)`` in the forms that Spark pushes down.

    >>> variant(df, "event").get("$.properties.mag", "double") >= 5  # doctest: +SKIP
    """
    if column not in df.columns:
        raise ValueError(f"no column {column!r}; there are {', '.join(df.columns)}")
    return BoundVariant(df, column)


def where(df: DataFrame, expression: Any) -> DataFrame:
    """The rows of ``df`` for which an expression of ``pqext.col`` (or a filter in lists of tuples) is true.

    Variant fields may be in VARIANT columns, shredded structs and virtual fields. For shredded structs the whole
    tree has one guard beside it, ``(g1 OR g2) AND (exact1 OR exact2)``, which Spark pushes down. Literals
    compare as Spark compares them.
    """
    tree = as_expression(expression)
    if tree is None:
        return df
    return df.where(condition(df, tree).column)


def condition(df: DataFrame, expression: Expression) -> Condition:
    """``expression`` on the columns of ``df``. Raises ``ValueError`` for columns that are not there."""
    return fold(expression, _Translator(df))


class _Translator(Visitor[Condition]):
    def __init__(self, df: DataFrame) -> None:
        self.df = df

    def visit_and(self, operands: list[Condition]) -> Condition:
        result = operands[0]
        for operand in operands[1:]:
            result = result & operand
        return result

    def visit_or(self, operands: list[Condition]) -> Condition:
        result = operands[0]
        for operand in operands[1:]:
            result = result | operand
        return result

    def visit_not(self, operand: Condition) -> Condition:
        return ~operand

    def visit_comparison(self, node: Comparison) -> Condition:
        if isinstance(node.operand, VariantField):
            return self._value(node.operand).compare(node.operator, _literal(node.value))
        column = self._column(operand_column(node.operand).path)
        return plain_comparison(column, node.operator, _literal(node.value))

    def visit_is_in(self, node: IsIn) -> Condition:
        values = [_literal(value) for value in node.values]
        if isinstance(node.operand, VariantField):
            return self._value(node.operand).is_in(values)
        column = self._column(operand_column(node.operand).path)
        if not 0 < len(values) <= MAX_LISTED:
            return Condition(column.isin(values))
        return Condition(column.isin(values), reduce(or_, (plain_guard(column, "==", value) for value in values)))

    def visit_is_null(self, node: IsNull) -> Condition:
        return ~self.visit_is_not_null(node)

    def visit_is_not_null(self, node: IsNotNull | IsNull) -> Condition:
        if isinstance(node.operand, VariantField):
            return self._value(node.operand).is_not_null()
        column = self._column(operand_column(node.operand).path)
        return Condition(column.isNotNull(), column.isNotNull(), column.isNull())

    def visit_spatial(self, node: Spatial) -> Condition:
        type = self._type(node.column.path)
        geography = isinstance(type, T.GeographyType)
        crs = crs_of_srid(type.srid) if isinstance(type, T.GeographyType | T.GeometryType) else None
        column = self._column(node.column.path)
        edges: Edges = "spherical" if geography else "planar"
        return Condition(st_relates(column, node.operation, node.geometry, node.distance, edges, crs))

    def _type(self, path: tuple[str, ...]) -> T.DataType | None:
        """The Spark type of a column; None where a path leads through something else than structs."""
        type: T.DataType | None = self.df.schema
        for name in path:
            type = type[name].dataType if isinstance(type, T.StructType) and name in type.names else None
        return type

    def _value(self, operand: VariantField) -> Value:
        if len(operand.column.path) != 1:
            raise ValueError(f"{operand.column} is not a top-level column")
        return variant(self.df, operand.column.path[0]).value(operand.path, _cast_type(operand.type))

    def _column(self, path: tuple[str, ...]) -> Column:
        if path[0] not in self.df.columns:
            raise ValueError(f"no column {path[0]!r}; there are {', '.join(self.df.columns)}")
        column = self.df[quoted(path[0])]
        for name in path[1:]:
            column = column[name]
        return column


def _literal(value: Any) -> Any:
    """A literal of pqext as Spark has it: a datetime without zone is a wall-clock time, in no session's zone."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return F.lit(value.isoformat(" ")).cast("timestamp_ntz")
    if isinstance(value, pa.Scalar | UUID):
        raise TypeError(f"Spark has no literal for {value!r}")
    return value


def _cast_type(name: str) -> T.DataType:
    """The Spark type of what ``pqext.variant.get`` casts to by this name."""
    from pqext import variant

    empty = pa.array([], variant_type())
    return spark_type(variant.get(empty, "$", name).type, marked=True)
