"""The writing half of data source ``pqext``: every task its files, all visible at once or none.

Tasks write into a hidden folder of the target. :mod:`pqext.spark.commit` tells how its files become the target's, what
is seen of a save that is killed, and by whom. Overwriting removes the Parquet files that reading the target would show,
or those of the partitions that are written, and nothing else; a target that shows other files is refused.

With ``geometry={"g": {"order": "hilbert"}}`` each task orders all its rows, ``row_group_bytes`` of them at a time. It
knows no other task's rows, so every file covers the whole map unless the rows were dealt out by place before:
:func:`pqext.spark.layout`.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.core.errors import ParquetError
from pqext.core.reader import ParquetFile
from pqext.core.sources.store import Location
from pqext.core.writer import ParquetWriter
from pqext.dataset.files import spark_metadata
from pqext.dataset.files.folders import files_below
from pqext.dataset.one_table.agreement import check_agreement
from pqext.dataset.one_table.partitions import partitions_of
from pqext.spark import commit, summary
from pqext.spark.arrays import conform_batch
from pqext.spark.files import option_paths
from pqext.spark.instants import file_schema_in_spark
from pqext.spark.part_files import PartFiles, Staging, check_division
from pqext.spark.request import Query
from pqext.spark.save_options import save_options
from pqext.spark.staging import StagedFolder
from pqext.spark.types import file_schema


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task reports: its files, none when it had no rows."""

    files: tuple[Staging, ...]


class Sink(DataSourceArrowWriter):
    """Writes a data frame of Spark ``schema`` into a folder.

    For the options see :func:`pqext.spark.save_options.save_options`.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        paths = option_paths(options)
        if len(paths) != 1:
            raise ValueError("save() takes one path")
        self.target = Path(paths[0]).absolute()
        self.choices = save_options(schema, options)
        self.options = self.choices.writer
        self.division = self.choices.division
        self.schema = file_schema(schema)
        check_division(self.division, self.schema)
        self.overwrite = overwrite
        self.is_dynamic = overwrite and self.choices.partition_overwrite == "dynamic"
        empty = self._empty_file()  # options that do not suit the columns are refused before any task runs
        check_target(
            self.target, overwrite and not self.is_dynamic, lambda: empty, self.division.partition_by
        )
        self.job = uuid.uuid4().hex
        # A task that starts after the job was aborted finds it gone.
        self.folder = commit.begin(self.target, self.job)

    def _empty_file(self) -> bytes:
        return empty_file(without(self.schema, self.division.partition_by), self.options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's batches; what it has written is deleted when anything fails."""
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return Written(())
        context = TaskContext.get()
        part, attempt = (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)
        staged = StagedFolder(str(self.folder))
        staged.check()
        with PartFiles(
            staged, f"part-{part:05d}-{self.job}-{attempt}", self.schema, self.options, self.division
        ) as files:
            for batch in chain([first], iterator):
                if batch.num_rows:
                    files.write(conform_batch(batch, self.schema))
            return Written(files.close())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the files of all tasks the target's: see :func:`pqext.spark.commit.commit`."""
        try:
            written = tuple(one.file for message in messages if isinstance(message, Written) for one in message.files)
            names = [file.name for file in written] or self._write_empty()
            folders = {name.rpartition("/")[0] for name in names} if self.is_dynamic else None
            commit.commit(self.target, self.job, names, overwrite=self.overwrite, folders=folders)
        except BaseException:
            commit.abort(self.target, self.job)
            raise
        if self.choices.summary_path is not None:
            summary.leave(self.choices.summary_path, self.target, written)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove what the tasks left, those that failed and those that did not."""
        commit.abort(self.target, self.job)

    def _write_empty(self) -> list[str]:
        """A data frame without rows still has a schema, which needs a file to stand in, but in no partition."""
        if self.division.partition_by:
            return []
        name = f"part-00000-{self.job}-empty.parquet"
        (self.folder / name).write_bytes(self._empty_file())
        commit.flush(self.folder / name)
        return [name]


def empty_file(schema: pa.Schema, options: Mapping[str, Any]) -> bytes:
    """A file without rows, which holds the schema."""
    sink = io.BytesIO()
    with ParquetWriter(sink, schema, **options):
        pass
    return sink.getvalue()


def without(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """``schema`` without the columns ``names``."""
    return pa.schema([field for field in schema if field.name not in names], schema.metadata)


def check_target(
    target: Path, overwrite: bool, empty: Callable[[], bytes], partition_by: tuple[str, ...] = ()
) -> None:
    """Raise ``ValueError`` for a folder that files like ``empty`` cannot be saved to, before any task runs."""
    if target.is_file():
        raise ValueError(f"{target} is a file; a save writes a folder")
    if (target / spark_metadata.FOLDER).is_dir():
        raise ValueError(
            f"{target} belongs to a streaming sink of Spark, whose log in {spark_metadata.FOLDER} would hide "
            "the new files from all readers: save to another folder"
        )
    if target.is_dir():
        if overwrite:
            commit.replaceable(target)
        else:
            check_append(str(target), str(target), files_below(str(target)), empty(), partition_by)


def check_append(
    target: str, sources: Any, present: Mapping[str, Any], appended: bytes, partition_by: tuple[str, ...] = ()
) -> None:
    """Raise ``ValueError`` where a file like ``appended`` would make ``target`` unreadable by another schema.

    ``sources`` is what a reader of it names, and ``present`` its files by their paths. A file that is there and cannot
    be read, such as an encrypted one, is compared with nothing.
    """
    if not present:
        return
    options, limits = Query(()).options, Query(()).limits
    partitions = partitions_of(sources, [*present.values()] if isinstance(sources, Location) else [*present])
    if partition_by and tuple(partitions.schema.names) != partition_by:
        there = ", ".join(partitions.schema.names)
        raise ValueError(
            f"{target} has {f'folders by {there}' if there else 'no folders of partitions'}, and partition_by names "
            f"{', '.join(partition_by)}; nothing was written: save to another folder or with mode(\"overwrite\")"
        )
    path, at = next(iter(present.items()))
    try:
        there = file_schema_in_spark(at, options, limits)
    except ParquetError:
        return
    with ParquetFile(appended, options) as file:
        new = file.arrow_schema
    first, other = (_nullable(partitions.complete_schema(schema)) for schema in (there, new))
    try:
        check_agreement(first, other, path, "the data frame")
    except ValueError as error:
        raise ValueError(
            f"{error}; no reader could read both, so nothing was written: select and cast the columns that {target} "
            'has, or save to another folder or with mode("overwrite")'
        ) from None


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
