"""Write streams into a folder or an object store, exactly once.

A batch is a save, whose staged files are committed together. A record of the query's last batch
(:mod:`pqext.dataset.writing.ingest_notes`) is committed with them, so that a batch that Spark repeats is ignored.
Spark creates separate writers for the tasks and for the commit, which receives the tasks' messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.dataset.writing.ingest_notes import Batch
from pqext.dataset.writing.part_files import StagedFile
from pqext.dataset.writing.targets import put_empty
from pqext.spark.writing.sink import SaveWriter

_OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
_OF_SAVES = ("partition_overwrite", "partitionOverwriteMode", "summary_path")


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
                raise ValueError(f"option {name} applies to saves only: a stream appends, or replaces all rows")
        self.writer = SaveWriter({key: item for key, item in options.items() if key.lower() not in _OF_SPARK}, schema)
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task, and return its report. Deletes the files of the task on failure."""
        query, job = _job()
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
            if target.has(batch) is None:
                self.writer.check(self.overwrite)
            if not files:
                put_empty(target, batch.job, self.writer.partition_by, self.writer.empty)
            target.commit(files, self.overwrite, batch=batch)
        except BaseException:
            target.abort()
            raise

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staged files of the tasks."""
        for job in {message.job for message in messages if isinstance(message, WrittenBatch)}:
            self.writer.target.join(job)
            self.writer.target.abort()


def _job() -> tuple[str, str]:
    """Return the query of the current task, and a name for this run of its batch."""
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
