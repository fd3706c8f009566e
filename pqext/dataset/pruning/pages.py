"""Rows of a row group that may match a filter, by the page indexes of its columns.

As in :mod:`pqext.dataset.pruning.row_groups`, pruned rows do not match. Pages of different columns start and end at
different rows, so results are row ranges: And intersects them, Or unites them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING

from pqext.core.format.predicate import Bounds, Comparison, IsIn, IsNotNull, IsNull
from pqext.core.indexes.page_index import matching_rows
from pqext.core.schema.annotations import for_logical
from pqext.core.schema.row_ranges import RowRanges, intersection, merged, union
from pqext.dataset.pruning.binding import AllOf, AnyOf, Bound, Derived, Question
from pqext.dataset.pruning.row_groups import row_group_may_match

if TYPE_CHECKING:
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode


def rows_that_may_match(bound: Bound, row_group: RowGroupFacts) -> RowRanges:
    """Return the rows of ``row_group`` that may match. Columns without a page index do not prune rows."""
    if not row_group_may_match(bound, row_group):
        return []
    whole = [range(row_group.num_rows)]
    match bound:
        case AllOf():
            return reduce(intersection, (rows_that_may_match(operand, row_group) for operand in bound.operands), whole)
        case AnyOf():
            return reduce(union, (rows_that_may_match(operand, row_group) for operand in bound.operands), [])
        case Derived():
            return _derived_rows(bound, row_group)
    answers = (_rows(bound.node, row_group, question) for question in bound.questions)
    return reduce(intersection, (whole if answer is None else answer for answer in answers), whole)


def _derived_rows(bound: Derived, row_group: RowGroupFacts) -> RowRanges:
    """Return the rows between page boundaries of its columns whose bounds allow the condition."""
    nodes = {node.leaf_start: node for node in bound.nodes.values() if node is not None}
    pages = {leaf: found for leaf, node in nodes.items() if (found := row_group.chunk(node).pages) is not None}
    whole = {leaf: row_group.chunk(node).bounds() for leaf, node in nodes.items() if leaf not in pages}
    starts = {0} | {found.rows(page).start for found in pages.values() for page in range(len(found))}
    cuts = [*sorted(starts), row_group.num_rows]
    at = dict.fromkeys(pages, 0)
    kept = []
    for start, stop in pairwise(cuts):
        for leaf, found in pages.items():
            while found.rows(at[leaf]).stop <= start:
                at[leaf] += 1
        known = {leaf: found.bounds[at[leaf]] for leaf, found in pages.items()} | whole
        if bound.may_match(partial(_of_leaf, known)):
            kept.append(range(start, stop))
    return merged(kept)


def _of_leaf(known: Mapping[int, Bounds], node: SchemaNode) -> Bounds:
    return known[node.leaf_start]


def chosen_rows(bound: Bound, row_group: RowGroupFacts) -> RowRanges | None:
    """Return the rows of ``row_group`` that may match by its page indexes; ``None`` if all may."""
    if row_group.num_rows <= 0:  # the reader reports the fault
        return None
    rows = rows_that_may_match(bound, row_group)
    return None if rows == [range(row_group.num_rows)] else rows


def _rows(node: SchemaNode, row_group: RowGroupFacts, question: Question) -> RowRanges | None:
    """Return the rows that may satisfy one predicate on ``node``; None if all may."""
    if isinstance(question, IsNull | IsNotNull):
        return _rows_by_nulls(node, row_group, question)
    annotation = for_logical(node.logical_name)
    if annotation is not None:
        return annotation.load().matching_rows(node, row_group, question)
    if node.max_repetition_level or not node.is_leaf or not isinstance(question, Comparison | IsIn):
        return None
    pages = row_group.chunk(node).pages
    return None if pages is None else matching_rows(pages, question)


def _rows_by_nulls(node: SchemaNode, row_group: RowGroupFacts, question: IsNull | IsNotNull) -> RowRanges | None:
    """Return null bounds of a group from a leaf that is required within it."""
    for leaf in node.leaves():
        if not leaf.max_repetition_level and leaf.max_definition_level == node.max_definition_level:
            pages = row_group.chunk(leaf).pages
            if pages is not None:
                return matching_rows(pages, question)
    return None
