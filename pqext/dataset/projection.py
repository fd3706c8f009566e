"""What a scan gives besides stored columns: values within VARIANT columns, each as a column of its own.

Where a file holds the values at a path in a typed leaf and nowhere else, that leaf is all that is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pqext.core import shape
from pqext.core.facts import RowGroupFacts
from pqext.core.in_step import in_step
from pqext.core.indexes.row_ranges import RowRanges
from pqext.core.reader import ParquetFile, RowGroup
from pqext.core.schema import SchemaNode
from pqext.core.suggest import around
from pqext.core.types.decoded import dictionary_decoded
from pqext.dataset.binding import find
from pqext.dataset.evaluate import value_of
from pqext.dataset.expressions import VariantField

_EMPTY_METADATA = b"\x11\x00\x00"


@dataclass(frozen=True, slots=True, eq=False)
class Computed:
    """A column of the result called ``name``: the value of ``field`` on each row."""

    name: str
    field: VariantField

    def __eq__(self, other: object) -> bool:
        # Fields themselves make conditions of ==.
        return isinstance(other, Computed) and self.name == other.name and self.field.equals(other.field)

    def __hash__(self) -> int:
        return hash((self.name, self.field))

    def arrow_field(self, schema_node: SchemaNode) -> pa.Field:
        """Its Arrow field; ``TypeError`` unless it is asked of a VARIANT."""
        from pqext.variant.access.targets import target_type

        if schema_node.logical_name != "VARIANT":
            raise TypeError(f"column {self.field.column} is no VARIANT, so that nothing lies at a path within it")
        return pa.field(self.name, target_type(self.field.type))

    def leaf(self, node: SchemaNode, group: RowGroupFacts) -> SchemaNode | None:
        """The one leaf that holds all values of the field in a row group, None when there is no such leaf.

        Values that did not fit the leaf are in the ``value`` beside it, so that this must be all null. A value that is
        an object has its ``typed_value``, so that the field is nowhere else.
        """
        from pqext.variant.access.columns import leaf_of_path

        found = leaf_of_path(node, self.field.path)
        if found is None:
            return None
        leaf, value = found
        if value is not None:
            nulls = group.chunk(value).bounds().null_count
            if nulls is None or nulls != group.num_rows:
                return None
        return leaf


def parse_columns(columns: Any) -> tuple[str | Computed, ...]:
    """``columns`` of a scan: names, variant fields, and pairs of a name and a variant field."""
    if isinstance(columns, str):
        raise TypeError(f"columns is a list of names: columns=[{around(columns)!r}]")
    parsed: list[str | Computed] = []
    for column in columns:
        if isinstance(column, VariantField):
            parsed.append(Computed(".".join(column.column.path) + column.path[1:], column))
        elif isinstance(column, tuple) and len(column) == 2 and isinstance(column[1], VariantField):
            if not isinstance(column[0], str):
                raise TypeError(f"a column's name is a string, not {type(column[0]).__name__}")
            parsed.append(Computed(*column))
        elif isinstance(column, str):
            parsed.append(column)
        else:
            raise TypeError(
                "columns are names, fields such as col('v').variant('$.a', 'int64'), or pairs of a name and a field, "
                f"not {column!r}"
            )
    names = [column if isinstance(column, str) else column.name for column in parsed]
    if len(set(names)) != len(names):
        raise ValueError("a column is asked for twice")
    return tuple(parsed)


def leaves_of(
    group: RowGroupFacts, computed: Sequence[Computed], held: Collection[str]
) -> dict[Computed, SchemaNode]:
    """Those of the columns that a row group holds in a leaf of their own, with the leaf.

    What lies in the top-level columns ``held`` is read anyway, and not a second time.
    """
    leaves = {}
    for column in computed:
        node = find(group.schema, column.field.column)
        leaf = column.leaf(node, group) if node.path[0] not in held else None
        if leaf is not None:
            leaves[column] = leaf
    return leaves


def read_leaves(
    file: ParquetFile, group: RowGroup, leaves: Mapping[Computed, SchemaNode], batches: Iterator[pa.RecordBatch],
    batch_rows: int, rows: RowRanges | None, compared: Collection[int] = (),
) -> Iterator[tuple[pa.RecordBatch, dict[Computed, pa.Array]]]:
    """The columns from their leaves, beside the ``batches`` of a row group, or of ``rows`` in it.

    Strings of the leaves ``compared`` are given as dictionaries where they are stored so.
    """
    from pqext import variant
    from pqext.variant.access.targets import target_type
    from pqext.variant.access.widening import widened

    nodes = {leaf.leaf_start: leaf for leaf in leaves.values()}
    budget = file.budget()
    streams = [
        file.iter_stored(shape.of(leaf), group.index, batch_rows, rows, budget, encoded=place in compared)
        for place, leaf in nodes.items()
    ]
    for batch, *arrays in in_step([batches, *streams]):
        found = dict(zip(nodes, arrays, strict=True))
        columns = {}
        for column, leaf in leaves.items():
            typed, target = found[leaf.leaf_start], target_type(column.field.type)
            if pa.types.is_dictionary(typed.type) and typed.type.value_type != target:
                typed = dictionary_decoded(typed)
            is_whole = typed.type == target or pa.types.is_dictionary(typed.type)
            whole = typed if is_whole else widened(typed, target)
            if whole is not None:
                columns[column] = whole
                continue
            shredded = pa.StructArray.from_arrays([_metadata(len(typed)), typed], ["metadata", "typed_value"])
            columns[column] = variant.get(shredded, (), column.field.type)
        yield batch, columns


def _metadata(rows: int) -> pa.Array:
    """The metadata of values without objects, for each row."""
    buffers = [None, pa.py_buffer(np.arange(rows + 1) * len(_EMPTY_METADATA)), pa.py_buffer(_EMPTY_METADATA * rows)]
    return pa.Array.from_buffers(pa.large_binary(), rows, buffers)


def computed_of(
    computed: Sequence[Computed], leaves: Mapping[Computed, pa.Array], batch: pa.RecordBatch
) -> list[pa.Array]:
    """The columns of a batch: from their leaves, or from the parts of their VARIANT in the batch."""
    return [leaves[column] if column in leaves else value_of(column.field, batch) for column in computed]
