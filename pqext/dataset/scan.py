"""Scans: plan what a query needs of many files, then read that and nothing else.

A scan reads the footer of each file, drops the row groups whose statistics refuse the filter, reads the
columns of the filter and the result from the rest, and evaluates the filter exactly on their rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.annotations import EXTENSION_METADATA, EXTENSION_NAME, for_logical
from pqext.core.errors import CorruptFileError, ParquetError
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions
from pqext.core.reader import ParquetFile, RowGroup
from pqext.core.schema import SchemaNode
from pqext.dataset.binding import Bound, bind, find, lookup
from pqext.dataset.dnf import as_expression
from pqext.dataset.evaluate import evaluate
from pqext.dataset.expressions import Column, Expression, visible
from pqext.dataset.pruning import refusal
from pqext.dataset.sources import find_sources, source_name

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class RowGroupPlan:
    """What a scan does with one row group; ``num_bytes`` are the stored bytes of the columns it needs."""

    index: int
    num_rows: int
    num_bytes: int
    refusal: str | None
    """Why no row can match, when the row group is skipped."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a scan does with one file."""

    path: str
    row_groups: tuple[RowGroupPlan, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """Indexes of the row groups that are read."""
        return tuple(plan.index for plan in self.row_groups if plan.refusal is None)

    @property
    def total(self) -> int:
        """Row groups in the file."""
        return len(self.row_groups)

    @property
    def bytes_kept(self) -> int:
        """Stored bytes of the needed columns in the row groups that are read."""
        return sum(plan.num_bytes for plan in self.row_groups if plan.refusal is None)

    @property
    def bytes_total(self) -> int:
        """Stored bytes of the needed columns in all row groups."""
        return sum(plan.num_bytes for plan in self.row_groups)

    @property
    def rows_kept(self) -> int:
        """Rows in the row groups that are read."""
        return sum(plan.num_rows for plan in self.row_groups if plan.refusal is None)

    @property
    def rows_total(self) -> int:
        """Rows in the file."""
        return sum(plan.num_rows for plan in self.row_groups)

    @property
    def reasons(self) -> dict[int, str]:
        """Why each row group that is skipped cannot match, by its index."""
        return {plan.index: plan.refusal for plan in self.row_groups if plan.refusal is not None}


class Scan:
    """A query over files that share a schema; see :func:`scan`. Nothing is read before it is asked for."""

    def __init__(
        self,
        sources: tuple[Any, ...],
        columns: tuple[str, ...] | None,
        filter: Expression | None,
        options: ReadOptions,
        limits: Limits,
    ) -> None:
        self.sources = sources
        self.columns = columns
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

    def plan(self) -> list[Task]:
        """What will be read of each file, from the footers alone."""
        tasks = []
        for source in self.sources:
            with self._open(source) as file:
                self._agreed(source, file)
                tasks.append(self._task(source, file, self._needed(file, self.columns)))
        return tasks

    def explain(self) -> str:
        """The plan for people to read."""
        tasks = self.plan()
        lines = [
            f"scan of {_count(len(tasks), 'file')}",
            f"  columns: {', '.join(map(visible, self.schema.names)) or 'none'}",
            f"  filter: {self.filter if self.filter is not None else 'none'}",
            "  reads " + _share(tasks),
        ]
        for task in tasks:
            lines.append(f"{visible(task.path)}: " + _share([task]))
            lines += [f"  row group {index} skipped: {reason}" for index, reason in task.reasons.items()]
        return "\n".join(lines)

    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows that match, in the order of the files, in batches of at most ``batch_rows``; none is empty."""
        for source in self.sources:
            with self._open(source) as file:
                schema = self._agreed(source, file)
                for batch in self._matching(source, file, self.columns, batch_rows):
                    yield _project(batch, schema)

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
                if self.filter is None:
                    total += file.num_rows
                else:
                    total += sum(batch.num_rows for batch in self._matching(source, file, (), BATCH_ROWS))
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
        if self.columns is not None:
            schema = pa.schema([schema.field(name) for name in names], schema.metadata)
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

    def _needed(self, file: ParquetFile, columns: Sequence[str] | None) -> list[SchemaNode]:
        """The nodes to read: those of ``columns``, and those of the filter that do not lie among them."""
        if columns is None:
            return list(file.schema.root.children)
        nodes = [lookup(file.schema, column) for column in columns]
        held = [node.path for node in nodes]
        for path in self.filter.paths() if self.filter is not None else ():
            node = find(file.schema, Column(path))
            # Any part of a group shows where the group is null, which is all that a filter asks of groups.
            plain_group = not node.is_leaf and for_logical(node.logical_name) is None
            if not any(path[: len(h)] == h or (plain_group and h[: len(path)] == path) for h in held):
                nodes.append(node)
        return nodes

    def _task(self, source: Any, file: ParquetFile, needed: Sequence[SchemaNode]) -> Task:
        bound = None if self.filter is None else bind(self.filter, file.schema)
        leaves = sorted({leaf.leaf_start for node in needed for leaf in node.leaves()})
        return Task(source_name(source), tuple(self._group_plan(group, leaves, bound) for group in file.row_groups))

    def _group_plan(self, group: RowGroup, leaves: Sequence[int], bound: Bound | None) -> RowGroupPlan:
        try:
            return RowGroupPlan(
                group.index,
                group.num_rows,
                sum(group.chunk(leaf).byte_range[1] for leaf in leaves),
                None if bound is None else refusal(bound, group),
            )
        except CorruptFileError as error:
            error.locate(row_group=group.index)
            if self.options.on_corrupt != "skip":
                raise
            return RowGroupPlan(group.index, 0, 0, None)  # the reader finds the damage again, and reports it

    def _matching(
        self, source: Any, file: ParquetFile, columns: Sequence[str] | None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        needed = self._needed(file, columns)
        # Without a filter every row group is read, and none is looked at before its turn.
        kept = None if self.filter is None else self._task(source, file, needed).kept
        names = None if columns is None else [_name(file, node) for node in needed]
        for batch in file.iter_batches(batch_rows, names, kept):
            matching = batch if self.filter is None else batch.filter(evaluate(self.filter, batch))
            if matching.num_rows:
                yield matching


def scan(
    sources: Any,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    *,
    limits: Limits = DEFAULT_LIMITS,
    **options: Any,
) -> Scan:
    """A query over Parquet files: the rows for which ``filter`` is true, and of them ``columns``.

    ``sources`` is a path, a list of paths, a directory or a pattern of local files, which must agree in their
    schemas by name; ``columns`` are top-level names or dotted paths, all when None; ``filter`` is an expression
    or a list of tuples as pyarrow takes it; ``options`` are those of ``pqext.core.options.ReadOptions``.
    Raises ``FileNotFoundError`` for sources that do not exist; columns are looked up when the scan runs.
    """
    if isinstance(columns, str):
        raise TypeError("columns is a list of names")
    chosen = None if columns is None else tuple(columns)
    if chosen is not None and len(set(chosen)) != len(chosen):
        raise ValueError("a column is asked for twice")
    return Scan(find_sources(sources), chosen, as_expression(filter), ReadOptions(**options), limits)


def read_table(source: Any, columns: Sequence[str] | None = None, filter: Any = None, **options: Any) -> pa.Table:
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


def _name(file: ParquetFile, node: SchemaNode) -> str:
    """What the reader calls ``node``: its dotted path, or all of its column where dots in names mislead."""
    return node.dotted if file.schema.find(node.dotted) is node else node.path[0]


def _project(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the result, without the fields that only the filter needed."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if not schema.names:
        return batch.select([])
    columns = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _share(tasks: Sequence[Task]) -> str:
    kept, total = sum(len(task.kept) for task in tasks), sum(task.total for task in tasks)
    rows_kept, rows_total = sum(task.rows_kept for task in tasks), sum(task.rows_total for task in tasks)
    bytes_kept, bytes_total = sum(task.bytes_kept for task in tasks), sum(task.bytes_total for task in tasks)
    return (
        f"{kept} of {_count(total, 'row group')}, {rows_kept:,} of {_count(rows_total, 'row')}, "
        f"{bytes_kept:,} of {_count(bytes_total, 'byte')}"
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
