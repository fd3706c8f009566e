"""Distribute and sort rows so that each file and row group has tight bounds."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.suggestions import did_you_mean
from pqext.spark.columns.names import quote
from pqext.spark.functions.geometry_accessors import WORLD, st_hilbert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DEGREES = (4326, -1)


def layout(
    df: DataFrame,
    *columns: str,
    partitions: int | None = None,
    bounds: tuple[float, float, float, float] | None = None,
) -> DataFrame:
    """Range-partition a data frame by columns and sort the rows of each partition.

    A GEOMETRY, GEOGRAPHY or WKB column is ordered by :func:`pqext.spark.functions.st_hilbert`. Files
    and row groups then have small bounding boxes, and a spatial filter reads few of them. Other columns are ordered by
    value. With several columns, the first should have few distinct values. The rows are read twice, because Spark
    samples them to determine the ranges.

    Args:
        df: The data frame.
        columns: Names of the columns, in order of precedence.
        partitions: Number of tasks and of files to write; Spark's number of shuffle partitions by default.
        bounds: Bounding box of the Hilbert curve, by default the whole world.

    Returns:
        A data frame with the same columns.

    Raises:
        ValueError: If a column does not exist, or a geometry column is not in degrees and ``bounds`` is missing.
        TypeError: If a column has no order.

    Example:
        >>> layout(cities, "geom", partitions=20).write.format("pqext").mode("append").save(path)  # doctest: +SKIP
    """
    if not columns:
        raise ValueError("layout requires the name of at least one column")
    if partitions is not None and partitions < 1:
        raise ValueError(f"partitions must be positive, not {partitions}")
    keys: dict[str, Column] = {}
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"there is no column {name!r}{did_you_mean(name, df.columns)}")
        keys[f"_pqext_{uuid.uuid4().hex}"] = _sort_key(df, name, bounds)
    # One projection computes the keys once for ranges and sorting, and preserves the metadata of the columns.
    keyed = df.select(*[F.col(quote(name)) for name in df.columns], *[key.alias(name) for name, key in keys.items()])
    names = [*keys]
    ranged = keyed.repartitionByRange(*names) if partitions is None else keyed.repartitionByRange(partitions, *names)
    return ranged.sortWithinPartitions(*names).drop(*names)


def _sort_key(df: DataFrame, name: str, bounds: tuple[float, float, float, float] | None) -> Column:
    type = df.schema[name].dataType
    column = F.col(quote(name))
    if isinstance(type, T.GeometryType) and bounds is None and type.srid not in _DEGREES:
        raise ValueError(f"column {name!r} has SRID {type.srid}: pass bounds= in the units of this SRID")
    if isinstance(type, T.GeometryType | T.GeographyType | T.BinaryType):
        return st_hilbert(column, bounds or WORLD)
    if isinstance(type, T.VariantType | T.MapType):
        raise TypeError(f"column {name!r} of type {type.simpleString()} has no order: extract a value from it first")
    return column
