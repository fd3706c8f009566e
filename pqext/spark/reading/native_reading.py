"""Run a query with Spark's own Parquet reader.

The required settings are set in a separate session. Its relation then becomes part of a plan in the user's session,
through a union with an empty data frame, which Spark's optimizer removes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.text import escape_text
from pqext.dataset import expressions as E
from pqext.dataset.expressions import Comparison, Expression, IsIn, IsNotNull, IsNull, Matches, VariantField, visitors
from pqext.dataset.planning.projection import ComputedColumn
from pqext.spark.base.settings import CASE_SENSITIVE
from pqext.spark.base.types import create_marked_struct
from pqext.spark.columns.char_columns import CHAR_TYPE
from pqext.spark.columns.names import quote
from pqext.spark.functions.variant_paths import get_in_timezone
from pqext.spark.pushdown.conditions import field_type, translate_condition, variant
from pqext.spark.pushdown.guards import is_widening_cast
from pqext.spark.pushdown.variant_column import Value
from pqext.spark.reading.native_files import FileSurvey, survey_files
from pqext.spark.reading.planning import ReadPlan
from pqext.spark.reading.request import PARTITION_BYTES, Query
from pqext.variant.access.path import as_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Layout = Literal["plain", "folder", "leaf", "struct", "whole"]
"""Source of a column: the stored column, folders, leaves of a VARIANT, its shredded struct, or the VARIANT."""


def condition_leaves(where: Expression | None) -> Iterable[Expression]:
    """Return the leaves of a condition; empty for None."""
    return () if where is None else visitors.leaves(where)


def _spark_operand(leaf: Expression) -> E.Column | VariantField | None:
    """Return the operand of a condition that Spark can evaluate, or None if pqext must evaluate it."""
    match leaf:
        case Comparison() | IsIn() | IsNull() | IsNotNull():
            operand = leaf.operand
            if isinstance(operand, VariantField):
                return operand if field_type(operand) is not None else None
            return operand if isinstance(operand, E.Column) else None
        case Matches() if isinstance(leaf.operand, E.Column) and isinstance(leaf.pattern, str):
            return leaf.operand if leaf.how in ("starts_with", "ends_with", "contains", "like") else None
    return None


def variant_fields(query: Query) -> dict[Any, VariantField]:
    """Return the VARIANT values of a query's columns and conditions, by their keys."""
    operands = [column.field for column in query.columns or () if isinstance(column, ComputedColumn)]
    operands += [operand for leaf in condition_leaves(query.where) if (operand := _spark_operand(leaf)) is not None]
    return {operand._key(): operand for operand in operands if isinstance(operand, VariantField)}


@dataclass(frozen=True)
class NativeRead:
    """Files that Spark's reader reads, and the layout of each column."""

    query: Query
    files: tuple[str, ...]
    stored: T.StructType
    """All columns of the files and their folders, with their types in the result."""
    target: T.StructType
    """Schema of the result."""
    survey: FileSurvey
    fields: Mapping[Any, VariantField]
    layouts: Mapping[str, Layout]

    @classmethod
    def plan(cls, query: Query, target: T.StructType, plan: ReadPlan) -> NativeRead:
        """Analyse the files of a plan, and choose the layout of each column."""
        names = query.display_names()
        paths = [names.get(task.path, task.path) for task in plan.tasks if task.kept_row_groups]
        stored = query.stored_schema()
        fields, leaves = variant_fields(query), [*condition_leaves(query.where)]
        result = {*_stored_names(query, target)}
        computed = {name for leaf in leaves if _spark_operand(leaf) is None for name in visitors.columns(leaf)}
        used = {name for leaf in leaves for name in visitors.columns(leaf)}
        folders = query.partitions.schema.names
        used |= {field.column.path[0] for field in fields.values()}
        columns = [name for name in stored.names if name in result | used]
        files = query.query(paths or query.files[:1], target.names, None).files
        survey = survey_files(files, range(len(files.sources)), columns, fields)
        layouts: dict[str, Layout] = {}
        for name in columns:
            values = [field for field in fields.values() if _is_in_column(field, name)]
            if name in folders:
                layouts[name] = "folder"
            elif name not in survey.variants:
                layouts[name] = "plain"
            elif name in result and isinstance(stored[name].dataType, T.VariantType):
                layouts[name] = "whole"
            elif name not in result | computed and _are_all_plain(values, survey):
                layouts[name] = "leaf"
            else:
                layouts[name] = "struct" if name in survey.storage else "whole"
        return cls(query, tuple(paths), stored, target, survey, fields, layouts)

    def obstacles(self) -> list[str]:
        """Return the reasons why Spark's reader cannot read the files."""
        texts = [*self.survey.obstacles]
        for name, layout in self.layouts.items():
            if layout == "folder" and name in self.survey.stored:
                texts.append(f"column {escape_text(name)} is in the files as well as in their folders")
            texts += self.survey.find_obstacles(name, self._compared_leaves(name) if layout == "leaf" else None)
        if not self.layouts:
            texts.append("no column is read")
        for column in self.target:
            texts += [
                f"column {escape_text(column.name)} has type {text}" for text in _unsupported_types(column.dataType)
            ]
        for item in self.query.columns or ():
            if isinstance(item, ComputedColumn) and isinstance(item.field, VariantField):
                type = self.target[item.name].dataType
                if field_type(item.field) != type:
                    texts.append(f"Spark does not cast {item.field} to {type.simpleString()}")
        return list(dict.fromkeys(texts))

    def objections(self) -> list[str]:
        """Return the reasons why pqext's reader is preferable to Spark's."""
        texts = [
            f"{field} is not stored in one typed leaf alone in every file"
            for field in self.fields.values()
            if _plain_type(field, self.survey) is None
        ]
        texts += [
            f"{field} is evaluated by pqext: Spark reads the complete column"
            for field in self.fields.values()
            if _plain_type(field, self.survey) is not None and self.layouts[field.column.path[0]] == "whole"
        ]
        result = set(_stored_names(self.query, self.target))
        texts += [
            f"column {escape_text(name)} is read as VARIANT, and footers do not prove that Spark supports its values"
            for name, layout in self.layouts.items()
            if layout == "whole" and name in result and name in self.survey.unproven
        ]
        texts += [
            f"{leaf} is evaluated by pqext"
            for leaf in condition_leaves(self.query.where)
            if _spark_operand(leaf) is None
        ]
        return texts

    def reasons(self) -> list[str]:
        """Describe the read: number of files, plain VARIANT values, and the reason if Spark cannot skip row groups."""
        texts = [f"Spark's reader reads {len(self.files)} of {len(self.query.files)} files"]
        texts += [
            f"{field} is a plain column: it is stored in one typed leaf alone in every file"
            for field in self.fields.values()
            if _plain_type(field, self.survey) is not None and self.layouts[field.column.path[0]] != "whole"
        ]
        reason = "by bounds of these types, Spark would lose rows"
        if not self._is_pushdown_safe:
            texts.append(f"no row groups are skipped within files: {reason}")
        elif shielded := self._inexact_columns:
            texts.append(f"no row groups are skipped within files by {', '.join(map(escape_text, shielded))}: {reason}")
        return texts

    @property
    def _is_pushdown_safe(self) -> bool:
        """Whether Spark's reader can skip row groups with its filters without losing rows."""
        inexact, shielded = self.survey.inexact, self._inexact_columns
        return self.query.trust_statistics and not any(
            leaf in inexact or any(path.startswith(f"{leaf}.") for path in inexact)
            for name in self.layouts
            if name not in shielded
            for leaf in self._compared_leaves(name)
        )

    @property
    def _inexact_columns(self) -> list[str]:
        """Columns with inexact bounds. They are wrapped in an expression so that Spark does not push down filters."""
        return [name for name, layout in self.layouts.items() if layout == "plain" and name in self.survey.inexact]

    def _compared_leaves(self, name: str) -> list[str]:
        """Return the dotted paths of the leaves of a column that conditions compare."""
        if self.layouts[name] not in ("leaf", "struct") or name in self.target.names:
            return [name]
        return [".".join((name, *_leaf_steps(field))) for field in self.fields.values() if _is_in_column(field, name)]

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the result as a data frame of ``spark``."""
        folders = [name for name, layout in self.layouts.items() if layout == "folder"]
        fields = [T.StructField(name, self._source_type(name), True, self._metadata(name)) for name in self.layouts]
        schema = T.StructType(fields)
        rows = _empty_frame(spark, schema)
        if self.files:
            reader = _get_session(spark, self._settings(spark)).read.schema(schema)
            reader = reader.option("datetimeRebaseMode", self.query.datetime_rebase_mode.upper())
            reader = reader.option("int96RebaseMode", self.query.int96_rebase_mode.upper())
            reader = reader.option("ignoreCorruptFiles", self.query.on_invalid == "skip")
            reader = reader.option("ignoreMissingFiles", self.query.ignore_missing_files)
            if folders:
                reader = reader.option("basePath", _uri(str(self.query.partitions.root)))
            relation = reader.parquet(*map(_uri, self.files))
            rows = rows.union(relation.select(*map(quote, schema.names)))
        for name in self._inexact_columns if self._is_pushdown_safe else ():
            column = rows[quote(name)]
            rows = rows.withColumn(name, F.coalesce(column, column))
        for name in folders:
            rows = rows.withColumn(name, rows[quote(name)].cast(self.stored[name].dataType))
        bound = {
            key: value for key, field in self.fields.items() if (value := self._extract_value(rows, field)) is not None
        }
        if self.query.where is not None:
            test = translate_condition(rows, self.query.where, bound)
            rows = rows.where(
                test.exact if all(map(self._needs_no_guard, condition_leaves(self.query.where))) else test.column
            )
        return rows.select(*self._result_columns(rows, bound))

    def _source_type(self, name: str) -> T.DataType:
        """Return the type of a column in the schema for Spark's reader."""
        match self.layouts[name]:
            case "folder":
                return T.StringType()
            case "whole":
                return T.VariantType()
            case "leaf":
                fields = [field for field in self.fields.values() if _is_in_column(field, name)]
                leaves = {_leaf_steps(field): self.survey.fields[field._key()] for field in fields}
                return _build_struct({steps: type for steps, type in leaves.items() if type is not None})
            case "struct" if isinstance(self.stored[name].dataType, T.VariantType):
                return create_marked_struct(self.survey.storage[name].type)
        return self.stored[name].dataType

    def _metadata(self, name: str) -> dict[str, Any] | None:
        """Return the metadata of a column for Spark's reader, which pads the values of CHAR types."""
        metadata = self.stored[name].metadata or {}
        return {CHAR_TYPE: metadata[CHAR_TYPE]} if self.layouts[name] == "plain" and CHAR_TYPE in metadata else None

    def _settings(self, spark: SparkSession) -> dict[str, str]:
        """Return the settings of the session that reads."""
        as_struct = not {"leaf", "struct"}.isdisjoint(self.layouts.values())
        size = self.query.partition_bytes
        upper = spark.conf.get(_UPPER) if size == PARTITION_BYTES else str(size)
        return {
            CASE_SENSITIVE: str(self.query.case_sensitive).lower(),
            "spark.sql.parquet.ignoreVariantAnnotation": str(as_struct).lower(),
            "spark.sql.parquet.filterPushdown": str(self._is_pushdown_safe).lower(),
            _READ_SIDE_PADDING: str(spark.conf.get(_READ_SIDE_PADDING, "true")).lower(),
            _UPPER: str(upper),
        }

    def _extract_value(self, rows: DataFrame, field: VariantField) -> Value | None:
        """Return the Spark column that computes ``field`` from ``rows``.

        Return None if Spark cannot compute the value from its shredded leaf. The value must then be extracted from the
        shredded struct.
        """
        name, type = field.column.path[0], field_type(field)
        assert type is not None
        column = rows[quote(name)]
        if self.layouts[name] == "whole":
            return Value(get_in_timezone(column, field.path, type, field.timezone), type)
        if _plain_type(field, self.survey) is None:
            return None
        leaf_type = self.survey.fields[field._key()]
        if leaf_type is None:
            return Value(F.lit(None).cast(type), type)
        for step in _leaf_steps(field):
            column = column[step]
        return Value(column if leaf_type == type else column.cast(type), type, column, leaf_type)

    def _needs_no_guard(self, leaf: Expression) -> bool:
        """Return whether Spark pushes down a condition without a guard."""
        operand = _spark_operand(leaf)
        if isinstance(operand, VariantField):
            is_leaf = self.layouts[operand.column.path[0]] != "whole" and _plain_type(operand, self.survey) is not None
            return is_leaf and self.survey.fields[operand._key()] in (None, field_type(operand))
        return operand is not None

    def _result_columns(self, rows: DataFrame, bound: Mapping[Any, Value]) -> Iterator[Column]:
        computed = {item.name: item.field for item in self.query.columns or () if isinstance(item, ComputedColumn)}
        for field in self.target:
            operand = computed.get(field.name, E.Column((field.name,)))
            if isinstance(operand, VariantField):
                value = bound.get(operand._key())
                if value is None:
                    value = variant(rows, operand.column.path[0]).value(operand.path, field.dataType, operand.timezone)
                column = value.exact
            else:
                assert isinstance(operand, E.Column)
                column = rows[quote(operand.path[0])]
                for step in operand.path[1:]:
                    column = column[step]
            yield column.alias(field.name, metadata=field.metadata) if field.metadata else column.alias(field.name)


_READ_SIDE_PADDING = "spark.sql.readSideCharPadding"
_UPPER = "spark.sql.files.maxPartitionBytes"
_sessions: WeakKeyDictionary[SparkSession, dict[tuple[str, ...], SparkSession]] = WeakKeyDictionary()


def _get_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return the session with ``settings``, which is created on first use.

    Relations that are created in this session keep its settings even if another session runs them.
    """
    sessions = _sessions.setdefault(spark, {})
    key = tuple(settings.values())
    if key not in sessions:
        session = spark.newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        sessions[key] = session
    return sessions[key]


def _empty_frame(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """Return an empty data frame, which Spark's optimizer removes from a union."""
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(1).where(F.lit(False)).select(*columns)


def _stored_names(query: Query, target: T.StructType) -> list[str]:
    """Return the top-level columns of the result, including columns that contain selected fields."""
    if query.columns is None:
        return list(target.names)
    values = [E.Column((column,)) if isinstance(column, str) else column.field for column in query.columns]
    return [value.path[0] for value in values if isinstance(value, E.Column)]


def _plain_type(field: VariantField, survey: FileSurvey) -> T.DataType | None:
    """Return the type of a VARIANT value if every file stores all its values in one typed leaf; None otherwise."""
    type = field_type(field)
    if field._key() not in survey.fields or isinstance(type, _NESTED):
        return None
    leaf = survey.fields[field._key()]
    return type if type is not None and (leaf is None or is_widening_cast(leaf, type)) else None


def _are_all_plain(fields: Sequence[VariantField], survey: FileSurvey) -> bool:
    """Return whether all values are plain columns, and at least one has a leaf."""
    return all(_plain_type(field, survey) is not None for field in fields) and any(
        survey.fields[field._key()] is not None for field in fields
    )


_NESTED = (T.StructType, T.ArrayType, T.MapType, T.VariantType)


def _is_in_column(field: VariantField, name: str) -> bool:
    return field.column.path[0] == name


def _leaf_steps(field: VariantField) -> tuple[str, ...]:
    """Return the names of the struct members on the path from a shredded VARIANT to a leaf."""
    return (*(name for step in as_path(field.path) for name in ("typed_value", str(step))), "typed_value")


def _build_struct(leaves: Mapping[tuple[str, ...], T.DataType]) -> T.StructType:
    """Return the struct type with leaves at these paths."""
    children: dict[str, dict[tuple[str, ...], T.DataType]] = {}
    for (first, *steps), type in leaves.items():
        children.setdefault(first, {})[tuple(steps)] = type
    return T.StructType([
        T.StructField(name, nested[()] if () in nested else _build_struct(nested)) for name, nested in children.items()
    ])


def _unsupported_types(type: T.DataType) -> list[str]:
    """Return the types nested in ``type`` that Spark's Parquet reader reads differently from pqext."""
    match type:
        case T.StructType():
            return [text for field in type for text in _unsupported_types(field.dataType)]
        case T.ArrayType():
            return _unsupported_types(type.elementType)
        case T.MapType():
            return _unsupported_types(type.keyType) + _unsupported_types(type.valueType)
        case T.GeometryType() | T.GeographyType() | T.NullType() | T.TimeType():
            return [type.simpleString()]
    return []


def _uri(path: str) -> str:
    """Return the URI of a local path, independent of Spark's default file system and without escapes."""
    plain = path.replace(os.sep, "/")
    return f"file://{plain}" if plain.startswith("/") else f"file:///{plain}"
