"""GeoDataFrames out of tables and files, and back."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import geopandas
import pandas
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet
import pyproj
import pytest
import shapely
from geopandas.testing import assert_geodataframe_equal

import pqext
from pqext import geo
from pqext.geo import GeospatialType, types

SHAPES = [shapely.Point(1, 2), None, shapely.box(3, 4, 5, 6)]


def frame(crs: Any = "OGC:CRS84", **columns: Any) -> Any:
    return geopandas.GeoDataFrame({"id": [1, 2, 3], **columns}, geometry=SHAPES, crs=crs)


def test_table_is_converted_to_a_frame_with_its_crs() -> None:
    fields = [geo.geometry_field("g", "EPSG:3857"), pa.field("id", pa.int64()), geo.geometry_field("h")]
    table = pa.table([geo.from_shapely(SHAPES), pa.array([1, 2, 3]), geo.from_shapely(SHAPES)], pa.schema(fields))
    found = geo.to_geopandas(table)
    assert found.columns.tolist() == ["g", "id", "h"]
    assert found.active_geometry_name == "g"
    assert found.crs.to_epsg() == 3857
    assert found["h"].crs.to_string() == "OGC:CRS84"
    assert found["g"].tolist() == SHAPES
    assert geo.to_geopandas(table, "h").active_geometry_name == "h"
    assert geo.to_geopandas(table.select(["g"]))["g"].tolist() == SHAPES
    assert len(geo.to_geopandas(table.slice(0, 0))) == 0
    unknown = pa.table([geo.from_shapely(SHAPES)], pa.schema([geo.geometry_field("g", "srid:0")]))
    assert geo.to_geopandas(unknown).crs is None


@pytest.mark.parametrize("geometry", [None, "id", "gone"])
def test_table_without_the_geometry_is_rejected(geometry: str | None) -> None:
    with pytest.raises(ValueError, match=r"the table has no geometry column; create one with geo\.from_wkt"):
        geo.to_geopandas(pa.table({"id": [1]}), geometry)
    twice = pa.table([geo.from_shapely(SHAPES)] * 2, pa.schema([geo.geometry_field("g")] * 2))
    with pytest.raises(ValueError, match="duplicate column names: 'g'; rename them"):
        geo.to_geopandas(twice)


@pytest.mark.parametrize(("crs", "expected"), [("EPSG:3857", "EPSG:3857"), ("OGC:CRS84", None), (None, "srid:0")])
def test_frame_round_trips_through_a_marked_table(crs: Any, expected: str | None) -> None:
    given = frame(crs, other=geopandas.GeoSeries(SHAPES[::-1], crs=4326), name=["a", "b", None])
    table = geo.from_geopandas(given)
    assert table.column_names == ["id", "other", "name", "geometry"]
    assert types.type_of(table.schema.field("geometry")) == GeospatialType(expected)
    assert types.type_of(table.schema.field("other")) == GeospatialType("EPSG:4326")
    assert_geodataframe_equal(geo.to_geopandas(table, "geometry"), given)


def test_index_is_preserved() -> None:
    given = frame().set_index(pandas.Index(["x", "y", "z"], name="key"))
    table = geo.from_geopandas(given)
    assert table.column_names == ["id", "geometry", "key"]
    assert_geodataframe_equal(geo.to_geopandas(table), given)
    alone = geo.to_geopandas(geo.from_geopandas(given[["geometry"]]))
    assert_geodataframe_equal(alone, given[["geometry"]])


def test_numeric_labels_round_trip_in_memory_and_are_not_written() -> None:
    given = pandas.DataFrame({5: [1, 2], 6: [3, 4]})
    table = pa.Table.from_pandas(given).append_column("g", geo.from_points([1.0, 2.0], [3.0, 4.0]))
    found = geo.to_geopandas(table)
    assert list(found.columns) == [5, 6, "g"]
    assert found[6].tolist() == [3, 4]
    with pytest.raises(ValueError, match="column names of the GeoDataFrame must be unique strings"):
        geo.from_geopandas(found)


def test_only_geodataframes_are_accepted() -> None:
    with pytest.raises(TypeError, match="expected a GeoDataFrame, not DataFrame"):
        geo.from_geopandas(pandas.DataFrame({"a": [1]}))
    with pytest.raises(ValueError, match="column names of the GeoDataFrame must be unique strings"):
        geo.from_geopandas(pandas.concat([frame(), frame()["id"]], axis=1))


class TestFiles:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "frame.parquet"

    def test_written_file_is_readable_by_both_libraries(self, path: Path) -> None:
        given = frame("EPSG:3857")
        geo.write_geopandas(given, path, geometry={"geometry": {"covering": True}})
        assert_geodataframe_equal(geo.read_geopandas(path), given)
        assert_geodataframe_equal(geopandas.read_parquet(path), given)
        given.to_parquet(path, write_covering_bbox=True)
        assert_geodataframe_equal(geo.read_geopandas(path), given)

    def test_columns_rows_and_geometries_can_be_selected(self, path: Path) -> None:
        given = frame(other=geopandas.GeoSeries([shapely.Point(9, 9)] * 3, crs=4326)).set_geometry("other")
        geo.write_geopandas(given, path)
        assert geo.read_geopandas(path).active_geometry_name == "other"
        assert geo.read_geopandas(path, geometry="geometry").active_geometry_name == "geometry"
        assert geo.read_geopandas(path, ["id"]).columns.tolist() == ["id", "other"]
        assert geo.read_geopandas(path, bbox=(0, 0, 2, 3), geometry="geometry")["id"].tolist() == [1]
        found = geo.read_geopandas(path, filter=pqext.col("id") > 1, bbox=(0, 0, 5, 5), geometry="geometry")
        assert found["id"].tolist() == [3]
        assert geo.read_geopandas(path, filter=[("id", "==", 2)])["id"].tolist() == [2]
        with pytest.raises(ValueError, match=r"no geometry column 'id'; the geometry columns are 'other', 'geometry'"):
            geo.read_geopandas(path, geometry="id")

    @pytest.mark.parametrize("crs", [4326, 3857])
    def test_bbox_argument_matches_geopandas(self, crs: int, path: Path) -> None:
        shapes = shapely.points([[1, 1], [2, 3], [4, 4], [9, 9]])
        points = geopandas.GeoDataFrame({"id": range(4)}, geometry=shapes, crs=4326)
        given = points.to_crs(crs)
        geo.write_geopandas(given, path)
        given.to_file(path.with_suffix(".gpkg"))
        area = shapely.Polygon([(1.5, 2), (4.5, 2), (1.5, 4.5)])  # 4, 4 lies in its bounds alone
        mask = geopandas.GeoSeries([area], crs=4326)
        there = mask.to_crs(crs)
        for bbox in (mask, mask.to_frame("g").set_geometry("g"), there.iloc[0], tuple(there.total_bounds)):
            expected = geopandas.read_file(path.with_suffix(".gpkg"), bbox=bbox)
            assert geo.read_geopandas(path, bbox=bbox)["id"].tolist() == expected["id"].tolist() == [1, 2]
        with pytest.raises(ValueError, match="empty geometry, which has no bounds"):
            geo.read_geopandas(path, bbox=shapely.Polygon())

    def test_conflicting_crs_in_the_geometry_option_is_rejected(self, path: Path) -> None:
        given = frame("EPSG:4326")
        mercator = pyproj.CRS(3857)
        for choice in ("EPSG:3857", {"crs": "EPSG:3857", "covering": True}, mercator, mercator.to_json_dict()):
            with pytest.raises(ValueError, match=r"CRS EPSG:4326, but .* EPSG:3857.*frame\.to_crs\('EPSG:3857'\)"):
                geo.write_geopandas(given, path, geometry={"geometry": choice})
            assert not path.exists()
        geo.write_geopandas(given, path, geometry={"geometry": {"crs": "OGC:CRS84"}})  # the same but for axis order
        geo.write_geopandas(frame(None), path, geometry={"geometry": "EPSG:3857"})
        assert geo.read_geopandas(path).crs == pyproj.CRS(3857)

    def test_scan_arguments_are_accepted(self, path: Path) -> None:
        geo.write_geopandas(frame(), path)
        (path.parent / "other.parquet").write_text("no Parquet")
        with pytest.warns(pqext.CorruptDataWarning):
            found = geo.read_geopandas(path.parent, ["id"], on_invalid="skip", include_file_paths="file")
        assert found.columns.tolist() == ["id", "geometry", "file"]
        assert set(found["file"]) == {str(path)}
        store = pyarrow.fs.SubTreeFileSystem(str(path.parent), pyarrow.fs.LocalFileSystem())
        assert geo.read_geopandas(path.name, filesystem=store)["id"].tolist() == [1, 2, 3]

    def test_file_without_geoparquet_metadata_is_readable(self) -> None:
        sink = io.BytesIO()
        geo.write_geopandas(frame(), sink, geoparquet=False)
        assert geo.read_geopandas(io.BytesIO(sink.getvalue()))["id"].tolist() == [1, 2, 3]
        sink = io.BytesIO()
        pqext.write_table(pa.table({"id": [1]}), sink)
        with pytest.raises(ValueError, match="the file has no geometry column"):
            geo.read_geopandas(sink)


def test_missing_geopandas_is_an_error_with_install_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "geopandas", None)
    for ask in (geo.to_geopandas, geo.from_geopandas, geo.read_geopandas):
        with pytest.raises(ImportError, match=r"pip install 'pqext\[geopandas\]'"):
            ask(pa.table({"a": [1]}))


def test_covering_that_names_the_geometry_does_not_remove_it() -> None:
    covering = '{"bbox": {"xmin": ["g"], "ymin": ["g"], "xmax": ["g"], "ymax": ["g"]}}'
    about = f'{{"columns": {{"g": {{"encoding": "WKB", "covering": {covering}}}}}}}'
    table = pa.table({"g": geo.from_points([1.0], [2.0])}).replace_schema_metadata({"geo": about})
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    assert list(geo.read_geopandas(sink).columns) == ["g"]


def test_reordered_rows_carry_no_labels_of_other_rows(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame(
        {"id": [0, 1, 2, 3]}, geometry=shapely.points([[5, 1], [1, 2], [9, 8], [2, 4]]), crs="OGC:CRS84",
        index=pandas.RangeIndex(100, 104, name="key"),
    )
    ordered, plain = tmp_path / "ordered.parquet", tmp_path / "plain.parquet"
    geo.write_geopandas(frame, ordered, geometry={"geometry": {"order": "hilbert"}})
    geo.write_geopandas(frame, plain)
    assert geopandas.read_parquet(plain).index.equals(frame.index)
    sorted_frame = pqext.scan(plain).order_by("id", descending=True).to_geopandas()
    curve = geo.to_geopandas(geo.sort(geo.from_geopandas(frame), "geometry"))
    for result in (geopandas.read_parquet(ordered), sorted_frame, curve):
        assert result["id"].tolist() != frame["id"].tolist()
        assert result.index.equals(pandas.RangeIndex(4))
        assert result.index.name is None
    batches = pqext.scan(plain).order_by("id").to_batches()
    assert [batch.to_pandas().index.tolist() for batch in batches] == [[0, 1, 2, 3]]

    labelled = frame.set_index(pandas.Index(["a", "b", "c", "d"], name="key"))
    geo.write_geopandas(labelled, ordered, geometry={"geometry": {"order": "hilbert"}})
    result = geopandas.read_parquet(ordered)
    assert dict(zip(result.index, result["id"], strict=True)) == dict(zip("abcd", range(4), strict=True))


def test_rows_are_appended_to_coverings_of_geopandas(tmp_path: Path) -> None:
    points = geopandas.GeoDataFrame({"id": [1, 2]}, geometry=shapely.points([[1, 1], [2, 2]]), crs="OGC:CRS84")
    points.to_parquet(path := tmp_path / "points.parquet", write_covering_bbox=True)
    geo.write_geopandas(points, path, append=True, geometry={"geometry": {"covering": "bbox"}})
    assert geopandas.read_parquet(path, bbox=(0, 0, 1.5, 1.5))["id"].tolist() == [1, 1]


def test_frames_in_place_of_geometries_are_errors_with_a_remedy(tmp_path: Path) -> None:
    areas: Any = geopandas.GeoDataFrame({"id": [1]}, geometry=[shapely.box(0, 0, 2, 2)], crs=3857)
    with pytest.raises(TypeError, match=r"use geo\.from_geopandas\(frame\)\['geometry'\]"):
        geo.area(areas)
    assert geo.area(geo.from_geopandas(areas)["geometry"]).to_pylist() == areas.area.tolist()
    for value in (areas, areas.geometry):
        with pytest.raises(TypeError, match=r"not Geo\w+; union_all\(\) combines its geometries"):
            pqext.col("geometry").intersects(value)
    geo.write_geopandas(areas, path := tmp_path / "areas.parquet")
    nothing: dict[str, Any] = {"mask": areas}
    with pytest.raises(TypeError, match=r"unknown option 'mask'; use filter=pqext\.col"):
        geo.read_geopandas(path, **nothing)
    assert geo.read_geopandas(path, filter=pqext.col("geometry").intersects(areas.union_all()))["id"].tolist() == [1]
