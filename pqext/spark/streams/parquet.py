"""Stream Parquet files with ``format("pqext")``: reads and writes, exactly once.

A written batch is a save, whose staged files are committed together. A record of the query's last batch
(:mod:`pqext.dataset.writing.ingest_records`) is committed with them, so that a batch that Spark repeats is ignored.
Spark creates separate writers for the tasks and for the commit, which receives the tasks' messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.dataset.writing.ingest_records import Batch
from pqext.dataset.writing.part_files import StagedFile
from pqext.dataset.writing.targets import put_empty
from pqext.spark.base.errors import concise_errors
from pqext.spark.base.files import option_paths
from pqext.spark.options.file import normalize_options
from pqext.spark.options.save import parse_storage_options
from pqext.spark.reading.parquet_reader import Reader, check_user_schema
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query
from pqext.spark.streams.files import FileStream, split_stream_options
from pqext.spark.writing.sink import SaveWriter, report_residual

_OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
_OF_SAVES = ("partition_overwrite", "partitionOverwriteMode", "summary_path")


@dataclass(frozen=True)
class StreamSlice(InputPartition):
    """Work of a task, including the query, because Spark creates a new reader for the tasks."""

    query: Query
    work: Slice


class ParquetStream(FileStream):
    """Stream of the columns of ``schema`` from new files. Each file is read once.

    Unless the user specified the schema, a file with additional columns is an error.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType, has_user_schema: bool = True) -> None:
        of_stream, self._query_options = split_stream_options(options)
        if "schema" in self._query_options:
            raise ValueError("streams do not support option 'schema'; pass the columns to schema() instead")
        for name in ("path_glob_filter", "modified_after", "modified_before", "on_invalid"):
            if name in normalize_options(self._query_options):
                raise ValueError(f"streams do not support option {name!r}; pass a path such as folder/*.parquet")
        storage = self._query_options.get("storage_options")
        flags = (text for name, text in self._query_options.items() if name.lower() == "ignore_table_format")
        flag = next(flags, "false")
        super().__init__(
            option_paths(options, allow_urls=True),
            None if storage is None else parse_storage_options(storage),
            of_stream,
            ignore_table_format=flag.lower() == "true",
        )
        Query.from_options(self._query_options, [])
        self._schema = schema
        self._has_user_schema = has_user_schema

    @concise_errors
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan a slice for each task from the row groups of new files that may contain matching rows."""
        new, current_files = self.list_batch(start, end)
        if not new:
            return []
        locations = [(entry.file, entry.location) for entry in current_files]
        query = Query.from_options(self._query_options, locations)
        files = tuple(item.file for item in new)
        query = replace(query, files=files, has_user_schema=self._has_user_schema).resolve()
        check_user_schema(self._schema, query.schema(), has_all=not self._has_user_schema)
        slices = Reader(query, self._schema).partitions()
        named = query.display_names()
        return [
            StreamSlice(replace(query, files=tuple(named.get(task.path, task.path) for task in element.tasks)), element)
            for element in slices
            if isinstance(element, Slice)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a slice."""
        if isinstance(partition, StreamSlice):
            yield from Reader(partition.query, self._schema).read(partition.work)


@dataclass(frozen=True)
class WrittenBatch(WriterCommitMessage):
    """Report of a task: its query, its job and its files."""

    query: str
    job: str
    files: tuple[StagedFile, ...]


class StreamSink(DataSourceStreamArrowWriter):
    """Writer of the batches of a stream. In output mode ``complete``, each batch replaces the preceding batch."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        for name in _OF_SAVES:
            if name in options:
                raise ValueError(
                    f"option {name} applies to saves only; omit it, because a stream appends or replaces all rows"
                )
        self.writer = SaveWriter({key: item for key, item in options.items() if key.lower() not in _OF_SPARK}, schema)
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task, and return its report. Deletes the files of the task on failure."""
        query, job = _identify_job()
        files = self.writer.write(lambda: self.writer.target.join(job), job, iterator)
        return WrittenBatch(query, job, files)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Commit the files of a batch, unless they have already been committed."""
        lines = [message for message in messages if isinstance(message, WrittenBatch)]
        files = [file for message in lines for file in message.files]
        if not lines or not (files or self.overwrite):
            return
        target, batch = self.writer.target, Batch(lines[0].query, batchId, lines[0].job)
        target.join(batch.job)
        try:
            if target.has_batch(batch) is None:
                self.writer.check(self.overwrite)
            if not files:
                put_empty(target, batch.job, self.writer.partition_by, self.writer.empty)
            target.commit(files, self.overwrite, batch=batch)
        except BaseException:
            target.abort()
            raise
        report_residual(file.file for file in files)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staged files of the tasks."""
        for job in {message.job for message in messages if isinstance(message, WrittenBatch)}:
            self.writer.target.join(job)
            self.writer.target.abort()


def _identify_job() -> tuple[str, str]:
    """Return the query id of the current task, and a name for this attempt of the batch."""
    context = TaskContext.get()
    lines = [
        None if context is None else context.getLocalProperty(name)
        for name in ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
    ]
    query, batch, run = lines
    if query is None or batch is None:
        raise RuntimeError("Spark did not pass the ids of the batch and the query to this task")
    # Two runs of a query must not abort each other's files.
    return query, hashlib.blake2b(f"{query} {batch} {run}".encode(), digest_size=16).hexdigest()
