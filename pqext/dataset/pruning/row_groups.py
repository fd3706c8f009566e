"""Which row groups of a file can hold rows that a filter keeps, from statistics and Bloom filters.

"Cannot match" is a proof; everything unknown may match. The answer reads: And needs all its operands, Or one,
a leaf all its questions, each put to the statistics of a leaf column or to the handler of an annotation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pqext.core.annotations import for_logical
from pqext.core.predicate import Comparison, IsIn, IsNotNull, IsNull, may_match, within
from pqext.dataset.expressions.literals import kind_of_node, value_text
from pqext.dataset.pruning.binding import AllOf, AnyOf, Bound, Derived, Leaf, Question

if TYPE_CHECKING:
    from pqext.core.facts import RowGroupFacts
    from pqext.core.schema import SchemaNode


def row_group_may_match(bound: Bound, row_group: RowGroupFacts) -> bool:
    """Can a row of ``row_group`` be true? False only when what is stored of it proves that none is."""
    match bound:
        case AllOf():
            return all(row_group_may_match(operand, row_group) for operand in bound.operands)
        case AnyOf():
            return any(row_group_may_match(operand, row_group) for operand in bound.operands)
        case Derived():
            return bound.may_match(lambda node: row_group.chunk(node).bounds())
    return all(_answer(bound.node, row_group, question) for question in bound.questions)


def refusal(bound: Bound, row_group: RowGroupFacts) -> str | None:
    """Why no row of ``row_group`` can be true, for people to read; None when one may be."""
    match bound:
        case AllOf():
            return next(filter(None, (refusal(operand, row_group) for operand in bound.operands)), None)
        case AnyOf():
            reasons = [refusal(operand, row_group) for operand in bound.operands]
            return None if None in reasons else "; ".join(dict.fromkeys(filter(None, reasons)))
    if row_group_may_match(bound, row_group):
        return None
    if isinstance(bound, Derived):
        return f"{bound.expression} is true of no row, by the bounds of its columns"
    return f"{bound.expression} is true of no row{_known(bound, row_group)}"


def evidence(bound: Bound, row_group: RowGroupFacts) -> tuple[str, ...]:
    """What proves that no row of ``row_group`` can be true, in a word or two each; empty when one may be."""
    match bound:
        case AllOf():
            return next(filter(None, (evidence(operand, row_group) for operand in bound.operands)), ())
        case AnyOf():
            every = [evidence(operand, row_group) for operand in bound.operands]
            return tuple(sorted(set().union(*every))) if all(every) else ()
    if row_group_may_match(bound, row_group):
        return ()
    if isinstance(bound, Derived):
        return ("statistics",)
    if for_logical(bound.node.logical_name) is not None:
        return ("variant leaf" if bound.node.logical_name == "VARIANT" else "box",)
    asked = [question for question in bound.questions if isinstance(question, Comparison | IsIn)]
    if asked and bound.node.is_leaf:
        bounds = row_group.chunk(bound.node).bounds()
        if all(may_match(question, bounds) for question in asked):
            return ("Bloom filter",)
    return ("statistics",)


def _answer(node: SchemaNode, row_group: RowGroupFacts, question: Question) -> bool:
    if isinstance(question, IsNull | IsNotNull):
        return _answer_null(node, row_group, question)
    annotation = for_logical(node.logical_name)
    if annotation is not None:
        return annotation.load().may_match(node, row_group, question)
    if not isinstance(question, Comparison | IsIn):
        return True  # one for a handler that is not there
    chunk = row_group.chunk(node)
    bounds = chunk.bounds()
    return may_match(question, bounds) and chunk.may_contain(within(question, bounds))


def _answer_null(node: SchemaNode, row_group: RowGroupFacts, question: IsNull | IsNotNull) -> bool:
    """A group is null where all of its leaves are: a leaf without nulls proves that the group has none."""
    for leaf in node.leaves():
        if leaf.max_repetition_level:
            continue  # an entry of a list is not a row
        if leaf.max_definition_level == node.max_definition_level:
            return may_match(question, row_group.chunk(leaf).bounds())
        if isinstance(question, IsNull) and not may_match(question, row_group.chunk(leaf).bounds()):
            return False
    return True


def _known(leaf: Leaf, row_group: RowGroupFacts) -> str:
    if not leaf.node.is_leaf:
        return ""
    bounds = row_group.chunk(leaf.node).bounds()
    if bounds.all_null:
        return ": all values are null"
    asked = [question for question in leaf.questions if isinstance(question, Comparison | IsIn)]
    if asked and all(may_match(question, bounds) for question in asked):
        return ": its Bloom filter does not hold the value"
    if bounds.has_nan is False and any(map(_asks_for_nan, asked)):
        return ": no value is NaN"
    if bounds.minimum is None or bounds.maximum is None:
        return ""
    kind = kind_of_node(leaf.node)
    return f": values lie between {value_text(bounds.minimum, kind)} and {value_text(bounds.maximum, kind)}"


def _asks_for_nan(question: Comparison | IsIn) -> bool:
    return isinstance(question, Comparison) and question.value != question.value
