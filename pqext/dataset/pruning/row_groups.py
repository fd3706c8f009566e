"""Which row groups of a file can hold rows that a filter keeps, from statistics and Bloom filters.

"Cannot match" is a proof; everything unknown may match. The answer reads: And needs all its operands, Or one,
a leaf all its questions, each put to the statistics of a leaf column or to the handler of an annotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pqext.core.format.predicate import Comparison, IsIn, IsNotNull, IsNull, is_equality, may_match, within
from pqext.core.schema.annotations import for_logical
from pqext.dataset.expressions.literals import value_text
from pqext.dataset.pruning.binding import AllOf, AnyOf, Bound, Derived, Leaf, Question

if TYPE_CHECKING:
    from pqext.core.format.predicate import Bounds
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode


def row_group_may_match(bound: Bound, row_group: RowGroupFacts) -> bool:
    """Test whether a row of ``row_group`` may match. False only if its metadata proves that none does."""
    match bound:
        case AllOf():
            return all(row_group_may_match(operand, row_group) for operand in bound.operands)
        case AnyOf():
            return any(row_group_may_match(operand, row_group) for operand in bound.operands)
        case Derived():
            return bound.may_match(row_group.bounds)
    return all(_answer(bound.node, row_group, question) for question in bound.questions)


def prune_reason(bound: Bound, row_group: RowGroupFacts) -> str | None:
    """Prove that no row of ``row_group`` matches, as text; None if a row may match."""
    found = proof(bound, row_group)
    return None if found is None else found.reason


class Proof(NamedTuple):
    """Proof that no row of a row group matches."""

    reason: str
    """The proof as text."""
    evidence: tuple[str, ...]
    """Evidence for pruning, in a word or two."""


def proof(bound: Bound, row_group: RowGroupFacts) -> Proof | None:
    """Prove that no row of ``row_group`` matches; None if a row may match."""
    match bound:
        case AllOf():
            return next(filter(None, (proof(operand, row_group) for operand in bound.operands)), None)
        case AnyOf():
            every: list[Proof] = []
            for operand in bound.operands:
                found = proof(operand, row_group)
                if found is None:
                    return None
                every.append(found)
            reasons = dict.fromkeys(one.reason for one in every)
            return Proof("; ".join(reasons), tuple(sorted({word for one in every for word in one.evidence})))
    if row_group_may_match(bound, row_group):
        return None
    if isinstance(bound, Derived):
        return Proof(f"{bound.expression} is true of no row, by the bounds of its columns", _STATISTICS)
    node = bound.node
    if for_logical(node.logical_name) is not None:
        evidence = "variant leaf" if node.logical_name == "VARIANT" else "box"
        return Proof(f"{bound.text} is true of no row{_known(bound, row_group)}", (evidence,))
    if not node.is_leaf:
        return Proof(f"{bound.text} is true of no row", _STATISTICS)
    is_by_filter = bound.compared and _may_match_all(bound, row_group.bounds(node))
    return Proof(
        f"{bound.text} is true of no row{_known(bound, row_group)}", ("Bloom filter",) if is_by_filter else _STATISTICS
    )


_STATISTICS = ("statistics",)


def _may_match_all(leaf: Leaf, bounds: Bounds) -> bool:
    return all(may_match(question, bounds) for question in leaf.compared)


def _answer(node: SchemaNode, row_group: RowGroupFacts, question: Question) -> bool:
    if isinstance(question, IsNull | IsNotNull):
        return _answer_null(node, row_group, question)
    annotation = for_logical(node.logical_name)
    if annotation is not None:
        return annotation.load().may_match(node, row_group, question)
    if not isinstance(question, Comparison | IsIn):
        return True  # one for a handler that is not there
    bounds = row_group.bounds(node)
    if not may_match(question, bounds):
        return False
    return not is_equality(question) or row_group.chunk(node).may_contain(within(question, bounds))


def _answer_null(node: SchemaNode, row_group: RowGroupFacts, question: IsNull | IsNotNull) -> bool:
    """Return null bounds of a group: it is null where all of its leaves are null."""
    for leaf in node.leaves():
        if leaf.max_repetition_level:
            continue  # an entry of a list is not a row
        if leaf.max_definition_level == node.max_definition_level:
            return may_match(question, row_group.bounds(leaf))
        if isinstance(question, IsNull) and not may_match(question, row_group.bounds(leaf)):
            return False
    return True


def _known(leaf: Leaf, row_group: RowGroupFacts) -> str:
    if not leaf.node.is_leaf:
        return ""
    bounds = row_group.bounds(leaf.node)
    if bounds.all_null:
        return ": all values are null"
    asked = leaf.compared
    if asked and _may_match_all(leaf, bounds):
        return ": its Bloom filter does not hold the value"
    if bounds.has_nan is False and any(map(_asks_for_nan, asked)):
        return ": no value is NaN"
    if bounds.minimum is None or bounds.maximum is None:
        return ""
    low, high = value_text(bounds.minimum, leaf.kind), value_text(bounds.maximum, leaf.kind)
    return f": values lie between {low} and {high}"


def _asks_for_nan(question: Comparison | IsIn) -> bool:
    return isinstance(question, Comparison) and question.value != question.value
