"""STAC items and collections, compared with the values themselves and checked by pystac's schemas."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyproj
import pytest

import pqext
from pqext import col, geo

pystac = pytest.importorskip("pystac", reason="pystac is not installed (extra 'stac')")

TIME = datetime(2026, 5, 1, 12, tzinfo=UTC)


def written(path: Path, x: Any, y: Any, crs: str = "OGC:CRS84", **columns: Any) -> Path:
    table = pa.table({"id": np.arange(len(x)), "at": geo.from_points(x, y), **columns})
    pqext.write_table(table, path, geometry={"at": crs})
    return path


def test_item_has_extent_times_and_columns_of_the_rows(tmp_path: Path) -> None:
    days = pa.array([date(2024, 5, 3), None, date(2024, 5, 1)])
    path = written(tmp_path / "places.parquet", [1.0, 5.0, 3.0], [10.0, 20.0, -5.0], day=days)
    item = geo.stac_item(path, "day")
    assert (item.id, item.bbox) == ("places", [1.0, -5.0, 5.0, 20.0])
    assert item.geometry["coordinates"] == [[[1, -5], [5, -5], [5, 20], [1, 20], [1, -5]]]
    assert item.datetime is None
    assert item.common_metadata.start_datetime == datetime(2024, 5, 1, tzinfo=UTC)
    assert item.common_metadata.end_datetime == datetime(2024, 5, 3, tzinfo=UTC)
    properties = item.properties
    assert (properties["table:row_count"], properties["table:primary_geometry"]) == (3, "at")
    assert properties["table:columns"] == [
        {"name": "id", "type": "int64"}, {"name": "at", "type": "GEOMETRY"}, {"name": "day", "type": "date32[day]"}
    ]
    assert (item.assets["data"].href, item.assets["data"].media_type) == (
        str(path), "application/vnd.apache.parquet"
    )
    part = geo.stac_item(pqext.scan(path).filter(col("id") < 2), TIME, id="part")
    assert (part.id, part.bbox, part.datetime, part.properties["table:row_count"]) == ("part", [1, 10, 5, 20], TIME, 2)


def test_item_is_valid_by_the_schema_of_stac(tmp_path: Path) -> None:
    pytest.importorskip("jsonschema")
    item = geo.stac_item(written(tmp_path / "places.parquet", [1.0], [2.0]), TIME)
    item.stac_extensions = []  # their schemas are on the internet
    assert len(item.validate()) == 1
    item.properties["datetime"] = item.datetime = None
    with pytest.raises(pystac.STACValidationError):
        item.validate()


def test_extent_of_a_projected_column_is_in_degrees(tmp_path: Path) -> None:
    x, y = np.array([300_000.0, 700_000.0]), np.array([5_000_000.0, 6_000_000.0])
    item = geo.stac_item(written(tmp_path / "utm.parquet", x, y, "EPSG:25832"), TIME)
    expected = pyproj.Transformer.from_crs("EPSG:25832", "OGC:CRS84", always_xy=True).transform_bounds(
        300_000, 5_000_000, 700_000, 6_000_000
    )
    assert item.bbox == pytest.approx(expected, abs=1e-3)
    assert (item.properties["proj:code"], item.properties["proj:bbox"]) == ("EPSG:25832", [3e5, 5e6, 7e5, 6e6])


def test_box_across_the_antimeridian_has_two_parts(tmp_path: Path) -> None:
    table = pa.table({"at": geo.from_points([179.0, -178.0], [1.0, 2.0])})
    path = tmp_path / "pacific.parquet"
    pqext.write_table(table, path, geometry={"at": {"crs": "OGC:CRS84", "edges": "spherical"}})
    item = geo.stac_item(path, TIME)
    assert item.bbox == [179.0, 1.0, -178.0, 2.0]
    assert item.geometry["type"] == "MultiPolygon"
    assert [ring[0][0][0] for ring in item.geometry["coordinates"]] == [179.0, -180.0]
    assert item.properties["table:columns"] == [{"name": "at", "type": "GEOGRAPHY"}]


def test_collection_has_an_item_for_each_file(tmp_path: Path) -> None:
    places = pa.table({"day": ["a", "a", "b"], "at": geo.from_points([1.0, 2.0, 50.0], [3.0, 4.0, 60.0])})
    pqext.write_dataset(places, tmp_path / "places", partition_by=["day"], geometry={"at": "OGC:CRS84"})
    collection = geo.stac_collection(tmp_path / "places", TIME, description="Places")
    items = list(collection.get_items())
    assert [(item.id[:5], item.bbox, item.properties["table:row_count"]) for item in items] == [
        ("day=a", [1, 3, 2, 4], 2), ("day=b", [50, 60, 50, 60], 1)
    ]
    assert (collection.id, collection.extent.spatial.bboxes) == ("places", [[1, 3, 50, 60]])
    collection.normalize_and_save(str(tmp_path / "catalog"), "SELF_CONTAINED")
    again = pystac.Collection.from_file(str(tmp_path / "catalog" / "collection.json"))
    assert [item.id for item in again.get_items()] == [item.id for item in items]


@pytest.mark.parametrize("zone", [None, timezone(timedelta(hours=2))])
def test_timestamps_are_utc(zone: Any, tmp_path: Path) -> None:
    times = pa.array([datetime(2024, 5, 1, 10, tzinfo=zone)], pa.timestamp("ns", "+02:00" if zone else None))
    item = geo.stac_item(written(tmp_path / "a.parquet", [1.0], [2.0], time=times), "time")
    assert item.datetime == datetime(2024, 5, 1, 8 if zone else 10, tzinfo=UTC)


def test_rows_without_geometry_have_no_extent(tmp_path: Path) -> None:
    item = geo.stac_item(written(tmp_path / "a.parquet", [float("nan")], [float("nan")]), (TIME, TIME))
    assert (item.bbox, item.geometry, item.datetime) == (None, None, TIME)


@pytest.mark.parametrize(
    ("when", "error", "message"),
    [
        ("tim", ValueError, "no column 'tim'"),
        ("id", TypeError, "column 'id' contains int64, not dates or timestamps"),
        ("day", ValueError, "column 'day' contains only nulls"),
        (5, TypeError, "datetime must be a column name, a datetime or a pair of datetimes, not 5"),
        ((TIME, TIME - timedelta(1)), ValueError, "is after the end"),
    ],
)
def test_unusable_times_are_errors(when: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [1.0], [2.0], day=pa.array([None], pa.date32()))
    with pytest.raises(error, match=message):
        geo.stac_item(path, when)


def test_several_files_need_an_id_and_pystac_must_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(tmp_path / f"{name}.parquet", [1.0], [2.0]) for name in "ab"]
    with pytest.raises(ValueError, match="pass id="):
        geo.stac_item(paths, TIME)
    assert len(geo.stac_item(paths, TIME, id="both").assets) == 2
    monkeypatch.setitem(sys.modules, "pystac", None)
    with pytest.raises(ImportError, match=r"pip install 'pqext\[stac\]'"):
        geo.stac_item(paths[0], TIME)


def test_collection_spans_the_antimeridian_and_omits_files_without_rows(tmp_path: Path) -> None:
    for name, x in (("a", [170.0, -170.0]), ("b", [0.0, 10.0])):
        table = pa.table({"id": [0, 1], "at": geo.from_points(x, [0.0, 1.0]), "name": [name, name]})
        pqext.write_table(table, tmp_path / f"{name}.parquet", geometry={"at": {"edges": "spherical"}})
    whole = geo.stac_collection(tmp_path, TIME, description="Both")
    assert whole.extent.spatial.bboxes == [[0.0, 0.0, -170.0, 1.0]]
    part = geo.stac_collection(pqext.scan(tmp_path).filter(col("name") == "b"), TIME, description="b", id="part")
    assert [item.id for item in part.get_items()] == ["b"]
