"""Read Parquet files by a plan of the driver, in tasks of data source ``pqext`` or, for few rows, on the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
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
from pqext.spark.base.errors import concise_errors, spark_option_names
from pqext.spark.base.files import is_remote
from pqext.spark.base.settings import CASE_SENSITIVE, REBASE_MODES, check_settings
from pqext.spark.base.types import to_exchange_schema
from pqext.spark.base.worker_process import prepare_worker
from pqext.spark.columns.months import intervals_to_months, reject_months
from pqext.spark.columns.timestamps import depends_on_calendar
from pqext.spark.reading.planning import ReadMetrics, Slice, plan_read, write_metrics
from pqext.spark.reading.request import Query

BATCH_ROWS = 32_768
GROUPED_ROWS = 1 << 19
"""Number of rows that a task aggregates in one batch."""
OPEN_BYTES = 1 << 20
"""Cost of opening a file in a count, as the number of bytes that a task reads in the same time."""
BATCH_BYTES = 64 << 20
"""Size at which batches are split, because Spark's Arrow vectors have 32-bit offsets and rows can be large."""
STORED_BYTES = 16 << 20
"""Maximum number of stored bytes that the driver reads itself."""
MOST_ROWS = 1 << 22
"""Maximum number of rows that the driver reads itself, because equal values compress to few bytes."""
COUNTED_FILES = 64
"""Maximum number of local files whose rows the driver counts itself."""
_MONTHS_ADVICE = (
    "choose other columns by schema() or option columns, read with pqext.spark.read, or pass option "
    "interval_months=true for the number of months"
)


def check_user_schema(user_schema: StructType, schema: StructType, *, has_all: bool = False) -> None:
    """Raise ``ValueError`` if the user's schema has columns or types that differ from the files.

    With ``has_all``, ``user_schema`` is an earlier schema of the files, and files must not have additional columns.
    Raises ``UnsupportedError`` for year-month intervals.
    """
    extra = [name for name in schema.names if name not in user_schema.names] if has_all else []
    if extra:
        raise SchemaMismatchError(
            f"schemas differ: files have columns {', '.join(extra)}, which were missing when the schema was read: read "
            "the files with a new data frame or stream, or choose columns by schema() or option columns"
        )
    types = {field.name: field.dataType.simpleString() for field in schema}
    reject_months(user_schema, _MONTHS_ADVICE)
    for field in user_schema:
        type = field.dataType.simpleString()
        if types.get(field.name) != type:
            columns = f"has type {types[field.name]}" if field.name in types else f"is not one of {', '.join(types)}"
            raise ValueError(
                f"the schema has `{field.name}` {type}, but in the files it {columns}. Omit schema(), select columns "
                "with option columns, and cast afterwards"
            )


class Reader(DataSourceReader):
    """Reader that returns the rows of a query as Arrow batches with Spark's exchange schema.

    It does not implement ``pushFilters``: Spark 4.3 reuses the partitions that were planned with the filters of the
    first action of a data frame for later actions, which would lose rows. Only the query has conditions.
    """

    def __init__(self, query: Query, schema: StructType) -> None:
        if not any(depends_on_calendar(field.type) for field in query.arrow_schema()):
            without = [(name, value) for name, value in query.assumed if name not in REBASE_MODES.values()]
            query = replace(query, assumed=tuple(without))
        if query.replaces_columns and not query.settings_known:
            query = replace(query, assumed=(*query.assumed, (CASE_SENSITIVE, "false")))
        self.query = query
        self.name = uuid4().hex
        values = schema if query.aggregation is None else query.values_schema()
        self.columns = values.names
        """Columns that must be the same in all files."""
        self.values = StructType() if query.is_count else values
        """Columns that tasks read."""
        self.target = to_exchange_schema(intervals_to_months(self.values))
        self.named = query.display_names()

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the metadata of table files. Each slice contains the metadata of its own files."""
        if self.query.table is None:
            return self.__dict__
        return {**self.__dict__, "query": self.query.restrict((), {}), "named": {}}

    @concise_errors
    def partitions(self) -> list[InputPartition]:
        """Plan a slice for each task from the row groups that may contain matching rows."""
        plan = plan_read(self.query, self.columns)
        slices = plan.slices(self.query.partition_bytes, OPEN_BYTES if self.query.is_count else 0)
        if self.query.table is None:
            return [*slices]
        paths = [{task.path for task in each.tasks} for each in slices]
        queries = [self.query.restrict(names, self.named) for names in paths]
        return [replace(each, query=query) for each, query in zip(slices, queries, strict=True)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a slice."""
        if not isinstance(partition, Slice):
            return  # Spark reads an empty partition if a plan is empty
        prepare_worker()
        check_settings(self.query.assumed)
        reader = self
        if partition.query is not None:
            reader = copy(self)
            reader.query, reader.named = partition.query, partition.query.display_names()
        yield from reader.rows(partition)

    def rows(self, slice: Slice) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a slice, in a task or on the driver."""
        with spark_option_names():
            for number, task in enumerate(slice.tasks):
                try:
                    yield from self._read_file(task, number)
                except FileNotFoundError:
                    if not self.query.ignore_missing_files:
                        raise
                except CorruptFileError as error:
                    if self.query.on_invalid == "raise":
                        raise
                    warn(f"the remaining rows of the file are skipped: {error}", CorruptDataWarning)

    def _read_file(self, task: Task, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of a file, following the driver's plan."""
        aggregation, rows = self.query.aggregation, 0
        with self._open(task) as file:
            try:
                planner = ScanPlanner(
                    self.query.query([self._planned_file(task)], self.target.names, self.query.filter())
                )
                task = planner.complete(task, file)
                plans = list(task.row_groups)
                if aggregation is not None:
                    batches, plans = aggregation.from_metadata(planner, task, file, self.values)
                    yield from batches
                batch_rows = BATCH_ROWS if aggregation is None else GROUPED_ROWS
                for batch in ScanExecutor(planner).planned_batches(plans, file, batch_rows):
                    rows += batch.num_rows
                    if aggregation is None:
                        yield from self._split_batch(batch)
                    else:
                        yield aggregation.compute_partial(self.values, conform_batch(batch, self.target))
            finally:
                if self.query.metrics_path is not None:
                    metrics = ReadMetrics(1, len(task.kept_row_groups), task.rows_kept, rows, file.source.bytes_read)
                    write_metrics(self.query.metrics_path, f"{self._task_name()}-{number}", metrics)

    def _open(self, task: Task) -> ParquetFile:
        """Open a planned file. Raises an error for a changed file, because Spark reuses plans for all actions."""
        advice = "since this data frame was planned: read it again with a new data frame"
        try:
            file = ParquetFile(
                self.query.locate(self._planned_file(task)), self.query.options, limits=self.query.limits
            )
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, f"The file was removed {advice}", task.path) from None
        if footer_crc(file) != task.footer_crc:
            file.close()
            raise ParquetError(f"the file was replaced {advice}", path=task.path)
        if self.query.table is not None and self.query.table.view is not None:
            self.query.table.view.apply(self.query.locate(self._planned_file(task)), file)
        return file

    def _planned_file(self, task: Task) -> str:
        """Return the path or URL of a planned file."""
        return self.named.get(task.path, task.path)

    def _task_name(self) -> str:
        """Return a name that is the same for all attempts of the task; a random name outside a task."""
        context = TaskContext.get()
        return f"{self.name}-{uuid4().hex if context is None else f'{context.stageId()}-{context.partitionId()}'}"

    def _split_batch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = max(1, batch.num_rows * BATCH_BYTES // max(batch.nbytes, 1))
        for start in range(0, batch.num_rows, rows):
            yield conform_batch(batch.slice(start, rows), self.target)


def read_few_rows(query: Query, schema: StructType) -> Iterator[pa.RecordBatch] | None:
    """Read the rows of a query on the driver as a task would, with the columns of ``schema``.

    Returns None if the row groups exceed ``STORED_BYTES`` or ``MOST_ROWS``.
    """
    reader = Reader(query, schema)
    slices = [partition for partition in reader.partitions() if isinstance(partition, Slice)]
    return None if _exceeds_driver_limits(slices) else (batch for slice in slices for batch in reader.rows(slice))


def few_files_counter(query: Query) -> Callable[[], int] | None:
    """Return a function that counts rows for aggregation ``query`` on the driver, or None if tasks should count them.

    Like a data frame, the function retains its plan, and raises an error for files that have changed since.
    """
    if len(query.files) > COUNTED_FILES or any(map(is_remote, query.files)):
        return None
    reader = Reader(query, query.values_schema())
    slices = [partition for partition in reader.partitions() if isinstance(partition, Slice)]
    if query.filter() is not None and _exceeds_driver_limits(slices):
        return None
    return lambda: sum(pc.sum(batch.column(0)).as_py() for slice in slices for batch in reader.rows(slice))


def _exceeds_driver_limits(slices: Sequence[Slice]) -> bool:
    tasks = [task for slice in slices for task in slice.tasks]
    stored = sum(plan.bytes_read for task in tasks for plan in task.row_groups)
    return stored > STORED_BYTES or sum(task.rows_kept for task in tasks) > MOST_ROWS
