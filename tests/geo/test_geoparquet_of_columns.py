"""GeoParquet metadata that comes with a table tells of no column that the table has lost."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pqext
from pqext import geo

POINTS = geo.from_points([1.0, 2.0], [3.0, 4.0])
SCHEMA = pa.schema([pa.field("id", pa.int64()), geo.geometry_field("g"), geo.geometry_field("h")])


def full_table() -> pa.Table:
    sink = io.BytesIO()
    table = pa.table([pa.array([0, 1]), POINTS, POINTS], SCHEMA)
    pqext.write_table(table, sink, geoparquet=True, geometry={"g": {"covering": True}})
    return pqext.read_table(sink.getvalue())


def geo_metadata(table: pa.Table, **options: Any) -> Any:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    pairs = {pair.key: pair.value for pair in pqext.open(sink.getvalue()).metadata.key_value_metadata or ()}
    return json.loads(pairs["geo"]) if "geo" in pairs else None


@pytest.mark.spec("geoparquet.other_rows")
def test_removed_columns_are_not_described() -> None:
    table = full_table()
    assert geo_metadata(table)["primary_column"] == "g"
    without = geo_metadata(table.drop_columns(["g"]))
    assert (without["primary_column"], list(without["columns"])) == ("h", ["h"])
    assert geo_metadata(table.select(["id"])) is None
    renamed = table.rename_columns(["id", "a", "b", "c"])
    assert geo_metadata(renamed, geoparquet=False) is None
    assert geo_metadata(renamed)["columns"].keys() == {"a", "c"}
    assert "covering" not in geo_metadata(renamed)["columns"]["a"]


@pytest.mark.spec("geoparquet.other_rows")
def test_coverings_are_dropped_with_their_geometries(tmp_path: Path) -> None:
    table = full_table()
    points = geo.from_points([50.0, 60.0], [3.0, 4.0]).cast(table.schema.field("g").type)
    moved = table.set_column(1, table.schema.field("g"), points)
    assert "covering" not in geo_metadata(moved)["columns"]["g"]
    pqext.write_table(moved, tmp_path / "moved")
    assert len(geopandas.read_parquet(tmp_path / "moved", bbox=(45, 0, 65, 9))) == 2


@pytest.mark.spec("geoparquet.other_rows")
@pytest.mark.parametrize("values", [pa.array([1, 2]), pa.array(["a", "b"]), pa.array([[b"a"], [b"b"]])])
def test_other_columns_named_like_a_geometry_column_are_not_described(values: pa.Array) -> None:
    table = full_table().set_column(1, "g", values)
    assert geo_metadata(table)["columns"].keys() == {"h"}
    assert geo_metadata(table, geoparquet=False) is None
    assert geo_metadata(table.drop_columns(["h"])) is None


@pytest.mark.spec("geoparquet.other_rows")
def test_columns_of_a_native_encoding_are_described_until_they_are_replaced(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"id": [0, 1]}, geometry=geopandas.points_from_xy([1, 50], [3, 4]), crs=4326)
    frame.to_parquet(tmp_path / "first", geometry_encoding="geoarrow")
    table = pqext.read_table(tmp_path / "first", geoparquet=False)
    pqext.write_table(table, tmp_path / "second")
    assert geopandas.read_parquet(tmp_path / "second").geometry.equals(frame.geometry)
    for values in (pa.array([1, 2]), pa.array(["a", "b"]), pa.array([b"a", b"b"])):
        assert geo_metadata(table.set_column(1, "geometry", values)) is None


@pytest.mark.spec("geoparquet.older", "geoparquet.other_rows")
def test_tables_with_a_covering_are_rewritten_as_version_1_1(tmp_path: Path) -> None:
    pqext.write_table(pa.table([POINTS], ["g"]), tmp_path / "first", geoparquet="1.1")
    pqext.write_table(pqext.read_table(tmp_path / "first"), tmp_path / "second", geoparquet="1.1")
    first, second = (json.loads(pq.read_metadata(tmp_path / name).metadata[b"geo"]) for name in ("first", "second"))
    assert second == first
    assert len(geopandas.read_parquet(tmp_path / "second", bbox=(1, 3, 1, 3))) == 1
    moved = pqext.read_table(tmp_path / "first").set_column(0, "g", geo.from_points([50.0, 60.0], [3.0, 4.0]))
    pqext.write_table(moved, tmp_path / "moved", geoparquet="1.1")
    assert len(geopandas.read_parquet(tmp_path / "moved", bbox=(45, 0, 65, 9))) == 2
    assert not pqext.verify(tmp_path / "second").faults + pqext.verify(tmp_path / "moved").faults
    table = pa.table([POINTS, POINTS], ["g", "g_bbox"])
    with pytest.raises(ValueError, match="'g_bbox', computed from 'g', already exists"):
        pqext.write_table(table, tmp_path / "third", geoparquet="1.1")


@pytest.mark.spec("geo.covering.name")
@pytest.mark.parametrize("data", [pa.array(["a", "b"]), pa.array([{"xmin": 1.0, "zmin": 2.0}] * 2)])
def test_data_under_the_name_of_a_covering_is_not_overwritten(data: pa.Array, tmp_path: Path) -> None:
    table = full_table()
    other = table.set_column(table.schema.get_field_index("g_bbox"), "g_bbox", data)
    for options in ({"geoparquet": "1.1"}, {"geometry": {"g": {"covering": True}}}):
        with pytest.raises(ValueError, match="'g_bbox', computed from 'g', already exists"):
            pqext.write_table(other, tmp_path / "file", **options)
    pqext.write_table(other, tmp_path / "file", geometry={"g": {"covering": "box"}})
    assert pq.read_table(tmp_path / "file")["g_bbox"].to_pylist() == data.to_pylist()


@pytest.mark.spec("geo.covering.name")
def test_coverings_keep_their_type(tmp_path: Path) -> None:
    frame = geopandas.GeoDataFrame({"id": [0, 1]}, geometry=geopandas.points_from_xy([1, 50], [3, 4]), crs=4326)
    frame.to_parquet(tmp_path / "first", write_covering_bbox=True, schema_version="1.1.0")
    table = pqext.read_table(tmp_path / "first")
    pqext.write_table(table, tmp_path / "second", geoparquet="1.1")
    assert pq.read_schema(tmp_path / "second").equals(pq.read_schema(tmp_path / "first"))
    pqext.write_table(table, tmp_path / "first", append=True, geoparquet="1.1")
    assert list(geopandas.read_parquet(tmp_path / "first", bbox=(45, 0, 65, 9))["id"]) == [1, 1]


@pytest.mark.spec("geoparquet.older", "geoparquet.other_rows")
def test_datasets_compute_coverings_again(tmp_path: Path) -> None:
    pqext.write_table(pa.table([pa.array(["a", "b"]), POINTS], ["key", "g"]), tmp_path / "file", geoparquet="1.1")
    points = geo.from_points([50.0, 60.0], [3.0, 4.0])
    moved = pqext.read_table(tmp_path / "file").set_column(1, "g", points)
    pqext.write_dataset(moved, tmp_path / "folder", partition_by="key", geoparquet="1.1")
    paths = (tmp_path / "folder").rglob("*.parquet")
    assert [len(geopandas.read_parquet(path, bbox=(45, 0, 65, 9))) for path in paths] == [1, 1]


@pytest.mark.spec("geoparquet.older", "geoparquet.other_rows")
@pytest.mark.parametrize("options", [{"geoparquet": "1.1"}, {"geometry": {"g": {"covering": True}}}])
def test_repaired_files_keep_their_coverings(options: dict[str, Any], tmp_path: Path) -> None:
    pqext.write_table(pa.table([POINTS], ["g"]), tmp_path / "first", row_group_rows=1, **options)
    pqext.repair(tmp_path / "first", tmp_path / "second")
    first, second = (json.loads(pq.read_metadata(tmp_path / name).metadata[b"geo"]) for name in ("first", "second"))
    assert second["columns"]["g"]["covering"] == first["columns"]["g"]["covering"]
    assert len(geopandas.read_parquet(tmp_path / "second", bbox=(1, 3, 1, 3))) == 1


@pytest.mark.spec("geoparquet.other_rows")
def test_repaired_files_whose_geometries_change_lose_their_coverings(tmp_path: Path) -> None:
    table = pa.table([geo.from_points([200.0], [3.0])], ["g"])
    pqext.write_table(table, tmp_path / "first", geometry={"g": {"covering": True, "check_range": False}})
    pqext.repair(tmp_path / "first", tmp_path / "second", geometry={"g": {"check_range": "clamp"}})
    assert len(geopandas.read_parquet(tmp_path / "second", bbox=(179, 0, 181, 9))) == 1


@pytest.mark.spec("geoparquet.columns")
def test_primary_column_option_adds_missing_metadata(tmp_path: Path) -> None:
    table = pa.table([POINTS, POINTS], ["g", "h"])
    pqext.write_table(table, tmp_path / "file", geoparquet=False)
    with pqext.ParquetWriter(tmp_path / "file", table.schema, append=True, primary_geometry="h") as writer:
        writer.write_table(table)
    frame = geopandas.read_parquet(tmp_path / "file")
    assert (len(frame), frame.active_geometry_name) == (4, "h")
