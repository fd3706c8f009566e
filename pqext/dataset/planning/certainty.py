"""Prove that rows match from statistics and page indexes, without reading values.

A row is certain to match if the negation of the condition cannot be true and no operand can be null. The proof is as
reliable as pruning in :mod:`pqext.dataset.pruning.row_groups`. Without a proof, a row is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import reduce

from pqext.core.read.reader import ParquetFile
from pqext.core.read.row_group import RowGroup
from pqext.core.schema.row_ranges import RowRanges, difference, intersection, union
from pqext.dataset.expressions import And, Column, Comparison, Expression, IsIn, IsNotNull, IsNull, Not, Or
from pqext.dataset.expressions.visitors import push_down_not
from pqext.dataset.planning.plan import RowGroupPlan
from pqext.dataset.pruning.binding import bind
from pqext.dataset.pruning.row_groups import rows_that_may_match


def certain_rows(condition: Expression, group: RowGroup) -> RowRanges:
    """Return the rows of ``group`` where ``condition`` is proved to be true."""
    return [] if group.num_rows <= 0 else _certain_rows(push_down_not(condition), group)


def _certain_rows(condition: Expression, group: RowGroup) -> RowRanges:
    whole = [range(group.num_rows)]
    match condition:
        case And():
            return reduce(intersection, (_certain_rows(item, group) for item in condition.operands), whole)
        case Or():
            return reduce(union, (_certain_rows(operand, group) for operand in condition.operands), [])
    leaf = condition.operand if isinstance(condition, Not) else condition
    if not isinstance(leaf, Comparison | IsIn | IsNull | IsNotNull) or not isinstance(leaf.operand, Column):
        return []
    if isinstance(leaf, IsIn) and leaf.has_null:  # null in the list: null for other values, true for listed ones
        return [] if isinstance(condition, Not) else _certain_rows(IsIn(leaf.operand, leaf.values), group)
    left = difference(whole, _possible_rows(push_down_not(condition, negate=True), group))
    if left and isinstance(leaf, Comparison | IsIn):
        left = difference(left, _possible_rows(IsNull(leaf.operand), group))
    return left


def _possible_rows(condition: Expression, group: RowGroup) -> RowRanges:
    return rows_that_may_match(bind(condition, group.schema), group)


def can_be_certain(file: ParquetFile) -> bool:
    """Return whether the options of a file allow the use of statistics instead of values."""
    options = file.options
    return options.may_skip_values and options.trust_statistics


def split_plans(
    plans: Iterable[RowGroupPlan], file: ParquetFile, condition: Expression | None, is_exact: bool
) -> tuple[list[RowGroupPlan], list[RowGroupPlan]]:
    """Separate the row groups in which all rows are known to match from the row groups that must be read.

    If not ``is_exact``, the ``condition`` may be true for rows that do not match, so no plan is certain.
    """
    certain: list[RowGroupPlan] = []
    others: list[RowGroupPlan] = []
    for plan in plans:
        if plan.prune_reason is not None:
            continue
        group = file.row_groups[plan.index]
        whole = [range(group.num_rows)]
        is_certain = is_exact and can_be_certain(file) and plan.rows in (None, whole) and (
            condition is None or certain_rows(condition, group) == whole
        )
        (certain if is_certain else others).append(plan)
    return certain, others


def uncertain_plans(
    plans: Iterable[RowGroupPlan], file: ParquetFile, condition: Expression, on_certain: Callable[[int], None]
) -> Iterator[RowGroupPlan]:
    """Exclude rows that are certain to match from ``plans``, and pass the number of these rows to ``on_certain``."""
    for plan in plans:
        if plan.prune_reason is None and can_be_certain(file) and plan.index not in file.deleted_rows:
            rows = [range(plan.num_rows)] if plan.rows is None else plan.rows
            sure = intersection(rows, certain_rows(condition, file.row_groups[plan.index]))
            if sure:
                on_certain(sum(map(len, sure)))
                plan = replace(plan, rows=difference(rows, sure))
        yield plan
