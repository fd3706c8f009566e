"""Few rows read on the driver itself, in the time that a job takes to begin."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.types import StructType

from pqext.spark.reading.parquet_reader import Reader
from pqext.spark.reading.planning import Slice
from pqext.spark.reading.request import Query

STORED_BYTES = 16 << 20
"""Of more, as they are stored, tasks are to read."""
MOST_ROWS = 1 << 22
"""Of more, tasks are to read: few bytes may be very many rows that are all alike."""


def few_rows(query: Query, schema: StructType) -> Iterator[pa.RecordBatch] | None:
    """The rows of a query as a task gives them to Spark, with the columns of ``schema``; None where they are many."""
    reader = Reader(query, schema)
    slices = [one for one in reader.partitions() if isinstance(one, Slice)]
    stored = sum(plan.bytes_read for one in slices for task in one.tasks for plan in task.row_groups)
    rows = sum(task.rows_kept for one in slices for task in one.tasks)
    is_much = stored > STORED_BYTES or rows > MOST_ROWS
    return None if is_much else (batch for one in slices for batch in reader.rows(one))
