"""Split a filter into conjuncts, determine the leaves that each conjunct reads, and order conjuncts by cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from pqext.core.format.predicate import Bounds
from pqext.core.read.reader import ParquetFile
from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import Schema
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
    VariantField,
)
from pqext.dataset.expressions.literals import is_duration, to_value, value_type_of_node
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.planning.plan import Stage
from pqext.dataset.planning.projection import leaf_of
from pqext.dataset.pruning.binding import find


def conjuncts_of(expression: Expression) -> list[Expression]:
    """Split an expression at its top-level ANDs."""
    if not isinstance(expression, And):
        return [expression]
    return [part for operand in expression.operands for part in conjuncts_of(operand)]


@dataclass(frozen=True)
class Conjunct:
    """A conjunct of a filter, and the leaves to read for it, grouped by top-level column."""

    filter: Expression
    names: tuple[str, ...]
    tops: Mapping[str, frozenset[int]]
    schema: Schema
    asked: tuple[tuple[int, int], ...] = ()

    @cached_property
    def leaves(self) -> frozenset[int]:
        """The leaves that the conjunct reads."""
        return frozenset(leaf for _, leaf in self.asked).union(*self.tops.values())

    @cached_property
    def _fields(self) -> list[VariantField] | None:
        """The operands of the conjunct, or None if any operand is not a field of a VARIANT column."""
        results = [operand for operand in operands(self.filter) if isinstance(operand, VariantField)]
        nodes = [find(self.schema, item.column) for item in results]
        is_all = len(results) == len(operands(self.filter)) and all(node.logical_name == "VARIANT" for node in nodes)
        return results if is_all else None

    @property
    def is_within_variants(self) -> bool:
        """Whether all operands are fields of VARIANT columns, which a row group may store in shredded leaves."""
        return self._fields is not None

    def bind_row_group(self, group: RowGroupFacts) -> Conjunct:
        """Adapt the conjunct to the leaves of one row group.

        If all operands are VARIANT fields that the row group stores in separate leaves, only these leaves are read.
        """
        leaves = []
        for position, variant_field in enumerate(self._fields or ()):
            leaf = leaf_of(variant_field, group)
            if leaf is None:
                return self
            leaves.append((position, leaf.leaf_start))
        return replace(self, names=(), tops={}, asked=tuple(leaves)) if leaves else self


_UNKNOWN = 0.3
"""Assumed share of matching rows if nothing is known."""
_EQUAL = 0.1
_LEAST = 0.01


def estimate_selectivity(condition: Expression, group: RowGroupFacts) -> float:
    """Estimate the fraction of a row group's rows that match, assuming uniform distribution between the bounds."""
    match condition:
        case And():
            share = 1.0
            for operand in condition.operands:
                share *= estimate_selectivity(operand, group)
            return share
        case Or():
            return min(1.0, sum(estimate_selectivity(operand, group) for operand in condition.operands))
        case Not():
            return 1 - estimate_selectivity(condition.operand, group)
        case Comparison() | IsIn() | IsNull() | IsNotNull() if isinstance(condition.operand, Column):
            node = find(group.schema, condition.operand)
            if node.is_leaf and not node.max_repetition_level:
                return _leaf_selectivity(condition, group.chunk(node).bounds(), value_type_of_node(node))
    return _UNKNOWN


def _leaf_selectivity(condition: Comparison | IsIn | IsNull | IsNotNull, bounds: Bounds, value_type: Any) -> float:
    nulls = None
    if bounds.null_count is not None and bounds.num_values:
        nulls = bounds.null_count / bounds.num_values
    if isinstance(condition, IsNull):
        return _EQUAL if nulls is None else nulls
    if isinstance(condition, IsNotNull):
        return 1 - _EQUAL if nulls is None else 1 - nulls
    present = 1 - (nulls or 0)
    low, high = bounds.minimum, bounds.maximum
    if isinstance(condition, IsIn):
        return present * min(1.0, len(condition.values) * _equality_selectivity(low, high))
    if condition.operator in ("==", "!="):
        equal = _equality_selectivity(low, high)
        return present * (equal if condition.operator == "==" else 1 - equal)
    if value_type is None or not isinstance(low, int | float | Decimal) or not isinstance(high, int | float | Decimal):
        return present * _UNKNOWN
    if is_duration(condition.value):
        return present * _UNKNOWN
    value = to_value(condition.value, value_type, "")
    if not isinstance(value, int | float | Decimal) or value != value or float(high) <= float(low):
        return present * _UNKNOWN
    below = min(max((float(value) - float(low)) / (float(high) - float(low)), 0.0), 1.0)
    return present * (below if condition.operator in ("<", "<=") else 1 - below)


def _equality_selectivity(low: Any, high: Any) -> float:
    """Estimate the fraction of rows that equal a literal, if the values are in the range ``low`` to ``high``."""
    is_counted = type(low) is int and type(high) is int and high >= low
    return 1 / (high - low + 1) if is_counted else _EQUAL


def rank(cost: float, share: float) -> float:
    """Return the cost of a condition per row that the condition removes. Conditions are evaluated in this order."""
    return cost / max(1 - share, _LEAST)


@dataclass(slots=True)
class PassRates:
    """Counters of evaluated rows and of matching rows for each condition."""

    counts: dict[Expression, tuple[int, int]] = field(default_factory=dict)

    def count(self, condition: Expression, rows: int, matches: int) -> None:
        """Record that ``matches`` of ``rows`` rows matched a condition."""
        before = self.counts.get(condition, (0, 0))
        self.counts[condition] = before[0] + rows, before[1] + matches

    def order_stages(self, stages: Sequence[Stage], file: ParquetFile, row_group: int) -> Sequence[Stage]:
        """Order the filter stages by observed cost; keep the order if nothing has been observed."""
        *filters, last = stages
        if len(filters) < 2 or any(one.filter is None or not self.counts.get(one.filter, (0, 0))[0] for one in filters):
            return stages
        group, ranks = file.row_groups[row_group], {}
        for number, stage in enumerate(filters):
            nodes = [file.schema.find(name) for name in stage.columns or ()]
            leaves = {leaf.leaf_start for node in nodes if node is not None for leaf in node.leaves()}
            leaves |= {leaf for _, leaf in stage.asked}
            requested, passed = self.counts[stage.filter] if stage.filter is not None else (1, 1)
            ranks[number] = rank(sum(group.chunk(leaf).byte_range[1] for leaf in leaves), passed / requested)
        return [*(filters[number] for number in sorted(ranks, key=ranks.__getitem__)), last]
