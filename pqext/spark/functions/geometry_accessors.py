"""Properties of geometries: coordinates, bounds, types, areas, lengths and distances.

Measures are in units of the CRS for GEOMETRY, and in metres on the ellipsoid for GEOGRAPHY.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.geo.joins.geometry_column import call_shapely
from pqext.spark.functions.geometry_arrays import Geometries, geometry_pair, nullable_doubles
from pqext.spark.functions.geometry_predicates import relate_constant
from pqext.spark.functions.udf import FLAT, GEOMETRIES, NUMBER, ArrowFunction, ColumnOrName, number

_TYPE_NAMES = (
    "Point", "LineString", "LinearRing", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon",
    "GeometryCollection",
)  # fmt: skip
_ST_NAMES = pa.array([f"ST_{name}" for name in _TYPE_NAMES])


def st_x(geometry: ColumnOrName) -> Column:
    """Return the X of points in units of the CRS; null for null, for empty points and for other geometries."""
    return X(geometry)


def st_y(geometry: ColumnOrName) -> Column:
    """Return the Y of points; see :func:`st_x`."""
    return Y(geometry)


def st_z(geometry: ColumnOrName) -> Column:
    """Return the Z of points, null without Z; see :func:`st_x`."""
    return Z(geometry)


def st_m(geometry: ColumnOrName) -> Column:
    """Return the M of points, null without M; see :func:`st_x`."""
    return M(geometry)


def st_xmin(geometry: ColumnOrName) -> Column:
    """Return the minimum X in units of the CRS; null for null and for empty geometries.

    For GEOGRAPHY, return the western side of the bounding box of its edges, as :func:`pqext.geo.bounds` does. It is
    greater than :func:`st_xmax` if the box crosses the antimeridian.
    """
    return XMIN(geometry)


def st_xmax(geometry: ColumnOrName) -> Column:
    """Return the maximum X; see :func:`st_xmin`."""
    return XMAX(geometry)


def st_ymin(geometry: ColumnOrName) -> Column:
    """Return the minimum Y, including the edges of GEOGRAPHY; see :func:`st_xmin`."""
    return YMIN(geometry)


def st_ymax(geometry: ColumnOrName) -> Column:
    """Return the maximum Y, including the edges of GEOGRAPHY; see :func:`st_xmin`."""
    return YMAX(geometry)


def st_geometrytype(geometry: ColumnOrName) -> Column:
    """Return ``ST_Point``, ``ST_LineString``, ``ST_Polygon`` and so on; null for null."""
    return GEOMETRYTYPE(geometry)


def st_npoints(geometry: ColumnOrName) -> Column:
    """Return the number of vertices as BIGINT; 0 for empty geometries, null for null."""
    return NPOINTS(geometry)


def st_isempty(geometry: ColumnOrName) -> Column:
    """Return whether a geometry is empty; null for null."""
    return ISEMPTY(geometry)


def st_isvalid(geometry: ColumnOrName) -> Column:
    """Return whether a planar geometry is valid by the rules of simple features, checked by GEOS; null for null."""
    return ISVALID(geometry)


def _ordinate(name: str, array: pa.Array) -> pa.Array:
    import shapely

    column = Geometries.from_arrow(array)
    shapes = column.shapes()
    points = (shapely.get_type_id(shapes) == 0) & ~shapely.is_empty(shapes)
    ordinates = np.full(len(shapes), np.nan)
    ordinates[points] = getattr(shapely, f"get_{name}")(shapes[points])
    return nullable_doubles(ordinates, column.missing)


def _x(array: pa.Array) -> pa.Array:
    return _ordinate("x", array)


def _y(array: pa.Array) -> pa.Array:
    return _ordinate("y", array)


def _z(array: pa.Array) -> pa.Array:
    return _ordinate("z", array)


def _m(array: pa.Array) -> pa.Array:
    import shapely

    from pqext import geo

    column = Geometries.from_arrow(array)  # shapely reads M from version 2.1 only
    ordinates = np.array(geo.bounds(column.wkb).field("mmin").to_numpy(zero_copy_only=False), np.float64)
    ordinates[shapely.get_type_id(column.shapes()) != 0] = np.nan
    return nullable_doubles(ordinates, column.missing)


def bounding_boxes(column: Geometries) -> pa.StructArray:
    """Return the bounding box of each row, on the globe for GEOGRAPHY."""
    from pqext import geo

    return geo.bounds(column.wkb, column.type.edges, column.type.crs)


def _side(name: str, array: pa.Array) -> pa.Array:
    column = Geometries.from_arrow(array)
    side = bounding_boxes(column).field(name)
    return nullable_doubles(side.fill_null(np.nan).to_numpy(zero_copy_only=False), column.missing)


def _xmin(array: pa.Array) -> pa.Array:
    return _side("xmin", array)


def _xmax(array: pa.Array) -> pa.Array:
    return _side("xmax", array)


def _ymin(array: pa.Array) -> pa.Array:
    return _side("ymin", array)


def _ymax(array: pa.Array) -> pa.Array:
    return _side("ymax", array)


def _type(array: pa.Array) -> pa.Array:
    import shapely

    column = Geometries.from_arrow(array)
    return _ST_NAMES.take(pa.array(shapely.get_type_id(column.shapes()), pa.int32(), mask=column.missing))


def _npoints(array: pa.Array) -> pa.Array:
    import shapely

    column = Geometries.from_arrow(array)
    return pa.array(shapely.get_num_coordinates(column.shapes()).astype(np.int64), mask=column.missing)


def _isempty(array: pa.Array) -> pa.Array:
    import shapely

    column = Geometries.from_arrow(array)
    return pa.array(shapely.is_empty(column.shapes()), mask=column.missing)


def _isvalid(array: pa.Array) -> pa.Array:
    import shapely

    column = Geometries.from_arrow(array).flat("st_isvalid")
    return pa.array(shapely.is_valid(column.shapes()), mask=column.missing)


def st_area(geometry: ColumnOrName) -> Column:
    """Return the area, in square units of the CRS, or in square metres on the ellipsoid for GEOGRAPHY. Null for null.

    Points, lines and empty geometries have area 0. Edges of GEOGRAPHY are geodesics.
    """
    return AREA(geometry)


def st_length(geometry: ColumnOrName) -> Column:
    """Return the length of lines and of polygon boundaries, in units of the CRS or in metres. Null for null."""
    return LENGTH(geometry)


def st_distance(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the minimum distance between two columns, in units of the CRS or in metres for GEOGRAPHY.

    The distance is 0 if the geometries intersect, and null if either is null or empty. For GEOGRAPHY other than points,
    the work is done once for each distinct geometry of ``other``: pass the column with fewer as ``other``.
    """
    return DISTANCE(geometry, other)


def st_dwithin(geometry: ColumnOrName, other: Any, distance: float | ColumnOrName) -> Column:
    """Return whether geometries are at most ``distance`` apart, in the units of :func:`st_distance`; null for null.

    ``other`` is a column or its name, or a constant geometry: a box ``(xmin, ymin, xmax, ymax)``, WKB or a shapely
    geometry. With a constant geometry, ``distance`` must be a number.
    """
    if isinstance(other, str | Column):
        return DWITHIN(geometry, other, number(distance, "distance"))
    return relate_constant("st_dwithin", "dwithin", geometry, other, distance)


def _area(array: pa.Array) -> pa.Array:
    import shapely

    from pqext.geo.predicates import metres

    column = Geometries.from_arrow(array)
    shapes = column.shapes()
    areas = shapely.area(shapes) if column.type.planar else metres.areas(shapes, column.type)
    return nullable_doubles(areas, column.missing)


def _length(array: pa.Array) -> pa.Array:
    import shapely

    from pqext.geo.predicates import metres

    column = Geometries.from_arrow(array)
    shapes = column.shapes()
    lengths = shapely.length(shapes) if column.type.planar else metres.lengths(shapes, column.type)
    return nullable_doubles(lengths, column.missing)


def _distances(function: str, array: pa.Array, other: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    import shapely

    from pqext.geo.predicates import metres

    left, right, planar = geometry_pair(function, array, other)
    shapes = left.shapes(), right.shapes()
    distances = call_shapely(shapely.distance, *shapes) if planar else metres.distances(*shapes, left.type)
    return distances, left.missing | right.missing


def _distance(array: pa.Array, other: pa.Array) -> pa.Array:
    return nullable_doubles(*_distances("st_distance", array, other))


def _dwithin(array: pa.Array, other: pa.Array, distance: pa.Array) -> pa.Array:
    distances, missing = _distances("st_dwithin", array, other)
    maximum = distance.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return pa.array(distances <= maximum, mask=missing | np.isnan(maximum))


X = ArrowFunction("st_x", (GEOMETRIES,), T.DoubleType(), _x)
Y = ArrowFunction("st_y", (GEOMETRIES,), T.DoubleType(), _y)
Z = ArrowFunction("st_z", (GEOMETRIES,), T.DoubleType(), _z)
M = ArrowFunction("st_m", (GEOMETRIES,), T.DoubleType(), _m)
XMIN = ArrowFunction("st_xmin", (GEOMETRIES,), T.DoubleType(), _xmin)
XMAX = ArrowFunction("st_xmax", (GEOMETRIES,), T.DoubleType(), _xmax)
YMIN = ArrowFunction("st_ymin", (GEOMETRIES,), T.DoubleType(), _ymin)
YMAX = ArrowFunction("st_ymax", (GEOMETRIES,), T.DoubleType(), _ymax)
GEOMETRYTYPE = ArrowFunction("st_geometrytype", (GEOMETRIES,), T.StringType(), _type)
NPOINTS = ArrowFunction("st_npoints", (GEOMETRIES,), T.LongType(), _npoints)
ISEMPTY = ArrowFunction("st_isempty", (GEOMETRIES,), T.BooleanType(), _isempty)
ISVALID = ArrowFunction("st_isvalid", (FLAT,), T.BooleanType(), _isvalid)
AREA = ArrowFunction("st_area", (GEOMETRIES,), T.DoubleType(), _area)
LENGTH = ArrowFunction("st_length", (GEOMETRIES,), T.DoubleType(), _length)
DISTANCE = ArrowFunction("st_distance", (GEOMETRIES, GEOMETRIES), T.DoubleType(), _distance)
DWITHIN = ArrowFunction("st_dwithin", (GEOMETRIES, GEOMETRIES, NUMBER), T.BooleanType(), _dwithin)
