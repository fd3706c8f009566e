"""Read files with different schemas as one table: cast the columns of each file to a unified schema.

A condition is pushed down to a file in the file's own type, statistics included, if widening preserves the order and
equality of values; numbers compare by exact value regardless of type. A condition on a column that a file lacks is
evaluated once, for null or the value that the table states. The remaining filter is evaluated on the rows after the
cast.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from pqext.core.base.text import escape_text
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.arrow_schema.arrays import filter_batch
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.evaluation.evaluate import evaluate
from pqext.dataset.expressions import (
    And,
    Column,
    Comparison,
    Expression,
    IsIn,
    IsNotNull,
    IsNull,
    Not,
    Or,
    all_of,
    any_of,
    bases,
    operand_column,
)
from pqext.dataset.expressions.literals import value_type_of_arrow
from pqext.dataset.expressions.visitors import columns, paths, push_down_not
from pqext.dataset.planning.projection import ComputedColumn, compute_columns
from pqext.dataset.pruning.binding import lookup
from pqext.dataset.table.conformance import build_missing_column, check_geometry_types, conform
from pqext.dataset.table.file_request import FileRequest, SchemaStrategy, TableRequest, type_at

_KEPT = 256
"""Maximum number of cached pairs of schema and filter."""
_NO_VALUES: Mapping[str, Any] = MappingProxyType({})
_MAYBE = object()
"""Result for a condition that cannot be evaluated on the file's own columns."""


def empty_file(schema: pa.Schema) -> ParquetFile:
    """Return a file with ``schema`` and without rows, so that names in the schema can be resolved as in a file."""
    from pqext.core.write.writer import write_table

    sink = io.BytesIO()
    write_table(schema.empty_table(), sink)
    return ParquetFile(sink.getvalue())


class Union(SchemaStrategy):
    """Schema strategy that casts files to ``schema``, the unified schema without partition columns."""

    def __init__(self, table_request: TableRequest, schema: pa.Schema) -> None:
        super().__init__(table_request)
        self._template = empty_file(schema)
        self._stored = schema
        self._alike: dict[tuple[int, int, int], tuple[tuple[Any, ...], FileRequest]] = {}
        result = table_request.schema_of(self._template)
        folders = table_request.partitions.schema.names
        self._paths = [lookup(self._template.schema, name, folders).path for name in self._result_columns()]
        whole = {path[0] for path in self._paths if len(path) == 1}
        fields = [(schema.field(item.name) if item.name in whole else item).with_nullable(True) for item in result]
        self._schema = pa.schema(fields, schema.metadata)
        table_request.check_filter(self._template)

    @property
    def schema(self) -> pa.Schema:
        """The selected columns of the unified schema, followed by the partition columns."""
        return self._schema

    def check_filter(self, file: ParquetFile) -> None:
        """Do nothing, because the filter has already been checked against the unified schema."""

    def request_file(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the request for a file. Columns and conditions that the file does not support are evaluated later."""
        objects = file.schema, filter, file.missing_values  # files with the same schema share the objects
        key = id(objects[0]), id(objects[1]), id(objects[2])
        result = self._alike.get(key)
        if result is None:
            result = objects, self._build_request(file, filter)
            if len(self._alike) < _KEPT:
                self._alike[key] = result
        return result[1]

    def _build_request(self, file: ParquetFile, filter: Expression | None) -> FileRequest:
        check_geometry_types(self._stored, file.arrow_schema, file.path)
        left, exact = None, None
        if filter is not None:
            answer = self._translate(push_down_not(filter), file)
            if answer is False:
                reason = f"{filter} is true for no row: the file lacks {_missing_columns(filter, file)}"
                return ConformedRequest((), (), None, self._schema, reason)
            left = answer if isinstance(answer, Expression) else None
            results = [self._translate_cached_leaf(leaf, file) for leaf in _leaves(push_down_not(filter))]
            exact = filter if any(result is _MAYBE for result in results) else None
        names = self._names_to_read(file)
        if exact is not None and answer is not True:
            names = list(dict.fromkeys([*names, *(name for name in columns(exact) if _has_column(file, name))]))
        else:
            exact = None
        computed = tuple(element for element in self.table_request.computed_columns if self._has_inputs(element, file))
        later = tuple(item for item in self.table_request.computed_columns if item not in computed)
        tops = (operand_column(base).path[0] for entry in later for base in bases(entry.field))
        names = list(dict.fromkeys([*names, *(name for name in tops if _has_column(file, name))]))
        return ConformedRequest(
            names, computed, left, self._schema, None, exact is None, exact, self._stored, later, file.missing_values
        )

    def _has_inputs(self, column: ComputedColumn, file: ParquetFile) -> bool:
        """Return whether a file contains all inputs of a computed column, with the types of the unified schema."""
        results = [operand_column(base).path for base in bases(column.field)]
        return all(
            (own := self._file_type(file, path)) is not None and own == type_at(self._stored, path) for path in results
        )

    def request_count(self, position: int, file: ParquetFile, filter: Expression | None) -> FileRequest:
        """Return the same request as :meth:`request_file`."""
        return self.request_file(position, file, filter)

    def _names_to_read(self, file: ParquetFile) -> list[str]:
        """Return the names of the columns to read. A missing field is replaced by its deepest existing ancestor."""
        result: dict[str, None] = {}
        for path in self._paths:
            nearest = _nearest_node(file, path)
            if nearest is not None:
                name = nearest.dotted_path if file.schema.find(nearest.dotted_path) is nearest else nearest.path[0]
                result[name] = None
        return list(result)

    def _result_columns(self) -> Sequence[str]:
        """Return the names of the result's columns that are stored in files."""
        columns = self.table_request.columns_of(self._template)
        return self._stored.names if columns is None else columns

    def _translate(self, expression: Expression, file: ParquetFile) -> Expression | bool | object:
        """Translate a normalised condition for the rows of a file.

        Return a condition, or True, False (not true) or ``_MAYBE`` (undecided) if the result is the same for all rows.
        """
        if not isinstance(expression, And | Or):
            return self._translate_cached_leaf(expression, file)
        parts = [self._translate(operand, file) for operand in expression.operands]
        decisive = isinstance(expression, Or)
        if any(part is decisive for part in parts):
            return decisive
        left = [part for part in parts if isinstance(part, Expression)]
        if decisive and _MAYBE in parts:
            return _MAYBE
        if not left:
            return _MAYBE if _MAYBE in parts else not decisive
        return any_of(left) if decisive else all_of(left)

    def _translate_cached_leaf(self, leaf: Expression, file: ParquetFile) -> Expression | bool | object:
        known = self._cached_results.setdefault(leaf, {})
        result = tuple(self._file_type(file, path) for path in paths(leaf))
        if file.missing_values and None in result:
            return self._translate_leaf(leaf, result, file.missing_values)
        if result not in known:
            known[result] = self._translate_leaf(leaf, result)
        return known[result]

    def _translate_leaf(
        self, leaf: Expression, types: Sequence[pa.DataType | None], missing: Mapping[str, Any] = _NO_VALUES
    ) -> Expression | bool | object:
        if None in types:
            names = columns(leaf)
            if any(isinstance(missing.get(name), Mapping) for name in names):
                return _MAYBE  # the value depends on the parent, which may be null
            fields = [self._stored.field(name).with_nullable(True) for name in names]
            row = pa.RecordBatch.from_arrays(
                [build_missing_column(1, item, missing) for item in fields], schema=pa.schema(fields)
            )
            if len(types) == 1 or all(item is None for item in types):
                return bool(evaluate(leaf, row)[0].as_py())
            return _MAYBE
        unified = [type_at(self._stored, path) for path in paths(leaf)]
        if all(element == other for element, other in zip(types, unified, strict=True)):
            return leaf
        if len(types) == 1:
            stored, target = types[0], unified[0]
            if stored is not None and target is not None and _has_same_result(leaf, stored, target):
                return leaf
        return _MAYBE

    @cached_property
    def _cached_results(self) -> dict[Expression, dict[tuple[pa.DataType | None, ...], Expression | bool | object]]:
        """Cached results of :meth:`_translate`, by condition and by the types of its columns in a file."""
        return {}

    def _file_type(self, file: ParquetFile, path: tuple[str, ...]) -> pa.DataType | None:
        """Return the Arrow type of a column in a file; None if it is missing."""
        return type_at(file.arrow_schema, path)


@dataclass(frozen=True)
class ConformedRequest(FileRequest):
    """Request for one file whose rows are cast to the result's schema."""

    exact: Expression | None = None
    """Condition evaluated after the cast, if ``filter`` does not decide all rows."""
    stored: pa.Schema = field(default_factory=lambda: pa.schema([]))
    """The unified schema of the columns in all files."""
    later: tuple[ComputedColumn, ...] = ()
    """Columns computed after the cast, because the file lacks their inputs or has them in another type."""
    missing: Mapping[str, Any] = field(default_factory=dict)
    """Values of the columns that the file lacks; see :attr:`pqext.core.read.reader.ParquetFile.missing_values`."""

    def result_batch(
        self, batch: pa.RecordBatch, computed_values: Sequence[pa.Array], constants: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        """Build a batch of the result. Columns are cast to the unified types, and missing columns are null."""
        named = self.named_arrays(computed_values, constants)
        if self.later:
            tops = {operand_column(base).path[0] for element in self.later for base in bases(element.field)}
            values = compute_columns(self.later, {}, self._conform(batch, tops))
            named |= {item.name: array for item, array in zip(self.later, values, strict=True)}
        schema = self.schema
        arrays = [
            conform(named[entry.name], entry.type, entry.name)
            if entry.name in named
            else self._unify_column(batch, entry)
            for entry in schema
        ]
        if not arrays:
            conformed = batch.select([])
        else:
            conformed = pa.RecordBatch.from_arrays(arrays, schema=schema)
        if self.exact is None:
            return conformed
        mask = evaluate(self.exact, self._conform(batch, columns(self.exact)))
        return filter_batch(conformed, mask) if arrays else _without_columns(mask.true_count)

    @cached_property
    def without_columns(self) -> ConformedRequest:
        """Request for the same rows of the file, with only the columns that ``exact`` uses."""
        compared = set() if self.exact is None else set(columns(self.exact))
        names = tuple(name for name in self.columns or () if name in compared)
        return replace(self, columns=names, computed=(), schema=pa.schema([]), later=())

    def _conform(self, batch: pa.RecordBatch, names: Iterable[str]) -> pa.RecordBatch:
        """Cast the columns ``names`` of a batch to the types of the unified schema."""
        fields = [self.stored.field(name).with_nullable(True) for name in names if name in self.stored.names]
        return pa.RecordBatch.from_arrays([self._unify_column(batch, one) for one in fields], schema=pa.schema(fields))

    def _unify_column(self, batch: pa.RecordBatch, entry: pa.Field) -> pa.Array:
        """Cast a column to the type of ``entry``. A missing column has its value in ``missing``, or nulls."""
        if entry.name not in batch.schema.names:
            return build_missing_column(batch.num_rows, entry, self.missing)
        values = self.missing.get(entry.name)
        inner = values if isinstance(values, Mapping) else _NO_VALUES
        return conform(batch.column(entry.name), entry.type, entry.name, inner)


def _without_columns(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def _leaves(expression: Expression) -> list[Expression]:
    """Return the leaves of a normalised expression. A negated leaf is returned as a Not expression."""
    if not isinstance(expression, And | Or):
        return [expression]
    return [leaf for operand in expression.operands for leaf in _leaves(operand)]


def _missing_columns(filter: Expression, file: ParquetFile) -> str:
    """Format the names of the columns of a filter that a file lacks."""
    results = [".".join(path) for path in paths(filter) if type_at(file.arrow_schema, path) is None]
    return ", ".join(escape_text(repr(name)) for name in results)


def _has_column(file: ParquetFile, name: str) -> bool:
    return file.schema.root.child(name) is not None


def _nearest_node(file: ParquetFile, path: tuple[str, ...]) -> SchemaNode | None:
    """Return the node of a file at ``path``, or its deepest existing ancestor; None if the column is missing."""
    result, node = None, file.schema.root.child(path[0])
    for name in path[1:]:
        if node is None:
            break
        result, node = node, node.child(name)
    return node or result


def _has_same_result(leaf: Expression, file_type: pa.DataType, unified_type: pa.DataType) -> bool:
    """Return whether a condition has the same result before and after a cast from ``file_type`` to ``unified_type``.

    Casts are checked: the result is the same number, instant or text, or an error.
    """
    inner = leaf.operand if isinstance(leaf, Not) else leaf
    if isinstance(inner, IsNull | IsNotNull):
        return isinstance(inner.operand, Column)
    if not isinstance(inner, Comparison | IsIn) or not isinstance(inner.operand, Column):
        return False
    return preserves_values(file_type, unified_type)


def preserves_values(file_type: pa.DataType, unified_type: pa.DataType) -> bool:
    """Return whether a cast preserves each value or fails, so that comparisons have equal results in both types."""
    types = pa.types
    file_type, unified_type = (
        item.value_type if types.is_dictionary(item) else item for item in (file_type, unified_type)
    )
    if file_type == unified_type:
        return True
    kinds = value_type_of_arrow(file_type), value_type_of_arrow(unified_type)
    if types.is_floating(file_type):
        return bool(types.is_floating(unified_type) and file_type.bit_width <= unified_type.bit_width)
    if types.is_integer(file_type) and types.is_floating(unified_type):
        return True
    return kinds[0] is not None and kinds[0] == kinds[1]
