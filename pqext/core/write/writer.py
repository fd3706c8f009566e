"""Write a file: collect tables into row groups, encode columns in parallel, and finish with the footer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack
from uuid import UUID

import pyarrow as pa

from pqext.core.base.errors import warn
from pqext.core.base.lazy_imports import load_service
from pqext.core.base.suggestions import SuggestionMixin, suggest_arguments
from pqext.core.base.threads import synchronized
from pqext.core.encryption.writing import ChunkEncryptor, FileEncryptor, seal_columns
from pqext.core.footer.checkpoints import Checkpoints, encode_with_row_groups
from pqext.core.footer.thrift_footer import ENCRYPTED_MAGIC, MAGIC, serialise_footer
from pqext.core.footer.writing import tail
from pqext.core.format.created_by import created_by
from pqext.core.format.extension import paths as extension_paths
from pqext.core.format.extension.framing import add_entries
from pqext.core.format.metadata import ColumnMetaData, FileMetaData, KeyValue, RowGroup
from pqext.core.io.sink import Sink, is_in_store
from pqext.core.io.table_formats import check_new_file
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.layout import to_checkpoint
from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.core.schema.arrow_check import check_table
from pqext.core.schema.arrow_schema.stored_schema import KEY
from pqext.core.schema.data_frames import drop_row_ranges
from pqext.core.schema.key_value_types import retain_valid_pairs
from pqext.core.write import derived_columns, key_value_metadata, row_group_writer
from pqext.core.write.disassemble import DenseColumns
from pqext.core.write.row_group_writer import IndexWriter, PendingRowGroup
from pqext.core.write.table_inputs import as_table, conform
from pqext.core.write.write_plan import WritePlan, cached_plan, inspects_data, prepare, store_plan

if TYPE_CHECKING:
    from pqext.core.write.append import AppendedFile


class ParquetWriter(SuggestionMixin):
    """Writer of tables with one Arrow schema. ``dest`` is a path, a URL or a binary file object.

    ``options`` are the fields of :class:`pqext.WriteOptions`. ``filesystem`` and ``storage_options`` locate a path or
    URL, as in :func:`pqext.open`. A file appears at its path only after :meth:`close`; an exception within the context
    aborts it. Several threads can share a writer; the rows of a call stay together. At most two row groups are in
    memory: one is written while the rows of the next are collected. A column that orders the rows (``geometry``) orders
    them within each row group. Metadata of the Arrow schema is stored with ``key_value_metadata``, which takes
    precedence. Arrow types are stored too (option ``arrow_schema``), since Parquet cannot express some of them:
    :mod:`pqext.core.write.key_value_metadata` lists the types that a round trip preserves, and those that are rejected.

    With ``checkpoint``, an unfinished file remains next to the path after an exception if it contains a checkpoint. A
    note on the exception names the file, and :func:`pqext.recover` reads it. Only :meth:`abort` removes it.

    With ``append``, the row groups are added to the local file at ``dest``, which is created if it does not exist.
    Columns are stored like the file's columns with the same names: with the same shredding, physical types, units, CRS
    and edges. Without ``options``, options that are not passed as keywords are inferred from the file if possible
    (:mod:`pqext.core.write.file_layout`). Raises ``ValueError`` before anything is written if columns are missing or
    contradict the file, and ``BlockingIOError`` if another writer is appending. A local file in the folder of a Delta,
    Iceberg or Hudi table raises ``UnsupportedError``; ``ignore_table_format=True`` writes it, for programs that add it
    to the table themselves.
    """

    _warns_about_residual = True  # whether to warn if typed columns of ``shredding`` do not fit the values
    _is_rewrite = False  # whether the rows are a subset of the rows that the metadata of ``schema`` describes

    def __init__(
        self, dest: Any, schema: pa.Schema, options: WriteOptions | None = None, *, filesystem: Any = None,
        storage_options: Mapping[str, Any] | None = None, append: bool = False, ignore_table_format: bool = False,
        **keywords: Unpack[WriteKeywords],
    ) -> None:
        if not isinstance(schema, pa.Schema):
            raise TypeError(f"schema must be a pyarrow.Schema, not {type(schema).__name__}")
        others = "options", "filesystem", "storage_options", "append", "ignore_table_format"
        # compression_level applies to the codec of the file that is appended to.
        first = {name: choice for name, choice in keywords.items() if not append or name != "compression_level"}
        self.options = from_keywords(WriteOptions, first, *others, base=options)
        self._appended: AppendedFile | None = None
        self.arrow_schema = schema
        self._prepared: WritePlan | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0
        self._row_groups: list[RowGroup] = []  # metadata of the row groups written
        self._extensions: list[tuple[ColumnMetaData, Mapping[UUID, bytes]]] = []
        self._in_order = False
        self._encryptor: FileEncryptor | None = None
        self._begun: PendingRowGroup | None = None
        self._closed = False
        self._method_lock = threading.RLock()
        self._ignores_tables = ignore_table_format
        self._checkpoints = None if (every := to_checkpoint(self.options.checkpoint)) is None else Checkpoints(every)
        # An existing file is read before columns are resolved; a new file is created afterwards.
        sink = self._open_sink(dest, filesystem, storage_options, append) if append else None
        try:
            if sink is not None and sink.offset:
                from pqext.core.write.append import AppendedFile

                self._appended = AppendedFile(str(sink.path), self.options, keywords if options is None else None)
                self.arrow_schema, self.options = self._appended.layout.reorder_columns(schema), self._appended.options
            elif append:
                self.options = from_keywords(WriteOptions, keywords, *others, base=options)
            self._indexes, self._dense = IndexWriter(self.options), DenseColumns(self.options)
            if inspects_data(self.options, self._appended is not None):
                derived_columns.find(self.arrow_schema, self.options)  # raises an error if a name is already used
            else:
                self._prepare(None)
        except BaseException:
            if sink is not None:
                sink.abort()
            raise
        self._sink = self._open_sink(dest, filesystem, storage_options, append) if sink is None else sink

    def _open_sink(self, dest: Any, filesystem: Any, storage_options: Mapping[str, Any] | None, append: bool) -> Sink:
        if self._checkpoints is not None and is_in_store(dest, filesystem, storage_options):
            raise ValueError("object stores do not keep unfinished files; omit checkpoint")
        check = None if self._ignores_tables else check_new_file
        return Sink(dest, filesystem, storage_options, durable=self.options.durable, append=append, check=check)

    @suggest_arguments
    @synchronized
    def write_table(self, table: Any) -> None:
        """Append the rows of ``table``, which must have the columns of the schema.

        ``table`` is any input of :func:`pqext.write_table`. Strings, bytes and lists may have a different Arrow layout
        (large, view) from the schema. A value that cannot be stored aborts the file, which would otherwise contain only
        part of the table.
        """
        self._check_open()
        table = as_table(table)
        for part in [table] if isinstance(table, pa.Table) else map(as_table, table):
            self._add_table(part)
        self._finish_row_group()

    def _add_table(self, table: pa.Table) -> None:
        self._append(self._conform_table(table))

    def _conform_table(self, table: pa.Table) -> pa.Table:
        """Return ``table`` with the columns of the writer. The first table prepares the writer."""
        if table.schema.names != self.arrow_schema.names or table.schema.types != self.arrow_schema.types:
            table = conform(table, self.arrow_schema)
        check_table(table)
        if self._prepared is None:
            self._prepare(table)
        return table

    def _append(self, table: pa.Table) -> None:
        """Add a checked table to the pending rows, and write complete row groups."""
        start, stop, whole = 0, len(table), table.nbytes
        while start < stop:
            # Without columns, only the length of the table counts the rows.
            rest = table.slice(start, stop - start) if start else table
            # Measure all columns again only for tables whose rows may differ too much in size.
            size = rest.nbytes if whole > self.options.row_group_bytes - self._pending_bytes else whole
            remaining_rows = self._remaining_rows(len(rest), size)
            used = rest.slice(0, remaining_rows) if remaining_rows < len(rest) else rest
            self._pending.append(used)
            self._pending_rows += len(used)
            self._pending_bytes += size * len(used) // len(rest)
            if remaining_rows <= len(rest):
                self._flush()
            start += len(used)

    @synchronized
    def write_ordered(self, table: pa.Table) -> None:
        """Append the rows of ``table`` in the order that a column requires, if any.

        The rows are written to separate row groups. ``table`` must have the columns and types of the schema.
        """
        self._check_open()
        table = self._conform_table(table)
        if self._plan.order is None:
            self._append(table)
            self._finish_row_group()
            return
        self.end_row_group()
        self._in_order = True
        for group in self._plan.order.row_groups(table, self._remaining_rows(len(table), table.nbytes)):
            self.write_table(group)
            self.end_row_group()

    def _remaining_rows(self, rows: int, size: int) -> int:
        """Return the number of rows that the row group still accepts, at least 1. ``rows`` rows have ``size`` bytes."""
        bytes_left = self.options.row_group_bytes - self._pending_bytes
        rows_left = self.options.row_group_rows - self._pending_rows
        return max(1, min(rows_left, int(bytes_left * rows // max(size, 1))))

    @suggest_arguments
    def write_batch(self, batch: Any) -> None:
        """Append the rows of ``batch``, which is a RecordBatch or any other input of :meth:`write_table`."""
        self.write_table(batch)

    @synchronized
    def end_row_group(self) -> None:
        """Write the pending rows as a row group of any size. Following rows begin a new row group."""
        self._check_open()
        if self._pending_rows:
            self._flush()
        self._finish_row_group()

    @synchronized
    def close(self) -> None:
        """Write the pending rows and the footer. This completes the file."""
        if self._closed:
            return
        try:
            if self._prepared is None:
                self._prepare(None)
            if self._pending_rows:
                self._flush()
            self._finish_row_group()
            if self._appended is not None and not self._row_groups:
                self.abort()  # restores the original file
                return
            self._start()
            self._indexes.finish(self._sink)
            tail, warning = self._serialise_end()
            if self._warns_about_residual and self.options.shredding:
                # The file is not complete yet, because filters can turn the warning into an error.
                load_service("warn_about_file_residual")(self.arrow_schema, self.storage_schema, self._row_groups)
            if self._appended is not None:
                self._sink.flush()  # the footer must not reach the disk before the data it refers to
            self._sink.write(tail)
            self._sink.commit()
        except BaseException as error:
            self._abort_after_error(error)
            raise
        self._closed = True
        if warning is not None:
            warn(warning, UserWarning)

    @synchronized
    def abort(self) -> None:
        """Abort writing. No new file remains, and an existing file at the path is unchanged."""
        if not self._closed:
            self._stop()
            self._sink.abort()

    @synchronized
    def _abort_after_error(self, error: BaseException) -> None:
        """Abort because of ``error``. A file with a checkpoint is retained up to its last checkpoint."""
        if self._closed or not self._sink.is_retained:
            self.abort()
            return
        self._stop()
        if (left := self._sink.abandon()) is not None:
            error.add_note(f"the row groups up to the last checkpoint remain in {left}: pqext recover reads them")

    def _stop(self) -> None:
        self._closed = True
        self._pending.clear()
        if self._begun is not None:
            self._begun.workers.abandon()

    @property
    def bytes_written(self) -> int:
        """Size of the file so far in bytes, without row groups that are not written yet."""
        return self._sink.offset

    @property
    def storage_schema(self) -> pa.Schema | None:
        """Stored columns of ``arrow_schema``, with VARIANT shredded; None before the first rows determine them."""
        return None if self._prepared is None else pa.schema([field.plain for field in self._plan.own_fields])

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._abort_after_error(error)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the writer is closed")

    def _prepare(self, sample: pa.Table | None) -> None:
        layout = None if self._appended is None else self._appended.layout
        prepared = cached_plan(self.arrow_schema, self.options) if layout is None else None
        if prepared is None:
            derived = derived_columns.find(self.arrow_schema, self.options)
            prepared = prepare(derived, self.options, sample, layout)
            if layout is None:
                store_plan(self.arrow_schema, self.options, prepared)
        self._prepared = prepared
        if self._appended is not None:
            self._appended.check(self._build_metadata([]))
        self._derive_metadata([], {})
        if self.options.encryption is not None:
            self._encryptor = FileEncryptor(self.options.encryption, prepared.schema, prepared.derived.names)

    @property
    def _plan(self) -> WritePlan:
        assert self._prepared is not None
        return self._prepared

    def _start(self) -> None:
        if not self._sink.offset:
            self._sink.write(self._magic)
        elif self._appended is not None and self._sink.offset == self._appended.size:
            self._sink.write(self._appended.checkpoint())
            self._sink.flush()

    def _flush(self) -> None:
        """Start encoding the pending rows as a row group, and write the preceding row group in the meantime."""
        rows, size = self._pending_rows, self._pending_bytes
        table = self._pending[0] if len(self._pending) == 1 else pa.concat_tables(self._pending)
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0
        try:
            page_starts = None
            if self._plan.order is not None:
                table, page_starts = self._plan.order.pages(table, self.options.page_rows, not self._in_order)
            ordinal = len(self._row_groups) + (self._begun is not None)
            encryptors = [self._chunk_encryptor(ordinal, column) for column in range(len(self._plan.schema.leaves))]
            table = self._plan.derived.extend(table)
            begun = row_group_writer.begin(
                self._plan, self._dense, table, rows, size, page_starts, encryptors, ordinal
            )
            before, self._begun = self._begun, begun
            self._finish(before)
            if not begun.workers.is_parallel:  # without threads, nothing is encoded until results are requested
                self._finish_row_group()
        except BaseException as error:
            self._abort_after_error(error)
            raise

    def _finish_row_group(self) -> None:
        """Write the row group that is being encoded, if any."""
        begun, self._begun = self._begun, None
        self._finish(begun)

    def _finish(self, row_group: PendingRowGroup | None) -> None:
        if row_group is not None:
            try:
                with row_group.workers:
                    self._write_row_group(row_group)
            except BaseException as error:
                self._abort_after_error(error)
                raise

    def _write_row_group(self, row_group: PendingRowGroup) -> None:
        self._start()
        written = row_group_writer.write(row_group, self._sink, self.options)
        self._extensions += written.extensions
        number = len(self._row_groups)
        group = RowGroup(
            columns=[],
            total_byte_size=written.size,
            num_rows=row_group.rows,
            sorting_columns=self._plan.sorting or None,
            file_offset=written.start,
            total_compressed_size=self._sink.offset - written.start,
            ordinal=number if number < 1 << 15 else None,
        )
        self._indexes.add(written.group, group, self._sink)
        self._row_groups.append(group)
        if self._checkpoints is not None and self._checkpoints.is_due(number + 1, self._sink.offset):
            footer = encode_with_row_groups(self._build_metadata([]), self._indexes.serialise_partial())
            if checkpoint := self._checkpoints.build_frame(footer, number + 1, self._sink.offset):
                self._sink.write(checkpoint)
                self._sink.flush()
                self._sink.retain()

    def _chunk_encryptor(self, row_group: int, column: int) -> ChunkEncryptor | None:
        return None if self._encryptor is None else self._encryptor.chunk(row_group, column)

    @property
    def _magic(self) -> bytes:
        return ENCRYPTED_MAGIC if self._encryptor is not None and self._encryptor.has_encrypted_footer else MAGIC

    def _serialise_end(self) -> tuple[bytes, str | None]:
        """Return the end of the file (footer, its length, magic number), and a warning to issue afterwards or None."""
        footer = self._build_footer()
        if self._encryptor is None:
            form = self.options.footer
            if self._appended is not None:
                footer, form = self._appended.merge_footer(footer), self._appended.form if form == "thrift" else form
            return tail(footer, form)
        seal_columns(self._encryptor, [group.columns for group in self._row_groups])
        return serialise_footer(self._encryptor.footer(footer), self._magic), None

    def _build_footer(self) -> FileMetaData:
        footer = self._build_metadata(self._row_groups)
        paths = {leaf.dotted_path for leaf in self._plan.schema.leaves}
        extension_paths.apply_extensions(footer, self.options.extensions, paths)
        for about, entries in self._extensions:  # last, so that user values take precedence
            add_entries(about, entries)
        return footer

    def _build_metadata(self, groups: list[RowGroup]) -> FileMetaData:
        """Return the footer without extensions. It lists only ``groups``, but counts the rows of all row groups."""
        excluded = {KEY.encode(), b"geo"} if self.options.geoparquet is False else {KEY.encode()}
        carried = {
            key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
            for key, value in (drop_row_ranges if self._plan.order else dict)(self.arrow_schema.metadata or {}).items()
            if key not in excluded
        }
        carried = retain_valid_pairs(carried, self._plan.schema, is_subset=self._is_rewrite)
        carried |= {**self._derive_metadata(groups, carried), **self.options.key_value_metadata}
        if self.options.arrow_schema:
            noted = self._plan.arrow_schema_text(carried, self._dense.unbounded)
            carried = carried if noted is None else {KEY: noted, **carried}
        return FileMetaData(
            version=2,
            schema=self._plan.elements,
            num_rows=sum(group.num_rows for group in self._row_groups),
            row_groups=groups,
            key_value_metadata=[KeyValue(key=k, value=v) for k, v in carried.items()] or None,
            created_by=created_by(),
            column_orders=self._plan.column_orders,
        )

    def _derive_metadata(self, groups: list[RowGroup], carried_pairs: Mapping[str, str]) -> dict[str, str]:
        """Return the key-value metadata that column handlers derive from ``groups`` and ``carried_pairs``."""
        plan, names = self._plan, self._plan.derived.names
        return key_value_metadata.build_pairs(
            plan.schema, plan.plan, groups, names, carried_pairs, self._encryptor, self.options
        )


def write_table(
    table: Any, dest: Any, options: WriteOptions | None = None, *, filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None, append: bool = False, ignore_table_format: bool = False,
    **keywords: Unpack[WriteKeywords],
) -> None:
    """Write ``table`` to ``dest``. For ``dest``, ``append`` and the options, see :class:`ParquetWriter`.

    Keywords are the fields of :class:`pqext.WriteOptions`. ``table`` is a pyarrow Table, RecordBatch or
    RecordBatchReader, a pandas or polars DataFrame, a mapping from names to arrays, a :class:`pqext.Scan`, a result of
    :func:`pqext.variant.read_json`, or any object with ``__arrow_c_stream__``. A column that orders the rows
    (``geometry``) orders all rows of a table before they are split into row groups. This takes 56 bytes per row and a
    copy of one row group. Of a stream of batches, one row group at a time is in memory and ordered.

    >>> import pqext
    >>> pqext.write_table({"id": [1, 2]}, "ids.parquet", compression="zstd")
    >>> pqext.read_table("ids.parquet").to_pydict()
    {'id': [1, 2]}
    """
    table = as_table(table)
    writing = ParquetWriter(
        dest, table.schema, options, filesystem=filesystem, storage_options=storage_options, append=append,
        ignore_table_format=ignore_table_format, **keywords,
    )
    with writing as writer:
        (writer.write_ordered if isinstance(table, pa.Table) else writer.write_table)(table)
