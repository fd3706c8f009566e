"""Predicates and distances on the sphere held against S2: drawn shapes, rings around poles, halves of the globe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pqext import geo
from reference import s2
from reference.effort import share

pytestmark = pytest.mark.filterwarnings("ignore:.*a query polygon has")  # drawn on the globe, not on a map

SPHERE = pyproj.CRS.from_dict({"proj": "longlat", "R": s2.RADIUS})
SEEDS = st.integers(0, 2**31)


def check(rows: list[Any], query: Any, relations: Any = s2.RELATIONS) -> None:
    """Every answer that S2 is certain of is ours."""
    try:
        oracle = s2.Oracle(rows, query)
    except ValueError:  # a shape that touches itself once it is turned
        assume(False)
    array = geo.from_shapely(rows)
    for relation in relations:
        expected, certain = oracle.related(relation)
        found = getattr(geo, relation)(array, query, edges="spherical").to_pylist()
        for number, sure in enumerate(certain):
            assert not sure or found[number] == expected[number], (relation, rows[number].wkt, query.wkt)


def check_distances(rows: list[Any], query: Any, metres: float) -> None:
    """Rows nearer than ``metres`` are found and others are not, but for those within the error that is stated."""
    found = geo.dwithin(geo.from_shapely(rows), query, metres, edges="spherical", crs=SPHERE).to_pylist()
    for row, distance, near in zip(rows, s2.Oracle(rows, query).distances(), found, strict=True):
        if abs(distance - metres) > 3 + 3e-5 * metres:
            assert near == (distance <= metres), (distance, metres, row.wkt, query.wkt)


def nearby_shapes(draw: Any, count: int) -> list[Any]:
    place = draw(st.sampled_from(s2.PLACES))
    return [draw(s2.shapes([place])) for _ in range(count)]


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside", "geo.pruning.sound")
@settings(max_examples=share(0.26))
@given(st.data())
def test_relations_match_s2(data: st.DataObject) -> None:
    *rows, query = nearby_shapes(data.draw, 5)
    check(rows, query, data.draw(st.permutations(s2.RELATIONS))[:3])


@pytest.mark.spec("geo.predicates.globe")
@pytest.mark.parametrize("mirror", [1, -1])
def test_globe_spanning_shapes_intersect_after_a_turn_in_either_direction(mirror: int) -> None:
    def line(*corners: tuple[float, float]) -> Any:
        return shapely.LineString([(x * mirror, y) for x, y in corners])

    row = line((-175, 0), (-90, 20), (0, 40), (90, 40), (175, 40))
    query = line((-5, -40), (90, -40), (180, -40), (-140, -40), (-100, 0), (-80, 60), (-15, 60))
    aside = line((-5, -40), (90, -40), (180, -40), (-140, -40), (-100, -20), (-15, -60))
    check([row, aside], query, ["intersects", "disjoint"])
    check([row, query], aside, ["intersects", "disjoint"])


@pytest.mark.spec("geo.predicates.geography")
@pytest.mark.parametrize("ends", [(-60, 45, 60, 45), (0, 0, 90, 60), (-30, -20, 80, -70)])
def test_edges_follow_the_ellipsoid_or_sphere_of_their_algorithm(ends: tuple[float, ...]) -> None:
    line = geo.from_shapely([shapely.LineString([ends[:2], ends[2:]])])
    for edges, ellipsoid in (("karney", pyproj.Geod(ellps="WGS84")), ("spherical", pyproj.Geod(a=1, b=1))):
        azimuth, _, length = ellipsoid.inv(*ends)
        x, y, _ = ellipsoid.fwd(*ends[:2], azimuth, length / 2)
        around = (x - 0.005, y - 0.005, x + 0.005, y + 0.005)
        for other in ("karney", "spherical"):
            assert geo.intersects(line, around, edges=other).to_pylist() == [other == edges]


@pytest.mark.spec("geo.predicates.dwithin", "geo.pruning.dwithin")
@settings(max_examples=share(0.26))
@given(st.data())
def test_distances_match_s2(data: st.DataObject) -> None:
    *rows, query = nearby_shapes(data.draw, 4)
    (distance,) = s2.Oracle(rows[:1], query).distances()
    metres = max(0.0, distance * data.draw(st.sampled_from([0.999, 1, 1.001])) + data.draw(st.sampled_from([-20, 20])))
    check_distances(rows, query, metres)


KILOMETRE = 1 / (np.radians(1) * s2.RADIUS / 1000)
"""Degrees of latitude."""


@pytest.mark.spec("geo.predicates.dwithin")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_nearest_position_is_inside_a_long_edge(edges: Any) -> None:
    line = shapely.LineString([(0, 50), (0, 50.04)])
    square = shapely.Polygon([(0, 50), (0, 50.04), (0.03, 50.04), (0.03, 50)])
    point = shapely.Point(-0.1 * KILOMETRE / np.cos(np.radians(50.02)), 50.02)
    points = shapely.MultiPoint([point, (3, 50)])
    for one in (line, square, shapely.MultiLineString([line, [(9, 9), (8, 8)]]), shapely.MultiPolygon([square])):
        for other in (point, points, shapely.LineString([point, point])):
            for row, query in ((one, other), (other, one)):
                row_of = geo.from_shapely([row])
                assert [geo.dwithin(row_of, query, m, edges)[0].as_py() for m in (95, 105, 1000)] == [False, True, True]


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside", "geo.edges.poles")
@settings(max_examples=share(0.07))
@given(SEEDS, st.sampled_from([-90, 90]), st.sampled_from([3.0, 25.0, 70.0]), st.integers(5, 12))
def test_polar_ring_is_equal_from_every_start_vertex(seed: int, pole: int, radius: float, count: int) -> None:
    random = np.random.default_rng(seed)
    flat = s2.bent(random, radius, count)
    within = flat.representative_point()
    centre = np.array([within.x, within.y]) * random.choice([1, 1, 0.9, 0])  # what is then moved to the pole
    ring = s2.on_the_globe(np.array(flat.exterior.coords)[:-1] - centre, (0, pole))
    away = np.tan(np.radians(radius)) * random.uniform(-1, 1, (12, 2))
    points = [shapely.Point(corner) for corner in (*s2.on_the_globe(away, (0, pole)), (0, pole), (7, pole * 0.99))]
    lines = [shapely.LineString([one, other]) for one, other in zip(points[:4], points[4:8], strict=True)]
    rows = [shapely.Polygon(np.roll(ring, by, axis=0)[::way]) for by in range(count) for way in (1, -1)]
    assume(s2.is_valid(rows[0]))
    for query in (points[-2], lines[0]):
        check(rows, query, ["contains"])
    for row in rows[::3]:
        check(points + lines, row, ["intersects"])


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside")
def test_seam_of_a_polar_ring_may_cross_the_ring() -> None:
    ring = [(0, -60), (5, -80), (-10, -70), (-120, -70), (120, -70)]
    rows = [shapely.Polygon(np.roll(ring, by, axis=0)) for by in range(5)]
    rows += [shapely.Polygon([(x, -y) for x, y in row.exterior.coords]) for row in rows]
    for edges in ("spherical", "karney"):
        for sign in (1, -1):
            there = geo.contains(geo.from_shapely(rows), shapely.Point(0, -89 * sign), edges).to_pylist()
            assert there == [sign > 0] * 5 + [sign < 0] * 5
    check(rows, shapely.Point(0, -89))


@pytest.mark.spec("geo.predicates.geography", "geo.predicates.globe")
@settings(max_examples=share(0.07))
@given(st.data())
def test_shape_equals_itself_from_any_start_vertex(data: st.DataObject) -> None:
    shape = data.draw(s2.shapes().filter(lambda shape: shape.geom_type == "Polygon"))
    random = np.random.default_rng(data.draw(SEEDS))
    shell, *holes = (s2.rolled(random, np.array(ring.coords)[:-1]) for ring in (shape.exterior, *shape.interiors))
    again = shapely.Polygon(shell, holes)
    assert s2.spherely.equals(s2.geography(shape), s2.geography(again))
    for relation in ("equals", "covers", "covered_by", "contains", "within", "intersects"):
        assert getattr(geo, relation)(geo.from_shapely([again]), shape, "spherical").to_pylist() == [True], relation
    assert geo.touches(geo.from_shapely([again]), shape, "spherical").to_pylist() == [False]


HALVES = {
    "north": [(0, 0), (120, 0), (-120, 0)],
    "meridians": [(30, 0), (30, 90), (-150, 0), (30, -90)],
    "meridian": [(0, -50), (0, 60), (180, 40), (180, -30)],
    "tilted": [(0, 30), (90, 0), (180, -30), (-90, 0)],
    "corners": [(0, 0), (90, 0), (90, 90)],
}


@pytest.mark.spec("geo.edges.inside")
@pytest.mark.parametrize("name", HALVES)
def test_left_half_is_inside_for_a_ring_that_halves_the_globe(name: str) -> None:
    around = np.array(HALVES[name], dtype=float)
    rows = [shapely.Polygon(np.roll(around, by, axis=0)[::way]) for by in range(len(around)) for way in (1, -1)]
    rows = [row for row in rows if s2.is_valid(row)]
    assert len(rows) >= 6
    points = [shapely.Point(x, y) for x in range(-175, 180, 50) for y in (-70, -20, 20, 70)]
    for row in rows:
        check(points, row, ["intersects", "within"])
    check(rows, points[5], ["contains"])


CIRCLES = {y: [(float(x), y) for x in range(-180, 180, 10)] for y in (0.0, 0.001, -0.001, 89.999, -89.999)}
COASTS = {
    "island": [(0, 50), (10, 50), (10, 60), (0, 60)],
    "southern island": [(0, -50), (10, -50), (10, -60), (0, -60)],
    "antarctica": [(x, -65 - x % 7) for x in range(-180, 180, 20)],
    "arctic": [(x, 65 + x % 7) for x in range(-180, 180, 20)],
}


@pytest.mark.spec("geo.edges.inside")
@pytest.mark.parametrize(
    "coast",
    [
        "island", "antarctica",
        pytest.param("southern island", marks=pytest.mark.slow), pytest.param("arctic", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_hole_beyond_the_smaller_side_of_the_shell_leaves_the_area_between(coast: str) -> None:
    rows = [shapely.Polygon(circle[::way], [COASTS[coast]]) for circle in CIRCLES.values() for way in (1, -1)]
    rows += [shapely.MultiPolygon([row, shapely.box(40, 5, 41, 6)]) for row in rows[:2]]
    places = [(30, 20), (30, -20), (5, 55), (5, -55), (1, -89), (1, 89), (1, 89.9999), (1, -89.9999), (90, 90)]
    points = [shapely.Point(place) for place in places]
    for row in (*rows, s2.moved(rows[2], [0.7, 0.3, 0.2]), s2.moved(rows[5], [0.7, 0.3, 0.2])):
        check(points, row, ["intersects", "within"])
    check(rows, points[2], ["contains", "intersects"])


HOLES = {
    "inside": [(2.5, 2.5, 6.5, 6.5)], "beyond the west side": [(-8, 3, -4, 6)],
    "beyond the south side": [(3, -8, 6, -4)], "beyond the east side": [(14, 3, 18, 6)],
    "beyond the north side": [(3, 14, 6, 18)],
    "beyond a corner": [(-8, -8, -4, -4)], "inside and beyond": [(2.5, 2.5, 6.5, 6.5), (-8, 3, -4, 6)],
}  # fmt: skip


@pytest.mark.spec("geo.edges.inside")
@pytest.mark.parametrize("name", HOLES)
def test_hole_outside_its_shell_is_part_of_the_area(name: str) -> None:
    shell = shapely.box(0, 0, 10, 10).exterior
    row = shapely.Polygon(shell, [shapely.box(*sides).exterior for sides in HOLES[name]])
    points = [shapely.Point(x, y) for x in range(-9, 20, 2) for y in range(-9, 20, 2)]
    check(points, row, ["intersects", "within"])
    for point in (shapely.Point(1, 1), *map(shapely.centroid, row.interiors)):
        check([row], point, ["contains", "intersects"])


@pytest.fixture(scope="module")
def countries() -> dict[str, Any]:
    """Natural Earth's countries at 1:110 million, which pyogrio, of geopandas, has among its own tests."""
    pyogrio = pytest.importorskip("pyogrio", reason="pyogrio is not installed (extra 'test')")
    file = Path(pyogrio.__file__).parent / "tests/fixtures/naturalearth_lowres/naturalearth_lowres.shp"
    if not file.is_file():
        pytest.skip("this pyogrio comes without Natural Earth's countries")
    frame = pyogrio.read_dataframe(file)
    return dict(zip(frame["name"], frame.geometry, strict=True))


@pytest.mark.spec("geo.predicates.geography", "geo.predicates.dwithin", "geo.pruning.sound")
@settings(max_examples=share(0.05))
@given(st.data())
def test_relations_of_countries_match_s2(countries: dict[str, Any], data: st.DataObject) -> None:
    tolerance = data.draw(st.sampled_from([0, 0.5, 2, 5]), "simplified")
    simplified = {name: shape.simplify(tolerance) for name, shape in countries.items()}
    rows = {name: shape for name, shape in simplified.items() if s2.is_valid(shape)}
    name = data.draw(st.sampled_from(["Antarctica", "Fiji", "Russia", "Canada", *rows]).filter(rows.__contains__), "of")
    place = countries[name].representative_point()
    query = data.draw(st.one_of(st.just(rows[name]), s2.shapes([(place.x, place.y)])), "query")
    check(list(rows.values()), query, data.draw(st.permutations(s2.RELATIONS))[:2])
    distances = s2.Oracle([rows[name], rows["Brazil"], rows["Japan"]], query).distances()
    metres = data.draw(st.sampled_from([2000.0, 300_000.0, *(distance + 500 for distance in distances)]), "metres")
    check_distances(list(rows.values()), query, metres)


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside")
@pytest.mark.parametrize("tolerance", [*(pytest.param(metres, marks=pytest.mark.slow) for metres in (1, 2)), 4])
def test_antarctica_contains_the_pole_from_any_vertex(
    countries: dict[str, Any], tolerance: float
) -> None:
    mainland = max(countries["Antarctica"].geoms, key=lambda part: part.area)
    coast = np.array(s2.without_spikes(mainland.simplify(tolerance)).exterior.coords)[:-1]
    rows = [shapely.Polygon(np.roll(coast, by, axis=0)) for by in range(0, len(coast), 2)]
    rows.append(mainland)
    south = [shapely.Point(10, -90), shapely.Point(100, -89), shapely.LineString([(30, -85), (-150, -86)])]
    for query in south:
        check(rows, query, ["contains", "intersects"])
    assert geo.contains(geo.from_shapely(rows), south[1], "spherical").to_pylist() == [True] * len(rows)
    check(rows, shapely.Point(20, -50), ["intersects", "disjoint"])
