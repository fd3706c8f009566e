"""Joins of two large sides: both are sent to the cells of a division of the map, and joined cell by cell.

The cells are made so that each has as many rows, from a sample of both sides, and together they are the whole plane. A
row goes to every cell that its box touches, and a pair comes out in one of the cells that both are in, which holds the
lower left corner of what their boxes share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.base.types import exchange_schema
from pqext.spark.functions.udf import arrow_udf
from pqext.spark.joins.broadcasting import put_together
from pqext.spark.joins.matching import Condition, Matcher, Sides, sides_of
from pqext.spark.joins.sides import Side, numbered

CELL = "_pqext_cell"
ROWS_A_CELL = 50_000
MOST_CELLS = 1024
_SAMPLED = 2000
"""Boxes that a task gives of its rows."""
_PIECE = 1 << 14


@dataclass(frozen=True)
class Survey:
    """How many rows a side has, and the centres of some of its boxes."""

    rows: int
    centres: NDArray[np.float64]

    @classmethod
    def of(cls, df: DataFrame, side: Side) -> Survey:
        """Runs a job that reads the side's columns."""
        schema = T.StructType([T.StructField("rows", T.LongType()), T.StructField("centres", T.BinaryType())])
        found = numbered(df).mapInArrow(_Surveyed(side), schema).collect()
        total = sum(row["rows"] for row in found)
        kept = []
        for row in found:  # each task's share of the sample is its share of the rows
            centres = np.frombuffer(row["centres"], np.float64).reshape(-1, 2)
            share = int(np.ceil(_SAMPLED * 4 * row["rows"] / max(total, 1)))
            kept.append(centres[:: max(1, len(centres) // max(share, 1))])
        return cls(total, np.concatenate(kept) if kept else np.zeros((0, 2)))


@dataclass(frozen=True)
class _Surveyed:
    side: Side

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        centres: list[NDArray[np.float64]] = []
        generator = np.random.default_rng(0)
        for batch in batches:
            rows += batch.num_rows
            sides = sides_of(self.side.geometries(batch))
            middle = (sides[:, :2] + sides[:, 2:]) / 2
            middle = middle[np.isfinite(middle).all(axis=1)]
            centres.append(middle[generator.permutation(len(middle))[: _SAMPLED // 4]])
            if len(centres) > 16:
                every = np.concatenate(centres)
                centres = [every[generator.permutation(len(every))[:_SAMPLED]]]
        sample = np.concatenate(centres)[:_SAMPLED].tobytes() if centres else b""
        columns = [pa.array([rows], pa.int64()), pa.array([sample], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["rows", "centres"])


def divide(centres: NDArray[np.float64], count: int) -> Sides:
    """So many rectangles at most that are the whole plane, with as many of the centres in each."""
    done: list[list[float]] = []
    waiting = [(centres, [-np.inf, -np.inf, np.inf, np.inf], count)]
    while waiting:
        inside, box, cells = waiting.pop()
        spread = np.ptp(inside, axis=0) if len(inside) > 1 else np.zeros(2)
        axis = int(spread[1] > spread[0])
        at = float(np.median(inside[:, axis])) if cells > 1 and spread[axis] > 0 else np.nan
        below = inside[:, axis] < at
        if np.isnan(at) or not below.any():
            done.append(box)
            continue
        lower, upper = list(box), list(box)
        lower[2 + axis] = upper[axis] = at
        waiting += [(inside[below], lower, cells // 2), (inside[~below], upper, cells - cells // 2)]
    return np.array(done)


def cells_of(sides: Sides, cells: Sides) -> pa.Array:
    """The numbers of the cells that each box touches, as lists; empty where there is no box."""
    counts, numbers = [np.zeros(1, np.int64)], []
    for start in range(0, len(sides), _PIECE):
        xmin, ymin, xmax, ymax = (side[:, None] for side in sides[start : start + _PIECE].T)
        meets = (xmin < cells[:, 2]) & (xmax >= cells[:, 0]) & (ymin < cells[:, 3]) & (ymax >= cells[:, 1])
        counts.append(meets.sum(axis=1))
        numbers.append(np.nonzero(meets)[1])
    offsets = np.cumsum(np.concatenate(counts))
    values = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def join(
    left: DataFrame,
    right: DataFrame,
    sides: tuple[Side, Side],
    condition: Condition,
    schema: T.StructType,
    names: tuple[str, ...],
    cells: Sides,
) -> DataFrame:
    """The inner join."""
    one = _in_cells(left, sides[0], None, cells)
    other = _in_cells(right, sides[1], condition, cells)
    task = _CellTask(sides, condition, schema, names, cells)

    def joined(key: Any, left: pa.Table, right: pa.Table) -> pa.Table:
        return task(key, left, right)

    return one.groupBy(CELL).cogroup(other.groupBy(CELL)).applyInArrow(joined, schema)


def _in_cells(df: DataFrame, side: Side, condition: Condition | None, cells: Sides) -> DataFrame:
    """Each row once for every cell, with its number behind the columns."""

    def touched(geometries: pa.Array) -> pa.Array:
        return cells_of(sides_of(side.of(geometries), condition), cells)

    df = numbered(df)
    numbers = arrow_udf(touched, T.ArrayType(T.IntegerType()), "cells")(df[side.number])
    return df.select("*", F.explode(numbers).alias(CELL))


@dataclass(frozen=True)
class _CellTask:
    sides: tuple[Side, Side]
    condition: Condition
    schema: T.StructType
    names: tuple[str, ...]
    cells: Sides

    def __call__(self, key: Any, left: pa.Table, right: pa.Table) -> pa.Table:
        number = key[0].as_py()
        empty = exchange_schema(self.schema).empty_table()
        if number is None or not left.num_rows or not right.num_rows:
            return empty
        left, right = left.drop_columns([CELL]).combine_chunks(), right.drop_columns([CELL]).combine_chunks()
        matcher = Matcher(self.sides[1].geometries(right), self.condition)
        mine = self.sides[0].geometries(left)
        one, other = matcher.pairs(mine)
        corner = np.maximum(sides_of(mine)[one, :2], matcher.sides[other, :2])
        xmin, ymin, xmax, ymax = self.cells[number]
        here = (corner[:, 0] >= xmin) & (corner[:, 0] < xmax) & (corner[:, 1] >= ymin) & (corner[:, 1] < ymax)
        pairs = one[here], pa.array(other[here], pa.int64())
        batches = list(put_together(self.schema, self.names, left, right, *pairs))
        return pa.Table.from_batches(batches) if batches else empty
