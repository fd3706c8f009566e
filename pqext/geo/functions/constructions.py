"""Geometries constructed from the geometries in an Arrow array, on the plane with GEOS.

All functions return ISO WKB: an extension array with the same CRS for an extension array, otherwise a binary array.
Null remains null. All functions except :func:`orient` raise ``TypeError`` for GEOGRAPHY: project the coordinates with
:func:`pqext.geo.transform` first. If GEOS fails, as for some invalid polygons and for NaN, ``GeometryError`` names the
row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pqext.geo.functions.table import evaluate

if TYPE_CHECKING:
    from pqext.geo.wkb import GeometryArray


def envelope(array: GeometryArray) -> GeometryArray:
    """Return the smallest rectangle around each geometry, or a point or line if it has no area.

    :func:`pqext.geo.bounds` returns the bounds as numbers, also for GEOGRAPHY.

    Example:
        >>> from pqext import geo
        >>> geo.to_wkt(geo.envelope(geo.from_wkt(["LINESTRING (0 0, 2 1)"]))).to_pylist()
        ['POLYGON ((0 0, 2 0, 2 1, 0 1, 0 0))']
    """
    return evaluate("st_envelope", array)


def centroid(array: GeometryArray) -> GeometryArray:
    """Return the centre of mass of each geometry, which may lie outside it; an empty point for an empty geometry.

    Example:
        >>> from pqext import geo
        >>> geo.to_wkt(geo.centroid(geo.from_wkt(["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"]))).to_pylist()
        ['POINT (1 1)']
    """
    return evaluate("st_centroid", array)


def point_on_surface(array: GeometryArray) -> GeometryArray:
    """Return, for each geometry, a point on the geometry; an empty point for an empty geometry.

    Example:
        >>> from pqext import geo
        >>> horseshoe = geo.from_wkt(["POLYGON ((0 0, 4 0, 4 4, 3 4, 3 1, 1 1, 1 4, 0 4, 0 0))"])
        >>> round(geo.distance(geo.centroid(horseshoe), horseshoe)[0].as_py(), 1)
        0.7
        >>> geo.distance(geo.point_on_surface(horseshoe), horseshoe)[0].as_py()
        0.0
    """
    return evaluate("st_pointonsurface", array)


def convex_hull(array: GeometryArray) -> GeometryArray:
    """Return the smallest convex geometry around each geometry.

    Example:
        >>> from pqext import geo
        >>> hull = geo.convex_hull(geo.from_wkt(["MULTIPOINT (0 0, 2 0, 2 2, 0 2, 1 1)"]))
        >>> geo.num_points(hull).to_pylist(), geo.area(hull).to_pylist()  # the square around the point (1, 1)
        ([5], [4.0])
    """
    return evaluate("st_convexhull", array)


def boundary(array: GeometryArray) -> GeometryArray:
    """Return the rings of polygons and the end points of lines; an empty geometry for points, null for collections.

    Example:
        >>> from pqext import geo
        >>> shapes = geo.from_wkt(["LINESTRING (0 0, 1 1, 2 0)", "POLYGON ((0 0, 2 0, 0 2, 0 0))"])
        >>> geo.to_wkt(geo.boundary(shapes)).to_pylist()
        ['MULTIPOINT ((0 0), (2 0))', 'LINESTRING (0 0, 2 0, 0 2, 0 0)']
    """
    return evaluate("st_boundary", array)


def buffer(array: GeometryArray, distance: float, *, quad_segs: int = 8) -> GeometryArray:
    """Return the area within a distance of each geometry.

    Args:
        array: WKB with planar edges in an Arrow array, in chunks or not.
        distance: A number in units of the coordinates: degrees for longitudes and latitudes. A negative number shrinks
            polygons.
        quad_segs: Number of segments, from 1 to 1,000, that approximate a quarter of a circle.

    Returns:
        Polygons and multipolygons as ISO WKB, with the extension type of ``array``. Z and M are dropped. Null for null.

    Raises:
        GeometryError: With the row, if WKB is invalid or GEOS fails, and for NaN, infinite or huge coordinates.
        TypeError: For GEOGRAPHY, and if an argument has the wrong type.
        ValueError: If ``distance`` is not finite or ``quad_segs`` is out of range.

    Example:
        >>> from pqext import geo
        >>> circles = geo.buffer(geo.from_points([0], [0]), 10)
        >>> round(geo.area(circles)[0].as_py(), 1)
        312.1
    """
    return evaluate("st_buffer", array, distance, quad_segs)


def simplify(array: GeometryArray, tolerance: float, *, preserve_topology: bool = True) -> GeometryArray:
    """Return geometries with fewer vertices, each at most ``tolerance`` from the original line.

    Args:
        array: WKB with planar edges in an Arrow array, in chunks or not.
        tolerance: A number in units of the coordinates.
        preserve_topology: Whether polygons stay valid. False is faster and may return invalid and empty polygons.

    Returns:
        ISO WKB, with the extension type of ``array``. Null for null.

    Raises:
        GeometryError: With the row, if WKB is invalid, and for NaN, infinite or huge coordinates.
        TypeError: For GEOGRAPHY, and if ``tolerance`` is not a number.
        ValueError: If ``tolerance`` is not finite.

    Example:
        >>> from pqext import geo
        >>> geo.to_wkt(geo.simplify(geo.from_wkt(["LINESTRING (0 0, 1 0.1, 2 0)"]), 0.5)).to_pylist()
        ['LINESTRING (0 0, 2 0)']
    """
    return evaluate("st_simplify", array, tolerance, preserve_topology)


def snap_to_grid(array: GeometryArray, size: float) -> GeometryArray:
    """Return geometries whose coordinates are multiples of ``size``, in units of the coordinates.

    Results are valid: repeated vertices and collapsed lines and rings are removed. Z and M are not rounded.

    Args:
        array: WKB with planar edges in an Arrow array, in chunks or not.
        size: A number greater than 0.

    Returns:
        ISO WKB, with the extension type of ``array``. Null for null.

    Raises:
        GeometryError: With the row, if WKB is invalid, and for invalid polygons.
        TypeError: For GEOGRAPHY, and if ``size`` is not a number.
        ValueError: If ``size`` is not finite or not greater than 0.

    Example:
        >>> from pqext import geo
        >>> geo.to_wkt(geo.snap_to_grid(geo.from_points([1.26], [3.9]), 0.5)).to_pylist()
        ['POINT (1.5 4)']
    """
    return evaluate("st_snaptogrid", array, size)


def make_valid(array: GeometryArray) -> GeometryArray:
    """Return valid geometries that cover the same points; valid geometries are unchanged.

    Example:
        >>> from pqext import geo
        >>> bowtie = geo.from_wkt(["POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"])
        >>> geo.geometry_type(geo.make_valid(bowtie)).to_pylist()
        ['ST_MultiPolygon']
    """
    return evaluate("st_makevalid", array)


def orient(array: GeometryArray, *, exterior_cw: bool = False) -> GeometryArray:
    """Return geometries whose polygons have counterclockwise shells and clockwise holes, as GeoParquet recommends.

    On the globe, the interior of a ring is the smaller of its two sides. ``exterior_cw=True`` reverses the rings of
    planar geometries, as in shapefiles, and raises ``TypeError`` for GEOGRAPHY. Other geometries are unchanged.

    Example:
        >>> from pqext import geo
        >>> clockwise = geo.from_wkt(["POLYGON ((0 0, 0 1, 1 1, 0 0))"])
        >>> geo.to_wkt(geo.orient(clockwise)).to_pylist()
        ['POLYGON ((0 0, 1 1, 0 1, 0 0))']
    """
    return evaluate("st_forcepolygoncw" if exterior_cw else "st_forcepolygonccw", array)


def union(array: GeometryArray, other: Any) -> GeometryArray:
    """Return the union of each geometry and ``other``.

    Args:
        array: WKB with planar edges in an Arrow array, in chunks or not.
        other: A geometry of shapely, WKB as bytes or a box ``(xmin, ymin, xmax, ymax)``, or an array of the same
            length.

    Returns:
        ISO WKB, with the extension type of ``array``. Null if either geometry is null. A collection whose parts
        have different dimensions loses Z and M.

    Raises:
        GeometryError: With the row, if WKB is invalid or GEOS fails, as for some invalid polygons.
        TypeError: For GEOGRAPHY, and if ``other`` is not a geometry or has another CRS.
        ValueError: If ``other`` has a different length, or is a box that crosses the antimeridian.

    Example:
        >>> from pqext import geo
        >>> rectangle = geo.from_wkt(["POLYGON ((0 0, 2 0, 2 1, 0 1, 0 0))"])
        >>> geo.area(geo.union(rectangle, (1, 0, 3, 1))).to_pylist()  # the area of each is 2, of the overlap 1
        [3.0]
    """
    return evaluate("st_union", array, other)


def intersection(array: GeometryArray, other: Any) -> GeometryArray:
    """Return the intersection of each geometry and ``other``; an empty geometry if the two are disjoint.

    Arguments, nulls and errors are as in :func:`union`.

    Example:
        >>> from pqext import geo
        >>> line = geo.from_wkt(["LINESTRING (0 0, 4 0)"])
        >>> geo.to_wkt(geo.intersection(line, (1, -1, 2, 1))).to_pylist()
        ['LINESTRING (1 0, 2 0)']
    """
    return evaluate("st_intersection", array, other)
