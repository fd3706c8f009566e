"""Lengths, areas and distances of GEOGRAPHY, in metres on the ellipsoid.

Results are NaN for missing geometries, for coordinates that are not longitudes and latitudes, and for distances from
empty geometries. Lengths and areas follow geodesics between the vertices. Distances are measured as in
:mod:`pqext.geo.predicates.distance`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.geo import crs as crs_
from pqext.geo.coordinates import clamp_shapes
from pqext.geo.predicates import distance, globe
from pqext.geo.predicates.unrolling import explode, split_into_chains, unroll

if TYPE_CHECKING:
    from pqext.geo.types import GeospatialType

_Shapes = NDArray[np.object_]
_Doubles = NDArray[np.float64]


def lengths(shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """Return the length of lines and of polygon boundaries; 0 for points."""
    import shapely

    chains, owners = split_into_chains(shapes)
    corners, chain = shapely.get_coordinates(chains, return_index=True)
    steps = np.flatnonzero(np.diff(chain) == 0)
    x, y = corners.T
    metres = np.asarray(globe.geod_of(type).inv(x[steps], y[steps], x[steps + 1], y[steps + 1])[2])
    result = np.bincount(owners[chain[steps]], weights=metres, minlength=len(shapes)).astype(np.float64)
    result[_has_no_location(shapes)] = np.nan
    return result


def perimeters(shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """Return the length of polygon boundaries; 0 for lines and points."""
    import shapely

    parts, owners = explode(shapes)
    is_polygon = shapely.get_type_id(parts) == 3
    around = lengths(parts[is_polygon], type)
    result = np.bincount(owners[is_polygon], weights=around, minlength=len(shapes)).astype(np.float64)
    result[_has_no_location(shapes)] = np.nan
    return result


def areas(shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """Return the area of polygons, without their holes, in square metres; 0 for points and lines."""
    import shapely

    geod = globe.geod_of(type)
    parts, owners = explode(shapes)
    of_areas = shapely.get_type_id(parts) == 3
    polygons, owners = parts[of_areas], owners[of_areas]
    rings, polygon = shapely.get_rings(polygons, return_index=True)
    result = np.zeros(len(shapes))
    first = np.concatenate([[True], np.diff(polygon) != 0])[: len(rings)]
    for ring, number, is_shell in zip(rings, polygon, first, strict=True):
        x, y = shapely.get_coordinates(ring).T
        inside = abs(geod.polygon_area_perimeter(x, y)[0])
        result[owners[number]] += inside if is_shell else -inside
    result[_has_no_location(shapes)] = np.nan
    return result


def azimuths(first_points: _Shapes, second_points: _Shapes, type: GeospatialType) -> _Doubles:
    """Return the directions of geodesics at their first points, in radians from north; NaN if the points are equal."""
    import shapely

    is_outside = _has_no_location(first_points) | _has_no_location(second_points)
    (x0, y0), (x1, y1) = (shapely.get_coordinates(side[~is_outside]).T for side in (first_points, second_points))
    forward, _, away = map(np.asarray, globe.geod_of(type).inv(x0, y0, x1, y1))
    result = np.full(len(first_points), np.nan)
    result[~is_outside] = np.where(away == 0, np.nan, np.radians(forward))
    return result


def distances(first_shapes: _Shapes, second_shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """Return the least distance between the geometries of each row, 0 if they intersect.

    If one side has a single geometry, it is compared with all geometries of the other side.
    """
    import shapely

    if len(first_shapes) == 1:
        first_shapes, second_shapes = second_shapes, first_shapes
    is_constant = len(second_shapes) == 1
    nowhere = [_has_no_location(side) | shapely.is_empty(side) for side in (first_shapes, second_shapes)]
    are_points = [shapely.get_type_id(side) == 0 for side in (first_shapes, second_shapes)]
    has_distance = ~(nowhere[0] | nowhere[1])
    points = has_distance & are_points[0] & are_points[1]
    first_shapes, second_shapes = np.broadcast_arrays(first_shapes, second_shapes)
    x0, y0 = shapely.get_coordinates(first_shapes[points]).T
    x1, y1 = shapely.get_coordinates(second_shapes[points]).T
    result = np.full(len(first_shapes), np.nan)
    result[points] = globe.geod_of(type).inv(x0, y0, x1, y1)[2]
    numbers = np.flatnonzero(has_distance & ~points)
    distinct = shapely.to_wkb(second_shapes[numbers[:1]] if is_constant else second_shapes[numbers])
    _, firsts, groups = np.unique(distinct, return_index=True, return_inverse=True)
    for group, first in enumerate(firsts):
        rows = numbers if is_constant else numbers[groups == group]
        query = clamp_shapes(second_shapes[numbers[[first]]])[0]
        result[rows] = _distances_to(clamp_shapes(first_shapes[rows]), query, type)
    return result


def _distances_to(shapes: _Shapes, query: object, type: GeospatialType) -> _Doubles:
    import shapely

    edges = None if type.edges == "spherical" else globe.geod_of(type)
    unrolled_query = globe.unroll_query(query, edges)
    west, _, east, _ = shapely.bounds(unrolled_query).tolist()
    unrolled = unroll(shapes, edges, (west + east) / 2, max_vertices=globe.MOST_VERTICES)
    result = np.zeros(len(shapes))
    disjoint = np.flatnonzero(~globe.intersects(unrolled, unrolled_query))
    result[disjoint] = distance.metres(unrolled[disjoint], unrolled_query, globe.geod_of(type))
    return result


def _has_no_location(shapes: _Shapes) -> NDArray[np.bool_]:
    """Return a mask of the geometries that are missing or have coordinates out of range."""
    import shapely

    xmin, ymin, xmax, ymax = shapely.bounds(shapes).T
    (west, east), (south, north), slack = crs_.LONGITUDES, crs_.LATITUDES, crs_.SLACK
    outside = (xmin < west - slack) | (xmax > east + slack) | (ymin < south - slack) | (ymax > north + slack)
    corners, whose = shapely.get_coordinates(shapes, return_index=True)
    outside[whose[~np.isfinite(corners).all(axis=1)]] = True
    result: NDArray[np.bool_] = outside | shapely.is_missing(shapes)
    return result
