"""What planning asks of column chunks, straight from the footer's bytes: no structure is made of them.

Most row groups of many files are refused by the bounds of one column.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pqext.core.format.metadata import ColumnOrder, Statistics
from pqext.core.format.predicate import Bounds
from pqext.core.kernels.chunk_places import statistics_of, stored_bytes
from pqext.core.kernels.thrift import StructIndex
from pqext.core.schema import statistics
from pqext.core.schema.nodes import SchemaNode

Place = tuple[StructIndex, int]
"""Where a row group's structure lies in a footer."""


def bounds_at(
    place: Place, leaves: int, leaf: SchemaNode, orders: Sequence[ColumnOrder] | None
) -> tuple[int, Bounds] | None:
    """The rows of a group of so many ``leaves``, and what is proven of one; None where anything is unusual."""
    found = statistics_of(*place, leaves, leaf.stored_place, Statistics.plan)
    if found is None:
        return None
    rows, values, stored = found
    at = leaf.leaf_start
    return rows, proven(leaf, stored, values, rows, orders[at] if orders and at < len(orders) else None)


def bytes_at(place: Place, leaf_count: int, leaves: Collection[SchemaNode]) -> int | None:
    """The bytes of the pages of ``leaves`` together; None where anything is unusual."""
    return stored_bytes(*place, leaf_count, [leaf.stored_place for leaf in leaves])


def proven(
    leaf: SchemaNode, stored: Statistics | None, values: int, rows: int | None, order: ColumnOrder | None
) -> Bounds:
    """What a chunk's statistics prove: nothing where it has not as many values as its row group has rows."""
    if rows is None or values == rows or (0 <= rows < values and leaf.max_repetition_level > 0):
        return statistics.to_bounds(leaf.leaf_type, stored, values, order)
    return Bounds(has_nan=None)
