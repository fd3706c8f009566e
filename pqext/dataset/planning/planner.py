"""Plan the columns, row groups and pages that a query reads from one file, in stages.

The filter's columns are read first: the columns of each conjunct in a separate stage, ordered by the bytes that the
stage is expected to save relative to the bytes that it reads. The other columns of the result follow, for the remaining
rows. All decisions about reading are made here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial

from pqext.core.base.errors import CorruptFileError
from pqext.core.options.read_write import ReadOptions
from pqext.core.read.pages.page_selection import pages_of
from pqext.core.schema.annotations import find_by_logical_type
from pqext.core.schema.facts import FileFacts, LeafFacts, RowGroupFacts
from pqext.core.schema.nodes import Schema, SchemaNode
from pqext.core.schema.row_ranges import RowRanges
from pqext.dataset.expressions import Column, Expression, Operand, VariantField, all_of, bases, operand_column
from pqext.dataset.expressions.visitors import compared_columns, operands
from pqext.dataset.planning.conjuncts import Conjunct, conjuncts_of, estimate_selectivity, rank
from pqext.dataset.planning.plan import LIMIT, REACHED, ByteRange, RowGroupPlan, Stage, merge_byte_ranges, merge_stages
from pqext.dataset.planning.projection import ComputedColumn, leaves_of
from pqext.dataset.pruning.binding import Bound, bind, find, lookup
from pqext.dataset.pruning.row_groups import Proof, candidate_rows, prove_no_match, prune_reason, row_group_may_match

_REFUSED = Proof("no row is true", ())
WORTH_BYTES = 64 << 10
"""Minimum stored bytes of the columns outside the filter that make a separate stage worth its overhead."""


class FilePlanner:
    """Planner of a query on one file that selects the ``columns`` of the rows that match ``filter``.

    ``columns`` are names and dotted paths, all columns if None. ``computed_columns`` are computed from columns.
    """

    def __init__(
        self, facts: FileFacts, options: ReadOptions, columns: Sequence[str] | None, computed_columns: Sequence[
            ComputedColumn
        ],
        filter: Expression | None,
    ) -> None:
        self.facts = facts
        self.options = options
        self.columns = columns
        self.computed = computed_columns
        self.filter = filter
        self._bound: Bound | None = None
        self._open: frozenset[int] = frozenset()
        self._known_stages: dict[tuple[tuple[str, int], ...], Stage] = {}
        self._known_results: dict[tuple[tuple[str, int], ...], tuple[tuple[str, ...], dict[str, frozenset[int]]]] = {}

    def row_groups(
        self, use_page_indexes: bool, with_ranges: bool, row_target: RowTarget | None = None, *,
        row_groups: Collection[int] | None = None,
    ) -> Iterator[RowGroupPlan]:
        """Yield a plan for each row group, created on demand, until ``row_target`` rows are certain to match.

        ``use_page_indexes`` also prunes pages. ``with_ranges`` adds byte ranges and complete reasons, which are
        not needed to execute a plan. ``row_groups`` are the row groups to plan, all if None. Raises
        ``CorruptFileError`` if the footer counts rows that do not exist.
        """
        bound = self._bind()
        if bound is not None and self.facts.round_trip_bytes:
            self.facts.fetch_ahead(partial(self._request_indexes, bound, use_page_indexes, row_groups))
        if self.options.skips_corrupt:
            row_target = None  # rows may be lost
        groups = self._groups(row_groups)
        return (self._plan_group(group, bound, use_page_indexes, with_ranges, row_target) for group in groups)

    def outlines(self, with_reasons: bool) -> Iterator[RowGroupPlan]:
        """Yield a plan without stages for each row group. Stored bytes are included if a row may match.

        ``with_reasons`` adds complete reasons, and the stored bytes of pruned row groups. If the file is
        ``by_footer_alone``, only its statistics are evaluated, otherwise Bloom filters as well.
        """
        bound = self._bind()
        return (self._outline(group, bound, with_reasons) for group in self.facts.row_groups)

    def _outline(self, group: RowGroupFacts, bound: Bound | None, with_reasons: bool) -> RowGroupPlan:
        try:
            proven = None if bound is None else _prove_no_match(bound, group, with_reasons=with_reasons)
            if proven is None:
                return RowGroupPlan(group.index, group.num_rows, self._stored_bytes(group), None)
            num_bytes = self._stored_bytes(group) if with_reasons else 0
            return RowGroupPlan(group.index, group.num_rows, num_bytes, proven.reason, evidence=proven.evidence)
        except CorruptFileError as error:
            error.locate(row_group=group.index)
            if not self.options.skips_corrupt:
                raise
            return RowGroupPlan(group.index, 0, 0, None)  # complete planning detects the corruption again

    def _stored_bytes(self, group: RowGroupFacts) -> int:
        """Return the stored bytes of all columns that are read from a row group, including pruned pages."""
        if self._common_leaves is not None:
            return group.stored_bytes(self._common_leaves)
        known = [self._leaves_read(stage) for stage in self._stages(group, None)]
        return sum(group.chunk(leaf).byte_range[1] for leaf in sorted(set().union(*known)))

    def _groups(self, row_groups: Collection[int] | None) -> Iterator[RowGroupFacts]:
        groups = self.facts.row_groups
        return iter(groups) if row_groups is None else (groups[index] for index in sorted(row_groups))

    def can_share(self, facts: FileFacts, options: ReadOptions) -> bool:
        """Return whether the results of this planner are valid for a file with ``facts`` and ``options``."""
        return self.facts.schema is facts.schema and self.options is options

    def copy_for_file(self, facts: FileFacts) -> FilePlanner:
        """Return a planner of the same query for another file with the same schema. Existing results are shared."""
        other = FilePlanner.__new__(FilePlanner)
        other.__dict__.update(self.__dict__, facts=facts, _open=frozenset())
        return other

    def _bind(self) -> Bound | None:
        if self._bound is None and self.filter is not None:
            self._bound = bind(self.filter, self.facts.schema)
        return self._bound

    def prunes_all(self) -> bool:
        """Return whether the footer proves that no row matches. False if each lookup requires a round trip."""
        bound = self._bind()
        if bound is None or self.facts.round_trip_bytes:
            return False
        try:
            for group in self.facts.row_groups:
                if row_group_may_match(bound, group):
                    self._open = frozenset([group.index])  # planning need not check this row group again
                    return False
        except CorruptFileError:  # planning reports the error with its position
            return False
        return True

    def _request_indexes(self, bound: Bound, use_page_indexes: bool, row_groups: Collection[int] | None) -> None:
        """Look up all indexes that planning and reading need, so that ``fetch_ahead`` fetches the indexes together."""
        with suppress(CorruptFileError):
            for group in self._groups(row_groups):
                if prune_reason(bound, group) is None and use_page_indexes and not self.options.skips_corrupt:
                    candidate_rows(bound, group)
                    for leaf in self._leaves_read(self._single_stage({})):
                        _ = group.chunk(leaf).page_locations

    def _plan_group(
        self, group: RowGroupFacts, bound: Bound | None, use_page_indexes: bool, with_ranges: bool,
        row_target: RowTarget | None,
    ) -> RowGroupPlan:
        try:
            is_limited = is_reached = row_target is not None and row_target.rows <= 0
            is_open = is_reached or bound is None or group.index in self._open
            proven = None if is_open or bound is None else _prove_no_match(bound, group, with_reasons=with_ranges)
            refused = REACHED if is_reached else None if proven is None else proven.reason
            # An incorrect index could hide corrupt rows without a report.
            use_page_indexes = use_page_indexes and not self.options.skips_corrupt
            rows = None
            if use_page_indexes and bound is not None and refused is None:
                rows = candidate_rows(bound, group)
            if row_target is not None and bound is None and refused is None:
                is_limited = use_page_indexes and row_target.rows < group.num_rows
                rows = [range(row_target.rows)] if is_limited else None
                row_target.rows -= group.num_rows
            stages = self._stages(group, rows) if refused is None else ()
            num_bytes, pages_of_chunks = 0, None
            if with_ranges and refused is not None:
                num_bytes = self._stored_bytes(group)
            elif with_ranges:
                known = [self._leaves_read(stage) for stage in stages]
                num_bytes = sum(group.chunk(leaf).byte_range[1] for leaf in sorted(set().union(*known)))
                stages = tuple(
                    replace(stage, byte_ranges=byte_ranges([group.chunk(leaf) for leaf in sorted(leaves)], rows))
                    for stage, leaves in zip(stages, known, strict=True)
                )
                if rows is not None:
                    chunks = [group.chunk(leaf) for leaf in set().union(*known)]
                    pages_of_chunks = page_count(chunks, rows, group.num_rows)
            result = () if proven is None or not with_ranges else proven.evidence
            if is_limited:
                result = (LIMIT,)
            return RowGroupPlan(group.index, group.num_rows, num_bytes, refused, rows, stages, result, pages_of_chunks)
        except CorruptFileError as error:
            error.locate(row_group=group.index)
            if not self.options.skips_corrupt:
                raise
            # The reader detects and reports the corruption again.
            return RowGroupPlan(group.index, 0, 0, None, None, (self._single_stage({}),))

    def _stages(self, group: RowGroupFacts, rows: RowRanges | None) -> tuple[Stage, ...]:
        if not self._conjuncts:
            return (self._single_stage(self._separate_leaves(group, self._top_columns) if self.computed else {}),)
        own = self._separate_leaves(group, self._result_top_columns)
        names, last = self._result_leaves(own)
        requested = [conjunct.bind_row_group(group) for conjunct in self._conjuncts]
        first = requested if len(requested) < 2 else sorted(
            requested, key=lambda one: rank(_bytes(group, one.leaves), estimate_selectivity(one.filter, group))
        )
        kept = {top for one in first for top, value in one.tops.items() if last.get(top) == value}
        later = [result for top, result in last.items() if top not in kept] + [element.leaves for element in first[1:]]
        share = 1.0 if rows is None else sum(map(len, rows)) / max(group.num_rows, 1)
        least = max(WORTH_BYTES, self.facts.round_trip_bytes)
        worth = share * _bytes(group, frozenset(own.values()).union(*later)) >= least
        in_leaves = any(item.asked for item in first)
        if not (worth or in_leaves) or not self._can_read_separately(last):
            return (self._single_stage(self._separate_leaves(group, self._top_columns)),)
        plain = {top for top in kept if self._node(top).is_leaf}
        columns = tuple(name for name in names if self._node(name).path[0] not in kept)
        stages = [
            Stage(
                entry.names, entry.filter, tuple(top for top in entry.tops if top in kept), (), entry.asked,
                tuple(sorted(top for top in compared_columns(entry.filter) if top not in last or top in plain)),
            )
            for entry in first
        ]
        stages.append(Stage(columns, leaves=tuple(own.items())))
        return tuple(stages) if worth else (merge_stages(stages),)

    def _separate_leaves(self, group: RowGroupFacts, excluded_columns: frozenset[str]) -> dict[str, int]:
        """Return the leaf index of each computed column that a row group stores in a separate leaf.

        Columns computed from the top-level columns ``excluded_columns`` are omitted.
        """
        if not self.computed or not self.options.may_skip_values:
            return {}  # corrupt rows must be dropped in all columns; strict reading checks all of a variant
        result = leaves_of(group, self.computed, excluded_columns)
        return {column.name: leaf.leaf_start for column, leaf in result.items()}

    def _single_stage(self, leaves: Mapping[str, int]) -> Stage:
        """Return a single stage that reads all required columns and evaluates the filter.

        ``leaves`` are the leaves of computed columns; other computed columns are read from their VARIANT.
        """
        key = tuple(leaves.items())
        if key not in self._known_stages:
            within = [column for column in self.computed if column.name not in leaves]
            columns = None if self.columns is None else self._names(self._required_nodes(within))
            only = compared_columns(self.filter) if self._conjuncts and self.filter is not None else frozenset()
            kept = tuple(sorted(top for top in only & self._result_top_columns if self._node(top).is_leaf))
            compared = tuple(sorted((only - self._result_top_columns).union(kept)))
            self._known_stages[key] = Stage(columns, self.filter, kept, leaves=key, compared=compared)
        return self._known_stages[key]

    def _result_leaves(self, leaves: Mapping[str, int]) -> tuple[tuple[str, ...], dict[str, frozenset[int]]]:
        """Return the names of the columns to read for the result, and the leaves of each top-level column.

        ``leaves`` are the leaves of computed columns. Other computed columns are read from the VARIANT.
        """
        key = tuple(leaves.items())
        if key not in self._known_results:
            within = [column for column in self.computed if column.name not in leaves]
            names = self._names(self._without_filter._required_nodes(within))
            self._known_results[key] = names, _leaves_by_top(self.facts.schema, names)
        return self._known_results[key]

    @cached_property
    def _without_filter(self) -> FilePlanner:
        return FilePlanner(self.facts, self.options, self.columns, self.computed, None)

    @cached_property
    def _top_columns(self) -> frozenset[str]:
        """The top-level columns to read, without columns that only computed columns use."""
        return frozenset(node.path[0] for node in self._required_nodes(()))

    @cached_property
    def _result_top_columns(self) -> frozenset[str]:
        """The top-level columns to read for the stored columns of the result."""
        return self._without_filter._top_columns

    @cached_property
    def _conjuncts(self) -> list[Conjunct]:
        """Conjuncts of the filter, merged if they share a top-level column; empty if the file is read in one stage."""
        options = self.options
        if self.filter is None or not options.may_skip_values:
            return []
        grouped: list[tuple[set[str], list[Expression]]] = []
        for part in conjuncts_of(self.filter):
            tops = {operand_column(operand).path[0] for operand in operands(part)}
            parts = [part]
            for known in [known for known in grouped if known[0] & tops]:
                grouped.remove(known)
                tops, parts = tops | known[0], known[1] + parts
            grouped.append((tops, parts))
        results = []
        for tops, parts in grouped:
            filter = all_of(parts)
            nodes = [
                part
                for path, requested in _operands_by_path(operands(filter)).items()
                for part in self._needed_parts(find(self.facts.schema, Column(path)), requested)
            ]
            names = self._names(nodes)
            by_top = _leaves_by_top(self.facts.schema, names)
            if set(by_top) != tops or not all(map(self.facts.schema.root.is_unique, tops)):
                return []  # names that contain dots are ambiguous
            results.append(Conjunct(filter, names, by_top, self.facts.schema))
        return results

    def _can_read_separately(self, last: Mapping[str, frozenset[int]]) -> bool:
        """Return whether the columns have unique names and can be read separately from the filter's columns."""
        root = self.facts.schema.root
        for top, leaves in last.items():
            node = root.child(top)
            if node is None or not root.is_unique(top):
                return False
            is_part = len(leaves) < node.leaf_stop - node.leaf_start
            requested = any(top in conjunct.tops and conjunct.tops[top] != leaves for conjunct in self._conjuncts)
            if is_part and requested and node.logical_name == "VARIANT":
                return False  # a result that contains part of a variant reads all of it
        return True

    def _required_nodes(self, computed_columns: Sequence[ComputedColumn]) -> list[SchemaNode]:
        """Return the nodes to read for the columns of the result, for ``computed_columns`` and for the filter."""
        if self.columns is None:
            return list(self.facts.schema.root.children)
        nodes = [lookup(self.facts.schema, column) for column in self.columns]
        held = [node.path for node in nodes]
        filtered = operands(self.filter) if self.filter is not None else ()
        row_target = [base for column in computed_columns for base in bases(column.field)]
        whole = [find(self.facts.schema, base) for base in row_target if isinstance(base, Column)]
        nodes += [node for node in whole if not any(node.path[: len(h)] == h for h in held)]
        within = [base for base in row_target if isinstance(base, VariantField)]
        for path, requested in _operands_by_path([*filtered, *within]).items():
            node = find(self.facts.schema, Column(path))
            # Any part of a group shows where the group is null; filters on groups need nothing else.
            if any(path[: len(h)] == h or (_is_plain_group(node) and h[: len(path)] == path) for h in held):
                continue
            # Strict reading checks all columns of a variant, and a result that contains part of it reads all of it.
            in_parts = not any(h[: len(path)] == path for h in held) and not self.options.strict
            nodes += self._needed_parts(node, requested) if in_parts else [node]
        return list({node.path: node for node in nodes}.values())

    def _needed_parts(self, node: SchemaNode, operands: Sequence[Operand]) -> list[SchemaNode]:
        """Return the nodes at or below ``node`` that must be read to evaluate ``operands``."""
        if node.logical_name == "VARIANT":
            return _variant_parts(node, operands)
        while _is_plain_group(node) and node.logical_name not in ("LIST", "MAP") and node.children:
            node = min(node.children, key=lambda child: child.leaf_stop - child.leaf_start)
        return [node]

    def _names(self, nodes: Sequence[SchemaNode]) -> tuple[str, ...]:
        """Return dotted paths of ``nodes`` for the reader, or top-level names where a dotted path is ambiguous."""
        result = (
            node.dotted_path if self.facts.schema.find(node.dotted_path) is node else node.path[0] for node in nodes
        )
        return tuple(dict.fromkeys(result))

    def _node(self, name: str) -> SchemaNode:
        node = self.facts.schema.find(name)
        assert node is not None
        return node

    @cached_property
    def _common_leaves(self) -> list[SchemaNode] | None:
        """The leaves to read from each row group, in all stages; None if the leaves differ between row groups."""
        if self.computed or any(conjunct.is_within_variants for conjunct in self._conjuncts):
            return None
        leaves = self.facts.schema.leaves
        read = self._leaves_read(self._single_stage({})).union(*(conjunct.leaves for conjunct in self._conjuncts))
        return [leaves[leaf] for leaf in sorted(read)]

    def _leaves_read(self, stage: Stage) -> set[int]:
        nodes = self.facts.schema.root.children if stage.columns is None else map(self._node, stage.columns)
        read = {leaf.leaf_start for node in nodes for leaf in node.leaves()}
        return read | {leaf for _, leaf in (*stage.leaves, *stage.asked)}


@dataclass
class RowTarget:
    """Number of ``rows`` still to plan. Planned row groups that are known to match reduce the number."""

    rows: int


def _prove_no_match(bound: Bound, group: RowGroupFacts, *, with_reasons: bool) -> Proof | None:
    """Return a proof that no row matches; None if a row may match. The proof has details only if ``with_reasons``."""
    if with_reasons:
        return prove_no_match(bound, group)
    return None if row_group_may_match(bound, group) else _REFUSED


def _operands_by_path(operands: Sequence[Operand]) -> dict[tuple[str, ...], list[Operand]]:
    """Group operands by the path of their column."""
    result: dict[tuple[str, ...], list[Operand]] = {}
    for operand in operands:
        result.setdefault(operand_column(operand).path, []).append(operand)
    return result


def _leaves_by_top(schema: Schema, names: Sequence[str]) -> dict[str, frozenset[int]]:
    """Return the leaves of the columns ``names``, grouped by top-level column."""
    result: dict[str, set[int]] = {}
    for name in names:
        node = schema.find(name)
        if node is not None:
            result.setdefault(node.path[0], set()).update(range(node.leaf_start, node.leaf_stop))
    return {top: frozenset(leaves) for top, leaves in result.items()}


def _bytes(group: RowGroupFacts, leaves: frozenset[int]) -> int:
    return sum(group.chunk(leaf).byte_range[1] for leaf in leaves)


def _is_plain_group(node: SchemaNode) -> bool:
    return not node.is_leaf and find_by_logical_type(node.logical_name) is None


def _variant_parts(node: SchemaNode, operands: Sequence[Operand]) -> list[SchemaNode]:
    """Return the nodes of a VARIANT that must be read to evaluate ``operands``.

    Only ``metadata`` is read if the operands are complete VARIANTs, which filters only test for null.
    """
    from pqext.variant.access.columns import columns_of_path

    paths = [operand.path if isinstance(operand, VariantField) else None for operand in operands]
    parts = [part for path in paths if path is not None for part in columns_of_path(node, path)]
    metadata = node.child("metadata")
    return parts or ([node] if metadata is None else [metadata])


def byte_ranges(chunks: Sequence[LeafFacts], rows: RowRanges | None) -> tuple[ByteRange, ...]:
    """Return the byte ranges of the pages of ``chunks`` that contain ``rows``, and of their dictionaries.

    If ``rows`` is None, return the byte ranges of complete chunks.
    """
    return merge_byte_ranges(place for chunk in chunks for place in _byte_ranges(chunk, rows))


def page_count(chunks: Sequence[LeafFacts], rows: RowRanges, num_rows: int) -> tuple[int, int]:
    """Return the number of pages of ``chunks`` that contain any of ``rows``, and the number of all pages.

    Chunks without an offset index are not counted. The chunks belong to a row group of ``num_rows`` rows.
    """
    known = [chunk.page_locations for chunk in chunks]
    return (
        sum(len(pages_of(element, rows)) for element in known if element is not None),
        sum(len(pages_of(item, [range(num_rows)])) for item in known if item is not None),
    )


def _byte_ranges(chunk: LeafFacts, rows: RowRanges | None) -> Iterator[ByteRange]:
    start, length = chunk.byte_range
    known = None if rows is None else chunk.page_locations
    if rows is None or known is None:
        yield start, length
        return
    pages = pages_of(known, rows)
    if pages:
        yield start, known.byte_range(0)[0] - start
    yield from map(known.byte_range, pages)
