"""Distances on the ellipsoid, and boxes that contain all points within a distance.

The distance between points is the geodesic distance, accurate to nanometres. For lines and polygons, the two nearest
points are searched in space, along chords of at most :data:`LONGEST`, and the geodesic between them is measured. The
result is accurate to a metre, and to two parts in a hundred thousand at a thousand kilometres.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.nearest import nearest
from pqext.geo.predicates.unrolling import TOLERANCE, split_into_chains

if TYPE_CHECKING:
    from pyproj import Geod

    from pqext.geo.predicates.boxes import Region

LONGEST = 0.05
"""Maximum length of a chord in degrees, about five kilometres; such a chord is at most half a metre below the
surface.
"""

_Doubles = NDArray[np.float64]


def widen(region: Region, distance: float, geod: Geod) -> Region:
    """Return a region of the globe that contains all points within ``distance`` metres of ``region``, with a margin.

    A path on the ellipsoid is at least as long as its component along meridians, whose radius of curvature is at least
    the lesser of b²/a and a²/b. This bounds the latitudes that the path can reach. Of these latitudes, a degree of
    longitude is shortest at the one nearest to a pole.
    """
    a, b = geod.a, geod.b
    by = math.degrees(distance / min(b * b / a, a * a / b)) * (1 + 1e-9) + TOLERANCE
    south, north = region.ymin - by, region.ymax + by
    latitude = math.radians(min(90.0, max(abs(south), abs(north))))
    radius = a * math.cos(latitude) / math.sqrt(1 - (1 - b * b / (a * a)) * math.sin(latitude) ** 2)
    width = region.xmax - region.xmin + (360 if region.wraps else 0)
    turn = 360.0 if radius <= 1e-3 else math.degrees(distance / radius) * (1 + 1e-9) + TOLERANCE
    south, north = max(south, -90.0), min(north, 90.0)
    if south <= -90 or north >= 90 or width + 2 * turn >= 360:
        return replace(region, xmin=-180.0, xmax=180.0, ymin=south, ymax=north, wraps=False)
    west, east = region.xmin - turn, region.xmax + turn
    west, east = west + 360 * (west < -180), east - 360 * (east > 180)
    return replace(region, xmin=west, xmax=east, ymin=south, ymax=north, wraps=west > east)


def is_near(rows: NDArray[np.object_], query: object, distance: float, geod: Geod) -> NDArray[np.bool_]:
    """Return whether each row is at most ``distance`` metres from the query.

    Rows and query are unrolled, and no row intersects the query.
    """
    answers: NDArray[np.bool_] = metres(rows, query, geod) <= distance
    return answers


def metres(rows: NDArray[np.object_], query: object, geod: Geod) -> _Doubles:
    """Return the distance in metres of each row from the query; NaN for empty rows.

    Rows and query are unrolled, and no row intersects the query.
    """
    segments, owners = _split_segments(rows)
    theirs, _ = _split_segments(np.array([query], dtype=object))
    offsets = np.searchsorted(owners, np.arange(len(rows) + 1))
    result = np.full((len(rows), 4), np.nan)
    around = _to_geocentric(theirs, geod)
    nearest(_to_geocentric(segments, geod), offsets.astype(np.int64), around, _spheres(around), result)
    known = np.flatnonzero(~np.isnan(result[:, 0]))
    x0, y0 = _interpolate(segments, result[known, 0], result[known, 1])
    x1, y1 = _interpolate(theirs, result[known, 2], result[known, 3])
    away = np.full(len(rows), np.nan)
    away[known] = geod.inv(x0, y0, x1, y1)[2]
    return away


def _spheres(segments: _Doubles) -> _Doubles:
    """Return the centre and radius of a sphere around each group of 32 segments, so that the kernel can skip groups."""
    count = -(-len(segments) // 32)
    ends = np.concatenate([segments, segments[np.full(count * 32 - len(segments), -1)]]).reshape(count, 64, 3)
    centres = ends.mean(axis=1, keepdims=True)
    radii = np.linalg.norm(ends - centres, axis=2).max(axis=1, initial=0)
    return np.ascontiguousarray(np.column_stack([centres[:, 0], radii * (1 + 1e-12)]))


def _interpolate(segments: _Doubles, number: _Doubles, share: _Doubles) -> tuple[_Doubles, _Doubles]:
    x0, y0, x1, y1 = segments[number.astype(np.int64)].T
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def _split_segments(shapes: NDArray[np.object_]) -> tuple[_Doubles, NDArray[np.int64]]:
    """Split borders, lines and points into short segments.

    Returns the start and end of each segment as x, y, x, y, and the index of its shape. Segments with an end beyond a
    pole are omitted, because they only close polygons.
    """
    import shapely

    chains, owners = split_into_chains(shapes)
    corners, chain = shapely.get_coordinates(chains, return_index=True)
    single = np.flatnonzero(shapely.get_type_id(chains)[chain] == 0)
    starts = np.concatenate([np.flatnonzero(np.diff(chain) == 0), single])
    stops = np.concatenate([np.flatnonzero(np.diff(chain) == 0) + 1, single])
    retained = (np.abs(corners[starts, 1]) <= 90) & (np.abs(corners[stops, 1]) <= 90)
    starts, stops = starts[retained], stops[retained]
    item, other = corners[starts], corners[stops]
    length = np.hypot((other - item)[:, 0] * np.cos(np.radians(np.abs(item + other)[:, 1] / 2)), (other - item)[:, 1])
    pieces = np.maximum(np.ceil(length / LONGEST), 1).astype(np.int64)
    which = np.repeat(np.arange(len(pieces)), pieces)
    step = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    low, high = (step / pieces[which])[:, None], ((step + 1) / pieces[which])[:, None]
    way = other - item
    result = np.column_stack([item[which] + low * way[which], item[which] + high * way[which]])
    whose = owners[chain[starts]][which]
    order = np.argsort(whose, kind="stable")
    return np.ascontiguousarray(result[order]), whose[order]


def _to_geocentric(segments: _Doubles, geod: Geod) -> _Doubles:
    """Return the geocentric coordinates of both ends of each segment, in metres."""
    ends = []
    for x, y in ((segments[:, 0], segments[:, 1]), (segments[:, 2], segments[:, 3])):
        longitude, latitude = np.radians(x), np.radians(y)
        normal = geod.a / np.sqrt(1 - geod.es * np.sin(latitude) ** 2)
        ends += [
            normal * np.cos(latitude) * np.cos(longitude),
            normal * np.cos(latitude) * np.sin(longitude),
            normal * (1 - geod.es) * np.sin(latitude),
        ]
    return np.ascontiguousarray(np.column_stack(ends))
