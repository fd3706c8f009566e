"""Google's S2, through spherely, as an oracle of shapes on the sphere, and shapes drawn for it.

An answer is certain where it stays what it is when the query is turned by eleven metres any way: whether a border
belongs to a shape is a convention, which differs between S2 and the simple features standard. As in S2 the smaller side
of a ring is its inside, of two halves the left one.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import strategies as st

from reference.globe import unit
from reference.holed import degrees
from reference.regions import AXES, turned

spherely = pytest.importorskip("spherely", reason="spherely is not installed (extra 'test')")

RADIUS = 6_371_010.0
"""Metres, of the sphere that distances are measured on."""

RELATIONS = ("intersects", "disjoint", "within", "contains", "covers", "covered_by", "touches", "equals")


def geography(shape: Any) -> Any:
    """The shape in S2. Raises ValueError where that refuses it."""
    try:
        return spherely.from_wkb(shapely.to_wkb(without_spikes(shape)))
    except RuntimeError as error:
        if len(getattr(shape, "geoms", ())) < 2:
            raise ValueError(str(error)) from error
    return reduce(spherely.union, map(geography, shape.geoms))  # parts that touch, as at the antimeridian


def without_spikes(shape: Any) -> Any:
    """Polygons without edges to and fro, such as those in maps from the antimeridian to a pole."""
    if shape.geom_type == "MultiPolygon":
        return shapely.MultiPolygon([without_spikes(part) for part in shape.geoms])
    if shape.geom_type != "Polygon" or shape.is_empty:
        return shape
    rings = (_without_spikes(np.array(ring.coords)[:-1]) for ring in (shape.exterior, *shape.interiors))
    shell, *holes = (ring for ring in rings if len(ring) > 2)
    return shapely.Polygon(shell, holes)


def _without_spikes(ring: Any) -> Any:
    while len(ring) > 2:
        places = unit(*ring.T)
        again = np.linalg.norm(places - np.roll(places, 1, axis=0), axis=1) < 1e-12
        spike = np.linalg.norm(np.roll(places, -1, axis=0) - np.roll(places, 1, axis=0), axis=1) < 1e-12
        bad = np.flatnonzero(again) if again.any() else np.flatnonzero(spike)
        if not len(bad):
            break
        ring = np.delete(ring, bad[0], axis=0)
    return ring


def is_valid(shape: Any) -> bool:
    """Does S2 take the shape?"""
    try:
        geography(shape)
    except ValueError:
        return False
    return True


def moved(shape: Any, by: Any) -> Any:
    """The shape turned about an axis, by radians that are its length."""
    return shapely.transform(shape, lambda corners: degrees(turned(unit(*corners.T), np.asarray(by))))


class Oracle:
    """What S2 says of rows, none of them missing, and one query."""

    def __init__(self, rows: list[Any], query: Any) -> None:
        self.rows = np.array([geography(row) for row in rows], dtype=object)
        self.queries = [geography(query), *(geography(moved(query, axis)) for axis in AXES)]

    def related(self, operation: str) -> tuple[list[bool], list[bool]]:
        """The answer for each row, and whether it is certain."""
        ask = getattr(spherely, operation)
        answers = np.array([np.asarray(ask(self.rows, query), dtype=bool) for query in self.queries])
        certain = (answers == answers[0]).all(axis=0)
        if operation == "touches":  # which what is moved does no more
            certain &= np.array(self.related("intersects")[1], bool)
        return answers[0].tolist(), certain.tolist()

    def distances(self) -> list[float]:
        """Metres from each row to the query."""
        found: list[float] = np.asarray(spherely.distance(self.rows, self.queries[0], radius=RADIUS)).tolist()
        return found


def plane(centre: Any) -> tuple[Any, Any]:
    """Two directions across one."""
    side = np.cross(centre, [0.3, 0.5, 0.8])
    side /= np.linalg.norm(side)
    return side, np.cross(centre, side)


def on_the_globe(corners: Any, centre: tuple[float, float]) -> Any:
    """Longitudes and latitudes from the gnomonic plane around a centre, where great circles are straight lines."""
    middle = unit(*centre)
    one, other = plane(middle)
    corners = np.asarray(corners)
    found = middle + corners[:, :1] * one + corners[:, 1:] * other
    return degrees(found / np.linalg.norm(found, axis=1, keepdims=True))


def untangled(corners: Any) -> Any:
    """Corners in an order in which the ring through them does not cross itself: each crossing is undone in turn."""
    count, again = len(corners), True
    while again:
        again = False
        for i in range(count - 1):
            for j in range(i + 2, count - (i == 0)):
                a, b, c, d = corners[i], corners[i + 1], corners[j], corners[(j + 1) % count]
                if math.dist(a, c) + math.dist(b, d) < math.dist(a, b) + math.dist(c, d) - 1e-12:
                    corners[i + 1 : j + 1] = corners[i + 1 : j + 1][::-1].copy()
                    again = True
    return corners


def rolled(random: np.random.Generator, ring: Any) -> Any:
    """An open ring from another vertex, or the other way round."""
    ring = np.roll(ring, int(random.integers(len(ring))), axis=0)
    return ring if random.integers(2) else ring[::-1]


def bent(random: np.random.Generator, radius: float, count: int) -> Any:
    """A polygon in the gnomonic plane, seldom convex and seldom a star."""
    away, angles = np.tan(np.radians(radius)) * np.sqrt(random.random(count)), random.uniform(0, 2 * np.pi, count)
    return shapely.Polygon(untangled(np.column_stack([away * np.cos(angles), away * np.sin(angles)])))


def belt(random: np.random.Generator, wide: float) -> Any:
    """A ring that winds around the globe, whose sides may be nearly equal, as a polygon; anyhow turned."""
    count = int(random.integers(3, 9))
    x = (np.arange(count) + random.uniform(-0.3, 0.3, count)) * 360 / count
    y = random.uniform(-wide, wide, count) + random.choice([0, 0, 20, -50]) * (wide < 30)
    corners = degrees(turned(unit(x, y), random.normal(size=3) * random.choice([0, 0, 1])))
    return shapely.Polygon(rolled(random, corners))


def polygon(random: np.random.Generator, centre: tuple[float, float], radius: float, holes: int) -> Any:
    """A polygon around a centre, perhaps with holes."""
    found = bent(random, radius, int(random.integers(3, 11)))
    rings = [rolled(random, np.array(found.exterior.coords)[:-1])]
    for _ in range(holes):
        place = found.representative_point()
        room = found.boundary.distance(place)
        angles = np.arange(3) * 2.1 + random.uniform(0, 6)
        hole = np.array([place.x, place.y]) + 0.7 * room * np.column_stack([np.cos(angles), np.sin(angles)])
        rings.append(rolled(random, hole))
        found = found.difference(shapely.Polygon(hole).buffer(room * 0.1))
        if found.geom_type != "Polygon":
            break
    shell, *inner = (on_the_globe(ring, centre) for ring in rings)
    return shapely.Polygon(shell, inner)


KINDS = ["point", "points", "line", "lines", "polygon", "polygon", "hole", "holes", "polygons", "belt"]
PLACES = [(0, 0), (179, 10), (-179.5, -40), (30, 86), (100, -83), (10, 50), (-90, 89.9), (180, 0), (0, 90), (20, -90)]


def made(kind: str, random: np.random.Generator, centre: tuple[float, float], radius: float) -> Any:
    """A shape of a kind near a centre."""

    def corners(count: int) -> Any:
        return on_the_globe(np.tan(np.radians(radius)) * random.uniform(-0.7, 0.7, (count, 2)), centre)

    match kind:
        case "point":
            return shapely.Point(corners(1)[0])
        case "points":
            return shapely.MultiPoint(corners(3))
        case "line":
            return shapely.LineString(corners(int(random.integers(2, 6))))
        case "lines":
            return shapely.MultiLineString([corners(2), corners(3)])
        case "polygons":
            away = degrees(turned(unit(*centre)[None], plane(unit(*centre))[0] * np.radians(2.5 * radius)))[0]
            return shapely.MultiPolygon([polygon(random, place, radius, 0) for place in (centre, tuple(away))])
        case "belt":
            return belt(random, radius)
    return polygon(random, centre, radius, {"polygon": 0, "hole": 1, "holes": 2}[kind])


@st.composite
def shapes(draw: st.DrawFn, places: Any = None) -> Any:
    """Shapes that S2 takes, of every kind and size, near some places; the same number gives the same shape."""
    kind, radius = draw(st.sampled_from(KINDS)), draw(st.sampled_from([0.02, 1.0, 12.0, 40.0, 80.0]))
    x, y = draw(st.sampled_from(PLACES if places is None else places))
    random = np.random.default_rng(draw(st.integers(0, 2**31)))
    for _ in range(20):
        centre = degrees(turned(unit(x, y)[None], random.normal(size=3) * np.radians(min(radius, 3)) / 2))[0]
        found = made(kind, random, tuple(centre.tolist()), radius)
        if is_valid(found):
            return found
    return shapely.Point(x, y)
