"""What a scan does with one open file: which columns, row groups and pages it needs, and the rows that match."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from pqext.core.annotations import for_logical
from pqext.core.arrow_schema.arrays import filtered
from pqext.core.errors import CorruptFileError
from pqext.core.indexes.row_ranges import RowRanges
from pqext.core.options import ReadOptions
from pqext.core.reader import ParquetFile, RowGroup
from pqext.core.schema import SchemaNode
from pqext.dataset.binding import Bound, bind, find, lookup
from pqext.dataset.evaluate import evaluate
from pqext.dataset.expressions import Column, Expression, Operand, VariantField, operand_column
from pqext.dataset.page_pruning import chosen_of_file, chosen_rows
from pqext.dataset.plan import RowGroupPlan, stored_bytes
from pqext.dataset.projection import Computed, computed_of, leaves_of, read_leaves
from pqext.dataset.pruning import refusal
from pqext.dataset.visitors import operands


class FileScan:
    """The part of a scan that one file answers: its rows for which ``filter`` is true, and of them ``columns``.

    ``columns`` are names and dotted paths, all when None, and ``computed`` values within VARIANT columns.
    """

    def __init__(
        self,
        file: ParquetFile,
        columns: Sequence[str] | None,
        computed: Sequence[Computed],
        filter: Expression | None,
    ) -> None:
        self.file = file
        self.columns = columns
        self.computed = computed
        self.filter = filter

    @property
    def options(self) -> ReadOptions:
        """How the file is read."""
        return self.file.options

    def schema(self) -> pa.Schema:
        """The Arrow schema of ``columns``, in the order of the file, and after them of the computed ones."""
        for name in self.columns or ():
            lookup(self.file.schema, name)
        schema: pa.Schema = self.file.read(self.columns, row_groups=[]).schema
        for column in self.computed:
            if column.name in schema.names:
                raise ValueError("a column is asked for twice")
            schema = schema.append(column.arrow_field(find(self.file.schema, column.field.column)))
        return schema

    def name_of(self, column: str) -> str:
        """What a column asked for by name or dotted path is called in the result."""
        return lookup(self.file.schema, column).path[0]

    def plan(self, pages: bool) -> tuple[RowGroupPlan, ...]:
        """What is read of each row group; with ``pages`` by their page indexes too."""
        self.file.check_rows()
        bound = None if self.filter is None else bind(self.filter, self.file.schema)
        needed = [] if self.computed else self._needed(())
        plans = []
        for group in self.file.row_groups:
            if self.computed:
                nodes, own = self._parts(group)
                needed = [*nodes, *own.values()]
            leaves = sorted({leaf.leaf_start for node in needed for leaf in node.leaves()})
            plans.append(self._group_plan(group, leaves, bound, pages))
        return tuple(plans)

    def matching(self, batch_rows: int) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """The rows that match: their batches and, beside each, the computed columns."""
        self.file.check_rows()
        chosen = None if self.filter is None else chosen_of_file(bind(self.filter, self.file.schema), self.file)
        for batch, leaves in self._batches(chosen, batch_rows):
            arrays = computed_of(self.computed, leaves, batch)
            if self.filter is not None:
                mask = evaluate(self.filter, batch)
                batch, arrays = filtered(batch, mask), [array.filter(mask) for array in arrays]
            if batch.num_rows:
                yield batch, arrays

    def _needed(self, computed: Sequence[Computed]) -> list[SchemaNode]:
        """The nodes to read: those of the columns, and those of fields and filter that do not lie among them."""
        if self.columns is None:
            return list(self.file.schema.root.children)
        nodes = [lookup(self.file.schema, column) for column in self.columns]
        held = [node.path for node in nodes]
        for path, asked in self._asked(computed).items():
            node = find(self.file.schema, Column(path))
            # Any part of a group shows where the group is null, which is all that a filter asks of groups.
            plain_group = not node.is_leaf and for_logical(node.logical_name) is None
            if any(path[: len(h)] == h or (plain_group and h[: len(path)] == path) for h in held):
                continue
            # Strict reading looks at all columns of a variant, and a part of it in the result keeps it whole.
            in_parts = node.logical_name == "VARIANT" and not any(h[: len(path)] == path for h in held)
            in_parts = in_parts and not self.options.strict
            nodes += _variant_parts(node, asked) if in_parts else [node]
        return list({node.path: node for node in nodes}.values())

    def _asked(self, computed: Sequence[Computed]) -> dict[tuple[str, ...], list[Operand]]:
        """What the computed columns and the filter ask about, by the paths of the columns."""
        asked: dict[tuple[str, ...], list[Operand]] = {}
        filtered = operands(self.filter) if self.filter is not None else ()
        for operand in (*filtered, *(column.field for column in computed)):
            asked.setdefault(operand_column(operand).path, []).append(operand)
        return asked

    def _parts(self, group: RowGroup) -> tuple[list[SchemaNode], dict[Computed, SchemaNode]]:
        """What is read of a row group: nodes for its batches, and leaves that hold computed columns."""
        held = {node.path[0] for node in self._needed(())}
        leaves = leaves_of(self.file, group, self.computed, held)
        return self._needed([column for column in self.computed if column not in leaves]), leaves

    def _group_plan(self, group: RowGroup, leaves: Sequence[int], bound: Bound | None, pages: bool) -> RowGroupPlan:
        try:
            refused = None if bound is None else refusal(bound, group)
            num_bytes = sum(group.chunk(leaf).byte_range[1] for leaf in leaves)
            pages = pages and self.options.on_corrupt != "skip"
            rows = chosen_rows(bound, group) if pages and bound is not None and refused is None else None
            page_bytes = None if rows is None else sum(stored_bytes(group.chunk(leaf), rows) for leaf in leaves)
            return RowGroupPlan(group.index, group.num_rows, num_bytes, refused, rows, page_bytes)
        except CorruptFileError as error:
            error.locate(row_group=group.index)
            if self.options.on_corrupt != "skip":
                raise
            return RowGroupPlan(group.index, 0, 0, None)  # the reader finds the damage again, and reports it

    def _batches(
        self, chosen: Mapping[int, RowRanges | None] | None, batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, dict[Computed, pa.Array]]]:
        """The ``chosen`` rows of each row group, and beside each batch the columns that come from leaves."""
        file = self.file
        if not self.computed:
            names = None if self.columns is None else [_name(file, node) for node in self._needed(())]
            yield from ((batch, {}) for batch in file.iter_batches(batch_rows, names, rows=chosen))
            return
        for index in range(len(file.row_groups)) if chosen is None else chosen:
            group = file.row_groups[index]
            needed, leaves = self._parts(group)
            rows = None if chosen is None else {index: chosen[index]}
            batches = file.iter_batches(batch_rows, [_name(file, node) for node in needed], [index], rows=rows)
            if leaves:
                here = None if chosen is None else chosen[index]
                yield from read_leaves(file, group, leaves, batches, batch_rows, here)
            else:
                yield from ((batch, {}) for batch in batches)


def _variant_parts(node: SchemaNode, asked: Sequence[Operand]) -> list[SchemaNode]:
    """The columns of a VARIANT that a filter needs; where it is null its ``metadata`` shows."""
    from pqext.variant.access.columns import columns_of_path

    paths = [operand.path if isinstance(operand, VariantField) else None for operand in asked]
    parts = [part for path in paths if path is not None for part in columns_of_path(node, path)]
    metadata = node.child("metadata")
    return parts or ([node] if metadata is None else [metadata])


def _name(file: ParquetFile, node: SchemaNode) -> str:
    """What the reader calls ``node``: its dotted path, or all of its column where dots in names mislead."""
    return node.dotted if file.schema.find(node.dotted) is node else node.path[0]
