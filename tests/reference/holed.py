"""Strategies for shapes with holes and parts, on the globe and in the plane, near places where boxes go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import shapely
from hypothesis import strategies as st

from reference.globe import path, paths, unit

PLACES = [(0, 0), (179, 10), (-179.5, -40), (30, 86), (100, -83), (10, 50), (-90, 89.9), (180, 0)]
RADII = [0.5, 4.0, 15.0, 40.0]
KINDS = ["point", "line", "polygon", "hole", "holes", "points", "lines", "polygons", "collection", "nested"]

Around = Callable[[tuple[float, float], Any, Any], Any]
"""Corners at angles and distances, in degrees, from a centre."""


def on_the_globe(centre: tuple[float, float], angles: Any, away: Any) -> Any:
    middle = unit(*centre)
    side = np.cross(middle, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    angles, away = np.radians(angles), np.radians(away)[:, None]
    way = np.cos(angles)[:, None] * side + np.sin(angles)[:, None] * np.cross(middle, side)
    found = np.cos(away) * middle + np.sin(away) * way
    return np.column_stack([np.degrees(np.arctan2(found[:, 1], found[:, 0])), np.degrees(np.arcsin(found[:, 2]))])


def in_the_plane(centre: tuple[float, float], angles: Any, away: Any) -> Any:
    """Corners that would leave the range of longitudes and latitudes are all moved back into it."""
    angles = np.radians(angles)
    found = np.array(centre) + np.column_stack([away * np.cos(angles), away * np.sin(angles)])
    for column, limit in ((0, 180.0), (1, 90.0)):
        found[:, column] -= max(0.0, found[:, column].max() - limit) + min(0.0, found[:, column].min() + limit)
    return found


def ring(random: np.random.Generator, centre: tuple[float, float], radius: float, around: Around) -> Any:
    """A star of at least 0.6 of the radius; a third of the radius around its centre is inside."""
    count = int(random.integers(4, 8))
    angles = (np.arange(count) + random.uniform(-0.15, 0.15, count)) * (360 / count)
    return around(centre, angles, radius * random.uniform(0.6, 1, count))


def made(kind: str, random: np.random.Generator, centre: tuple[float, float], radius: float, around: Around) -> Any:
    """A shape of a kind near a centre; of several parts, one perhaps far away from the others."""

    def other(distance: float) -> tuple[float, float]:
        (found,) = around(centre, random.uniform(0, 360, 1), np.array([distance]))
        return float(found[0]), float(found[1])

    def again(*kinds: str, distance: float) -> list[Any]:
        first = made(kinds[0], random, centre, radius, around)
        return [first, *(made(k, random, other(distance), radius / 2, around) for k in kinds[1:])]

    far = float(random.choice([1.8 * radius, 1.8 * radius, 100.0]))
    match kind:
        case "point":
            return shapely.Point(other(radius))
        case "line":
            count = int(random.integers(2, 5))
            angles, away = random.uniform(0, 360, count), radius * random.uniform(0, 1, count)
            return shapely.LineString(around(centre, angles, away))
        case "polygon":
            return shapely.Polygon(ring(random, centre, radius, around))
        case "hole":
            if around is on_the_globe:
                hole = ring(random, centre, radius * 0.25, around)
                return shapely.Polygon(ring(random, centre, radius, around), [hole])
            shell = shapely.Polygon(ring(random, centre, radius, around))
            return shell.difference(shapely.Point(shell.centroid).buffer(radius * 0.2, quad_segs=1))
        case "holes":
            shell = shapely.Polygon(ring(random, centre, radius, around))
            if around is not on_the_globe:
                middle = shell.centroid
                holes = [shapely.Point(middle.x + x * radius, middle.y).buffer(radius * 0.08, 1) for x in (-0.12, 0.12)]
                return shell.difference(shapely.union_all(holes))
            centres = around(centre, np.array([0, 180.0]), np.full(2, radius * 0.13))
            return shapely.Polygon(shell.exterior, [ring(random, tuple(c), radius * 0.08, around) for c in centres])
        case "points":
            return shapely.MultiPoint(again("point", "point", "point", distance=far))
        case "lines":
            return shapely.MultiLineString(again("line", "line", distance=far))
        case "polygons":
            parts = again("hole", "polygon", distance=far)
            return shapely.MultiPolygon(parts) if around is on_the_globe else shapely.union_all(parts)
        case "collection":
            return shapely.GeometryCollection(again("point", "line", distance=far))
    inner = shapely.MultiPolygon(again("hole", distance=far))
    return shapely.GeometryCollection([inner, *again("lines", distance=far)])


def shape(
    around: Around, near: list[Any] = PLACES, radii: Sequence[float] = RADII, off: float = 6.0
) -> st.SearchStrategy[Any]:
    """Shapes of any kind and size, each at most ``off`` degrees from one of the places."""

    def build(kind: str, place: tuple[float, float], radius: float, seed: int) -> Any:
        random = np.random.default_rng(seed)
        (centre,) = around(place, random.uniform(0, 360, 1), random.uniform(0, off, 1))
        return made(kind, random, tuple(centre), radius, around)

    seeds = st.integers(0, 2**31)
    return st.builds(build, st.sampled_from(KINDS), st.sampled_from(near), st.sampled_from(radii), seeds)


@st.composite
def rows(draw: st.DrawFn, around: Around, count: int) -> list[Any]:
    """Shapes, nulls and empty shapes, those of one place in a row."""
    places = draw(st.permutations(PLACES))
    found = []
    for number in range(count):
        one = shape(around, [places[number * 4 // count]])
        found.append(draw(st.one_of(one, one, one, one, one, st.sampled_from([None, shapely.Polygon()]))))
    return found


@st.composite
def window(draw: st.DrawFn, places: list[Any] = PLACES) -> tuple[float, float, float, float]:
    """A box; it may cross the antimeridian, go all around, or reach a pole."""
    x, y = draw(st.sampled_from(places))
    x, y = x + draw(st.floats(-6, 6)), y + draw(st.floats(-6, 6))
    wide, high = draw(st.sampled_from([0.2, 5.0, 50.0, 200.0, 360.0])), draw(st.sampled_from([0.2, 5.0, 40.0]))
    south, north = max(-90.0, min(y - high / 2, 89.0)), min(90.0, max(y + high / 2, -89.0))
    if wide == 360:
        return -180.0, south, 180.0, north
    west, east = x - wide / 2, x + wide / 2
    return (west + 180) % 360 - 180, south, (east + 180) % 360 - 180, north


def holes(shape: Any) -> list[Any]:
    """Corners of all holes."""
    if hasattr(shape, "geoms"):
        return [hole for part in shape.geoms for hole in holes(part)]
    return [np.array(ring.coords) for ring in getattr(shape, "interiors", ())]


def degrees(directions: Any) -> Any:
    x, y, z = directions.T
    return np.column_stack([np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))])


@st.composite
def query(draw: st.DrawFn, rows: list[Any], around: Around) -> Any:
    """A window or a shape, mostly beside an edge of one of the rows or in the middle of a hole."""
    present = [row for row in rows if row is not None and not row.is_empty]
    hollow = [row for row in present if holes(row)]
    where = draw(st.sampled_from(["anywhere", "edge", "edge", "hole", "hole"]))
    if where == "anywhere" or not present or (where == "hole" and not hollow):
        return draw(st.one_of(window(), shape(around)))
    size = draw(st.sampled_from([0.1, 1.0, 4.0]))
    globe = around is on_the_globe
    if where == "edge":
        chain = draw(st.sampled_from(paths(draw(st.sampled_from(present)))))
        points = degrees(path(chain, "spherical")) if globe else chain
        x, y = points[draw(st.integers(0, len(points) - 1))]
        return _square(x + size * draw(st.floats(-0.8, 0.8)), y + size * draw(st.floats(-0.8, 0.8)), size)
    hole = draw(st.sampled_from(holes(draw(st.sampled_from(hollow)))))
    middle = degrees(unit(*hole[1:].T).mean(axis=0, keepdims=True))[0] if globe else hole[1:].mean(axis=0)
    return draw(st.one_of(shape(around, [tuple(middle)], (size,), 0.0), st.just(_square(*middle, size))))


def _square(x: float, y: float, size: float) -> tuple[float, float, float, float]:
    """A window around a point; one that reaches a pole ends there."""
    south, north = max(-90.0, y - size / 2), min(90.0, y + size / 2)
    return (x - size / 2 + 180) % 360 - 180, min(south, 89.9), (x + size / 2 + 180) % 360 - 180, max(north, -89.9)
