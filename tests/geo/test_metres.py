"""Lengths, areas and distances on the ellipsoid, against pyproj's own measures of the same geometries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from pyproj import Geod

from pqext.geo.predicates import metres
from pqext.geo.types import GeospatialType

WGS84 = Geod(ellps="WGS84")
TYPE = GeospatialType(edges="karney")
SHAPES = [
    "POINT (1 2)", "LINESTRING (0 0, 10 10, 20 0)", "POLYGON ((0 0, 3 0, 3 3, 0 3, 0 0), (1 1, 2 1, 2 2, 1 2, 1 1))",
    "MULTILINESTRING ((0 0, 0 1), (170 0, -170 0))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 7 5, 7 7, 5 5)))",
    "GEOMETRYCOLLECTION (POINT (0 0), LINESTRING (0 0, 1 0))", "LINESTRING EMPTY",
]  # fmt: skip


def shapes(*wkt: str | None) -> Any:
    return np.array([None if text is None else shapely.from_wkt(text) for text in wkt], dtype=object)


def test_lengths_are_geodesics_between_vertices() -> None:
    expected = []
    for shape in shapes(*SHAPES):
        borders = [part.boundary if shapely.area(part) else part for part in getattr(shape, "geoms", [shape])]
        lines = [line for border in borders for line in getattr(border, "geoms", [border]) if shapely.length(line)]
        expected.append(sum(WGS84.line_length(*line.xy) for line in lines))
    assert metres.lengths(shapes(*SHAPES), TYPE) == pytest.approx(expected)
    assert expected[3] > 2e6  # over the antimeridian the short way


def test_areas_exclude_holes() -> None:
    expected = []
    for shape in shapes(*SHAPES):
        parts = [part for part in getattr(shape, "geoms", [shape]) if part.geom_type == "Polygon"]
        area = 0.0
        for part in parts:
            area += abs(WGS84.polygon_area_perimeter(*part.exterior.xy)[0])
            area -= sum(abs(WGS84.polygon_area_perimeter(*ring.xy)[0]) for ring in part.interiors)
        expected.append(area)
    assert metres.areas(shapes(*SHAPES), TYPE) == pytest.approx(expected)


def test_point_distances_are_geodesics_and_zero_for_touching_shapes() -> None:
    one = shapes("POINT (179 10)", "POINT (0 0)", "LINESTRING (-1 0, 1 0)", "POINT (0 1)", None)
    other = shapes("POINT (-179 10)", "POINT EMPTY", "LINESTRING (0 -1, 0 1)", "LINESTRING (-1 0, 1 0)", "POINT (0 0)")
    found = metres.distances(one, other, TYPE)
    assert found[0] == pytest.approx(WGS84.inv(179, 10, -179, 10)[2])
    assert np.isnan(found[[1, 4]]).all()
    assert found[2] == 0
    assert found[3] == pytest.approx(WGS84.inv(0, 0, 0, 1)[2], rel=1e-6)


@pytest.mark.parametrize("corner", ["-180.1 0", "180.1 0", "0 -90.1", "0 90.1", "-181 91", "181 -91"])
def test_coordinates_out_of_geographic_range_have_no_measure(corner: str) -> None:
    outside = shapes(f"LINESTRING (0 0, {corner})", "LINESTRING (0 0, 1 0)", None)
    inside = shapes("POINT (-180 -90)", "POINT (180 90)", "POINT (0 0)")
    for found in (metres.lengths(outside, TYPE), metres.areas(outside, TYPE), metres.distances(outside, inside, TYPE)):
        assert np.isnan(found).tolist() == [True, False, True]
    assert not np.isnan(metres.distances(inside, inside, TYPE)).any()


def test_shapes_meet_along_edges_of_their_type() -> None:
    spherely = pytest.importorskip("spherely")
    corners = [(0, 40), (60, 40), (60, 50), (0, 50)]
    area = shapely.Polygon(corners)  # its northern edge reaches 53.995 degrees on the sphere, 54.005 on the ellipsoid
    points = [(30, 53.99), (30, 54.0)]
    found = metres.distances(shapely.points(points), np.array([area] * 2), GeospatialType(edges="spherical"))
    on_sphere = np.array([spherely.create_point(*point) for point in points])
    expected = spherely.intersects(on_sphere, spherely.create_polygon(corners))
    assert (found == 0).tolist() == expected.tolist() == [True, False]


@pytest.mark.parametrize("radius", [0.4, 0.9, 1.9, 40.5])
def test_distances_to_outlines_of_a_few_metres_match_the_nearest_vertex(radius: float) -> None:
    turns = np.linspace(0, 360, 193)
    x, y, _ = WGS84.fwd(np.full(193, 7.0), np.full(193, 50.0), turns, np.full(193, radius))
    azimuths = np.linspace(3, 360, 40)
    east, north, _ = WGS84.fwd(np.full(40, 7.0), np.full(40, 50.0), azimuths, np.full(40, radius * 2))
    rows = np.array([shapely.Point(*point) for point in zip(east, north, strict=True)], dtype=object)
    outlines = np.full(40, shapely.LineString(np.column_stack([x, y])), dtype=object)
    nearest = [WGS84.inv(np.full(193, a), np.full(193, b), x, y)[2].min() for a, b in zip(east, north, strict=True)]
    assert metres.distances(rows, outlines, TYPE) == pytest.approx(np.array(nearest), abs=radius / 2000)


def test_single_geometry_on_either_side_is_unrolled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    unrolled: list[Any] = []
    unroll_query = metres.globe.unroll_query

    def record(query: Any, *arguments: Any) -> Any:
        unrolled.append(query)
        return unroll_query(query, *arguments)

    monkeypatch.setattr(metres.globe, "unroll_query", record)
    meridian, points = shapes("LINESTRING (10 40, 10 50)"), shapely.points(np.arange(10.0, 16.0), 45.0)
    latitudes = np.linspace(44, 46, 20_001)
    for first, second in ((meridian, points), (points, meridian)):
        unrolled.clear()
        found = metres.distances(first, second, TYPE)
        assert len(unrolled) == 1
        for east, distance in zip(range(10, 16), found, strict=True):
            vertices = np.full(20_001, 10.0), latitudes, np.full(20_001, float(east)), np.full(20_001, 45.0)
            assert distance == pytest.approx(WGS84.inv(*vertices)[2].min(), rel=1e-6)
