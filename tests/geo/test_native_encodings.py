"""GeoParquet 1.1's native encodings are read as geometries."""

from __future__ import annotations

import io
import json
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.geo import types

RING, HOLE = [(0, 0), (9, 0), (9, 9), (0, 9), (0, 0)], [(1, 1), (2, 1), (2, 2), (1, 1)]
COLUMNS = {
    "point": [shapely.Point(1, 2), None, shapely.Point(40, 50)],
    "point z": [shapely.Point(1, 2, 3), None],
    "linestring": [shapely.LineString([(0, 0), (1, 1)]), None, shapely.LineString([(40, 40), (41, 42), (43, 44)])],
    "polygon": [shapely.Polygon(RING, [HOLE]), None, shapely.box(40, 40, 41, 41)],
    "multipoint": [shapely.MultiPoint([(0, 1), (2, 3)]), None, shapely.MultiPoint([(40, 41)])],
    "multilinestring": [shapely.MultiLineString([[(0, 0), (1, 1)], [(2, 2), (3, 4)]]), None],
    "multipolygon": [shapely.MultiPolygon([shapely.Polygon(RING, [HOLE]), shapely.box(40, 40, 41, 41)]), None],
}


def by_geopandas(shapes: list[Any], crs: Any = 5070, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    frame = geopandas.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=crs)
    frame.to_parquet(sink, geometry_encoding="geoarrow", **options)
    return sink


def interleaved(shapes: list[Any], arrow_schema: bool) -> io.BytesIO:
    """The file that GeoArrow's interleaved layout gives, with or without Arrow's schema of lists of fixed size."""
    frame = geopandas.GeoDataFrame({"id": range(len(shapes))}, geometry=shapes, crs=5070)
    table = pa.table(frame.to_arrow(geometry_encoding="geoarrow", interleaved=True))
    field = table.schema.field("geometry")
    name = field.metadata[b"ARROW:extension:name"].decode().removeprefix("geoarrow.")
    about = {"encoding": name, "geometry_types": [], "crs": frame.crs.to_json_dict()}
    text = json.dumps({"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}})
    with pq.ParquetWriter(sink := io.BytesIO(), table.schema, store_schema=arrow_schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"geo": text})
    return sink


def read(sink: io.BytesIO, **options: Any) -> pa.Table:
    return pqext.read_table(sink.getvalue(), **options)


@pytest.mark.spec("geoparquet.native_encodings")
class TestNativeEncodings:
    @pytest.mark.parametrize("name", COLUMNS)
    def test_geopandas_files_match_geopandas(self, name: str) -> None:
        sink = by_geopandas(COLUMNS[name])
        assert json.loads(pq.read_metadata(sink).metadata[b"geo"])["columns"]["geometry"]["encoding"] == name.split()[0]
        expected, frame = geopandas.read_parquet(sink), geo.read_geopandas(sink.getvalue())
        assert frame.crs == expected.crs
        assert shapely.equals_identical(frame.geometry.to_numpy(), expected.geometry.to_numpy()).tolist() == [
            shape is not None for shape in COLUMNS[name]
        ]
        assert types.type_of(read(sink).schema.field("geometry")) == geo.GeospatialType("EPSG:5070")

    @pytest.mark.parametrize("arrow_schema", [True, False])
    @pytest.mark.parametrize("name", COLUMNS)
    def test_interleaved_coordinates_are_geometries(self, name: str, arrow_schema: bool) -> None:
        shapes = COLUMNS[name]
        found = geo.to_shapely(read(interleaved(shapes, arrow_schema))["geometry"])
        assert [a and a.wkt for a in found] == [b and b.wkt for b in shapes]

    @pytest.mark.parametrize("name", ["point", "linestring", "polygon", "multipoint"])
    def test_filters_match_shapely(self, name: str) -> None:
        query = shapely.box(39, 39, 60, 60)
        expected = [i for i, shape in enumerate(COLUMNS[name]) if shape is not None and shape.intersects(query)]
        for sink in (by_geopandas(COLUMNS[name]), interleaved(COLUMNS[name], False)):
            found = read(sink, filter=pqext.col("geometry").intersects(query), columns=["id"])
            assert found["id"].to_pylist() == expected == [2]

    @pytest.mark.parametrize("covering", [False, True])
    def test_row_groups_are_pruned_by_coordinate_bounds(self, covering: bool) -> None:
        sink = by_geopandas(
            [shapely.LineString([(x, x), (x + 1, x)]) for x in range(20)], row_group_size=5,
            write_covering_bbox=covering,
        )
        scan = pqext.scan(sink.getvalue(), filter=pqext.col("geometry").intersects((7, 6, 8, 8)))
        assert scan.to_table()["id"].to_pylist() == [6, 7, 8]
        assert "reads 1 of 4 row groups" in str(scan.explain())

    @given(st.lists(st.none() | st.tuples(*[st.floats(-1e6, 1e6)] * 2), min_size=1, max_size=12), st.data())
    def test_pruning_loses_no_row(self, rows: list[tuple[float, float] | None], data: st.DataObject) -> None:
        shapes = [None if row is None else shapely.Point(row) for row in rows]
        if all(shape is None for shape in shapes):
            shapes.append(shapely.Point(0, 0))
        sink = by_geopandas(shapes, row_group_size=3)
        x, y, width, height = (data.draw(st.floats(-1e6, 1e6)) for _ in range(4))
        box = shapely.box(x, y, x + abs(width), y + abs(height))
        for operation in ("intersects", "disjoint"):
            expected = [i for i, shape in enumerate(shapes) if shape is not None and getattr(shape, operation)(box)]
            found = read(sink, filter=getattr(pqext.col("geometry"), operation)(box))
            assert found["id"].to_pylist() == expected

    def test_rewritten_file_describes_its_contents(self) -> None:
        table = read(by_geopandas(COLUMNS["polygon"]))
        pqext.write_table(table, sink := io.BytesIO())
        frame = geopandas.read_parquet(sink)
        assert frame.geometry.tolist() == COLUMNS["polygon"]
        assert frame.crs.to_epsg() == 5070

    def test_geoparquet_false_leaves_coordinate_columns(self) -> None:
        assert pa.types.is_struct(read(by_geopandas(COLUMNS["point"]), geoparquet=False).schema.field("geometry").type)

    def test_columns_without_the_layout_are_unchanged(self) -> None:
        about = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "polygon"}}}
        table = pa.table({"g": pa.array([{"x": 1.0, "y": 2.0}]), "h": [1]}).replace_schema_metadata(
            {"geo": json.dumps(about)}
        )
        pq.write_table(table, sink := io.BytesIO())
        assert read(sink)["g"].to_pylist() == [{"x": 1.0, "y": 2.0}]

    def test_null_coordinates_are_an_error_that_names_the_column(self) -> None:
        about = {"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "linestring"}}}
        table = pa.table({"g": pa.array([[{"x": 1.0, "y": 2.0}, None]])}).replace_schema_metadata(
            {"geo": json.dumps(about)}
        )
        pq.write_table(table, sink := io.BytesIO())
        with pytest.raises(GeometryError, match=r"linestring contains a null part or coordinate.*column g"):
            read(sink)

    @pytest.mark.parametrize(
        ("rows", "sizes"), [([[1.0, 2.0], [1.0, 2.0, 3.0]], "2 and 3"), ([[1.0]], "1"), ([[1.0] * 5], "5")]
    )
    def test_coordinates_of_other_sizes_are_an_error(self, rows: list[list[float]], sizes: str) -> None:
        text = json.dumps({"version": "1.1.0", "primary_column": "g", "columns": {"g": {"encoding": "point"}}})
        table = pa.table({"g": rows}).replace_schema_metadata({"geo": text})
        pq.write_table(table, sink := io.BytesIO())
        with pytest.raises(GeometryError, match=rf"coordinates have {sizes} dimensions \[.*\]; expected 2, 3 or 4"):
            read(sink)

    def test_rows_are_not_appended_to_a_native_encoding(self, tmp_path: Any) -> None:
        path = tmp_path / "f.parquet"
        path.write_bytes(by_geopandas(COLUMNS["point"]).getvalue())
        with pytest.raises(ValueError, match="column 'geometry' has type GEOMETRY in another encoding; write the file"):
            pqext.write_table(pqext.read_table(path), path, append=True)
        pqext.write_table(pqext.read_table(path), path)  # the remedy
        pqext.write_table(pqext.read_table(path), path, append=True)
