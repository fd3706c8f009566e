"""The writing half of data source ``pqext``: every task its files, all visible at once or none.

Tasks write files that wait, in a hidden folder of the target or in its store. :mod:`pqext.dataset.writing.commit` and
:mod:`pqext.dataset.writing.store_target` tell how they become the target's, what is seen of a save that is killed, and
by whom. Overwriting removes the Parquet files that reading the target would show, or those of the partitions that are
written, and nothing else; a target that shows other files is refused.

With ``geometry={"g": {"order": "hilbert"}}`` each task orders all its rows, ``row_group_bytes`` of them at a time. It
knows no other task's rows, so every file covers the whole map unless the rows were dealt out by place before:
:func:`pqext.spark.layout`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.dataset.writing.appending import empty_file, without
from pqext.dataset.writing.part_files import PartFiles, Staging, check_division
from pqext.dataset.writing.staging import Staged
from pqext.dataset.writing.targets import Target, put_empty
from pqext.spark.base.arrays import conform_batch
from pqext.spark.base.files import is_remote, option_paths, target_of
from pqext.spark.base.settings import save_settings, task_setting
from pqext.spark.base.types import file_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.columns.months import AS_INT, refuse_months, with_intervals
from pqext.spark.columns.schema_note import with_note
from pqext.spark.options.save import PartitionOverwrite, SaveOptions, save_options
from pqext.spark.writing import summary
from pqext.spark.writing.appending import comparison


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports: its files, none when it had no rows, and which partitions its session overwrites."""

    files: tuple[Staging, ...]
    partition_overwrite: PartitionOverwrite | None = None


class Work:
    """What is written where, as the options and the Spark ``schema`` of a data frame say; wrong ones are told now.

    For the options see :func:`pqext.spark.options.save.save_options`.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        paths = option_paths(options, remote=True)
        if len(paths) != 1:
            raise ValueError("save() takes one path")
        if not schema.fields:
            raise ValueError("a data frame without columns cannot be saved: its rows would be lost")
        refuse_months(schema, f"save with pqext.spark.write, or cast it: {AS_INT}")
        schema = with_intervals(schema)
        self.choices = save_options(schema, options)
        if self.choices.storage_options and not is_remote(paths[0]):
            raise ValueError("storage_options are for URLs, such as s3://bucket/folder")
        self.target: Target = target_of(paths[0], self.choices.storage_options)
        self.target.check_no_table()
        self._given = dict(options), schema
        self.partition_by = self.choices.division.partition_by
        self.schema = file_schema(schema)
        by = [field for field in schema if field.name in self.partition_by]
        refuse_months(by, f"cast it to name folders: {AS_INT}")
        check_division(self.choices.division, self.schema)
        # Options that do not suit the columns are refused before any task runs.
        self.empty = empty_file(without(self.schema, self.partition_by), self._noted(self.choices))

    def task_choices(self) -> SaveOptions:
        """The options of the save completed by the settings of the session, which only its tasks see."""
        options, schema = self._given
        choices = save_options(schema, options, save_settings(task_setting()))
        check_division(choices.division, self.schema)
        return choices

    def _noted(self, choices: SaveOptions) -> Mapping[str, Any]:
        """The options of the writer with Spark's note of the schema."""
        return with_note(choices.writer, self._given[1], self.partition_by)

    def check(self, overwrite: bool) -> None:
        """Raise ``ValueError`` for a target that these files do not suit."""
        self.target.check(overwrite, comparison(lambda: self.empty, self.partition_by, self.choices.merge_schema))

    def write(self, begin: Callable[[], Staged], job: str, iterator: Iterator[pa.RecordBatch]) -> tuple[Staging, ...]:
        """Write one task's batches, where ``begin`` tells; what is written is deleted when anything fails."""
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return ()
        context = TaskContext.get()
        part, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        staged = begin()
        staged.check()
        name = f"part-{part:05d}-{job}-{attempt}"
        choices = self.task_choices()
        with PartFiles(staged, name, self.schema, self._noted(choices), choices.division) as files:
            for batch in chain([first], iterator):
                if batch.num_rows:
                    files.write(conform_batch(batch, self.schema))
            return files.close()


class Sink(DataSourceArrowWriter):
    """Writes a data frame of Spark ``schema`` into a folder, as ``options`` say."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.work = Work(options, schema)
        self.overwrite = overwrite
        # Without an option the setting of the session counts, which the tasks report.
        self.partition_overwrite = self.work.choices.partition_overwrite if overwrite else "static"
        if self.partition_overwrite is not None:
            self.work.check(overwrite and self.partition_overwrite == "static")
        self.job = uuid.uuid4().hex
        # A task that starts after the job was aborted finds it gone.
        self.staged = self.work.target.begin(self.job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's batches; what it has written is deleted when anything fails."""
        prepare_worker()
        files = self.work.write(lambda: self.staged, self.job, iterator)
        return Written(files, self.work.task_choices().partition_overwrite)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks the target's: see :class:`pqext.dataset.writing.targets.Target`."""
        target = self.work.target
        try:
            written = [message for message in messages if isinstance(message, Written)]
            files = [one for message in written for one in message.files]
            mode = self.partition_overwrite
            if mode is None:
                mode = next(filter(None, (message.partition_overwrite for message in written)), "static")
                self.work.check(mode == "static")
            is_dynamic = self.overwrite and mode == "dynamic"
            if not files and ((self.overwrite and not is_dynamic) or not target.has_files):
                put_empty(target, self.job, self.work.partition_by, self.work.empty)
            folders = {one.file.name.rpartition("/")[0] for one in files} if is_dynamic else None
            target.commit(files, self.overwrite, folders)
        except BaseException:
            target.abort()
            raise
        if self.work.choices.summary_path is not None:
            summary.leave(self.work.choices.summary_path, target.path, [one.file for one in files])

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks left, those that failed and those that did not."""
        self.work.target.abort()
