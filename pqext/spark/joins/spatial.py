"""Spatial joins and nearest-neighbour joins of data frames: ``spatial_join`` and ``knn_join``.

If both sides are large, their rows are shuffled to the cells of a division of the plane, and joined cell by cell. A
sample of both sides determines cells with similar numbers of rows. A row is sent to every cell that its box touches. A
pair is returned by the cell that contains the lower left corner of the intersection of both boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.suggestions import did_you_mean
from pqext.geo.joins.matching import Condition, Matcher, Sides, sides_of
from pqext.geo.predicates.boxes import Operation
from pqext.spark.base.types import to_exchange_schema
from pqext.spark.columns.names import quote
from pqext.spark.frames.parquet import read_on_driver
from pqext.spark.functions.udf import arrow_udf
from pqext.spark.joins.broadcasting import BroadcastRows, How, NearestTask, SpatialTask, pair_rows
from pqext.spark.joins.sides import Side, find_sides, join_schemas, number_columns

Strategy = Literal["auto", "broadcast", "grid"]
On = str | tuple[str, str] | None
BROADCAST_BYTES = 64 << 20


def spatial_join(
    left: DataFrame,
    right: DataFrame,
    predicate: Operation = "intersects",
    *,
    on: On = None,
    distance: float | None = None,
    columns: Sequence[str] | None = None,
    how: How = "inner",
    strategy: Strategy = "auto",
    broadcast_bytes: int = BROADCAST_BYTES,
    suffix: str = "_right",
) -> DataFrame:
    """Join two data frames by a spatial predicate: ``left.geom predicate right.geom``.

    Args:
        left: The side that may be larger.
        right: The side that should be smaller. Its geometries are indexed and prepared.
        predicate: ``intersects``, ``within``, ``contains``, ``covers``, ``covered_by``, ``touches``, ``crosses``,
            ``overlaps``, ``equals``, or ``dwithin`` with ``distance``; evaluated exactly, as in :mod:`pqext.geo`.
        on: The geometry column of both sides, or a pair of names. By default the only GEOMETRY or GEOGRAPHY column of
            each. BINARY columns of WKB must be named; they have the type of the other side.
        distance: Distance for ``dwithin``, in units of the CRS, or in metres on the ellipsoid for GEOGRAPHY.
        columns: Names of the columns of the result. Select only the columns that you need: columns are copied to Python
            and back, and the geometries of the right side are copied once for each pair.
        how: ``inner``; ``left`` also returns rows of the left without a match, with nulls; ``semi`` and ``anti`` return
            the rows of the left with or without a match, once each and without columns of the right.
        strategy: ``broadcast`` collects the right side and sends it to each Python worker. ``grid`` shuffles both sides
            to the cells of a division of the map, for inner joins. ``auto`` broadcasts up to ``broadcast_bytes``.
        broadcast_bytes: Maximum size of a right side, in Arrow, that ``auto`` broadcasts. Every worker needs about
            four times as much memory.
        suffix: Added to the names of right columns that the left side also has.

    Returns:
        A data frame with the matching pairs; no pair occurs twice. Null and empty geometries do not match. Jobs run
        when this function is called: one collects the right side up to the broadcast limit, unless it is small and a
        result of :func:`read`, and for ``grid`` one reads the geometries of each side.

    Raises:
        ValueError: If a name or option is unknown, the CRSs differ, or the right side is too large for ``how``.
        TypeError: If a column does not contain geometries.

    Example:
        >>> spatial_join(stations, countries, "within", columns=["station", "country"])  # doctest: +SKIP
    """
    condition = Condition.from_arguments(predicate, distance)
    _check_choice("how", how, get_args(How))
    _check_choice("strategy", strategy, get_args(Strategy))
    find_sides(left, right, on)
    only_left = how in ("semi", "anti")
    full_schema = T.StructType(left.schema.fields) if only_left else join_schemas(left.schema, right.schema, suffix)
    schema = _result_schema(full_schema, columns)
    if strategy == "grid" and how != "inner":
        raise ValueError(f"strategy 'grid' supports inner joins only, not {how!r}: omit strategy")
    right_frame = right
    left, right, names = _select_columns(left, right, on, full_schema, schema)
    left_side, right_side = find_sides(left, right, on)
    collected, size = None, 0
    if strategy != "grid":
        driver_batches = read_on_driver(right_frame, right.schema)
        collected, size = BroadcastRows.collect_bounded(
            right, broadcast_bytes if strategy == "auto" else math.inf, driver_batches
        )
    if collected is None:
        if how != "inner":
            raise ValueError(
                f"the right side has {size} bytes, and a {how!r} join broadcasts it: select fewer columns and rows, "
                "or raise broadcast_bytes"
            )
        return _join_large_sides(left, right, (left_side, right_side), condition, schema, names)
    task = SpatialTask(left_side, right_side, collected, condition, how, schema, names)
    return number_columns(left).mapInArrow(task.__call__, schema)


def knn_join(
    left: DataFrame,
    right: DataFrame,
    k: int = 1,
    *,
    on: On = None,
    max_distance: float | None = None,
    columns: Sequence[str] | None = None,
    distance_column: str = "distance",
    suffix: str = "_right",
) -> DataFrame:
    """Join each row of ``left`` with its ``k`` nearest rows of ``right``, and return the distances.

    Args:
        left: The side for whose rows neighbours are searched. Null and empty geometries are omitted.
        right: The side that is searched. A job collects it when this function is called, and it is sent to each Python
            worker.
        k: Number of neighbours. Of equally distant rows, earlier rows of ``right`` are selected.
        on: The geometry columns, as in :func:`spatial_join`.
        max_distance: Maximum distance of neighbours. Rows of ``left`` without a neighbour are omitted.
        columns: Columns of the result, as in :func:`spatial_join`.
        distance_column: Name of a DOUBLE column with the minimum distance of both geometries in units of the CRS.
        suffix: Added to the names of right columns that the left side also has.

    Returns:
        A data frame with the nearest rows first.

    Raises:
        ValueError: If ``k`` is below 1, ``max_distance`` is not positive, a name is unknown, or the CRSs differ.
        TypeError: If a column does not contain geometries, or is a GEOGRAPHY; project it with :func:`st_transform`.

    Example:
        >>> knn_join(houses, stations, k=3, max_distance=5000.0)  # doctest: +SKIP
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be an integer of at least 1, not {k!r}")
    if max_distance is not None and not (max_distance > 0 and math.isfinite(max_distance)):
        raise ValueError(f"max_distance must be a positive number, not {max_distance!r}")
    left_side, right_side = find_sides(left, right, on)
    if not left_side.type.planar:
        raise TypeError("knn_join needs planar geometries: transform both sides to a projected CRS with st_transform")
    distance_field = T.StructField(distance_column, T.DoubleType(), True)
    full_schema = join_schemas(left.schema, right.schema, suffix, distance_field)
    schema = _result_schema(full_schema, columns)
    left, right, names = _select_columns(left, right, on, full_schema, schema)
    left_side, right_side = find_sides(left, right, on)
    most = None if max_distance is None else float(max_distance)
    task = NearestTask(left_side, right_side, BroadcastRows.collect(right), k, most, schema, (*names, distance_column))
    return number_columns(left).mapInArrow(task.__call__, schema)


def _result_schema(schema: T.StructType, columns: Sequence[str] | None) -> T.StructType:
    """Return the fields of the result. Raises ``ValueError`` for unknown or repeated names, or an empty list."""
    if columns is None:
        return schema
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in schema.names:
            raise ValueError(f"the join has no column {name!r}{did_you_mean(str(name), schema.names)}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns must be a non-empty list of distinct column names, not {names}")
    return T.StructType([schema[name] for name in names])


def _select_columns(
    left: DataFrame, right: DataFrame, on: Any, result: T.StructType, schema: T.StructType
) -> tuple[DataFrame, DataFrame, tuple[str, ...]]:
    """Return both sides with only the required columns, and the names of these columns in the complete result."""
    left_side, right_side = find_sides(left, right, on)
    count = len(left.columns)
    in_result = result.names[: count + len(right.columns)]
    needed = [name in schema.names for name in in_result] + [False] * (count + len(right.columns) - len(in_result))
    needed[left_side.number] = needed[count + right_side.number] = True
    left_names = [name for name, is_needed in zip(left.columns, needed, strict=False) if is_needed]
    right_names = [name for name, is_needed in zip(right.columns, needed[count:], strict=True) if is_needed]
    names = [name for name, is_needed in zip(in_result, needed, strict=False) if is_needed]
    return (
        left.select(*(left[quote(name)] for name in left_names)),
        right.select(*(right[quote(name)] for name in right_names)),
        tuple(names),
    )


def _check_choice(argument: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{argument} must be one of {', '.join(choices)}, not {value!r}")


def _join_large_sides(
    left: DataFrame,
    right: DataFrame,
    sides: tuple[Side, Side],
    condition: Condition,
    schema: T.StructType,
    names: tuple[str, ...],
) -> DataFrame:
    """Return the inner join of two large sides."""
    surveys = [
        Survey.collect(df.select(df[quote(side.name)]), Side(0, side.name, side.type))
        for df, side in zip((left, right), sides, strict=True)
    ]
    rows = sum(survey.rows for survey in surveys)
    centres = np.concatenate([survey.centres for survey in surveys])
    count = min(max(rows // ROWS_A_CELL, 1), MOST_CELLS)
    cells = divide_plane(centres, count)
    return join_by_cells(left, right, sides, condition, schema, names, cells)


CELL = "_pqext_cell"
ROWS_A_CELL = 50_000
MOST_CELLS = 1024
_SAMPLED = 2000
"""Number of boxes that a task samples from its rows."""
_PIECE = 1 << 14


@dataclass(frozen=True)
class Survey:
    """Row count of a side, and the centres of sampled bounding boxes."""

    rows: int
    centres: NDArray[np.float64]

    @classmethod
    def collect(cls, df: DataFrame, side: Side) -> Survey:
        """Run a job that reads the geometry column of a side, and return its survey."""
        schema = T.StructType([T.StructField("rows", T.LongType()), T.StructField("centres", T.BinaryType())])
        result = number_columns(df).mapInArrow(_SurveyTask(side), schema).collect()
        total = sum(row["rows"] for row in result)
        samples = []
        for row in result:  # sample each task in proportion to its rows
            centres = np.frombuffer(row["centres"], np.float64).reshape(-1, 2)
            share = int(np.ceil(_SAMPLED * 4 * row["rows"] / max(total, 1)))
            samples.append(centres[:: max(1, len(centres) // max(share, 1))])
        return cls(total, np.concatenate(samples) if samples else np.zeros((0, 2)))


@dataclass(frozen=True)
class _SurveyTask:
    """Task function that counts the rows of a side and samples the centres of bounding boxes."""

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
                combined = np.concatenate(centres)
                centres = [combined[generator.permutation(len(combined))[:_SAMPLED]]]
        sample = np.concatenate(centres)[:_SAMPLED].tobytes() if centres else b""
        columns = [pa.array([rows], pa.int64()), pa.array([sample], pa.binary())]
        yield pa.RecordBatch.from_arrays(columns, names=["rows", "centres"])


def divide_plane(centres: NDArray[np.float64], count: int) -> Sides:
    """Divide the plane into at most ``count`` rectangles that contain similar numbers of centres."""
    boxes: list[list[float]] = []
    pending = [(centres, [-np.inf, -np.inf, np.inf, np.inf], count)]
    while pending:
        inside, box, cells = pending.pop()
        spread = np.ptp(inside, axis=0) if len(inside) > 1 else np.zeros(2)
        axis = int(spread[1] > spread[0])
        at = float(np.median(inside[:, axis])) if cells > 1 and spread[axis] > 0 else np.nan
        below = inside[:, axis] < at
        if np.isnan(at) or not below.any():
            boxes.append(box)
            continue
        lower, upper = list(box), list(box)
        lower[2 + axis] = upper[axis] = at
        pending += [(inside[below], lower, cells // 2), (inside[~below], upper, cells - cells // 2)]
    return np.array(boxes)


def assign_cells(sides: Sides, cells: Sides) -> pa.Array:
    """Return, for each box, the list of the numbers of the cells that the box touches; empty for null boxes."""
    counts, numbers = [np.zeros(1, np.int64)], []
    for start in range(0, len(sides), _PIECE):
        xmin, ymin, xmax, ymax = (side[:, None] for side in sides[start : start + _PIECE].T)
        touches = (xmin < cells[:, 2]) & (xmax >= cells[:, 0]) & (ymin < cells[:, 3]) & (ymax >= cells[:, 1])
        counts.append(touches.sum(axis=1))
        numbers.append(np.nonzero(touches)[1])
    offsets = np.cumsum(np.concatenate(counts))
    values = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values, pa.int32()))


def join_by_cells(
    left: DataFrame,
    right: DataFrame,
    sides: tuple[Side, Side],
    condition: Condition,
    schema: T.StructType,
    names: tuple[str, ...],
    cells: Sides,
) -> DataFrame:
    """Return the inner join of two large sides, computed cell by cell."""
    left_cells = _repeat_per_cell(left, sides[0], None, cells)
    right_cells = _repeat_per_cell(right, sides[1], condition, cells)
    task = _CellTask(sides, condition, schema, names, cells)

    def join_cell(key: Any, left: pa.Table, right: pa.Table) -> pa.Table:
        return task(key, left, right)

    return left_cells.groupBy(CELL).cogroup(right_cells.groupBy(CELL)).applyInArrow(join_cell, schema)


def _repeat_per_cell(df: DataFrame, side: Side, condition: Condition | None, cells: Sides) -> DataFrame:
    """Repeat each row for every cell that its box touches. The last column contains the cell number."""

    def find_cells(geometries: pa.Array) -> pa.Array:
        return assign_cells(sides_of(side.parse_array(geometries), condition), cells)

    df = number_columns(df)
    numbers = arrow_udf(find_cells, T.ArrayType(T.IntegerType()), "cells")(df[side.number])
    return df.select("*", F.explode(numbers).alias(CELL))


@dataclass(frozen=True)
class _CellTask:
    """Task function that joins the rows of both sides in a cell.

    A pair is returned only in the cell that contains the lower left corner of the intersection of its boxes.
    """

    sides: tuple[Side, Side]
    condition: Condition
    schema: T.StructType
    names: tuple[str, ...]
    cells: Sides

    def __call__(self, key: Any, left: pa.Table, right: pa.Table) -> pa.Table:
        number = key[0].as_py()
        empty = to_exchange_schema(self.schema).empty_table()
        if number is None or not left.num_rows or not right.num_rows:
            return empty
        left, right = left.drop_columns([CELL]).combine_chunks(), right.drop_columns([CELL]).combine_chunks()
        matcher = Matcher(self.sides[1].geometries(right), self.condition)
        geometries = self.sides[0].geometries(left)
        left_rows, right_rows = matcher.pairs(geometries)
        corner = np.maximum(sides_of(geometries)[left_rows, :2], matcher.sides[right_rows, :2])
        xmin, ymin, xmax, ymax = self.cells[number]
        inside = (corner[:, 0] >= xmin) & (corner[:, 0] < xmax) & (corner[:, 1] >= ymin) & (corner[:, 1] < ymax)
        pairs = left_rows[inside], pa.array(right_rows[inside], pa.int64())
        batches = list(pair_rows(self.schema, self.names, left, right, *pairs))
        return pa.Table.from_batches(batches) if batches else empty
