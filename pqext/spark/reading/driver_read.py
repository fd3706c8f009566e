"""Few rows read, and rows of few files counted, on the driver itself, in the time that a job takes to begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from pqext.spark.base.files import is_remote
from pqext.spark.reading.parquet_reader import Reader
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query

STORED_BYTES = 16 << 20
"""Of more, as they are stored, tasks are to read."""
MOST_ROWS = 1 << 22
"""Of more, tasks are to read: few bytes may be very many rows that are all alike."""
COUNTED_FILES = 64
"""Of more files, or of files in stores, tasks are to count."""


def few_rows(query: Query, schema: StructType) -> Iterator[pa.RecordBatch] | None:
    """The rows of a query as a task gives them to Spark, with the columns of ``schema``; None where they are many."""
    reader = Reader(query, schema)
    slices = [one for one in reader.partitions() if isinstance(one, Slice)]
    return None if _are_many(slices) else (batch for one in slices for batch in reader.rows(one))


def counter_of_few_files(query: Query) -> Callable[[], int] | None:
    """Return a function that adds up what ``query``, an aggregation, counts; None where tasks are to count.

    Like a data frame, the function keeps its plan, and reports files that have changed since.
    """
    if len(query.files) > COUNTED_FILES or any(map(is_remote, query.files)):
        return None
    reader = Reader(query, query.values_schema())
    slices = [one for one in reader.partitions() if isinstance(one, Slice)]
    if query.filter() is not None and _are_many(slices):
        return None
    return lambda: sum(pc.sum(batch.column(0)).as_py() for one in slices for batch in reader.rows(one))


def _are_many(slices: Sequence[Slice]) -> bool:
    stored = sum(plan.bytes_read for one in slices for task in one.tasks for plan in task.row_groups)
    return stored > STORED_BYTES or sum(task.rows_kept for one in slices for task in one.tasks) > MOST_ROWS
