"""Random shapes near places where boxes and edges go wrong: both sides of the antimeridian, the poles, the origin."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from reference.globe import unit

PLACES = [(0, 0), (179, 10), (-179.5, -40), (30, 86), (100, -83), (10, 50)]


def around(random: np.random.Generator, place: tuple[float, float], radius: float, count: int) -> Any:
    """Longitudes and latitudes of points at most ``radius`` degrees from a place, in their order around it."""
    centre = unit(*place)
    side = np.cross(centre, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    angles = (np.arange(count) + random.uniform(0, 1, count)) * (2 * np.pi / count)  # so that rings are simple
    away = np.radians(radius * np.sqrt(random.uniform(0.2, 1, count)))[:, None]
    turned = np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * np.cross(centre, side)
    found = np.cos(away) * centre + np.sin(away) * turned
    return np.column_stack([np.degrees(np.arctan2(found[:, 1], found[:, 0])), np.degrees(np.arcsin(found[:, 2]))])


def shape(random: np.random.Generator, place: tuple[float, float], radii: tuple[float, ...] = (1, 5, 20, 40)) -> Any:
    """A point, line, polygon, multipoint, multipolygon of one or a collection near a place; polygons are simple."""
    centre = tuple(around(random, place, 6, 1)[0])
    radius = float(random.choice(radii))
    match random.integers(6):
        case 0:
            return shapely.Point(around(random, centre, radius, 1)[0])
        case 1:
            return shapely.LineString(around(random, centre, radius, random.integers(2, 5)))
        case 2:
            return shapely.Polygon(around(random, centre, radius, random.integers(3, 7)))
        case 3:
            return shapely.MultiPoint(around(random, centre, radius, 3))
        case 4:
            return shapely.MultiPolygon([shapely.Polygon(around(random, centre, radius, 4))])
    line = shapely.LineString(around(random, centre, radius, 2))
    return shapely.GeometryCollection([shapely.Point(around(random, centre, radius, 1)[0]), line])


def box(random: np.random.Generator, place: tuple[float, float]) -> tuple[float, float, float, float]:
    """A box near a place; it may cross the antimeridian."""
    (west, one), (_, other) = around(random, place, 12, 2)
    east = west + random.uniform(1, 50)
    return float(west), float(min(one, other)), float(east - 360 if east > 180 else east), float(max(one, other))
