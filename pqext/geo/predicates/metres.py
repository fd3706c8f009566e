"""Lengths, areas and distances of GEOGRAPHY, in metres on the ellipsoid.

Each answer is NaN for what has none: a missing geometry, coordinates that are no longitudes and latitudes, and
distances from empty geometries. Lengths and areas are those of geodesics between the vertices. Distances are as
:mod:`pqext.geo.predicates.distance` measures them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.geo import crs as crs_
from pqext.geo.coordinate_range import clamp_shapes
from pqext.geo.predicates import distance, globe
from pqext.geo.predicates.unrolling import chains_of, explode, unroll

if TYPE_CHECKING:
    from pqext.geo.types import GeospatialType

_Shapes = NDArray[np.object_]
_Doubles = NDArray[np.float64]


def lengths(shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """The length of lines and of the borders of areas, 0 of points."""
    import shapely

    chains, owners = chains_of(shapes)
    corners, chain = shapely.get_coordinates(chains, return_index=True)
    steps = np.flatnonzero(np.diff(chain) == 0)
    x, y = corners.T
    metres = np.asarray(globe.geod_of(type).inv(x[steps], y[steps], x[steps + 1], y[steps + 1])[2])
    found = np.bincount(owners[chain[steps]], weights=metres, minlength=len(shapes)).astype(np.float64)
    found[_nowhere(shapes)] = np.nan
    return found


def areas(shapes: _Shapes, type: GeospatialType) -> _Doubles:
    """The area of polygons in square metres, holes left out, 0 of points and lines."""
    import shapely

    geod = globe.geod_of(type)
    parts, owners = explode(shapes)
    of_areas = shapely.get_type_id(parts) == 3
    polygons, owners = parts[of_areas], owners[of_areas]
    rings, polygon = shapely.get_rings(polygons, return_index=True)
    found = np.zeros(len(shapes))
    first = np.concatenate([[True], np.diff(polygon) != 0])[: len(rings)]
    for ring, number, is_shell in zip(rings, polygon, first, strict=True):
        x, y = shapely.get_coordinates(ring).T
        inside = abs(geod.polygon_area_perimeter(x, y)[0])
        found[owners[number]] += inside if is_shell else -inside
    found[_nowhere(shapes)] = np.nan
    return found


def distances(one: _Shapes, other: _Shapes, type: GeospatialType) -> _Doubles:
    """The least distance between the geometries of each row of both, 0 where they meet."""
    import shapely

    left = ~(_nowhere(one) | _nowhere(other) | shapely.is_empty(one) | shapely.is_empty(other))
    found = np.full(len(one), np.nan)
    points = left & (shapely.get_type_id(one) == 0) & (shapely.get_type_id(other) == 0)
    (x0, y0), (x1, y1) = (shapely.get_coordinates(shapes[points]).T for shapes in (one, other))
    found[points] = globe.geod_of(type).inv(x0, y0, x1, y1)[2]
    numbers = np.flatnonzero(left & ~points)
    _, firsts, which = np.unique(shapely.to_wkb(other[numbers]), return_index=True, return_inverse=True)
    for place, first in enumerate(firsts):
        rows = numbers[which == place]
        found[rows] = _distances_to(clamp_shapes(one[rows]), clamp_shapes(other[numbers[[first]]])[0], type)
    return found


def _distances_to(shapes: _Shapes, query: object, type: GeospatialType) -> _Doubles:
    import shapely

    edges = None if type.edges == "spherical" else globe.geod_of(type)
    asked = globe.unrolled(query, edges)
    west, _, east, _ = shapely.bounds(asked).tolist()
    placed = unroll(shapes, edges, (west + east) / 2, most=globe.MOST_VERTICES)
    found = np.zeros(len(shapes))
    apart = np.flatnonzero(~globe.meet(placed, asked))
    found[apart] = distance.metres(placed[apart], asked, globe.geod_of(type))
    return found


def _nowhere(shapes: _Shapes) -> NDArray[np.bool_]:
    """Which are missing, or have coordinates that are no longitudes and latitudes."""
    import shapely

    xmin, ymin, xmax, ymax = shapely.bounds(shapes).T
    (west, east), (south, north), slack = crs_.LONGITUDES, crs_.LATITUDES, crs_.SLACK
    outside = (xmin < west - slack) | (xmax > east + slack) | (ymin < south - slack) | (ymax > north + slack)
    corners, whose = shapely.get_coordinates(shapes, return_index=True)
    outside[whose[~np.isfinite(corners).all(axis=1)]] = True
    found: NDArray[np.bool_] = outside | shapely.is_missing(shapes)
    return found
