"""GeoParquet 2.0: the key ``geo`` next to the format's own geometry types, written and read."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely

import pqext
from pqext import geo
from pqext.core.base.errors import AnnotationWarning
from pqext.core.format.metadata import FileMetaData, KeyValue
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo import types

SHAPES = [shapely.Point(1, 2), None, shapely.box(3, 4, 5, 6)]
LINE = shapely.LineString([(-60, 45), (60, 45)])
CRS_3857 = pyproj.CRS(3857).to_json_dict()


def by_geopandas(crs: Any, shapes: list[Any] = SHAPES) -> bytes:
    sink = io.BytesIO()
    frame = geopandas.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=crs)
    frame.to_parquet(sink, schema_version="2.0.0")
    return sink.getvalue()


def written(crs: Any = None, edges: Any = "planar", shapes: list[Any] = SHAPES, **options: Any) -> bytes:
    field = geo.geometry_field("geometry", crs, edges)
    table = pa.table([pa.array(range(len(shapes))), geo.from_shapely(shapes)], pa.schema([("id", pa.int64()), field]))
    pqext.write_table(table, sink := io.BytesIO(), **options)
    return sink.getvalue()


def with_key(data: bytes, **about: Any) -> bytes:
    """The file with this GeoParquet metadata about column geometry."""
    text = json.dumps({
        "version": "2.0.0", "primary_column": "geometry",
        "columns": {"geometry": {"encoding": "WKB", "geometry_types": [], **about}},
    })  # fmt: skip

    def change(metadata: FileMetaData) -> None:
        metadata.key_value_metadata = [KeyValue(key="geo", value=text)]

    pqext.rewrite_footer(data, change, sink := io.BytesIO())
    return sink.getvalue()


def type_of(data: bytes) -> geo.GeospatialType:
    with pqext.open(data) as file:
        type = types.type_of(file.arrow_schema.field("geometry"))
    assert type is not None
    return type


@pytest.mark.spec("geoparquet.precedence")
class TestReading:
    @pytest.mark.parametrize("crs", [None, "OGC:CRS84", 4326, 3857, 5070, "EPSG:4979"])
    def test_crs_of_a_geopandas_file_matches_geopandas(self, crs: Any) -> None:
        data = by_geopandas(crs)
        expected = geopandas.read_parquet(io.BytesIO(data))
        frame = geo.read_geopandas(data)
        assert frame.crs == expected.crs
        assert frame.geometry.tolist() == expected.geometry.tolist()

    def test_null_crs_is_unknown(self) -> None:
        assert type_of(with_key(written(), crs=None)) == geo.GeospatialType("srid:0")

    def test_projected_coordinates_are_not_mistaken_for_longitudes(self) -> None:
        shapes = [shapely.Point(2e6, 5e6), shapely.Point(-2e6, 5e6)]
        data = with_key(written(3857, shapes=shapes), crs=CRS_3857)
        without_crs = with_key(written("EPSG:3857", shapes=shapes).replace(b"EPSG:3857", b"         "), crs=CRS_3857)
        for file in (data, without_crs):
            found = pqext.read_table(file, filter=pqext.col("geometry").intersects((1e6, 4e6, 3e6, 6e6)))
            assert found["id"].to_pylist() == [0]
            assert type_of(file) == geo.GeospatialType("EPSG:3857")

    def test_spherical_edges_of_a_planar_type_are_used_and_its_boxes_ignored(self) -> None:
        data = with_key(written(shapes=[LINE]), edges="spherical")
        assert type_of(data) == geo.GeospatialType(None, "spherical")
        # The great circle from 60 W to 60 E along 45 N passes 0 E at 63 N, beyond the planar box.
        near = shapely.box(-1, 63, 1, 64)
        assert pqext.read_table(data, filter=pqext.col("geometry").intersects(near)).num_rows == 1
        assert pqext.read_table(written(shapes=[LINE]), filter=pqext.col("geometry").intersects(near)).num_rows == 0
        assert pqext.scan(data).count() == 1

    @pytest.mark.parametrize(("crs", "edges", "about", "part"), [
        ("EPSG:3857", "planar", {}, "CRS"), ("EPSG:3857", "planar", {"crs": None}, "CRS"),
        (None, "spherical", {}, "edges"), (None, "vincenty", {"edges": "karney"}, "edges"),
        ("EPSG:4267", "planar", {"edges": "spherical", "crs": pyproj.CRS(4267).to_json_dict()}, "edges"),
        (None, "spherical", {"crs": CRS_3857, "edges": "spherical"}, "CRS"),
    ])  # fmt: skip
    def test_contradiction_warns_and_the_type_wins(
        self, crs: Any, edges: Any, about: dict[str, Any], part: str, tmp_path: Path
    ) -> None:
        data = with_key(written(crs, edges), **about)
        with pytest.warns(AnnotationWarning, match=rf"column 'geometry' has .*{part}.* by its type, but GeoParquet"):
            assert type_of(data) == geo.GeospatialType(crs, edges)

    def test_geoparquet_false_ignores_the_key(self) -> None:
        with pqext.open(with_key(written(), crs=None), geoparquet=False) as file:
            assert types.type_of(file.arrow_schema.field("geometry")) == geo.GeospatialType()

    @pytest.mark.skipif("GEOPARQUET_TEST_DATA" not in os.environ, reason="set GEOPARQUET_TEST_DATA")
    def test_files_of_the_specification_match_their_tables(self) -> None:
        paths = sorted(Path(os.environ["GEOPARQUET_TEST_DATA"]).glob("data-*-encoding_wkb.parquet"))
        assert paths
        for path in paths:
            text = Path(str(path).replace("encoding_wkb.parquet", "wkt.csv")).read_text("utf-8")
            expected = list(csv.DictReader(text.splitlines()))
            texts = [row["geometry"] or None for row in expected]
            frame = geo.read_geopandas(path)
            shapes = [None if text is None else shapely.from_wkt(text).wkt for text in texts]
            assert [None if shape is None else shape.wkt for shape in frame.geometry] == shapes
            assert frame["col"].tolist() == [int(row["col"]) for row in expected]


class TestWriting:
    @pytest.mark.spec("geoparquet.type", "geoparquet.crs")
    @pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:4326", "srid:5070", 4979, pyproj.CRS("+proj=lcc +lat_1=40")])
    def test_type_and_metadata_have_the_same_projjson(self, crs: Any) -> None:
        field = geo.geometry_field("geometry", crs)
        expected = crs_.parse(types.type_of(field).crs)  # type: ignore[union-attr]
        pqext.write_table(
            pa.table([geo.from_points([1.0], [2.0])], pa.schema([field])), sink := io.BytesIO(), geoparquet=True
        )
        file = pq.ParquetFile(sink)
        inline = json.loads(json.loads(file.schema.column(0).logical_type.to_json())["crs"])
        about = json.loads(file.metadata.metadata[b"geo"])
        assert about["version"] == "2.0.0"
        assert inline == about["columns"]["geometry"]["crs"] == expected.to_json_dict()
        assert pyproj.CRS.from_json_dict(inline) == expected

    @pytest.mark.spec("geoparquet.type")
    def test_default_and_unknown_crs_are_not_definitions(self) -> None:
        for crs, stored in ((None, b""), ("srid:0", b"srid:0"), ("SRID:0", b"SRID:0")):
            data = written(crs, geoparquet=True)
            logical = json.loads(pq.ParquetFile(io.BytesIO(data)).schema.column(1).logical_type.to_json())
            assert logical.get("crs", "").encode() == stored
            assert type_of(data).crs == (crs and "srid:0")

    @pytest.mark.spec("geoparquet.columns", "geoparquet.bbox")
    def test_geopandas_filters_by_native_boxes(self, tmp_path: Path) -> None:
        shapes = [shapely.Point(x, 0) for x in range(100)]
        path = tmp_path / "f.parquet"
        path.write_bytes(written(3857, shapes=shapes, geoparquet=True, row_group_rows=10))
        found = geopandas.read_parquet(path, bbox=(9.5, -1, 12.5, 1))
        assert found["id"].tolist() == [10, 11, 12]
        assert found.crs == pyproj.CRS(3857)

    @pytest.mark.spec("geoparquet.columns")
    @pytest.mark.parametrize("crs", [None, 4326, 3857, "srid:0"])
    def test_other_readers_read_values_and_crs(self, crs: Any, tmp_path: Path) -> None:
        path = tmp_path / "f.parquet"
        path.write_bytes(written(crs, geoparquet=True))
        frame = geopandas.read_parquet(path)
        assert frame.crs == (None if crs == "srid:0" else pyproj.CRS(crs or "OGC:CRS84"))
        assert frame.geometry.tolist() == SHAPES
        assert duckdb.sql(f"select count(geometry) from '{path}'").fetchall() == [(2,)]
        assert geo.read_geopandas(path).crs == frame.crs

    @pytest.mark.spec("geoparquet.other_rows")
    def test_table_metadata_follows_its_types(self) -> None:
        table = pqext.read_table(written(3857, geoparquet=True))
        lonlat = geo.transform(table["geometry"], "EPSG:3857", None)
        moved = table.set_column(1, geo.geometry_field("geometry"), lonlat)
        pqext.write_table(moved, sink := io.BytesIO())
        assert type_of(sink.getvalue()) == geo.GeospatialType()
        assert geopandas.read_parquet(sink).crs == pyproj.CRS("OGC:CRS84")


@pytest.mark.parametrize(("crs", "label"), [
    (None, "OGC:CRS84"), ("EPSG:3857", "EPSG:3857"), ("{", "{"), ("[", "["), (json.dumps(CRS_3857), "EPSG:3857"),
    (pyproj.CRS("+proj=lcc +lat_1=40 +type=crs +title=ours").to_json(), "ours"), ('{"a": 1}', '{"a": 1}'),
])  # fmt: skip
def test_crs_has_a_short_display_name(crs: str | None, label: str) -> None:
    assert crs_label(crs) == label


def test_inspection_shows_the_code_of_inline_projjson() -> None:
    assert "GEOMETRY(EPSG:3857)" in str(pqext.inspect(written(3857, geoparquet=True)))
