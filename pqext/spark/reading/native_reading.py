"""What Spark's own Parquet reader is given for a query, and what is made of its rows.

Settings that this takes are made in a session of their own. Its relation is then put into a plan of the user's session,
beside no rows of the same schema, which Spark's optimizer leaves out.
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
from pqext.dataset.planning.projection import Computed
from pqext.spark.base.types import marked_struct
from pqext.spark.columns.names import quoted
from pqext.spark.functions.variant_paths import get_in_timezone
from pqext.spark.pushdown.conditions import condition, type_of_field, variant
from pqext.spark.pushdown.guards import is_widened
from pqext.spark.pushdown.variant_column import Value
from pqext.spark.reading.native_files import FilesFound, look
from pqext.spark.reading.planning import ReadPlan
from pqext.spark.reading.request import PARTITION_BYTES, Query
from pqext.variant.access.path import as_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Form = Literal["plain", "folder", "leaf", "struct", "whole"]
"""How a column comes: as it is, from folders, as leaves of a VARIANT, as its shredded struct, or as VARIANT."""


def leaves_of(where: Expression | None) -> Iterable[Expression]:
    return () if where is None else visitors.leaves(where)


def _by_spark(leaf: Expression) -> E.Column | VariantField | None:
    """What a condition asks about where Spark can answer it, None where pqext has to evaluate it."""
    match leaf:
        case Comparison() | IsIn() | IsNull() | IsNotNull():
            operand = leaf.operand
            if isinstance(operand, VariantField):
                return operand if type_of_field(operand) is not None else None
            return operand if isinstance(operand, E.Column) else None
        case Matches() if isinstance(leaf.operand, E.Column) and isinstance(leaf.pattern, str):
            return leaf.operand if leaf.how in ("starts_with", "ends_with", "contains", "like") else None
    return None


def fields_of(query: Query) -> dict[Any, VariantField]:
    """The values within VARIANTs that are asked for by themselves, by their keys."""
    asked = [one.field for one in query.columns or () if isinstance(one, Computed)]
    asked += [operand for leaf in leaves_of(query.where) if (operand := _by_spark(leaf)) is not None]
    return {one._key(): one for one in asked if isinstance(one, VariantField)}


@dataclass(frozen=True)
class NativeRead:
    """Files that Spark's reader reads, and the form in which it gives each column."""

    query: Query
    files: tuple[str, ...]
    stored: T.StructType
    """All columns of the files and their folders, by the types that the result has for them."""
    target: T.StructType
    """The schema of the result."""
    found: FilesFound
    fields: Mapping[Any, VariantField]
    forms: Mapping[str, Form]

    @classmethod
    def of(cls, query: Query, target: T.StructType, plan: ReadPlan) -> NativeRead:
        """What a query with the result ``target`` takes of the files that its plan leaves."""
        named = query.named()
        kept = [named.get(task.path, task.path) for task in plan.tasks if task.kept]
        stored = query.stored_schema()
        fields, leaves = fields_of(query), [*leaves_of(query.where)]
        whole = {*_stored_names(query, target)}
        computed = {name for leaf in leaves if _by_spark(leaf) is None for name in visitors.columns(leaf)}
        asked = {name for leaf in leaves for name in visitors.columns(leaf)}
        folders = query.partitions.schema.names
        asked |= {one.column.path[0] for one in fields.values()}
        tops = [name for name in stored.names if name in whole | asked]
        files = query.query(kept or query.files[:1], target.names, None).files
        found = look(files, range(len(files.sources)), tops, fields)
        forms: dict[str, Form] = {}
        for name in tops:
            inside = [one for one in fields.values() if _is_in(one, name)]
            if name in folders:
                forms[name] = "folder"
            elif name not in found.variants:
                forms[name] = "plain"
            elif name in whole and isinstance(stored[name].dataType, T.VariantType):
                forms[name] = "whole"
            elif name not in whole | computed and _all_leaves(inside, found):
                forms[name] = "leaf"
            else:
                forms[name] = "struct" if name in found.alike else "whole"
        return cls(query, tuple(kept), stored, target, found, fields, forms)

    def obstacles(self) -> list[str]:
        """What of the files Spark's reader cannot read."""
        texts = [*self.found.obstacles]
        for name, form in self.forms.items():
            if form == "folder" and name in self.found.stored:
                texts.append(f"column {escape_text(name)} is in the files as well as in their folders")
            texts += self.found.unsupported_reasons(name, self._compared(name) if form == "leaf" else None)
        if not self.forms:
            texts.append("no column is read")
        for column in self.target:
            texts += [f"column {escape_text(column.name)} has type {text}" for text in _foreign(column.dataType)]
        for one in self.query.columns or ():
            if isinstance(one, Computed) and isinstance(one.field, VariantField):
                wanted = self.target[one.name].dataType
                if type_of_field(one.field) != wanted:
                    texts.append(f"Spark does not cast {one.field} to {wanted.simpleString()}")
        return list(dict.fromkeys(texts))

    def objections(self) -> list[str]:
        """Why pqext's reader is the better one, although Spark's could do it."""
        texts = [
            f"{one} does not lie in one typed leaf alone, in every file"
            for one in self.fields.values()
            if _plain_type(one, self.found) is None
        ]
        texts += [
            f"{one} is evaluated by pqext: Spark reads its column whole"
            for one in self.fields.values()
            if _plain_type(one, self.found) is not None and self.forms[one.column.path[0]] == "whole"
        ]
        whole = set(_stored_names(self.query, self.target))
        texts += [
            f"column {escape_text(name)} is wanted whole, and footers do not tell whether Spark knows all its values"
            for name, form in self.forms.items()
            if form == "whole" and name in whole and name in self.found.unproven
        ]
        texts += [f"{leaf} is evaluated by pqext" for leaf in leaves_of(self.query.where) if _by_spark(leaf) is None]
        return texts

    def reasons(self) -> list[str]:
        """What Spark reads as plain columns, and whether its filters skip anything."""
        texts = [f"Spark's reader reads {len(self.files)} of {len(self.query.files)} files"]
        texts += [
            f"{one} is a plain column: it lies in one typed leaf alone, in every file"
            for one in self.fields.values()
            if _plain_type(one, self.found) is not None and self.forms[one.column.path[0]] != "whole"
        ]
        lost = "by bounds of these types, Spark would lose rows"
        if not self._is_pushed:
            texts.append(f"no row groups are skipped within files: {lost}")
        elif shielded := self._shielded:
            texts.append(f"no row groups are skipped within files by {', '.join(map(escape_text, shielded))}: {lost}")
        return texts

    @property
    def _is_pushed(self) -> bool:
        """Can Spark's reader skip row groups by its filters, and lose no row?"""
        inexact, shielded = self.found.inexact, self._shielded
        return self.query.trust_statistics and not any(
            leaf in inexact or any(one.startswith(f"{leaf}.") for one in inexact)
            for name in self.forms
            if name not in shielded
            for leaf in self._compared(name)
        )

    @property
    def _shielded(self) -> list[str]:
        """Columns with inexact bounds: Spark reads them through an expression, so that it pushes no filter on them."""
        return [name for name, form in self.forms.items() if form == "plain" and name in self.found.inexact]

    def _compared(self, name: str) -> list[str]:
        """The dotted paths of what is compared of a column."""
        if self.forms[name] not in ("leaf", "struct") or name in self.target.names:
            return [name]
        return [".".join((name, *_steps(one))) for one in self.fields.values() if _is_in(one, name)]

    def read(self, spark: SparkSession) -> DataFrame:
        """The rows of the result, as a data frame of ``spark``."""
        folders = [name for name, form in self.forms.items() if form == "folder"]
        schema = T.StructType([T.StructField(name, self._source_type(name)) for name in self.forms])
        rows = _no_rows(spark, schema)
        if self.files:
            reader = _session(spark, self._settings(spark)).read.schema(schema).options(**_OPTIONS)
            reader = reader.option("ignoreCorruptFiles", self.query.on_invalid == "skip")
            reader = reader.option("ignoreMissingFiles", self.query.ignore_missing_files)
            if folders:
                reader = reader.option("basePath", _uri(str(self.query.partitions.root)))
            found = reader.parquet(*map(_uri, self.files))
            rows = rows.union(found.select(*map(quoted, schema.names)))
        for name in self._shielded if self._is_pushed else ():
            column = rows[quoted(name)]
            rows = rows.withColumn(name, F.coalesce(column, column))
        for name in folders:
            rows = rows.withColumn(name, rows[quoted(name)].cast(self.stored[name].dataType))
        bound = {key: value for key, one in self.fields.items() if (value := self._value(rows, one)) is not None}
        if self.query.where is not None:
            made = condition(rows, self.query.where, bound)
            rows = rows.where(made.exact if all(map(self._is_plain, leaves_of(self.query.where))) else made.column)
        return rows.select(*self._result(rows, bound))

    def _source_type(self, name: str) -> T.DataType:
        """The type of a column that Spark's reader is asked for."""
        match self.forms[name]:
            case "folder":
                return T.StringType()
            case "whole":
                return T.VariantType()
            case "leaf":
                inside = [one for one in self.fields.values() if _is_in(one, name)]
                leaves = {_steps(one): self.found.fields[one._key()] for one in inside}
                return _struct_of({steps: type for steps, type in leaves.items() if type is not None})
            case "struct" if isinstance(self.stored[name].dataType, T.VariantType):
                return marked_struct(self.found.alike[name].type)
        return self.stored[name].dataType

    def _settings(self, spark: SparkSession) -> dict[str, str]:
        """Settings of the session that reads."""
        as_struct = not {"leaf", "struct"}.isdisjoint(self.forms.values())
        given = self.query.partition_bytes
        upper = spark.conf.get(_UPPER) if given == PARTITION_BYTES else str(given)
        return {
            "spark.sql.parquet.ignoreVariantAnnotation": str(as_struct).lower(),
            "spark.sql.parquet.filterPushdown": str(self._is_pushed).lower(),
            _UPPER: str(upper),
        }

    def _value(self, rows: DataFrame, one: VariantField) -> Value | None:
        """A value within a VARIANT of ``rows``; None where the shredded struct gives it."""
        name, type = one.column.path[0], type_of_field(one)
        assert type is not None
        column = rows[quoted(name)]
        if self.forms[name] == "whole":
            return Value(get_in_timezone(column, one.path, type, one.timezone), type)
        if _plain_type(one, self.found) is None:
            return None
        leaf_type = self.found.fields[one._key()]
        if leaf_type is None:
            return Value(F.lit(None).cast(type), type)
        for step in _steps(one):
            column = column[step]
        return Value(column if leaf_type == type else column.cast(type), type, column, leaf_type)

    def _is_plain(self, leaf: Expression) -> bool:
        """Does Spark push a condition as it is, without a guard beside it?"""
        asked = _by_spark(leaf)
        if isinstance(asked, VariantField):
            is_leaf = self.forms[asked.column.path[0]] != "whole" and _plain_type(asked, self.found) is not None
            return is_leaf and self.found.fields[asked._key()] in (None, type_of_field(asked))
        return asked is not None

    def _result(self, rows: DataFrame, bound: Mapping[Any, Value]) -> Iterator[Column]:
        computed = {one.name: one.field for one in self.query.columns or () if isinstance(one, Computed)}
        for field in self.target:
            asked = computed.get(field.name, E.Column((field.name,)))
            if isinstance(asked, VariantField):
                known = bound.get(asked._key())
                if known is None:
                    known = variant(rows, asked.column.path[0]).value(asked.path, field.dataType, asked.timezone)
                column = known.exact
            else:
                assert isinstance(asked, E.Column)
                column = rows[quoted(asked.path[0])]
                for step in asked.path[1:]:
                    column = column[step]
            yield column.alias(field.name, metadata=field.metadata) if field.metadata else column.alias(field.name)


_UPPER = "spark.sql.files.maxPartitionBytes"
_OPTIONS = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED"}
_sessions: WeakKeyDictionary[SparkSession, dict[tuple[str, ...], SparkSession]] = WeakKeyDictionary()


def _session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """A session beside ``spark`` with ``settings``, which a relation of its keeps when another session runs it."""
    known = _sessions.setdefault(spark, {})
    key = tuple(settings.values())
    if key not in known:
        made = spark.newSession()
        for name, value in settings.items():
            made.conf.set(name, value)
        known[key] = made
    return known[key]


def _no_rows(spark: SparkSession, schema: T.StructType) -> DataFrame:
    """A data frame of no rows, which Spark's optimizer leaves out of a union."""
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in schema]
    return spark.range(1).where(F.lit(False)).select(*columns)


def _stored_names(query: Query, target: T.StructType) -> list[str]:
    """The top-level columns that are wanted as they are, or parts of them."""
    if query.columns is None:
        return list(target.names)
    values = [E.Column((one,)) if isinstance(one, str) else one.field for one in query.columns]
    return [value.path[0] for value in values if isinstance(value, E.Column)]


def _plain_type(one: VariantField, found: FilesFound) -> T.DataType | None:
    """The type of a value within a VARIANT that is a plain column, None when it is none."""
    type = type_of_field(one)
    if one._key() not in found.fields or isinstance(type, _MANIFOLD):
        return None
    leaf = found.fields[one._key()]
    return type if type is not None and (leaf is None or is_widened(leaf, type)) else None


def _all_leaves(inside: Sequence[VariantField], found: FilesFound) -> bool:
    """Are values plain columns all of them, and is there a leaf to read?"""
    return all(_plain_type(one, found) is not None for one in inside) and any(
        found.fields[one._key()] is not None for one in inside
    )


_MANIFOLD = (T.StructType, T.ArrayType, T.MapType, T.VariantType)


def _is_in(one: VariantField, name: str) -> bool:
    return one.column.path[0] == name


def _steps(one: VariantField) -> tuple[str, ...]:
    """The members of structs from a shredded VARIANT down to a leaf."""
    return (*(name for step in as_path(one.path) for name in ("typed_value", str(step))), "typed_value")


def _struct_of(leaves: Mapping[tuple[str, ...], T.DataType]) -> T.StructType:
    """The struct that holds leaves at paths."""
    below: dict[str, dict[tuple[str, ...], T.DataType]] = {}
    for (first, *rest), type in leaves.items():
        below.setdefault(first, {})[tuple(rest)] = type
    return T.StructType([
        T.StructField(name, inside[()] if () in inside else _struct_of(inside)) for name, inside in below.items()
    ])


def _foreign(type: T.DataType) -> list[str]:
    """The types within ``type`` that Spark's Parquet reader does not read, or not as pqext does."""
    match type:
        case T.StructType():
            return [text for field in type for text in _foreign(field.dataType)]
        case T.ArrayType():
            return _foreign(type.elementType)
        case T.MapType():
            return _foreign(type.keyType) + _foreign(type.valueType)
        case T.GeometryType() | T.GeographyType() | T.NullType() | T.TimeType():
            return [type.simpleString()]
    return []


def _uri(path: str) -> str:
    """A local path as Spark takes it, whatever its default file system is; it resolves no escapes."""
    plain = path.replace(os.sep, "/")
    return f"file://{plain}" if plain.startswith("/") else f"file:///{plain}"
