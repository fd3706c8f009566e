"""Rows dealt out so that each file, and each row group in it, covers little."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.core.base.suggestions import did_you_mean
from pqext.spark.columns.names import quoted
from pqext.spark.functions.geometry_keys import WORLD, st_hilbert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DEGREES = (4326, -1)


def layout(
    df: DataFrame,
    *columns: str,
    partitions: int | None = None,
    bounds: tuple[float, float, float, float] | None = None,
) -> DataFrame:
    """``df`` with its rows dealt out to tasks by ranges of ``columns``, and sorted within each.

    A column of type GEOMETRY or GEOGRAPHY, or of WKB, counts by the place of each geometry's centre on a Hilbert curve
    through ``bounds``, the whole world unless they are given. So files and row groups have small boxes, and a filter by
    place reads few of them. Other columns count by their values. Several columns count one after another, which suits
    a first one of few values.

    There are ``partitions`` tasks, by default as many as Spark shuffles to; each writes a file. The rows are read
    twice: Spark takes a sample to find the ranges. Raises ``ValueError`` for columns that are not there and for
    geometries in other coordinates than degrees without ``bounds``, and ``TypeError`` for columns that have no order.

    >>> layout(places, "geom", partitions=20).write.format("pqext").mode("append").save(path)  # doctest: +SKIP
    """
    if not columns:
        raise ValueError("layout takes the names of columns")
    if partitions is not None and partitions < 1:
        raise ValueError(f"partitions must be positive, not {partitions}")
    keys: dict[str, Column] = {}
    for name in columns:
        if name not in df.columns:
            raise ValueError(f"there is no column {name!r}{did_you_mean(name, df.columns)}")
        keys[f"_pqext_{uuid.uuid4().hex}"] = _key(df, name, bounds)
    # One projection: the curve is found once for ranges and sorting. Metadata stays with the columns that are there.
    keyed = df.select(*[F.col(quoted(name)) for name in df.columns], *[key.alias(name) for name, key in keys.items()])
    names = [*keys]
    dealt = keyed.repartitionByRange(*names) if partitions is None else keyed.repartitionByRange(partitions, *names)
    return dealt.sortWithinPartitions(*names).drop(*names)


def _key(df: DataFrame, name: str, bounds: tuple[float, float, float, float] | None) -> Column:
    type = df.schema[name].dataType
    column = F.col(quoted(name))
    if isinstance(type, T.GeometryType) and bounds is None and type.srid not in _DEGREES:
        raise ValueError(f"column {name!r} has srid {type.srid}: give the bounds of its coordinates")
    if isinstance(type, T.GeometryType | T.GeographyType | T.BinaryType):
        return st_hilbert(column, bounds or WORLD)
    if isinstance(type, T.VariantType | T.MapType):
        raise TypeError(f"column {name!r} of type {type.simpleString()} has no order: take a value out of it first")
    return column
