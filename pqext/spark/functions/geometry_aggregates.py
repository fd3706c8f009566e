"""Aggregates of geometries: the box around a group, and its union."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import GEOMETRY, Geometries, from_shapes, of_shapes
from pqext.spark.functions.udf import (
    ANYTHING,
    FLAT,
    ArrowFunction,
    ColumnOrName,
    arrow_udf,
    named,
    of_arrays,
    taken,
    text_of,
)

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_BOX = T.StructType([*(T.StructField(name, T.DoubleType()) for name in _SIDES), T.StructField("srid", T.IntegerType())])


def st_envelope_agg(geometry: ColumnOrName) -> Column:
    """An aggregate: the smallest rectangle around all geometries of a group, as GEOMETRY(ANY).

    Null where all are null or empty. Boxes are computed in Python and aggregated by Spark, so that groups may be of any
    size. The SRID is the largest in the group.
    """
    box = BOX(geometry)
    sides = [F.min(box["xmin"]), F.min(box["ymin"]), F.max(box["xmax"]), F.max(box["ymax"]), F.max(box["srid"])]
    return named(RECTANGLE(*sides), "st_envelope_agg", [text_of(geometry)], "geometry(any)")


def st_union_agg(geometry: ColumnOrName) -> Column:
    """An aggregate: the union of all geometries of a group in X and Y, as GEOMETRY(ANY); null where all are null.

    All geometries of a group go to one Python worker. The SRID is that of the first.
    """
    union = arrow_udf(of_arrays(union_of), GEOMETRY, "st_union_agg", returns=dict)
    return named(union(taken("st_union_agg", FLAT, geometry)), "st_union_agg", [text_of(geometry)], "geometry(any)")


st_envelope_aggr = st_envelope_agg
st_union_aggr = st_union_agg


def _boxes(array: pa.Array) -> pa.Array:
    from pqext import geo

    of = Geometries.of(array).flat("st_envelope_agg")
    found = geo.bounds(of.wkb)
    sides = [found.field(name) for name in _SIDES]
    srid = of.srid if of.srid is not None else pa.repeat(pa.scalar(0, pa.int32()), len(of.wkb))
    empty = of.missing | sides[0].is_null().to_numpy(zero_copy_only=False)
    return pa.StructArray.from_arrays([*sides, srid], names=[*_SIDES, "srid"], mask=pa.array(empty))


def _rectangles(*columns: pa.Array) -> pa.Array:
    import shapely

    *sides, srid = columns
    boxes = shapely.box(*(side.fill_null(np.nan).to_numpy(zero_copy_only=False) for side in sides))
    missing = sides[0].is_null().to_numpy(zero_copy_only=False)
    return from_shapes(shapely.envelope(np.where(missing, None, boxes)), srid)


def union_of(array: pa.Array) -> Any:
    import shapely

    of = Geometries.of(array).flat("st_union_agg")
    shapes = of.shapes()
    if of.missing.all():
        return None
    srid = 0 if of.srid is None else of.srid.drop_null()[0].as_py()
    return from_shapes([of_shapes(shapely.union_all, shapely.force_2d(shapes))], srid)[0].as_py()


BOX = ArrowFunction("st_envelope_agg", (FLAT,), _BOX, _boxes)
RECTANGLE = ArrowFunction("st_envelope_agg", (ANYTHING,) * 5, GEOMETRY, _rectangles)
