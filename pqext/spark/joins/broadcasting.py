"""Joins that send the complete right side to every Python worker."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.core.base.lru import LRU
from pqext.geo.joins.matching import Condition, Matcher, Nearest, Rows, add_unmatched_rows
from pqext.spark.base.types import to_exchange_schema
from pqext.spark.joins.sides import Side, build_batch, number_columns

How = Literal["inner", "left", "semi", "anti"]
BATCH_ROWS = 1 << 16
"""Rows of the left side that are matched in one call."""
_RESULT_ROWS = 1 << 16

_loaded: LRU[str, tuple[pa.Table, Any]] = LRU(2)
"""Right sides loaded in this worker, by the token of the join. Workers outlive tasks."""


@dataclass(frozen=True)
class BroadcastRows:
    """Rows of a data frame as bytes, to send with a task."""

    token: str
    parts: tuple[bytes, ...]
    schema: pa.Schema

    @classmethod
    def collect(cls, df: DataFrame) -> BroadcastRows:
        """Run a job that collects the rows of ``df``."""
        result, _ = cls.collect_bounded(df, math.inf)
        assert result is not None
        return result

    @classmethod
    def collect_bounded(
        cls, df: DataFrame, max_bytes: float, batches: Iterator[pa.RecordBatch] | None = None
    ) -> tuple[BroadcastRows | None, int]:
        """Collect the rows unless they exceed ``max_bytes`` in Arrow. Return the rows, or None, and the size.

        Runs a job unless ``batches`` contains the rows, and a second job if a task did not send its rows because its
        share of the bytes was too large.
        """
        rows: Sequence[Any]
        if batches is not None:
            rows = [row for batch in _PartTask(max_bytes)(batches) for row in batch.to_pylist()]
        else:
            fields = [T.StructField("part", T.BinaryType()), T.StructField("size", T.LongType())]
            rows = number_columns(df).mapInArrow(_PartTask(max_bytes).__call__, T.StructType(fields)).collect()
        size = sum(row["size"] for row in rows)
        if size > max_bytes:
            return None, size
        if any(row["part"] is None for row in rows):
            return cls.collect(df), size
        return cls(uuid.uuid4().hex, tuple(bytes(row["part"]) for row in rows), to_exchange_schema(df.schema)), size

    def table(self) -> pa.Table:
        """Return the rows as a table with one chunk per column."""
        batches = [batch for part in self.parts for batch in pa.ipc.open_stream(part)]
        table = pa.Table.from_batches(batches) if batches else self.schema.empty_table()
        return table.combine_chunks().rename_columns(self.schema.names)

    def load(self, make: Callable[[pa.Table], Any]) -> tuple[pa.Table, Any]:
        """Return the rows as a table, and the result of ``make(table)``. Both are computed once per worker."""
        def load() -> tuple[pa.Table, Any]:
            table = self.table()
            return table, make(table)

        return _loaded.get_or_make(self.token, load)


@dataclass(frozen=True)
class _PartTask:
    """Task function that returns its rows as bytes with their Arrow size, or only the size of rows beyond its share.

    If rows of at most ``max_bytes`` in total are spread evenly over the tasks, all of them are returned. The total size
    that the tasks return has a bound that hardly grows with their number.
    """

    max_bytes: float

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        allowed = self.max_bytes / (1 + (0 if context is None else context.partitionId()))
        sent = unsent = 0
        for batch in batches:
            if unsent or sent + batch.nbytes > allowed:
                unsent += batch.nbytes
                continue
            sent += batch.nbytes
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
                stream.write_batch(batch)
            yield _part_batch(sink.getvalue().to_pybytes(), batch.nbytes)
        if unsent:
            yield _part_batch(None, unsent)


def _part_batch(part: bytes | None, size: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([part], pa.binary()), pa.array([size], pa.int64())], ["part", "size"])


@dataclass(frozen=True)
class SpatialTask:
    """Task function that joins batches of the left side with the collected right side."""

    left: Side
    right: Side
    broadcast: BroadcastRows
    condition: Condition
    how: How
    schema: T.StructType
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table, matcher = self.broadcast.load(lambda table: Matcher(self.right.geometries(table), self.condition))
        for batch in combine_batches(batches):
            left_rows, right_rows = matcher.pairs(self.left.geometries(batch))
            if self.how in ("semi", "anti"):
                is_matched = np.zeros(batch.num_rows, np.bool_)
                is_matched[left_rows] = True
                retained = batch.filter(pa.array(is_matched if self.how == "semi" else ~is_matched))
                yield build_batch(self.schema, [retained.column(self.names.index(name)) for name in self.schema.names])
                continue
            matched: tuple[Rows, pa.Array] = (left_rows, pa.array(right_rows, pa.int64()))
            if self.how == "left":
                matched = add_unmatched_rows(batch.num_rows, left_rows, right_rows)
            yield from pair_rows(self.schema, self.names, batch, table, *matched)


@dataclass(frozen=True)
class NearestTask:
    """Task function that joins batches of the left side with the nearest rows of the collected right side."""

    left: Side
    right: Side
    broadcast: BroadcastRows
    k: int
    max_distance: float | None
    schema: T.StructType
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table, nearest = self.broadcast.load(
            lambda table: Nearest(self.right.geometries(table), self.k, self.max_distance)
        )
        for batch in combine_batches(batches):
            left_rows, right_rows, distances = nearest.pairs(self.left.geometries(batch))
            matched = pa.array(right_rows, pa.int64())
            yield from pair_rows(self.schema, self.names, batch, table, left_rows, matched, distances)


def pair_rows(
    schema: T.StructType, names: tuple[str, ...], left: Any, right: pa.Table, left_rows: Rows, right_rows: pa.Array,
    *extra_columns: Any,
) -> Iterator[pa.RecordBatch]:
    """Yield batches of paired rows. ``names`` lists the columns of both sides, and ``schema`` the selected columns."""
    for start in range(0, len(left_rows), _RESULT_ROWS):
        part = slice(start, start + _RESULT_ROWS)
        left_part, right_part = pa.array(left_rows[part], pa.int64()), right_rows[part]
        sources = [(column, left_part) for column in left.columns] + [(column, right_part) for column in right.columns]
        sources += [(pa.array(values[part]), None) for values in extra_columns]
        result = dict(zip(names, sources, strict=True))
        yield build_batch(schema, [_take_rows(*result[name]) for name in schema.names])


def _take_rows(column: Any, numbers: pa.Array | None) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if numbers is None else array.take(numbers)


def combine_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield larger batches that combine the rows of small batches."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(item.num_rows for item in pending) >= BATCH_ROWS:
            yield _concatenate(pending)
            pending = []
    if pending:
        yield _concatenate(pending)


def _concatenate(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
