"""Determine the row groups and rows that may match a filter, from statistics, Bloom filters and page indexes.

A row group is excluded only if metadata proves that it cannot match. An AllOf may match if all operands may match, an
AnyOf if one may, and a leaf if all its predicates may. Predicates are evaluated on the statistics of a leaf column or
by the handler of an annotation. Pages of different columns have different row boundaries, so their results are row
ranges, which AllOf intersects and AnyOf unites.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pqext.core.format.predicate import (
    Bounds,
    Comparison,
    IsIn,
    IsNotNull,
    IsNull,
    is_equality,
    may_match,
    restrict_to_bounds,
)
from pqext.core.indexes.page_index import matching_rows
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.schema.row_ranges import RowRanges, intersection, merge_ranges, union
from pqext.dataset.expressions.literals import value_text
from pqext.dataset.pruning.binding import AllOf, AnyOf, Bound, ColumnPredicate, ComputedLeaf, Leaf

if TYPE_CHECKING:
    from pqext.core.schema.facts import RowGroupFacts
    from pqext.core.schema.nodes import SchemaNode


def row_group_may_match(bound: Bound, row_group: RowGroupFacts) -> bool:
    """Return whether a row of ``row_group`` may match. False only if metadata proves that no row matches."""
    match bound:
        case AllOf():
            return all(row_group_may_match(operand, row_group) for operand in bound.operands)
        case AnyOf():
            return any(row_group_may_match(operand, row_group) for operand in bound.operands)
        case ComputedLeaf():
            return bound.may_match(row_group.bounds)
    return all(_predicate_may_match(bound.node, row_group, predicate) for predicate in bound.predicates)


def prune_reason(bound: Bound, row_group: RowGroupFacts) -> str | None:
    """Return a text that explains why no row of ``row_group`` matches; None if a row may match."""
    result = prove_no_match(bound, row_group)
    return None if result is None else result.reason


class Proof(NamedTuple):
    """Proof that no row of a row group matches a condition."""

    reason: str
    """The proof as text."""
    evidence: tuple[str, ...]
    """Evidence for pruning, in a word or two."""


def prove_no_match(bound: Bound, row_group: RowGroupFacts) -> Proof | None:
    """Return a proof that no row of ``row_group`` matches; None if a row may match."""
    match bound:
        case AllOf():
            return next(filter(None, (prove_no_match(operand, row_group) for operand in bound.operands)), None)
        case AnyOf():
            every: list[Proof] = []
            for operand in bound.operands:
                result = prove_no_match(operand, row_group)
                if result is None:
                    return None
                every.append(result)
            reasons = dict.fromkeys(element.reason for element in every)
            return Proof("; ".join(reasons), tuple(sorted({word for item in every for word in item.evidence})))
    if row_group_may_match(bound, row_group):
        return None
    if isinstance(bound, ComputedLeaf):
        return Proof(f"{bound.expression} is true for no row, by the bounds of its columns", _STATISTICS)
    node = bound.node
    if find_by_logical_type(node.logical_name) is not None:
        evidence = "variant leaf" if node.logical_name == "VARIANT" else "box"
        return Proof(f"{bound.text} is true for no row{_bounds_text(bound, row_group)}", (evidence,))
    if not node.is_leaf:
        return Proof(f"{bound.text} is true for no row", _STATISTICS)
    is_by_filter = bound.comparisons and _may_match_all(bound, row_group.bounds(node))
    return Proof(
        f"{bound.text} is true for no row{_bounds_text(bound, row_group)}",
        ("Bloom filter",) if is_by_filter else _STATISTICS,
    )


_STATISTICS = ("statistics",)


def _may_match_all(leaf: Leaf, bounds: Bounds) -> bool:
    return all(may_match(predicate, bounds) for predicate in leaf.comparisons)


def _predicate_may_match(node: SchemaNode, row_group: RowGroupFacts, predicate: ColumnPredicate) -> bool:
    if isinstance(predicate, IsNull | IsNotNull):
        return _null_test_may_match(node, row_group, predicate)
    annotation = find_by_logical_type(node.logical_name)
    if annotation is not None:
        return annotation.load().may_match(node, row_group, predicate)
    if not isinstance(predicate, Comparison | IsIn):
        return True  # a predicate for a handler that does not exist
    bounds = row_group.bounds(node)
    if not may_match(predicate, bounds):
        return False
    return not is_equality(predicate) or row_group.chunk(node).may_contain(restrict_to_bounds(predicate, bounds))


def _null_test_may_match(node: SchemaNode, row_group: RowGroupFacts, predicate: IsNull | IsNotNull) -> bool:
    """Return whether a null test on a group may match. A group is null if all its leaves are null."""
    for leaf in node.leaves():
        if leaf.max_repetition_level:
            continue  # an element of a list is not a row
        if leaf.max_definition_level == node.max_definition_level:
            return may_match(predicate, row_group.bounds(leaf))
        if isinstance(predicate, IsNull) and not may_match(predicate, row_group.bounds(leaf)):
            return False
    return True


def _bounds_text(leaf: Leaf, row_group: RowGroupFacts) -> str:
    if not leaf.node.is_leaf:
        return ""
    bounds = row_group.bounds(leaf.node)
    if bounds.all_null:
        return ": all values are null"
    requested = leaf.comparisons
    if requested and _may_match_all(leaf, bounds):
        return ": its Bloom filter does not hold the value"
    if bounds.has_nan is False and any(map(_is_nan_test, requested)):
        return ": no value is NaN"
    if bounds.minimum is None or bounds.maximum is None:
        return ""
    low, high = value_text(bounds.minimum, leaf.value_type), value_text(bounds.maximum, leaf.value_type)
    return f": values lie between {low} and {high}"


def _is_nan_test(predicate: Comparison | IsIn) -> bool:
    return isinstance(predicate, Comparison) and predicate.value != predicate.value


def rows_that_may_match(bound: Bound, row_group: RowGroupFacts) -> RowRanges:
    """Return the ranges of rows in ``row_group`` that may match. Columns without a page index do not exclude rows."""
    if not row_group_may_match(bound, row_group):
        return []
    whole = [range(row_group.num_rows)]
    match bound:
        case AllOf():
            return reduce(intersection, (rows_that_may_match(operand, row_group) for operand in bound.operands), whole)
        case AnyOf():
            return reduce(union, (rows_that_may_match(operand, row_group) for operand in bound.operands), [])
        case ComputedLeaf():
            return _derived_rows(bound, row_group)
    answers = (_predicate_rows(bound.node, row_group, predicate) for predicate in bound.predicates)
    return reduce(intersection, (whole if answer is None else answer for answer in answers), whole)


def _derived_rows(bound: ComputedLeaf, row_group: RowGroupFacts) -> RowRanges:
    """Return the rows that may satisfy a condition on a computed value, using the page bounds of its inputs."""
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
        if bound.may_match(partial(_leaf_bounds, known)):
            kept.append(range(start, stop))
    return merge_ranges(kept)


def _leaf_bounds(bounds: Mapping[int, Bounds], node: SchemaNode) -> Bounds:
    return bounds[node.leaf_start]


def candidate_rows(bound: Bound, row_group: RowGroupFacts) -> RowRanges | None:
    """Return the rows that may match according to page indexes; None if the indexes exclude no row."""
    if row_group.num_rows <= 0:  # the reader reports the invalid row count
        return None
    rows = rows_that_may_match(bound, row_group)
    return None if rows == [range(row_group.num_rows)] else rows


def _predicate_rows(node: SchemaNode, row_group: RowGroupFacts, predicate: ColumnPredicate) -> RowRanges | None:
    """Return the rows that may satisfy a predicate on ``node``; None if no page can be skipped."""
    if isinstance(predicate, IsNull | IsNotNull):
        return _rows_by_nulls(node, row_group, predicate)
    annotation = find_by_logical_type(node.logical_name)
    if annotation is not None:
        return annotation.load().matching_rows(node, row_group, predicate)
    if node.max_repetition_level or not node.is_leaf or not isinstance(predicate, Comparison | IsIn):
        return None
    pages = row_group.chunk(node).pages
    return None if pages is None else matching_rows(pages, predicate)


def _rows_by_nulls(node: SchemaNode, row_group: RowGroupFacts, predicate: IsNull | IsNotNull) -> RowRanges | None:
    """Return the rows that may satisfy a null test on a group, from the pages of a leaf with the group's nulls."""
    for leaf in node.leaves():
        if not leaf.max_repetition_level and leaf.max_definition_level == node.max_definition_level:
            pages = row_group.chunk(leaf).pages
            if pages is not None:
                return matching_rows(pages, predicate)
    return None
