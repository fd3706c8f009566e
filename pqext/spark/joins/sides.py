"""Sides of a join: geometry columns and the schema of the result."""

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
from pqext.spark.base.types import to_exchange_schema
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.udf import CONVERT_EDGES
from pqext.spark.pushdown.conditions import spatial_type


@dataclass(frozen=True)
class Side:
    """Geometry column of a data frame: its position, its name and its type."""

    number: int
    name: str
    type: GeospatialType

    def geometries(self, batch: pa.RecordBatch | pa.Table) -> Geometries:
        """Return the geometries of the column in a batch."""
        column = batch.column(self.number)
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return self.parse_array(array)

    def parse_array(self, array: pa.Array) -> Geometries:
        """Parse an array of the column into geometries."""
        return replace(Geometries.from_arrow(array), type=self.type)


def find_sides(left: DataFrame, right: DataFrame, on: Any) -> tuple[Side, Side]:
    """Return the geometry columns of both sides: the columns that ``on`` names, by default the only geometry columns.

    Raises ``ValueError`` if the columns are ambiguous or their CRSs differ, and ``TypeError`` for columns of other
    types, or for GEOMETRY with GEOGRAPHY.
    """
    names = (on, on) if isinstance(on, str) or on is None else tuple(on)
    if len(names) != 2:
        raise ValueError(f"on must be the name of a column, or a pair of names for the left and the right, not {on!r}")
    left_side, right_side = _find_side(left, names[0], "left"), _find_side(right, names[1], "right")
    known = [_declares_type(df, side) for df, side in ((left, left_side), (right, right_side))]
    if known[0] and not known[1]:  # WKB gets the type of the other side
        right_side = replace(right_side, type=left_side.type)
    elif known[1] and not known[0]:
        left_side = replace(left_side, type=right_side.type)
    if left_side.type.planar != right_side.type.planar:
        raise TypeError(
            f"{left_side.name!r} on the left is {_type_name(left_side)}, but {right_side.name!r} on the right is "
            f"{_type_name(right_side)}: {CONVERT_EDGES}"
        )
    if left_side.type.crs != right_side.type.crs and not geo_crs.equal(left_side.type.crs, right_side.type.crs):
        raise ValueError(
            f"{left_side.name!r} on the left has CRS {left_side.type.crs or geo_crs.DEFAULT}, but {right_side.name!r} "
            f"on the right has CRS {right_side.type.crs or geo_crs.DEFAULT}; transform either column with st_transform"
        )
    return left_side, right_side


def _type_name(side: Side) -> str:
    return "GEOMETRY" if side.type.planar else "GEOGRAPHY"


def _declares_type(df: DataFrame, side: Side) -> bool:
    """Return whether the type or metadata of a column declares the geometry type, including edges and CRS."""
    return isinstance(df.schema[side.number].dataType, T.GeometryType | T.GeographyType) or bool(
        df.schema[side.number].metadata
    )


def _find_side(df: DataFrame, name: str | None, side_name: str) -> Side:
    fields = df.schema.fields
    if name is None:
        results = [f.name for f in fields if isinstance(f.dataType, T.GeometryType | T.GeographyType)]
        if len(results) != 1:
            description = f"several geometry columns, {', '.join(results)}"
            columns = description if results else "no GEOMETRY or GEOGRAPHY column"
            raise ValueError(f"{columns} on the {side_name}: pass on=(left, right)")
        name = results[0]
    positions = [number for number, field in enumerate(fields) if field.name == name]
    if len(positions) != 1:
        hint = did_you_mean(str(name), df.columns)
        raise ValueError(f"{len(positions) or 'no'} columns {name!r} on the {side_name}{hint}")
    type = _geospatial_type(df.schema, name)
    if type is None:
        type_name = fields[positions[0]].dataType.simpleString()
        raise TypeError(
            f"column {name!r} on the {side_name} is {type_name}, not GEOMETRY, GEOGRAPHY or BINARY with WKB: "
            "create geometries with st_point or st_geomfromwkt"
        )
    return Side(positions[0], name, type)


def _geospatial_type(schema: T.StructType, name: str) -> GeospatialType | None:
    data_type = schema[name].dataType
    if isinstance(data_type, T.GeometryType | T.GeographyType) and data_type.srid == data_type.MIXED_SRID:
        return GeospatialType(None, "spherical" if isinstance(data_type, T.GeographyType) else "planar")
    return spatial_type(schema, (name,))


def number_columns(df: DataFrame) -> DataFrame:
    """Rename the columns to numbers, because pyspark does not pass columns with a dot in their name to functions."""
    return df.toDF(*map(str, range(len(df.columns))))


def join_schemas(left: T.StructType, right: T.StructType, suffix: str, *extra_columns: T.StructField) -> T.StructType:
    """Return the columns of both sides. ``suffix`` is added to names of the right side that also occur on the left.

    Raises ``ValueError`` if names are still duplicated.
    """
    used = set(left.names)
    right_fields = [
        T.StructField(f.name + suffix if f.name in used else f.name, f.dataType, True, f.metadata) for f in right
    ]
    fields = [*left.fields, *right_fields, *extra_columns]
    names = [field.name for field in fields]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several columns have the name {', '.join(twice)}: rename them, or choose another suffix")
    return T.StructType(fields)


def build_batch(schema: T.StructType, columns: list[pa.Array]) -> pa.RecordBatch:
    """Build a batch in the layout that Spark expects for ``schema``."""
    exchange = to_exchange_schema(schema)
    arrays = [conform(column, field.type, field.name) for column, field in zip(columns, exchange, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=exchange)
