"""Write a data frame to a Delta or Iceberg table: tasks write its data files, and the driver commits them once.

Tasks write to the final paths, because only the log makes files visible. They return the entries of their files for the
log, so that the driver opens none of them. The commit ignores the files of attempts whose result Spark does not use.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.core.base.errors import UnsupportedError
from pqext.core.options.read_write import WriteOptions
from pqext.dataset.writing.appending import make_nullable
from pqext.dataset.writing.part_files import check_division
from pqext.spark.base.arrays import conform_batch
from pqext.spark.base.files import option_paths
from pqext.spark.base.settings import save_settings, task_setting
from pqext.spark.base.types import file_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.columns.months import months_to_intervals, reject_months
from pqext.spark.columns.timestamps import reject_ancient_values
from pqext.spark.options.save import Division, SaveOptions, parse_save_options, stated_partition_overwrite
from pqext.spark.writing.sink import report_residual, write_summary
from pqext.tables.backend import TARGET_FILE_BYTES, NewFile, TableWriter
from pqext.tables.data_files import JobFolder, new_files, write_files
from pqext.tables.write_plan import Replacement, SelectedPartitions, TableWrite, WrittenPartitions
from pqext.tables.writing import open_writer

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableTaskResult(WriterCommitMessage):
    """Files of a task with their entries for the log, and the partition overwrite mode of its session."""

    files: tuple[NewFile, ...]
    partition_overwrite: str
    is_retry: bool
    """Whether the task has an earlier attempt, which may have left files."""


class TableSink(DataSourceArrowWriter):
    """Writer of a data frame with Spark ``schema`` into a table. It checks the table before any task runs.

    An overwrite replaces all rows, or with ``partition_overwrite=dynamic`` the partitions of the written rows.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        tables = option_paths(options, allow_urls=True)
        if len(tables) != 1:
            raise ValueError(f"save() accepts one table, not {len(tables)}")
        self.table = tables[0]
        self.options = parse_save_options(schema, options)
        self._unparsed_options = dict(options)
        self._frame_schema = schema
        self.overwrite = overwrite
        self.partition_overwrite = stated_partition_overwrite(options)
        if self.options.merge_schema:
            raise UnsupportedError(
                "option merge_schema does not change the schema of a table; add the columns to the table first",
                feature="merge_schema in tables", path=self.table,
            )
        reject_months(months_to_intervals(schema), "cast it to another type: tables have no intervals")
        schema = self.options.name_folders(schema)
        writer = self._open()
        rows = file_schema(schema)
        if self.options.requires_empty and writer.version is not None:
            raise FileExistsError(f'{writer.name} exists; pass mode="append" or mode="overwrite"')
        self.schema = make_nullable(rows) if writer.version is None else rows
        chosen = WriteOptions(**self.options.writer)
        self.plan = TableWrite.plan(
            writer, self.schema, self.options.division.partition_by,
            {field.name: getattr(chosen, field.name) for field in fields(WriteOptions)},
            self.options.allow_undeclared_shredding, self._replacement(self.partition_overwrite, writer),
        )
        check_division(self._division(self.options), self.plan.layout.schema)
        self.folder = JobFolder.begin(writer.locate)  # Spark creates the writer when the job starts to run

    def _open(self) -> TableWriter:
        return open_writer(self.table, self.options.storage_options)

    def _replacement(self, mode: str | None, writer: TableWriter) -> Replacement | None:
        """Return the files that the commit replaces, as the partition overwrite mode selects."""
        if not self.overwrite:
            return None
        has_partitions = writer.version is not None and len(writer.partitions) > 0
        return WrittenPartitions() if mode == "dynamic" and has_partitions else SelectedPartitions()

    def _division(self, options: SaveOptions) -> Division:
        size = options.division.target_file_bytes or TARGET_FILE_BYTES
        return self.plan.layout.division(options.division.max_records_per_file, size)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the batches of a task, and return its files. Deletes the files on failure."""
        prepare_worker()
        settings = save_settings(task_setting())
        options = parse_save_options(self._frame_schema, self._unparsed_options, settings)
        context = TaskContext.get()
        part, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        layout = self.plan.layout
        if "compression" in options.writer:  # the setting of the session
            layout = replace(layout, options={**layout.options, "compression": options.writer["compression"]})
        name = f"part-{part:05d}-{self.folder.job}-{attempt}"
        batches = self._conform(iterator, options)
        self.folder.check()
        files = write_files(self.folder, name, layout, self._division(options), batches)
        mode = self.partition_overwrite or settings.get("partition_overwrite") or "static"
        return TableTaskResult(tuple(files), mode, context is not None and context.attemptNumber() > 0)

    def _conform(self, batches: Iterator[pa.RecordBatch], options: SaveOptions) -> Iterator[pa.RecordBatch]:
        if options.rebase_mode == "legacy":
            raise ValueError("tables store dates and timestamps in the Gregorian calendar: omit datetime_rebase_mode")
        for batch in batches:
            if batch.num_rows:
                batch = conform_batch(batch.rename_columns(self.schema.names), self.schema)
                if options.rebase_mode == "exception":
                    reject_ancient_values(batch, self.plan.layout.partition_by)
                yield batch

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks in one version of the table."""
        results = [message for message in messages if isinstance(message, TableTaskResult)]
        files = [file for result in results for file in result.files]
        mode = self.partition_overwrite or next((result.partition_overwrite for result in results), "static")
        try:
            writer = self._open()
            plan = replace(self.plan, replacement=self._replacement(mode, writer))
            self.folder.end()  # an abort retains the files from here on, because they may be committed
        except BaseException:
            self.folder.remove(new.file.name for new in files)
            raise
        with new_files(writer, files):
            plan.commit(writer, files)
        if any(result.is_retry for result in results):
            self.folder.clean(lambda: writer, [new.file.name for new in files])
        path = self.options.summary_path
        if path is None:
            report_residual(new.file for new in files)
        try:
            if path is not None:
                write_summary(path, self.table, [new.file for new in files])
        except OSError as error:  # an exception would report a committed save as failed
            _logger.warning("%s: the save is committed, but its summary cannot be written: %s", writer.name, error)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks.

        If the commit was attempted, it has deleted its files, unless they may be committed. In stores, it is attempted
        if all tasks have succeeded.
        """
        results = [message for message in messages if isinstance(message, TableTaskResult)]
        is_open = False
        with suppress(OSError):
            is_open = self.folder.end()
        if is_open or len(results) < len(messages):
            self.folder.remove(new.file.name for result in results for new in result.files)
            self.folder.clean(self._open)
        self.folder.remove_folders()
