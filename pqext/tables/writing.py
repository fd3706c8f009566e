"""Add rows to tables: append, overwrite, and replace files, each in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Unpack

import pyarrow as pa

from pqext.core.base.progress import Progress, Steps
from pqext.core.base.suggestions import unknown_column_message
from pqext.core.io.sources.store_errors import redact_uri
from pqext.core.options.keywords import WriteKeywords
from pqext.core.options.read_write import WriteOptions, from_keywords
from pqext.core.schema.arrow_check import check_table
from pqext.core.write.table_inputs import as_table
from pqext.tables.arguments import check_arguments, column_names, format_of
from pqext.tables.backend import TARGET_FILE_BYTES, TableWriter
from pqext.tables.clustering import add_keys, sorted_batches
from pqext.tables.data_files import BATCH_ROWS, new_files
from pqext.tables.write_plan import FilePaths, Replacement, SelectedPartitions, TableCommit, TableWrite
from pqext.variant.shredding.choice import residual_shares, warn_about_residual

_ARGUMENTS = (
    "partition_by", "sort_by", "target_file_bytes", "allow_undeclared_shredding", "storage_options", "progress",
    "options",
)  # fmt: skip


def open_writer(table: Any, storage_options: Mapping[str, Any] | None) -> TableWriter:
    """Open the current version of a table for writing.

    Raises ``ValueError`` or ``TypeError`` if ``table`` is not a table, and ``UnsupportedError`` for formats that cannot
    be written.
    """
    check_arguments(storage_options=storage_options)
    format = format_of(table)
    name = table.partition(":")[2] if isinstance(table, str) else table
    if format == "iceberg":
        from pqext.tables.iceberg.writer import IcebergWriter

        return IcebergWriter(name, storage_options)
    from pqext.tables.delta.writer import DeltaWriter

    return DeltaWriter(name, storage_options)


def append(
    table: Any,
    source: Any,
    *,
    partition_by: str | Sequence[str] = (),
    sort_by: str | Sequence[str] = (),
    target_file_bytes: int = TARGET_FILE_BYTES,
    allow_undeclared_shredding: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> TableCommit:
    """Append rows to a table in one commit. A Delta table is created if it does not exist.

    The call needs memory for the current row group of each open file. Concurrent appends do not conflict.

    In a Delta table, VARIANT columns have the type variant. Geometries are binary columns of WKB, and the metadata of
    the column states their CRS and edges. ``geoparquet="1.1"`` adds covering columns. ``geometry=`` declares the
    Parquet type, which polars cannot read. The log contains statistics of the columns that the table's properties
    select, including paths within VARIANT columns. Iceberg tables must have format version 1 or 2, which have no
    VARIANT and geometry types.

    Args:
        table: ``"delta:PATH_OR_URL"``, a ``deltalake.DeltaTable``, ``"iceberg:CATALOG.NAMESPACE.TABLE"`` or a pyiceberg
            ``Table``. An Iceberg table must exist. A table object refers to the new version after the commit.
        source: The rows: anything that :func:`pqext.write_table` accepts, such as a table, a stream of batches, a data
            frame or a :class:`pqext.Scan`.
        partition_by: Partition columns of a new table, with the type text, integer, boolean or date.
        sort_by: Columns to sort all rows of the call by. Rows that do not fit into memory are sorted in temporary
            files.
        target_file_bytes: Approximate size in bytes after which another file is started.
        allow_undeclared_shredding: Allow ``shredding=``, although deltalake cannot declare Delta's feature
            ``variantShredding``. pqext and Spark's Parquet reader read the files. Readers that check the feature reject
            them.
        storage_options: Credentials and other options of the object store.
        progress: Function that is called with the number of rows written and the total number of rows, which is None
            for a stream.
        options: Writer options (:class:`pqext.WriteOptions`); ``keywords`` take precedence.
        **keywords: The fields of :class:`pqext.WriteOptions`.

    Returns:
        The new version, and the files, rows and bytes that were added.

    Raises:
        ImportError: If the library of the table format is not installed.
        SchemaMismatchError: If the columns or types of the rows differ from those of the table.
        UnsupportedError: If the table has constraints, generated columns or unsupported features, or if a type has no
            equivalent in the table format.
        TableConflictError: If another writer has dropped the table, or has committed a conflicting change.
        CommitStateUnknownError: If the store or catalog failed during the commit, so that its outcome is unknown.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import tables, variant
        >>> events = pyarrow.table({"id": [1, 2], "event": variant.parse_json(['{"mag": 5}', '{"mag": 7}'])})
        >>> print(tables.append("delta:quakes", events).version)
        0
        >>> pqext.scan("delta:quakes", ["id"], pqext.col("event").variant("$.mag", "int64") > 6).to_table().to_pydict()
        {'id': [2]}
    """
    rows = _Rows.prepare(source, partition_by, sort_by, options, keywords)
    writer = open_writer(table, storage_options)
    return _write(writer, rows, target_file_bytes, allow_undeclared_shredding, progress, None)


def overwrite(
    table: Any,
    source: Any,
    *,
    filter: Any = None,
    partition_by: str | Sequence[str] = (),
    sort_by: str | Sequence[str] = (),
    target_file_bytes: int = TARGET_FILE_BYTES,
    allow_undeclared_shredding: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> TableCommit:
    """Replace all rows of a table, or the rows of selected partitions, in one commit.

    A Delta table is created if it does not exist. The schema of an existing table does not change. If another writer
    adds rows to the replaced partitions in the meantime, the call raises ``TableConflictError`` and changes nothing.
    For the other arguments, the result and the errors, see :func:`append`.

    Args:
        table: As in :func:`append`.
        source: As in :func:`append`. With ``filter``, all rows must be in the partitions that it selects.
        filter: Condition on partition columns, as in :func:`pqext.scan`, such as ``"day = date '2026-11-30'"``. By
            default, all rows are replaced.
        partition_by: As in :func:`append`.
        sort_by: As in :func:`append`.
        target_file_bytes: As in :func:`append`.
        allow_undeclared_shredding: As in :func:`append`.
        storage_options: As in :func:`append`.
        progress: As in :func:`append`.
        options: As in :func:`append`.
        **keywords: As in :func:`append`.

    Raises:
        ValueError: If a row is outside the partitions that ``filter`` selects, or ``filter`` refers to a column that is
            not a partition column.
        TableConflictError: If another writer appends to the replaced partitions, or compacts them.

    Example:
        >>> import pqext, pyarrow
        >>> from pqext import tables
        >>> sales = pyarrow.table({"day": [1, 1, 2], "n": [5, 6, 7]})
        >>> commit = tables.append("delta:sales", sales, partition_by="day")
        >>> commit = tables.overwrite("delta:sales", pyarrow.table({"day": [1], "n": [9]}), filter="day = 1")
        >>> sorted(pqext.scan("delta:sales").to_table()["n"].to_pylist())
        [7, 9]
    """
    rows = _Rows.prepare(source, partition_by, sort_by, options, keywords)
    writer = open_writer(table, storage_options)
    if filter is not None and writer.version is None:
        raise FileNotFoundError(f"{writer.name} does not exist; omit filter= to create it")

    replacement = SelectedPartitions(filter)
    return _write(writer, rows, target_file_bytes, allow_undeclared_shredding, progress, replacement)


def replace_files(
    table: Any,
    files: Sequence[str],
    source: Any,
    *,
    sort_by: str | Sequence[str] = (),
    target_file_bytes: int = TARGET_FILE_BYTES,
    allow_undeclared_shredding: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    options: WriteOptions | None = None,
    **keywords: Unpack[WriteKeywords],
) -> TableCommit:
    """Replace files of a table with the rows of ``source``, in one commit.

    For the other arguments, the result and the errors, see :func:`append`.

    Args:
        table: As in :func:`append`.
        files: Paths of the files relative to the table.
        source: The rows, as in :func:`append`.
        sort_by: As in :func:`append`.
        target_file_bytes: As in :func:`append`.
        allow_undeclared_shredding: As in :func:`append`.
        storage_options: As in :func:`append`.
        progress: As in :func:`append`.
        options: As in :func:`append`.
        **keywords: As in :func:`append`.

    Raises:
        FileNotFoundError: If the table does not exist, or does not contain one of the files.
        TableConflictError: If another writer removes one of the files in the meantime.

    Example:
        >>> import pathlib, pqext, pyarrow
        >>> from pqext import tables
        >>> commit = tables.append("delta:prices", pyarrow.table({"price": [1, -1]}))
        >>> files = [path.name for path in pathlib.Path("prices").glob("*.parquet")]
        >>> commit = tables.replace_files("delta:prices", files, pyarrow.table({"price": [1]}))
        >>> pqext.scan("delta:prices").to_table()["price"].to_pylist()
        [1]
    """
    rows = _Rows.prepare(source, (), sort_by, options, keywords)
    writer = open_writer(table, storage_options)
    if isinstance(files, str) or not isinstance(files, Iterable) or not all(isinstance(path, str) for path in files):
        raise TypeError(f"files must be a list of paths relative to the table, not {files!r}")
    existing = {file.path for file in writer.files()}
    missing = [path for path in files if path not in existing]
    if missing:
        raise FileNotFoundError(f"{writer.name} has no file {redact_uri(missing[0])!r} in version {writer.version}")
    replacement = FilePaths(tuple(dict.fromkeys(files)))
    return _write(writer, rows, target_file_bytes, allow_undeclared_shredding, progress, replacement)


@dataclass(frozen=True)
class _Rows:
    """Rows to write, as a table or a stream of batches, and options of the writer."""

    data: Any
    partition_by: tuple[str, ...]
    sort_by: tuple[str, ...]
    options: dict[str, Any]

    @staticmethod
    def prepare(
        source: Any, partition_by: str | Sequence[str], sort_by: str | Sequence[str], options: WriteOptions | None,
        keywords: Mapping[str, Any],
    ) -> _Rows:
        write_options = from_keywords(WriteOptions, keywords, *_ARGUMENTS, base=options)
        data = as_table(source)
        by, keys = column_names("partition_by", partition_by), column_names("sort_by", sort_by)
        for argument, names in (("partition_by", by), ("sort_by", keys)):
            for name in names:
                if name not in data.schema.names:
                    raise ValueError(f"{argument}: {unknown_column_message(name, data.schema.names)}")
        if not data.schema.names:
            raise ValueError("rows without columns cannot be written to a table; add a column")
        return _Rows(data, by, keys, {field.name: getattr(write_options, field.name) for field in fields(WriteOptions)})

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        schema: pa.Schema = self.data.schema
        return schema

    @property
    def count(self) -> int | None:
        """Number of rows; None for a stream."""
        return self.data.num_rows if isinstance(self.data, pa.Table) else None

    @contextmanager
    def batches(self) -> Iterator[Iterable[pa.RecordBatch]]:
        """Return a context that yields batches of the rows, sorted by ``sort_by``."""
        if not self.sort_by:
            yield self._batches()
            return
        with sorted_batches(self._batches_with_keys(), len(self.sort_by)) as batches:
            yield batches

    def _batches(self) -> Iterator[pa.RecordBatch]:
        data = self.data
        for batch in data.to_batches(max_chunksize=BATCH_ROWS) if isinstance(data, pa.Table) else data:
            check_table(pa.Table.from_batches([batch]))
            yield batch

    def _batches_with_keys(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches():
            yield add_keys(batch, [batch.column(batch.schema.get_field_index(name)) for name in self.sort_by])


def _write(
    writer: TableWriter, rows: _Rows, target_file_bytes: int, allow_undeclared_shredding: bool,
    progress: Progress | None, replacement: Replacement | None,
) -> TableCommit:
    """Write rows and commit them; the commit replaces the files that ``replacement`` selects."""
    check_arguments(
        target_file_bytes=target_file_bytes, allow_undeclared_shredding=allow_undeclared_shredding, progress=progress
    )
    plan = TableWrite.plan(
        writer, rows.schema, rows.partition_by, rows.options, allow_undeclared_shredding, replacement
    )
    with new_files(writer) as new:
        with rows.batches() as batches:
            new.write(plan.layout, batches, target_file_bytes, Steps(progress, rows.count))
        # A warning that filters turn into an error discards the files; after the commit, a retry would repeat the rows.
        warn_about_residual(residual_shares(each.file.residual for each in new.files))
        return plan.commit(writer, new.files)
