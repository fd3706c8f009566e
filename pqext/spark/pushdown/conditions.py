"""Translate expressions to conditions on the columns of a data frame, with guards that Spark can push down.

A condition has the semantics of ``pqext.dataset``. Literals are converted to the type of the column
(:func:`pqext.spark.pushdown.guards.fit_comparison`), so Spark does not add casts.
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
from pqext.dataset.expressions.mistakes import label_of
from pqext.dataset.expressions.visitors import Visitor, fold
from pqext.dataset.notations.json_text import from_json, to_json
from pqext.geo import types as geo
from pqext.spark.base.arrays import variant_from_spark
from pqext.spark.base.settings import session_timezone
from pqext.spark.base.types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    crs_of_srid,
    is_marked_struct,
    parse_type,
    spark_type,
    to_exchange_type,
)
from pqext.spark.columns.char_columns import has_exact_padding
from pqext.spark.columns.names import quote
from pqext.spark.columns.recorded_schema import has_collation, is_collated, is_interval
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.geometry_predicates import st_relates
from pqext.spark.functions.udf import arrow_udf
from pqext.spark.functions.variant_paths import get_from_group, get_in_timezone
from pqext.spark.pushdown.guards import MAX_LISTED, fit_comparison, plain_guard, representable_literals, spark_literal
from pqext.spark.pushdown.variant_column import Condition, Value, compare_plain_column, find_leaf, spark_path
from pqext.variant.access.path import Path, as_path, format_path
from pqext.variant.access.targets import target_type
from pqext.variant.types import is_variant_type, variant_field, variant_type

if TYPE_CHECKING:
    from pqext.geo.types import Edges


@dataclass(frozen=True)
class BoundVariant:
    """VARIANT or shredded struct in a data frame: column ``name``, or a field nested in it."""

    df: DataFrame
    name: str
    fields: tuple[str, ...] = ()

    def get(self, path: str | Sequence[str | int], type: str | T.DataType) -> Column:
        """Extract the value at ``path``, cast to ``type``, like :func:`pqext.spark.functions.try_variant_get`.

        If the value is shredded, comparisons with the column include a condition on its leaf and the residual, which
        Spark pushes down.
        """
        return self.value(path, type).column

    def value(self, path: str | Sequence[str | int], type: str | T.DataType, timezone: str | None = None) -> Value:
        """Extract the value at ``path`` with its shredded leaf, by default in the session's time zone."""
        steps = as_path(path)
        spark_type = parse_type(type) if isinstance(type, str) else type
        column, struct = find_field(self.df, (self.name, *self.fields))
        if isinstance(struct, T.VariantType):
            return Value(self._extract(column, steps, spark_type, timezone), spark_type)
        if not isinstance(struct, T.StructType) or not is_marked_struct(struct):
            name = ".".join((self.name, *self.fields))
            raise TypeError(f"column {name!r} is {struct.simpleString()}, not VARIANT or a shredded struct")
        leaf = find_leaf(struct, steps)
        value = leaf.member(column, "value") if leaf.has_value else None
        typed = leaf.member(column, "typed_value") if leaf.has_typed else None
        if value is None and typed is None:
            return Value(F.lit(None).cast(spark_type), spark_type)
        zone = timezone or session_timezone(self.df.sparkSession)
        exact = get_from_group(column["metadata"], value, typed, format_path(leaf.remaining_path), spark_type, zone)
        if leaf.type is None or typed is None:
            return Value(exact, spark_type)
        return Value(exact, spark_type, typed, leaf.type, value)

    def _extract(self, column: Column, steps: Path, type: T.DataType, timezone: str | None) -> Column:
        """Extract a value with Spark's own function if it supports the path and the time zone, otherwise in Python."""
        path, session = spark_path(steps), session_timezone(self.df.sparkSession)
        if path is None or timezone not in (None, session):
            return get_in_timezone(column, steps, type, timezone or session)
        return F.try_variant_get(column, path, type.simpleString())


def variant(df: DataFrame, column: str) -> BoundVariant:
    """Return a VARIANT or shredded column whose ``.get(path, type)`` allows Spark to push down comparisons.

    Args:
        df: The data frame.
        column: The name of the column.

    Returns:
        The column with method ``get``.

    Raises:
        ValueError: If the column does not exist.

    Example:
        >>> variant(df, "event").get("$.properties.mag", "double") >= 5  # doctest: +SKIP
    """
    if column not in df.columns:
        raise ValueError(f"no column {column!r}; the columns are {', '.join(df.columns)}")
    return BoundVariant(df, column)


def translate_condition(df: DataFrame, expression: Expression, bound: Mapping[Any, Value] | None = None) -> Condition:
    """Translate ``expression`` to a condition on the columns of ``df``.

    ``bound`` maps the keys of VARIANT operands to values that are extracted differently than by their paths. Raises
    ``ValueError`` for unknown columns and ``TypeError`` for literals that cannot be compared.
    """
    return fold(expression, _Translator(df, bound or {}))


class _Translator(Visitor[Condition]):
    """Translator of expression nodes to conditions on the columns of ``df``."""

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
            return self._computed_condition(node)
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._evaluate_with_pqext(replace(node, operand=_rename_column(node.operand)), node.operand)
            test = fit_comparison(value.type, node.operator, node.value, label_of(node.operand))
            return _constant_condition(value.exact, test) if isinstance(test, bool) else value.compare(*test)
        column, type = self._column(E.operand_column(node.operand).path)
        if isinstance(type, T.NullType):
            return Condition(F.lit(None).cast("boolean"))
        test = fit_comparison(type, node.operator, node.value, label_of(node.operand))
        return _constant_condition(column, test) if isinstance(test, bool) else compare_plain_column(column, *test)

    def visit_is_in(self, node: IsIn) -> Condition:
        if node.has_null:
            condition = self.visit_is_in(IsIn(node.operand, node.values))
            return Condition(condition.exact | F.lit(None).cast("boolean"), condition.guard)
        if not isinstance(node.operand, E.Column | VariantField):
            return self._computed_condition(node)
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._evaluate_with_pqext(replace(node, operand=_rename_column(node.operand)), node.operand)
            values = representable_literals(value.type, node.values, label_of(node.operand))
            return value.is_in(values) if values else _constant_condition(value.exact, False)
        column, type = self._column(E.operand_column(node.operand).path)
        if isinstance(type, T.NullType):
            return Condition(F.lit(None).cast("boolean"))
        values = representable_literals(type, node.values, label_of(node.operand))
        if not values:
            return _constant_condition(column, False)
        literals = [spark_literal(value) for value in values]
        if len(values) > MAX_LISTED:
            return Condition(column.isin(literals))
        return Condition(column.isin(literals), reduce(or_, (plain_guard(column, "==", value) for value in literals)))

    def visit_is_null(self, node: IsNull) -> Condition:
        return ~self.visit_is_not_null(node)

    def visit_relation(self, node: Relation) -> Condition:
        return self._computed_condition(node)

    def visit_matches(self, node: Matches) -> Condition:
        if isinstance(node.operand, E.Column) and isinstance(node.pattern, str):
            column, type = self._column(node.operand.path)
            if isinstance(type, T.StringType) and node.how in ("starts_with", "ends_with", "contains"):
                exact = getattr(column, node.how.replace("_w", "w"))(node.pattern)
                return Condition(exact)
            if isinstance(type, T.StringType) and node.how == "like":
                return Condition(F.like(column, F.lit(node.pattern), F.lit(node.escape)))
        return self._computed_condition(node)

    def visit_is_not_null(self, node: IsNotNull | IsNull) -> Condition:
        if not isinstance(node.operand, E.Column | VariantField):
            return self._computed_condition(IsNotNull(node.operand))
        if isinstance(node.operand, VariantField):
            value = self._value(node.operand)
            if value is None:
                return self._evaluate_with_pqext(IsNotNull(_rename_column(node.operand)), node.operand)
            return value.is_not_null()
        column, _ = self._column(E.operand_column(node.operand).path)
        return Condition(column.isNotNull(), column.isNotNull(), column.isNull())

    def visit_spatial(self, node: Spatial) -> Condition:
        if not isinstance(node.operand, E.Column):
            return self._computed_condition(node)
        column, _ = self._column(node.operand.path)
        type = spatial_type(self.schema, node.operand.path)
        if type is None:
            raise TypeError(f"column {label_of(node.operand)} does not contain geometries")
        edges: Edges = type.edges or "planar"
        return Condition(st_relates(column, node.operation, node.geometry, node.distance, edges, type.crs))

    def _value(self, operand: VariantField) -> Value | None:
        """Return the value of a VARIANT field in Spark, or None if Spark does not support its type."""
        value = self.bound.get(operand._key())
        if value is not None:
            return value
        name, *fields = operand.column.path
        find_field(self.df, operand.column.path)
        type = field_type(operand)
        bound = BoundVariant(self.df, name, tuple(fields))
        return None if type is None else bound.value(operand.path, type, operand.timezone)

    def _evaluate_with_pqext(self, node: Expression, operand: VariantField) -> Condition:
        """Return a condition on a VARIANT field that pqext evaluates on the column."""
        column, type = self._column(operand.column.path)
        if not isinstance(type, T.VariantType) and not is_marked_struct(type):
            kind = type.simpleString()
            raise TypeError(f"column {label_of(operand.column)} is {kind}, not VARIANT or a shredded struct")
        text = to_json(node)
        _evaluate(text, pa.array([], variant_type()))  # raises for a literal that cannot be compared

        def evaluate_rows(values: pa.Array) -> pa.Array:
            return _evaluate(text, variant_from_spark(values))

        return Condition(arrow_udf(evaluate_rows, T.BooleanType(), "holds")(column))

    def _computed_condition(self, node: Expression) -> Condition:
        """Return a condition on computed values that pqext evaluates on the referenced columns."""
        paths = list(dict.fromkeys(path[0] for path in visitors.paths(node)))
        columns, fields = [], []
        for name in paths:
            column, type = self._column((name,))
            if has_collation(self.schema[name]):
                raise UnsupportedError(
                    "the column has a collation, but pqext compares strings by their bytes; use a Spark condition, "
                    "such as df.where(...)", feature="collations", column=name,
                )
            is_variant = isinstance(type, T.VariantType) or is_marked_struct(type)
            columns.append(column)
            spatial = spatial_type(self.schema, (name,))
            plain = pa.field(name, to_exchange_type(type) if spatial is None else pa.binary())
            fields.append(variant_field(name) if is_variant else plain if spatial is None else geo.mark(plain, spatial))
        text = to_json(node)

        def evaluate_rows(*values: pa.Array) -> pa.Array:
            arrays = [
                variant_from_spark(value) if is_variant_type(field.type)
                else Geometries.from_arrow(value).wkb if geo.type_of(field) is not None else value
                for value, field in zip(values, fields, strict=True)
            ]
            schema = pa.schema([field.with_type(array.type) for field, array in zip(fields, arrays, strict=True)])
            return evaluate(from_json(text), pa.RecordBatch.from_arrays(arrays, schema=schema))

        evaluate_rows(*(pa.array([], field.type) for field in fields))  # raises for values that cannot be compared
        return Condition(arrow_udf(evaluate_rows, T.BooleanType(), "holds")(*columns))

    def _column(self, path: tuple[str, ...]) -> tuple[Column, T.DataType]:
        return find_field(self.df, path)


def find_field(df: DataFrame, path: tuple[str, ...]) -> tuple[Column, T.DataType]:
    """Return a column or nested field of ``df`` and its type. Raises ``ValueError`` if the path does not exist."""
    schema = df.schema
    if path[0] not in schema.names:
        raise ValueError(f"no column {path[0]!r}; the columns are {', '.join(schema.names)}")
    column, type = df[quote(path[0])], schema[path[0]].dataType
    for depth, name in enumerate(path[1:], 1):
        if not isinstance(type, T.StructType) or name not in type.names:
            raise ValueError(f"no field {name!r} in column {'.'.join(path[:depth])!r} of {type.simpleString()}")
        column, type = column[name], type[name].dataType
    return column, type


def field_type(operand: VariantField) -> T.DataType | None:
    """Return the Spark type of a VARIANT field, or None if Spark does not support the type."""
    target = target_type(operand.type)
    type = spark_type(target, is_marked=True)
    return type if pa.types.is_nested(target) or to_exchange_type(type) == _spark_arrow_type(target) else None


def _evaluate(text: str, values: pa.Array) -> pa.Array:
    batch = pa.RecordBatch.from_arrays([values], schema=pa.schema([variant_field("v").with_type(values.type)]))
    return evaluate(from_json(text), batch)


def _rename_column(operand: VariantField) -> VariantField:
    return replace(operand, column=E.Column(("v",)))


def _spark_arrow_type(type: pa.DataType) -> pa.DataType:
    """Return the Arrow type that Spark uses for values of ``type``, or ``type`` if no type represents all values."""
    if pa.types.is_dictionary(type):
        return _spark_arrow_type(type.value_type)
    if pa.types.is_decimal(type) and type.precision <= 38:
        return pa.decimal128(type.precision, type.scale)
    if type in (pa.large_string(), pa.string_view()):
        return pa.string()
    if type in (pa.large_binary(), pa.binary_view()):
        return pa.binary()
    if pa.types.is_timestamp(type) and type.tz is not None:
        return pa.timestamp(type.unit, "UTC")
    return pa.date32() if type == pa.date64() else type


def _constant_condition(column: Column, result: bool) -> Condition:
    """Return a condition that is ``result`` for every value of a column, and null for null."""
    return Condition(F.when(column.isNotNull(), F.lit(result)))


def spatial_type(schema: T.StructType, path: tuple[str, ...]) -> geo.GeospatialType | None:
    """Return the geospatial type of a GEOMETRY, GEOGRAPHY or WKB column; None for other columns."""
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
            keys = [key for key in (EXTENSION_NAME, EXTENSION_METADATA) if key in field.metadata]
            marks = {key: str(field.metadata[key]) for key in keys}
            marked = geo.type_of(pa.field("", pa.binary(), metadata=marks or None))
            return geo.GeospatialType(None, "planar") if marked is None else marked
    return None


def is_equivalent_in_read(expression: Expression, schema: T.StructType) -> bool:
    """Return whether pqext, in a read of files with ``schema``, evaluates ``expression`` as Spark does."""
    is_char_exact = all(has_exact_padding(leaf, schema) for leaf in visitors.leaves(expression))
    return is_char_exact and fold(expression, _EquivalenceInRead(schema))


class _EquivalenceInRead(Visitor[bool]):
    """Visitor that checks whether pqext, in a read of files, evaluates an expression as Spark does."""

    def __init__(self, schema: T.StructType) -> None:
        self.schema = schema

    def visit_and(self, operands: list[bool]) -> bool:
        return all(operands)

    visit_or = visit_and

    def visit_not(self, operand: bool) -> bool:
        return operand

    def visit_comparison(self, node: Comparison) -> bool:
        return self._is_equivalent(node.operand, (node.value,))

    def visit_is_in(self, node: IsIn) -> bool:
        return self._is_equivalent(node.operand, node.values)

    def visit_relation(self, node: Relation) -> bool:
        return self._is_equivalent(node.left, ()) and self._is_equivalent(node.right, ())

    def visit_matches(self, node: Matches) -> bool:
        return self._is_equivalent(node.operand, ())

    def visit_is_null(self, node: IsNull | IsNotNull) -> bool:
        return self._is_equivalent(node.operand, ())

    visit_is_not_null = visit_is_null

    def visit_spatial(self, node: Spatial) -> bool:
        # WKB without metadata may be a geometry column of the file whose CRS Spark does not support.
        return all(self._type(E.operand_column(base).path) is not None for base in E.bases(node.operand))

    def _is_equivalent(self, operand: E.Operand, values: Sequence[Any]) -> bool:
        if not isinstance(operand, E.Column | VariantField):
            return all(self._is_equivalent(base, values) for base in E.bases(operand))
        if isinstance(operand, VariantField):
            return True
        type = self._type(E.operand_column(operand).path)
        if type is None or is_collated(type) or is_interval(type):
            return False
        # Unsigned 64-bit integers are decimals in Spark, which compare with floats differently.
        return type != T.DecimalType(20, 0) or not any(isinstance(value, float) for value in values)

    def _type(self, path: tuple[str, ...]) -> T.DataType | None:
        """Return the type of a column in the files; None for fields of a shredded struct, which files do not have."""
        type: T.DataType = self.schema
        for name in path:
            if not isinstance(type, T.StructType) or is_marked_struct(type) or name not in type.names:
                return None
            type = type[name].dataType
        return type
