"""Which ranges of values may hold one for which a condition is true.

Each rule is a proof (``specs/skipping.md``): a range is refused only where the condition is false or null for every
value between its ends. An end that is null is not known, and refuses nothing. Comparisons are those of
:mod:`pqext.dataset.evaluation`, so that ranges are compared exactly as rows are; NaN is above every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format import predicate as core
from pqext.core.format.predicate import Operator, Predicate, Value
from pqext.dataset.evaluation.comparison import related
from pqext.dataset.evaluation.evaluate import comparable, compare, is_in
from pqext.dataset.expressions import Comparison, Expression, IsIn, Matches, Not
from pqext.dataset.expressions.literals import kind_of_arrow
from pqext.dataset.expressions.mistakes import compared_value
from pqext.dataset.pruning.questions import questions

_RANGES = 64
"""Ranges that the values of a long list are put in, by order."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The values of objects lie between ``low`` and ``high``, NaN and null apart; null is an end that is not known."""

    low: pa.Array
    high: pa.Array
    shows_nan: bool
    """Is ``high`` NaN wherever a value is? Of other types than floats it does not matter."""

    def may_match(self, leaf: Expression) -> pa.Array | None:
        """For each range, can ``leaf`` be true of a value in it? False is a proof; None proves nothing of any.

        Raises ``TypeError`` for a literal that does not compare with the values.
        """
        asked = leaf.operand if isinstance(leaf, Not) else leaf
        kind = kind_of_arrow(self.low.type)
        if kind is None or kind.name == "null" or not isinstance(asked, Comparison | IsIn | Matches):
            return None
        low, high = comparable(self.low), comparable(self.high)
        top = high
        if pa.types.is_floating(low.type):
            low = pc.if_else(pc.is_nan(low), None, low)
            top = high if self.shows_nan else pa.nulls(len(high), high.type)
        compared = _Compared(low, high, top)
        if isinstance(leaf, Not) and isinstance(asked, IsIn):
            return compared.is_not_in([compared_value(value, kind, asked.operand) for value in asked.values])
        found: list[pa.Array] = []
        for together in questions(asked, kind, isinstance(leaf, Not)):
            known = [one for one in map(compared.may_match, together) if one is not None]
            if not known:
                return None
            found.append(reduce(pc.and_kleene, known))
        return reduce(pc.or_kleene, found)


@dataclass(frozen=True, slots=True)
class _Compared:
    low: pa.Array
    high: pa.Array
    """Above every number, but maybe not above NaN."""
    top: pa.Array
    """Above every value."""

    def may_match(self, question: Predicate) -> pa.Array | None:
        match question:
            case core.Comparison():
                return self._compare(question.operator, question.value)
            case core.IsIn():
                return self._is_in(question.values)
        return None

    def is_not_in(self, values: Sequence[Value]) -> pa.Array:
        """Only a range of one value that is listed holds none that is not."""
        same, held = related(self.low, "==", self.top), is_in(self.low, tuple(values))
        return pc.invert(pc.and_kleene(same, held))

    def _compare(self, operator: Operator, value: Value) -> pa.Array:
        match operator:
            case "<" | "<=":
                return compare(self.low, operator, value)
            case ">" | ">=":
                return compare(self.top, operator, value)
            case "!=":
                return pc.or_kleene(compare(self.low, "!=", value), compare(self.top, "!=", value))
        return self._meets(value, value)

    def _meets(self, first: Value, last: Value) -> pa.Array:
        """Does the range meet the one from ``first`` to ``last``?"""
        above = self.top if last != last else self.high
        return pc.and_kleene(compare(self.low, "<=", last), compare(above, ">=", first))

    def _is_in(self, values: Sequence[Any]) -> pa.Array:
        numbers = sorted(value for value in values if value == value)
        size = -(-len(numbers) // _RANGES) or 1
        ranges = [(part[0], part[-1]) for at in range(0, len(numbers), size) if (part := numbers[at : at + size])]
        ranges += [(value, value) for value in values if value != value][:1]
        found = pa.repeat(pa.scalar(False), len(self.low))
        for first, last in ranges:
            found = pc.or_kleene(found, self._meets(first, last))
        return found
