"""Open a Parquet file: footer, schema, row groups, and tables or batches of selected columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import (
    AnnotationWarning,
    CorruptFileError,
    ErrorPathContext,
    LimitError,
    ParquetError,
    warn_about_file,
)
from pqext.core.base.limits import DEFAULT_LIMITS, Limits
from pqext.core.base.suggestions import SuggestionMixin, column_list_hint, suggest_arguments, unknown_column_message
from pqext.core.base.text import escape_text, html_summary, with_noun
from pqext.core.base.usage import Account, Budget
from pqext.core.footer.chunk_offsets import ChunkRanges
from pqext.core.footer.reading import open_for_reading, read_footer_or_checkpoint
from pqext.core.footer.thrift_footer import Footer
from pqext.core.format import metadata as structures
from pqext.core.format.extension.paths import list_extensions
from pqext.core.indexes.bloom import filter_cache
from pqext.core.indexes.reading import IndexRecorder
from pqext.core.io.external_files import FileResolver
from pqext.core.io.source import FileSource, Source
from pqext.core.options.keywords import ReadKeywords
from pqext.core.options.read_write import ReadOptions, from_keywords
from pqext.core.read import schema_cache
from pqext.core.read.damage import DamageReport
from pqext.core.read.deleted_rows import rows_by_group
from pqext.core.read.row_group import ColumnChunk, RowGroup
from pqext.core.read.row_group_reader import RowGroupReader
from pqext.core.read.row_groups import PageIndex, RowGroups, SelectedRows, total_rows
from pqext.core.read.schema_cache import CachedColumns, CachedSchema, options_to_read, schema_to_read
from pqext.core.read.small_chunks import SmallLeaves
from pqext.core.schema import shape
from pqext.core.schema.arrow_schema.stored_schema import KEY, StoredSchema
from pqext.core.schema.arrow_schema.strings import apply_string_option, has_dictionary_in
from pqext.core.schema.key_value_types import iter_valid_pairs, type_texts
from pqext.core.schema.nodes import Schema, SchemaNode, display_type
from pqext.core.schema.row_ranges import RowRanges
from pqext.core.schema.shape import Shape

__all__ = ["ColumnChunk", "ParquetFile", "RowGroup", "open"]

_ARGUMENTS = ("options", "limits", "filesystem", "storage_options")
_encode = operator.methodcaller("encode", "utf-8", "surrogateescape")


class ParquetFile(SuggestionMixin):
    """An open Parquet file. ``source`` is a path, a URL, bytes, or a seekable binary file object.

    A URL is opened by pyarrow (``s3://``, ``gs://``, ``abfss://``, ``hdfs://``), obstore (``https://``) or fsspec, with
    ``storage_options`` such as credentials. With ``filesystem`` (pyarrow, fsspec or obstore), ``source`` is a path in
    it. ``options``, or fields of ``ReadOptions`` as keywords, control how the file is read. With ``on_corrupt="skip"``,
    ``damage`` lists the skipped rows. Raises ``FileNotFoundError`` or ``PermissionError`` as the store does,
    ``SourceError`` if the store cannot be reached, ``CorruptFileError`` if the footer is corrupt, and
    ``ChangedFileError`` if the file is replaced while it is open.
    """

    _with_jump_table = True
    deleted_rows: Mapping[int, NDArray[np.int64]] = MappingProxyType({})
    """Rows that a table has deleted, as ascending numbers within each row group. Only scans exclude these rows."""
    missing_values: Mapping[str, Any] = MappingProxyType({})
    """Values that a table defines for columns that the file lacks. Only scans with a schema use these values."""

    def __init__(
        self, source: FileSource, options: ReadOptions | None = None, *, limits: Limits = DEFAULT_LIMITS,
        filesystem: Any = None, storage_options: Mapping[str, Any] | None = None, **keywords: Unpack[ReadKeywords],
    ) -> None:
        if not isinstance(limits, Limits):
            raise TypeError(f"limits must be a Limits, like pqext.Limits(page_bytes=1 << 20), not {limits!r}")
        self.options = self._caller_options = from_keywords(ReadOptions, keywords, *_ARGUMENTS, base=options)
        self.source: Source = open_for_reading(source, filesystem, storage_options, self.options)
        self.limits, self.damage = limits, DamageReport(limits.damaged_pieces)
        self._recorder = IndexRecorder()
        self._resolver = FileResolver(self.source.path, self.options.external_files, self.source.usage)
        try:
            with self._errors_name_path():
                self._footer: Footer = read_footer_or_checkpoint(
                    self.source, limits, self.options, with_jump_table=self._with_jump_table
                )
                pairs = self._footer.metadata.key_value_metadata or []
                texts = type_texts(pairs, self.options)
                key = self._key = schema_cache.key_of(self._footer, texts)
                cached = self._cached = None if key is None else schema_cache.cached_schema(key, self.options, limits)
                self.schema: Schema
                if cached is not None:
                    self.schema, self.options, columns = cached.schema, cached.options, cached.all_columns
                    self.shapes, self._ignored_annotations = columns.shapes, columns.ignored_annotations
                    self.stored_schema = cached.stored_schema
                    return
                self.stored_schema = StoredSchema(pairs if self.options.arrow_schema else (), self.path)
                schema = self._footer.schema(limits, self.path, strict=self.options.strict)
                self.options = options_to_read(self.options, texts)
                self.schema, has_warned = schema_to_read(schema, pairs, self.options, self.path)
                self._key = None if has_warned else key  # the warning names the file
        except BaseException:
            self.source.close()
            raise

    @property
    def path(self) -> str | None:
        """Path of the file; None if it has none."""
        return self.source.path

    @property
    def metadata(self) -> structures.FileMetaData:
        """``FileMetaData`` structure of the footer."""
        return self._footer.metadata

    @property
    def footer(self) -> Footer:
        """Footer, with its offset in the file."""
        return self._footer

    @cached_property
    def extensions(self) -> dict[str, bytes]:
        """Metadata extensions by path: ``file``, ``row_groups[0].columns[2].meta_data``, ...

        Extensions of encrypted columns are not included. They are in ``chunk(...).metadata``.
        """
        with self._errors_name_path():
            raw = None if self._footer.decryptor else bytes(self._footer.raw)
            return dict(list_extensions(self._footer.complete, raw))

    @cached_property
    def num_rows(self) -> int:
        """Number of rows in all row groups. Raises ``CorruptFileError`` if a row group has a negative count."""
        with self._errors_name_path():
            return total_rows(self.metadata.row_groups, lambda: self.row_groups)

    def check_rows(self) -> None:
        """Raise an error if the number of rows in the footer exceeds the rows of all row groups, or if rows or shared
        column chunks exceed ``limits``. With ``on_corrupt="skip"``, missing row groups cause a warning."""
        declared, result = self.metadata.num_rows, self.num_rows
        if result > self.limits.max_declared_rows(self.source.size):
            message = f"{result:,} rows in {self.source.size:,} bytes are more than rows={self.limits.rows} allows"
            raise LimitError(f"{message}; raise the limit with limits=Limits(rows=...)", path=self.path)
        self.row_groups.check_repeats(len(self.schema.leaves), self.limits.max_memory_bytes(self.source.size))
        if declared > result:
            message = f"the footer states {declared} rows, but its row groups have {result}: row groups are missing"
            self.options.report_corrupt(CorruptFileError(message, path=self.path))

    @cached_property
    def row_groups(self) -> RowGroups:
        """Row groups in file order."""
        make_row_group = partial(
            RowGroup, file_metadata=self.metadata, schema=self.schema, path=self.path, crypto=self._footer.decryptor,
            limits=self.limits, source=self.source, resolver=self._resolver,
            trust_statistics=self.options.trust_statistics, strict=self.options.strict, filters=filter_cache(),
            recorder=self._recorder, reads_invalid_as_null=self.options.invalid_values == "null",
            replaces_text=self.options.invalid_utf8 == "replace",
        )
        return RowGroups(len(self.metadata.row_groups), make_row_group, ChunkRanges(self.metadata, self.footer.offset))

    @property
    def round_trip_bytes(self) -> int:
        """Number of bytes that can be transferred in the time of one round trip; 0 for local files."""
        return self.source.merge_gap if self.source.is_remote else 0

    def fetch_ahead(self, request: Callable[[], object]) -> None:
        """Call ``request``, and then fetch all page indexes and Bloom filters that it looked up, in merged reads."""
        self._recorder.fetch(self.source, request)

    def hide_indexes(self) -> AbstractContextManager[object]:
        """Return a context in which this thread uses only page indexes and Bloom filters that are in memory."""
        return self._recorder.record_requests()

    @cached_property
    def page_index(self) -> list[PageIndex]:
        """Page index of each row group, as a mapping from dotted column paths to pages."""
        return [PageIndex(group) for group in self.row_groups]

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Top-level fields with their Arrow types."""
        with self._errors_name_path():
            tops = enumerate(self.schema.root.children)
            return tuple(self._apply_types(shape.from_node(node), index) for index, node in tops)

    def _apply_types(self, top: Shape, index: int | None = None) -> Shape:
        """Return a top-level column with the types of the stored Arrow schema and of the options."""
        return apply_string_option(self.stored_schema.apply(top, index), self.options.strings)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """Arrow schema of the file."""
        if self._cached is not None and self._key is not None:
            return self._with_metadata(self._cached.all_columns.arrow_schema)
        with self._errors_name_path():
            result = self._arrow_schema(self.shapes)
        if self._key is not None and not self.stored_schema.has_warned:
            with suppress(ParquetError):  # a column may be unreadable
                entry = CachedColumns(self.shapes, result, self._ignored_annotations, self._small_leaves(self.shapes))
                self._cached = CachedSchema(self.schema, self.stored_schema, self.options, entry)
                schema_cache.store_schema(self._key, self._caller_options, self.limits, self._cached)
        return self._with_metadata(result)

    def set_stored_types(self, stored_schema: StoredSchema) -> StoredSchema:
        """Replace the stored Arrow types with ``stored_schema``, which may be from another file. Return the previous
        types.
        """
        previous, self.stored_schema, self._key = self.stored_schema, stored_schema, None
        for name in ("shapes", "arrow_schema", "_ignored_annotations"):
            with suppress(AttributeError):  # may not be computed yet
                delattr(self, name)
        return previous

    def rename_columns(self, schema: Schema) -> None:
        """Rename the file's columns to the names in ``schema``, which otherwise equals the file's schema."""
        self.schema, self._cached = schema, None
        self.set_stored_types(StoredSchema((), self.path))

    def delete_rows(self, positions: NDArray[np.int64]) -> None:
        """Exclude the rows with the ascending numbers ``positions`` from scans."""
        self.deleted_rows = rows_by_group(positions, self.row_groups, self.path)

    @cached_property
    def _ignored_annotations(self) -> list[str]:
        return shape.check(self.shapes, self.options)

    def select(self, columns: Sequence[str] | None) -> tuple[Shape, ...]:
        """Return the shapes of ``columns`` in file order; all shapes if None. Columns are names or dotted paths.

        Raises ``KeyError`` if the file does not have a column, or has several columns with its name.
        """
        if isinstance(columns, str):
            raise TypeError(column_list_hint(columns))
        if columns is None:
            return self.shapes
        if (entry := self._cached_columns(columns)) is not None:
            return entry.shapes
        requested: set[int] = set()
        tops: dict[int, SchemaNode] = {}  # visit only these, because a file may have 100,000 columns
        root = self.schema.root
        with self._errors_name_path():
            for column in columns:
                node = self.schema.find(column)
                top = root.child(node.path[0]) if node is not None else None
                if node is None or top is None:
                    raise KeyError(unknown_column_message(column, root.child_names))
                if not root.is_unique(top.name):
                    raise KeyError(f"several columns are named {top.name!r}; read all, then select by position")
                requested.update(range(node.leaf_start, node.leaf_stop))
                tops[top.leaf_start] = top
            positions = {at: root.position(tops[at].name) for at in sorted(tops)}
            self.stored_schema.load_fields([position for position in positions.values() if position is not None])
            shapes = (self._apply_types(shape.from_node(tops[at]), position) for at, position in positions.items())
            selected = (top.select(lambda node: node.leaf_start in requested) for top in shapes)
            return tuple(top for top in selected if top is not None)

    @suggest_arguments
    def read(
        self, columns: Sequence[str] | None = None, row_groups: Iterable[int] | None = None, *,
        rows: Mapping[int, Iterable[range] | None] | None = None,
    ) -> pa.Table:
        """Read selected columns of selected row groups into a table, one chunk per row group.

        A row group becomes several chunks if a column has more than 2 GiB of strings or binary, or 2^31 list elements.
        ``rows`` maps row groups to the row ranges to read. None selects all rows, and row groups that are not in the
        mapping are skipped. If a column has an offset index, only the pages that contain selected rows are fetched and
        decoded, unless ``on_corrupt="skip"`` is set. Raises ``IndexError`` if a row group or row does not exist.
        """
        shapes = self.select(columns)
        if rows is None and row_groups is None:
            self.check_rows()
        chosen = self.row_groups.select(row_groups, rows)
        with self._errors_name_path():
            arrow_schema = self._schema_to_read(columns, shapes)
            budget = self.budget()
            batches = list(self._iterate(shapes, chosen, None, arrow_schema, budget, Account(budget)))
            return pa.Table.from_batches(batches, arrow_schema)

    @suggest_arguments
    def iter_batches(
        self, batch_rows: int = 65_536, columns: Sequence[str] | None = None,
        row_groups: Iterable[int] | None = None, *, rows: Mapping[int, Iterable[range] | None] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Read batches of at most ``batch_rows`` rows. Only part of a large row group is in memory at a time.

        Batches of large rows have fewer rows, so that decoded data stays far below ``limits.memory_bytes``. Raises
        ``LimitError`` if a single page exceeds the limit.
        """
        if operator.index(batch_rows) < 1:
            raise ValueError(f"batch_rows must be positive, not {batch_rows}")
        shapes = self.select(columns)
        if rows is None and row_groups is None:
            self.check_rows()
        chosen = self.row_groups.select(row_groups, rows)
        with self._errors_name_path():
            arrow_schema = self._schema_to_read(columns, shapes)
            return self._iterate(shapes, chosen, batch_rows, arrow_schema, self.budget())

    def iter_dictionary_batches(
        self, batch_rows: int, columns: Sequence[str] | None, row_group: int,
        rows: RowRanges | NDArray[np.int64] | None, dictionary_columns: Collection[str], budget: Budget,
    ) -> Iterator[pa.RecordBatch]:
        """Read a row group, or ``rows`` in it, with dictionary arrays for the top-level columns ``dictionary_columns``.

        ``rows`` are ranges or ascending row numbers. Only the values that these rows require are decoded. Only strings
        and binaries whose chunks have a dictionary become dictionary arrays.
        """
        is_numbers = isinstance(rows, np.ndarray)
        chosen = [(row_group, rows)] if is_numbers else self.row_groups.select(None, {row_group: rows})
        is_encoded = has_dictionary_in(self.row_groups[row_group])
        with self._errors_name_path():
            shapes = self.select(columns)
            if dictionary_columns:
                shapes = tuple(
                    apply_string_option(top, "dictionary", is_encoded) if top.node.name in dictionary_columns else top
                    for top in shapes
                )
            names = (columns or ()) if dictionary_columns else columns
            arrow_schema = self._schema_to_read(names, shapes, is_cacheable=not dictionary_columns)
            return self._iterate(shapes, chosen, batch_rows, arrow_schema, budget)

    def _cached_columns(self, columns: Sequence[str]) -> CachedColumns | None:
        return None if self._cached is None or self._key is None else self._cached.cached_columns(columns)

    def _schema_to_read(
        self, columns: Sequence[str] | None, shapes: tuple[Shape, ...], *, is_cacheable: bool = True
    ) -> pa.Schema:
        """Return the Arrow schema of the selected columns. Warn about annotations that are ignored."""
        cached = None if columns is None else self._cached_columns(columns)
        if cached is not None and cached.shapes is shapes:
            ignored_annotations, arrow_schema = cached.ignored_annotations, cached.arrow_schema
        elif columns is None:
            ignored_annotations, arrow_schema = self._ignored_annotations, self.arrow_schema
        else:
            ignored_annotations, arrow_schema = shape.check(shapes, self.options), self._arrow_schema(shapes)
            if is_cacheable and self._cached is not None and self._key is not None:
                entry = CachedColumns(shapes, arrow_schema, ignored_annotations, self._small_leaves(shapes))
                self._cached.store_columns(columns, entry)
        for message in ignored_annotations:
            warn_about_file(self.path, message, AnnotationWarning)
        return arrow_schema if columns is None else self._with_metadata(arrow_schema)

    def _iterate(
        self, shapes: Sequence[Shape], selection: Iterable[SelectedRows], batch_rows: int | None,
        arrow_schema: pa.Schema, budget: Budget, output_account: Account | None = None,
    ) -> Iterator[pa.RecordBatch]:
        with self._errors_name_path():
            cached = None if self._cached is None else self._cached.small_leaves_of(shapes)
            small = cached or self._small_leaves(shapes)
            groups = self.row_groups.iter_within(selection, small.shapes, budget, lambda: self.num_rows)
            context = self.options, self.damage, budget, output_account, self.row_groups.chunk_ranges
            for group, rows, fetched in small.iter_chunks(groups, batch_rows):
                yield from RowGroupReader(group, small, fetched, arrow_schema, *context).batches(batch_rows, rows)

    def _small_leaves(self, shapes: Sequence[Shape]) -> SmallLeaves:
        return SmallLeaves(shapes, self.limits, self.options)

    def budget(self, shares: int = 1) -> Budget:
        """Return the memory budget of a call on the file, divided by ``shares``."""
        return Budget(self.limits, self.source.size, self.source.usage, shares)

    def iter_storage_arrays(
        self, top: Shape, row_group: int, batch_rows: int, rows: RowRanges | NDArray[np.int64] | None = None,
        budget: Budget | None = None, *, as_dictionaries: bool = False,
    ) -> Iterator[pa.Array]:
        """Yield a top-level column of one row group in batches of its storage type, without applying annotations.

        ``rows`` are disjoint ascending ranges or ascending row numbers. Columns that are read in parallel share a
        ``budget``. Their batches may end at different rows (see :func:`pqext.core.base.batches.align_batches`). With
        ``as_dictionaries``, dictionary-encoded strings become dictionary arrays.
        """
        bare = shape.strip_annotations(top)
        if as_dictionaries:
            bare = apply_string_option(bare, "dictionary", has_dictionary_in(self.row_groups[row_group]))
        shapes = (bare,)
        with self._errors_name_path():
            arrow_schema = self._arrow_schema(shapes)
        for batch in self._iterate(shapes, [(row_group, rows)], batch_rows, arrow_schema, budget or self.budget()):
            yield batch.column(0)

    @suggest_arguments
    def head(self, rows: int = 5, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the first ``rows`` rows of the selected columns. Only the row groups of these rows are read."""
        if operator.index(rows) < 0:
            raise ValueError(f"rows must be 0 or more, not {rows}")
        requested: dict[int, list[range]] = {}
        for index, group in enumerate(self.row_groups):
            if not rows:
                break
            requested[index] = [range(min(rows, group.num_rows))]
            rows -= min(rows, group.num_rows)
        return self.read(columns, rows=requested)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export all rows as an Arrow stream, for ``pyarrow.table(file)`` or ``polars.DataFrame(file)``."""
        batches = pa.RecordBatchReader.from_batches(self.arrow_schema, self.iter_batches())
        return batches.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        numbers = (self.metadata.num_rows, len(self.schema.root.children), len(self.row_groups))
        facts = ", ".join(map(with_noun, numbers, ("row", "column", "row group")))
        return escape_text(f"<pqext.ParquetFile {self.path or 'in memory'}: {facts}>")

    def _repr_html_(self) -> str:
        fields = list(self.arrow_schema)
        rows = [(field.name, display_type(self.schema.root.child(field.name), field.type)) for field in fields[:50]]
        return html_summary(repr(self), rows if len(fields) <= 50 else [*rows, ("...", f"{len(fields) - 50:,} more")])

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _errors_name_path(self) -> ErrorPathContext:
        return ErrorPathContext(self.path)

    def _arrow_schema(self, shapes: Sequence[Shape]) -> pa.Schema:
        """Return the Arrow schema of ``shapes`` without the metadata of the file."""
        return pa.schema([top.field(self.options) for top in shapes])

    def _with_metadata(self, schema: pa.Schema) -> pa.Schema:
        """Return ``schema`` with the key-value metadata of the file, except for the stored Arrow schema."""
        pairs = self.metadata.key_value_metadata or []  # values need not be UTF-8
        valid_pairs = iter_valid_pairs(pairs, self.options)
        metadata = {_encode(pair.key): _encode(pair.value or "") for pair in valid_pairs if pair.key != KEY}
        return schema.with_metadata(metadata) if metadata else schema


open = ParquetFile
"""Name that :mod:`pqext` exports."""
