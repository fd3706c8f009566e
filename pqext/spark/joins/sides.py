"""The two sides of a join: their geometry columns, and the schema of what comes out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from pqext.core.base.suggestions import did_you_mean
from pqext.geo import crs as geo_crs
from pqext.geo.types import GeospatialType
from pqext.spark.base.arrays import conform
from pqext.spark.base.types import exchange_schema
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.pushdown.conditions import spatial_type


@dataclass(frozen=True)
class Side:
    """A data frame's geometry column: its number, its name, and what it holds."""

    number: int
    name: str
    type: GeospatialType

    def geometries(self, batch: pa.RecordBatch | pa.Table) -> Geometries:
        """The column in a batch."""
        column = batch.column(self.number)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return self.of(whole)

    def of(self, array: pa.Array) -> Geometries:
        """The column's array."""
        return replace(Geometries.from_arrow(array), type=self.type)


def sides(left: DataFrame, right: DataFrame, on: Any) -> tuple[Side, Side]:
    """The geometry columns of both sides, named by ``on`` or the only ones.

    Raises ``ValueError`` where they cannot be told or their CRSs differ, ``TypeError`` for columns of other types, and
    for GEOMETRY beside GEOGRAPHY.
    """
    names = (on, on) if isinstance(on, str) or on is None else tuple(on)
    if len(names) != 2:
        raise ValueError("on is the name of a column, or a pair of the names on the left and on the right")
    one, other = _side(left, names[0], "left"), _side(right, names[1], "right")
    known = [_declares_type(df, side) for df, side in ((left, one), (right, other))]
    if known[0] and not known[1]:  # WKB is what it stands beside
        other = replace(other, type=one.type)
    elif known[1] and not known[0]:
        one = replace(one, type=other.type)
    if one.type.planar != other.type.planar:
        raise TypeError(
            f"{one.name!r} on the left is {_kind(one)} and {other.name!r} on the right {_kind(other)}: cast one of them"
        )
    if one.type.crs != other.type.crs and not geo_crs.equal(one.type.crs, other.type.crs):
        raise ValueError(
            f"{one.name!r} on the left is in {one.type.crs or geo_crs.DEFAULT} and {other.name!r} on the right in "
            f"{other.type.crs or geo_crs.DEFAULT}: bring one of them into the other's by st_transform"
        )
    return one, other


def _kind(side: Side) -> str:
    return "GEOMETRY" if side.type.planar else "GEOGRAPHY"


def _declares_type(df: DataFrame, side: Side) -> bool:
    """Does the column's type say what it holds?"""
    return isinstance(df.schema[side.number].dataType, T.GeometryType | T.GeographyType) or bool(
        df.schema[side.number].metadata
    )


def _side(df: DataFrame, name: str | None, side_name: str) -> Side:
    fields = df.schema.fields
    if name is None:
        found = [f.name for f in fields if isinstance(f.dataType, T.GeometryType | T.GeographyType)]
        if len(found) != 1:
            there = f"several geometry columns, {', '.join(found)}" if found else "no GEOMETRY or GEOGRAPHY column"
            raise ValueError(f"there are {there} on the {side_name}: name one, on=(left, right)")
        name = found[0]
    places = [number for number, field in enumerate(fields) if field.name == name]
    if len(places) != 1:
        hint = did_you_mean(str(name), df.columns)
        raise ValueError(f"{len(places) or 'no'} columns {name!r} on the {side_name}{hint}")
    type = _type(df.schema, name)
    if type is None:
        kind = fields[places[0]].dataType.simpleString()
        raise TypeError(
            f"column {name!r} on the {side_name} is {kind}, not GEOMETRY, GEOGRAPHY or BINARY of WKB: "
            "make geometries with st_point or st_geomfromwkt"
        )
    return Side(places[0], name, type)


def _type(schema: T.StructType, name: str) -> GeospatialType | None:
    held = schema[name].dataType
    if isinstance(held, T.GeometryType | T.GeographyType) and held.srid == held.MIXED_SRID:
        return GeospatialType(None, "spherical" if isinstance(held, T.GeographyType) else "planar")
    return spatial_type(schema, (name,))


def numbered(df: DataFrame) -> DataFrame:
    """The data frame with numbers for names: pyspark gives columns whose name has a full stop to no function."""
    return df.toDF(*map(str, range(len(df.columns))))


def joined_schema(left: T.StructType, right: T.StructType, suffix: str, *more: T.StructField) -> T.StructType:
    """The columns of both sides; those of the right whose name the left has get ``suffix``.

    Raises ``ValueError`` where two have one name nevertheless.
    """
    taken = set(left.names)
    theirs = [
        T.StructField(f.name + suffix if f.name in taken else f.name, f.dataType, True, f.metadata) for f in right
    ]
    fields = [*left.fields, *theirs, *more]
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several columns are called {', '.join(twice)}: rename them, or choose another suffix")
    return T.StructType(fields)


def batch_of(schema: T.StructType, columns: list[pa.Array]) -> pa.RecordBatch:
    """A batch as Spark takes it for ``schema``."""
    exchange = exchange_schema(schema)
    arrays = [conform(column, field.type, field.name) for column, field in zip(columns, exchange, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=exchange)
