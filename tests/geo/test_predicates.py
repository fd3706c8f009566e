"""Predicates agree with shapely on every row, and a box that cannot match never holds a row that does."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo import BoundingBox, SpatialPredicate
from pqext.geo.predicates import boxes as box_answers
from pqext.geo.predicates import planar
from reference.geometries import LATITUDE, LONGITUDE, for_geos, shapes

EXACT: dict[str, Any] = {name: getattr(shapely, name) for name in box_answers.OPERATIONS if name != "dwithin"}
OPERATIONS = st.sampled_from(sorted(EXACT))
EDGE = st.sampled_from([-180.0, -179.5, -10.0, 0.0, 10.0, 179.5, 180.0])
NEAR = st.one_of(st.floats(-12, 12), st.floats(170, 180), st.floats(-180, -170), EDGE)


@st.composite
def query_boxes(draw: st.DrawFn) -> BoundingBox:
    x = for_geos(st.one_of(LONGITUDE, NEAR))
    y = for_geos(st.one_of(LATITUDE, st.sampled_from([-10.0, 0.0, 10.0])))
    xmin, xmax = draw(x), draw(x)
    ymin, ymax = sorted([draw(y), draw(y)])
    return BoundingBox(xmin, xmax, ymin, ymax)


def areas(box: BoundingBox) -> list[Any]:
    """The box as polygons, lines or points, two of them when it wraps."""
    spans = [(box.xmin, 400.0), (-400.0, box.xmax)] if box.wraps else [(box.xmin, box.xmax)]
    found = []
    for xmin, xmax in spans:
        corners = sorted({(x, y) for x in (xmin, xmax) for y in (box.ymin, box.ymax)})
        found.append(shapely.MultiPoint(corners).envelope if len(corners) > 1 else shapely.Point(corners[0]))
    return found


def some_shapes() -> st.SearchStrategy[list[Any]]:
    near = shapes(NEAR, st.one_of(st.floats(-12, 12), st.sampled_from([-10.0, 0.0, 10.0])))
    return st.lists(st.one_of(st.none(), shapes(), near), min_size=1, max_size=6)


@pytest.mark.spec("geo.box.wraparound")
@given(some_shapes(), query_boxes())
def test_row_intersects_a_box_like_its_parts_in_shapely(geometries: list[Any], box: BoundingBox) -> None:
    expected = [
        None if g is None else any(bool(shapely.intersects(part, g)) for part in areas(box)) for g in geometries
    ]
    array = geo.from_shapely(geometries)
    assert geo.intersects_box(array, box).to_pylist() == expected
    assert geo.intersects(array, (box.xmin, box.ymin, box.xmax, box.ymax)).to_pylist() == expected
    assert geo.disjoint(array, box).to_pylist() == [None if e is None else not e for e in expected]
    chunked = pa.chunked_array([array[:2], array[2:]])
    assert geo.intersects_box(chunked, box).to_pylist() == expected


SLIVER = shapely.Polygon([(0, 0), (10, 1e-9), (10, 0)])


@given(some_shapes(), shapes(NEAR, st.floats(-12, 12)), OPERATIONS)
@example([SLIVER, shapely.Point(5, 0)], shapely.LineString([(5, 5), (5, 0)]), "intersects")
@example([SLIVER, shapely.Point(10, 0)], shapely.LineString([(10, 1e-9), (10, -5)]), "touches")
@example([shapely.LineString([(0, 0), (1e-9, 0), (10, 1)])], SLIVER, "crosses")
def test_relation_of_row_and_geometry_matches_shapely(geometries: list[Any], query: Any, operation: Any) -> None:
    # Of a line without length GEOS says both that it meets a shape and that it does not.
    assume(all(g is None or shapely.is_valid(g) for g in [*geometries, query]))
    expected = [None if g is None else bool(EXACT[operation](g, query)) for g in geometries]
    assert SpatialPredicate(operation, query).evaluate(geo.from_shapely(geometries)).to_pylist() == expected


@given(some_shapes(), query_boxes(), st.sampled_from(["within", "contains"]))
def test_row_within_or_containing_a_plain_box_matches_shapely(
    geometries: list[Any], box: BoundingBox, operation: Any
) -> None:
    if box.wraps:
        return
    (area,) = areas(box)
    assume(shapely.is_valid(area))  # a box without area is no valid polygon
    expected = [None if g is None else bool(EXACT[operation](g, area)) for g in geometries]
    assert SpatialPredicate(operation, box).evaluate(geo.from_shapely(geometries)).to_pylist() == expected


def test_row_is_within_a_box_across_the_antimeridian_by_its_parts() -> None:
    array = geo.from_shapely(
        [
            shapely.box(175, 0, 178, 1),
            shapely.box(-178, 0, -175, 1),
            shapely.MultiPoint([(175, 0.5), (-175, 0.5)]),
            shapely.box(165, 0, 178, 1),
            shapely.LineString([(175, 0.5), (-175, 0.5)]),
            shapely.Point(0, 0),
        ]
    )
    assert geo.within(array, (170, -1, -170, 2)).to_pylist() == [True, True, True, False, False, False]
    assert geo.contains(array, (170, -1, -170, 2)).to_pylist() == [False] * 6


@pytest.mark.spec("geo.box.wraparound", "geo.box.wraparound_only", "geometry.edges")
@given(some_shapes(), query_boxes(), shapes(NEAR, st.floats(-12, 12)), OPERATIONS, st.booleans(), st.booleans())
def test_box_never_excludes_a_row_that_matches_exactly(
    geometries: list[Any], box: BoundingBox, shape: Any, operation: Any, by_box: bool, geographic: bool
) -> None:
    array = geo.from_shapely(geometries)
    predicate = SpatialPredicate(operation, box if by_box else shape)
    statistics = geo.statistics(array, crs=None if geographic else "EPSG:3857")
    if statistics.bbox is None:
        return
    if not predicate.may_match(BoundingBox.from_metadata(statistics.bbox)):
        assert True not in predicate.evaluate(array).to_pylist()


@given(some_shapes(), some_shapes(), query_boxes(), OPERATIONS)
def test_merged_box_never_excludes_a_matching_row(
    one: list[Any], other: list[Any], box: BoundingBox, operation: Any
) -> None:
    merged = geo.merge([geo.statistics(geo.from_shapely(part)) for part in (one, other)])
    predicate = SpatialPredicate(operation, box)
    if merged.bbox is not None and not predicate.may_match(BoundingBox.from_metadata(merged.bbox)):
        assert True not in predicate.evaluate(geo.from_shapely(one + other)).to_pylist()


@pytest.mark.parametrize(
    ("operation", "query", "matches"),
    [
        ("intersects", (175, 0, 178, 1), True),
        ("intersects", (-10, 0, 10, 1), False),
        ("intersects", (170, 0, -170, 1), True),
        ("within", (-10, 0, 10, 1), False),
        ("within", (165, 0, 180, 1), True),
        ("contains", (176, 0, 177, 1), True),
        ("contains", (160, 0, 177, 1), False),
        ("contains", (179, 0, -179, 1), True),
        ("disjoint", (175, 0, 178, 1), True),
        ("intersects", shapely.Point(), False),
        ("disjoint", shapely.Point(), True),
    ],
)
def test_wrapping_box_of_a_row_group_is_evaluated_for_its_rows(operation: Any, query: Any, matches: bool) -> None:
    assert SpatialPredicate(operation, query).may_match(BoundingBox(170, -170, -5, 5)) is matches


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf])
def test_unusable_box_may_always_match(bound: float) -> None:
    for box in (BoundingBox(bound, 1, 0, 1), BoundingBox(0, 1, 0, bound), BoundingBox(0, 1, 5, 4)):
        for operation in EXACT:
            assert SpatialPredicate(operation, (50, 50, 60, 60)).may_match(box)  # type: ignore[arg-type]


def test_empty_geometries_and_nan_points_intersect_nothing() -> None:
    nan = math.nan
    array = pa.concat_arrays([geo.from_points([nan, 1.0, nan], [nan, nan, 1.0]), geo.from_shapely([shapely.Polygon()])])
    assert geo.intersects_box(array, (-180, -90, 180, 90)).to_pylist() == [False] * 4
    assert geo.intersects_box(array, (100, -90, 90, 90)).to_pylist() == [False] * 4
    assert geo.disjoint(array, (-180, -90, 180, 90)).to_pylist() == [True] * 4
    empty_query = geo.intersects(geo.from_shapely([shapely.Point(0, 0), None]), shapely.Point())
    assert empty_query.to_pylist() == [False, None]


@pytest.mark.parametrize("operation", sorted({*EXACT, "dwithin"} - {"equals"}))
def test_empty_query_is_not_compared_with_rows_that_shapely_rejects(operation: str) -> None:
    one_point_line = pa.array([struct.pack("<BII2d", 1, 2, 1, 1, 1), None])
    distance = (1.0,) if operation == "dwithin" else ()
    expected = bool(getattr(shapely, operation)(shapely.Point(1, 1), shapely.Point(), *distance))
    result = getattr(geo, operation)(one_point_line, shapely.Point(), *distance)
    assert result.to_pylist() == [expected, None]


@given(st.lists(st.tuples(LONGITUDE, LATITUDE), max_size=50), query_boxes())
def test_points_are_decided_by_comparison(points: list[tuple[float, float]], box: BoundingBox) -> None:
    join = operator.or_ if box.wraps else operator.and_
    x, y = np.array(points, dtype=float).reshape(-1, 2).T
    expected = join(x >= box.xmin, x <= box.xmax) & (y >= box.ymin) & (y <= box.ymax)
    assert geo.intersects_box(geo.from_points(x, y), box).to_pylist() == expected.tolist()


@pytest.mark.parametrize("dimensions", ["", "Z", "M", "ZM"])
@pytest.mark.parametrize("other", [None, "POINT EMPTY", "LINESTRING (0 0, 1 1)", "MULTIPOINT (0 0)", "POLYGON EMPTY"])
def test_coordinates_of_points_are_those_of_shapely(other: str | None, dimensions: str) -> None:
    texts = [f"POINT {dimensions} (1 2{' 7' * len(dimensions)})", "POINT (3 4)", *([other] if other else [])]
    result = planar.points_of(geo.from_wkt(texts))
    assert (result is None) is (other not in (None, "POINT EMPTY"))
    if result is not None:
        np.testing.assert_array_equal(np.transpose(result)[:2], [(1, 2), (3, 4)])


@pytest.mark.parametrize(
    "box",
    [(0, 1, 0, 0), (0, 0, math.nan, 1), (0, 0, math.inf, 1), (200, 0, 190, 1), (5, 0, -300, 1), (1, 2, 3), "abcd"],
)
def test_invalid_query_box_is_rejected(box: Any) -> None:
    with pytest.raises(ValueError, match="query box"):
        geo.intersects_box(geo.from_points([0], [0]), box)


def test_query_must_be_a_box_or_geometry_with_a_known_operation() -> None:
    with pytest.raises(TypeError, match=r"a query must be a box or a shapely geometry, not str; shapely\.from_wkt"):
        SpatialPredicate("intersects", "POINT (0 0)")
    for several in ([shapely.Point(0, 0)], np.array([shapely.Point(0, 0)] * 4)):
        with pytest.raises(TypeError, match="a query box must be four numbers"):
            SpatialPredicate("intersects", several)
    series = geopandas.GeoSeries([shapely.Point(0, 0)])
    with pytest.raises(TypeError, match="a query must be a box or a shapely geometry, not GeoSeries"):
        SpatialPredicate("intersects", series)
    assert SpatialPredicate("intersects", series.total_bounds).geometry == BoundingBox(0, 0, 0, 0)
    with pytest.raises(ValueError, match="bounds of a query box must be finite"):
        SpatialPredicate("intersects", shapely.Point(math.inf, 0))
    with pytest.raises(ValueError, match="unknown spatial operation"):
        SpatialPredicate("near", (0, 0, 1, 1))  # type: ignore[arg-type]


def test_geometry_rejected_by_shapely_is_an_error_with_its_row() -> None:
    line = b"\1\2\0\0\0\1\0\0\0" + b"\0" * 16  # of a single point
    good = geo.from_points([0.0] * 3, [0.0] * 3).storage
    array = pa.chunked_array([good, pa.concat_arrays([good, pa.array([line], pa.binary())])])
    for function in (geo.to_shapely, lambda a: geo.intersects(a, shapely.box(-1, -1, 1, 1))):
        with pytest.raises(GeometryError, match="row 6: shapely rejects") as caught:
            function(array)
        assert caught.value.row == 6


def test_geodesic_edges_are_followed() -> None:
    points, line = geo.from_points([1.0], [1.0]), geo.from_shapely([shapely.LineString([(0, 60), (90, 60)])])
    assert geo.intersects_box(points, (0, 0, 2, 2), "spherical").to_pylist() == [True]
    assert geo.intersects_box(line, (40, 65, 50, 70), "spherical").to_pylist() == [True]
    assert geo.intersects_box(line, (40, 59, 50, 61), "spherical").to_pylist() == [False]
    assert geo.intersects(points, shapely.box(0, 0, 2, 2), "spherical").to_pylist() == [True]


def test_ellipsoid_of_the_edges_follows_the_crs() -> None:
    flat = pyproj.CRS.from_dict({"proj": "longlat", "a": 6_000_000, "rf": 20})
    start, stop = (0.0, 40.0), (80.0, 55.0)
    middle = {}
    for crs in (None, flat):
        geod = pyproj.Geod(ellps="WGS84") if crs is None else flat.get_geod()
        assert geod is not None
        ((x, y),) = geod.npts(*start, *stop, 1)
        middle[crs] = shapely.Point(x, y).buffer(0.002).envelope
    line = geo.from_shapely([shapely.LineString([start, stop])])
    for name in ("intersects", "crosses", "disjoint"):
        ask = getattr(geo, name)
        for crs in (None, flat):
            here = name != "disjoint"
            other = middle[None if crs is flat else flat]
            assert ask(line, middle[crs], "karney", crs).to_pylist() == [here]
            assert ask(line, other, edges="karney", crs=crs).to_pylist() == [not here]
    box = middle[flat].bounds
    assert geo.intersects_box(line, box, "karney", flat).to_pylist() == [True]
    assert geo.intersects_box(line, box, "karney").to_pylist() == [False]


@pytest.mark.parametrize("name", sorted(EXACT))
def test_predicate_uses_crs_and_edges_of_the_array_or_arguments(name: str) -> None:
    ask, query = getattr(geo, name), shapely.box(0, 0, 2, 2)
    schema = pa.schema([geo.geometry_field("g", "EPSG:3857")])
    points = geo.from_points([1.0, 2.0, 5.0, 500.0], [1.0, 2.0, 5.0, 5.0])
    marked = geo.as_extension(pa.table([points], schema=schema))["g"]
    expected = EXACT[name](geo.to_shapely(points), query).tolist()
    assert ask(marked, query).to_pylist() == ask(points, query, crs="EPSG:3857").to_pylist() == expected
    with pytest.raises(GeometryError, match="geographic CRS, not EPSG:3857"):
        ask(marked, query, "spherical")
    assert ask(marked, query, "spherical", "OGC:CRS84").is_null().to_pylist() == [False, False, False, True]


def test_bounds_beyond_double_range_are_not_a_box() -> None:
    points = geo.from_points([1.0], [2.0])
    with pytest.raises(ValueError, match="bounds of a query box must be finite"):
        geo.intersects(points, (10**400, 0, 1, 1))
    with pytest.raises(ValueError, match="must be finite"):
        pqext.col("g").intersects((10**400, 0, 1, 1))


@pytest.mark.spec("geo.predicates.dwithin")
def test_zero_length_lines_are_near_their_neighbours() -> None:
    still = [
        "LINESTRING (10 5, 10 5)",
        "MULTILINESTRING ((10 5, 10 5), (50 50, 60 60))",
        "POLYGON ((10 5, 10 5, 10 5, 10 5))",
    ]
    rows = geo.from_shapely(shapely.from_wkt([*still, "POINT (10 5)", "LINESTRING (10 5, 11 5)"]))
    queries = ["LINESTRING (10 4.5, 10 4)", "LINESTRING (10 4.5, 10 4.5)", "POLYGON ((0 0, 20 0, 20 4.5, 0 4.5, 0 0))"]
    for query in queries:
        assert geo.dwithin(rows, shapely.from_wkt(query), 0.5).to_pylist() == [True] * 5
        assert geo.dwithin(rows, shapely.from_wkt(query), 0.25).to_pylist() == [False] * 5


@pytest.mark.spec("geo.predicates.globe", "geo.predicates.geography")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("at", [-170, 0, 95, 179])
def test_hole_next_to_the_pole_is_a_hole_from_every_side(edges: Any, side: int, at: float) -> None:
    def ring(around: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [((x + 180) % 360 - 180, side * y) for x, y in around]

    shell = ring([(x, 60) for x in (0, 60, 120, 180, 240, 300, 0)])
    hole = ring([(at - 10, 78), (at + 10, 78), (at + 10, 82), (at - 10, 82), (at - 10, 78)])
    row = geo.from_shapely([shapely.Polygon(shell, [hole])])
    for away, held in ((0, False), (60, True), (-60, True), (150, True)):
        ((x, y),) = ring([(at + away, 80)])
        assert geo.covers(row, shapely.Point(x, y), edges).to_pylist() == [held]
        if away in (0, 60):
            around = shapely.Point(x, y).buffer(0.5, quad_segs=2)
            assert geo.intersects(row, around, edges).to_pylist() == [held]
            assert geo.disjoint(row, around, edges).to_pylist() == [not held]
            assert geo.covers(row, around, edges).to_pylist() == [held]


@pytest.mark.parametrize(("width", "height", "kind"), [
    ("0", "0", "Point"), ("0", "1", "LineString"), ("1", "0", "LineString"), ("1", "1", "Polygon"),
])  # fmt: skip
def test_zero_width_or_height_box_is_a_valid_line_or_point(width: str, height: str, kind: str) -> None:
    xmin, ymin = 2.5, -1.25
    shape = planar.rectangle(xmin, ymin, xmin + float(width), ymin + float(height))
    assert (shape.geom_type, shape.is_valid) == (kind, True)
    assert shape.bounds == (xmin, ymin, xmin + float(width), ymin + float(height))
