"""Scans: plan what a query needs of many files, then read that and nothing else.

A scan drops the files whose folders refuse the filter, reads the footer of each other file, drops the row groups whose
statistics refuse the filter, then the pages whose bounds do, reads the filter's columns from the rest and evaluates the
filter exactly on their rows, and reads the other columns of the result of the rows that are left.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from pqext.core.annotations import EXTENSION_METADATA, EXTENSION_NAME
from pqext.core.arrow_schema.stored import StoredSchema
from pqext.core.arrow_schema.types import durations
from pqext.core.budget import Budget
from pqext.core.display import as_html
from pqext.core.errors import CorruptFileError, ParquetError
from pqext.core.keywords import ReadKeywords
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions, from_keywords
from pqext.core.reader import ParquetFile
from pqext.core.suggest import Suggesting, answering, listed
from pqext.core.text import visible
from pqext.dataset.binding import bind, find, lookup
from pqext.dataset.dnf import Filter, as_expression
from pqext.dataset.execution import matching
from pqext.dataset.explanation import count, explanation, summary
from pqext.dataset.expressions import Expression
from pqext.dataset.partitions import NO_PARTITIONS, Narrowed, Partitioning, Partitions, partitions_of
from pqext.dataset.plan import Task
from pqext.dataset.planning import FilePlanner, footer_crc
from pqext.dataset.projection import Computed, parse_columns
from pqext.dataset.sources import find_sources, source_name

BATCH_ROWS = 65_536
_COUNTED_ROWS = 1 << 18
"""Rows that are looked at together where they are only counted."""


class Scan(Suggesting):
    """A query over files that share a schema; see :func:`scan`. Nothing is read before it is asked for."""

    def __init__(
        self,
        sources: tuple[Any, ...],
        columns: tuple[str | Computed, ...] | None,
        filter: Expression | None,
        options: ReadOptions,
        limits: Limits,
        partitions: Partitions = NO_PARTITIONS,
    ) -> None:
        self.sources = sources
        self.result = columns
        self.columns = None if columns is None else tuple(name for name in columns if isinstance(name, str))
        self.computed = tuple(column for column in columns or () if isinstance(column, Computed))
        self.filter = filter
        self.options = options
        self.limits = limits
        self.partitions = partitions
        for column in self.computed:
            partitions.check(column.field)
        self._schema: pa.Schema | None = None
        self._plain: pa.Schema | None = None
        self._types = StoredSchema()

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result, from the first file that is read; fields of several files may be null."""
        if self._schema is None:
            row = next((row for row, part in enumerate(self._narrowed) if part.refusal is None), 0)
            with self._open(row) as file:
                return self._agreed(row, file)
        return self._schema

    def plan(self, pages: bool = False) -> list[Task]:
        """What will be read of each file, from the footers and Bloom filters alone.

        With ``pages`` the page indexes are read too, as when the scan runs: each row group's ``rows`` are those in
        pages that may hold one that matches.
        """
        tasks = {}
        for row in self._kept():
            with self._open(row) as file:
                self._agreed(row, file)
                file.check_rows()
                plans = tuple(self._on(row, file).row_groups(pages, places=True))
                tasks[row] = Task(source_name(self.sources[row]), plans, footer_crc=footer_crc(file))
        return [
            tasks[row] if row in tasks else Task(source_name(source), (), self._narrowed[row].refusal)
            for row, source in enumerate(self.sources)
        ]

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
        return "\n".join(map(visible, lines))

    @answering
    def to_batches(self, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """The rows that match, in the order of the files, in batches of at most ``batch_rows``; none is empty."""
        return (batch for batch, _ in self._found(batch_rows))

    def _found(self, batch_rows: int) -> Generator[tuple[pa.RecordBatch, int], None, None]:
        """The batches, each with the bytes of the files opened for it and those before."""
        opened = 0
        for row in self._kept():
            with self._open(row) as file:
                opened += file.source.size
                schema = self._agreed(row, file)
                file.check_rows()
                plans = self._on(row, file).row_groups(pages=True, places=False)
                for batch, computed in matching(file, plans, self.computed, batch_rows):
                    named = {column.name: array for column, array in zip(self.computed, computed, strict=True)}
                    named |= self.partitions.arrays(self._values, row, batch.num_rows)
                    yield _project(batch, named, schema), opened

    @answering
    def to_table(self) -> pa.Table:
        """The rows that match, as one table. Raises ``LimitError`` where it takes more than ``limits`` allow."""
        batches, held = [], 0
        # Row groups are read in few parts where no filter makes the rows fewer.
        for batch, opened in self._found(BATCH_ROWS if self.filter is not None else 1 << 62):
            held += batch.get_total_buffer_size()
            Budget(self.limits, opened).add(held)
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=self.schema)

    @answering
    def count(self) -> int:
        """The number of rows that match; without a filter from the footers alone."""
        total = 0
        for row in self._kept():
            with self._open(row) as file:
                if self.columns is not None:
                    self._agreed(row, file)
                left = self._narrowed[row].filter
                if left is None:
                    if file.num_rows != file.metadata.num_rows:
                        raise CorruptFileError(
                            f"the row groups have {file.num_rows} rows, the footer says {file.metadata.num_rows}"
                        )
                    total += file.num_rows
                else:
                    file.check_rows()
                    plans = FilePlanner(file, file.options, (), (), left).row_groups(pages=True, places=False)
                    total += sum(batch.num_rows for batch, _ in matching(file, plans, (), _COUNTED_ROWS))
        return total

    @answering
    def head(self, rows: int = 5) -> pa.Table:
        """The first ``rows`` rows that match; no more is read than gives them."""
        if rows < 0:
            raise ValueError(f"rows must not be negative, not {rows}")
        batches, left = [], rows
        with closing(self._found(max(1, min(rows, BATCH_ROWS)))) as found:
            for batch, _ in found if rows else ():
                batches.append(batch.slice(0, left))
                left -= len(batches[-1])
                if not left:
                    break
        return pa.Table.from_batches(batches, schema=self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """The rows that match, as a pandas DataFrame; ``options`` are those of ``pyarrow.Table.to_pandas``."""
        return self.to_table().to_pandas(**options)

    def to_polars(self) -> Any:
        """The rows that match, as a polars DataFrame."""
        import polars

        return polars.from_arrow(self.to_table())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.to_batches()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows that match as an Arrow stream, a batch at a time, for ``pyarrow.table`` or ``polars.DataFrame``."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches()).__arrow_c_stream__(requested_schema)

    def _facts(self) -> list[tuple[str, str]]:
        """What the scan asks for, said without opening a file."""
        names = [column if isinstance(column, str) else column.name for column in self.result or ()]
        return [
            ("files", f"{len(self.sources):,}, {source_name(self.sources[0])} first" if self.sources else "none"),
            ("columns", listed(names) if self.result is not None else "all"),
            ("filter", str(self.filter) if self.filter is not None else "none"),
        ]

    def __repr__(self) -> str:
        return visible(f"<pqext.Scan {'; '.join(f'{name}: {text}' for name, text in self._facts())}>")

    def _repr_html_(self) -> str:
        return as_html("pqext.Scan", self._facts())

    @cached_property
    def _values(self) -> pa.RecordBatch:
        """What the folders of each source say of the partition columns."""
        return self.partitions.values(self.sources)

    @cached_property
    def _narrowed(self) -> list[Narrowed]:
        """What is left of the filter for each source."""
        return self.partitions.narrow(self.filter, self._values)

    def _kept(self) -> list[int]:
        """The sources that are read; with none, a wrong name in the filter is an error all the same."""
        kept = [row for row, part in enumerate(self._narrowed) if part.refusal is None]
        if not kept:
            with self._open(0):
                pass
        return kept

    @contextmanager
    def _open(self, row: int) -> Iterator[ParquetFile]:
        with ParquetFile(self.sources[row], options=self.options, limits=self.limits) as file:
            try:
                for leaf in self.partitions.others(self.filter) if self.partitions else ():
                    bind(leaf, file.schema)
                yield file
            except ParquetError as error:
                error.locate(path=file.path)
                raise

    def _on(self, row: int, file: ParquetFile) -> FilePlanner:
        """What is left to ask of a source."""
        return FilePlanner(file, file.options, self._columns_of(file), self.computed, self._narrowed[row].filter)

    def _columns_of(self, file: ParquetFile) -> Sequence[str] | None:
        """The columns that a file holds, all when None."""
        columns: Sequence[str] | None = self.columns
        if self.partitions:
            names = set(self.partitions.schema.names)
            if columns is not None:
                columns = self.partitions.columns_of_files(columns)
            elif names & {child.name for child in file.schema.root.children}:
                columns = self.partitions.columns_of_files(file.arrow_schema.names)
        return columns

    def _held_schema(self, file: ParquetFile) -> pa.Schema:
        """The Arrow schema of a file's columns, in the order of the file, and after them of the computed ones."""
        columns = self._columns_of(file)
        for name in columns or ():
            lookup(file.schema, name)
        schema: pa.Schema = file.read(columns, row_groups=[]).schema
        for column in self.computed:
            if column.name in schema.names:
                raise ValueError("a column is asked for twice")
            schema = schema.append(column.arrow_field(find(file.schema, column.field.column)))
        return schema

    def _result_schema(self, row: int, file: ParquetFile) -> pa.Schema:
        if self.result is None:
            schema = self.partitions.complete_schema(file.read(None, row_groups=[]).schema)
        else:
            held, folders = self._held_schema(file), set(self.partitions.schema.names)
            fields = {field.name: field for field in (*held, *self.partitions.schema)}
            names = [column.name if isinstance(column, Computed) else column for column in self.result]
            known = folders | {column.name for column in self.computed}
            order = [name if name in known else lookup(file.schema, name).path[0] for name in names]
            schema = pa.schema([fields[name] for name in dict.fromkeys(order)], held.metadata)
        if len(self.sources) > 1:  # a later file may hold nulls where the first declares none
            schema = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
        return schema

    def _agreed(self, row: int, file: ParquetFile) -> pa.Schema:
        """The result's schema, which the first file sets and the others must have too.

        Of types that Parquet has no name for the first file's are given, as far as they are of the same values.
        """
        schema = plain = self._result_schema(row, file)
        if self._schema is not None and self._is_known(schema) and file.stored_schema.notes_the_same(self._types):
            return self._schema
        if len(self.sources) > 1 and not file.stored_schema.is_empty:
            own = file.take_types(StoredSchema())
            plain = self._result_schema(row, file)
            file.take_types(own)
        if self._schema is None or self._plain is None:
            self._schema, self._plain, self._types = schema, plain, file.stored_schema
            self._first = source_name(self.sources[row])
        else:
            first, other = self._first, source_name(self.sources[row])
            check_agreement(self._plain, plain, first, other)
            for field in self._schema:
                there = schema.field(field.name).type
                if durations(field.type) != durations(there):
                    raise ValueError(
                        f"schemas differ: column {field.name!r} is {field.type} in {first} and {there} in {other}"
                    )
            file.take_types(self._types)
        return self._schema

    def _is_known(self, schema: pa.Schema) -> bool:
        """Is it the result's schema, by names that tell its columns apart?"""
        is_distinct = len(set(schema.names)) == len(schema.names)
        return is_distinct and bool(schema.equals(self._schema, check_metadata=True))


def scan(
    sources: Any,
    columns: Sequence[Any] | None = None,
    filter: Filter = None,
    *,
    partitioning: Partitioning = "hive",
    limits: Limits = DEFAULT_LIMITS,
    options: ReadOptions | None = None,
    **keywords: Unpack[ReadKeywords],
) -> Scan:
    """A query over Parquet files: the rows for which ``filter`` is true, and of them ``columns``.

    ``sources`` is a path, a list of paths, a directory (without folders that are links) or a pattern of local files,
    which must agree in their schemas by name; of Arrow types beyond Parquet's, such as dictionaries and time zones, the
    first file decides, and durations must agree. ``filter`` is an expression or a list of tuples as pyarrow takes it;
    keywords are the fields of :class:`pqext.ReadOptions`, and ``options`` holds those that are not given.

    ``columns`` are top-level names or dotted paths, all when None. A value within a VARIANT becomes a column of its
    own by ``col("event").variant("$.user.uid", "int64")``, called ``event.user.uid``, or by a pair of another name
    and that. Values are those of ``pqext.variant.get``; where a file is shredded so that a leaf holds them all, only
    that leaf is read.

    Raises ``FileNotFoundError`` for sources that do not exist; columns are looked up when the scan runs.
    """
    chosen = None if columns is None else parse_columns(columns)
    read = from_keywords(ReadOptions, keywords, "columns", "filter", "limits", "partitioning", "options", base=options)
    files = find_sources(sources)
    return Scan(files, chosen, as_expression(filter), read, limits, partitions_of(sources, files, partitioning))


def read_table(
    source: Any,
    columns: Sequence[Any] | None = None,
    filter: Filter = None,
    *,
    partitioning: Partitioning = "hive",
    limits: Limits = DEFAULT_LIMITS,
    options: ReadOptions | None = None,
    **keywords: Unpack[ReadKeywords],
) -> pa.Table:
    """The rows of ``source`` for which ``filter`` is true, as one table; arguments as in :func:`scan`."""
    found = scan(source, columns, filter, partitioning=partitioning, limits=limits, options=options, **keywords)
    return found.to_table()


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


def _project(batch: pa.RecordBatch, named: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """The columns of the result, those of ``named`` among them, without the fields that only the filter needed."""
    if not named and batch.schema.equals(schema, check_metadata=True):
        return batch
    if not schema.names:
        return batch.select([])
    columns = []
    for field in schema:
        column = named[field.name] if field.name in named else batch.column(field.name)
        columns.append(column if column.type == field.type else pc.cast(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
