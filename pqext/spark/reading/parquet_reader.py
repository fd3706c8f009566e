"""What the tasks of data source ``pqext`` read, as its driver has planned it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pqext.core.base.errors import CorruptDataWarning, CorruptFileError, ParquetError, SchemaMismatchError, warn
from pqext.core.files.summary_files import footer_crc
from pqext.core.read.reader import ParquetFile
from pqext.dataset.planning.plan import Task
from pqext.dataset.scan_executor import ScanExecutor
from pqext.dataset.scan_planner import ScanPlanner
from pqext.spark.base.arrays import conform_batch
from pqext.spark.base.errors import brief, spark_words
from pqext.spark.base.settings import check_assumed
from pqext.spark.base.types import exchange_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.columns.months import in_months, refuse_months
from pqext.spark.reading.planning import ReadMetrics, Slice, plan_read, write_metrics
from pqext.spark.reading.request import Query

BATCH_ROWS = 32_768
GROUPED_ROWS = 1 << 19
"""Rows of which a task makes groups together."""
OPEN_BYTES = 1 << 20
"""Bytes that a task of a count reads in the time in which it opens a file."""
BATCH_BYTES = 64 << 20
"""A batch is cut above this size: Spark's Arrow vectors have 32-bit offsets, and rows can be large."""


_OF_MONTHS = (
    "choose other columns by schema() or option columns, read with pqext.spark.read, or pass option "
    "interval_months=true for the number of months"
)


def check_given(given: StructType, schema: StructType, *, has_all: bool = False) -> None:
    """Raise ``ValueError`` when a schema of the user's, ``given``, would show nulls or casts and not the files.

    ``has_all``: ``given`` is the schema that the files had earlier, so that a column beyond it would be lost.
    """
    extra = [name for name in schema.names if name not in given.names] if has_all else []
    if extra:
        raise SchemaMismatchError(
            f"schemas differ: files have {', '.join(extra)}, which files did not have when the schema was read: read "
            "them with a new data frame or stream, or choose columns by schema() or option columns"
        )
    types = {field.name: field.dataType.simpleString() for field in schema}
    refuse_months(given, _OF_MONTHS)
    for field in given:
        type = field.dataType.simpleString()
        if types.get(field.name) != type:
            there = f"is {types[field.name]} there" if field.name in types else f"is not there: {', '.join(types)} are"
            raise ValueError(
                f"the schema has `{field.name}` {type}, which the files have not; it {there}. Leave schema() out, "
                "choose columns by option columns, and cast afterwards"
            )


class Reader(DataSourceReader):
    """Reads what a query asks for, as Arrow batches of Spark's exchange schema.

    It has no ``pushFilters``: Spark 4.3 keeps the partitions that were planned with the filters of a data frame's
    first action and gives them to its later actions, which then lack rows. Conditions come by the query alone.
    """

    def __init__(self, query: Query, schema: StructType) -> None:
        self.query = query
        self.name = uuid4().hex
        values = schema if query.aggregation is None else query.values_schema()
        self.columns = values.names
        """The columns on which the files agree."""
        self.values = StructType() if query.is_count else values
        """The columns that tasks read."""
        self.target = exchange_schema(in_months(self.values))
        self.named = query.named()

    @brief
    def partitions(self) -> list[InputPartition]:
        """One slice a task, made of the row groups that may hold matching rows."""
        plan = plan_read(self.query, self.columns)
        return [*plan.slices(self.query.partition_bytes, OPEN_BYTES if self.query.is_count else 0)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The matching rows of one slice."""
        if not isinstance(partition, Slice):
            return  # Spark makes one partition of no partitions
        prepare_worker()
        check_assumed(self.query.assumed)
        with spark_words():
            yield from self.rows(partition)

    def rows(self, slice: Slice) -> Iterator[pa.RecordBatch]:
        """The matching rows of a slice, in whatever process."""
        for number, task in enumerate(slice.tasks):
            try:
                yield from self._run(task, number)
            except FileNotFoundError:
                if not self.query.ignore_missing_files:
                    raise
            except CorruptFileError as error:
                if self.query.on_invalid == "raise":
                    raise
                warn(f"the rows from the fault on are left out: {error}", CorruptDataWarning)

    def _run(self, task: Task, number: int) -> Iterator[pa.RecordBatch]:
        """The matching rows of one file, by the plan that the driver has made."""
        aggregation, rows = self.query.aggregation, 0
        with self._open(task) as file:
            try:
                planner = ScanPlanner(self.query.query([self._file(task)], self.target.names, self.query.filter()))
                task = planner.complete(task, file)
                plans = list(task.row_groups)
                if aggregation is not None:
                    told, plans = aggregation.from_metadata(planner, task, file, self.values)
                    yield from told
                batch_rows = BATCH_ROWS if aggregation is None else GROUPED_ROWS
                for batch in ScanExecutor(planner).planned_batches(plans, file, batch_rows):
                    rows += batch.num_rows
                    if aggregation is None:
                        yield from self._give(batch)
                    else:
                        yield aggregation.partial(self.values, conform_batch(batch, self.target))
            finally:
                if self.query.metrics_path is not None:
                    done = ReadMetrics(1, len(task.kept), task.rows_kept, rows, file.source.bytes_read)
                    write_metrics(self.query.metrics_path, f"{self._task()}-{number}", done)

    def _open(self, task: Task) -> ParquetFile:
        """The file of a plan, if it is still that: Spark keeps the plan of a data frame for all of its actions."""
        advice = "since this data frame was planned: read it again with a new data frame"
        try:
            file = ParquetFile(self.query.place(self._file(task)), self.query.options, limits=self.query.limits)
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, f"The file was removed {advice}", task.path) from None
        if footer_crc(file) != task.footer_crc:
            file.close()
            raise ParquetError(f"another file has taken its place {advice}", path=task.path)
        return file

    def _file(self, task: Task) -> str:
        """The path or URL of a plan's file."""
        return self.named.get(task.path, task.path)

    def _task(self) -> str:
        """A name for what a task does, the same for all its attempts."""
        context = TaskContext.get()
        return f"{self.name}-{uuid4().hex if context is None else f'{context.stageId()}-{context.partitionId()}'}"

    def _give(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, rows):
            yield conform_batch(batch.slice(start, rows), self.target)
