"""The parts of a filter that must all be true, and the leaves that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pqext.core.schema.facts import RowGroupFacts
from pqext.core.schema.nodes import Schema
from pqext.dataset.expressions import And, Expression, VariantField
from pqext.dataset.expressions.visitors import operands
from pqext.dataset.planning.projection import leaf_of
from pqext.dataset.pruning.binding import find


def conjuncts_of(expression: Expression) -> list[Expression]:
    """Split an expression at its top-level ANDs."""
    if not isinstance(expression, And):
        return [expression]
    return [part for operand in expression.operands for part in conjuncts_of(operand)]


@dataclass(frozen=True)
class Conjunct:
    """A part of a filter, and the leaves that it needs by their top-level columns."""

    filter: Expression
    names: tuple[str, ...]
    tops: Mapping[str, frozenset[int]]
    schema: Schema
    asked: tuple[tuple[int, int], ...] = ()

    @cached_property
    def leaves(self) -> frozenset[int]:
        """All leaves that it needs."""
        return frozenset(leaf for _, leaf in self.asked).union(*self.tops.values())

    @cached_property
    def _fields(self) -> list[VariantField] | None:
        """Return the operands if all of them are fields of VARIANT columns."""
        found = [one for one in operands(self.filter) if isinstance(one, VariantField)]
        nodes = [find(self.schema, one.column) for one in found]
        is_all = len(found) == len(operands(self.filter)) and all(node.logical_name == "VARIANT" for node in nodes)
        return found if is_all else None

    @property
    def is_within_variants(self) -> bool:
        """Whether a row group may store every operand in a shredded leaf."""
        return self._fields is not None

    def of_group(self, group: RowGroupFacts) -> Conjunct:
        """The part as a row group holds it: where leaves hold all values that it asks about, they are all it needs."""
        asked = []
        for place, field in enumerate(self._fields or ()):
            leaf = leaf_of(field, group)
            if leaf is None:
                return self
            asked.append((place, leaf.leaf_start))
        return replace(self, names=(), tops={}, asked=tuple(asked)) if asked else self
