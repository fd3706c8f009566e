"""Rows of a scan nearest to a geometry: those of shapely and pyproj over all rows, read in the order of distance."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from pyproj import Geod

import pqext
from pqext import col, geo
from pqext.dataset.pruning.search_radius import search_radii
from reference.effort import share

SHAPES = st.lists(
    st.none() | st.just("POINT EMPTY")
    | st.tuples(st.integers(-20, 20), st.integers(-20, 20)).map(lambda at: f"POINT ({at[0]} {at[1]})")
    | st.tuples(*[st.integers(-20, 20)] * 4).map(lambda at: f"LINESTRING ({at[0]} {at[1]}, {at[2]} {at[3]})"),
    max_size=12,
)  # fmt: skip
QUERIES = ["POINT (0 0)", "POINT (18 -3.5)", "LINESTRING (-5 -5, 30 -4)", "POLYGON ((0 0, 4 0, 4 4, 0 0))"]


def file_of(texts: Any, rows: int = 2, page_rows: int = 1, **choice: Any) -> bytes:
    table = pa.table({"id": range(len(texts)), "geom": geo.from_wkt(pa.array(texts, pa.string()))})
    pqext.write_table(
        table, sink := io.BytesIO(), row_group_rows=rows, page_rows=page_rows,
        geometry={"geom": {"crs": "EPSG:3857"} | choice},
    )  # fmt: skip
    return sink.getvalue()


def nearest_ids(distances: Any, k: int, limit: float = math.inf) -> list[int]:
    """The first rows by distance, then by position."""
    known = [(float(away), row) for row, away in enumerate(distances) if away <= limit]
    return [row for _, row in sorted(known)[:k]]


@pytest.mark.spec("querying.nearest", "querying.distances")
@settings(max_examples=share(1))
@given(SHAPES, st.sampled_from(QUERIES), st.integers(1, 5), st.none() | st.sampled_from([0.5, 3.0, 10.0, 80.0]))
def test_nearest_rows_are_those_of_shapely(texts: list[Any], query: str, k: int, limit: float | None) -> None:
    point = shapely.from_wkt(query)
    distances = shapely.distance(shapely.from_wkt(texts), point)
    scan = pqext.scan(file_of(texts)).nearest(point, k, column="geom", max_distance=limit)
    expected = nearest_ids(distances, k, math.inf if limit is None else limit)
    result = scan.to_table()
    assert result["id"].to_pylist() == expected
    assert result["distance"].to_pylist() == [distances[row] for row in expected]
    if limit is not None:
        assert pqext.scan(file_of(texts)).filter(col("geom").st_distance(point) < limit).count() == (
            int(np.sum(distances < limit))
        )


@pytest.mark.spec("querying.nearest", "querying.distances")
@pytest.mark.parametrize("seed", range(6))
def test_nearest_geographies_are_those_of_pyproj(seed: int) -> None:
    random = np.random.default_rng(seed)
    centre = random.uniform((-180, -80), (180, 80))
    near = np.concatenate([random.uniform((-180, -90), (180, 90), (60, 2)), centre + random.normal(0, 2, (60, 2))])
    x, y = (near[:, 0] + 180) % 360 - 180, np.clip(near[:, 1], -90, 90)
    texts = [f"POINT ({first!r} {second!r})" for first, second in zip(x.tolist(), y.tolist(), strict=True)]
    file = file_of(texts, rows=10, page_rows=3, crs="OGC:CRS84", edges="karney", order="hilbert")
    ids = pqext.read_table(file)["id"].to_numpy()
    k = int(random.integers(1, 30))
    distances = Geod(ellps="WGS84").inv(*np.broadcast_arrays(*centre, x, y))[2]
    result = pqext.scan(file).nearest(shapely.Point(centre), k).to_table()
    assert sorted(ids[[*map(ids.tolist().index, result["id"].to_pylist())]]) == sorted(nearest_ids(distances, k))
    np.testing.assert_allclose(result["distance"].to_numpy(), np.sort(distances)[:k], rtol=1e-9)


def grid() -> bytes:
    """2,500 points on a grid, in Hilbert order, in 25 row groups of 10 pages each."""
    x, y = np.meshgrid(np.arange(50.0), np.arange(50.0))
    table = pa.table({"geom": geo.from_points(x.ravel(), y.ravel()), "id": np.arange(2500)})
    table = geo.sort(table, "geom")
    pqext.write_table(
        table, sink := io.BytesIO(), row_group_rows=100, page_rows=10, geometry={"geom": "EPSG:3857"},
        geoparquet=False,
    )  # fmt: skip
    return sink.getvalue()


@pytest.mark.spec("querying.nearest")
def test_pages_farther_away_are_not_read() -> None:
    file = grid()
    scan = pqext.scan(file).nearest(shapely.Point(31.2, 17.1), 4)
    assert scan.to_table()["id"].to_pylist() == [17 * 50 + 31, 17 * 50 + 32, 18 * 50 + 31, 16 * 50 + 31]
    assert scan.metrics is not None
    assert scan.metrics.rows_evaluated <= 200
    within = pqext.scan(file).filter(col("geom").dwithin(shapely.Point(31.2, 17.1), 6))
    reads = {plan.index for task in within.plan() for plan in task.row_groups if plan.prune_reason is None}
    with pqext.open(file) as opened:  # the answer stands if all other row groups are damaged
        damaged = bytearray(file)
        for group in opened.row_groups:
            if group.index not in reads:
                for chunk in group.metadata.columns:
                    start = chunk.meta_data.data_page_offset
                    damaged[start : start + 40] = b"\xff" * 40
    assert len(reads) < 8
    again = pqext.scan(bytes(damaged)).nearest(shapely.Point(31.2, 17.1), 4)
    assert again.to_table().equals(scan.to_table())


@pytest.mark.parametrize("rows", [1, 4, 60])
@pytest.mark.parametrize("at", [(31.2, 16.4), (24.5, 24.5), (3.5, 3.5), (-10.0, 3.0), (200.0, 60.0)])
def test_first_radius_contains_enough_rows_of_an_even_distribution(at: tuple[float, float], rows: int) -> None:
    x, y = np.meshgrid(np.arange(50.0), np.arange(50.0))
    distances = shapely.distance(shapely.points(x.ravel(), y.ravel()), shapely.Point(at))
    with pqext.open(grid()) as file:
        radii = [*search_radii(col("geom"), (*at, *at), file.row_groups, rows)]
    assert np.count_nonzero(distances <= radii[0]) >= rows
    assert rows > 1 or radii[0] <= distances.min() + 10  # the width of a row group
    assert radii == sorted(set(radii))


@pytest.mark.spec("querying.nearest")
@pytest.mark.parametrize("k", [1, 40, 2499, 2500, 9999])
@pytest.mark.parametrize("at", [(24.6, 24.6), (-500.0, 3.0), (1e9, 1e9)])
def test_every_number_of_rows_is_found_from_every_place(k: int, at: tuple[float, float]) -> None:
    x, y = np.meshgrid(np.arange(50.0), np.arange(50.0))
    distances = np.sort(np.hypot(x.ravel() - at[0], y.ravel() - at[1]))
    result = pqext.scan(grid()).nearest(shapely.Point(at), k).to_table()
    np.testing.assert_allclose(result["distance"].to_numpy(), distances[:k], rtol=1e-12)


@pytest.mark.spec("querying.nearest")
def test_filters_columns_and_files_combine_with_nearest(tmp_path: Path) -> None:
    for number, first in enumerate((0, 100)):
        x = np.arange(first, first + 100.0)
        table = pa.table({"geom": geo.from_points(x, x * 0), "id": x.astype(np.int64)})
        pqext.write_table(table, tmp_path / f"{number}.parquet", row_group_rows=10, geometry={"geom": "EPSG:3857"})
    scan = pqext.scan(tmp_path).filter(col("id") % 7 == 0).select("id").nearest(shapely.Point(100.4, 0), 3)
    assert scan.to_table().to_pylist() == [
        {"id": 98, "distance": pytest.approx(2.4)}, {"id": 105, "distance": pytest.approx(4.6)},
        {"id": 91, "distance": pytest.approx(9.4)},
    ]  # fmt: skip
    assert scan.count() == 3
    by_order = pqext.scan(tmp_path).order_by(col("geom").st_distance(shapely.Point(100.4, 0))).limit(2)
    assert by_order.to_table()["id"].to_pylist() == [100, 101]


@pytest.mark.spec("querying.distances")
def test_distances_skip_row_groups() -> None:
    file = grid()
    for text, is_pruning in {
        "st_distance(geom, st_point(3, 3)) < 2": True, "st_distance(geom, st_point(3, 3)) = 1": True,
        "st_distance(geom, st_point(3, 3)) > 2": False, "st_distance(geom, geom) < 2": False,
        "not st_distance(geom, st_point(3, 3)) > 2": True, "not st_distance(geom, st_point(3, 3)) < 2": False,
    }.items():  # fmt: skip
        scan = pqext.scan(file).filter(text)
        left = sum(plan.prune_reason is None for task in scan.plan() for plan in task.row_groups)
        assert (left < 6) is is_pruning, text
    assert pqext.scan(file).filter("st_distance(geom, st_point(3, 3)) < 2").count() == 9


@pytest.mark.spec("querying.distances")
@pytest.mark.parametrize("x", [0.1, 1 / 3, 1e7 / 3, -179.7])
def test_rounding_of_distances_loses_no_row(x: float) -> None:
    segment = shapely.LineString([(x, -1e5), (x, 1e5)])
    random = np.random.default_rng(5)
    points = shapely.points(x + random.uniform(0, 1e-3, 40), random.uniform(-1e5, 1e5, 40))
    distances = shapely.distance(points, segment)
    file = file_of(shapely.to_wkt(points, rounding_precision=-1).tolist(), rows=1, check_range=False)
    points = shapely.from_wkb(pqext.read_table(file)["geom"].to_pylist())
    distances = shapely.distance(points, segment)
    for row in range(0, 40, 8):
        condition = col("geom").st_distance(segment) <= float(distances[row])
        assert pqext.read_table(file, ["id"], condition)["id"].to_pylist() == (
            np.flatnonzero(distances <= distances[row]).tolist()
        )


def test_errors_name_the_argument() -> None:
    file = file_of(["POINT (1 1)"])
    point, scan = shapely.Point(0, 0), pqext.scan(file)
    with pytest.raises(ValueError, match="k must be a positive integer, not 0"):
        scan.nearest(point, 0)
    with pytest.raises(ValueError, match="column 'id' is selected twice"):
        scan.nearest(point, distance_column="id")
    with pytest.raises(ValueError, match=r"after nearest\(\)"):
        scan.nearest(point).nearest(point)
    near = scan.nearest(point)
    for query in (near, near.limit(1)):
        with pytest.raises(ValueError, match=r"filter\(\) after nearest\(\) is not supported"):
            query.filter("id = 1")
        with pytest.raises(ValueError, match=r"order_by\(\) after nearest\(\) is not supported"):
            query.order_by("id")
    with pytest.raises(ValueError, match=r"filter\(\) after limit\(\) is not supported"):
        scan.limit(1).filter("id = 1")
    with pytest.raises(TypeError, match="column 'id' contains no geometries"):
        scan.nearest(point, column="id").to_table()
    with pytest.raises(ValueError, match="no geometry column; select a column with column="):
        pqext.scan(file_of_numbers()).nearest(point)
    with pytest.raises(TypeError, match="expected a box"):
        scan.nearest("POINT (0 0)")
    assert scan.nearest(shapely.Point()).to_table().num_rows == 0


def file_of_numbers() -> bytes:
    pqext.write_table(pa.table({"id": [1]}), sink := io.BytesIO())
    return sink.getvalue()


@pytest.mark.parametrize("distance", [math.nan, -1.0, -math.inf, np.float32("nan")])
def test_maximum_distances_below_zero_or_nan_are_rejected(distance: Any) -> None:
    with pytest.raises(ValueError, match="max_distance must be a number of at least 0"):
        pqext.scan(file_of(["POINT (1 2)"])).nearest(shapely.Point(0, 0), column="geom", max_distance=distance)


@pytest.mark.parametrize("distance", ["3", True, [1]])
def test_maximum_distances_that_are_not_numbers_are_rejected(distance: Any) -> None:
    with pytest.raises(TypeError, match="max_distance must be a number"):
        pqext.scan(file_of(["POINT (1 2)"])).nearest(shapely.Point(0, 0), column="geom", max_distance=distance)


def test_number_of_rows_may_be_a_numpy_integer() -> None:
    scan = pqext.scan(file_of(["POINT (1 2)", "POINT (5 5)", "POINT (0 1)"]))
    result = scan.nearest(shapely.Point(0, 0), np.int64(2), column="geom", max_distance=np.float32(9))
    assert result.to_table()["id"].to_pylist() == [2, 0]
