"""What the footer of an object proves of all its rows."""

from __future__ import annotations

from math import nan

import pyarrow as pa

from pqext.core.format.predicate import Bounds
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.annotations import for_logical
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.evaluation.extremes import as_arrow
from pqext.dataset.expressions import Column
from pqext.dataset.pruning.binding import find


def flat_leaf(file: ParquetFile, column: Column) -> SchemaNode | None:
    """The leaf whose values are those of rows; None where the column is of another kind, or not there."""
    try:
        node = find(file.schema, column)
    except (TypeError, ValueError):
        return None
    is_plain = node.is_leaf and not node.max_repetition_level and for_logical(node.logical_name) is None
    return node if is_plain else None


def all_bounds(file: ParquetFile, column: Column) -> list[Bounds] | None:
    """What bounds the values of each row group that has rows; None for a column without a value a row."""
    node = flat_leaf(file, column)
    if node is None or not file.options.trust_statistics:
        return None
    return [group.bounds(node) for group in file.row_groups if group.num_rows]


def known_range(file: ParquetFile, column: Column, kind: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    """The ends between which all values lie, arrays of one, NaN above where there is one; None where not proved."""
    found = all_bounds(file, column)
    if found is None:
        return None
    held = [bounds for bounds in found if not bounds.all_null]
    lows = [bounds.minimum for bounds in held if bounds.minimum is not None]
    highs = [bounds.maximum for bounds in held if bounds.maximum is not None]
    if len(lows) < len(held) or len(highs) < len(held):
        return None
    is_float = pa.types.is_floating(kind)
    if is_float and any(bounds.has_nan is None for bounds in held):
        return None
    try:
        low = as_arrow(min(lows), kind) if lows else pa.scalar(None, kind)
        high = as_arrow(max(highs), kind) if highs else pa.scalar(None, kind)
        if is_float and any(bounds.has_nan for bounds in held):
            high = pa.scalar(nan, kind)
        return None if low is None or high is None else (pa.repeat(low, 1), pa.repeat(high, 1))
    except (TypeError, ValueError, OverflowError, pa.ArrowException):  # no value of the column
        return None
