"""Areas, lengths and distances: in units of the CRS in the plane, in metres on the ellipsoid for GEOGRAPHY."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries, both, measured, of_shapes
from pqext.spark.functions.geometry_predicates import of_one
from pqext.spark.functions.udf import GEOMETRIES, NUMBER, ArrowFunction, ColumnOrName, number


def st_area(geometry: ColumnOrName) -> Column:
    """The area: in squares of the CRS's unit, for GEOGRAPHY in square metres on the ellipsoid. Null on null.

    0 of points, lines and empty geometries. Edges of GEOGRAPHY count as geodesics.
    """
    return AREA(geometry)


def st_length(geometry: ColumnOrName) -> Column:
    """The length of lines, and of the borders of polygons: in the CRS's unit, for GEOGRAPHY in metres. Null on null."""
    return LENGTH(geometry)


def st_distance(one: ColumnOrName, other: ColumnOrName) -> Column:
    """The least distance between two columns: in the CRS's unit, for GEOGRAPHY in metres on the ellipsoid.

    0 where they meet; null where one is null or empty. Of GEOGRAPHY, pairs of points are measured together, and all
    others once for each different geometry of ``other``: give the side with fewer as ``other``.
    """
    return DISTANCE(one, other)


def st_dwithin(one: ColumnOrName, other: Any, distance: float | ColumnOrName) -> Column:
    """Are they at most ``distance`` apart, in the units of :func:`st_distance`? Null where one is null.

    ``other`` is a column or its name, or one geometry for all rows: a box ``(xmin, ymin, xmax, ymax)``, WKB or a
    shapely geometry, for which ``distance`` is a number.
    """
    if isinstance(other, str | Column):
        return DWITHIN(one, other, number(distance, "distance"))
    return of_one("st_dwithin", "dwithin", one, other, distance)


def _area(array: pa.Array) -> pa.Array:
    import shapely

    from pqext.geo.predicates import metres

    of = Geometries.of(array)
    shapes = of.shapes()
    return measured(shapely.area(shapes) if of.type.planar else metres.areas(shapes, of.type), of.missing)


def _length(array: pa.Array) -> pa.Array:
    import shapely

    from pqext.geo.predicates import metres

    of = Geometries.of(array)
    shapes = of.shapes()
    return measured(shapely.length(shapes) if of.type.planar else metres.lengths(shapes, of.type), of.missing)


def _between(function: str, one: pa.Array, other: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    import shapely

    from pqext.geo.predicates import metres

    left, right, planar = both(function, one, other)
    shapes = left.shapes(), right.shapes()
    away = of_shapes(shapely.distance, *shapes) if planar else metres.distances(*shapes, left.type)
    return away, left.missing | right.missing


def _distance(one: pa.Array, other: pa.Array) -> pa.Array:
    return measured(*_between("st_distance", one, other))


def _dwithin(one: pa.Array, other: pa.Array, distance: pa.Array) -> pa.Array:
    away, missing = _between("st_dwithin", one, other)
    most = distance.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return pa.array(away <= most, mask=missing | np.isnan(most))


AREA = ArrowFunction("st_area", (GEOMETRIES,), T.DoubleType(), _area)
LENGTH = ArrowFunction("st_length", (GEOMETRIES,), T.DoubleType(), _length)
DISTANCE = ArrowFunction("st_distance", (GEOMETRIES, GEOMETRIES), T.DoubleType(), _distance)
DWITHIN = ArrowFunction("st_dwithin", (GEOMETRIES, GEOMETRIES, NUMBER), T.BooleanType(), _dwithin)
