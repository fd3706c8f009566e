"""What a geometry is: its coordinates, bounds, type and number of points."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries, measured
from pqext.spark.functions.udf import FLAT, GEOMETRIES, ArrowFunction, ColumnOrName

_KINDS = (
    "Point", "LineString", "LinearRing", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon",
    "GeometryCollection",
)  # fmt: skip
_KIND_NAMES = pa.array([f"ST_{name}" for name in _KINDS])


def st_x(geometry: ColumnOrName) -> Column:
    """X of points, in units of the CRS; null on null, on empty points and on anything but points."""
    return X(geometry)


def st_y(geometry: ColumnOrName) -> Column:
    """Y of points; see :func:`st_x`."""
    return Y(geometry)


def st_z(geometry: ColumnOrName) -> Column:
    """Z of points, null where they have none; see :func:`st_x`."""
    return Z(geometry)


def st_m(geometry: ColumnOrName) -> Column:
    """M of points, null where they have none; see :func:`st_x`."""
    return M(geometry)


def st_xmin(geometry: ColumnOrName) -> Column:
    """The least X, in units of the CRS; null on null and on empty geometries.

    Of GEOGRAPHY the western side of the box around its edges, as :func:`pqext.geo.bounds` has it, which is greater
    than :func:`st_xmax` where the box crosses the antimeridian.
    """
    return XMIN(geometry)


def st_xmax(geometry: ColumnOrName) -> Column:
    """The greatest X; see :func:`st_xmin`."""
    return XMAX(geometry)


def st_ymin(geometry: ColumnOrName) -> Column:
    """The least Y, of GEOGRAPHY that of its edges; see :func:`st_xmin`."""
    return YMIN(geometry)


def st_ymax(geometry: ColumnOrName) -> Column:
    """The greatest Y, of GEOGRAPHY that of its edges; see :func:`st_xmin`."""
    return YMAX(geometry)


def st_geometrytype(geometry: ColumnOrName) -> Column:
    """``ST_Point``, ``ST_LineString``, ``ST_Polygon`` and so on; null on null."""
    return GEOMETRYTYPE(geometry)


def st_npoints(geometry: ColumnOrName) -> Column:
    """The number of vertices as BIGINT, 0 of empty geometries; null on null."""
    return NPOINTS(geometry)


def st_isempty(geometry: ColumnOrName) -> Column:
    """Has the geometry no points? Null on null."""
    return ISEMPTY(geometry)


def st_isvalid(geometry: ColumnOrName) -> Column:
    """Does the geometry keep the rules of simple features, as GEOS checks them? In the plane; null on null."""
    return ISVALID(geometry)


def _ordinate(name: str, array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array)
    shapes = of.shapes()
    points = (shapely.get_type_id(shapes) == 0) & ~shapely.is_empty(shapes)
    found = np.full(len(shapes), np.nan)
    found[points] = getattr(shapely, f"get_{name}")(shapes[points])
    return measured(found, of.missing)


def _x(array: pa.Array) -> pa.Array:
    return _ordinate("x", array)


def _y(array: pa.Array) -> pa.Array:
    return _ordinate("y", array)


def _z(array: pa.Array) -> pa.Array:
    return _ordinate("z", array)


def _m(array: pa.Array) -> pa.Array:
    import shapely

    from pqext import geo

    of = Geometries.of(array)  # shapely reads M only from 2.1 on
    found = np.array(geo.bounds(of.wkb).field("mmin").to_numpy(zero_copy_only=False), np.float64)
    found[shapely.get_type_id(of.shapes()) != 0] = np.nan
    return measured(found, of.missing)


def box_sides(of: Geometries) -> pa.StructArray:
    """The box of each row, on the globe for GEOGRAPHY."""
    from pqext import geo

    return geo.bounds(of.wkb, of.type.edges, of.type.crs)


def _side(name: str, array: pa.Array) -> pa.Array:
    of = Geometries.of(array)
    found = box_sides(of).field(name)
    return measured(found.fill_null(np.nan).to_numpy(zero_copy_only=False), of.missing)


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

    of = Geometries.of(array)
    return _KIND_NAMES.take(pa.array(shapely.get_type_id(of.shapes()), pa.int32(), mask=of.missing))


def _npoints(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array)
    return pa.array(shapely.get_num_coordinates(of.shapes()).astype(np.int64), mask=of.missing)


def _isempty(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array)
    return pa.array(shapely.is_empty(of.shapes()), mask=of.missing)


def _isvalid(array: pa.Array) -> pa.Array:
    import shapely

    of = Geometries.of(array).flat("st_isvalid")
    return pa.array(shapely.is_valid(of.shapes()), mask=of.missing)


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
