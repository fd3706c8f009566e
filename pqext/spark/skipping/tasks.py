"""Distribute the objects of a table among Spark tasks, and collect the reports of the tasks."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pqext.core.base.progress import Progress
from pqext.core.base.text import with_noun
from pqext.core.io.sources.locations import Location, locate
from pqext.dataset.files.sources import source_name
from pqext.dataset.table.partitions import Partitions
from pqext.skipping.indexes.index import Index
from pqext.skipping.maintenance.construction import Summary
from pqext.skipping.maintenance.object_cells import Indexer, Row, TypedIndex, resolve_indexes
from pqext.skipping.maintenance.part_layout import Layout, PartWriter
from pqext.skipping.store.folders import list_all_parts, remove_parts
from pqext.skipping.store.table import Table
from pqext.spark.base.files import is_remote, local_path
from pqext.spark.base.hadoop import read_hadoop_options
from pqext.spark.base.progress import job_group, report_progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORT = "report binary"
_MOST_OF_A_TASK = 5_000


@dataclass(frozen=True)
class TaskLocation:
    """Location that can be sent to tasks: path or URL of a file or folder, and its version when it was listed."""

    path: str
    listed: Any = None

    @classmethod
    def from_source(cls, source: Any) -> TaskLocation:
        """Create a location from a result of :func:`locate`."""
        return cls(source.path, source.listed) if isinstance(source, Location) else cls(str(source))

    def source(self, storage_options: Mapping[str, Any] | None) -> Any:
        """Return the location as a result of :func:`locate`."""
        result = locate(self.path, None, storage_options if is_remote(self.path) else None)
        return replace(result, listed=self.listed) if isinstance(result, Location) else result


@dataclass
class Report:
    """Report of a task, or the combined report of several tasks."""

    added: int = 0
    read: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    """Names of the objects that the task has processed, if the objects of a task are not known in advance."""

    def as_batch(self) -> pa.RecordBatch:
        """Convert the report to a batch for the driver."""
        return pa.RecordBatch.from_pydict({"report": pa.array([pickle.dumps(self)], pa.binary())})


@dataclass(frozen=True)
class StoreParts:
    """Parts of a store that the tasks of a job write."""

    layout: Layout
    store: TaskLocation
    partitions: Partitions
    storage_options: Mapping[str, Any] | None = field(repr=False)
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    def writer(self, task: int) -> PartWriter:
        """Return the writer of a task's parts. A retried task writes the same parts again."""
        location = self.store.source(self.storage_options)
        return PartWriter(self.layout, location, self.partitions, task, self.job)

    def run(self, spark: SparkSession, frame: DataFrame, title: str, total: int, progress: Progress | None) -> Report:
        """Run the tasks of ``frame`` and return their combined report. Deletes the job's parts if a task fails."""
        group = f"pqext-skipping-{self.job}"
        try:
            with job_group(spark, group, title), report_progress(spark, group, total, progress):
                reports: list[Report] = [pickle.loads(row[0]) for row in frame.collect()]
        except BaseException:
            parts = list_all_parts(self.store.source(self.storage_options))
            remove_parts([part for part in parts if self.job in source_name(part)])
            raise
        combined = Report()
        for report in reports:
            combined.added, combined.read = combined.added + report.added, combined.read + report.read
            combined.failed += report.failed
            combined.seen |= report.seen
        return combined


@dataclass(frozen=True)
class ParquetTask:
    """Task function that indexes the Parquet files of one task."""

    work: Sequence[bytes]
    """Pickled files of each task. All tasks receive all of them, and each loads its own."""
    indexer: Indexer
    parts: StoreParts

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a report for each task number."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                writer, report = self.parts.writer(number), Report()
                places: list[TaskLocation] = pickle.loads(self.work[number])
                for place in places:
                    source = place.source(self.parts.storage_options)
                    row = self.indexer.try_row(source)
                    if isinstance(row, Row):
                        report.read += row.read
                        writer.add(source, row)
                    else:
                        report.failed.append((place.path, row))
                report.added = writer.finish()
                yield report.as_batch()


@dataclass(frozen=True)
class TaskIndexing:
    """Strategy that indexes Parquet files in Spark tasks, with a share of the files for each task."""

    spark: SparkSession
    indexer: Indexer
    storage_options: Mapping[str, Any] | None = field(repr=False)
    progress: Progress | None = None

    def resolve(self, indexes: Sequence[Index], source: Any) -> list[TypedIndex]:
        """Look up the indexed columns in one file. Return each index with its value type and entry type."""
        return resolve_indexes(indexes, source, self.indexer.options, self.indexer.limits)

    def add(self, table: Table, files: Sequence[Any], layout: Layout, location: Any) -> Summary:
        """Index ``files``, and write their rows as parts of the store at ``location``."""
        total = max(min(len(files), 2 * parallelism(self.spark)), -(-len(files) // _MOST_OF_A_TASK))
        places = [TaskLocation.from_source(source) for source in files]
        work = [pickle.dumps(places[number::total]) for number in range(total)]
        parts = StoreParts(layout, TaskLocation.from_source(location), table.partitions, self.storage_options)
        task = ParquetTask(work, replace(self.indexer, indexes=layout.indexed), parts)
        frame = self.spark.range(0, total, 1, total).mapInArrow(task.run, REPORT)
        title = f"pqext: index {with_noun(len(files), 'file')} for {source_name(location)}"
        report = parts.run(self.spark, frame, title, total, self.progress)
        return Summary(len(files), report.added, 0, report.read, tuple(report.failed))


def parallelism(spark: SparkSession) -> int:
    """Return Spark's default parallelism, or the number of shuffle partitions on Spark Connect."""
    context: Callable[[], Any] | None = None if type(spark).__module__.startswith("pyspark.sql.connect") else (
        lambda: spark.sparkContext.defaultParallelism
    )
    return int(spark.conf.get("spark.sql.shuffle.partitions", "8") or 8) if context is None else int(context())


def resolve_paths(
    spark: SparkSession, path: str | Sequence[str], other_paths: Sequence[Any],
    storage_options: Mapping[str, Any] | None,
) -> tuple[list[str], Mapping[str, Any] | None]:
    """Return absolute paths and URLs, and the storage options for them and for ``other_paths``."""
    path_list = [path] if isinstance(path, str) else list(path)
    paths = [element if is_remote(element) else local_path(element) for element in path_list]
    remote = [item for item in (*paths, *other_paths) if isinstance(item, str) and is_remote(item)]
    return paths, storage_options or (read_hadoop_options(spark, remote) if remote else None)
