"""Geometries of the globe as planar ones of short chords, against points on their edges and boxes around them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo.predicates import geodesic_chains, unrolling
from reference import geodesics
from reference.effort import share


def degrees(most: float) -> st.SearchStrategy[float]:
    """Numbers that GEOS can compute distances with: no subnormal ones."""
    return st.floats(-most, most).map(lambda value: round(value, 9))


POINT = st.tuples(degrees(180), degrees(85))


@pytest.mark.spec("geo.edges.longitudes")
@given(st.lists(POINT, min_size=2, max_size=4), st.sampled_from(["spherical", "karney"]))
@settings(max_examples=share(0.15))
def test_chords_follow_the_edges(vertices: list[tuple[float, float]], edges: geo.types.Edges) -> None:
    path = geodesics.great_circle if edges == "spherical" else geodesics.geodesic
    if any(abs(abs((b[0] - a[0] + 180) % 360 - 180) - 180) < 1 for a, b in pairwise(vertices)):
        return
    line = shapely.LineString(vertices)
    (found,) = geo.densify([line], edges, tolerance=1e-2)
    for start, stop in pairwise(vertices):
        lon, lat = path(start, stop, 50)
        away = [shapely.distance(found, shapely.points(lon + turn, lat)) for turn in (-360, 0, 360)]
        # The tolerance is along the ground, where a degree of longitude is shorter.
        assert (np.min(away, axis=0) * np.cos(np.radians(lat)) <= 2e-2).all()
    box = geo.bounds(geo.from_shapely([line]), edges).to_pylist()[0]
    assert geodesics.holds(box, *shapely.get_coordinates(found).T, 1e-6)  # chords end at places rounded to 1e-7


@pytest.mark.parametrize("edges", ["spherical", "andoyer"])
@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("LINESTRING (0 60, 90 60)", "POLYGON ((44 67.7, 46 67.7, 46 67.9, 44 67.9, 44 67.7))", "POINT (45 60)"),
        ("LINESTRING (179 0, -179 0)", "POINT (-179.5 0)", "POINT (0 0)"),
        ("POLYGON ((170 0, -170 0, -170 10, 170 10, 170 0))", "POINT (-175 5)", "POINT (0 5)"),
        ("POLYGON ((170 0, -170 0, -170 10, 170 10, 170 0))", "POINT (175 10.01)", "POINT (165 5)"),
        ("POLYGON ((-120 60, 0 60, 120 60, -120 60))", "POINT (13 89)", "POINT (60 61)"),
        ("POLYGON ((-120 -60, 0 -60, 120 -60, -120 -60))", "POINT (-170 -90)", "POINT (0 0)"),
        ("LINESTRING (0 80, 180 80)", "POINT (180 85)", "POINT (90 85)"),
        ("MULTIPOINT (180 1, 3 4)", "POINT (3 4)", "POINT (4 4)"),
    ],
)
def test_result_cut_at_the_antimeridian_is_comparable(
    text: str, inside: str, outside: str, edges: geo.types.Edges
) -> None:
    (found,) = geo.densify(geo.from_shapely([shapely.from_wkt(text)]), edges)
    assert found.is_valid
    west, south, east, north = found.bounds
    assert west >= -180
    assert east <= 180
    assert south >= -90
    assert north <= 90
    assert found.distance(shapely.from_wkt(inside)) < 1e-9
    assert found.distance(shapely.from_wkt(outside)) > 0.5


def test_longitudes_continue_without_a_cut() -> None:
    (found,) = geo.densify([shapely.LineString([(170, 0), (-170, 0)])], split=False)
    assert found.geom_type == "LineString"
    assert found.bounds[2] - found.bounds[0] == 20


def test_finer_tolerance_adds_chords() -> None:
    line = shapely.LineString([(0, 60), (90, 60)])
    counts = [len(geo.densify([line], tolerance=tolerance)[0].coords) for tolerance in (1e-2, 1e-4, 1e-6)]
    assert counts == sorted(counts)
    assert counts[-1] > 500


def test_missing_and_empty_geometries_are_preserved() -> None:
    shapes = np.array([None, shapely.Point(), shapely.Point(1, 2, 3)], dtype=object)
    found: list[Any] = geo.densify(shapes).tolist()
    assert found[0] is None
    assert found[1].is_empty
    assert found[2].equals(shapely.Point(1, 2))
    assert not found[2].has_z


def test_extension_array_provides_its_edges() -> None:
    line = geo.from_shapely([shapely.LineString([(0, 60), (90, 60)])])
    for edges, top in (("spherical", 67.7923), ("karney", 67.7985)):
        field = geo.geometry_field("g", edges=edges)
        table = geo.as_extension(pa.table([line], schema=pa.schema([field])))
        assert geo.densify(table["g"])[0].bounds[3] == pytest.approx(top, abs=1e-2)
    planar = geo.as_extension(pa.table([line], schema=pa.schema([geo.geometry_field("g")])))
    assert geo.densify(planar["g"])[0].bounds[3] == pytest.approx(67.7923, abs=1e-2)
    with pytest.raises(ValueError, match="planar"):
        geo.densify(planar["g"], "planar")


@pytest.mark.spec("geography.range")
def test_invalid_arguments_are_rejected() -> None:
    for text in ("POINT (181 0)", "LINESTRING (0 0, 1 91)"):
        with pytest.raises(GeometryError, match=r"row 1: .*not longitudes"):
            geo.densify([None, shapely.from_wkt(text)])
    with pytest.raises(ValueError, match="tolerance"):
        geo.densify([shapely.Point(0, 0)], tolerance=0)
    with pytest.raises(ValueError, match="planar"):
        geo.densify([shapely.Point(0, 0)], "planar")
    with pytest.raises(GeometryError, match="geographic CRS"):
        geo.densify([shapely.Point(0, 0)], "karney", "EPSG:3857")


@pytest.mark.parametrize("tolerance", [1e-6, unrolling.TOLERANCE, 1e-3])
@pytest.mark.parametrize("geod", [Geod(a=6_371_000, f=0), Geod(ellps="WGS84")], ids=["sphere", "ellipsoid"])
def test_edges_treated_as_straight_are_within_tolerance_of_pyproj(geod: Geod, tolerance: float) -> None:
    chance = np.random.default_rng(5)
    x0, y0 = chance.uniform(-180, 180, 100_000), chance.uniform(-85, 85, 100_000)
    along, up = chance.uniform(-1, 1, (2, 100_000)) * 10 ** chance.uniform(-4, 0, (2, 100_000))
    x1, y1 = x0 + along, np.clip(y0 + up, -85, 85)
    short = geodesic_chains._are_straight(x0, y0, x1, y1, tolerance)
    assert 0.1 < short.mean() < 0.99
    azimuth, _, length = geod.inv(x0, y0, x1, y1)
    x, y, _ = geod.fwd(x0, y0, azimuth, np.asarray(length) / 2)
    across = (np.asarray(x) - (x0 + x1) / 2 + 180) % 360 - 180
    assert np.hypot(across * np.cos(np.radians(y)), np.asarray(y) - (y0 + y1) / 2)[short].max() < tolerance


@pytest.mark.parametrize(("west", "south"), [(0.0, 30.0), (0.0, 10.0), (-170.0, -60.0), (10.0, 89.0)])
@pytest.mark.parametrize(("width", "rise"), [(1.0, 0.0), (90.0, -20.0), (-120.0, 0.5), (40.0, -25.0)])
def test_area_below_an_edge_matches_the_geodesic_polygon(
    west: float, south: float, width: float, rise: float
) -> None:
    x, y = np.array([west, west + width]), np.array([south, south + rise])
    ring = [x[0], x[1], x[1], x[0]], [0.0, 0.0, y[1], y[0]]  # counterclockwise, positive, if eastward in the north
    expected, _ = Geod(a=1, b=1).polygon_area_perimeter(*ring)
    assert unrolling.equator_area(x, y) == pytest.approx(expected, rel=1e-9, abs=1e-12)
