"""Read ranges of values from footers, and find the ranges that may contain a match for a condition.

Each rule is a proof (``specs/skipping.md``): a range is excluded only if the condition is false or null for every value
between its ends. The rules are defined in :mod:`pqext.core.format.predicate`. Comparisons follow
:mod:`pqext.dataset.evaluation`, so ranges are compared exactly as rows are; NaN is greater than every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.format import predicate as core
from pqext.core.format.predicate import Bounds, Operator, Value
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.evaluation.comparison import compare_arrays, to_arrow_scalar
from pqext.dataset.evaluation.evaluate import compare, is_in, to_comparable
from pqext.dataset.expressions import Column, Comparison, Expression, IsIn, Matches, Not
from pqext.dataset.expressions.literals import value_type_of_arrow
from pqext.dataset.expressions.mistakes import comparison_values
from pqext.dataset.pruning.binding import find
from pqext.dataset.pruning.bounds import to_predicates

_RANGES = 64
"""Maximum number of ranges that the values of a long list are grouped into."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Minimum and maximum of each object's values, excluding NaN and null. Unknown bounds are null."""

    low: pa.Array
    high: pa.Array
    shows_nan: bool
    """Whether ``high`` is NaN if a value is NaN; irrelevant for types other than floats."""

    def may_match(self, leaf: Expression) -> pa.Array | None:
        """Return False for each range in which no value matches ``leaf``, otherwise True.

        Returns None if the ranges prove nothing. Raises ``TypeError`` if a literal cannot be compared with the values.
        """
        inner = leaf.operand if isinstance(leaf, Not) else leaf
        value_type = value_type_of_arrow(self.low.type)
        if value_type is None or value_type.name == "null" or not isinstance(inner, Comparison | IsIn | Matches):
            return None
        ranges = _ComparableRanges.from_ranges(self)
        if isinstance(leaf, Not) and isinstance(inner, IsIn):
            may = ranges.may_be_outside(comparison_values(inner.values, value_type, inner.operand))
        else:
            alternatives = to_predicates(inner, value_type, isinstance(leaf, Not))
            masks = ([core.may_match(predicate, ranges) for predicate in alternative] for alternative in alternatives)
            may = np.logical_or.reduce([np.logical_and.reduce(results) for results in masks])
        return pa.array(may)


@dataclass(frozen=True, slots=True)
class _ComparableRanges:
    """Ranges in the representation of core's pruning rules. Bounds that are unknown or NaN are null."""

    minimum: pa.Array
    maximum: pa.Array
    may_be_nan: NDArray[np.bool_]

    @classmethod
    def from_ranges(cls, ranges: Ranges) -> _ComparableRanges:
        low, high = to_comparable(ranges.low), to_comparable(ranges.high)
        if not pa.types.is_floating(low.type):
            return cls(low, high, np.zeros(len(low), bool))
        nans = pc.is_nan(high) if ranges.shows_nan else pa.nulls(len(high), pa.bool_())
        low, high = (pc.if_else(pc.is_nan(end), None, end) for end in (low, high))
        return cls(low, high, _to_mask(nans))

    @property
    def may_be_null(self) -> NDArray[np.bool_]:
        return np.ones(len(self.minimum), bool)

    may_be_valid = may_be_null

    def compare(self, bound: pa.Array, operator: Operator, value: Value) -> NDArray[np.bool_]:
        return _to_mask(compare(bound, operator, value))

    def may_contain_any(self, values: tuple[Any, ...], ascending: bool) -> NDArray[np.bool_]:
        """Return, for each range, whether it may contain any of ``values``. Values are grouped to limit comparisons."""
        numbers = values if ascending else sorted(values)
        size = -(-len(numbers) // _RANGES) or 1
        groups = (numbers[at : at + size] for at in range(0, len(numbers), size))
        overlaps = (core.may_overlap(self, group[0], group[-1]) for group in groups)
        return reduce(np.logical_or, overlaps, np.zeros(len(self.minimum), bool))

    def may_be_outside(self, values: Sequence[Value]) -> NDArray[np.bool_]:
        """Return, for each range, whether it may contain a value that is not in ``values``.

        False if the range contains a single value, which is in ``values``.
        """
        is_single, is_listed = compare_arrays(self.minimum, "==", self.maximum), is_in(self.minimum, tuple(values))
        return _to_mask(pc.invert(pc.and_kleene(is_single, is_listed))) | self.may_be_nan


def _to_mask(result: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(result, True))


def flat_leaf(file: ParquetFile, column: Column) -> SchemaNode | None:
    """Return the leaf of a column with one plain value per row; None if the column is missing, nested or annotated."""
    try:
        node = find(file.schema, column)
    except (TypeError, ValueError):
        return None
    is_plain = node.is_leaf and not node.max_repetition_level and find_by_logical_type(node.logical_name) is None
    return node if is_plain else None


def row_group_bounds(file: ParquetFile, column: Column) -> list[Bounds] | None:
    """Return the bounds of each non-empty row group.

    Returns None if :func:`flat_leaf` returns None, or if statistics are not trusted.
    """
    node = flat_leaf(file, column)
    if node is None or not file.options.trust_statistics:
        return None
    return [group.bounds(node) for group in file.row_groups if group.num_rows]


def range_from_footer(file: ParquetFile, column: Column, type: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    """Return the minimum and maximum of a column from the footer; None if the footer does not prove both.

    Both are arrays of length 1, and null if all values are null. The maximum is NaN if a value is NaN.
    """
    bounds = row_group_bounds(file, column)
    if bounds is None:
        return None
    filled = [group for group in bounds if not group.all_null]
    lows = [group.minimum for group in filled if group.minimum is not None]
    highs = [group.maximum for group in filled if group.maximum is not None]
    if len(lows) < len(filled) or len(highs) < len(filled):
        return None
    is_float = pa.types.is_floating(type)
    if is_float and any(group.has_nan is None for group in filled):
        return None
    try:
        low = to_arrow_scalar(min(lows), type) if lows else pa.scalar(None, type)
        high = to_arrow_scalar(max(highs), type) if highs else pa.scalar(None, type)
        if is_float and any(group.has_nan for group in filled):
            high = pa.scalar(nan, type)
        return None if low is None or high is None else (pa.repeat(low, 1), pa.repeat(high, 1))
    except (TypeError, ValueError, OverflowError, pa.ArrowException):  # the bound is not a value of the column's type
        return None
