"""Streams into a folder or a store, each batch of them once.

A batch is a save: its files wait, and become the target's together. With them comes a note of the query's last batch
(:mod:`pqext.dataset.writing.streamed_notes`), so that a batch that Spark runs again, because it does not know that it
was committed, adds nothing. Spark makes a writer for the tasks and another one for the commit, which learns from the
tasks' messages what they did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pqext.dataset.writing.part_files import Staging
from pqext.dataset.writing.streamed_notes import Batch
from pqext.spark.writing.sink import Work

_OF_SPARK = frozenset({"checkpointlocation", "queryname", "outputmode"})
_OF_SAVES = ("partition_overwrite", "partitionOverwriteMode", "summary_path")


@dataclass(frozen=True)
class WrittenBatch(WriterCommitMessage):
    """What a task reports: the query and the job that it belongs to, and its files."""

    query: str
    job: str
    files: tuple[Staging, ...]


class StreamSink(DataSourceStreamArrowWriter):
    """Writes the batches of a stream; those of output mode ``complete`` replace one another."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        for name in _OF_SAVES:
            if name in options:
                raise ValueError(f"option {name} is for saves: a stream appends, or replaces all that is there")
        self.work = Work({key: one for key, one in options.items() if key.lower() not in _OF_SPARK}, schema)
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write one task's rows of a batch; what it has written is deleted when anything fails."""
        query, job = _job()
        files = self.work.write(lambda: self.work.target.join(job), job, iterator)
        return WrittenBatch(query, job, files)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Make the files of a batch the target's, unless they are there already."""
        told = [message for message in messages if isinstance(message, WrittenBatch)]
        files = [one for message in told for one in message.files]
        if not told or not (files or self.overwrite):
            return
        target, batch = self.work.target, Batch(told[0].query, batchId, told[0].job)
        target.join(batch.job)
        try:
            if target.has(batch) is None:
                self.work.check(self.overwrite)
            if not files:
                self.work.put_empty(batch.job)
            target.commit(files, self.overwrite, batch=batch)
        except BaseException:
            target.abort()
            raise

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove what the tasks left."""
        for job in {message.job for message in messages if isinstance(message, WrittenBatch)}:
            self.work.target.join(job)
            self.work.target.abort()


def _job() -> tuple[str, str]:
    """The query that a task belongs to, and a name for this run of its batch, as Spark tells them."""
    context = TaskContext.get()
    told = [
        None if context is None else context.getLocalProperty(name)
        for name in ("sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id")
    ]
    query, batch, run = told
    if query is None or batch is None:
        raise RuntimeError("Spark does not tell this task which batch of which query it writes")
    # Two runs of a query must not give up what the other one has written.
    return query, hashlib.blake2b(f"{query} {batch} {run}".encode(), digest_size=16).hexdigest()
