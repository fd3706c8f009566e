"""Read bounds and sizes of column chunks straight from footer bytes, without building structures.

Planning prunes most row groups of many files by the bounds of one column.
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
"""A list of row groups in a footer, and a position in it."""


def bounds_at(
    location: Location, leaves: int, leaf: SchemaNode, orders: Sequence[ColumnOrder] | None
) -> tuple[int, Bounds] | None:
    """Return the rows of a row group of ``leaves`` leaves and the bounds of one; None if anything is unusual."""
    result = read_statistics(*location, leaves, leaf.stored_place, Statistics.plan)
    if result is None:
        return None
    rows, values, stored = result
    at = leaf.leaf_start
    return rows, proven(leaf, stored, values, rows, orders[at] if orders and at < len(orders) else None)


def bytes_at(location: Location, leaf_count: int, leaves: Collection[SchemaNode]) -> int | None:
    """Return the size of the pages of ``leaves`` in total; None if anything is unusual."""
    return chunk_bytes(*location, leaf_count, [leaf.stored_place for leaf in leaves])


def proven(
    leaf: SchemaNode, chunk_statistics: Statistics | None, values: int, rows: int | None, order: ColumnOrder | None
) -> Bounds:
    """Return the bounds in a chunk's statistics; unknown if its value count contradicts its row group."""
    if rows is None or values == rows or (0 < rows < values and leaf.max_repetition_level > 0):
        return statistics.to_bounds(leaf.leaf_type, chunk_statistics, values, order)
    return Bounds(has_nan=None)
