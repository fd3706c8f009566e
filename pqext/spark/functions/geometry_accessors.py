"""Properties of geometries: coordinates, bounds, types, measures, and spatial keys.

The keys are positions on a Hilbert curve, geohashes and quadkeys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries, create_function, geometry_columns
from pqext.spark.functions.geometry_predicates import relate_constant
from pqext.spark.functions.udf import GEOMETRIES, NUMBER, ArrowFunction, ColumnOrName, to_number_column


def st_x(geometry: ColumnOrName) -> Column:
    """Return the X coordinate of each point in units of the CRS; null for null, empty points and other geometries.

    Example:
        >>> df.select(st_x("geom"), st_y("geom"))  # doctest: +SKIP
    """
    return X(geometry)


def st_y(geometry: ColumnOrName) -> Column:
    """Return the Y of points; see :func:`st_x`.

    Example:
        >>> df.orderBy(st_y("geom").desc())  # doctest: +SKIP
    """
    return Y(geometry)


def st_z(geometry: ColumnOrName) -> Column:
    """Return the Z coordinate of each point, null if the point has no Z; see :func:`st_x`.

    Example:
        >>> df.where(st_z("geom") > 1000)  # doctest: +SKIP
    """
    return Z(geometry)


def st_m(geometry: ColumnOrName) -> Column:
    """Return the M value of each point, null if the point has no M; see :func:`st_x`.

    Example:
        >>> df.where(st_m("geom").isNotNull())  # doctest: +SKIP
    """
    return M(geometry)


def st_xmin(geometry: ColumnOrName) -> Column:
    """Return the minimum X in units of the CRS; null for null and for empty geometries.

    For GEOGRAPHY, return the western side of the bounding box of its edges, as :func:`pqext.geo.bounds` does. It is
    greater than :func:`st_xmax` if the box crosses the antimeridian.

    Example:
        >>> df.select(st_xmin("geom"), st_ymin("geom"), st_xmax("geom"), st_ymax("geom"))  # doctest: +SKIP
    """
    return XMIN(geometry)


def st_xmax(geometry: ColumnOrName) -> Column:
    """Return the maximum X; see :func:`st_xmin`.

    Example:
        >>> df.agg(F.max(st_xmax("geom")))  # doctest: +SKIP
    """
    return XMAX(geometry)


def st_ymin(geometry: ColumnOrName) -> Column:
    """Return the minimum Y, including the edges of GEOGRAPHY; see :func:`st_xmin`.

    Example:
        >>> df.where(st_ymin("geom") >= 0)  # doctest: +SKIP
    """
    return YMIN(geometry)


def st_ymax(geometry: ColumnOrName) -> Column:
    """Return the maximum Y, including the edges of GEOGRAPHY; see :func:`st_xmin`.

    Example:
        >>> df.select(st_ymax("geom") - st_ymin("geom"))  # doctest: +SKIP
    """
    return YMAX(geometry)


def st_geometrytype(geometry: ColumnOrName) -> Column:
    """Return ``ST_Point``, ``ST_LineString``, ``ST_Polygon`` and so on; null for null.

    Example:
        >>> df.groupBy(st_geometrytype("geom")).count()  # doctest: +SKIP
    """
    return GEOMETRYTYPE(geometry)


def st_npoints(geometry: ColumnOrName) -> Column:
    """Return the number of vertices as BIGINT; 0 for empty geometries, null for null.

    Example:
        >>> df.orderBy(st_npoints("geom").desc()).limit(10)  # doctest: +SKIP
    """
    return NPOINTS(geometry)


def st_isempty(geometry: ColumnOrName) -> Column:
    """Return whether a geometry is empty; null for null.

    Example:
        >>> df.where(~st_isempty("geom"))  # doctest: +SKIP
    """
    return ISEMPTY(geometry)


def st_isvalid(geometry: ColumnOrName) -> Column:
    """Return whether a planar geometry is valid by the simple features standard, as GEOS checks; null for null.

    Example:
        >>> df.where(~st_isvalid("geom")).count()  # doctest: +SKIP
    """
    return ISVALID(geometry)


def st_area(geometry: ColumnOrName) -> Column:
    """Return the area, in square units of the CRS, or in square metres on the ellipsoid for GEOGRAPHY.

    Return null for null. Points, lines and empty geometries have area 0. Edges of GEOGRAPHY are geodesics.

    Example:
        >>> df.select("name", st_area("geom"))  # doctest: +SKIP
    """
    return AREA(geometry)


def st_length(geometry: ColumnOrName) -> Column:
    """Return the length of lines and of polygon boundaries, in units of the CRS or in metres. Return null for null.

    Example:
        >>> df.agg(F.sum(st_length("road")))  # doctest: +SKIP
    """
    return LENGTH(geometry)


def st_perimeter(geometry: ColumnOrName) -> Column:
    """Return the length of polygon boundaries, in units of the CRS or in metres; 0 for other types, null for null.

    Example:
        >>> df.select("name", st_perimeter("geom"))  # doctest: +SKIP
    """
    return PERIMETER(geometry)


def st_azimuth(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the direction from one point to another, in radians clockwise from north.

    For GEOGRAPHY, it is the direction of the geodesic at its start. Return null for null, for equal points and for
    geometries that are not points.

    Example:
        >>> df.select(F.degrees(st_azimuth("origin", "destination")))  # doctest: +SKIP
    """
    return AZIMUTH(geometry, other)


def st_distance(geometry: ColumnOrName, other: ColumnOrName) -> Column:
    """Return the minimum distance between two columns, in units of the CRS or in metres for GEOGRAPHY.

    The distance is 0 if the geometries intersect, and null if either is null or empty. For GEOGRAPHY other than points,
    the work is done once for each distinct geometry of ``other``: pass the column with fewer as ``other``.

    Example:
        >>> df.where(st_distance("origin", "destination") < 100)  # doctest: +SKIP
    """
    return DISTANCE(geometry, other)


def st_dwithin(geometry: ColumnOrName, other: Any, distance: float | ColumnOrName) -> Column:
    """Return whether geometries are at most ``distance`` apart, in the units of :func:`st_distance`; null for null.

    ``other`` is a column or its name, or a constant geometry: a box ``(xmin, ymin, xmax, ymax)``, WKB or a shapely
    geometry. With a constant geometry, ``distance`` must be a number.

    Example:
        >>> df.where(st_dwithin("geom", (4.0, 50.0, 8.0, 54.0), 0.5))  # doctest: +SKIP
    """
    if isinstance(other, str | Column):
        return DWITHIN(geometry, other, to_number_column(distance, "distance"))
    return relate_constant("st_dwithin", "dwithin", geometry, other, distance)


def _dwithin(array: pa.Array, other: pa.Array, distance: pa.Array) -> pa.Array:
    left, right = geometry_columns([array, other])
    distances = DISTANCE.evaluate(array, other).fill_null(np.nan).to_numpy()  # NaN for empty geometries
    maximum = distance.fill_null(np.nan).to_numpy(zero_copy_only=False)
    return pa.array(distances <= maximum, mask=left.missing | right.missing | np.isnan(maximum))


X = create_function("st_x")
Y = create_function("st_y")
Z = create_function("st_z")
M = create_function("st_m")
XMIN = create_function("st_xmin")
XMAX = create_function("st_xmax")
YMIN = create_function("st_ymin")
YMAX = create_function("st_ymax")
GEOMETRYTYPE = create_function("st_geometrytype")
NPOINTS = create_function("st_npoints")
ISEMPTY = create_function("st_isempty")
ISVALID = create_function("st_isvalid")
AREA = create_function("st_area")
LENGTH = create_function("st_length")
PERIMETER = create_function("st_perimeter")
DISTANCE = create_function("st_distance")
AZIMUTH = create_function("st_azimuth")
DWITHIN = ArrowFunction("st_dwithin", (GEOMETRIES, GEOMETRIES, NUMBER), T.BooleanType(), _dwithin)


if TYPE_CHECKING:
    _Doubles = NDArray[np.float64]

WORLD = (-180.0, -90.0, 180.0, 90.0)
_MERCATOR_TOP = 85.0511287798066
_BASE32 = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
_BASE4 = np.frombuffer(b"0123", np.uint8)


def st_hilbert(geometry: ColumnOrName, bounds: tuple[float, float, float, float] = WORLD) -> Column:
    """Return the position of the centre of each geometry's bounding box on a Hilbert curve, as BIGINT.

    Neighbours on the curve are neighbours on the map, so row groups of sorted rows have small bounding boxes. Order a
    data frame with ``df.repartitionByRange(n, st_hilbert("g")).sortWithinPartitions(st_hilbert("g"))``, or with
    :func:`pqext.spark.layout`. The writer's ``geometry={"g": {"order": "hilbert"}}`` orders the rows of each task only.
    The curve fills ``bounds``; centres outside are moved to the border. Return null for null and for empty geometries.

    Example:
        >>> df.orderBy(st_hilbert("geom", bounds=(4.0, 50.0, 8.0, 54.0)))  # doctest: +SKIP
    """
    return HILBERT(geometry, bounds=tuple(map(float, bounds)))


def st_geohash(geometry: ColumnOrName, precision: int = 9) -> Column:
    """Return the geohash of the centre of each geometry's bounding box, with ``precision`` characters from 1 to 12.

    Coordinates must be longitude and latitude. Return null for null, for empty geometries and for other coordinates.

    Example:
        >>> df.groupBy(st_geohash("geom", precision=5)).count()  # doctest: +SKIP
    """
    return GEOHASH(geometry, precision=_check_range("precision", precision, 12))


def st_quadkey(geometry: ColumnOrName, zoom: int = 14) -> Column:
    """Return the quadkey of the Web Mercator tile at ``zoom``, 1 to 29, that contains the centre of each bounding box.

    Coordinates must be longitude and latitude. Latitudes beyond 85.05 degrees are in the outermost tiles. Null as in
    :func:`st_geohash`.

    Example:
        >>> df.withColumn("tile", st_quadkey("geom", zoom=10))  # doctest: +SKIP
    """
    return QUADKEY(geometry, zoom=_check_range("zoom", zoom, 29))


def _check_range(name: str, value: Any, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
        raise ValueError(f"{name} must be an integer from 1 to {maximum}, not {value!r}")
    return value


def _centres(column: Geometries) -> tuple[_Doubles, _Doubles]:
    from pqext import geo

    sides = geo.bounds(column.wkb)  # planar bounds of the vertices
    x, y = (
        (sides.field(low).to_numpy(zero_copy_only=False) + sides.field(high).to_numpy(zero_copy_only=False)) / 2
        for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    missing = column.missing
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def _hilbert(array: pa.Array, bounds: tuple[float, float, float, float] = WORLD) -> pa.Array:
    from pqext import geo

    xmin, ymin, xmax, ymax = bounds
    x, y = _centres(Geometries.from_arrow(array))
    is_valid = np.isfinite(x) & np.isfinite(y)
    index = geo.hilbert_index(
        np.where(is_valid, x, xmin), np.where(is_valid, y, ymin), geo.BoundingBox(xmin, xmax, ymin, ymax)
    )
    # 63 of the 64 bits, because BIGINT is signed.
    return pa.array((index >> np.uint64(1)).astype(np.int64), mask=~is_valid)


def _centre_degrees(array: pa.Array) -> tuple[_Doubles, _Doubles, NDArray[np.bool_]]:
    """Return the longitudes and latitudes of the centres, and a mask of rows without a valid centre."""
    x, y = _centres(Geometries.from_arrow(array))
    is_valid = (np.abs(x) <= 180) & (np.abs(y) <= 90)
    return np.where(is_valid, x, 0.0), np.where(is_valid, y, 0.0), ~is_valid


def _geohash(array: pa.Array, precision: int = 9) -> pa.Array:
    x, y, missing = _centre_degrees(array)
    bits = 5 * precision
    x_bits, y_bits = (bits + 1) // 2, bits // 2
    east, north = _cell_index((x + 180) / 360, x_bits), _cell_index((y + 90) / 180, y_bits)
    positions = np.arange(bits)  # bits of longitude and latitude alternate
    shifts = np.where(positions % 2 == 0, x_bits, y_bits) - 1 - positions // 2
    codes = np.zeros(len(x), np.uint64)
    for position in positions.tolist():
        axis = north if position % 2 else east
        codes = (codes << np.uint64(1)) | ((axis >> np.uint64(shifts[position])) & np.uint64(1))
    return _format_digits(codes, 5, precision, _BASE32, missing)


def _quadkey(array: pa.Array, zoom: int = 14) -> pa.Array:
    x, y, missing = _centre_degrees(array)
    sine = np.sin(np.radians(np.clip(y, -_MERCATOR_TOP, _MERCATOR_TOP)))
    south = 0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)
    column, row = _cell_index((x + 180) / 360, zoom), _cell_index(south, zoom)
    codes = np.zeros(len(x), np.uint64)
    for bit in reversed(range(zoom)):
        digit = ((column >> np.uint64(bit)) & np.uint64(1)) | (((row >> np.uint64(bit)) & np.uint64(1)) << np.uint64(1))
        codes = (codes << np.uint64(2)) | digit
    return _format_digits(codes, 2, zoom, _BASE4, missing)


def _cell_index(fraction: _Doubles, bits: int) -> NDArray[np.uint64]:
    """Return the index of the cell that contains each fraction, on an axis with 2^bits cells."""
    return np.clip(np.floor(fraction * 2.0**bits), 0, 2.0**bits - 1).astype(np.uint64)


def _format_digits(
    numbers: NDArray[np.uint64], bits: int, length: int, digits: NDArray[np.uint8], missing: NDArray[np.bool_]
) -> pa.Array:
    """Format numbers as ``length`` digits of ``bits`` bits each."""
    shifts = np.uint64(bits) * np.arange(length - 1, -1, -1, dtype=np.uint64)
    text = digits[(numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(length)
    validity = pa.array(~missing).buffers()[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text.tobytes()), validity)


HILBERT = ArrowFunction("st_hilbert", (GEOMETRIES,), T.LongType(), _hilbert)
GEOHASH = ArrowFunction("st_geohash", (GEOMETRIES,), T.StringType(), _geohash)
QUADKEY = ArrowFunction("st_quadkey", (GEOMETRIES,), T.StringType(), _quadkey)
