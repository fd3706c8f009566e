"""Which ranges of values may hold one for which a condition is true.

Each rule is a proof (``specs/skipping.md``): a range is refused only where the condition is false or null for every
value between its ends. An end that is null is not known, and refuses nothing. Comparisons are those of
:mod:`pqext.dataset.evaluation`, so that ranges are compared exactly as rows are; NaN is above every number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.format.predicate import Operator, Value
from pqext.dataset.evaluation.comparing import related
from pqext.dataset.evaluation.evaluate import comparable, compare, is_in
from pqext.dataset.evaluation.operand_values import check_matched
from pqext.dataset.expressions import Comparison, Expression, IsIn, Matches, Not
from pqext.dataset.expressions.literals import Kind, kind_of_arrow
from pqext.dataset.expressions.mistakes import compared_value
from pqext.dataset.expressions.patterns import is_exact, prefix_of, successor

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
        kind = kind_of_arrow(self.low.type)
        if kind is None or kind.name == "null":
            return None
        low, high = comparable(self.low), comparable(self.high)
        top = high
        if pa.types.is_floating(low.type):
            low = pc.if_else(pc.is_nan(low), None, low)
            top = high if self.shows_nan else pa.nulls(len(high), high.type)
        return _Compared(low, high, top, kind).may_match(leaf)


@dataclass(frozen=True, slots=True)
class _Compared:
    low: pa.Array
    high: pa.Array
    """Above every number, but maybe not above NaN."""
    top: pa.Array
    """Above every value."""
    kind: Kind

    def may_match(self, leaf: Expression) -> pa.Array | None:
        match leaf:
            case Comparison():
                return self._compare(leaf.operator, compared_value(leaf.value, self.kind, leaf.operand))
            case IsIn():
                return self._is_in(self._values(leaf))
            case Not(operand=IsIn() as inner):
                same, held = related(self.low, "==", self.top), is_in(self.low, tuple(self._values(inner)))
                return pc.invert(pc.and_kleene(same, held))
            case Matches():
                return self._matches(leaf)
            case Not(operand=Matches() as inner):
                return self._matches_not(inner)
        return None

    def _values(self, leaf: IsIn) -> list[Value]:
        return [compared_value(value, self.kind, leaf.operand) for value in leaf.values]

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

    def _matches(self, leaf: Matches) -> pa.Array | None:
        check_matched(self.kind, leaf)
        prefix, _ = prefix_of(leaf.how, leaf.pattern, leaf.escape)
        if is_exact(leaf.how, leaf.pattern, leaf.escape):
            return self._compare("==", prefix)
        if not prefix:
            return None
        above, at_least = successor(prefix), compare(self.top, ">=", prefix)
        return at_least if above is None else pc.and_kleene(at_least, compare(self.low, "<", above))

    def _matches_not(self, leaf: Matches) -> pa.Array | None:
        check_matched(self.kind, leaf)
        prefix, is_all = prefix_of(leaf.how, leaf.pattern, leaf.escape)
        above = successor(prefix)
        if is_exact(leaf.how, leaf.pattern, leaf.escape):
            return self._compare("!=", prefix)
        if not is_all or not prefix or above is None:
            return None
        return pc.or_kleene(compare(self.low, "<", prefix), compare(self.top, ">=", above))
