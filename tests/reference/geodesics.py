"""Edges on the globe as chains of many points, and what they and their rings reach, found by looking at each."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyproj import Geod

WGS84 = Geod(ellps="WGS84")
Doubles = NDArray[np.float64]
Point = tuple[float, float]


def unit(point: Point) -> Doubles:
    lon, lat = math.radians(point[0]), math.radians(point[1])
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


def great_circle(start: Point, stop: Point, count: int = 1000) -> tuple[Doubles, Doubles]:
    """Longitudes and latitudes of points evenly spaced on the shorter arc between two that are not antipodal."""
    one, other = unit(start), unit(stop)
    angle = 2 * math.atan2(float(np.linalg.norm(one - other)), float(np.linalg.norm(one + other)))
    share = np.linspace(0, 1, count)[:, None]
    if angle < 1e-12:
        points = one + share * (other - one)
    else:
        points = (np.sin((1 - share) * angle) * one + np.sin(share * angle) * other) / math.sin(angle)
    return (
        np.degrees(np.arctan2(points[:, 1], points[:, 0])),
        np.degrees(np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))),
    )


def geodesic(start: Point, stop: Point, count: int = 1000, geod: Geod = WGS84) -> tuple[Doubles, Doubles]:
    """The same on an ellipsoid, along its shortest geodesic."""
    azimuth, _, length = geod.inv(*start, *stop)
    return along(start, azimuth, length, count, geod)


def along(
    start: Point, azimuth: float, length: float, count: int = 1000, geod: Geod = WGS84
) -> tuple[Doubles, Doubles]:
    """Points on the geodesic that leaves a point in a direction, in degrees, for so many metres."""
    many = np.full(count, 1.0)
    lon, lat, _ = geod.fwd(start[0] * many, start[1] * many, azimuth * many, length * np.linspace(0, 1, count))
    return np.asarray(lon), np.asarray(lat)


def andoyer(start: Point, stop: Point, geod: Geod = WGS84) -> tuple[float, float]:
    """Azimuth in degrees and length in metres, by the formula of first order in the flattening."""
    f = geod.f
    lat1, lat2, turn = math.radians(start[1]), math.radians(stop[1]), math.radians(stop[0] - start[0])
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(turn / 2) ** 2
    d = 2 * math.atan2(math.sqrt(half), math.sqrt(1 - half))
    one = math.atan2(
        math.sin(turn) * math.cos(lat2),
        math.cos(lat1) * math.sin(lat2) - math.sin(lat1) * math.cos(lat2) * math.cos(turn),
    )
    other = math.atan2(
        math.sin(turn) * math.cos(lat1),
        math.cos(lat2) * math.sin(lat1) - math.sin(lat2) * math.cos(lat1) * math.cos(turn),
    )
    u = f / 2 * math.cos(lat1) ** 2 * math.sin(2 * one)
    v = f / 2 * math.cos(lat2) ** 2 * math.sin(2 * other)
    less, more = (math.sin(lat1) - math.sin(lat2)) ** 2, (math.sin(lat1) + math.sin(lat2)) ** 2
    h, g = (d + 3 * math.sin(d)) / (1 - math.cos(d)), (d - 3 * math.sin(d)) / (1 + math.cos(d))
    length = geod.a * (d - f / 4 * (h * less + g * more))
    return math.degrees(one - (v * d / math.sin(d) - u)), length


def thomas(start: Point, stop: Point, geod: Geod = WGS84) -> tuple[float, float]:
    """Azimuth in degrees and length in metres, by the formula of second order; the way is eastward."""
    f, turn = geod.f, math.radians(stop[0] - start[0])
    lat1 = math.atan((1 - f) * math.tan(math.radians(start[1])))
    lat2 = math.atan((1 - f) * math.tan(math.radians(stop[1])))
    mean, half = (lat1 + lat2) / 2, (lat2 - lat1) / 2
    height = math.cos(mean) ** 2 - math.sin(half) ** 2
    chord = math.sin(half) ** 2 + height * math.sin(turn / 2) ** 2
    d = 2 * math.asin(math.sqrt(chord))
    u, v = 2 * (math.sin(mean) * math.cos(half)) ** 2 / (1 - chord), 2 * (math.sin(half) * math.cos(mean)) ** 2 / chord
    x, y, t = u + v, u - v, d / math.sin(d)
    dd, e = 4 * t * t, 2 * math.cos(d)
    a, b = dd * e, 2 * dd
    c = t - (a - e) / 2
    first = f / 4 * (t * x - y)
    second = f * f / 64 * (x * (a + c * x) - y * (b + e * y) + dd * x * y)
    big_f, big_m = 2 * y - e * (4 - x), 32 * t - (20 * t - a) * x - (b + 4) * y
    g = f / 2 * t + f * f / 64 * big_m
    tangent = math.tan((turn - big_f * g * math.tan(turn) / 4) / 2)
    azimuth = math.atan2(math.cos(half), math.sin(mean) * tangent) + math.atan2(
        -math.sin(half), math.cos(mean) * tangent
    )
    return math.degrees(azimuth), geod.a * math.sin(d) * (t - first + second)


def holds(box: dict[str, Any], lon: Doubles, lat: Doubles, slack: float = 0.0) -> bool:
    """Does a box, as ``geo.bounds`` gives it, hold all points? ``slack`` in degrees allows for their rounding."""
    west, east = box["xmin"], box["xmax"]
    # Near a pole the longitude of a point means little.
    wide = slack / np.maximum(np.cos(np.radians(np.minimum(np.abs(lat), 90))), 1e-15)
    if west <= east:
        inside = (lon >= west - wide) & (lon <= east + wide)
        inside |= (lon + 360 <= east + wide) | (lon - 360 >= west - wide)
    else:
        inside = (lon >= west - wide) | (lon <= east + wide)
    return bool((inside & (lat >= box["ymin"] - slack) & (lat <= box["ymax"] + slack)).all())


def pole_shares(ring: list[Point], path: Any = great_circle) -> tuple[float, float]:
    """What share of the sphere lies on the north pole's side of a ring, and of the south pole's; (s, s) for one side.

    Found by counting how often meridians from each pole to sample points cross the ring.
    """
    edges = [path(start, stop, 60) for start, stop in pairwise([*ring, ring[0]])]
    lon, lat = np.concatenate([x for x, _ in edges]), np.concatenate([y for _, y in edges])
    step = np.mod(np.diff(lon) + 180, 360) - 180
    lon1, lat1, lat2 = lon[:-1], lat[:-1], lat[1:]
    golden = np.arange(600) * (math.sqrt(5) - 1) / 2 % 1
    x = 360 * golden - 180
    y = np.degrees(np.arcsin(np.linspace(-1, 1, 600) * 0.99999))
    offset = np.mod(x[:, None] - lon1[None, :] + 180, 360) - 180
    with np.errstate(divide="ignore", invalid="ignore"):
        share = offset / step[None, :]
    crossed = (share >= 0) & (share < 1) & (np.abs(offset) < 90)
    height = lat1[None, :] + np.where(crossed, share, 0) * (lat2 - lat1)[None, :]
    above = (crossed & (height > y[:, None])).sum(axis=1) % 2
    below = (crossed & (height < y[:, None])).sum(axis=1) % 2
    return float((above == 0).mean()), float((below == 0).mean())
