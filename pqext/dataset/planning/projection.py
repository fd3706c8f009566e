"""Result columns of a scan that are not stored columns: VARIANT fields, struct fields and computed values.

If a file stores all values at a path in a typed leaf, only that leaf is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.batches import align_batches
from pqext.core.base.suggestions import column_list_hint
from pqext.core.base.text import escape_text
from pqext.core.base.usage import Budget
from pqext.core.read.reader import ParquetFile, RowGroup
from pqext.core.schema import shape
from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import SchemaNode
from pqext.core.schema.row_ranges import RowRanges
from pqext.core.schema.types.arrow_compute import decode_dictionary
from pqext.dataset.evaluation.evaluate import stored_values, value_of
from pqext.dataset.evaluation.operand_values import geometry_type, to_shredded
from pqext.dataset.expressions import (
    Column,
    Expression,
    NamedValue,
    SpatialValue,
    Value,
    VariantField,
    bases,
    col,
    operand_column,
)  # fmt: skip
from pqext.dataset.expressions.mistakes import label_of, to_python_code
from pqext.dataset.expressions.visitors import replace_columns
from pqext.dataset.pruning.binding import find, operand_type
from pqext.variant.timezones import DEFAULT

Key: TypeAlias = tuple[Any, ...]
"""A key that is equal for equal operands."""
Fields: TypeAlias = Mapping[Key, pa.Array]
"""VARIANT fields read from leaves alongside a batch, by the keys of their operands."""


@dataclass(frozen=True, slots=True, eq=False)
class ComputedColumn:
    """A result column called ``name`` with the value of ``field`` in each row."""

    name: str
    field: Value

    def __post_init__(self) -> None:
        NamedValue(self.name, self.field)

    def __eq__(self, other: object) -> bool:
        # On fields, == builds a condition.
        return isinstance(other, ComputedColumn) and self.name == other.name and self.field.equals(other.field)

    def __hash__(self) -> int:
        return hash((self.name, self.field))

    @property
    def key(self) -> Key:
        """Return a key that is equal for equal columns."""
        return self.field._key()

    def arrow_field(self, file: ParquetFile) -> pa.Field:
        """Return the column's Arrow field in a file. Raises the errors of :func:`bind` for invalid columns."""
        for base in bases(self.field):
            node = find(file.schema, operand_column(base))
            if isinstance(base, VariantField) and node.logical_name != "VARIANT":
                raise TypeError(f"column {label_of(base.column)} is not a VARIANT; paths apply to VARIANT columns only")
        if isinstance(self.field, Column):
            return _stored_field(self.field, file).with_name(self.name).with_nullable(True)
        field = pa.field(self.name, operand_type(self.field, file.schema))
        if isinstance(self.field, SpatialValue) and self.field.is_geometry:
            from pqext.geo.types import mark, type_of

            marked = type_of(_stored_field(operand_column(bases(self.field)[0]), file))
            return field if marked is None else mark(field, geometry_type(self.field, lambda column: marked))
        return field


def _stored_field(column: Column, file: ParquetFile) -> pa.Field:
    """Return the Arrow field of a column in a file."""
    stored = file.arrow_schema.field(column.path[0])
    for name in column.path[1:]:
        inner = stored.type.storage_type if isinstance(stored.type, pa.BaseExtensionType) else stored.type
        stored = inner.field(name)
    return stored


def leaf_of(field: VariantField, group: RowGroupFacts) -> SchemaNode | None:
    """Return the leaf that contains all values of a field in a row group; None if other leaves contain values.

    Values that do not match the type of the leaf are stored in the sibling ``value``, which must be completely null.
    Objects are stored in ``typed_value``, so the field is not stored elsewhere.
    """
    from pqext.variant.access.columns import leaf_of_path

    result = leaf_of_path(find(group.schema, field.column), field.path)
    if result is None:
        return None
    leaf, value = result
    if value is not None:
        nulls = group.chunk(value).bounds().null_count
        if nulls is None or nulls != group.num_rows:
            return None
    return leaf


def parse_columns(columns: Any) -> tuple[str | ComputedColumn, ...]:
    """Parse the ``columns`` of a scan: a list of names and values, or a mapping from result names to values."""
    if isinstance(columns, str):
        raise TypeError(column_list_hint(columns))
    if isinstance(columns, Mapping):
        columns = [
            (name, value) if not isinstance(value, str) else name if value == name else (name, col(value))
            for name, value in columns.items()
        ]
    parsed: list[str | ComputedColumn] = []
    for column in columns:
        if isinstance(column, str | ComputedColumn):
            parsed.append(column)
        elif isinstance(column, VariantField):
            parsed.append(ComputedColumn(".".join(column.column.path) + column.path[1:], column))
        elif isinstance(column, Column):
            parsed.append(ComputedColumn(".".join(column.path), column))
        elif isinstance(column, NamedValue):
            parsed.append(ComputedColumn(column.name, column.value))
        elif isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], Value):
            parsed.append(ComputedColumn(*column))
        elif isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], Expression):
            raise TypeError(
                f"a condition cannot be a column: pass {column[1]} as filter=, or select the columns it uses and "
                "evaluate it on the result"
            )
        elif isinstance(column, Value):
            raise TypeError(f"{column} needs a name in the result: {to_python_code(column)}.alias('name')")
        elif isinstance(column, tuple) and len(column) == 2 and all(isinstance(part, str) for part in column):
            name, text = column
            selection = f"{text} as {name}" if name.isidentifier() else f'{text} as "{name}"'
            raise TypeError(
                f"{column!r} is not a column: write {selection!r} in Scan.select, or a value such as "
                "(col('a') * 2).alias('b'); to select several columns, pass a list"
            )
        else:
            raise TypeError(
                "a column must be a name, a field such as col('v').variant('$.a', 'int64'), a value such as "
                f"(col('a') * 2).alias('b'), or a pair of a name and a value, not {column!r}"
            )
    names = [column if isinstance(column, str) else column.name for column in parsed]
    if len(set(names)) != len(names):
        raise ValueError(duplicate_column_message(next(name for name in names if names.count(name) > 1)))
    return tuple(parsed)


def input_columns(
    value: Value, partition_names: Collection[str], prefix: str
) -> tuple[list[str], list[ComputedColumn], Value]:
    """Split the inputs of a computed value into partition columns and columns of the files.

    Returns the names of the partition columns, the columns of the files under names that begin with ``prefix``, and
    the value as computed from these columns.
    """
    inputs = dict.fromkeys(map(operand_column, bases(value)))
    partitions = [column.path[0] for column in inputs if column.path[0] in partition_names]
    stored = {
        column: ComputedColumn(f"{prefix}{number}", column)
        for number, column in enumerate(inputs) if column.path[0] not in partition_names
    }  # fmt: skip
    replaced = replace_columns(value, lambda column: Column((stored[column].name,)) if column in stored else column)
    return partitions, [*stored.values()], replaced


def duplicate_column_message(name: str) -> str:
    """Format the message for a result with two columns called ``name``."""
    shown = escape_text(name)
    return f"column {shown!r} is selected twice: rename either column, as in \"{shown} as other\" or .alias('other')"


def leaves_of(
    group: RowGroupFacts, computed_columns: Sequence[ComputedColumn], excluded_columns: Collection[str]
) -> dict[ComputedColumn, SchemaNode]:
    """Return the leaf of each computed column that a row group stores in a separate leaf.

    Fields of the top-level columns ``excluded_columns`` are omitted, because they are read with these columns.
    """
    leaves = {}
    for column in computed_columns:
        if not isinstance(column.field, VariantField) or column.field.column.path[0] in excluded_columns:
            continue
        leaf = leaf_of(column.field, group)
        if leaf is not None:
            leaves[column] = leaf
    return leaves


def read_leaves(
    file: ParquetFile, group: RowGroup, leaves: Mapping[Key, tuple[VariantField, SchemaNode]],
    batches: Iterator[pa.RecordBatch], batch_rows: int, rows: RowRanges | NDArray[np.int64] | None,
    compared_leaves: Collection[int], budget: Budget,
) -> Iterator[tuple[pa.RecordBatch, dict[Key, pa.Array]]]:
    """Yield ``batches`` of a row group. For each batch, also yield the values of VARIANT fields from ``leaves``.

    Strings of the leaves ``compared_leaves`` are returned as dictionary arrays if they are stored dictionary-encoded.
    """
    from pqext.variant.access.cast import extract
    from pqext.variant.access.targets import target_type, widen_column

    nodes = {leaf.leaf_start: leaf for _, leaf in leaves.values()}
    streams = [
        file.iter_storage_arrays(
            shape.from_node(leaf), group.index, batch_rows, rows, budget, as_dictionaries=place in compared_leaves
        )
        for place, leaf in nodes.items()
    ]
    for batch, *arrays in align_batches([batches, *streams]):
        result = dict(zip(nodes, arrays, strict=True))
        values = {}
        for key, (field, leaf) in leaves.items():
            typed, target = result[leaf.leaf_start], target_type(field.type)
            if pa.types.is_dictionary(typed.type) and typed.type.value_type != target:
                typed = decode_dictionary(typed)
            is_whole = typed.type == target or pa.types.is_dictionary(typed.type)
            whole = typed if is_whole else widen_column(typed, target)
            zone = field.timezone or DEFAULT
            values[key] = extract(to_shredded(typed), (), field.type, timezone=zone) if whole is None else whole
        yield batch, values


def compute_columns(
    computed_columns: Sequence[ComputedColumn], leaves: Fields, batch: pa.RecordBatch
) -> list[pa.Array]:
    """Return the values of ``computed_columns`` for a batch. Values in ``leaves`` are used, others are computed."""
    return [
        leaves[column.key] if column.key in leaves
        else stored_values(column.field, batch) if isinstance(column.field, Column)
        else value_of(column.field, batch)
        for column in computed_columns
    ]
