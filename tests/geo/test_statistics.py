"""Boxes of rows and statistics of columns, against shapely, pyarrow's view of the public files, and brute force."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.core.format import metadata
from pqext.geo import BoundingBox, summary
from reference.geometries import LATITUDE, LONGITUDE, shapes

PROJECTED = "EPSG:3857"


def box_of(statistics: metadata.GeospatialStatistics) -> BoundingBox | None:
    return None if statistics.bbox is None else BoundingBox.from_metadata(statistics.bbox)


def wkb(*texts: str | None) -> pa.Array:
    return geo.from_shapely([None if text is None else shapely.from_wkt(text) for text in texts])


@given(st.lists(st.one_of(st.none(), shapes()), max_size=8))
def test_row_boxes_match_shapely(geometries: list[Any]) -> None:
    found = geo.bounds(geo.from_shapely(geometries))
    expected = shapely.bounds(np.array(geometries, dtype=object))
    for row, (xmin, ymin, xmax, ymax), geometry in zip(found.to_pylist(), expected, geometries, strict=True):
        if geometry is None:
            assert row is None
        elif geometry.is_empty:
            assert set(row.values()) == {None}
        else:
            assert (row["xmin"], row["xmax"], row["ymin"], row["ymax"]) == (xmin, xmax, ymin, ymax)


@pytest.mark.spec("geo.box.zm", "geo.box.skip_nan", "geo.box.dimension_omitted", "geo.box.xy")
def test_each_dimension_is_bounded_independently() -> None:
    found = geo.statistics(wkb("POINT Z (1 2 3)", "POINT M (5 6 7)", None, "POINT (9 0)"))
    assert box_of(found) == BoundingBox(1, 9, 0, 6, 3, 3, 7, 7)
    assert list(found.geospatial_types) == [1, 1001, 2001]
    nan = math.nan
    no_y = geo.from_points([1.0, 2.0], [nan, nan])
    assert geo.statistics(no_y).bbox is None
    assert list(geo.statistics(no_y).geospatial_types) == [1]
    y_elsewhere = geo.from_points([1.0, nan], [nan, 4.0], [nan, nan])
    assert box_of(geo.statistics(y_elsewhere)) == BoundingBox(1, 1, 4, 4)


@pytest.mark.spec("geo.box.xy", "geo.types.unknown")
def test_empty_geometries_have_types_but_no_box() -> None:
    found = geo.statistics(wkb("POINT EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY"))
    assert found == metadata.GeospatialStatistics(bbox=None, geospatial_types=[1, 3, 7])
    assert geo.statistics(wkb(None)) == metadata.GeospatialStatistics(bbox=None, geospatial_types=[])


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_coordinate_has_no_box(at: int, value: float) -> None:
    coordinates = [1.0, 2.0, 3.0]
    coordinates[at] = value
    x, y, z = coordinates
    found = geo.statistics(geo.from_points([x, 0.0], [y, 0.0], [z, 0.0]), crs=PROJECTED)
    assert found == metadata.GeospatialStatistics(bbox=None, geospatial_types=[1001])


@pytest.mark.spec("geo.types.several", "geo.types.unique", "geo.types.codes")
def test_type_codes_are_unique_and_sorted() -> None:
    array = wkb("MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))", "POLYGON ((0 0, 1 0, 1 1, 0 0))", "POLYGON EMPTY")
    chunked = pa.chunked_array([array, wkb("POINT ZM (1 2 3 4)"), array])
    assert list(geo.statistics(chunked).geospatial_types) == [3, 6, 3001]


FIJI = ("LINESTRING (177 -18, 179.5 -17)", "POINT (-179 -20)", "POINT (178 -19)", None, "POINT EMPTY")


@pytest.mark.spec("geo.box.wraparound", "geo.box.wraparound_only")
def test_box_wraps_around_the_antimeridian_in_a_geographic_crs_only() -> None:
    assert box_of(geo.statistics(wkb(*FIJI))) == BoundingBox(177, -179, -20, -17)
    assert box_of(geo.statistics(wkb(*FIJI), crs="EPSG:4326")) == BoundingBox(177, -179, -20, -17)
    for crs in (PROJECTED, "srid:0", "no such crs", "projjson:missing"):
        assert box_of(geo.statistics(wkb(*FIJI), crs=crs)) == BoundingBox(-179, 179.5, -20, -17)


@pytest.mark.spec("geo.box.wraparound", "geo.box.wraparound_only")
@pytest.mark.parametrize("edges", ["planar", "spherical"])
def test_box_wraps_around_new_zealand_and_not_around_a_gap_in_worldwide_points(edges: Any) -> None:
    chance = np.random.default_rng(3)
    for rows in (300, 3000):
        x, y = chance.uniform(-180, 180, rows), chance.uniform(-89, 89, rows)
        world = shapely.points(x, y)
        assert max(np.diff(np.sort(x))) > x.min() + 360 - x.max()  # the widest gap is elsewhere
        xmin, ymin, xmax, ymax = shapely.total_bounds(world)
        expected = BoundingBox(xmin, xmax, ymin, ymax)
        assert box_of(geo.statistics(geo.from_shapely(world), edges=edges)) == expected
        assert geo.bounds(geo.from_shapely([shapely.MultiPoint(world)]), "spherical")[0]["xmin"].as_py() == xmin
        parts = [geo.statistics(geo.from_shapely(part), edges=edges) for part in np.array_split(world, 3)]
        assert box_of(geo.merge(parts)) == expected
    zealand = wkb("POINT (166.5 -46)", "POINT (178.5 -38)", "POINT (-176.5 -44)")  # the last on the Chatham Islands
    assert box_of(geo.statistics(zealand, edges=edges)) == BoundingBox(166.5, -176.5, -46, -38)


@pytest.mark.spec("geo.box.wraparound_only", "geometry.edges")
def test_planar_line_from_east_to_west_prevents_a_wrapping_box() -> None:
    crossing = "LINESTRING (179 0, -179 1)"  # planar edges: through x = 0
    assert box_of(geo.statistics(wkb(*FIJI, crossing))) == BoundingBox(-179, 179.5, -20, 1)
    half_way = "LINESTRING (-170 0, 100 1)"
    assert box_of(geo.statistics(wkb(*FIJI, half_way))) == BoundingBox(177, 100, -20, 1)


def test_box_does_not_wrap_if_an_x_is_not_a_longitude() -> None:
    assert box_of(geo.statistics(wkb(*FIJI, "POINT (181 0)"))) == BoundingBox(-179, 181, -20, 0)


@pytest.mark.spec("geo.box.wraparound", "geo.box.wraparound_only")
@given(st.lists(shapes(), min_size=1, max_size=6), st.integers(0, 6))
def test_box_contains_every_geometry_and_is_no_wider_than_the_planar_box(geometries: list[Any], cut: int) -> None:
    array = geo.from_shapely(geometries)
    chunked = pa.chunked_array([array[:cut], array[cut:]])
    found = box_of(geo.statistics(chunked))
    planar = shapely.total_bounds(np.array(geometries, dtype=object))
    if found is None:
        assert np.isnan(planar).any()
        return
    assert found.width <= planar[2] - planar[0]
    assert (found.ymin, found.ymax) == (planar[1], planar[3])
    for xmin, ymin, xmax, ymax in shapely.bounds(np.array(geometries, dtype=object)):
        if not math.isnan(xmin):
            assert found.contains(BoundingBox(xmin, xmax, ymin, ymax))


@pytest.mark.spec("geography.range", "geo.box.geography")
def test_geography_in_range_has_a_box_for_points_and_for_edges() -> None:
    points = wkb(*(text for text in FIJI if text != FIJI[0]))
    assert box_of(geo.statistics(points, edges="spherical")) == BoundingBox(178, -179, -20, -19)
    found = geo.statistics(wkb(*FIJI), edges="spherical")
    assert box_of(found) == BoundingBox(177, -179, -20, -17)
    assert list(found.geospatial_types) == [1, 2]
    for outside in ("POINT (181 0)", "LINESTRING (0 0, 1 90.5)"):
        assert geo.statistics(wkb(outside), edges="spherical").bbox is None
        with pytest.raises(GeometryError, match=r"row 1: .* must be longitudes"):
            geo.bounds(wkb("POINT (0 0)", outside), edges="karney")


@pytest.mark.spec("geography.crs")
def test_geography_in_a_projected_crs_is_rejected() -> None:
    with pytest.raises(GeometryError, match="geographic CRS"):
        geo.statistics(wkb("POINT (0 0)"), "spherical", PROJECTED)


def test_extension_array_provides_its_crs_and_edges() -> None:
    field = geo.geometry_field("g", "EPSG:3857")
    table = geo.as_extension(pa.table([wkb(*FIJI)], schema=pa.schema([field])))
    assert box_of(geo.statistics(table["g"])) == BoundingBox(-179, 179.5, -20, -17)
    assert box_of(geo.statistics(table["g"], crs="OGC:CRS84")) == BoundingBox(177, -179, -20, -17)


class TestMerging:
    def test_boxes_and_types_of_row_groups_are_merged(self) -> None:
        parts = [geo.statistics(wkb("POINT (1 2)")), geo.statistics(wkb("LINESTRING Z (5 6 7, 8 9 10)"))]
        assert geo.merge(parts) == metadata.GeospatialStatistics(
            bbox=BoundingBox(1, 8, 2, 9, 7, 10).to_metadata(), geospatial_types=[1, 1002]
        )

    @pytest.mark.spec("geo.types.unknown")
    @pytest.mark.parametrize("unknown", [None, metadata.GeospatialStatistics(bbox=None, geospatial_types=None)])
    def test_fact_unknown_to_one_part_is_unknown_after_merging(self, unknown: Any) -> None:
        assert geo.merge([geo.statistics(wkb("POINT (1 2)")), unknown]) == metadata.GeospatialStatistics(
            bbox=None, geospatial_types=[]
        )
        assert geo.merge([]) == metadata.GeospatialStatistics(bbox=None, geospatial_types=[])

    def test_box_with_nan_makes_the_merged_box_unknown(self) -> None:
        broken = metadata.GeospatialStatistics(
            bbox=metadata.BoundingBox(xmin=math.nan, xmax=1.0, ymin=0.0, ymax=1.0), geospatial_types=[1]
        )
        assert geo.merge([geo.statistics(wkb("POINT (1 2)")), broken]).bbox is None

    @given(st.lists(st.lists(st.tuples(LONGITUDE, LATITUDE), min_size=1, max_size=4), min_size=1, max_size=4))
    def test_merged_box_contains_every_part(self, groups: list[list[tuple[float, float]]]) -> None:
        parts = [geo.statistics(geo.from_points(*zip(*group, strict=True))) for group in groups]
        whole = box_of(geo.merge(parts))
        assert whole is not None
        for x, y in (point for group in groups for point in group):
            assert whole.contains(BoundingBox(x, x, y, y))

    def test_boxes_on_both_sides_of_the_antimeridian_merge_in_a_geographic_crs(self) -> None:
        parts = [geo.statistics(wkb("POINT (178 1)")), geo.statistics(wkb("POINT (-178 2)"))]
        assert box_of(geo.merge(parts)) == BoundingBox(178, -178, 1, 2)
        assert box_of(geo.merge(parts, PROJECTED)) == BoundingBox(-178, 178, 1, 2)


def flat(box: BoundingBox) -> tuple[float | None, ...]:
    return (box.xmin, box.xmax, box.ymin, box.ymax, box.zmin, box.zmax, box.mmin, box.mmax)


PUBLIC = ["geospatial", "crs-default", "crs-srid", "crs-arbitrary-value"]


@pytest.mark.spec("geo.statistics.place", "geo.wkb.iso", "geo.types.codes", "geo.box.xy", "geo.box.zm")
@pytest.mark.parametrize("name", PUBLIC)
def test_statistics_of_the_public_files_are_reproduced(parquet_testing: Path, name: str) -> None:
    file = pq.ParquetFile(parquet_testing / "data" / "geospatial" / f"{name}.parquet")
    index = file.schema_arrow.names.index("geometry")
    crs = {"crs-srid": "srid:5070", "crs-arbitrary-value": "EPSG:5070"}.get(name)
    for number in range(file.num_row_groups):
        column = file.read_row_group(number).column(index)
        found = geo.statistics(column, crs=crs)
        stored = file.metadata.row_group(number).column(index).geo_statistics
        assert sorted(found.geospatial_types) == sorted(stored.geospatial_types or [])
        box = box_of(found)
        assert (stored.xmin is None) == (box is None)
        if box is not None:
            assert flat(box) == tuple(getattr(stored, name) for name in BoundingBox.__slots__)


def test_public_geography_boxes_contain_ours_tightly(parquet_testing: Path) -> None:
    file = pq.ParquetFile(parquet_testing / "data" / "geospatial" / "geography-points.parquet")
    for number in range(file.num_row_groups):
        stored = file.metadata.row_group(number).column(1).geo_statistics
        box = box_of(geo.statistics(file.read_row_group(number).column(1), edges="spherical"))
        assert box is not None
        around = BoundingBox(stored.xmin, stored.xmax, stored.ymin, stored.ymax)  # rounded outward by its writer
        if abs(around.ymin) < 90 and abs(around.ymax) < 90:
            assert around.contains(box)
            assert flat(box)[:4] == pytest.approx(flat(around)[:4], abs=1e-9)
        else:  # a pole has every longitude, of which that writer knows one
            assert (box.xmin, box.xmax) == (-180, 180)


@pytest.mark.parametrize("name", ["geospatial", "geography-polygons"])
def test_geometries_of_the_public_files_round_trip_through_shapely(parquet_testing: Path, name: str) -> None:
    column = pq.read_table(parquet_testing / "data" / "geospatial" / f"{name}.parquet")["geometry"]
    geo.validate(column, on_fault="raise")
    assert geo.to_iso_wkb(column).to_pylist() == column.to_pylist()
    geometries = geo.to_shapely(column)
    again = geo.from_shapely(geometries)
    for value, stored, geometry in zip(again.to_pylist(), column.to_pylist(), geometries, strict=True):
        if geometry is None:
            assert value is None
        elif not geometry.is_empty and (shapely.geos_version >= (3, 12, 0) or not geometry.has_m):
            assert value == stored  # GEOS forgets the dimensions of some empty geometries


@pytest.mark.spec("geo.box.wraparound", "geo.box.contains")
@pytest.mark.parametrize("rows", range(1, 17))
def test_wrapping_box_contains_the_rows_of_every_part(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "_PIECE", 2)
    for outlier in range(rows):
        x = np.where(np.arange(rows) % 2, 150.0, -150.0) + np.arange(rows)
        x[outlier] = 100
        box = geo.statistics(geo.from_points([*x, 179, -179], [0] * (rows + 2))).bbox
        assert box is not None
        assert (box.xmin, box.xmax) == (100, max(x[x < 0], default=-179))


@pytest.mark.spec("geo.box.contains", "geo.box.zm")
def test_box_contains_the_chunks_of_an_array_in_any_order() -> None:
    parts = [[shapely.Point(5, 6, 7)], [shapely.Point(-3, 9, 1), None], [], [shapely.Point(1, -2, 4)], [None]]
    for order in (parts, parts[::-1], [*parts[2:], *parts[:2]]):
        array = pa.chunked_array([geo.from_shapely(part) for part in order])
        box = geo.statistics(array).bbox
        assert box is not None
        assert (box.xmin, box.xmax, box.ymin, box.ymax) == (-3, 5, -2, 9)
        assert (box.zmin, box.zmax, box.mmin, box.mmax) == (1, 7, None, None)
