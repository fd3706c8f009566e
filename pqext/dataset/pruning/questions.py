"""Convert comparisons with literals to predicates that bounds can disprove."""

from __future__ import annotations

from pqext.core.format.predicate import Comparison, IsIn, IsNotNull, Predicate, Value
from pqext.dataset import expressions as e
from pqext.dataset.evaluation.operand_values import check_pattern_type
from pqext.dataset.expressions import NEGATED
from pqext.dataset.expressions.literals import ValueType
from pqext.dataset.expressions.mistakes import compared_value
from pqext.dataset.expressions.patterns import is_exact, prefix_of, successor


def questions(
    leaf: e.Comparison | e.IsIn | e.Matches, value_type: ValueType, is_negated: bool = False
) -> tuple[tuple[Predicate, ...], ...]:
    """Return alternative sets of predicates: if ``leaf`` is true of a value, all predicates of one set are true of it.

    The predicates are on values of ``value_type``. With ``is_negated``, they are implied by the negation of ``leaf``.
    Raises ``TypeError`` if a literal cannot be compared with the values.
    """
    match leaf:
        case e.Comparison():
            operator = NEGATED[leaf.operator] if is_negated else leaf.operator
            return ((Comparison(operator, compared_value(leaf.value, value_type, leaf.operand)),),)
        case e.IsIn():
            values = tuple(compared_value(value, value_type, leaf.operand) for value in leaf.values)
            return (_membership(values, leaf.has_null, is_negated),)
    check_pattern_type(value_type, leaf)
    return _prefix_predicates(leaf, is_negated)


def _membership(values: tuple[Value, ...], has_null: bool, is_negated: bool) -> tuple[Predicate, ...]:
    if is_negated and has_null:
        return (IsIn(()),)  # true of no value: each might equal the null
    if is_negated:
        return tuple(Comparison("!=", value) for value in values) or (IsNotNull(),)
    return (IsIn(tuple(sorted(values, key=lambda value: (value != value, value))), ascending=True),)  # NaN is last


def _prefix_predicates(leaf: e.Matches, is_negated: bool) -> tuple[tuple[Predicate, ...], ...]:
    """Return predicates on text with a prefix: it lies between the prefix and its successor or, if negated, outside."""
    prefix, is_all = prefix_of(leaf.how, leaf.pattern, leaf.escape)
    above = successor(prefix)
    if is_exact(leaf.how, leaf.pattern, leaf.escape):
        return ((Comparison("!=" if is_negated else "==", prefix),),)
    if not is_negated and prefix:
        return ((Comparison(">=", prefix), *(() if above is None else (Comparison("<", above),))),)
    if is_negated and is_all and prefix and above is not None:
        return (Comparison("<", prefix),), (Comparison(">=", above),)
    return ((IsNotNull(),),)
