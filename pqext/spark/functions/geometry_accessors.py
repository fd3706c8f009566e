"""Properties of geometries: coordinates, bounds, types, areas, lengths and distances.

Measures are in units of the CRS for GEOMETRY, and in metres on the ellipsoid for GEOGRAPHY.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import geometry_pair
from pqext.spark.functions.geometry_predicates import relate_constant
from pqext.spark.functions.geometry_table import table_function
from pqext.spark.functions.udf import GEOMETRIES, NUMBER, ArrowFunction, ColumnOrName, number


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
    """Return whether a planar geometry is valid by the simple features standard, as GEOS checks; null for null."""
    return ISVALID(geometry)


def st_area(geometry: ColumnOrName) -> Column:
    """Return the area, in square units of the CRS, or in square metres on the ellipsoid for GEOGRAPHY. Null for null.

    Points, lines and empty geometries have area 0. Edges of GEOGRAPHY are geodesics.
    """
    return AREA(geometry)


def st_length(geometry: ColumnOrName) -> Column:
    """Return the length of lines and of polygon boundaries, in units of the CRS or in metres. Null for null."""
    return LENGTH(geometry)


def st_perimeter(geometry: ColumnOrName) -> Column:
    """Return the length of polygon boundaries, in units of the CRS or in metres; 0 for other types, null for null."""
    return PERIMETER(geometry)


def st_azimuth(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the direction from one point to another, in radians clockwise from north.

    For GEOGRAPHY, it is the direction of the geodesic at its start. Null for null, for equal points and for geometries
    that are not points.
    """
    return AZIMUTH(geometry, other)


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


def _dwithin(array: pa.Array, other: pa.Array, distance: pa.Array) -> pa.Array:
    left, right, _ = geometry_pair("st_dwithin", array, other)
    distances = DISTANCE.evaluate(array, other).fill_null(np.nan).to_numpy()  # NaN for empty geometries
    maximum = distance.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return pa.array(distances <= maximum, mask=left.missing | right.missing | np.isnan(maximum))


X = table_function("st_x")
Y = table_function("st_y")
Z = table_function("st_z")
M = table_function("st_m")
XMIN = table_function("st_xmin")
XMAX = table_function("st_xmax")
YMIN = table_function("st_ymin")
YMAX = table_function("st_ymax")
GEOMETRYTYPE = table_function("st_geometrytype")
NPOINTS = table_function("st_npoints")
ISEMPTY = table_function("st_isempty")
ISVALID = table_function("st_isvalid")
AREA = table_function("st_area")
LENGTH = table_function("st_length")
PERIMETER = table_function("st_perimeter")
DISTANCE = table_function("st_distance")
AZIMUTH = table_function("st_azimuth")
DWITHIN = ArrowFunction("st_dwithin", (GEOMETRIES, GEOMETRIES, NUMBER), T.BooleanType(), _dwithin)
