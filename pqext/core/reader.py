"""Reading a file: footer, schema, row groups, and tables or batches of chosen columns.

The way of a byte: ``source`` -> ``footer`` -> ``schema`` and ``shape`` -> ``page`` -> ``column`` -> ``assemble``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from types import TracebackType
from typing import Any

import pyarrow as pa

from pqext.core import metadata as structures
from pqext.core import shape, statistics
from pqext.core.assemble import assemble
from pqext.core.column import ColumnReader
from pqext.core.errors import CorruptFileError, LimitError, ParquetError, UnsupportedError
from pqext.core.footer import Footer, read_footer
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.options import ReadOptions
from pqext.core.predicate import Bounds
from pqext.core.schema import Schema, SchemaNode
from pqext.core.schema_tree import from_elements
from pqext.core.shape import LeafShape, Shape
from pqext.core.source import Source, open_source


@dataclass(frozen=True)
class ColumnChunk:
    """One leaf in one row group: its metadata and what its statistics prove."""

    node: SchemaNode
    chunk: structures.ColumnChunk
    order: structures.ColumnOrder | None

    @property
    def metadata(self) -> structures.ColumnMetaData:
        """The chunk's metadata. Raises ``UnsupportedError`` when it is encrypted or in another file."""
        if self.chunk.meta_data is None:
            raise UnsupportedError(
                "the column's metadata is encrypted", feature="encrypted columns", column=self.node.dotted
            )
        if self.chunk.file_path is not None:
            raise UnsupportedError(
                f"the column chunk lies in another file, {self.chunk.file_path!r}",
                feature="file_path", column=self.node.dotted,
            )
        return self.chunk.meta_data

    @property
    def num_values(self) -> int:
        """Entries of the chunk, nulls included."""
        return self.metadata.num_values

    def bounds(self) -> Bounds:
        """What the chunk's statistics prove of its values."""
        return statistics.to_bounds(
            self.node.leaf_type, self.metadata.statistics, self.metadata.num_values, self.order
        )

    @property
    def geospatial_statistics(self) -> structures.GeospatialStatistics | None:
        """Bounding box and geometry types, where the writer left them."""
        return self.metadata.geospatial_statistics

    @property
    def byte_range(self) -> tuple[int, int]:
        """(offset, length) of the chunk's pages in the file, the dictionary page first."""
        meta = self.metadata
        start = meta.data_page_offset
        if meta.dictionary_page_offset is not None and 0 < meta.dictionary_page_offset < start:
            start = meta.dictionary_page_offset
        return start, meta.total_compressed_size


@dataclass(frozen=True)
class RowGroup:
    """One row group of a file: what the footer ``file`` says of it, under ``schema``.

    ``index`` is its place in the file, ``path`` names the file in errors.
    """

    file: structures.FileMetaData
    schema: Schema
    index: int
    path: str | None

    @cached_property
    def metadata(self) -> structures.RowGroup:
        """The row group's metadata structure."""
        return self.file.row_groups[self.index]

    @property
    def num_rows(self) -> int:
        """Rows of the group."""
        return self.metadata.num_rows

    def chunk(self, leaf: SchemaNode | int) -> ColumnChunk:
        """The column chunk of a leaf, given as its node or its column index."""
        index = leaf if isinstance(leaf, int) else leaf.leaf_start
        chunks = self.metadata.columns
        leaves = self.schema.leaves
        if len(chunks) != len(leaves):
            raise CorruptFileError(
                f"a row group has {len(chunks)} column chunks for {len(leaves)} columns",
                path=self.path, row_group=self.index,
            )
        orders = self.file.column_orders
        return ColumnChunk(leaves[index], chunks[index], orders[index] if orders and index < len(orders) else None)

    def chunks(self) -> Iterator[ColumnChunk]:
        """All column chunks in column order."""
        return (self.chunk(index) for index in range(len(self.schema.leaves)))


class ParquetFile:
    """An open Parquet file. ``source`` is a path, bytes, or a seekable binary file object.

    Raises ``CorruptFileError`` when the footer is damaged. Use as a context manager, or call :meth:`close`.
    """

    def __init__(
        self, source: Any, options: ReadOptions | None = None, *, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.source: Source = open_source(source)
        self.options = options if options is not None else ReadOptions()
        self._limits = limits
        try:
            with self._located():
                self._footer: Footer = read_footer(self.source, limits)
                self.schema: Schema = from_elements(self._footer.metadata.schema, limits, self.path)
        except BaseException:
            self.source.close()
            raise

    @property
    def path(self) -> str | None:
        """The path the file was opened by, if there was one."""
        return self.source.path

    @property
    def metadata(self) -> structures.FileMetaData:
        """The footer's structure."""
        return self._footer.metadata

    @property
    def footer(self) -> Footer:
        """The footer and its place in the file."""
        return self._footer

    @property
    def num_rows(self) -> int:
        """Rows of the file: the sum of its row groups'. Raises ``CorruptFileError`` for one of negative size."""
        with self._located():
            return sum(_rows(group) for group in self.row_groups)

    @cached_property
    def row_groups(self) -> list[RowGroup]:
        """The row groups in file order."""
        return [
            RowGroup(self.metadata, self.schema, index, self.path) for index in range(len(self.metadata.row_groups))
        ]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The top-level fields as Arrow sees them."""
        with self._located():
            return tuple(shape.of(node) for node in self.schema.root.children)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the whole file."""
        with self._located():
            return self._arrow_schema(self.shapes)

    def select(self, columns: Sequence[str] | None) -> tuple[Shape, ...]:
        """The shapes of ``columns``: top-level names or dotted paths, in file order; all when ``None``.

        Raises ``KeyError`` naming a column that the file does not have.
        """
        if columns is None:
            return self.shapes
        wanted: set[int] = set()
        tops: dict[int, SchemaNode] = {}  # only these are looked at: a file may have 100,000 columns
        root = self.schema.root
        with self._located():
            for column in columns:
                node = self.schema.find(column)
                top = root.child(node.path[0]) if node is not None else None
                if node is None or top is None:
                    raise KeyError(f"no column {column!r}; the file has {', '.join(root.child_names)}")
                wanted.update(range(node.leaf_start, node.leaf_stop))
                tops[top.leaf_start] = top
            selected = (shape.of(tops[at]).select(lambda node: node.leaf_start in wanted) for at in sorted(tops))
            return tuple(top for top in selected if top is not None)

    def read(self, columns: Sequence[str] | None = None, row_groups: Iterable[int] | None = None) -> pa.Table:
        """The chosen columns of the chosen row groups as a table, one chunk a row group."""
        shapes = self.select(columns)
        with self._located():
            arrow_schema = self._arrow_schema(shapes)
            batches = [
                batch
                for index in self._indices(row_groups)
                for batch in self._batches(self.row_groups[index], shapes, None, arrow_schema)
            ]
            return pa.Table.from_batches(batches, arrow_schema)

    def iter_batches(
        self, batch_rows: int = 65_536, columns: Sequence[str] | None = None,
        row_groups: Iterable[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same as batches of at most ``batch_rows`` rows, one row group in memory at a time."""
        if batch_rows < 1:
            raise ValueError(f"batch_rows must be positive, not {batch_rows}")
        shapes = self.select(columns)
        with self._located():
            arrow_schema = self._arrow_schema(shapes)
            for index in self._indices(row_groups):
                yield from self._batches(self.row_groups[index], shapes, batch_rows, arrow_schema)

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _located(self) -> _Located:
        return _Located(self.path)

    def _arrow_schema(self, shapes: Sequence[Shape]) -> pa.Schema:
        pairs = self.metadata.key_value_metadata or []
        # What pyarrow notes of its own types would be wrong beside the types shown here.
        # Bytes, because a file's text need not be UTF-8.
        kept = {_raw(pair.key): _raw(pair.value or "") for pair in pairs if pair.key != "ARROW:schema"}
        return pa.schema([top.field(self.options) for top in shapes], kept or None)

    def _indices(self, row_groups: Iterable[int] | None) -> Iterable[int]:
        if row_groups is None:
            return range(len(self.row_groups))
        chosen = list(row_groups)
        for index in chosen:
            if not 0 <= index < len(self.row_groups):
                raise IndexError(f"row group {index} of a file with {len(self.row_groups)}")
        return chosen

    def _batches(
        self, group: RowGroup, shapes: Sequence[Shape], batch_rows: int | None, arrow_schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        rows = _rows(group)
        try:
            readers = self._column_readers(group, [leaf for top in shapes for leaf in top.leaves()])
            with _Workers(self.options.threads, len(readers)) as workers:
                while rows:
                    count = rows if batch_rows is None else min(batch_rows, rows)
                    taken = workers.map(ColumnReader.take, readers.values(), repeat(count))
                    columns = dict(zip(readers, taken, strict=True))
                    for index, column in columns.items():
                        if column.rows != count:
                            raise CorruptFileError(
                                f"a column chunk ends {count - column.rows} rows before its row group",
                                column=self.schema.leaves[index].dotted,
                            )
                    arrays = list(workers.map(assemble, shapes, repeat(columns), repeat(self.options)))
                    yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema) if arrays else _empty(count)
                    rows -= count
                for reader in readers.values():
                    reader.check_end()
        except ParquetError as error:
            error.locate(row_group=group.index)
            raise

    def _column_readers(self, group: RowGroup, leaves: Sequence[LeafShape]) -> dict[int, ColumnReader]:
        chunks = [group.chunk(leaf.node) for leaf in leaves]
        ranges = [chunk.byte_range for chunk in chunks]
        return {
            leaf.node.leaf_start: ColumnReader(
                leaf, chunk.metadata, data, start, self._limits, checksums=self.options.checksums
            )
            for leaf, chunk, (start, _), data in zip(leaves, chunks, ranges, self.source.read_many(ranges), strict=True)
        }


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _rows(group: RowGroup) -> int:
    if group.num_rows < 0:
        raise CorruptFileError(f"a row group of {group.num_rows} rows", row_group=group.index)
    return group.num_rows


def _empty(rows: int) -> pa.RecordBatch:
    """A batch of rows without columns."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


class _Located:
    """Adds the file's path to errors that pass through, and types that of a schema too deep for Python's stack."""

    def __init__(self, path: str | None) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ParquetError):
            error.locate(path=self._path)
        elif isinstance(error, RecursionError):
            message = "the schema nests deeper than Python's stack lets it be followed"
            raise LimitError(message, path=self._path) from None


class _Workers:
    """Maps over columns on threads, or in place when one thread is enough."""

    def __init__(self, threads: int, jobs: int) -> None:
        count = min(threads or os.cpu_count() or 1, jobs)
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def map(self, function: Any, *items: Iterable[Any]) -> Iterator[Any]:
        return map(function, *items) if self._pool is None else self._pool.map(function, *items)

    def __enter__(self) -> _Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
