"""Reading a file: footer, schema, row groups, and tables or batches of chosen columns.

The way of a byte: ``source`` -> ``footer`` -> ``schema`` and ``shape`` -> ``page`` -> ``column`` -> ``assemble``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from types import TracebackType
from typing import Any

import pyarrow as pa

from pqext.core import metadata as structures
from pqext.core import shape
from pqext.core.assemble import assemble
from pqext.core.column import ColumnReader
from pqext.core.damage import Damage, Losses
from pqext.core.errors import AnnotationWarning, CorruptFileError, LimitError, ParquetError
from pqext.core.extension import second_copy
from pqext.core.extension.places import listed
from pqext.core.files.external import FileResolver, spans_of
from pqext.core.footer import Footer, read_footer
from pqext.core.handlers.adopted_columns import adopt
from pqext.core.indexes.reading import PageIndex
from pqext.core.indexes.row_ranges import RowRanges, in_parts, merged
from pqext.core.limits import DEFAULT_LIMITS, Limits
from pqext.core.metadata import OffsetIndex, Type
from pqext.core.options import ReadOptions, from_keywords
from pqext.core.row_group import ColumnChunk, RowGroup
from pqext.core.schema import Schema, SchemaNode
from pqext.core.schema_tree import from_elements
from pqext.core.shape import LeafShape, Shape
from pqext.core.source import Source, open_source
from pqext.core.stored_pages import AllPages, ChosenPages, StoredPages
from pqext.core.suggest import not_a_column
from pqext.core.types import int96
from pqext.core.warn import warn
from pqext.core.workers import Workers

__all__ = ["ColumnChunk", "ParquetFile", "RowGroup"]

_SMALL = 64 << 10
"""Bytes of a column's pages that are not worth a thread, on average: threads wait for one another more than they work.
"""


class ParquetFile:
    """An open Parquet file. ``source`` is a path, bytes, or a seekable binary file object.

    How it is read says ``options``, or fields of ``ReadOptions`` by their names: ``open(path, on_corrupt="skip")``.
    Raises ``CorruptFileError`` when the footer is damaged. Use as a context manager, or call :meth:`close`.
    ``damage`` lists what reads have passed over so far when the options say ``on_corrupt="skip"``.
    """

    def __init__(
        self, source: Any, options: ReadOptions | None = None, *, limits: Limits = DEFAULT_LIMITS, **keywords: Any
    ) -> None:
        if not isinstance(options, ReadOptions | None):
            raise TypeError(f"options must be ReadOptions, not {type(options).__name__}")
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be Limits, like pqext.Limits(page_bytes=1 << 20), not {limits!r}")
        self.options = from_keywords(ReadOptions, keywords, "options", "limits", base=options)
        self.source: Source = open_source(source)
        self._limits = limits
        self.damage: list[Damage] = []
        self.files = FileResolver(self.source.path, self.options.external_files)
        try:
            with self._located():
                self._footer: Footer = read_footer(self.source, limits, self.options.decryption)
                self.schema: Schema = from_elements(self._footer.metadata.schema, limits, self.path)
                pairs = self.metadata.key_value_metadata or []
                if pairs and self.options.geoparquet:
                    self.schema = adopt(self.schema, pairs)
                if self.options.int96 == "auto":
                    self.options = replace(self.options, int96=int96.unit_for(pair.key for pair in pairs))
                if pairs:
                    own = {pair.key: pair.value or "" for pair in pairs}
                    self.options = replace(self.options, properties={**self.options.properties, **own})
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

    @cached_property
    def extensions(self) -> dict[str, bytes]:
        """Every extension in the metadata by its place: ``file``, ``row_groups[0].columns[2].meta_data``, ...

        Those of encrypted columns are not among them: they are in ``chunk(...).metadata``.
        """
        with self._located():
            return dict(listed(self.metadata, None if self._footer.decryptor else bytes(self._footer.raw)))

    @property
    def num_rows(self) -> int:
        """Rows of the file: the sum of its row groups'. Raises ``CorruptFileError`` for one of negative size."""
        with self._located():
            return sum(_rows(group) for group in self.row_groups)

    @cached_property
    def row_groups(self) -> list[RowGroup]:
        """The row groups in file order."""
        return [
            RowGroup(
                self.metadata, self.schema, index, self.path, self._footer.decryptor, self._limits, self.source,
                self.files, self.options.trust_statistics,
            )
            for index in range(len(self.metadata.row_groups))
        ]

    @cached_property
    def page_index(self) -> list[PageIndex]:
        """For each row group the pages of its columns, by dotted path: where they are and what bounds them."""
        return [PageIndex(group) for group in self.row_groups]

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

    @cached_property
    def _passed_over(self) -> list[str]:
        return shape.check(self.shapes)

    def select(self, columns: Sequence[str] | None) -> tuple[Shape, ...]:
        """The shapes of ``columns``: top-level names or dotted paths, in file order; all when ``None``.

        Raises ``KeyError`` naming a column that the file does not have, or has more than once.
        """
        if isinstance(columns, str):
            raise TypeError("columns is a list of names")
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
                    raise KeyError(not_a_column(column, root.child_names))
                if not root.is_unique(top.name):
                    raise KeyError(f"the file has more than one column {top.name!r}: read all and take them by number")
                wanted.update(range(node.leaf_start, node.leaf_stop))
                tops[top.leaf_start] = top
            selected = (shape.of(tops[at]).select(lambda node: node.leaf_start in wanted) for at in sorted(tops))
            return tuple(top for top in selected if top is not None)

    def read(
        self, columns: Sequence[str] | None = None, row_groups: Iterable[int] | None = None, *,
        rows: Mapping[int, Iterable[range] | None] | None = None,
    ) -> pa.Table:
        """The chosen columns of the chosen row groups as a table, one chunk a row group.

        ``rows`` chooses rows: of each row group that it names those within the ranges, or all for ``None``, and of
        others none. Where a column has an offset index, only the pages that hold such rows are fetched and decoded,
        unless the options pass over damage. Raises ``IndexError`` for row groups and rows that the file does not have.
        """
        shapes = self.select(columns)
        chosen = self._chosen(row_groups, rows)
        with self._located():
            arrow_schema = self._schema_to_read(columns, shapes)
            batches = list(self._iterate(shapes, chosen, None, arrow_schema))
            return pa.Table.from_batches(batches, arrow_schema)

    def iter_batches(
        self, batch_rows: int = 65_536, columns: Sequence[str] | None = None,
        row_groups: Iterable[int] | None = None, *, rows: Mapping[int, Iterable[range] | None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same as batches of at most ``batch_rows`` rows; of a large row group windows are in memory, not all."""
        if operator.index(batch_rows) < 1:
            raise ValueError(f"batch_rows must be positive, not {batch_rows}")
        shapes = self.select(columns)
        chosen = self._chosen(row_groups, rows)
        with self._located():
            arrow_schema = self._schema_to_read(columns, shapes)
            return self._iterate(shapes, chosen, batch_rows, arrow_schema)

    def _schema_to_read(self, columns: Sequence[str] | None, shapes: Sequence[Shape]) -> pa.Schema:
        """The Arrow schema of the chosen columns; warns of their annotations that are passed over."""
        for message in self._passed_over if columns is None else shape.check(shapes):
            warn(message, AnnotationWarning)
        return self.arrow_schema if columns is None else self._arrow_schema(shapes)

    def _iterate(
        self, shapes: Sequence[Shape], chosen: Iterable[_Chosen], batch_rows: int | None, arrow_schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        with self._located():
            for index, rows in chosen:
                yield from self._batches(self.row_groups[index], shapes, batch_rows, arrow_schema, rows)

    def iter_stored(
        self, top: Shape, row_group: int, batch_rows: int, rows: RowRanges | None = None
    ) -> Iterator[pa.Array]:
        """A top-level column of one row group as it is stored, annotations left aside, a batch at a time.

        Of ``rows`` only, which ascend and lie apart, when they are given.
        """
        shapes = (shape.bare(top),)
        with self._located():
            arrow_schema = self._arrow_schema(shapes)
        for batch in self._iterate(shapes, [(row_group, rows)], batch_rows, arrow_schema):
            yield batch.column(0)

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

    def _chosen(
        self, row_groups: Iterable[int] | None, rows: Mapping[int, Iterable[range] | None] | None
    ) -> Iterable[_Chosen]:
        """Row groups to be read and the rows of each, ``None`` for all; checked before anything is read."""
        if rows is not None and not isinstance(rows, Mapping):
            raise TypeError(f"rows maps row groups to ranges, like {{0: [range(10, 20)]}}, not {rows!r}")
        if row_groups is not None:
            indices = list(row_groups)
        else:
            indices = list(range(len(self.row_groups)) if rows is None else rows)
        for index in (*indices, *(rows or ())):
            if isinstance(index, bool):
                raise TypeError(f"a row group is chosen by its number, not by {index}")
            if not 0 <= index < len(self.row_groups):
                raise IndexError(f"row group {index} of a file with {len(self.row_groups)}")
        if rows is None:
            return [(index, None) for index in indices]
        chosen = [(index, _ranges(rows[index], self.row_groups[index])) for index in indices if index in rows]
        return [(index, ranges) for index, ranges in chosen if ranges != []]

    def _batches(
        self, group: RowGroup, shapes: Sequence[Shape], batch_rows: int | None, arrow_schema: pa.Schema,
        chosen: RowRanges | None = None,
    ) -> Iterator[pa.RecordBatch]:
        leaves = [leaf for top in shapes for leaf in top.leaves()]
        lost = self._losses(group)
        try:
            rows = [range(_rows(group))] if chosen is None else chosen
            readers = self._column_readers(group, leaves, lost, chosen)
            wanted = sum(map(len, rows))
            at_once = min(batch_rows or wanted, wanted)
            sizes = {index: reader.size * at_once // max(group.num_rows, 1) for index, reader in readers.items()}
            below = [_bytes_to_assemble(top, sizes) for top in shapes]
            jobs = len(readers) if sum(sizes.values()) > _SMALL * len(readers) else 1
            with Workers(self.options.threads, jobs) as workers:
                for part in in_parts(rows, max(at_once, 1)):
                    count = sum(map(len, part))
                    taken = workers.map(ColumnReader.take, readers.values(), repeat(part), sizes=list(sizes.values()))
                    columns = dict(zip(readers, taken, strict=True))
                    for index, column in columns.items():
                        if column.rows != count:
                            raise CorruptFileError(
                                f"a column chunk ends {count - column.rows} rows before its row group",
                                column=self.schema.leaves[index].dotted,
                            )
                    kept = count
                    if lost is not None and (ranges := lost.outside(part)) is not None:
                        columns = {index: readers[index].keep(column, ranges) for index, column in columns.items()}
                        kept = sum(last - first for first, last in ranges)
                    arrays = list(workers.map(assemble, shapes, repeat(columns), repeat(self.options), sizes=below))
                    if kept:
                        yield pa.RecordBatch.from_arrays(arrays, schema=arrow_schema) if arrays else _empty(kept)
                for reader in readers.values():
                    reader.check_end()
        except CorruptFileError as error:
            error.locate(row_group=group.index)
            if lost is None:
                raise
            lost.add(None, 0, max(group.num_rows, 0), error)
        except ParquetError as error:
            error.locate(row_group=group.index)
            raise

    def _losses(self, group: RowGroup) -> Losses | None:
        return Losses(self.damage, group.index, self.path) if self.options.on_corrupt == "skip" else None

    def _column_readers(
        self, group: RowGroup, leaves: Sequence[LeafShape], lost: Losses | None, chosen: RowRanges | None
    ) -> dict[int, ColumnReader]:
        chunks = [group.chunk(leaf.node) for leaf in leaves]
        if self.options.second_copies:
            chunks = [second_copy.of_chunk(chunk) for chunk in chunks]
        pages: dict[int, StoredPages] = {}
        # Damage is not to be stepped over unseen: who asks for what it leaves has all pages looked at.
        if chosen is not None and lost is None:
            pages = self._chosen_pages(group, chunks, chosen)
        whole = [chunk for chunk in chunks if chunk.node.leaf_start not in pages]
        spans = spans_of([(chunk.source(self.source), chunk.readable_range(self.source)) for chunk in whole])
        for chunk, span in zip(whole, spans, strict=True):
            pages[chunk.node.leaf_start] = AllPages(span, group.num_rows, chunk.entries_to_read)
        return {
            leaf.node.leaf_start: ColumnReader(
                leaf, chunk.metadata, pages[leaf.node.leaf_start], group.num_rows, self._limits,
                checksums=self.options.checksums, lose=None if lost is None else partial(lost.add, leaf.node.dotted),
                decryptor=chunk.decryptor,
            )
            for leaf, chunk in zip(leaves, chunks, strict=True)
        }

    def _chosen_pages(
        self, group: RowGroup, chunks: Sequence[ColumnChunk], rows: RowRanges
    ) -> dict[int, StoredPages]:
        """By leaf, the pages that hold any of ``rows``, of those chunks that have an offset index."""
        if group.indexes is not None:
            group.indexes.load([chunk for chunk in chunks if chunk.indexes is not None], kinds=(OffsetIndex,))
        pages: dict[int, StoredPages] = {}
        for chunk in chunks:
            known = chunk.page_places
            if known is not None:
                source = chunk.source(self.source)
                pages[chunk.node.leaf_start] = ChosenPages(source, chunk.byte_range, known, rows)
        return pages


_Chosen = tuple[int, RowRanges | None]
"""A row group and the rows of it that are read, ``None`` for all."""


def _ranges(rows: Iterable[range] | None, group: RowGroup) -> RowRanges | None:
    """``rows`` as row ranges, ``None`` for all.

    Raises ``IndexError`` where they leave the row group, ``TypeError`` for what is no range.
    """
    if rows is None:
        return None
    given = list(rows)
    for one in given:
        if not isinstance(one, range) or one.step != 1:
            raise TypeError(f"rows are ranges of step 1, not {one!r}")
        if one.start < one.stop and not 0 <= one.start < one.stop <= group.num_rows:
            raise IndexError(f"rows {one.start} to {one.stop} of a row group of {group.num_rows}")
    ranges = merged(given)
    return None if ranges == [range(group.num_rows)] else ranges


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _bytes_to_assemble(top: Shape, sizes: Mapping[int, int]) -> int:
    """Of the ``sizes`` of leaves, those below ``top``; none for a column that is whole once it is read."""
    is_whole = isinstance(top, LeafShape) and top.annotation is None and top.node.physical_type != Type.INT96
    return 0 if is_whole else sum(sizes[leaf.node.leaf_start] for leaf in top.leaves())


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
