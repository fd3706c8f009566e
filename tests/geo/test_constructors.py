"""Constructed geometry arrays are marked, so that files get their type, CRS and boxes without further options."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import duckdb
import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from invalid_arrays import WKB

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo import types

POINT = shapely.Point(1, 2)
SEPARATED = pa.array([{"x": 1.0, "y": 2.0}, None])
CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "points": lambda **options: geo.from_points([1.0, None], [2.0, None], **options),
    "shapely": lambda **options: geo.from_shapely([POINT, None], **options),
    "wkt": lambda **options: geo.from_wkt(pa.array(["POINT (1 2)", None]), **options),
    "chunks": lambda **options: geo.from_wkt(pa.chunked_array([["POINT (1 2)"], [None]]), **options),
    "geoarrow": lambda **options: geo.from_geoarrow(SEPARATED, "geoarrow.point", **options),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
@pytest.mark.parametrize("crs", [None, "EPSG:3857", 5070])
def test_constructed_array_is_written_with_type_crs_and_box(name: str, crs: Any) -> None:
    array = CONSTRUCTORS[name](crs=crs)
    table = pa.table({"g": array})
    pqext.write_table(table, sink := io.BytesIO(), geoparquet=True)
    written = pq.ParquetFile(sink)
    assert written.schema.column(0).logical_type.type == "GEOMETRY"
    assert written.metadata.row_group(0).column(0).geo_statistics.xmax == 1.0
    frame = geopandas.read_parquet(sink)
    assert frame.crs == pyproj.CRS(crs or "OGC:CRS84")
    assert frame.geometry.tolist() == [POINT, None]


def test_geojson_is_marked_as_longitude_and_latitude() -> None:
    array = geo.from_geojson(['{"type": "Point", "coordinates": [1, 2]}', None])
    assert types.array_type(array.type) == geo.GeospatialType()
    assert geo.to_shapely(array).tolist() == [POINT, None]


def test_other_libraries_read_constructed_geometries() -> None:
    table = pa.table({"g": geo.from_points([1.0], [2.0])})
    assert str(duckdb.from_arrow(table).types[0]).startswith("GEOMETRY")
    assert geopandas.GeoDataFrame.from_arrow(table).crs == pyproj.CRS("OGC:CRS84")
    pq.write_table(table, sink := io.BytesIO())
    assert pq.ParquetFile(sink).schema.column(0).logical_type.type == "GEOMETRY"


@pytest.mark.parametrize(("crs", "expected"), [(4326, "EPSG:4326"), (None, "srid:0"), (32633, "EPSG:32633")])
def test_geoseries_preserves_its_crs(crs: Any, expected: str) -> None:
    array = geo.from_shapely(geopandas.GeoSeries([POINT], crs=crs))
    assert types.array_type(array.type) == geo.GeospatialType(expected)


def test_geoseries_is_not_relabelled() -> None:
    series = geopandas.GeoSeries([POINT], crs=32633)
    with pytest.raises(ValueError, match="has CRS EPSG:32633, but crs= states EPSG:4326"):
        geo.from_shapely(series, crs=4326)
    with pytest.raises(ValueError, match="CRS mismatch"):  # as geopandas
        geopandas.GeoDataFrame(geometry=series, crs=4326)
    assert geo.from_shapely(series, crs=series.crs.to_wkt()).type == geo.from_shapely(series).type
    unknown = geopandas.GeoSeries([POINT])
    assert types.array_type(geo.from_shapely(unknown, crs=4326).type) == geo.GeospatialType("EPSG:4326")


def test_geoarrow_crs_and_edges_are_preserved() -> None:
    series = geopandas.GeoSeries([POINT], crs=5070)
    with pytest.raises(ValueError, match="not a GeoArrow layout"):
        geo.from_geoarrow(pa.array([b""]))
    extension = geo.as_extension(pa.table(
        [series.to_wkb().to_list()], schema=pa.schema([geo.geometry_field("g", 4267, "spherical")])
    ))["g"]  # fmt: skip
    assert types.array_type(geo.from_geoarrow(extension).type) == geo.GeospatialType("EPSG:4267", "spherical")


def test_transformed_and_clamped_arrays_remain_marked() -> None:
    points = geo.from_points([181.0], [2.0])
    assert types.array_type(geo.clamp(points).type) == geo.GeospatialType()
    moved = geo.transform(points, None, 3857)
    assert types.array_type(moved.type) == geo.GeospatialType("EPSG:3857")
    assert geo.transform(points.storage, None, 3857).type == pa.binary()


def test_coordinates_in_metres_without_a_crs_are_rejected_on_write() -> None:
    table = pa.table({"g": geo.from_points([5e5], [6e6])})
    with pytest.raises(GeometryError, match="must be longitudes"):
        pqext.write_table(table, io.BytesIO())
    with pytest.raises(GeometryError, match="CRS 'nonsense' is unknown"):
        geo.from_points([1.0], [2.0], crs="nonsense")


@pytest.mark.parametrize("form", ["array", "table", "batch"])
def test_from_shapely_rejects_arrow_arrays(form: str) -> None:
    invalid = WKB["an offset far beyond the data"]
    given = {
        "array": invalid,
        "table": pa.table({"g": invalid}),
        "batch": pa.record_batch({"g": invalid}),
    }[form]
    with pytest.raises(TypeError, match="shapely geometries, not an Arrow"):
        geo.from_shapely(given)


def test_from_shapely_rejects_arrays_of_different_shapes() -> None:
    with pytest.raises(TypeError, match="expected a list, numpy array or GeoSeries of shapely geometries"):
        geo.from_shapely([np.zeros((2, 2)), np.zeros((2, 3))])


def test_points_are_made_of_chunked_arrays_of_equal_length() -> None:
    x, y = pa.chunked_array([[1.0], [], [2.0, None]]), pa.chunked_array([[3, 4], [5]])
    points = [shapely.Point(1, 3), shapely.Point(2, 4), None]
    assert geo.to_shapely(geo.from_points(x, y)).tolist() == points
    with pytest.raises(ValueError, match=r"same length, not \[3, 2\]"):
        geo.from_points(x, y[:2])
