"""Read the bounds and sizes of column chunks directly from footer bytes, without building structures.

Planning uses these to prune most row groups of many files by the bounds of one column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pqext.core.format.metadata import ColumnOrder, Statistics
from pqext.core.format.predicate import Bounds
from pqext.core.kernels.thrift.column_chunks import chunk_bytes, read_statistics
from pqext.core.kernels.thrift.reader import StructIndex
from pqext.core.schema import statistics
from pqext.core.schema.nodes import SchemaNode

Location = tuple[StructIndex, int]
"""Location of a row group: an index of row groups in a footer, and the position in it."""


def bounds_at(
    location: Location, leaves: int, leaf: SchemaNode, orders: Sequence[ColumnOrder] | None
) -> tuple[int, Bounds] | None:
    """Return the number of rows of a row group with ``leaves`` leaves, and the bounds of ``leaf``.

    Return None if the serialised metadata has an unusual layout.
    """
    result = read_statistics(*location, leaves, leaf.stored_place, Statistics.plan)
    if result is None:
        return None
    rows, values, stored = result
    at = leaf.leaf_start
    return rows, trusted_bounds(leaf, stored, values, rows, orders[at] if orders and at < len(orders) else None)


def bytes_at(location: Location, leaf_count: int, leaves: Collection[SchemaNode]) -> int | None:
    """Return the total size of the pages of ``leaves``; None if the serialised metadata has an unusual layout."""
    return chunk_bytes(*location, leaf_count, [leaf.stored_place for leaf in leaves])


def trusted_bounds(
    leaf: SchemaNode, chunk_statistics: Statistics | None, values: int, rows: int | None, order: ColumnOrder | None
) -> Bounds:
    """Return the bounds from a chunk's statistics.

    They are unknown if the chunk's value count contradicts the row count of the row group.
    """
    if rows is None or values == rows or (0 < rows < values and leaf.max_repetition_level > 0):
        return statistics.to_bounds(leaf.leaf_type, chunk_statistics, values, order)
    return Bounds(has_nan=None)
