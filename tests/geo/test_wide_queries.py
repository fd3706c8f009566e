"""Queries wider than a hemisphere on GEOGRAPHY: a box is an interval of longitudes, a polygon has its smaller side."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import col, geo
from pqext.geo import BoundingBox
from reference import s2

WARNING = "a query polygon has"
LATITUDES, LONGITUDES = np.mgrid[-85:86:17, -180:180:15]
POINTS = list(shapely.points(LONGITUDES.ravel(), LATITUDES.ravel()))
ARRAY = geo.from_shapely(POINTS)
BOXES = [(-170, -10, 170, 10), (-90, 20, 90, 60), (-175, -80, 179, 75), (-100, -40, 95, 3), (-180, -30, 180, 30)]
ACROSS = shapely.Polygon([(175, -25), (-170, -25), (-170, -10), (175, -10)])
"""A small polygon on both sides of the antimeridian, which on a map is a wide one."""


@pytest.mark.spec("geo.predicates.geography")
@pytest.mark.parametrize("sides", BOXES)
def test_box_of_any_width_is_an_interval_of_longitudes(sides: Any) -> None:
    xmin, ymin, xmax, ymax = sides
    x, y = LONGITUDES.ravel(), LATITUDES.ravel()
    inside = (xmin <= x) & (x <= xmax) & (ymin <= y) & (y <= ymax)
    if (xmin, xmax) != (-180, 180):
        assert not inside.all()
        outside = (y >= ymin) & (y <= ymax) & ((x >= xmax) | (x <= xmin))
        assert geo.intersects(ARRAY, (xmax, ymin, xmin, ymax), edges="spherical").to_pylist() == outside.tolist()
    for box in (sides, BoundingBox(xmin, xmax, ymin, ymax)):
        assert geo.intersects(ARRAY, box, edges="spherical").to_pylist() == inside.tolist()


@pytest.mark.spec("geo.predicates.geography", "geo.edges.inside")
@pytest.mark.parametrize("query", [*(shapely.box(*sides) for sides in BOXES[:4] if sides[2] - sides[0] != 180), ACROSS])
def test_polygon_wider_than_a_hemisphere_matches_s2_and_warns(query: Any, tmp_path: Path) -> None:
    expected, certain = s2.Oracle(POINTS, query).related("intersects")
    rows = np.flatnonzero(certain)
    assert len(rows) > 200
    expected = [expected[row] for row in rows]
    xmin, ymin, xmax, ymax = query.bounds
    box = rf"pass the box \({xmin:.10g}, {ymin:.10g}, {xmax:.10g}, {ymax:.10g}\)"
    array = ARRAY.take(pa.array(rows))
    with pytest.warns(UserWarning, match=f"GEOGRAPHY: {WARNING} edges of 180 degrees .*{box}"):
        assert geo.intersects(array, query, edges="spherical").to_pylist() == expected
    assert geo.intersects(array, query).to_pylist() == shapely.intersects(np.array(POINTS)[rows], query).tolist()
    path = tmp_path / "points.parquet"
    table = pa.table({"id": rows, "at": array})
    pqext.write_table(table, path, geometry={"at": {"edges": "spherical"}}, row_group_rows=20)
    for condition, wanted in ((col("at").intersects(query), True), (~col("at").intersects(query), False)):
        with pytest.warns(UserWarning, match=f"GEOGRAPHY column at: {WARNING} .*{box}") as caught:
            found = pqext.read_table(path, filter=condition)["id"].to_pylist()
        assert caught[0].filename == __file__
        assert found == [row for row, answer in zip(rows.tolist(), expected, strict=True) if answer is wanted]


@pytest.mark.spec("geo.edges.inside")
def test_outline_of_more_than_half_the_globe_warns() -> None:
    query = shapely.segmentize(shapely.box(-170, -80, 170, 80), 5)
    expected, certain = s2.Oracle(POINTS, query).related("intersects")
    with pytest.warns(UserWarning, match=f"{WARNING} an outline around more than half of the globe"):
        found = geo.intersects(ARRAY, query, edges="spherical").to_pylist()
    assert [f for f, sure in zip(found, certain, strict=True) if sure] == [
        e for e, sure in zip(expected, certain, strict=True) if sure
    ]


@pytest.mark.parametrize(
    "query",
    [
        *BOXES,
        shapely.segmentize(shapely.box(-80, -10, 80, 10), 5),
        shapely.segmentize(shapely.box(-170, -10, 170, 10), 5),  # wide, but as on a map
        shapely.MultiPolygon([shapely.box(170, -20, 180, -10), shapely.box(-180, -20, -170, -10)]),
        shapely.Polygon([*((x, -70) for x in range(-180, 181, 10)), (180, -90), (-180, -90)]),  # Antarctica on a map
        shapely.LineString([(-170, 0), (170, 0)]),
        shapely.Polygon(),
    ],
    ids=str,
)
def test_query_equal_on_a_plane_does_not_warn(query: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = geo.intersects(ARRAY, query, edges="spherical").to_pylist()
        planar = geo.intersects(ARRAY, query).to_pylist()
    if not isinstance(query, tuple) and query.geom_type.endswith("Polygon") and "-90" not in str(query):
        near = shapely.dwithin(np.array(POINTS), query.boundary, 1.0)
        assert [f for f, n in zip(found, near, strict=True) if not n] == [
            p for p, n in zip(planar, near, strict=True) if not n
        ]


def test_planar_columns_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        geo.intersects(ARRAY, shapely.box(-170, -10, 170, 10))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_box_of_all_longitudes_that_ends_at_a_pole_covers_polar_caps(sign: int, edges: Any) -> None:
    south, north = sorted((10.0 * sign, 90.0 * sign))
    # A chord between two points of one parallel runs nearer the pole, so the cap from 10 degrees is inside the box.
    caps = [shapely.Polygon([(lon, lat * sign) for lon in range(-180, 180, 30)]) for lat in (80, 20, 10, 5)]
    array = geo.from_shapely(caps)
    box = (-180, south, 180, north)
    for operation in (geo.covered_by, geo.within):
        assert operation(array, box, edges=edges).to_pylist() == [True, True, True, False]
    for operation in (geo.overlaps, geo.touches):
        assert operation(array, box, edges=edges).to_pylist() == [False] * 4
    assert geo.intersects(array, box, edges=edges).to_pylist() == [True] * 4


@pytest.mark.parametrize("x", [1e7, -1e308])
def test_boxes_far_beyond_longitudes_are_an_error_or_the_whole_globe(x: float) -> None:
    array = geo.from_shapely([shapely.Point(3, 4), shapely.box(-180, -90, 180, 90)])
    with pytest.raises(pqext.ParquetError, match="the query's coordinates are not longitudes and latitudes"):
        geo.intersects(array, (x, 0, x, 1), "spherical")
    assert geo.intersects(array, (-abs(x), -90, abs(x), 90), "spherical").to_pylist() == [True, True]
