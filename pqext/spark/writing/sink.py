"""Write a data frame with data source ``pqext``: tasks stage files, and the driver commits them atomically.

Staged files are in a hidden folder of the target or in its object store. :mod:`pqext.dataset.writing.commit` and
:mod:`pqext.dataset.writing.store_target` describe the commit and its state after a crash. An overwrite removes the
Parquet files that readers of the target see, or only files of the written partitions, and fails if the target has other
files.

With ``geometry={"g": {"order": "hilbert"}}`` each task orders its own rows, ``row_group_bytes`` at a time. Files of
different tasks therefore overlap unless :func:`pqext.spark.layout` distributed the rows by location first.
"""

from __future__ import annotations

import json
import logging
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.core.base.errors import ParquetError, SchemaMismatchError
from pqext.core.read.reader import ParquetFile
from pqext.dataset.table.agreement import check_agreement
from pqext.dataset.table.unified_schema import are_unifiable, merge_schemas
from pqext.dataset.writing.appending import Compare, drop_columns, empty_file, make_nullable, partitions_of_target
from pqext.dataset.writing.dataset import SaveResult as SaveResult
from pqext.dataset.writing.part_files import PartFiles, StagedFile, check_division
from pqext.dataset.writing.part_files import WrittenFile as WrittenFile
from pqext.dataset.writing.staging import StagingArea
from pqext.dataset.writing.targets import Target, check_empty, put_empty
from pqext.spark.base.arrays import conform_batch
from pqext.spark.base.files import is_remote, option_paths, resolve_target
from pqext.spark.base.settings import save_settings, task_setting
from pqext.spark.base.types import file_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.columns.months import AS_INT, months_to_intervals, reject_months
from pqext.spark.columns.recorded_schema import add_recorded_schema
from pqext.spark.columns.timestamps import (
    add_version,
    check_rebase_mode,
    read_schema,
    reject_ancient_values,
    unify_schemas,
)
from pqext.spark.options.save import PartitionOverwrite, SaveOptions, parse_save_options
from pqext.spark.reading.request import Query
from pqext.variant.shredding.choice import residual_shares, warn_about_residual

_logger = logging.getLogger(__name__)
_ADVICE = 'save to another folder or with mode("overwrite")'
_DYNAMIC_ADVICE = 'save to another folder, or replace all partitions with partition_overwrite="static"'


@dataclass(frozen=True)
class TaskResult(WriterCommitMessage):
    """Files that a task wrote, empty for a task without rows, and the partition overwrite mode of its session."""

    files: tuple[StagedFile, ...]
    partition_overwrite: PartitionOverwrite | None = None


class SaveWriter:
    """Writer of staged files in the tasks of a save. Options and schema are checked before any task runs.

    For the options, see :func:`pqext.spark.options.save.parse_save_options`.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        paths = option_paths(options, allow_urls=True)
        if len(paths) != 1:
            raise ValueError(f"save() accepts one path, not {len(paths)}")
        if not schema.fields:
            raise ValueError("a data frame without columns cannot be saved: add a column to preserve the rows")
        reject_months(schema, f"save with pqext.spark.write, or cast it: {AS_INT}")
        schema = months_to_intervals(schema)
        self.options = parse_save_options(schema, options)
        if self.options.storage_options and not is_remote(paths[0]):
            raise ValueError("storage_options are for URLs, such as s3://bucket/folder; omit them for local paths")
        if self.options.allow_undeclared_shredding:
            raise ValueError("allow_undeclared_shredding is for tables, such as delta:PATH; omit it for folders")
        self.target: Target = resolve_target(paths[0], self.options.storage_options)
        self.target.check_no_table()
        self._unparsed_options = dict(options)
        self._frame_schema = schema
        self._spark_schema = schema = self.options.name_folders(schema)
        self.partition_by = self.options.division.partition_by
        self.schema = file_schema(schema)
        partition_fields = [field for field in schema if field.name in self.partition_by]
        reject_months(partition_fields, f"cast it to name folders: {AS_INT}")
        check_division(self.options.division, self.schema)
        self._check_calendar(self.options)
        # Writing an empty file rejects options that do not match the columns before any task runs.
        self.empty = empty_file(drop_columns(self.schema, self.partition_by), self._writer_options(self.options))

    def task_options(self) -> SaveOptions:
        """Return the options completed with the settings of the session, which only tasks can read."""
        options = parse_save_options(self._frame_schema, self._unparsed_options, save_settings(task_setting()))
        check_division(options.division, file_schema(options.name_folders(self._frame_schema)))
        self._check_calendar(options)
        return options

    def _check_calendar(self, options: SaveOptions) -> None:
        """Raise ``ValueError`` if dates or timestamps would have to be written in the legacy calendar."""
        if options.rebase_mode == "legacy":
            check_rebase_mode(options.rebase_mode, drop_columns(self.schema, self.partition_by))

    def _writer_options(self, options: SaveOptions) -> Mapping[str, Any]:
        """Return the options of the writer, including the recorded schema and the version of Spark."""
        return add_version(add_recorded_schema(options.writer, self._spark_schema, self.partition_by))

    def check(self, overwrite: bool, is_dynamic: bool = False) -> None:
        """Raise ``ValueError`` if the files cannot be added to the target.

        If ``is_dynamic`` is true, a save in mode ``overwrite`` keeps the partitions that get no rows.
        """
        advice = _DYNAMIC_ADVICE if is_dynamic else _ADVICE
        merge_schema = self.options.merge_schema
        self.target.check(overwrite, append_check(lambda: self.empty, self.partition_by, merge_schema, advice))

    def write(
        self, begin: Callable[[], StagingArea], job: str, iterator: Iterator[pa.RecordBatch]
    ) -> tuple[StagedFile, ...]:
        """Write the batches of a task to the staging area that ``begin`` opens. Deletes the files on failure."""
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return ()
        context = TaskContext.get()
        part, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        staged = begin()
        staged.check()
        name = f"part-{part:05d}-{job}-{attempt}"
        options = self.task_options()
        with PartFiles(staged, name, self.schema, self._writer_options(options), options.division) as files:
            for batch in chain([first], iterator):
                if batch.num_rows:
                    batch = conform_batch(batch.rename_columns(self.schema.names), self.schema)
                    if options.rebase_mode == "exception":
                        reject_ancient_values(batch, self.partition_by)
                    files.write(batch)
            return files.close()



class Sink(DataSourceArrowWriter):
    """Writer of a data frame with Spark ``schema`` into a folder or an object store."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        self.writer = SaveWriter(options, schema)
        self.overwrite = overwrite
        # Without an option, the setting of the session applies, which the tasks report.
        self.partition_overwrite = self.writer.options.partition_overwrite if overwrite else "static"
        if self.partition_overwrite is not None:
            is_static = self.partition_overwrite == "static"
            self.writer.check(overwrite and is_static, overwrite and not is_static)
        self.job = uuid.uuid4().hex
        # Begin the job here, so that a task that starts after an abort fails.
        self.staged = self.writer.target.begin(self.job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the batches of a task, and return its result. Deletes the files of the task on failure."""
        prepare_worker()
        files = self.writer.write(lambda: self.staged, self.job, iterator)
        return TaskResult(files, self.writer.task_options().partition_overwrite)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks; see :class:`pqext.dataset.writing.targets.Target`."""
        target = self.writer.target
        try:
            results = [message for message in messages if isinstance(message, TaskResult)]
            files = [staging for result in results for staging in result.files]
            mode = self.partition_overwrite
            if mode is None:
                mode = next(filter(None, (result.partition_overwrite for result in results)), "static")
                self.writer.check(mode == "static", mode == "dynamic")
            is_dynamic = self.overwrite and mode == "dynamic"
            if not files and ((self.overwrite and not is_dynamic) or not target.has_files):
                put_empty(target, self.job, self.writer.partition_by, self.writer.empty)
            folders = {staging.file.name.rpartition("/")[0] for staging in files} if is_dynamic else None
            check = (lambda: check_empty(target)) if self.writer.options.requires_empty else None
            target.commit(files, self.overwrite, folders, check=check)
        except BaseException:
            target.abort()
            raise
        path = self.writer.options.summary_path
        if path is None:
            report_residual(staging.file for staging in files)
        try:
            if path is not None:
                write_summary(path, target.path, [staging.file for staging in files])
        except OSError as error:  # an exception would report a committed save as failed
            _logger.warning("%s: the save is committed, but its summary cannot be written: %s", target.path, error)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged files of all tasks."""
        self.writer.target.abort()


def report_residual(files: Iterable[WrittenFile]) -> None:
    """Warn about values in the residual, in the output of the driver.

    It never raises, because an exception would report a committed save as failed. Saves with a summary do not call it,
    because the process that reads the summary warns.
    """
    with suppress(UserWarning):
        warn_about_residual(residual_shares(file.residual for file in files))


def write_summary(path: str, target: str, files: Sequence[WrittenFile]) -> None:
    """Write the summary of a save to the file of option ``summary_path``, for the process that started the save."""
    summary = Path(path)
    partial = summary.with_name(f".{summary.name}-{uuid.uuid4().hex}")
    partial.write_text(json.dumps({"path": target, "files": [asdict(file) for file in files]}), "utf-8")
    partial.replace(summary)


def read_summary(path: Path, target: str) -> SaveResult:
    """Read the summary that :func:`write_summary` wrote for ``target``.

    Warns and returns a result without files if it is missing, because the driver cannot write to this machine.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        message = "the save is committed, but the driver cannot report its files to this machine: the result lists none"
        warnings.warn(f"{target}: {message}", stacklevel=3)
        return SaveResult(target, ())
    return SaveResult(data["path"], tuple(WrittenFile(**file) for file in data["files"]))


def append_check(
    get_empty_file: Callable[[], bytes],
    partition_by: tuple[str, ...] = (),
    merge_schema: bool = False,
    advice: str = _ADVICE,
) -> Compare:
    """Return a function that calls :func:`check_append` for files with the schema of an empty file."""

    def compare(target: str, sources: Any, existing_files: Mapping[str, Any]) -> None:
        check_append(target, sources, existing_files, get_empty_file(), partition_by, merge_schema, advice)

    return compare


def check_append(
    target: str,
    sources: Any,
    existing_files: Mapping[str, Any],
    appended_schema: bytes,
    partition_by: tuple[str, ...] = (),
    merge_schema: bool = False,
    other_target: str = _ADVICE,
) -> None:
    """Raise ``SchemaMismatchError`` if the schema of ``target`` differs from the schema of ``appended_schema``.

    Args:
        target: The path of the target, for messages.
        sources: The sources that a reader of the target opens.
        existing_files: The files of the target by path. A file that cannot be read, such as an encrypted file, is not
            compared.
        appended_schema: The bytes of a file without rows that has the schema to append.
        partition_by: The partition columns.
        merge_schema: Accept other columns and types if a unified schema represents all values.
        other_target: Advice to save the rows elsewhere, for messages.
    """
    options, limits = Query(()).options, Query(()).limits
    with ParquetFile(appended_schema, options) as file:
        new = file.arrow_schema
    partitions = partitions_of_target(target, sources, existing_files, partition_by, new.names, other_target)
    path, location = next(iter(existing_files.items()))
    try:
        existing = (
            unify_schemas([*existing_files.values()], options, limits) if merge_schema
            else read_schema(location, options, limits)
        )  # fmt: skip
    except SchemaMismatchError:
        raise
    except ParquetError:
        return
    first, other = (make_nullable(partitions.complete_schema(schema)) for schema in (existing, new))
    advice = f"select and cast the columns of {target}, or {other_target}"
    try:
        if merge_schema:
            merge_schemas(first, other, target, "the data frame")
        else:
            check_agreement(first, other, path, "the data frame")
    except SchemaMismatchError as error:
        if merge_schema:
            raise SchemaMismatchError(f"{error}; nothing was written: {advice}") from None
        readers = 'only readers with schema="union" could' if are_unifiable([first, other]) else "no reader could"
        raise SchemaMismatchError(
            f"{error}; {readers} read both, so nothing was written: pass merge_schema=True to add columns and widen "
            f"types, or {advice}"
        ) from None
