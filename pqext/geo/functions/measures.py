"""Measures and properties of geometries in Arrow arrays: numbers, flags and names for each row.

Results are in units of the coordinates for planar edges, and in metres on the CRS's ellipsoid for GEOGRAPHY.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pqext.geo.functions.table import evaluate

if TYPE_CHECKING:
    from pqext.geo.types import Edges
    from pqext.geo.wkb import GeometryArray


def area(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the area of each geometry.

    Args:
        array: WKB in an Arrow array, in chunks or not.
        edges: Edges of the geometries; by default the edges of the extension array, or planar.
        crs: CRS of the geometries; by default the CRS of the extension array, or OGC:CRS84.

    Returns:
        Doubles: square units of the coordinates for planar edges, otherwise square metres on the ellipsoid of the CRS,
        enclosed by geodesics between the vertices. 0 for points and lines. Null for null, for NaN coordinates and,
        unless edges are planar, for coordinates out of range.

    Raises:
        GeometryError: With row and byte if WKB is invalid, and if the ellipsoid of the CRS is unknown.
        TypeError: If ``array`` does not contain WKB.

    Example:
        >>> from pqext import geo
        >>> square = geo.from_wkt(["POLYGON ((0 0, 2 0, 2 3, 0 3, 0 0))"])
        >>> geo.area(square)[0].as_py()
        6.0
        >>> round(geo.area(square, edges="spherical")[0].as_py() / 1e6)  # square kilometres
        73829
    """
    return evaluate("st_area", array, edges=edges, crs=crs)


def length(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the length of lines and of the boundaries of polygons; 0 for points.

    Returns:
        Doubles in units of the coordinates for planar edges, otherwise in metres along geodesics. Nulls, arguments and
        errors as in :func:`area`.

    Example:
        >>> from pqext import geo
        >>> line = geo.from_wkt(["LINESTRING (0 0, 3 4)"])
        >>> geo.length(line)[0].as_py()
        5.0
        >>> round(geo.length(line, edges="spherical")[0].as_py() / 1e3)  # kilometres
        554
    """
    return evaluate("st_length", array, edges=edges, crs=crs)


def perimeter(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the length of the boundaries of polygons, holes included; 0 for lines and points.

    Returns:
        Doubles in units of the coordinates for planar edges, otherwise in metres along geodesics. Nulls, arguments and
        errors as in :func:`area`.

    Example:
        >>> from pqext import geo
        >>> shapes = geo.from_wkt(["POLYGON ((0 0, 2 0, 2 3, 0 3, 0 0))", "LINESTRING (0 0, 3 4)"])
        >>> geo.perimeter(shapes).to_pylist()
        [10.0, 0.0]
    """
    return evaluate("st_perimeter", array, edges=edges, crs=crs)


def distance(array: GeometryArray, other: Any, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the shortest distance between each geometry and ``other``.

    Args:
        array: WKB in an Arrow array, in chunks or not.
        other: A geometry of shapely, WKB as bytes or a box ``(xmin, ymin, xmax, ymax)``, or an array of the same
            length. A box requires planar edges.
        edges: Edges of all geometries; by default the edges of the extension arrays, or planar.
        crs: CRS of all geometries; by default the CRS of the extension arrays, or OGC:CRS84.

    Returns:
        Doubles: units of the coordinates for planar edges, otherwise metres on the ellipsoid, exact between points and
        within two parts in a hundred thousand for other geometries. 0 if the geometries intersect. Null if either is
        null or empty, or out of range as in :func:`area`.

    Raises:
        GeometryError: With the row, if WKB is invalid.
        TypeError: If ``other`` is not a geometry, or has other edges or another CRS.
        ValueError: If ``other`` has a different length, or is a box that crosses the antimeridian.

    Example:
        >>> import shapely
        >>> from pqext import geo
        >>> points = geo.from_points([0, 3], [0, 4])
        >>> geo.distance(points, shapely.Point(0, 0)).to_pylist()
        [0.0, 5.0]
        >>> [round(metres) for metres in geo.distance(points, shapely.Point(0, 0), "spherical").to_pylist()]
        [0, 554059]
    """
    return evaluate("st_distance", array, other, edges=edges, crs=crs)


def azimuth(array: GeometryArray, other: Any, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the direction from each point to the point ``other``, in radians clockwise from north.

    Returns:
        Doubles from 0 to 2π: the angle from the Y axis for planar edges, otherwise the direction of the geodesic at its
        start. Null for equal points, for null and for geometries that are not points. Arguments and errors as in
        :func:`distance`.

    Example:
        >>> import math, shapely
        >>> from pqext import geo
        >>> east = geo.azimuth(geo.from_points([0], [0]), shapely.Point(5, 0))
        >>> math.degrees(east[0].as_py())
        90.0
    """
    return evaluate("st_azimuth", array, other, edges=edges, crs=crs)


def x(array: GeometryArray) -> GeometryArray:
    """Return the X coordinate of each point as a double; null for null, empty points and other types.

    Example:
        >>> from pqext import geo
        >>> geo.x(geo.from_wkt(["POINT (1 2)", "POINT EMPTY", "LINESTRING (0 0, 1 1)"])).to_pylist()
        [1.0, None, None]
    """
    return evaluate("st_x", array)


def y(array: GeometryArray) -> GeometryArray:
    """Return the Y coordinate of each point; see :func:`x`.

    Example:
        >>> from pqext import geo
        >>> geo.y(geo.from_points([178.44, None], [-18.14, 64.5])).to_pylist()
        [-18.14, None]
    """
    return evaluate("st_y", array)


def z(array: GeometryArray) -> GeometryArray:
    """Return the Z coordinate of each point, null if the point has no Z; see :func:`x`.

    Example:
        >>> from pqext import geo
        >>> geo.z(geo.from_wkt(["POINT Z (1 2 3)", "POINT (1 2)"])).to_pylist()
        [3.0, None]
    """
    return evaluate("st_z", array)


def m(array: GeometryArray) -> GeometryArray:
    """Return the M value of each point, null if the point has no M; see :func:`x`.

    Example:
        >>> from pqext import geo
        >>> geo.m(geo.from_wkt(["POINT M (1 2 4)", "POINT Z (1 2 3)"])).to_pylist()
        [4.0, None]
    """
    return evaluate("st_m", array)


def geometry_type(array: GeometryArray) -> GeometryArray:
    """Return ``ST_Point``, ``ST_LineString``, ``ST_Polygon`` and so on, as text; null for null.

    Example:
        >>> from pqext import geo
        >>> geo.geometry_type(geo.from_wkt(["POINT (1 2)", "MULTIPOLYGON EMPTY", None])).to_pylist()
        ['ST_Point', 'ST_MultiPolygon', None]
    """
    return evaluate("st_geometrytype", array)


def num_points(array: GeometryArray) -> GeometryArray:
    """Return the number of vertices as 64-bit integers; 0 for empty geometries, null for null.

    The first vertex of a ring is counted twice, because it is repeated at the end.

    Example:
        >>> from pqext import geo
        >>> geo.num_points(geo.from_wkt(["POLYGON ((0 0, 2 0, 0 2, 0 0))", "POINT EMPTY"])).to_pylist()
        [4, 0]
    """
    return evaluate("st_npoints", array)


def is_empty(array: GeometryArray) -> GeometryArray:
    """Return whether geometries have no vertices, as booleans; null for null.

    Example:
        >>> from pqext import geo
        >>> geo.is_empty(geo.from_wkt(["POINT (1 2)", "POINT EMPTY", None])).to_pylist()
        [False, True, None]
    """
    return evaluate("st_isempty", array)


def is_valid(array: GeometryArray) -> GeometryArray:
    """Return whether planar geometries are valid according to the simple features standard; null for null.

    A geometry with NaN or infinite coordinates is not valid. :func:`validate` checks the encoding.

    Raises:
        TypeError: For GEOGRAPHY, because GEOS checks straight edges.

    Example:
        >>> from pqext import geo
        >>> geo.is_valid(geo.from_wkt(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "POINT (1 2)"])).to_pylist()
        [False, True]
    """
    return evaluate("st_isvalid", array)
