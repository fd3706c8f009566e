"""GeoParquet metadata: geopandas and others know our geometry columns by it, and we theirs."""

from __future__ import annotations

import io
import json
import math
import warnings
from pathlib import Path
from typing import Any

import duckdb
import geopandas
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
from pqext.core.base.errors import AnnotationWarning, GeometryError
from pqext.core.format.metadata import FileMetaData, KeyValue
from pqext.geo import GeospatialType, SpatialPredicate, geoparquet, geoparquet_types, types
from pqext.geo.annotation import HANDLER
from reference.effort import share
from reference.geometries import LATITUDE, LONGITUDE, shapes

KEY, OTHER = b"k" * 16, b"o" * 16
SHAPES = [shapely.Point(1, 2), None, shapely.box(3, 4, 5, 6)]
NESTED = pa.table({"s": pa.array([{"g": b""}], pa.struct([("g", pa.binary())]))})


def table(shapes: list[Any] = SHAPES, field: pa.Field | None = None) -> pa.Table:
    fields = [pa.field("id", pa.int64()), field or geo.geometry_field("g")]
    return pa.table([pa.array(range(len(shapes))), geo.from_shapely(shapes)], schema=pa.schema(fields))


def written(data: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(data, sink, **{"geoparquet": True, **options})
    return sink.getvalue()


def described(data: bytes, **options: Any) -> Any:
    pairs = pqext.open(data, **options).metadata.key_value_metadata or []
    return json.loads(next(pair.value for pair in pairs if pair.key == "geo"))


def by_geopandas(path: Path, shapes: list[Any] = SHAPES, crs: Any = None, **options: Any) -> Path:
    frame = geopandas.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=crs)
    frame.to_parquet(path, **options)
    return path


@pytest.mark.spec("geoparquet.columns", "geoparquet.bbox", "geoparquet.types")
def test_metadata_describes_the_geometry_columns() -> None:
    found = described(written(table(), geometry={"g": {"covering": True}}))
    assert found == {
        "version": "2.0.0",
        "primary_column": "g",
        "columns": {
            "g": {
                "encoding": "WKB",
                "geometry_types": ["Point", "Polygon"],
                "bbox": [1.0, 2.0, 5.0, 6.0],
                "covering": {"bbox": {b: ["g_bbox", b] for b in ("xmin", "ymin", "xmax", "ymax")}},
            }
        },
    }


@pytest.mark.spec("geoparquet.bbox", "geoparquet.types")
def test_boxes_and_types_cover_all_row_groups() -> None:
    shapes = [shapely.Point(1, 2), shapely.Point(3, 4, 5), None, None, shapely.LineString([(7, 8), (9, 10)]), None]
    found = described(written(table(shapes), row_group_rows=2))["columns"]["g"]
    assert found["geometry_types"] == ["Point", "LineString", "Point Z"]
    assert found["bbox"] == [1.0, 2.0, 5.0, 9.0, 10.0, 5.0]
    wraps = described(written(table([shapely.Point(179, 0), shapely.Point(-179, 1)])))["columns"]["g"]
    assert wraps["bbox"] == [179.0, 0.0, -179.0, 1.0]
    measured = described(written(table([shapely.from_wkt("POINT M (1 2 3)")])))["columns"]["g"]
    assert measured["geometry_types"] == ["Point M"]
    assert measured["bbox"] == [1.0, 2.0, 1.0, 2.0]
    for nothing in ([], [None], [shapely.Point()]):
        assert "bbox" not in described(written(table(nothing)))["columns"]["g"]
    assert "bbox" not in described(written(table(), statistics=False))["columns"]["g"]


@pytest.mark.spec("geoparquet.crs")
@pytest.mark.parametrize("crs", ["EPSG:3857", "EPSG:4326", "EPSG:5070", "srid:4326"])
def test_crs_is_written_as_projjson(crs: str) -> None:
    found = described(written(table(field=geo.geometry_field("g", crs))))["columns"]["g"]["crs"]
    assert found["id"] == {"authority": "EPSG", "code": int(crs.partition(":")[2])}


@pytest.mark.spec("geoparquet.crs")
def test_default_crs_is_omitted_and_an_unknown_one_is_null() -> None:
    assert "crs" not in described(written(table()))["columns"]["g"]
    assert described(written(table(field=geo.geometry_field("g", "srid:0"))))["columns"]["g"]["crs"] is None


@pytest.mark.spec("geoparquet.edges")
@pytest.mark.parametrize("edges", ["spherical", "vincenty", "thomas", "andoyer", "karney"])
def test_nonplanar_edges_are_written_by_name(edges: Any) -> None:
    assert described(written(table(field=geo.geometry_field("g", edges=edges))))["columns"]["g"]["edges"] == edges
    assert "edges" not in described(written(table()))["columns"]["g"]


@pytest.mark.spec("geoparquet.columns")
def test_nested_geometries_are_not_described_which_is_a_warning_if_metadata_is_required() -> None:
    point = shapely.to_wkb(shapely.Point(1, 2))
    rows = pa.table({"g": geo.from_shapely([shapely.Point(1, 2)]), "l": pa.array([[point]])})
    places = {"g": "OGC:CRS84", "l.list.element": "OGC:CRS84"}
    assert {*described(written(rows, geometry=places, geoparquet=None))["columns"]} == {"g"}
    with pytest.warns(AnnotationWarning, match="cannot describe nested columns"):
        data = written(rows, geometry=places)
    assert {*described(data)["columns"]} == {"g"}


@pytest.mark.spec("geoparquet.columns")
def test_primary_column_is_the_first_or_the_named_one() -> None:
    both = table().append_column("h", geo.from_shapely(SHAPES))
    assert described(written(both))["primary_column"] == "g"
    assert described(written(both, primary_geometry="h"))["primary_column"] == "h"
    assert list(described(written(both))["columns"]) == ["g", "h"]
    with pytest.raises(ValueError, match="'id' is not a geometry column; the geometry columns are g, h"):
        written(both, primary_geometry="id")
    for plain, name in ((table().select(["id"]), "at"), (pa.table({"id": [1], "shape": [b""]}), "shape")):
        with pytest.raises(ValueError, match=rf'needs a geometry column .* geometry={{"{name}": "OGC:CRS84"}}'):
            written(plain)
    with pytest.raises(ValueError, match="omit the key, or pass geoparquet=False"):
        written(table(), key_value_metadata={"geo": "{}"})
    for wrong in (1.5, "3.0", "h", 0, 1):
        with pytest.raises(ValueError, match='geoparquet must be a bool, None'):
            written(table(), geoparquet=wrong)
    with pytest.raises(ValueError, match="needs GeoParquet metadata"):
        written(table(), geoparquet=False, primary_geometry="g")


@pytest.mark.spec("geoparquet.columns")
def test_files_with_geometries_have_metadata_by_default(tmp_path: Path) -> None:
    projected = table(field=geo.geometry_field("g", "EPSG:3857"))
    pqext.write_table(projected, tmp_path / "default.parquet")
    assert described((tmp_path / "default.parquet").read_bytes())["version"] == "2.0.0"
    frame = geopandas.read_parquet(tmp_path / "default.parquet")
    assert frame.crs == pyproj.CRS("EPSG:3857")
    assert frame.geometry.to_list() == SHAPES
    for plain, options in ((table().select(["id"]), {}), (NESTED.slice(0, 0), {"geometry": {"s.g": "EPSG:3857"}})):
        pqext.write_table(plain, sink := io.BytesIO(), **options)
        pairs = pqext.read_metadata(sink.getvalue()).key_value_metadata
        assert "geo" not in {pair.key for pair in pairs or ()}
    own = {"geo": json.dumps({"version": "2.0.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB"}}})}
    pqext.write_table(table(), sink := io.BytesIO(), key_value_metadata=own)
    assert "bbox" not in described(sink.getvalue())["columns"]["g"]


@pytest.mark.spec("geoparquet.older")
@pytest.mark.parametrize("edges", ["planar", "spherical"])
def test_version_1_1_has_plain_columns_and_a_covering(tmp_path: Path, edges: Any) -> None:
    data = table(field=geo.geometry_field("g", "EPSG:4269", edges))
    path = tmp_path / "older.parquet"
    pqext.write_table(data, path, geoparquet="1.1", row_group_rows=2)
    about = described(path.read_bytes())
    assert about["version"] == "1.1.0"
    assert about["columns"]["g"]["covering"]["bbox"]["ymax"] == ["g_bbox", "ymax"]
    schema = pq.ParquetFile(path).schema
    assert schema.column(1).logical_type.type == "NONE"
    assert schema.column(2).physical_type == "FLOAT"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The geo metadata indicate that column 'g' has spherical edges")
        frame = geopandas.read_parquet(path, bbox=(3.5, 4.5, 9, 9))
    assert list(frame["id"]) == [2]
    assert frame.crs == pyproj.CRS("EPSG:4269")
    again = pqext.read_table(path)
    assert types.type_of(again.schema.field("g")) == GeospatialType("EPSG:4269", edges)
    assert again["g"].equals(data["g"])
    assert pqext.verify(path).ok
    assert "1 of 2 row groups" in str(pqext.scan(path, filter=pqext.col("g").intersects((4, 5, 4, 5))).explain())


@pytest.mark.spec("geoparquet.older")
def test_version_1_1_has_no_m_and_two_types_of_edges(tmp_path: Path) -> None:
    measured = table([shapely.from_wkt("POINT M (1 2 3)")])
    with pytest.raises(GeometryError, match="does not support geometries with M"):
        written(measured, geoparquet="1.1")
    with pytest.raises(GeometryError, match="has only planar or spherical edges, not karney") as raised:
        written(table(field=geo.geometry_field("g", edges="karney")), geoparquet="1.1")
    assert raised.value.column == "g"


def test_metadata_of_an_older_file_is_replaced() -> None:
    stale = table().replace_schema_metadata({"geo": "old", "other": "kept"})
    data = written(stale)
    assert described(data)["primary_column"] == "g"
    assert pqext.open(data).arrow_schema.metadata[b"other"] == b"kept"


@pytest.mark.spec("geoparquet.other_rows")
def test_boxes_and_types_are_dropped_with_their_rows(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(written(table(), geometry={"g": {"covering": True}}))
    (tmp_path / "b").write_bytes(written(table([shapely.Point(50, 60)]), geometry={"g": {"covering": True}}))
    again = pqext.read_table(tmp_path / "a", filter=pqext.col("id") < 1)
    about = described(written(again))["columns"]["g"]
    assert about["geometry_types"] == ["Point"]
    assert about["bbox"] == [1.0, 2.0, 1.0, 2.0]
    plain = pa.table({"g": pa.array([b""]), "g_bbox": again["g_bbox"]}).replace_schema_metadata(again.schema.metadata)
    assert described(written(plain, geoparquet=None))["columns"]["g"] == {"encoding": "WKB", "geometry_types": []}
    pqext.concatenate([tmp_path / "a", tmp_path / "b"], tmp_path / "joined")
    assert list(geopandas.read_parquet(tmp_path / "joined", bbox=(49, 59, 51, 61))["id"]) == [0]


def joined(tmp_path: Path, *files: bytes, **options: Any) -> Any:
    for number, data in enumerate(files):
        (tmp_path / f"{number}.parquet").write_bytes(data)
    paths = [tmp_path / f"{number}.parquet" for number in range(len(files))]
    pqext.concatenate(paths, tmp_path / "joined", **options)
    pqext.write_summary(paths, tmp_path, **options)
    found = described((tmp_path / "joined").read_bytes())
    assert described((tmp_path / "_metadata").read_bytes()) == found
    return found["columns"]["g"]


def with_metadata(data: bytes, column: str = "g", **about: Any) -> bytes:
    """The file with something else in its metadata about a column; None leaves a member out."""
    found = described(data)
    told = {**found["columns"][column], **about}
    found["columns"][column] = {name: value for name, value in told.items() if value is not None}

    def change(metadata: FileMetaData) -> None:
        metadata.key_value_metadata = [KeyValue(key="geo", value=json.dumps(found))]

    pqext.rewrite_footer(data, change, sink := io.BytesIO())
    return sink.getvalue()


@pytest.mark.spec("geoparquet.other_rows")
class TestFilesMadeOfSeveral:
    @pytest.mark.parametrize("policy", ["merge", "first"])
    def test_boxes_and_types_are_merged(self, tmp_path: Path, policy: Any) -> None:
        one = written(table(), geometry={"g": {"covering": True}})
        other = written(table([shapely.LineString([(50, 60), (51, 3)])]), geometry={"g": {"covering": True}})
        about = joined(tmp_path, one, other, one, key_value_metadata=policy)
        assert about["bbox"] == [1, 2, 51, 60]
        assert about["geometry_types"] == ["LineString", "Point", "Polygon"]
        assert "covering" in about
        frame = geopandas.read_parquet(tmp_path / "joined")
        assert frame.total_bounds.tolist() == about["bbox"]

    def test_boxes_wrap_across_the_antimeridian_in_a_geographic_crs(self, tmp_path: Path) -> None:
        files = [written(table([shapely.Point(x, 0)])) for x in (179, -170, 175)]
        wrapping = written(table([shapely.Point(178, 1), shapely.Point(-175, 1)]))
        assert described(wrapping)["columns"]["g"]["bbox"] == [178, 1, -175, 1]
        assert joined(tmp_path, *files, wrapping)["bbox"] == [175, 0, -170, 1]
        mercator = geo.geometry_field("g", "EPSG:3857")
        files = [written(table([shapely.Point(x, 0)], mercator)) for x in (179, -170)]
        assert joined(tmp_path, *files)["bbox"] == [-170, 0, 179, 0]
        assert "bbox" not in joined(tmp_path, *files, with_metadata(files[0], bbox=[179, 0, -170, 0]))

    def test_z_range_is_written_if_all_files_have_it(self, tmp_path: Path) -> None:
        low, high = (written(table([shapely.Point(1, 2, z)])) for z in (3, 8))
        assert joined(tmp_path, low, high)["bbox"] == [1, 2, 3, 1, 2, 8]
        about = joined(tmp_path, low, written(table()))
        assert about["bbox"] == [1, 2, 5, 6]
        assert about["geometry_types"] == ["Point", "Polygon", "Point Z"]

    @pytest.mark.parametrize("bbox", [None, [1, 2, 3], [1, 2, math.nan, 4], [1, 5, 2, 4], "box", [None] * 4])
    def test_facts_unknown_to_one_file_are_omitted(self, tmp_path: Path, bbox: Any) -> None:
        whole = written(table(), geometry={"g": {"covering": True}})
        doubtful = with_metadata(whole, bbox=bbox, geometry_types=[], covering=None)
        for files in ([whole, doubtful], [doubtful, whole]):
            about = joined(tmp_path, *files)
            assert "bbox" not in about
            assert "covering" not in about
            assert about["geometry_types"] == []

    def test_file_without_metadata_contributes_nothing(self, tmp_path: Path) -> None:
        whole, silent = written(table()), written(table(), geoparquet=False)
        for files in ([whole, silent], [silent, whole]):
            assert joined(tmp_path, *files) == {"encoding": "WKB", "geometry_types": []}

    def test_columns_undescribed_by_all_files_have_empty_types(self) -> None:
        texts = [json.dumps({"version": version, "columns": {"g": {}}}) for version in ("1.0.0", "1.1.0")]
        for one, other in (texts, texts[::-1]):
            assert json.loads(geoparquet.merge_metadata([one, other]))["columns"] == {"g": {"geometry_types": []}}

    @pytest.mark.parametrize("crs", [4326, {"type": "unknown"}])
    def test_invalid_crs_is_planar_and_equal_to_itself_only(self, crs: Any) -> None:
        abouts = [{"crs": crs, "bbox": [-179, 0, -178, 1]}, {"crs": crs, "bbox": [178, 2, 179, 3]}]
        texts = [json.dumps({"version": "1.1.0", "columns": {"g": about}}) for about in abouts]
        merged = json.loads(geoparquet.merge_metadata(texts))["columns"]["g"]
        assert merged == {"crs": crs, "geometry_types": [], "bbox": [-179, 0, 179, 3]}
        other = json.dumps({"version": "1.1.0", "columns": {"g": {"crs": 3857}}})
        with pytest.raises(ValueError, match="differs in 'crs'"):
            geoparquet.merge_metadata([texts[0], other])

    def test_empty_files_do_not_affect_the_metadata(self, tmp_path: Path) -> None:
        whole, empty = written(table()), written(table([]))
        for files in ([whole, empty], [empty, whole]):
            assert joined(tmp_path, *files)["bbox"] == [1, 2, 5, 6]

    def test_contradicting_metadata_is_rejected(self, tmp_path: Path) -> None:
        for number, crs in enumerate((4326, 3857)):
            by_geopandas(tmp_path / str(number), crs=crs)
        with pytest.raises(ValueError, match="column 'geometry': the files' GeoParquet metadata differs in 'crs'"):
            pqext.concatenate([tmp_path / "0", tmp_path / "1"], tmp_path / "joined")
        assert not (tmp_path / "joined").exists()

    def test_coordinates_of_different_epochs_are_not_merged(self, tmp_path: Path) -> None:
        unknown = written(table())
        early, late = with_metadata(unknown, epoch=2010.5), with_metadata(unknown, epoch=2026)
        assert joined(tmp_path, early, early)["epoch"] == 2010.5
        for files in ([early, late], [early, unknown], [unknown, late]):
            with pytest.raises(ValueError, match="differs in 'epoch'"):
                joined(tmp_path, *files)

    def test_equal_crs_with_different_spelling_are_one(self, tmp_path: Path) -> None:
        projjson = json.loads(pyproj.CRS("OGC:CRS84").to_json())
        about = joined(tmp_path, written(table()), with_metadata(written(table()), crs=projjson, bbox=[0, 0, 9, 9]))
        assert about["bbox"] == [0, 0, 9, 9]


@pytest.mark.spec("geoparquet.other_rows", "geoparquet.encrypted")
def test_metadata_of_a_plain_file_does_not_describe_an_encrypted_column() -> None:
    plain = pqext.read_table(io.BytesIO(written(table([shapely.Point(12.345, 67.891)]))))
    keys = pqext.encryption.FileEncryption(KEY, column_keys={"g": OTHER}, plaintext_footer=True)
    assert b"12.345" not in written(plain, geoparquet=False, encryption=keys)


@pytest.mark.spec("geoparquet.encrypted")
def test_box_and_types_of_an_encrypted_column_are_omitted() -> None:
    encryption = pqext.encryption.FileEncryption(KEY, column_keys={"g": OTHER}, plaintext_footer=True)
    found = described(written(table(), encryption=encryption))["columns"]["g"]
    assert "bbox" not in found
    assert found["geometry_types"] == []


class TestOtherReaders:
    @pytest.mark.spec("geoparquet.columns", "geoparquet.crs")
    @pytest.mark.parametrize("crs", [None, "EPSG:4326", "EPSG:3857"])
    def test_geopandas_reads_geometries_crs_and_boxes(self, tmp_path: Path, crs: str | None) -> None:
        path = tmp_path / "ours.parquet"
        path.write_bytes(written(table(field=geo.geometry_field("g", crs)), geometry={"g": {"covering": True}}))
        frame = geopandas.read_parquet(path)
        assert frame.geometry.name == "g"
        assert frame.crs.to_string() == (crs or "OGC:CRS84")
        assert frame.columns.tolist() == ["id", "g"]
        assert [None if s is None else s.wkt for s in frame.geometry] == [None if s is None else s.wkt for s in SHAPES]
        assert geopandas.read_parquet(path, bbox=(0, 0, 2, 3))["id"].tolist() == [0]

    def test_duckdb_and_pyarrow_read_the_same_values(self, tmp_path: Path) -> None:
        path = tmp_path / "ours.parquet"
        path.write_bytes(written(table(), geometry={"g": {"covering": True}}))
        assert duckdb.sql(f"select id from '{path}' where g_bbox.xmax <= 2").fetchall() == [(0,)]
        assert duckdb.sql(f"select count(g) from '{path}'").fetchall() == [(2,)]
        assert pq.read_table(path)["id"].to_pylist() == [0, 1, 2]


class TestReading:
    @pytest.mark.spec("geoparquet.read")
    @pytest.mark.parametrize(("crs", "expected"), [("OGC:CRS84", None), (4326, "EPSG:4326"), (3857, "EPSG:3857")])
    def test_plain_geopandas_columns_are_geometries(self, tmp_path: Path, crs: Any, expected: str | None) -> None:
        path = by_geopandas(tmp_path / "theirs.parquet", crs=crs)
        with pqext.open(path) as file:
            assert types.type_of(file.arrow_schema.field("geometry")) == GeospatialType(expected)
            assert file.read()["geometry"].to_pylist() == geo.from_shapely(SHAPES).to_pylist()
        found = pqext.read_table(path, filter=pqext.col("geometry").intersects((0, 0, 2, 2)))
        assert found["id"].to_pylist() == [0]

    @pytest.mark.spec("geoparquet.read")
    def test_column_without_a_crs_has_an_unknown_crs(self, tmp_path: Path) -> None:
        path = by_geopandas(tmp_path / "theirs.parquet")
        assert types.type_of(pqext.open(path).arrow_schema.field("geometry")) == GeospatialType("srid:0")

    @pytest.mark.spec("geoparquet.read")
    def test_geoparquet_metadata_can_be_ignored(self, tmp_path: Path) -> None:
        path = by_geopandas(tmp_path / "theirs.parquet", crs=4326)
        with pqext.open(path, geoparquet=False) as file:
            assert types.type_of(file.arrow_schema.field("geometry")) is None
            assert file.schema.leaves[1].logical_type is None
        assert pqext.inspect(path).schema[1].logical_type is None

    @pytest.mark.spec("geoparquet.read")
    def test_columns_of_other_types_are_unchanged(self) -> None:
        about = {"encoding": "WKB", "crs": pyproj.CRS(3857).to_json_dict()}
        data = written(
            table(field=geo.geometry_field("g", "EPSG:3857")), geoparquet=False,
            key_value_metadata={"geo": json.dumps({"columns": {"g": about, "id": {"encoding": "WKB"}}})},
        )
        with pqext.open(data) as file:
            assert types.type_of(file.arrow_schema.field("g")) == GeospatialType("EPSG:3857")
            assert file.arrow_schema.field("id").type == pa.int64()

    @staticmethod
    def plain(text: str) -> bytes:
        sink = io.BytesIO()
        data = pa.table({"id": [1], "g": geo.from_points([1.0], [2.0]).storage})
        pqext.write_table(data, sink, key_value_metadata={"geo": text})
        return sink.getvalue()

    @pytest.mark.spec("geoparquet.read")
    def test_edges_are_read_from_metadata_and_other_encodings_are_ignored(self) -> None:
        about = {"encoding": "WKB", "edges": "spherical"}
        found = pqext.open(self.plain(json.dumps({"columns": {"g": about, "gone": about}})))
        assert types.type_of(found.arrow_schema.field("g")) == GeospatialType(None, "spherical")
        assert found.schema.find("g") is not None
        assert found.schema.leaves[1].logical_name == "GEOGRAPHY"
        assert found.schema.leaves[-1].logical_name == "GEOGRAPHY"
        assert [leaf.name for leaf in found.schema.leaves[:2]] == ["id", "g"]
        other = pqext.open(self.plain(json.dumps({"columns": {"g": {"encoding": "point"}}})))
        assert types.type_of(other.arrow_schema.field("g")) is None

    @pytest.mark.spec("geoparquet.damaged")
    @pytest.mark.parametrize(
        "text",
        [
            "not json", "[]", '{"columns": 3}', '{"columns": {"g": 3}}', "[" * 5000,
            '{"columns": {"g": {"encoding": "WKB", "edges": 7}}}',
            '{"columns": {"g": {"encoding": "WKB", "edges": "rhumb"}}}',
            '{"columns": {"g": {"encoding": "WKB", "crs": 4326}}}',
            '{"columns": {"g": {"encoding": "WKB", "crs": ' + '{"a": ' * 500 + "1" + "}" * 503,
        ],
    )  # fmt: skip
    def test_invalid_metadata_is_ignored_with_a_warning(self, text: str) -> None:
        with pytest.warns(AnnotationWarning, match="the metadata 'geo' is ignored"):
            file = pqext.open(self.plain(text))
        assert types.type_of(file.arrow_schema.field("g")) is None
        assert len(file.read()) == 1

    @pytest.mark.spec("geoparquet.damaged")
    @given(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.sampled_from(["WKB", "planar"]),
            lambda inner: st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["columns", "g", "encoding", "crs", "edges", "covering", "bbox", "xmin"]), inner
            ),
            max_leaves=12,
        )
    )
    @settings(max_examples=share(1))
    def test_arbitrary_json_returns_types_or_a_typed_error(self, value: Any) -> None:
        schema = pqext.open(written(table(), geoparquet=False)).schema
        text = json.dumps({"columns": {"g": {"encoding": "WKB", **value}}} if isinstance(value, dict) else value)
        try:
            found = geoparquet_types.assigned_types(text, schema.root.child, {})
        except GeometryError:
            pass
        else:
            assert set(found.types) <= {"g"}
        geoparquet.coverings(text)
        geoparquet.primary_column(text)


def matches(path: Any, predicate: SpatialPredicate) -> list[bool]:
    with pqext.open(path) as file:
        return [HANDLER.may_match(group.chunk(1).node, group, predicate) for group in file.row_groups]


class TestPruningByCovering:
    @pytest.mark.spec("geoparquet.covering")
    def test_geopandas_row_groups_are_pruned_by_their_covering(self, tmp_path: Path) -> None:
        points = [shapely.Point(x, 0) for x in range(40)]
        path = by_geopandas(
            tmp_path / "theirs.parquet", points, 4326, write_covering_bbox=True, row_group_size=10
        )
        assert matches(path, SpatialPredicate("intersects", (12, -1, 13, 1))) == [False, True, False, False]
        for column in ("nothing", "geometry"):  # a covering of columns that do not exist, or are not numbers
            sides = {side: [column] for side in ("xmin", "ymin", "xmax", "ymax")}
            changed = with_metadata(path.read_bytes(), column="geometry", covering={"bbox": sides}, bbox=None)
            assert matches(changed, SpatialPredicate("intersects", (12, -1, 13, 1))) == [True] * 4
        bare = by_geopandas(tmp_path / "bare.parquet", points, 4326, row_group_size=10)
        assert matches(bare, SpatialPredicate("intersects", (12, -1, 13, 1))) == [True] * 4

    @pytest.mark.spec("geoparquet.file_box")
    @pytest.mark.parametrize("crs", [4326, 3857])
    def test_files_are_skipped_by_the_box_of_the_file(self, tmp_path: Path, crs: int) -> None:
        path = by_geopandas(tmp_path / "f.parquet", [shapely.Point(x, 0) for x in range(40)], crs, row_group_size=10)
        far = SpatialPredicate("intersects", (50, -1, 60, 1))
        assert matches(path, far) == [False] * 4
        assert pqext.scan(path, filter=pqext.col("geometry").intersects((50, -1, 60, 1))).count() == 0
        with pqext.open(path, trust_statistics=False) as file:
            assert all(HANDLER.may_match(group.chunk(1).node, group, far) for group in file.row_groups)
        wide = by_geopandas(tmp_path / "wide.parquet", [shapely.Point(), None, shapely.Point(55, 0)], crs)
        assert matches(wide, far) == [True]
        empty = by_geopandas(tmp_path / "empty.parquet", [shapely.Point()], crs)
        assert matches(empty, far) == [True]

    @staticmethod
    def boxed(point: shapely.Point, bbox: Any) -> bytes:
        about = {"columns": {"g": {"encoding": "WKB", "bbox": bbox}}}
        columns = {"id": [0], "g": pa.array([shapely.to_wkb(point)])}
        table = pa.table(columns, metadata={"geo": json.dumps(about)})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        return sink.getvalue()

    @pytest.mark.spec("geoparquet.file_box")
    @pytest.mark.parametrize("digits", [4, 5, 9])
    @given(st.floats(-100, 100), st.floats(-80, 80))
    @settings(max_examples=share(0.1))
    def test_box_of_the_file_that_is_rounded_loses_no_rows(self, digits: int, x: float, y: float) -> None:
        point = shapely.Point(x, y)
        data = self.boxed(point, [round(side, digits) for side in (x, y, x, y)])
        assert matches(data, SpatialPredicate("intersects", point)) == [True]
        assert matches(data, SpatialPredicate("intersects", shapely.Point(x + 1, y))) == [False]

    @pytest.mark.spec("geoparquet.file_box")
    @pytest.mark.parametrize("bbox", [
        "9999", ["9", "9", "9", "9"], {"9": 0, "8": 0, "7": 0, "6": 0}, [True] * 4, [9, 9, 9], [None] * 4,
        [10**400] * 4, [math.nan] * 4, [9, 9, 9, 8], 9, None,
    ])  # fmt: skip
    def test_box_of_the_file_that_is_not_a_box_skips_nothing(self, bbox: Any) -> None:
        assert matches(self.boxed(shapely.Point(5, 5), bbox), SpatialPredicate("intersects", (4, 4, 6, 6))) == [True]

    @pytest.mark.spec("geoparquet.file_box")
    @pytest.mark.parametrize(
        ("west", "east", "x", "expected"),
        [(170.0, -170.0, 169.99996, True), (170.0, -170.0, 0.0, False), (0.00001, 0.0, 90.0, True)],
    )
    def test_rounded_boxes_that_wrap_lose_no_rows(self, west: float, east: float, x: float, expected: bool) -> None:
        about = {"columns": {"g": {"encoding": "WKB", "bbox": [west, -10.0, east, 10.0]}}}
        data = pa.table({"id": [0], "g": geo.from_points([x], [0.0]).storage})
        sink = io.BytesIO()
        pq.write_table(data.replace_schema_metadata({"geo": json.dumps(about)}), sink)
        assert matches(sink.getvalue(), SpatialPredicate("intersects", (x, 0.0, x, 0.0))) == [expected]

    @staticmethod
    def file(boxes: list[tuple[float, float]], width: pa.DataType, nulls: bool = False) -> bytes:
        kind = pa.struct([pa.field(name, width) for name in ("xmin", "ymin", "xmax", "ymax")])
        rows = [{"xmin": a, "ymin": 0.0, "xmax": b, "ymax": 0.0} for a, b in boxes]
        data = pa.table(
            {
                "id": pa.array(range(len(rows))),
                "g": geo.from_points([a for a, _ in boxes], [0.0] * len(rows)).storage,
                "b": pa.array([None if nulls and not row else one for row, one in enumerate(rows)], kind),
            }
        )
        covering = {"bbox": {name: ["b", name] for name in ("xmin", "ymin", "xmax", "ymax")}}
        about = {"columns": {"g": {"encoding": "WKB", "covering": covering}}}
        sink = io.BytesIO()
        pq.write_table(data.replace_schema_metadata({"geo": json.dumps(about)}), sink)
        return sink.getvalue()

    FAR = SpatialPredicate("intersects", (100, -1, 110, 1))

    @pytest.mark.spec("geoparquet.covering")
    @pytest.mark.parametrize("width", [pa.float32(), pa.float64()])
    def test_coverings_are_used_if_complete(self, width: pa.DataType) -> None:
        assert matches(self.file([(0, 1), (5, 6)], width), self.FAR) == [False]
        assert matches(self.file([(0, 1), (5, 6)], width), SpatialPredicate("disjoint", (100, -1, 110, 1))) == [True]
        assert matches(self.file([(0, 1), (5, 6)], width, nulls=True), self.FAR) == [True]

    @pytest.mark.spec("geoparquet.covering")
    def test_wrapping_boxes_are_not_misread(self) -> None:
        assert matches(self.file([(0, 1), (170, -170)], pa.float64()), SpatialPredicate(
            "intersects", (175, -1, 176, 1)
        )) == [True]
        assert matches(self.file([(170, -170)], pa.float64()), self.FAR) == [True]

    @pytest.mark.spec("geoparquet.covering")
    def test_wrapping_box_between_other_boxes_is_considered(self) -> None:
        around = self.file([(27, -169), (-169.5, -169.5), (30, 30)], pa.float64())
        assert matches(around, self.FAR) == [True]
        assert matches(around, SpatialPredicate("intersects", (100, 5, 110, 6))) == [False]

    @pytest.mark.spec("geoparquet.covering")
    def test_floats_rounded_inward_lose_no_rows(self) -> None:
        data = self.file([(0.1, 0.1)], pa.float32())
        assert float(np.float32(0.1)) != 0.1
        below = math.nextafter(0.1, -1)
        assert matches(data, SpatialPredicate("intersects", (below, 0, 0.1, 0))) == [True]

    @pytest.mark.spec("geoparquet.covering")
    @given(st.lists(st.none() | shapes(LONGITUDE, LATITUDE), min_size=1, max_size=10), st.data())
    @settings(max_examples=share(0.4))
    def test_matching_row_is_never_lost(self, rows: list[Any], data: st.DataObject) -> None:
        sink = io.BytesIO()
        frame = geopandas.GeoDataFrame({"id": range(len(rows))}, geometry=rows, crs=4326)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame.to_parquet(sink, write_covering_bbox=True, row_group_size=3)
        operation = data.draw(st.sampled_from(["intersects", "disjoint", "within", "contains"]))
        west, east, south, north = (data.draw(part) for part in (LONGITUDE, LONGITUDE, LATITUDE, LATITUDE))
        predicate = SpatialPredicate(operation, (west, min(south, north), east, max(south, north)))
        kept = matches(sink.getvalue(), predicate)
        answers = predicate.evaluate(geo.from_shapely(rows)).to_pylist()
        for row, answer in enumerate(answers):
            assert not answer or kept[row // 3]


@pytest.mark.parametrize(("z", "known"), [
    ((5.0, 6.0), True), ((-math.inf, 6.0), False), ((5.0, math.inf), False), ((math.nan, math.nan), False),
])  # fmt: skip
def test_box_has_height_only_if_both_ends_are_finite(z: tuple[float, float], known: bool) -> None:
    box = geoparquet.box_of({"bbox": [1.0, 2.0, z[0], 3.0, 4.0, z[1]]})
    assert box is not None
    assert (box.xmin, box.xmax, box.ymin, box.ymax) == (1.0, 3.0, 2.0, 4.0)
    assert (box.zmin, box.zmax) == (z if known else (None, None))
