"""Expressions as conditions on the columns of any data frame, with guards that Spark can push down.

A condition means what the expression means to ``pqext.dataset``: its literals are asked in the column's own type, by
:func:`pqext.spark.pushdown.literals.asked`, so that no cast of Spark's comes between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.errors import UnsupportedError
from pqext.dataset import expressions as E
from pqext.dataset.evaluation.evaluate import evaluate
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
    visitors,
)
from pqext.dataset.expressions.visitors import Visitor, fold
from pqext.dataset.notations.json_text import from_json, to_json
from pqext.geo import types as geo
from pqext.spark.base.timezones import session_timezone
from pqext.spark.base.types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    crs_of_srid,
    exchange_type,
    is_marked_struct,
    parse_type,
    spark_type,
)
from pqext.spark.columns.names import quoted
from pqext.spark.columns.schema_note import holds_collated, is_collated, is_interval
from pqext.spark.functions.geometry_predicates import st_relates
from pqext.spark.functions.udf import arrow_udf
from pqext.spark.functions.variant_arrays import normal_variant
from pqext.spark.functions.variant_paths import get_in_timezone, group_get
from pqext.spark.pushdown.guards import MAX_LISTED, plain_guard
from pqext.spark.pushdown.leaves import find_leaf
from pqext.spark.pushdown.literals import asked, asked_exactly, spark_value
from pqext.spark.pushdown.variant_column import Condition, Value, plain_comparison
from pqext.spark.pushdown.variant_paths import spark_path
from pqext.variant.access.path import Path, as_path, format_path
from pqext.variant.access.targets import target_type
from pqext.variant.types import is_variant_type, variant_field, variant_type

if TYPE_CHECKING:
    from pqext.geo.types import Edges


@dataclass(frozen=True)
class BoundVariant:
    """Column ``name`` of ``df``, or a field within it, a VARIANT or a shredded struct, whose schema is known."""

    df: DataFrame
    name: str
    fields: tuple[str, ...] = ()

    def get(self, path: str | Sequence[str | int], type: str | T.DataType) -> Column:
        """The value at ``path`` cast to ``type``, as :func:`pqext.spark.functions.try_variant_get` gives it.

        Where statistics can help, comparisons of the column carry a condition that Spark pushes down, on the
        shredded leaf and its residual.
        """
        return self.value(path, type).column

    def value(self, path: str | Sequence[str | int], type: str | T.DataType, timezone: str | None = None) -> Value:
        """The value with the conditions that can be pushed down; local times are the session's by default."""
        steps = as_path(path)
        spark_type = parse_type(type) if isinstance(type, str) else type
        column, struct = field_of(self.df, (self.name, *self.fields))
        if isinstance(struct, T.VariantType):
            return Value(self._native_get(column, steps, spark_type, timezone), spark_type)
        if not isinstance(struct, T.StructType) or not is_marked_struct(struct):
            name = ".".join((self.name, *self.fields))
            raise TypeError(f"column {name!r} is {struct.simpleString()}, neither VARIANT nor a shredded one")
        leaf = find_leaf(struct, steps)
        value = leaf.part(column, "value") if leaf.has_value else None
        typed = leaf.part(column, "typed_value") if leaf.has_typed else None
        if value is None and typed is None:
            return Value(F.lit(None).cast(spark_type), spark_type)
        zone = timezone or session_timezone(self.df.sparkSession)
        exact = group_get(column["metadata"], value, typed, format_path(leaf.rest), spark_type, zone)
        if leaf.type is None or typed is None:
            return Value(exact, spark_type)
        return Value(exact, spark_type, typed, leaf.type, value)

    def _native_get(self, column: Column, steps: Path, type: T.DataType, timezone: str | None) -> Column:
        """Spark's own function, which needs no Python, where it can spell the path and has the time zone."""
        path, session = spark_path(steps), session_timezone(self.df.sparkSession)
        if path is None or timezone not in (None, session):
            return get_in_timezone(column, steps, type, timezone or session)
        return F.try_variant_get(column, path, type.simpleString())


def variant(df: DataFrame, column: str) -> BoundVariant:
    """VARIANT (or shredded) ``column`` of ``df``, for ``.get(path, type)`` in the forms that Spark pushes down.

    >>> variant(df, "event").get("$.properties.mag", "double") >= 5  # doctest: +SKIP
    """
    if column not in df.columns:
        raise ValueError(f"no column {column!r}; there are {', '.join(df.columns)}")
    return BoundVariant(df, column)


def condition(df: DataFrame, expression: Expression, bound: Mapping[Any, Value] | None = None) -> Condition:
    """``expression`` on the columns of ``df``.

    ``bound`` has values within VARIANT columns that are known to be taken otherwise than by their path, by the keys of
    their operands.

    Raises ``ValueError`` for columns that are not there and ``TypeError`` for literals that do not compare.
    """
    return fold(expression, _Translator(df, bound or {}))


class _Translator(Visitor[Condition]):
    def __init__(self, df: DataFrame, bound: Mapping[Any, Value]) -> None:
        self.df = df
        self.schema = df.schema
        self.bound = bound

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
        if not isinstance(node.operand, E.Column | VariantField):
            return self._computed(node)
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._by_pqext(replace(node, operand=_renamed(node.operand)), node.operand)
            question = asked(value.type, node.operator, node.value, str(node.operand))
            return _constant(value.exact, question) if isinstance(question, bool) else value.compare(*question)
        column, type = self._column(E.operand_column(node.operand).path)
        if isinstance(type, T.NullType):
            return Condition(F.lit(None).cast("boolean"))
        question = asked(type, node.operator, node.value, str(node.operand))
        return _constant(column, question) if isinstance(question, bool) else plain_comparison(column, *question)

    def visit_is_in(self, node: IsIn) -> Condition:
        if node.has_null:
            found = self.visit_is_in(IsIn(node.operand, node.values))
            return Condition(found.exact | F.lit(None).cast("boolean"), found.guard)
        if not isinstance(node.operand, E.Column | VariantField):
            return self._computed(node)
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._by_pqext(replace(node, operand=_renamed(node.operand)), node.operand)
            values = asked_exactly(value.type, node.values, str(node.operand))
            return value.is_in(values) if values else _constant(value.exact, False)
        column, type = self._column(E.operand_column(node.operand).path)
        if isinstance(type, T.NullType):
            return Condition(F.lit(None).cast("boolean"))
        values = asked_exactly(type, node.values, str(node.operand))
        if not values:
            return _constant(column, False)
        literals = [spark_value(value) for value in values]
        if len(values) > MAX_LISTED:
            return Condition(column.isin(literals))
        return Condition(column.isin(literals), reduce(or_, (plain_guard(column, "==", value) for value in literals)))

    def visit_is_null(self, node: IsNull) -> Condition:
        return ~self.visit_is_not_null(node)

    def visit_relation(self, node: Relation) -> Condition:
        return self._computed(node)

    def visit_matches(self, node: Matches) -> Condition:
        if isinstance(node.operand, E.Column) and isinstance(node.pattern, str):
            column, type = self._column(node.operand.path)
            if isinstance(type, T.StringType) and node.how in ("starts_with", "ends_with", "contains"):
                exact = getattr(column, node.how.replace("_w", "w"))(node.pattern)
                return Condition(exact)
            if isinstance(type, T.StringType) and node.how == "like":
                return Condition(F.like(column, F.lit(node.pattern), F.lit(node.escape)))
        return self._computed(node)

    def visit_is_not_null(self, node: IsNotNull | IsNull) -> Condition:
        if not isinstance(node.operand, E.Column | VariantField):
            return self._computed(IsNotNull(node.operand))
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._by_pqext(IsNotNull(_renamed(node.operand)), node.operand)
            return value.is_not_null()
        column, _ = self._column(E.operand_column(node.operand).path)
        return Condition(column.isNotNull(), column.isNotNull(), column.isNull())

    def visit_spatial(self, node: Spatial) -> Condition:
        column, _ = self._column(node.column.path)
        type = spatial_type(self.schema, node.column.path)
        if type is None:
            raise TypeError(f"column {node.column} holds no geometries")
        edges: Edges = type.edges or "planar"
        return Condition(st_relates(column, node.operation, node.geometry, node.distance, edges, type.crs))

    def _value(self, operand: VariantField) -> Value | None:
        """The value of a variant field in Spark; None when Spark has no such type as it is cast to."""
        known = self.bound.get(operand._key())
        if known is not None:
            return known
        name, *fields = operand.column.path
        field_of(self.df, operand.column.path)
        type = type_of_field(operand)
        bound = BoundVariant(self.df, name, tuple(fields))
        return None if type is None else bound.value(operand.path, type, operand.timezone)

    def _by_pqext(self, node: Expression, operand: VariantField) -> Condition:
        """A leaf about a variant field, evaluated by pqext on the whole column."""
        column, type = self._column(operand.column.path)
        if not isinstance(type, T.VariantType) and not is_marked_struct(type):
            raise TypeError(f"column {operand.column} is {type.simpleString()}, neither VARIANT nor a shredded one")
        text = to_json(node)
        _evaluated(text, pa.array([], variant_type()))  # a literal that does not compare is told here

        def holds(values: pa.Array) -> pa.Array:
            return _evaluated(text, normal_variant(values))

        return Condition(arrow_udf(holds, T.BooleanType(), "holds")(column))

    def _computed(self, node: Expression) -> Condition:
        """A leaf about computed values, evaluated by pqext on the columns that it reads."""
        paths = list(dict.fromkeys(path[0] for path in visitors.paths(node)))
        columns, fields = [], []
        for name in paths:
            column, type = self._column((name,))
            if holds_collated(self.schema[name]):
                raise UnsupportedError(
                    "pqext evaluates the condition by the bytes of strings, and the column has a collation: use a "
                    "condition of Spark's, such as df.where(...)", feature="collations", column=name,
                )
            is_variant = isinstance(type, T.VariantType) or is_marked_struct(type)
            columns.append(column)
            fields.append(variant_field(name) if is_variant else pa.field(name, exchange_type(type)))
        text = to_json(node)

        def holds(*values: pa.Array) -> pa.Array:
            arrays = [
                normal_variant(value) if is_variant_type(field.type) else value
                for value, field in zip(values, fields, strict=True)
            ]
            named = [field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)]
            return evaluate(from_json(text), pa.RecordBatch.from_arrays(arrays, schema=pa.schema(named)))

        holds(*(pa.array([], field.type) for field in fields))  # what does not compare is told here
        return Condition(arrow_udf(holds, T.BooleanType(), "holds")(*columns))

    def _column(self, path: tuple[str, ...]) -> tuple[Column, T.DataType]:
        return field_of(self.df, path)


def field_of(df: DataFrame, path: tuple[str, ...]) -> tuple[Column, T.DataType]:
    """A column of ``df`` or a field within it, and its type. Raises ``ValueError`` for one that is not there."""
    schema = df.schema
    if path[0] not in schema.names:
        raise ValueError(f"no column {path[0]!r}; there are {', '.join(schema.names)}")
    column, type = df[quoted(path[0])], schema[path[0]].dataType
    for depth, name in enumerate(path[1:], 1):
        if not isinstance(type, T.StructType) or name not in type.names:
            raise ValueError(f"no field {name!r} in column {'.'.join(path[:depth])} of {type.simpleString()}")
        column, type = column[name], type[name].dataType
    return column, type


def type_of_field(operand: VariantField) -> T.DataType | None:
    """The Spark type of a variant field's values; None when Spark has no such type as they are cast to."""
    target = target_type(operand.type)
    type = spark_type(target, marked=True)
    return type if pa.types.is_nested(target) or exchange_type(type) == _plain(target) else None


def _evaluated(text: str, values: pa.Array) -> pa.Array:
    batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([variant_field("v").with_type(values.type)]))
    return evaluate(from_json(text), batch)


def _renamed(operand: VariantField) -> VariantField:
    return replace(operand, column=E.Column(("v",)))


def _plain(type: pa.DataType) -> pa.DataType:
    """``type`` in the width that Spark passes, where that changes no value."""
    if pa.types.is_dictionary(type):
        return _plain(type.value_type)
    if pa.types.is_decimal(type) and type.precision <= 38:
        return pa.decimal128(type.precision, type.scale)
    if type in (pa.large_string(), pa.string_view()):
        return pa.string()
    if type in (pa.large_binary(), pa.binary_view()):
        return pa.binary()
    if pa.types.is_timestamp(type) and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")
    return pa.date32() if type == pa.date64() else type


def _constant(column: Column, answer: bool) -> Condition:
    """``answer`` for every value of a column, null on null."""
    return Condition(F.when(column.isNotNull(), F.lit(answer)))


def spatial_type(schema: T.StructType, path: tuple[str, ...]) -> geo.GeospatialType | None:
    """What geometries a column holds: GEOMETRY, GEOGRAPHY, or WKB by its marks or without; None for anything else."""
    field = T.StructField("", schema)
    for name in path:
        if not isinstance(field.dataType, T.StructType) or name not in field.dataType.names:
            return None
        field = field.dataType[name]
    match field.dataType:
        case T.GeometryType():
            return geo.GeospatialType(crs_of_srid(field.dataType.srid), "planar")
        case T.GeographyType():
            return geo.GeospatialType(crs_of_srid(field.dataType.srid), "spherical")
        case T.BinaryType():
            kept = [key for key in (EXTENSION_NAME, EXTENSION_METADATA) if key in field.metadata]
            marks = {key: str(field.metadata[key]) for key in kept}
            marked = geo.type_of(pa.field("", pa.binary(), metadata=marks or None))
            return geo.GeospatialType(None, "planar") if marked is None else marked
    return None


def reads_alike(expression: Expression, schema: T.StructType) -> bool:
    """Has ``expression`` in a read the meaning that it has on the read's Spark ``schema``?"""
    return fold(expression, _ReadsAlike(schema))


class _ReadsAlike(Visitor[bool]):
    def __init__(self, schema: T.StructType) -> None:
        self.schema = schema

    def visit_and(self, operands: list[bool]) -> bool:
        return all(operands)

    visit_or = visit_and

    def visit_not(self, operand: bool) -> bool:
        return operand

    def visit_comparison(self, node: Comparison) -> bool:
        return self._compares(node.operand, (node.value,))

    def visit_is_in(self, node: IsIn) -> bool:
        return self._compares(node.operand, node.values)

    def visit_relation(self, node: Relation) -> bool:
        return self._compares(node.left, ()) and self._compares(node.right, ())

    def visit_matches(self, node: Matches) -> bool:
        return self._compares(node.operand, ())

    def visit_is_null(self, node: IsNull | IsNotNull) -> bool:
        return self._compares(node.operand, ())

    visit_is_not_null = visit_is_null

    def visit_spatial(self, node: Spatial) -> bool:
        # WKB without marks may be a geometry in the file whose system Spark does not know.
        return self._type(node.column.path) is not None

    def _compares(self, operand: E.Operand, values: Sequence[Any]) -> bool:
        if not isinstance(operand, E.Column | VariantField):
            return all(self._compares(base, values) for base in E.bases(operand))
        if isinstance(operand, VariantField):
            return True
        type = self._type(E.operand_column(operand).path)
        if type is None or is_collated(type) or is_interval(type):
            return False
        # Unsigned integers of 64 bits are decimals to Spark, and a float means another number to a decimal.
        return type != T.DecimalType(20, 0) or not any(isinstance(v, float) for v in values)

    def _type(self, path: tuple[str, ...]) -> T.DataType | None:
        """The type of a column that the file has too; None within a shredded struct, which is one VARIANT there."""
        type: T.DataType = self.schema
        for name in path:
            if not isinstance(type, T.StructType) or is_marked_struct(type) or name not in type.names:
                return None
            type = type[name].dataType
        return type
