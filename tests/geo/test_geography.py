"""Boxes around edges on the globe, against edges of a thousand points, rings looked at from every side, and S2."""

from __future__ import annotations

import io
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo import BoundingBox
from reference import geodesics, wkb
from reference.effort import share
from reference.geometries import LATITUDE, LONGITUDE, trees

ALGORITHMS: tuple[geo.types.Edges, ...] = ("spherical", "vincenty", "thomas", "andoyer", "karney")
Point = tuple[float, float]
POINT = st.tuples(
    st.one_of(LONGITUDE, st.integers(-4, 4).map(lambda n: 45.0 * n)),
    st.one_of(LATITUDE, st.sampled_from([0.0, 60.0, -60.0, 89.999999, -89.9, 1e-9, 90.0])),
)


def lines(*lines: list[Point]) -> pa.Array:
    return geo.from_shapely([shapely.LineString(line) for line in lines])


def box(geometry: Any, edges: geo.types.Edges = "spherical", crs: Any = None) -> BoundingBox:
    if isinstance(geometry, str):
        geometry = shapely.from_wkt(geometry)
    found: dict[str, float] = geo.bounds(geo.from_shapely([geometry]), edges, crs).to_pylist()[0]
    return BoundingBox(**found)


def special_edges(seed: int, count: int) -> list[tuple[Point, Point]]:
    """Edges of every kind: short and long, along and near meridians and parallels, near poles and near antipodes."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        x, y = random.uniform(-180, 180), math.degrees(math.asin(random.uniform(-1, 1)))
        match number % 8:
            case 0:
                other = (random.uniform(-180, 180), math.degrees(math.asin(random.uniform(-1, 1))))
            case 1:
                other = (x + random.normal() * 3, y + random.normal() * 3)
            case 2:  # along a parallel
                other = (x + random.uniform(-179, 179), y)
            case 3:  # nearly along a meridian
                other = (x + random.normal() * 10.0 ** -random.integers(1, 12), random.uniform(-90, 90))
            case 4:  # nearly antipodal
                far = 10.0 ** random.uniform(-1.5, 1)
                other = (x + 180 + random.normal() * far, -y + random.normal() * far)
            case 5:  # over the pole, nearly
                y = random.choice([-1, 1]) * random.uniform(70, 90)
                other = (x + 180 + random.normal() * 10.0 ** -random.integers(0, 9), y + random.normal())
            case 6:
                y = random.choice([-1, 1]) * (90 - 10.0 ** -random.integers(1, 9))
                other = (x + random.uniform(-180, 180), y + random.normal() * 1e-3)
            case _:  # along the equator, nearly
                y = random.normal() * 10.0 ** -random.integers(0, 12)
                other = (x + random.uniform(-179.3, 179.3), random.choice([-y, y, 0.0]))
        lon = (other[0] + 180) % 360 - 180
        found.append(((x, y), (lon, max(-90.0, min(90.0, other[1])))))
    return found


@pytest.mark.spec("geo.box.geography", "geo.edges.rise", "geo.edges.longitudes", "geo.edges.algorithm")
@pytest.mark.parametrize("edges", ALGORITHMS)
def test_box_contains_a_thousand_points_of_each_edge(edges: geo.types.Edges) -> None:
    path = geodesics.great_circle if edges == "spherical" else geodesics.geodesic
    segments = special_edges(5, 400)
    for (start, stop), found in zip(segments, geo.bounds(lines(*map(list, segments)), edges).to_pylist(), strict=True):
        assert geodesics.holds(found, *path(start, stop), 1e-9), (start, stop, found)


@pytest.mark.spec("geo.box.geography", "geo.edges.rise")
@pytest.mark.parametrize("edges", ALGORITHMS)
def test_box_is_nearly_as_tight_as_possible(edges: geo.types.Edges) -> None:
    random = np.random.default_rng(7)
    path = geodesics.great_circle if edges == "spherical" else geodesics.geodesic
    for _ in range(200):
        start = (random.uniform(-180, 180), random.uniform(-85, 85))
        lon, lat = geodesics.along(start, random.uniform(0, 360), random.uniform(1, 1e6), 2)
        stop = (float(lon[1]), float(lat[1]))
        found = box(shapely.LineString([start, stop]), edges)
        lon, lat = path(start, stop)
        slack = 1e-5 if edges == "spherical" else 0.01  # the points may miss the top by the first
        assert found.ymax <= lat.max() + slack
        assert found.ymin >= lat.min() - slack
        width = abs((stop[0] - start[0] + 180) % 360 - 180)
        assert found.width <= width + (0.01 / math.cos(math.radians(86)) if edges in ("thomas", "andoyer") else 1e-6)


@pytest.mark.spec("geo.edges.algorithm_errors")
@pytest.mark.parametrize("edges", ["andoyer", "thomas"])
def test_box_contains_edges_of_an_approximate_formula(edges: geo.types.Edges) -> None:
    random = np.random.default_rng(9)
    formula = geodesics.andoyer if edges == "andoyer" else geodesics.thomas
    for _ in range(400):
        start = (float(random.uniform(-180, -10)), float(np.degrees(np.arcsin(random.uniform(-1, 1)))))
        stop = (start[0] + random.uniform(0.01, 179), float(np.degrees(np.arcsin(random.uniform(-1, 1)))))
        found = geo.bounds(lines([start, stop]), edges).to_pylist()[0]
        assert geodesics.holds(found, *geodesics.along(start, *formula(start, stop), 200), 1e-9), (start, stop, found)


@pytest.mark.spec("geo.edges.algorithm_errors")
@pytest.mark.parametrize(("edges", "share"), [("vincenty", 1e-9), ("thomas", 1e-7), ("andoyer", 1.5e-5)])
@pytest.mark.parametrize("times", [0.5, 1, 2])
def test_box_is_widened_by_a_share_of_the_length_of_an_edge(edges: Any, share: float, times: float) -> None:
    """The share grows with the cube of the flattening of ellipsoids that are flatter than WGS84."""
    flattening = times / 298.257223563
    crs = pyproj.CRS.from_dict({"proj": "longlat", "a": 6378137, "rf": 1 / flattening}).to_wkt()
    edge = shapely.LineString([(0, 50), (20, 50)])
    exact, wider = (box(edge, name, crs) for name in ("karney", edges))
    length = math.degrees(pyproj.Geod(a=6378137, f=flattening).inv(0, 50, 20, 50)[2] / 6378137)
    assert wider.ymax - exact.ymax == pytest.approx(share * max(1, times) ** 3 * length, rel=0.02)


@pytest.mark.spec("geo.box.geography")
def test_edge_from_0_60_to_90_60_reaches_latitude_67_79() -> None:
    found = box("LINESTRING (0 60, 90 60)")
    exact = math.degrees(math.atan(math.tan(math.radians(60)) * math.sqrt(2)))
    assert exact <= found.ymax < exact + 1e-10
    assert (found.xmin, found.xmax, found.ymin) == (0, 90, 60)
    assert box("LINESTRING (0 -60, 90 -60)").ymin == -found.ymax
    assert box("LINESTRING (0 60, 90 60)", "karney").ymax == pytest.approx(67.7985, abs=0.01)


def test_more_digits_return_the_same_latitude() -> None:
    random = np.random.default_rng(3)
    for width in 10.0 ** random.uniform(-7, 2.25, 200):
        lat = random.uniform(1, 89)
        found = box(shapely.LineString([(0, lat), (width, lat)])).ymax
        narrow = np.longdouble(np.float64(width)) * np.longdouble("0.0174532925199432957692")
        tangent = np.tan(np.longdouble(np.float64(lat)) * np.longdouble("0.0174532925199432957692"))
        exact = np.degrees(np.arctan(tangent / np.cos(narrow / 2)))
        assert exact <= found <= exact + 2e-9


WORLD = BoundingBox(-180, 180, -90, 90)
LIMITS = {"xmin": 180, "xmax": 180, "ymin": 90, "ymax": 90}


@pytest.mark.spec("geo.edges.half_turn", "geo.edges.poles", "geo.edges.longitudes")
@pytest.mark.parametrize("edges", ALGORITHMS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LINESTRING (0 80, 180 70)", (-180, 180, 70, 90)),  # over the north pole
        ("LINESTRING (-30 -80, 150 -80)", (-180, 180, -90, -80)),
        ("LINESTRING (0 10, 180 -10)", (-180, 180, -90, 90)),  # antipodes: any meridian
        ("LINESTRING (-90 0, 90 0)", (-180, 180, -90, 90)),
        ("LINESTRING (10 90, 10 -90)", (-180, 180, -90, 90)),
        ("LINESTRING (10 20, 10 40)", (10, 10, 20, 40)),  # a meridian
        ("LINESTRING (7 7, 7 7)", (7, 7, 7, 7)),  # no length
        ("LINESTRING (200e-1 90, 20 50)", (-180, 180, 50, 90)),  # a vertex on a pole
        ("POINT (5 -90)", (-180, 180, -90, -90)),
        ("POINT (180 5)", (180, -180, 5, 5)),  # both names of one meridian
        ("MULTIPOINT (-180 5, -170 5)", (180, -170, 5, 5)),
    ],
)
def test_edges_and_points_at_special_positions_have_exact_boxes(
    edges: geo.types.Edges, text: str, expected: tuple[float, float, float, float]
) -> None:
    assert box(text, edges) == BoundingBox(*expected)


@pytest.mark.spec("geo.edges.longitudes", "geo.box.wraparound")
@pytest.mark.parametrize(
    ("text", "xmin", "xmax"),
    [
        ("LINESTRING (179 0, -179 0)", 179, -179),
        ("LINESTRING (-179 0, 179 0)", 179, -179),
        ("LINESTRING (0 0, 120 0, -120 0)", 0, -120),  # the longer part of the circle
        ("LINESTRING (0 0, 120 0, -120 0, 0 0)", -180, 180),  # all of it
        ("LINESTRING (170 0, -170 0, 170 0, -160 0)", 170, -160),  # to and fro
        ("LINESTRING (0 0, 120 0, -120 0, -1 0, 5 0)", -180, 180),
        ("MULTILINESTRING ((170 0, 175 0), (-175 0, -170 0))", 170, -170),
        ("MULTILINESTRING ((-20 0, -10 0), (10 0, 20 0))", -20, 20),
        ("MULTIPOINT (-100 0, 100 0, 0 0)", -100, 100),
        ("MULTIPOINT (-100 0, 100 0)", 100, -100),
        ("GEOMETRYCOLLECTION (POINT (-170 0), POLYGON ((160 0, 165 0, 165 5, 160 0)))", 160, -170),
        ("POLYGON ((170 0, -170 0, -170 10, 170 10, 170 0), (175 2, -175 2, -175 4, 175 2))", 170, -170),
    ],
)
def test_longitudes_follow_edges_in_the_shorter_direction(text: str, xmin: float, xmax: float) -> None:
    found = box(text)
    assert (found.xmin, found.xmax) == (xmin, xmax)


@pytest.mark.spec("geo.edges.inside", "geo.edges.poles")
@pytest.mark.parametrize("edges", ALGORITHMS)
def test_ring_around_a_pole_contains_it_on_its_smaller_side(edges: geo.types.Edges) -> None:
    around = [(-120.0, 60.0), (0.0, 60.0), (120.0, 60.0)]
    for ring in (around, around[::-1]):
        found = box(shapely.Polygon(ring), edges)
        assert (found.xmin, found.xmax, found.ymax) == (-180, 180, 90)
        assert found.ymin == pytest.approx(60, abs=0.01)
        south = box(shapely.Polygon([(x, -y) for x, y in ring]), edges)
        assert (south.ymin, south.ymax) == (-90, pytest.approx(-60, abs=0.01))
    equator = box("POLYGON ((0 0, 120 0, -120 0, 0 0))", edges)
    assert equator == WORLD  # either half
    assert box("LINESTRING (-120 60, 0 60, 120 60, -120 60)", edges).ymax < 80  # a line has no inside


@pytest.mark.spec("geo.edges.inside")
def test_ring_next_to_both_poles_may_contain_both() -> None:
    east = [(20.0, y) for y in range(-80, 81, 20)]
    west = [(-20.0, y) for y in range(80, -81, -20)]
    over = [(100.0, 85.0), (180.0, 85.0), (-100.0, 85.0)]
    under = [(-100.0, -85.0), (180.0, -85.0), (100.0, -85.0)]
    assert box(shapely.Polygon(east + over + west + under)) == WORLD
    beside = box(shapely.Polygon(east + west))
    assert (beside.xmin, beside.xmax) == (-20, 20)
    assert beside.ymax < 83


@given(
    st.lists(st.tuples(st.floats(0, 359), st.floats(-1, 1)), min_size=3, max_size=8, unique_by=lambda p: round(p[0])),
    st.floats(-75, 75),
    st.floats(0.5, 12),
    st.booleans(),
)
@settings(max_examples=share(0.4))
@pytest.mark.spec("geo.edges.inside")
def test_pole_of_a_ring_is_on_the_side_with_less_area(
    vertices: list[Point], middle: float, spread: float, reverse: bool
) -> None:
    ring = [((x + 180) % 360 - 180, middle + spread * y) for x, y in sorted(vertices)]
    ring = ring[::-1] if reverse else ring
    if any(abs((b[0] - a[0] + 180) % 360 - 180) > 170 for a, b in zip(ring, ring[1:] + ring[:1], strict=True)):
        return
    north, south = geodesics.pole_shares(ring)
    found = box(shapely.Polygon(ring))
    if north < 0.47:
        assert (found.xmin, found.xmax, found.ymax) == (-180, 180, 90)
    if south < 0.47:
        assert (found.xmin, found.xmax, found.ymin) == (-180, 180, -90)
    if north > 0.55 and south < 0.45:
        assert found.ymax < 90
    if south > 0.55 and north < 0.45:
        assert found.ymin > -90


def edges_of(geometry: Any) -> list[tuple[Point, Point]]:
    parts = geometry.geoms if hasattr(geometry, "geoms") else [geometry]
    found = []
    for part in parts:
        vertices = list((part.exterior if part.geom_type == "Polygon" else part).coords)
        found += list(pairwise(vertices)) or [(vertices[0], vertices[0])]
    return found


GEOMETRIES = st.one_of(
    POINT.map(shapely.Point),
    st.lists(POINT, min_size=2, max_size=6).map(shapely.LineString),
    st.lists(POINT, min_size=3, max_size=6).map(shapely.Polygon),
    st.lists(st.lists(POINT, min_size=2, max_size=3), min_size=1, max_size=4).map(shapely.MultiLineString),
    st.lists(POINT, min_size=1, max_size=6).map(shapely.MultiPoint),
)


@given(st.lists(GEOMETRIES, min_size=1, max_size=5), st.integers(0, 5), st.sampled_from(ALGORITHMS))
@settings(max_examples=share(0.6))
@pytest.mark.spec("geo.box.geography", "geo.box.wraparound_only")
def test_boxes_of_rows_columns_and_files_contain_every_edge(
    geometries: list[Any], cut: int, edges: geo.types.Edges
) -> None:
    path = geodesics.great_circle if edges == "spherical" else geodesics.geodesic
    array = geo.from_shapely(geometries)
    parts = [part for part in (array[:cut], array[cut:]) if len(part)]
    rows = geo.bounds(array, edges).to_pylist()
    whole = geo.statistics(pa.chunked_array(parts), edges).bbox
    merged = geo.merge([geo.statistics(part, edges) for part in parts]).bbox
    for geometry, row in zip(geometries, rows, strict=True):
        for outer in (whole, merged):
            assert BoundingBox.from_metadata(outer).contains(BoundingBox(**row))
        for start, stop in edges_of(geometry):
            if np.linalg.norm(geodesics.unit(start) + geodesics.unit(stop)) < 1e-4:
                assert row["ymin"] == -90 or row["ymax"] == 90  # antipodes
                continue
            assert geodesics.holds(row, *path(start, stop, 60), 1e-9)


@given(st.lists(st.lists(st.tuples(LONGITUDE, st.floats(-80, 80)), min_size=2, max_size=3), min_size=1, max_size=5))
@settings(max_examples=share(0.5))
@pytest.mark.spec("geo.box.wraparound_only", "geo.edges.longitudes")
def test_box_omits_the_widest_gap_between_parts(parts: list[list[Point]]) -> None:
    covered = np.zeros(36000, dtype=bool)  # hundredths of a degree
    for part in parts:
        for (x0, _), (x1, _) in pairwise(part):
            step = (x1 - x0 + 180) % 360 - 180
            if abs(abs(step) - 180) < 1e-3:
                return
            low, high = sorted((x0, x0 + step))
            covered[np.arange(math.floor(low * 100), math.floor(high * 100) + 1) % 36000] = True
    found = box(shapely.MultiLineString(parts))
    ends = np.flatnonzero(covered)
    wrapped = 360 - max(np.diff(np.append(ends, ends[0] + 36000)) - 1) / 100
    planar = np.roll(covered, 18000).nonzero()[0]
    touches = any(abs(x) == 180 for part in parts for x, _ in part)  # -180 and 180 are one meridian
    width = 360 if touches else (planar[-1] - planar[0]) / 100
    if abs(width - wrapped - 36) > 0.2:
        assert found.width == pytest.approx(wrapped if width - wrapped > 36 else width, abs=0.12)


@pytest.mark.spec("geo.box.skip_nan", "geo.box.zm")
def test_nan_vertices_are_ignored() -> None:
    nan = math.nan
    line = wkb.Geometry(wkb.LINE_STRING, 3, [(0, 60, 1, nan), (nan, 70, 5, 2), (45, nan, nan, 3), (90, 60, nan, 4)])
    array = pa.array([wkb.encode(line)])
    row = geo.bounds(array, "spherical").to_pylist()[0]
    assert row["ymax"] == 70
    assert (row["xmin"], row["xmax"], row["ymin"]) == (0, 90, 60)
    assert (row["zmin"], row["zmax"], row["mmin"], row["mmax"]) == (1, 5, 2, 4)
    line.content[1] = (nan, 61, 5, 2)
    assert geo.bounds(pa.array([wkb.encode(line)]), "spherical")[0]["ymax"].as_py() == pytest.approx(67.7923457)
    lost = wkb.Geometry(wkb.POLYGON, 0, [[(nan, nan)] * 4, []])
    row = geo.bounds(pa.array([wkb.encode(lost), None]), "spherical").to_pylist()
    assert row[1] is None
    assert set(row[0].values()) == {None}
    for half, known in (((1.0, nan), ("xmin", "xmax")), ((nan, 1.0), ("ymin", "ymax"))):
        row = geo.bounds(pa.array([wkb.encode(wkb.Geometry(wkb.POINT, 0, [half]))]), "karney").to_pylist()[0]
        assert {name for name, value in row.items() if value is not None} == set(known)


@given(st.lists(trees(), min_size=1, max_size=3), st.data())
@settings(max_examples=share(0.6))
def test_invalid_wkb_is_rejected_like_on_the_plane(geometries: list[wkb.Geometry], data: Any) -> None:
    values = [bytearray(wkb.encode(geometry)) for geometry in geometries]
    value = values[data.draw(st.integers(0, len(values) - 1))]
    for _ in range(data.draw(st.integers(0, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    del value[data.draw(st.integers(0, len(value))) or len(value) :]
    array = pa.array([bytes(value) for value in values])
    try:
        planar = geo.bounds(array).to_pylist()
    except GeometryError:
        with pytest.raises(GeometryError, match="row"):
            geo.bounds(array, "andoyer")
        return
    outside = [
        row
        for row, box in enumerate(planar)
        if any(abs(box[name]) > limit for name, limit in LIMITS.items() if box[name] is not None)
    ]
    if outside:
        with pytest.raises(GeometryError, match="must be longitudes") as caught:
            geo.bounds(array, "andoyer")
        assert caught.value.row == outside[0]
        return
    for flat, whole in zip(planar, geo.bounds(array, "andoyer").to_pylist(), strict=True):
        assert {name for name, value in flat.items() if value is None} == {
            name for name, value in whole.items() if value is None
        }
        if flat["ymin"] is not None:
            assert whole["ymin"] <= flat["ymin"] <= flat["ymax"] <= whole["ymax"]


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, 1e-20])
def test_denormal_numbers_make_no_difference(tiny: float) -> None:
    for line in ([(0, tiny), (100, tiny)], [(0, tiny), (tiny, -tiny)], [(-tiny, 0), (100, tiny)]):
        found = box(shapely.LineString(line))
        assert (found.xmin, found.xmax) == (line[0][0], line[1][0])
        assert found.ymin <= min(line[0][1], line[1][1])
        assert max(line[0][1], line[1][1]) <= found.ymax < 1e-11


@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("extended", [True, False])
def test_byte_order_and_headers_make_no_difference(little: bool, extended: bool) -> None:
    ring = [(170.0, 60.0, 5.0), (-100.0, 60.0, 6.0), (-100.0, 50.0, 7.0)]  # open, which counts as closed
    polygon = wkb.Geometry(wkb.POLYGON, 1, [ring], little, extended)
    whole = wkb.Geometry(wkb.COLLECTION, 1, [wkb.Geometry(wkb.MULTI_POLYGON, 1, [polygon], not little)], little)
    row = geo.bounds(pa.array([wkb.encode(whole)]), "spherical").to_pylist()[0]
    assert BoundingBox(**row) == BoundingBox(170, -100, 50, pytest.approx(67.79234, abs=3), 5, 7)
    assert row["ymax"] == box("LINESTRING (170 60, -100 60)").ymax


def test_unclosed_ring_gets_a_closing_edge() -> None:
    ring = wkb.Geometry(wkb.POLYGON, 0, [[(0.0, 60.0), (45.0, 10.0), (90.0, 60.0)]])
    assert geo.bounds(pa.array([wkb.encode(ring)]), "spherical")[0]["ymax"].as_py() == pytest.approx(67.7923457)


def test_many_parts_of_one_geometry_leave_the_widest_gap() -> None:
    x = np.random.default_rng(4).uniform(-175, 150, 20000)
    x = np.where(np.abs(x) < 60, 61, x)
    found = box(shapely.MultiPoint(np.column_stack([x, x / 9])))
    assert (found.xmin, found.xmax) == (x[x > 0].min(), x[x < 0].max())


class TestEllipsoids:
    @pytest.mark.spec("geo.edges.rise", "geography.crs")
    @pytest.mark.parametrize("code", ["EPSG:4326", "EPSG:4269", "IAU_2015:49901", "IAU_2015:59901", "IAU_2015:49900"])
    def test_ellipsoid_follows_the_crs(self, code: str) -> None:
        crs = pyproj.CRS(code)
        assert crs.get_geod() is not None
        segments = special_edges(11, 80)
        for (start, stop), row in zip(
            segments, geo.bounds(lines(*map(list, segments)), "karney", code).to_pylist(), strict=True
        ):
            lon, lat = geodesics.geodesic(start, stop, 300, crs.get_geod())
            assert geodesics.holds(row, lon, lat, 1e-9), (start, stop, row)

    def test_unknown_ellipsoid_has_no_box(self) -> None:
        array = lines([(0, 60), (90, 60)])
        with pytest.raises(GeometryError, match="the key-value metadata has no"):
            geo.bounds(array, "karney", "projjson:missing")
        found = geo.statistics(array, "karney", "projjson:missing")
        assert found.bbox is None
        assert list(found.geospatial_types) == [2]
        assert geo.statistics(array, "spherical", "projjson:missing").bbox is not None


class TestFiles:
    @pytest.mark.spec("geo.statistics.place", "geo.box.geography")
    def test_nested_geographies_have_boxes(self) -> None:
        field = geo.geometry_field("g", edges="spherical")
        value = lines([(170, 60), (-100, 60)], [(0, 0), (1, 1)]).storage
        struct = pa.StructArray.from_arrays([value], fields=[field])
        listed = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), value, type=pa.list_(field))
        keys = pa.array(["a", "b"])
        mapped = pa.MapArray.from_arrays(
            pa.array([0, 2], pa.int32()), keys, value, type=pa.map_(pa.string(), field.with_name("value"))
        )
        table = pa.table({"s": struct.slice(0, 1), "l": listed, "m": mapped})
        sink = io.BytesIO()
        pqext.write_table(table, sink)
        file = pqext.open(io.BytesIO(sink.getvalue()))
        boxes = {
            leaf.dotted_path: file.row_groups[0].chunk(leaf).geospatial_statistics
            for leaf in file.schema.leaves
            if leaf.logical_type is not None and leaf.logical_type.GEOGRAPHY is not None
        }
        top = box("LINESTRING (170 60, -100 60)").ymax
        assert len(boxes) == 3
        for name, found in boxes.items():
            south, east = (60, -100) if name.startswith("s") else (0, 1)
            assert found.bbox == BoundingBox(170, east, south, top).to_metadata(), name
        theirs = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0)
        assert [theirs.column(index).geo_statistics is not None for index in range(4)].count(True) == 3

    def test_duckdb_reads_geography_files(self, tmp_path: Path) -> None:
        duckdb = pytest.importorskip("duckdb")
        target = tmp_path / "lines.parquet"
        table = pa.table([lines([(170, 60), (-100, 60)])], schema=pa.schema([geo.geometry_field("g", edges="karney")]))
        pqext.write_table(table, target)
        assert duckdb.sql(f"select count(*) from '{target}'").fetchall() == [(1,)]
        box = pq.ParquetFile(target).metadata.row_group(0).column(0).geo_statistics
        assert (box.xmin, box.xmax) == (170, -100)

    @pytest.mark.spec("geo.box.geography", "geo.edges.inside")
    def test_boxes_of_the_public_polygons_match_s2(self, parquet_testing: Path) -> None:
        file = pq.ParquetFile(parquet_testing / "data" / "geospatial" / "geography-polygons.parquet")
        for number in range(file.num_row_groups):
            stored = file.metadata.row_group(number).column(1).geo_statistics
            found = geo.statistics(file.read_row_group(number).column(1), edges="spherical").bbox
            if number == 28:  # that writer's box holds the north pole, though every polygon ends at -7 degrees
                continue
            ours = (found.xmin, found.xmax, found.ymin, found.ymax)
            assert ours == pytest.approx((stored.xmin, stored.xmax, stored.ymin, stored.ymax), abs=1e-9), number


@pytest.mark.parametrize("starts", [(0, 5), (0, 20), (0, 10)], ids=["overlapping", "apart", "adjacent"])
@pytest.mark.parametrize("is_query", [True, False])
def test_areas_of_several_parts_are_the_union_of_their_parts(starts: tuple[int, int], is_query: bool) -> None:
    spherely = pytest.importorskip("spherely")
    parts = [shapely.box(x, 0, x + 10, 10) for x in starts]
    area, points = shapely.multipolygons(parts), [(x - 1.3, y) for x in range(0, 32, 2) for y in (3, 7)]
    lines = [[(x, y), (x + 1.5, y + 1)] for x, y in points]
    union = spherely.union(*(spherely.create_polygon([*part.exterior.coords][:-1]) for part in parts))
    others = [spherely.create_point(*at) for at in points] + [spherely.create_linestring(line) for line in lines]
    shapes = geo.from_shapely([*map(shapely.Point, points), *map(shapely.LineString, lines)])
    expected = spherely.intersects(np.array(others), union).tolist()
    assert True in expected
    assert False in expected
    for edges in ("spherical", "karney"):
        if is_query:
            assert geo.intersects(shapes, area, edges=edges).to_pylist() == expected
            continue
        for shape, meets in [*zip(shapes, expected, strict=True)][::5]:
            row = geo.from_shapely([area])
            assert geo.intersects(row, shapely.from_wkb(shape.as_py()), edges=edges).to_pylist() == [meets]
