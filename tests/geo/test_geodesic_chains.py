"""Edges are followed only near the border of the query, with the same answers as when all are followed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import shapely
from pyproj import Geod

from pqext import geo
from pqext.geo.predicates import globe, planar
from pqext.geo.predicates.geodesic_chains import Border, follow_edges
from pqext.geo.predicates.unrolling import TOLERANCE, unroll
from reference.globe import unit
from reference.holed import degrees

OPERATIONS = ("intersects", "within", "contains", "covers", "covered_by", "touches", "crosses", "overlaps", "equals")
WGS84 = Geod(ellps="WGS84")


def draw_polygons(seed: int, count: int) -> Any:
    """Star-shaped polygons about the antimeridian with edges of up to 40 degrees, and a hole in every third."""
    chance = np.random.default_rng(seed)
    polygons = []
    for number in range(count):
        centre = unit(chance.uniform(150, 210), chance.uniform(10, 75))
        east = np.cross(centre, [0, 0, 1.0])
        east /= np.linalg.norm(east)
        north = np.cross(centre, east)
        corners = int(chance.integers(3, 10))
        turn = np.linspace(0, 2 * np.pi, corners, endpoint=False) + chance.uniform(0, 0.3)
        rings = []
        for share in (1.0, 0.3)[: 2 if number % 3 == 0 else 1]:
            reach = share * np.radians(chance.uniform(2, 20)) * chance.uniform(0.7, 1, corners)[:, None]
            swing = np.cos(turn)[:, None] * east + np.sin(turn)[:, None] * north
            rings.append(degrees(np.cos(reach) * centre + np.sin(reach) * swing))
        polygons.append(shapely.Polygon(rings[0], [ring for ring in rings[1:] if len(rings[0]) > 5]))
    return np.array(polygons, dtype=object)


@pytest.mark.spec("geo.predicates.geography")
@pytest.mark.parametrize("geod", [None, WGS84], ids=["sphere", "ellipsoid"])
@pytest.mark.parametrize("kind", ["polygon", "line", "points"])
def test_answers_are_equal_to_those_of_edges_followed_everywhere(geod: Geod | None, kind: str) -> None:
    rows, matches = draw_polygons(1, 30), 0
    rows = np.concatenate([rows, shapely.get_exterior_ring(rows[::4])])
    for query in draw_polygons(2, 3):
        query = {"polygon": query, "line": query.exterior, "points": shapely.MultiPoint(query.exterior.coords)}[kind]
        placed = globe.unroll_query(query, geod)
        middle = sum(placed.bounds[::2]) / 2
        everywhere = unroll(rows, geod, middle)
        for operation in OPERATIONS:
            some = globe._unroll_rows(operation, rows, placed, geod)
            answers = globe._evaluate_unrolled(operation, some, placed)
            matches += int(answers.sum())
            assert answers.tolist() == globe._evaluate_unrolled(operation, everywhere, placed).tolist(), operation
    assert matches > 20


@pytest.mark.parametrize("geod", [None, WGS84], ids=["sphere", "ellipsoid"])
def test_vertices_are_inserted_near_the_border_only(geod: Geod | None) -> None:
    line = np.array([shapely.LineString([(-60, 50), (-35, 52), (-10, 50), (10, 50)])], dtype=object)
    everywhere = follow_edges(line, geod, TOLERANCE)
    border = Border(globe.unroll_query(shapely.box(-1, 40, 1, 60), geod))
    some = follow_edges(line, geod, TOLERANCE, border=border)
    crossing = (np.abs(np.abs(everywhere.x) - 1) < 0.05).sum()
    assert len(everywhere.x) > 500
    assert len(some.x) < 100
    assert (np.abs(np.abs(some.x) - 1) < 0.05).sum() == crossing >= 2
    assert set(zip(some.x, some.y, strict=True)) <= set(zip(everywhere.x, everywhere.y, strict=True))
    assert some.x[:3].tolist() == [-60, -35, -10]  # two edges that the border is far from


@pytest.mark.parametrize("operation", [*OPERATIONS, "dwithin"])
def test_only_intersects_accepts_a_ring_that_crosses_itself_without_its_vertices(operation: Any) -> None:
    # The great circle from 56 W to 30 W at 50 N is at latitude atan(tan(50) / cos(13)) = 50.7 in the middle.
    ring = [(-56, 50), (-30, 50), (-8, 50), (14, 50), (14, 0), (-8, 0), (-30, 45), (-43, 50.5), (-56, 45)]
    rows = np.array([shapely.Polygon(ring)], dtype=object)
    assert not shapely.is_valid(rows[0])
    placed = globe._unroll_rows(operation, rows, globe.unroll_query(shapely.box(3, 10, 4, 11), None), None)
    assert shapely.is_valid(placed[0]) == (operation != "intersects")
    assert (shapely.get_num_coordinates(placed[0]) == len(ring) + 1) == (operation == "intersects")


@pytest.mark.parametrize("turn", [-360, 0, 360])
def test_border_is_repeated_every_full_turn(turn: int) -> None:
    border = Border(planar.rectangle(170, 10, 190, 20))
    x0, x1 = np.array([-191.0, 165, 175, 200]) + turn, np.array([-180.0, 171, 185, 210]) + turn
    assert border.is_near(x0, np.full(4, 15.0), x1, np.full(4, 15.0), None).tolist() == [True, True, False, False]
    wide = Border(planar.rectangle(-179, 10, 179, 20))
    x0, x1 = np.array([170.0, -190, 0]) + turn, np.array([190.0, -185, 5]) + turn
    assert wide.is_near(x0, np.full(3, 15.0), x1, np.full(3, 15.0), None).tolist() == [True, False, False]


@pytest.mark.spec("geo.predicates.geography")
def test_edges_that_rise_to_the_border_are_near_it() -> None:
    border = Border(planar.rectangle(-1, 60.4, 1, 61))
    ends = np.array([-14.0]), np.array([60.0]), np.array([14.0]), np.array([60.0])
    top = follow_edges(np.array([shapely.LineString([(-14, 60), (14, 60)])], dtype=object), None, TOLERANCE).y.max()
    assert top > 60.4
    assert border.is_near(*ends, None).tolist() == [True]
    assert Border(planar.rectangle(-1, 62, 1, 63)).is_near(*ends, None).tolist() == [False]


@pytest.mark.spec("geo.predicates.geography")
@pytest.mark.filterwarnings("ignore:GEOGRAPHY. a query polygon has edges of 180 degrees")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_points_are_evaluated_like_shapes(edges: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(5)
    x = np.append(chance.uniform(-180, 180, 3000), [180, -180, 0])
    y = np.append(chance.uniform(-90, 90, 3000), [5, 5, 90])
    points = shapely.points(x, y)
    queries = [
        *draw_polygons(7, 6), shapely.Point(180, 5), shapely.LineString([(175, 5), (-175, 5)]),
        shapely.Polygon([(0, 80), (90, 90), (90, 80)]), shapely.Polygon([(0, 80), (120, 80), (-120, 80)]),
        shapely.MultiPolygon([shapely.box(-179, -5, -100, 20), shapely.box(100, -5, 179, 20)]),
    ]
    by_coordinates = [
        getattr(geo, operation)(geo.from_shapely(points), query, edges=edges).to_pylist()
        for operation in ("intersects", "within", "covered_by") for query in queries
    ]
    monkeypatch.setattr(globe, "_evaluate_points", lambda *_: None)
    for answers, (operation, query) in zip(
        by_coordinates, itertools.product(("intersects", "within", "covered_by"), queries), strict=True
    ):
        expected = getattr(geo, operation)(geo.from_shapely(points), query, edges=edges).to_pylist()
        assert answers == expected, (operation, query)
    assert sum(map(sum, by_coordinates)) > 1000
