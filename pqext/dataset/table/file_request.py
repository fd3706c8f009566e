"""Requests for the files of a scan. All files return columns with the same schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.base.text import escape_text
from pqext.core.format.metadata import Type
from pqext.core.read.reader import ParquetFile
from pqext.dataset.evaluation.comparison import check_comparable
from pqext.dataset.evaluation.operand_values import check_pattern_type
from pqext.dataset.expressions import (
    Arithmetic,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Matches,
    Not,
    Relation,
    bases,
    operand_column,
)
from pqext.dataset.expressions.conditions import Operand
from pqext.dataset.expressions.literals import ValueType, value_type_of_arrow
from pqext.dataset.expressions.mistakes import comparison_values
from pqext.dataset.expressions.operands import Base, SpatialValue
from pqext.dataset.expressions.visitors import leaf_operands, leaves, operands, paths
from pqext.dataset.planning.projection import ComputedColumn, duplicate_column_message
from pqext.dataset.pruning.binding import bind, find, lookup
from pqext.dataset.table.partitions import Partitions


@dataclass(frozen=True)
class TableRequest:
    """The columns, filter and files of a scan.

    ``result`` lists stored and computed columns; None requests all stored columns. ``partitions`` are additional
    columns, whose values are in folder names.
    """

    sources: tuple[Any, ...]
    result: tuple[str | ComputedColumn, ...] | None
    filter: Expression | None
    partitions: Partitions

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of stored columns."""
        return None if self.result is None else tuple(name for name in self.result if isinstance(name, str))

    @property
    def computed_columns(self) -> tuple[ComputedColumn, ...]:
        """The computed columns."""
        return tuple(column for column in self.result or () if isinstance(column, ComputedColumn))

    @property
    def tops(self) -> frozenset[str] | None:
        """Candidates for the names of top-level columns in the result and the filter; None for all columns."""
        if self.columns is None:
            return None
        requested = paths(self.filter) if self.filter is not None else ()
        result = {path[0] for path in requested} | {
            operand_column(base).path[0] for column in self.computed_columns for base in bases(column.field)
        }
        for name in self.columns:  # any dot may be part of a column name
            parts = name.split(".")
            result.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
        return frozenset(result)

    @cached_property
    def compared_columns(self) -> tuple[str, ...]:
        """Names of the top-level columns that conditions and computed columns use without a transformation.

        Conditions that test for nulls do not use values, and coordinates may be transformed to another CRS first.
        """
        tests = () if self.filter is None else leaves(self.filter)
        values = [operand for leaf in tests if not _is_null_test(leaf) for operand in leaf_operands(leaf)]
        values += [column.field for column in self.computed_columns]
        return tuple(dict.fromkeys(operand_column(base).path[0] for each in values for base in _stored_bases(each)))

    def columns_of(self, file: ParquetFile) -> Sequence[str] | None:
        """Return the columns to read from a file; None for all columns."""
        columns: Sequence[str] | None = self.columns
        if self.partitions:
            names = set(self.partitions.schema.names)
            if columns is not None:
                columns = self.partitions.columns_of_files(columns)
            elif names & {child.name for child in file.schema.root.children}:
                columns = self.partitions.columns_of_files(file.arrow_schema.names)
        return columns

    def check_filter(self, file: ParquetFile) -> None:
        """Raise ``ValueError`` or ``TypeError`` if a file does not have the filter's columns with suitable types."""
        for leaf in self.partitions.file_conditions(self.filter):
            for base in operands(leaf):
                find(file.schema, operand_column(base), self.partitions.schema.names)
            _check_durations(leaf.operand if isinstance(leaf, Not) else leaf, file)
            bind(leaf, file.schema)

    def schema_of(self, file: ParquetFile) -> pa.Schema:
        """Return the Arrow schema of the result if this file were the first file."""
        self.partitions.check_name_conflicts(file.schema.root)
        if self.result is None:
            schema = self.partitions.complete_schema(file.read(None, row_groups=[]).schema)
        else:
            held, folders = self._file_schema(file), set(self.partitions.schema.names)
            fields = {field.name: field for field in (*self.partitions.schema, *held)}
            names = [column.name if isinstance(column, ComputedColumn) else column for column in self.result]
            known = folders | {column.name for column in self.computed_columns}
            order = [name if name in known else lookup(file.schema, name, folders).path[0] for name in names]
            schema = pa.schema([fields[name] for name in dict.fromkeys(order)], held.metadata)
        if len(self.sources) > 1:  # other files may contain nulls in required columns of the first
            schema = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
        return schema

    def _file_schema(self, file: ParquetFile) -> pa.Schema:
        """Return the Arrow schema of a file's columns in file order, followed by the computed columns."""
        columns = self.columns_of(file)
        for name in columns or ():
            lookup(file.schema, name, self.partitions.schema.names)
        schema: pa.Schema = file.read(columns, row_groups=[]).schema
        held, made = set(schema.names), []
        for column in self.computed_columns:
            if column.name in held:
                raise ValueError(duplicate_column_message(column.name))
            held.add(column.name)
            made.append(column.arrow_field(file))
        return pa.schema([*schema, *made], schema.metadata) if made else schema


@dataclass(frozen=True)
class FileRequest:
    """Request for one file: the columns to read, and the conversion of batches to the schema of the result."""

    columns: Sequence[str] | None
    """Names and dotted paths to read, all if None."""
    computed: tuple[ComputedColumn, ...]
    """VARIANT values to read."""
    filter: Expression | None
    """Condition on the file's own columns; only matching rows are in the result."""
    schema: pa.Schema
    """The schema of the result."""
    prune_reason: str | None = None
    """Reason why no row of the file can match, if its schema proves it."""
    is_exact: bool = True
    """Whether all rows that match ``filter`` are in the result; otherwise :meth:`result_batch` drops some rows."""

    def result_batch(
        self, batch: pa.RecordBatch, computed_values: Sequence[pa.Array], constants: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        """Build a batch of the result from a batch of the file, computed columns and partition values."""
        return _project(batch, self.named_arrays(computed_values, constants), self.schema)

    def named_arrays(
        self, computed_values: Sequence[pa.Array], constants: Mapping[str, pa.Array]
    ) -> dict[str, pa.Array]:
        """Return computed columns and partition columns by name. If names are equal, computed columns win."""
        return {**constants} | {
            column.name: array for column, array in zip(self.computed, computed_values, strict=True)
        }

    @cached_property
    def without_columns(self) -> FileRequest:
        """Request for the same rows of the file, without columns."""
        return replace(self, columns=(), computed=(), schema=pa.schema([]))


class SchemaStrategy(ABC):
    """Strategy that combines the files of a scan into one table."""

    def __init__(self, table_request: TableRequest) -> None:
        self.table_request = table_request

    @property
    @abstractmethod
    def schema(self) -> pa.Schema | None:
        """The Arrow schema of the result; None if the first file determines the schema and has not been opened yet."""

    @abstractmethod
    def check_filter(self, file: ParquetFile) -> None:
        """Raise the errors of :func:`bind` if a file does not support the scan's filter."""

    def request_count(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the request that counts the matching rows of a file. For arguments, see :meth:`request_file`."""
        return self.request_file(position, file, filter)

    @abstractmethod
    def request_file(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the request for the file of the source at ``position``.

        ``filter`` is the part of the scan's filter that partition values do not decide. Raises ``ValueError`` if the
        file's schema is incompatible with the other files.
        """


def _stored_bases(operand: Operand) -> list[Base]:
    """Return the columns and fields that an operand uses without a transformation to another CRS."""
    if isinstance(operand, SpatialValue) and operand.function == "st_transform":
        return []
    if isinstance(operand, SpatialValue | Arithmetic):
        return [base for item in operand.operands for base in _stored_bases(item)]
    return bases(operand)


def _is_null_test(leaf: Expression) -> bool:
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    return isinstance(inner, IsNull | IsNotNull) and isinstance(inner.operand, Column)


def type_at(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType | None:
    """Return the type at a path of struct fields; None if the field does not exist or has the null type.

    Raises ``ValueError`` if several fields have the same name.
    """
    fields: pa.Schema | pa.StructType = schema
    for name in path:
        result = fields.get_all_field_indices(name) if isinstance(fields, pa.Schema | pa.StructType) else []
        if len(result) > 1:
            dotted_path = escape_text(".".join(path))
            raise ValueError(f"column {dotted_path!r} is ambiguous: the file has several columns with this name")
        if not result:
            return None
        fields = fields.field(result[0]).type
        if len(path) > 1 and isinstance(fields, pa.BaseExtensionType):
            fields = fields.storage_type
    return None if pa.types.is_null(fields) else fields


def _check_durations(leaf: Expression, file: ParquetFile) -> None:
    """Raise ``TypeError`` if a duration is compared with another type, or with a duration in another unit.

    Parquet stores durations as integers without a logical type, and their statistics are integers. Only the stored
    Arrow schema contains their type.
    """
    match leaf:
        case Relation():
            left, right = (_duration(side, file) for side in (leaf.left, leaf.right))
            if left is not None and right is not None:
                check_comparable(left, right, str(leaf))
        case Comparison() | IsIn() | Matches() if (kind := _duration(leaf.operand, file)) is not None:
            if isinstance(leaf, Matches):
                check_pattern_type(kind, leaf)
            else:
                comparison_values(leaf.values if isinstance(leaf, IsIn) else (leaf.value,), kind, leaf.operand)


def _duration(operand: Operand, file: ParquetFile) -> ValueType | None:
    """Return the comparison category of a duration column; None for other operands."""
    if not isinstance(operand, Column):
        return None
    node = find(file.schema, operand)
    if node.physical_type != Type.INT64 or node.logical_name:
        return None
    tops = file.select([operand.path[0]])
    type = type_at(pa.schema([top.field(file.options) for top in tops]), operand.path)
    return value_type_of_arrow(type) if type is not None and pa.types.is_duration(type) else None


def _project(batch: pa.RecordBatch, named_arrays: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """Build a batch of the columns in ``schema`` from ``named_arrays`` and the columns of ``batch``."""
    if not named_arrays and batch.schema.equals(schema, check_metadata=True):
        return batch
    if not schema.names:
        return batch.select([])
    positions: dict[str, list[int]] = {}  # by name, in reverse order: several columns may have the same name
    for index, name in reversed([*enumerate(batch.schema.names)]):
        positions.setdefault(name, []).append(index)
    columns = []
    for field in schema:
        column = named_arrays[field.name] if field.name in named_arrays else batch.column(positions[field.name].pop())
        columns.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
