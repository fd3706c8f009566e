"""``spatial_join`` and ``knn_join``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.core.base.suggestions import did_you_mean
from pqext.geo.predicates.boxes import Operation
from pqext.spark.columns.names import quoted
from pqext.spark.frames.parquet import read_on_driver
from pqext.spark.joins import partitioned
from pqext.spark.joins.broadcasting import How, NearestTask, SpatialTask, Whole
from pqext.spark.joins.matching import TURNED, Condition
from pqext.spark.joins.sides import Side, joined_schema, numbered, sides

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
    """The rows of both data frames whose geometries stand so to each other: ``left.geom predicate right.geom``.

    Args:
        left: The side that may be larger.
        right: The side that should be smaller. Its geometries are prepared and asked.
        predicate: ``intersects``, ``within``, ``contains``, ``covers``, ``covered_by``, ``touches``, ``crosses``,
            ``overlaps``, ``equals``, or ``dwithin`` with ``distance``; as in :mod:`pqext.geo`, exact.
        on: The geometry column of both sides, or a pair of names. By default the only GEOMETRY or GEOGRAPHY column of
            each. BINARY columns of WKB are named; they are taken for what the other side is.
        distance: For ``dwithin``: in the CRS's unit, in metres on the ellipsoid for GEOGRAPHY.
        columns: Which columns the result has, by their names in it. Name those that you need: columns cross to Python
            and back, and the geometries of the right side come once for each pair.
        how: ``inner``; ``left`` keeps the rows of the left that match nothing, beside nulls; ``semi`` and ``anti`` give
            the rows of the left that match something or nothing, once and without columns of the right.
        strategy: ``broadcast`` collects the right side and sends it to each Python worker. ``grid`` sends both sides to
            the cells of a division of the map, by a shuffle, and is for inner joins. ``auto`` broadcasts what
            has up to ``broadcast_bytes``.
        broadcast_bytes: The size of a right side, in Arrow, up to which ``auto`` broadcasts. Every worker needs some
            four times as much memory.
        suffix: Added to names of the right side's columns that the left has too.

    No cross join, and no pair comes twice. Null and empty geometries match nothing. Jobs run at once: to
    collect the right side as far as it may be broadcast, unless it is small and :func:`read` gave it, and for ``grid``
    over the geometries of each side.

    Raises ``ValueError`` for unknown names and options, CRSs that differ, and a right side too large for ``how``;
    ``TypeError`` for columns that hold no geometries.
    """
    condition = _condition(predicate, distance)
    _one_of("how", how, get_args(How))
    _one_of("strategy", strategy, get_args(Strategy))
    sides(left, right, on)
    only_left = how in ("semi", "anti")
    whole = T.StructType(left.schema.fields) if only_left else joined_schema(left.schema, right.schema, suffix)
    schema = _chosen(whole, columns)
    if strategy == "grid" and how != "inner":
        raise ValueError(f"strategy 'grid' is for inner joins, not for {how!r}: leave it out")
    given = right
    left, right, names = _narrowed(left, right, on, whole, schema)
    one, other = sides(left, right, on)
    collected, size = None, 0
    if strategy != "grid":
        here = read_on_driver(given, right.schema)
        collected, size = Whole.within(right, broadcast_bytes if strategy == "auto" else math.inf, here)
    if collected is None:
        if how != "inner":
            raise ValueError(
                f"the right side has {size} bytes, and a {how!r} join broadcasts it: select fewer columns and rows, "
                "or raise broadcast_bytes"
            )
        return _by_cells(left, right, (one, other), condition, schema, names)
    task = SpatialTask(one, other, collected, condition, how, schema, names)
    return numbered(left).mapInArrow(task.__call__, schema)


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
    """Each row of ``left`` with the ``k`` rows of ``right`` whose geometries are nearest, and how far away they are.

    ``distance_column`` is a DOUBLE in the CRS's unit, the least distance between both geometries, and the nearest rows
    come first. Of rows as near, the first of ``right`` are taken. ``max_distance`` leaves out what is farther, and rows
    of ``left`` without any neighbour, as null and empty geometries are. ``on``, ``columns`` and ``suffix`` are those of
    :func:`spatial_join`.

    ``right`` is collected, in a job that runs at once, and goes whole to each Python worker.

    Raises ``ValueError`` for ``k`` below 1, a ``max_distance`` that is not positive, unknown names and CRSs that
    differ; ``TypeError`` for columns that hold no geometries, and for GEOGRAPHY, which :func:`st_transform` brings into
    the plane.
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k is a whole number from 1, not {k!r}")
    if max_distance is not None and not (max_distance > 0 and math.isfinite(max_distance)):
        raise ValueError(f"max_distance is a positive number, not {max_distance!r}")
    one, other = sides(left, right, on)
    if not one.type.planar:
        raise TypeError("knn_join is for figures in the plane: bring both sides into a projected CRS with st_transform")
    away = T.StructField(distance_column, T.DoubleType(), True)
    whole = joined_schema(left.schema, right.schema, suffix, away)
    schema = _chosen(whole, columns)
    left, right, names = _narrowed(left, right, on, whole, schema)
    one, other = sides(left, right, on)
    most = None if max_distance is None else float(max_distance)
    task = NearestTask(one, other, Whole.of(right), k, most, schema, (*names, distance_column))
    return numbered(left).mapInArrow(task.__call__, schema)


def _chosen(schema: T.StructType, columns: Sequence[str] | None) -> T.StructType:
    """The fields of the result. Raises ``ValueError`` for names that it has not, and for none."""
    if columns is None:
        return schema
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in schema.names:
            raise ValueError(f"the join has no column {name!r}{did_you_mean(str(name), schema.names)}")
    if not names or len(set(names)) < len(names):
        raise ValueError("columns names each column of the result once, and at least one")
    return T.StructType([schema[name] for name in names])


def _narrowed(
    left: DataFrame, right: DataFrame, on: Any, whole: T.StructType, schema: T.StructType
) -> tuple[DataFrame, DataFrame, tuple[str, ...]]:
    """Both sides with the columns that are needed, and the names that these have in the whole result."""
    one, other = sides(left, right, on)
    count = len(left.columns)
    in_result = whole.names[: count + len(right.columns)]
    kept = [name in schema.names for name in in_result] + [False] * (count + len(right.columns) - len(in_result))
    kept[one.number] = kept[count + other.number] = True
    mine = [name for name, needed in zip(left.columns, kept, strict=False) if needed]
    theirs = [name for name, needed in zip(right.columns, kept[count:], strict=True) if needed]
    names = [name for name, needed in zip(in_result, kept, strict=False) if needed]
    return (
        left.select(*(left[quoted(name)] for name in mine)),
        right.select(*(right[quoted(name)] for name in theirs)),
        tuple(names),
    )


def _condition(predicate: Any, distance: Any) -> Condition:
    from pqext.geo.predicates.query import as_distance

    if predicate not in (*TURNED, "dwithin"):
        hint = did_you_mean(str(predicate), [*TURNED, "dwithin"])
        if predicate == "disjoint":
            hint = ": nearly all pairs are; how='anti' gives the rows that meet nothing"
        raise ValueError(f"{predicate!r} is no predicate of joins{hint}")
    return Condition(predicate, as_distance(predicate, distance))


def _one_of(what: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{what} is one of {', '.join(choices)}, not {value!r}")


def _by_cells(
    left: DataFrame,
    right: DataFrame,
    both: tuple[Side, Side],
    condition: Condition,
    schema: T.StructType,
    names: tuple[str, ...],
) -> DataFrame:
    """The inner join of large sides."""
    surveys = [
        partitioned.Survey.of(df.select(df[quoted(side.name)]), Side(0, side.name, side.type))
        for df, side in zip((left, right), both, strict=True)
    ]
    rows = sum(survey.rows for survey in surveys)
    centres = np.concatenate([survey.centres for survey in surveys])
    count = min(max(rows // partitioned.ROWS_A_CELL, 1), partitioned.MOST_CELLS)
    cells = partitioned.divide(centres, count)
    return partitioned.join(left, right, both, condition, schema, names, cells)
