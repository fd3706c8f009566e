"""Whatever is asked of whichever column, no row that satisfies it is left out by the box of a row group or page.

Oracles look at each row by itself: shapely for planar edges, :mod:`reference.globe` for all others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.write.writer import write_table
from pqext.dataset.expressions import Column, Spatial, col
from pqext.dataset.reading import scan
from pqext.geo.predicates.boxes import Boxes, Region
from pqext.geo.predicates.distance import widen
from reference import globe, shapes
from reference.effort import share

pytestmark = pytest.mark.filterwarnings("ignore:.*a query polygon has")  # drawn on the globe, not on a map

RELATIONS = ["intersects", "within", "contains", "touches", "crosses", "overlaps", "covers", "covered_by", "equals"]
ELLIPSOIDAL = ["vincenty", "thomas", "andoyer", "karney"]
G = col("g")


def file_of(rows: list[Any], **marks: Any) -> bytes:
    """A file of several row groups, and several pages in each."""
    field = geo.geometry_field("g", **marks)
    columns = [geo.from_shapely(rows), pa.array(range(len(rows)))]
    sink = pa.BufferOutputStream()
    schema = pa.schema([field, pa.field("row", pa.int64())])
    write_table(pa.table(columns, schema=schema), sink, row_group_rows=8, page_rows=2)
    return bytes(sink.getvalue())


def check(data: bytes, question: Spatial, kept: set[int], unsure: frozenset[int] = frozenset()) -> None:
    """The scan gives the rows ``kept``, and its plan has left out none of them; ``unsure`` may go either way."""
    found = set(scan(data, ["row"], question).to_table()["row"].to_pylist())
    assert found - unsure == kept - unsure, str(question)
    (task,) = scan(data, ["row"], question).plan(pages=True)
    at = 0
    for group in task.row_groups:
        rows = {row - at for row in kept - unsure if at <= row < at + group.num_rows}
        assert not rows or group.prune_reason is None
        assert group.rows is None or all(any(row in part for part in group.rows) for row in rows)
        at += group.num_rows


def nearby_rows(random: np.random.Generator, count: int) -> tuple[list[Any], tuple[float, float]]:
    """Rows in runs of one place, a null and an empty geometry among them, and one of the places."""
    places = [shapes.PLACES[number] for number in random.permutation(len(shapes.PLACES))]
    rows = [shapes.shape(random, places[number * len(places) // count]) for number in range(count)]
    rows[random.integers(count)] = None
    rows[random.integers(count)] = shapely.LineString()
    return rows, places[random.integers(len(places))]


def areas(box: tuple[float, float, float, float]) -> Any:
    """A box in the plane; one that wraps in two parts, which reach beyond all rows."""
    xmin, ymin, xmax, ymax = box
    if xmin <= xmax:
        return shapely.box(*box)
    return shapely.MultiPolygon([shapely.box(xmin, ymin, 999, ymax), shapely.box(-999, ymin, xmax, ymax)])


def valid(shape: Any) -> Any:
    """What is simple on the globe may cross itself in the plane, where it jumps over the antimeridian."""
    return shape if shapely.is_valid(shape) else shape.convex_hull


@pytest.mark.spec("geo.pruning.sound", "geo.pruning.nulls", "geo.pruning.wraparound")
@settings(max_examples=share(0.12))
@given(
    st.integers(0, 2**32),
    st.sampled_from([None, "EPSG:4326", "EPSG:3857", "srid:0"]),
    st.booleans(),
    st.lists(st.sampled_from(RELATIONS), min_size=2, max_size=2, unique=True),
)
def test_pruning_is_sound_on_planar_columns(seed: int, crs: str | None, by_box: bool, relations: list[Any]) -> None:
    random = np.random.default_rng(seed)
    rows, place = nearby_rows(random, 24)
    rows = [row if row is None else valid(row) for row in rows]
    box = shapes.box(random, place)
    shape = areas(box) if by_box else valid(shapes.shape(random, place))
    if not by_box and random.integers(3) == 0:
        rows[random.integers(len(rows))] = shape
    data = file_of(rows, crs=crs)
    query = box if by_box else shape
    for relation in relations:
        test = getattr(shapely, relation)
        kept = {number for number, row in enumerate(rows) if row is not None and bool(test(row, shape))}
        check(data, Spatial(G, relation, query), kept)
        present = {number for number, row in enumerate(rows) if row is not None}
        assert scan(data, filter=~Spatial(G, relation, query)).count() == len(present - kept)
        assert scan(data, filter=Spatial(G, relation, query), trust_statistics=False).count() == len(kept)
    distance = float(random.uniform(0, 20))
    check(data, G.dwithin(query, distance), {n for n, row in enumerate(rows) if shapely.dwithin(row, shape, distance)})


@pytest.mark.spec("geo.pruning.nulls")
@pytest.mark.parametrize("edges", ["planar", "spherical"])
def test_empty_query_is_disjoint_from_every_row_and_equals_empty_geometries(edges: Any) -> None:
    rows = [None, shapely.Point(1, 2), shapely.Point(), shapely.box(0, 0, 1, 1), *[shapely.Point(50, 5)] * 12]
    data = file_of(rows, edges=edges)
    present = {number for number, row in enumerate(rows) if row is not None}
    for relation in ["disjoint", *RELATIONS]:
        kept = {"disjoint": present, "equals": {2}}.get(relation, set())
        check(data, Spatial(G, relation, shapely.Point()), kept)


@pytest.mark.spec("geo.pruning.sound", "geo.pruning.geography", "geo.predicates.geography")
@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 24))])
def test_pruning_is_sound_on_geography_columns(seed: int) -> None:
    random = np.random.default_rng(seed)
    edges = ["spherical", ELLIPSOIDAL[seed // 2 % 4]][seed % 2]
    rows, place = nearby_rows(random, 18)
    by_box = seed % 3 == 0
    query = shapes.box(random, place) if by_box else shapes.shape(random, place)
    if not by_box and seed % 3 == 1:
        rows[3] = query
    shape, query_edges = (globe.box(*query), "parallel") if by_box else (query, edges)
    relations = {}
    for number, row in enumerate(rows):
        if row is not None and not row.is_empty:
            try:
                relations[number] = globe.relations(RELATIONS, row, edges, shape, query_edges)
            except ValueError:  # too far from each other for one projection
                relations[number] = dict.fromkeys(RELATIONS, False)
    data = file_of(rows, edges=edges)
    for relation in RELATIONS:
        check(data, Spatial(G, relation, query), {n for n, found in relations.items() if found[relation]})


@pytest.mark.spec("geo.pruning.dwithin", "geo.predicates.dwithin")
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))])
def test_pruning_by_distance_is_sound_on_the_globe(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    edges = ["spherical", "karney"][seed % 2]
    rows, place = nearby_rows(random, 16)
    query = [shapes.box(random, place), shapes.shape(random, place), shapely.Point(place)][seed % 3]
    shape, query_edges = (globe.box(*query), "parallel") if isinstance(query, tuple) else (query, edges)
    distances = {}
    for number, row in enumerate(rows):
        if row is not None and not row.is_empty:
            try:
                meets = globe.relations(["intersects"], row, edges, shape, query_edges)["intersects"]
            except ValueError:
                meets = False
            distances[number] = 0.0 if meets else globe.distance(row, edges, shape, query_edges)
    data = file_of(rows, edges=edges)
    for distance in (1e4, 3e5, 2e6, 9e6):
        # Points along an edge are no more than some kilometres apart, so that the oracle is too far by less.
        unsure = frozenset(n for n, found in distances.items() if distance < found <= distance + 15_000)
        check(data, G.dwithin(query, distance), {n for n, found in distances.items() if found <= distance}, unsure)


@pytest.mark.spec("geo.pruning.dwithin")
def test_widened_region_contains_every_point_within_the_distance() -> None:
    random = np.random.default_rng(11)
    count = 300
    x, y = random.uniform(-180, 180, count), np.degrees(np.arcsin(random.uniform(-1, 1, count)))
    metres, bearing = 10 ** random.uniform(0, 7.3, count), random.uniform(0, 360, count)
    there_x, there_y, _ = globe.WGS84.fwd(x, y, bearing, metres)
    for place in zip(x, y, metres, there_x, there_y, strict=True):
        one = Region(place[0], place[0], place[1], place[1], wraps=False, globe=True)
        there = Boxes(*(np.array([value]) for value in (place[3], place[3], place[4], place[4])))
        assert widen(one, place[2], globe.WGS84).may_intersect(there).all()


@pytest.mark.spec("geo.predicates.dwithin")
def test_point_distance_is_the_geodesic_length() -> None:
    random = np.random.default_rng(5)
    x, y = random.uniform(-180, 180, 400), random.uniform(-90, 90, 400)
    for place in [(10.0, 50.0), (179.9, 10.0), (20.0, 89.5), (0.0, -90.0)]:
        metres = np.asarray(globe.WGS84.inv(x, y, np.full(400, place[0]), np.full(400, place[1]))[2])
        for distance in (1e6, float(np.sort(metres)[200]), 1.9e7):
            found = geo.dwithin(geo.from_points(x, y), shapely.Point(place), distance, "karney")
            assert found.to_pylist() == (metres <= distance).tolist()


@pytest.mark.spec("geo.predicates.globe")
def test_antimeridian_is_one_meridian_and_a_pole_is_one_point() -> None:
    array = geo.from_points([180.0, -180.0, 33.0, 0.0], [5.0, 5.0, 90.0, -90.0])
    for box, expected in (
        ((170, 0, 180, 10), [True, True, False, False]),
        ((-180, 0, -170, 10), [True, True, False, False]),
        ((170, 0, -170, 10), [True, True, False, False]),
        ((-100, 80, -90, 90), [False, False, True, False]),
        ((-180, -90, 180, -80), [False, False, False, True]),
    ):
        assert geo.intersects_box(array, box, "spherical").to_pylist() == expected
        for row, one in enumerate(expected):
            data = file_of([shapely.from_wkb(array[row].as_py())], edges="spherical")
            assert scan(data, filter=G.intersects(box)).count() == one
    assert geo.within(array, (-180, 80, 180, 90), "spherical").to_pylist() == [False, False, True, False]


@pytest.mark.spec("geo.predicates.globe")
def test_ring_around_a_pole_contains_the_pole() -> None:
    cap = shapely.Polygon([(-120, 70), (0, 70), (120, 70)])
    array = geo.from_shapely([cap, shapely.Point(0, 90), shapely.Point(50, 85), shapely.Point(60, 50)])
    assert geo.intersects(array, shapely.Point(10, 90), "spherical").to_pylist() == [True, True, False, False]
    assert geo.within(array, cap, "spherical").to_pylist() == [True, True, True, False]
    assert geo.contains(array, shapely.Point(-150, 88), "spherical").to_pylist() == [True, False, False, False]


@pytest.mark.spec("geo.pruning.trust")
def test_untrusted_boxes_prune_nothing() -> None:
    data = file_of([shapely.Point(x, 0) for x in range(16)])
    (trusting,) = scan(data, filter=G.intersects((100, 0, 101, 1))).plan(pages=True)
    (wary,) = scan(data, filter=G.intersects((100, 0, 101, 1)), trust_statistics=False).plan(pages=True)
    assert (trusting.kept_row_groups, wary.kept_row_groups) == ((), (0, 1))
    assert all(group.rows is None or sum(map(len, group.rows)) == group.num_rows for group in wary.row_groups)
    with pytest.raises(TypeError, match="trust_statistics must be a bool"):
        scan(data, trust_statistics="yes")


def test_edge_with_a_nan_end_intersects_nothing_on_the_globe() -> None:
    line = b"\1\2\0\0\0\3\0\0\0" + np.array([0, 0, math.nan, math.nan, 1, 1], dtype="<f8").tobytes()
    array = pa.array([line, geo.from_points([0.0], [0.0])[0].as_py()], pa.binary())
    assert geo.intersects(array, shapely.box(-1, -1, 2, 2), "spherical").to_pylist()[1]
    assert geo.crosses(array, shapely.box(-1, -1, 0.5, 2), "spherical").to_pylist() == [False, False]


@pytest.mark.spec("geo.pruning.boxes")
@pytest.mark.parametrize("bound", [math.nan, math.inf])
def test_boxes_return_no_yes_or_maybe(bound: float) -> None:
    rectangle = geo.SpatialPredicate("within", (0, 0, 10, 10))
    xmin = np.array([1.0, 0.0, 5.0, 20.0, bound])
    ones = np.ones(5)
    answers = rectangle.answers(xmin, xmin + 2, ones, 2 * ones)
    assert answers.tolist()[:4] == [1, 2, 1, 0]  # yes inside, maybe at the border, no outside
    assert answers[4] == 2
    touching = geo.SpatialPredicate("touches", (0, 0, 10, 10))
    assert touching.answers(xmin, xmin + 2, ones, 2 * ones).tolist() == [0, 2, 0, 0, 2]
    for operation in ("crosses", "overlaps"):  # nothing in the interior of a polygon does either
        relation = geo.SpatialPredicate(operation, (0, 0, 10, 10))  # type: ignore[arg-type]
        assert relation.answers(xmin, xmin + 2, ones, 2 * ones).tolist() == [0, 2, 0, 0, 2]
    near = geo.SpatialPredicate("dwithin", shapely.Point(0, 0), 5.0)
    assert near.answers(xmin, xmin + 2, ones, 2 * ones).tolist() == [1, 1, 2, 0, 2]


def test_conditions_refer_to_columns_by_name() -> None:
    for relation in ("disjoint", *RELATIONS):
        name = "geom_equals" if relation == "equals" else relation
        assert getattr(Column(("g",)), name)((0, 0, 1, 1)) == Spatial(G, relation, (0, 0, 1, 1))  # type: ignore[arg-type]
