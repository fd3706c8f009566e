"""Scans: plan what a query needs of many files, then read that and nothing else.

A scan reads the footer of each file, drops the row groups whose statistics refuse the filter, then the pages
whose bounds do, reads the columns of the filter and the result from the rest, and evaluates the filter exactly on
their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.annotations import EXTENSION_METADATA, EXTENSION_NAME, for_logical
from pqext.core.errors import CorruptFileError, ParquetError
from pqext.core.indexes.row_ranges import RowRanges
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions, from_keywords
from pqext.core.reader import ParquetFile, RowGroup
from pqext.core.schema import SchemaNode
from pqext.dataset.binding import Bound, bind, find, lookup
from pqext.dataset.dnf import as_expression
from pqext.dataset.evaluate import evaluate
from pqext.dataset.expressions import Column, Expression, Operand, VariantField, operand_column, visible
from pqext.dataset.page_pruning import chosen_of_file, chosen_rows
from pqext.dataset.plan import RowGroupPlan, Task, count, explanation, stored_bytes, summary
from pqext.dataset.projection import Computed, computed_of, leaves_of, parse_columns, read_leaves
from pqext.dataset.pruning import refusal
from pqext.dataset.sources import find_sources, source_name
from pqext.dataset.visitors import operands

BATCH_ROWS = 65_536


class Scan:
    """A query over files that share a schema; see :func:`scan`. Nothing is read before it is asked for."""

    def __init__(
        self,
        sources: tuple[Any, ...],
        columns: tuple[str | Computed, ...] | None,
        filter: Expression | None,
        options: ReadOptions,
        limits: Limits,
    ) -> None:
        self.sources = sources
        self.result = columns
        self.columns = None if columns is None else tuple(name for name in columns if isinstance(name, str))
        self.computed = tuple(column for column in columns or () if isinstance(column, Computed))
        self.filter = filter
        self.options = options
        self.limits = limits
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, from the first file; fields of several files may be null."""
        if self._schema is None:
            with self._open(self.sources[0]) as file:
                return self._agreed(self.sources[0], file)
        return self._schema

    def plan(self, pages: bool = False) -> list[Task]:
        """What will be read of each file, from the footers and Bloom filters alone.

        With ``pages`` the page indexes are read too, as when the scan runs: each row group's ``rows`` are those in
        pages that may hold one that matches.
        """
        tasks = []
        for source in self.sources:
            with self._open(source) as file:
                self._agreed(source, file)
                tasks.append(self._task(source, file, self.columns, self.computed, pages))
        return tasks

    def explain(self) -> str:
        """The plan for people to read, with what the page indexes say."""
        tasks = self.plan(pages=True)
        lines = [
            f"scan of {count(len(tasks), 'file')}",
            f"  columns: {', '.join(map(visible, self.schema.names)) or 'none'}",
            f"  filter: {self.filter if self.filter is not None else 'none'}",
            "  reads " + summary(tasks),
            *explanation(tasks),
        ]
        return "\n".join(lines)

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows that match, in the order of the files, in batches of at most ``batch_rows``; none is empty."""
        for source in self.sources:
            with self._open(source) as file:
                schema = self._agreed(source, file)
                for batch, computed in self._matching(source, file, self.columns, self.computed, batch_rows):
                    yield _project(batch, dict(zip(self.computed, computed, strict=True)), schema)

    def to_table(self) -> pa.Table:
        """The rows that match, as one table."""
        # Whole row groups are read at once where no filter makes the rows fewer.
        batches = list(self.to_batches(BATCH_ROWS if self.filter is not None else 1 << 62))
        return pa.Table.from_batches(batches, schema=self.schema)

    def count(self) -> int:
        """The number of rows that match; without a filter from the footers alone."""
        total = 0
        for source in self.sources:
            with self._open(source) as file:
                if self.columns is not None:
                    self._agreed(source, file)
                if self.filter is None:
                    if file.num_rows != file.metadata.num_rows:
                        raise CorruptFileError(
                            f"the row groups have {file.num_rows} rows, the footer says {file.metadata.num_rows}"
                        )
                    total += file.num_rows
                else:
                    total += sum(batch.num_rows for batch, _ in self._matching(source, file, (), (), BATCH_ROWS))
        return total

    @contextmanager
    def _open(self, source: Any) -> Iterator[ParquetFile]:
        with ParquetFile(source, options=self.options, limits=self.limits) as file:
            try:
                yield file
            except ParquetError as error:
                error.locate(path=file.path)
                raise

    def _result_schema(self, file: ParquetFile) -> pa.Schema:
        names = {lookup(file.schema, column).path[0]: None for column in self.columns or ()}
        schema: pa.Schema = file.read(self.columns, row_groups=[]).schema
        if self.result is not None:
            fields = {name: schema.field(name) for name in names}
            for column in self.computed:
                if column.name in fields:
                    raise ValueError("a column is asked for twice")
                fields[column.name] = column.arrow_field(find(file.schema, column.field.column))
            order = dict.fromkeys(_result_name(file, column) for column in self.result)
            schema = pa.schema([fields[name] for name in order], schema.metadata)
        if len(self.sources) > 1:  # a later file may hold nulls where the first declares none
            schema = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
        return schema

    def _agreed(self, source: Any, file: ParquetFile) -> pa.Schema:
        """The result's schema, which the first file sets and the others must have too."""
        schema = self._result_schema(file)
        if self._schema is None:
            self._schema = schema
        else:
            check_agreement(self._schema, schema, source_name(self.sources[0]), source_name(source))
        return self._schema

    def _needed(
        self, file: ParquetFile, columns: Sequence[str] | None, computed: Sequence[Computed]
    ) -> list[SchemaNode]:
        """The nodes to read: those of ``columns``, and those of fields and filter that do not lie among them."""
        if columns is None:
            return list(file.schema.root.children)
        nodes = [lookup(file.schema, column) for column in columns]
        held = [node.path for node in nodes]
        for path, asked in self._asked(computed).items():
            node = find(file.schema, Column(path))
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

    def _parts(
        self, file: ParquetFile, group: RowGroup, columns: Sequence[str] | None, computed: Sequence[Computed]
    ) -> tuple[list[SchemaNode], dict[Computed, SchemaNode]]:
        """What is read of a row group: nodes for its batches, and leaves that hold computed columns."""
        held = {node.path[0] for node in self._needed(file, columns, ())}
        leaves = leaves_of(file, group, computed, held)
        return self._needed(file, columns, [column for column in computed if column not in leaves]), leaves

    def _task(
        self, source: Any, file: ParquetFile, columns: Sequence[str] | None, computed: Sequence[Computed], pages: bool
    ) -> Task:
        bound = None if self.filter is None else bind(self.filter, file.schema)
        needed = [] if computed else self._needed(file, columns, ())
        plans = []
        for group in file.row_groups:
            if computed:
                nodes, own = self._parts(file, group, columns, computed)
                needed = [*nodes, *own.values()]
            leaves = sorted({leaf.leaf_start for node in needed for leaf in node.leaves()})
            plans.append(self._group_plan(group, leaves, bound, pages))
        return Task(source_name(source), tuple(plans))

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

    def _matching(
        self,
        source: Any,
        file: ParquetFile,
        columns: Sequence[str] | None,
        computed: Sequence[Computed],
        batch_rows: int,
    ) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """The rows that match: their batches and, beside each, the computed columns."""
        chosen = None if self.filter is None else chosen_of_file(bind(self.filter, file.schema), file)
        for batch, leaves in self._batches(file, columns, computed, chosen, batch_rows):
            arrays = computed_of(computed, leaves, batch)
            if self.filter is not None:
                mask = evaluate(self.filter, batch)
                batch, arrays = batch.filter(mask), [array.filter(mask) for array in arrays]
            if batch.num_rows:
                yield batch, arrays

    def _batches(
        self,
        file: ParquetFile,
        columns: Sequence[str] | None,
        computed: Sequence[Computed],
        chosen: Mapping[int, RowRanges | None] | None,
        batch_rows: int,
    ) -> Iterator[tuple[pa.RecordBatch, dict[Computed, pa.Array]]]:
        """The ``chosen`` rows of each row group, and beside each batch the columns that come from leaves."""
        if not computed:
            names = None if columns is None else [_name(file, node) for node in self._needed(file, columns, ())]
            yield from ((batch, {}) for batch in file.iter_batches(batch_rows, names, rows=chosen))
            return
        for index in range(len(file.row_groups)) if chosen is None else chosen:
            group = file.row_groups[index]
            needed, leaves = self._parts(file, group, columns, computed)
            rows = None if chosen is None else {index: chosen[index]}
            batches = file.iter_batches(batch_rows, [_name(file, node) for node in needed], [index], rows=rows)
            if leaves:
                own = read_leaves(file, group, leaves, batch_rows, None if chosen is None else chosen[index])
                yield from zip(batches, own, strict=True)
            else:
                yield from ((batch, {}) for batch in batches)


def scan(
    sources: Any,
    columns: Sequence[Any] | None = None,
    filter: Any = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Scan:
    """A query over Parquet files: the rows for which ``filter`` is true, and of them ``columns``.

    ``sources`` is a path, a list of paths, a directory or a pattern of local files, which must agree in their
    schemas by name; ``filter`` is an expression or a list of tuples as pyarrow takes it; ``options`` are those of
    :class:`pqext.ReadOptions`.

    ``columns`` are top-level names or dotted paths, all when None. A value within a VARIANT becomes a column of its
    own by ``col("event").variant("$.user.uid", "int64")``, called ``event.user.uid``, or by a pair of another name
    and that. Values are those of ``pqext.variant.get``; where a file is shredded so that a leaf holds them all, only
    that leaf is read.

    Raises ``FileNotFoundError`` for sources that do not exist; columns are looked up when the scan runs.
    """
    chosen = None if columns is None else parse_columns(columns)
    read = from_keywords(ReadOptions, options, "columns", "filter", "limits")
    return Scan(find_sources(sources), chosen, as_expression(filter), read, limits)


def read_table(source: Any, columns: Sequence[Any] | None = None, filter: Any = None, **options: Any) -> pa.Table:
    """The rows of ``source`` for which ``filter`` is true, as one table; arguments as in :func:`scan`."""
    return scan(source, columns, filter, **options).to_table()


def check_agreement(first: pa.Schema, other: pa.Schema, first_path: str, other_path: str) -> None:
    """Raise ``ValueError`` unless both files give columns of the same names, types and marks."""
    if len(set(first.names)) < len(first.names):
        raise ValueError(f"schemas cannot be matched by name: {first_path} has several columns of one name")
    missing, extra = set(first.names) - set(other.names), set(other.names) - set(first.names)
    if missing or extra:
        lacks = [f"lacks {', '.join(sorted(missing))}"] if missing else []
        has = [f"has {', '.join(sorted(extra))} besides"] if extra else []
        raise ValueError(f"schemas differ: {other_path} {' and '.join(lacks + has)}, compared with {first_path}")
    for field in first:
        there = other.field(field.name)
        if field.type != there.type:
            raise ValueError(
                f"schemas differ: column {field.name!r} is {field.type} in {first_path} "
                f"and {there.type} in {other_path}"
            )
        if _marks(field) != _marks(there):
            raise ValueError(
                f"schemas differ: column {field.name!r} is marked {_marks(field)} in {first_path} "
                f"and {_marks(there)} in {other_path}"
            )


def _marks(field: pa.Field) -> dict[str, str]:
    metadata = field.metadata or {}
    return {
        key.decode(): metadata[key].decode("utf-8", "replace")
        for key in (EXTENSION_NAME, EXTENSION_METADATA)
        if key in metadata
    }


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


def _result_name(file: ParquetFile, column: str | Computed) -> str:
    return column.name if isinstance(column, Computed) else lookup(file.schema, column).path[0]


def _project(batch: pa.RecordBatch, computed: Mapping[Computed, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the result, without the fields that only the filter needed."""
    if not computed and batch.schema.equals(schema, check_metadata=True):
        return batch
    if not schema.names:
        return batch.select([])
    named = {column.name: array for column, array in computed.items()}
    columns = []
    for field in schema:
        column = named[field.name] if field.name in named else batch.column(field.name)
        columns.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
