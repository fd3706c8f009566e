"""Ranges of values: read them from footers, and determine which may contain a match for a condition.

Each rule is a proof (``specs/skipping.md``): a range is excluded only if the condition is false or null for every value
between its ends. A null end is unknown and excludes nothing. Comparisons follow :mod:`pqext.dataset.evaluation`, so
ranges compare exactly as rows do; NaN is above every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import nan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format import predicate as core
from pqext.core.format.predicate import Bounds, Operator, Predicate, Value
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.annotations import for_logical
from pqext.core.schema.nodes import SchemaNode
from pqext.dataset.evaluation.comparison import related
from pqext.dataset.evaluation.evaluate import comparable, compare, is_in
from pqext.dataset.evaluation.extremes import as_arrow
from pqext.dataset.expressions import Column, Comparison, Expression, IsIn, Matches, Not
from pqext.dataset.expressions.literals import kind_of_arrow
from pqext.dataset.expressions.mistakes import compared_value
from pqext.dataset.pruning.binding import find
from pqext.dataset.pruning.questions import questions

_RANGES = 64
"""Maximum number of ranges that the values of a long list are grouped into."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges from ``low`` to ``high`` of the values of objects except NaN and null; a null end is unknown."""

    low: pa.Array
    high: pa.Array
    shows_nan: bool
    """Whether ``high`` is NaN if a value is NaN; irrelevant for types other than floats."""

    def may_match(self, leaf: Expression) -> pa.Array | None:
        """Return for each range whether ``leaf`` may match a value: False is a proof; None if nothing is proved.

        Raises ``TypeError`` for a literal that cannot be compared with the values.
        """
        inner = leaf.operand if isinstance(leaf, Not) else leaf
        kind = kind_of_arrow(self.low.type)
        if kind is None or kind.name == "null" or not isinstance(inner, Comparison | IsIn | Matches):
            return None
        low, high = comparable(self.low), comparable(self.high)
        top = high
        if pa.types.is_floating(low.type):
            low = pc.if_else(pc.is_nan(low), None, low)
            top = high if self.shows_nan else pa.nulls(len(high), high.type)
        compared = _ComparedRanges(low, high, top)
        if isinstance(leaf, Not) and isinstance(inner, IsIn):
            return compared.is_not_in([compared_value(value, kind, inner.operand) for value in inner.values])
        alternatives: list[pa.Array] = []
        for conjunction in questions(inner, kind, isinstance(leaf, Not)):
            proofs = [result for result in map(compared.may_match, conjunction) if result is not None]
            if not proofs:
                return None
            alternatives.append(reduce(pc.and_kleene, proofs))
        return reduce(pc.or_kleene, alternatives)


@dataclass(frozen=True, slots=True)
class _ComparedRanges:
    low: pa.Array
    high: pa.Array
    """Above every number, but possibly below NaN."""
    top: pa.Array
    """Above every value."""

    def may_match(self, predicate: Predicate) -> pa.Array | None:
        match predicate:
            case core.Comparison():
                return self._compare(predicate.operator, predicate.value)
            case core.IsIn():
                return self._is_in(predicate.values)
        return None

    def is_not_in(self, values: Sequence[Value]) -> pa.Array:
        """Exclude ranges of a single value that is listed."""
        is_single, is_listed = related(self.low, "==", self.top), is_in(self.low, tuple(values))
        return pc.invert(pc.and_kleene(is_single, is_listed))

    def _compare(self, operator: Operator, value: Value) -> pa.Array:
        match operator:
            case "<" | "<=":
                return compare(self.low, operator, value)
            case ">" | ">=":
                return compare(self.top, operator, value)
            case "!=":
                return pc.or_kleene(compare(self.low, "!=", value), compare(self.top, "!=", value))
        return self._overlaps(value, value)

    def _overlaps(self, first: Value, last: Value) -> pa.Array:
        """Whether the range overlaps the range from ``first`` to ``last``."""
        above = self.top if last != last else self.high
        return pc.and_kleene(compare(self.low, "<=", last), compare(above, ">=", first))

    def _is_in(self, values: Sequence[Any]) -> pa.Array:
        numbers = sorted(value for value in values if value == value)
        size = -(-len(numbers) // _RANGES) or 1
        ranges = [(part[0], part[-1]) for at in range(0, len(numbers), size) if (part := numbers[at : at + size])]
        ranges += [(value, value) for value in values if value != value][:1]
        result = pa.repeat(pa.scalar(False), len(self.low))
        for first, last in ranges:
            result = pc.or_kleene(result, self._overlaps(first, last))
        return result


def flat_leaf(file: ParquetFile, column: Column) -> SchemaNode | None:
    """Return the leaf with one value per row; None if the column is missing or of another type."""
    try:
        node = find(file.schema, column)
    except (TypeError, ValueError):
        return None
    is_plain = node.is_leaf and not node.max_repetition_level and for_logical(node.logical_name) is None
    return node if is_plain else None


def all_bounds(file: ParquetFile, column: Column) -> list[Bounds] | None:
    """Return the bounds of each non-empty row group; None for a column without one value per row."""
    node = flat_leaf(file, column)
    if node is None or not file.options.trust_statistics:
        return None
    return [group.bounds(node) for group in file.row_groups if group.num_rows]


def known_range(file: ParquetFile, column: Column, type: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    """Return bounds of all values as arrays of length 1, NaN above if there is one; None if not proved."""
    bounds = all_bounds(file, column)
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
        low = as_arrow(min(lows), type) if lows else pa.scalar(None, type)
        high = as_arrow(max(highs), type) if highs else pa.scalar(None, type)
        if is_float and any(group.has_nan for group in filled):
            high = pa.scalar(nan, type)
        return None if low is None or high is None else (pa.repeat(low, 1), pa.repeat(high, 1))
    except (TypeError, ValueError, OverflowError, pa.ArrowException):  # not a value of the column
        return None
