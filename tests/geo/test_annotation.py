"""Geometry columns through the writer and the reader: types, marks, statistics, checks, pruning."""

from __future__ import annotations

import io
import json
import math
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError
from pqext.core.format import metadata
from pqext.core.format.predicate import Bounds
from pqext.geo import BoundingBox, GeospatialType, SpatialPredicate, types
from pqext.geo.annotation import HANDLER
from pqext.geo.predicates.boxes import Operation
from reference import wkb as twin
from reference.effort import share
from reference.geometries import LATITUDE, LONGITUDE, shapes, trees

POINTS = [(170.0, 1.0), (-170.0, 2.0), (175.0, -3.0)]
GEOMETRY = metadata.LogicalType(GEOMETRY=metadata.GeometryType())
GEOGRAPHY = metadata.LogicalType(GEOGRAPHY=metadata.GeographyType())


def points_table(field: pa.Field, points: list[tuple[float, float]] = POINTS) -> pa.Table:
    x, y = zip(*points, strict=True)
    return pa.table([geo.from_points(x, y).cast(field.type)], schema=pa.schema([field]))


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(table, sink, **options)
    return sink.getvalue()


def opened(data: bytes) -> Any:
    return pqext.open(io.BytesIO(data))


def chunk(data: bytes, row_group: int = 0, column: int = 0) -> Any:
    return opened(data).row_groups[row_group].chunk(column)


FIELDS = {
    "geometry": (geo.geometry_field("g"), GEOMETRY),
    "projected": (
        geo.geometry_field("g", "EPSG:3857"),
        metadata.LogicalType(GEOMETRY=metadata.GeometryType(crs="EPSG:3857")),
    ),
    "geography": (geo.geometry_field("g", edges="spherical"), GEOGRAPHY),
    "karney": (
        geo.geometry_field("g", "EPSG:4269", "karney"),
        metadata.LogicalType(
            GEOGRAPHY=metadata.GeographyType(crs="EPSG:4269", algorithm=metadata.EdgeInterpolationAlgorithm.KARNEY)
        ),
    ),
}


@pytest.mark.spec("geometry.physical", "geography.physical", "geometry.crs", "geography.crs", "geography.algorithm")
@pytest.mark.parametrize("name", FIELDS)
def test_marked_column_round_trips_with_its_type_and_marks(name: str) -> None:
    field, logical = FIELDS[name]
    data = written(points_table(field), geoparquet=False)
    file = opened(data)
    leaf = file.schema.leaves[0]
    assert leaf.logical_type == logical
    assert leaf.physical_type == metadata.Type.BYTE_ARRAY
    assert types.type_of(file.arrow_schema.field("g")) == types.type_of(field)
    assert file.read()["g"].to_pylist() == points_table(field)["g"].to_pylist()
    assert pq.read_table(io.BytesIO(data))["g"].to_pylist() == points_table(field)["g"].to_pylist()


@pytest.mark.spec(
    "geo.statistics.place", "geo.box.wraparound", "geo.box.geography", "geometry.order", "geography.order"
)
@pytest.mark.parametrize(("name", "wraps"), [("geometry", True), ("projected", False), ("geography", True)])
def test_chunks_have_boxes_and_types_but_no_minimum_and_maximum(name: str, wraps: bool) -> None:
    field, _ = FIELDS[name]
    data = written(points_table(field))
    box = BoundingBox(170, -170, -3, 2) if wraps else BoundingBox(-170, 175, -3, 2)
    found = chunk(data).metadata
    assert found.geospatial_statistics == metadata.GeospatialStatistics(bbox=box.to_metadata(), geospatial_types=[1])
    assert found.statistics is None or found.statistics.min_value is None is found.statistics.max_value
    theirs = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    assert (theirs.geo_statistics.xmin, theirs.geo_statistics.xmax) == (box.xmin, box.xmax)
    assert theirs.geo_statistics.geospatial_types == [1]
    assert theirs.statistics is None or not theirs.statistics.has_min_max


@pytest.mark.spec("geo.box.geography")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_geography_box_contains_full_edges(edges: geo.types.Edges) -> None:
    lines = geo.from_shapely([shapely.LineString([(0, 60), (90, 60)]), None])
    table = pa.table([lines], schema=pa.schema([geo.geometry_field("g", edges=edges)]))
    data = written(table)
    found = chunk(data).geospatial_statistics
    assert list(found.geospatial_types) == [2]
    assert (found.bbox.xmin, found.bbox.xmax, found.bbox.ymin) == (0, 90, 60)
    assert found.bbox.ymax == pytest.approx(67.79, abs=0.02)
    theirs = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).geo_statistics
    assert theirs.ymax == found.bbox.ymax


def test_all_null_chunk_has_no_geospatial_statistics() -> None:
    table = pa.table([pa.nulls(3, pa.binary())], schema=pa.schema([geo.geometry_field("g")]))
    data = written(table)
    assert chunk(data).geospatial_statistics is None
    assert opened(data).read()["g"].to_pylist() == [None] * 3


@pytest.mark.spec("geo.box.zm", "geo.types.several")
def test_nested_geometries_have_statistics() -> None:
    values = geo.from_points([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]).storage
    field = geo.geometry_field("g")
    struct = pa.StructArray.from_arrays([values], fields=[field])
    listed = pa.ListArray.from_arrays([0, 2, 2, 3], values, type=pa.list_(field.with_name("element")))
    data = written(pa.table({"s": struct, "l": listed}))
    expected = BoundingBox(1, 3, 4, 6, 7, 9)
    for column in (0, 1):
        found = chunk(data, column=column).geospatial_statistics
        assert found == metadata.GeospatialStatistics(bbox=expected.to_metadata(), geospatial_types=[1001])
    table = opened(data).read()
    assert table["s"].to_pylist() == struct.to_pylist()
    assert table["l"].to_pylist() == listed.to_pylist()


class TestWhatIsWritten:
    @pytest.mark.spec("geo.wkb.ewkb")
    @given(st.lists(st.one_of(st.none(), trees(st.floats(-90, 90))), max_size=4))
    @settings(max_examples=share(0.3))
    def test_files_contain_iso_wkb_for_any_input(self, geometries: list[twin.Geometry | None]) -> None:
        strict = [g for g in geometries if g is None or twin.is_strict(g)]
        array = pa.array([None if g is None else twin.encode(g) for g in strict], pa.binary())
        table = pa.table([array], schema=pa.schema([geo.geometry_field("g")]))
        expected = [None if g is None else twin.encode(twin.to_iso(g)) for g in strict]
        assert pq.read_table(io.BytesIO(written(table)))["g"].to_pylist() == expected

    @pytest.mark.spec("geo.wkb.ewkb")
    def test_srid_must_match_the_column_crs(self) -> None:
        def ewkb(*srids: int) -> pa.Table:
            points = [twin.Geometry(1, 0, [(1.0, 2.0)], extended=True, srid=srid) for srid in srids]
            values = [twin.encode(twin.to_iso(points[0])), *map(twin.encode, points)]
            return pa.table({"g": pa.array(values, pa.binary())})

        written(ewkb(4326), geometry={"g": None})
        written(ewkb(0), geometry={"g": None})
        written(ewkb(3857), geometry={"g": "EPSG:3857"})
        with pytest.raises(GeometryError, match="row 1: EWKB has SRID 3857, but the column has CRS OGC:CRS84"):
            written(ewkb(3857), geometry={"g": None})
        with pytest.raises(GeometryError, match="row 4: EWKB has SRID 3857"):
            written(ewkb(4326, 0, 4326, 3857), geometry={"g": None})

    @pytest.mark.parametrize("type", [pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())])
    def test_any_arrow_binary_layout_is_accepted(self, type: pa.DataType) -> None:
        field = geo.geometry_field("g").with_type(type)
        plain = points_table(geo.geometry_field("g"))["g"]
        array = plain.combine_chunks().dictionary_encode() if pa.types.is_dictionary(type) else plain.cast(type)
        data = written(pa.table([array], schema=pa.schema([field])))
        assert opened(data).read()["g"].to_pylist() == plain.to_pylist()
        assert chunk(data).geospatial_statistics.bbox is not None

    def test_extension_arrays_are_accepted_with_their_crs(self) -> None:
        table = geo.as_extension(points_table(geo.geometry_field("g", "EPSG:3857")))
        file = opened(written(table))
        assert types.type_of(file.arrow_schema.field("g")) == GeospatialType("EPSG:3857")
        assert file.read()["g"].to_pylist() == table["g"].to_pylist()

    def test_geopandas_columns_are_accepted_with_their_crs(self) -> None:
        geopandas = pytest.importorskip("geopandas")
        frame = geopandas.GeoSeries.from_xy([1.0], [2.0], crs="EPSG:3857").to_frame("g")
        file = opened(written(pa.table(frame.to_arrow())))
        assert types.type_of(file.arrow_schema.field("g")) == GeospatialType("EPSG:3857")
        back = geopandas.GeoDataFrame.from_arrow(file.read())
        assert back.geometry.iloc[0] == shapely.Point(1, 2)

    def test_invalid_wkb_is_an_error_with_row_and_byte(self, tmp_path: Path) -> None:
        array = pa.array([b"\1\1\0\0\0" + b"\0" * 16, b"\1\1\0\0\0\0"], pa.binary())
        target = tmp_path / "f.parquet"
        with pytest.raises(GeometryError, match="row 1: the geometry is truncated") as caught:
            pqext.write_table(pa.table({"g": array}), target, geometry={"g": None})
        assert (caught.value.row, caught.value.offset) == (1, 5)
        assert not target.exists()

    def test_column_that_is_not_binary_is_rejected(self) -> None:
        with pytest.raises(GeometryError, match="must contain WKB"):
            written(pa.table({"g": ["POINT (0 0)"]}), geometry={"g": None})


class TestOptions:
    PLAIN = pa.table({"g": geo.from_points([1.0], [2.0])})

    @pytest.mark.spec("geo.crs.custom", "geometry.crs")
    @pytest.mark.parametrize(
        ("option", "expected"),
        [
            (None, GeospatialType()),
            ("EPSG:3857", GeospatialType("EPSG:3857")),
            (3857, GeospatialType("EPSG:3857")),
            (pyproj.CRS("EPSG:5070").to_json_dict(), GeospatialType("EPSG:5070")),
            ({"crs": "srid:5070"}, GeospatialType("srid:5070")),
            ({"edges": "thomas"}, GeospatialType(None, "thomas")),
            ({"crs": "EPSG:4269", "edges": "spherical"}, GeospatialType("EPSG:4269", "spherical")),
            ({"check_range": False}, GeospatialType()),
        ],
    )
    def test_option_makes_a_plain_column_a_geometry(self, option: Any, expected: GeospatialType) -> None:
        file = opened(written(self.PLAIN, geometry={"g": option}, geoparquet=False))
        assert types.type_of(file.arrow_schema.field("g")) == expected

    def test_explicit_option_overrides_the_marks(self) -> None:
        table = points_table(geo.geometry_field("g", "EPSG:4269", "spherical"))
        for option, expected in [
            ({"check_range": True}, GeospatialType("EPSG:4269", "spherical")),
            ({"crs": "EPSG:4326"}, GeospatialType("EPSG:4326", "spherical")),
            ({"edges": "planar"}, GeospatialType("EPSG:4269")),
        ]:
            file = opened(written(table, geometry={"g": option}))
            assert types.type_of(file.arrow_schema.field("g")) == expected

    @pytest.mark.spec("geo.crs.projjson")
    def test_crs_may_be_in_a_file_property(self) -> None:
        own = pyproj.CRS("EPSG:5070").to_json()
        far = pa.table({"g": geo.from_points([1e6], [2e6])})
        data = written(far, geometry={"g": "projjson:albers"}, key_value_metadata={"albers": own}, geoparquet=False)
        field = opened(data).arrow_schema.field("g")
        assert types.type_of(field) == GeospatialType("EPSG:5070")
        assert json.loads(field.metadata[b"ARROW:extension:metadata"])["crs"] == json.loads(own)
        stated = opened(data).schema.find("g").logical_type
        assert stated.GEOMETRY.crs == "projjson:albers"
        geographic = pyproj.CRS("EPSG:4269").to_json()
        with pytest.raises(GeometryError, match="must be longitudes"):
            written(far, geometry={"g": "projjson:nad83"}, key_value_metadata={"nad83": geographic})

    @pytest.mark.spec("geo.crs.projjson")
    def test_crs_may_be_in_a_table_property(self) -> None:
        own = pyproj.CRS("EPSG:5070").to_json()
        far = pa.table({"g": geo.from_points([1e6], [2e6])})
        field = types.mark(pa.field("g", pa.binary()), GeospatialType("projjson:albers"))
        with pytest.warns(UserWarning, match="'projjson:albers' is unknown"):
            data = written(far.cast(pa.schema([field])))
        crs = types.type_of(opened(data).arrow_schema.field("g"))
        assert crs == GeospatialType("projjson:albers")
        for properties, expected in (
            ({"albers": own}, "EPSG:5070"),
            ({"albers": "{"}, "projjson:albers"),
            ({"other": own}, "projjson:albers"),
        ):
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                table = pqext.read_table(data, properties=properties)
            assert types.type_of(table.schema.field("g")) == GeospatialType(expected)
            assert {"'projjson:albers' is unknown" in str(one.message) for one in warned} == (
                {True} if expected.startswith("projjson") else set()
            )
            assert table["g"].to_pylist() == far["g"].to_pylist()
        with pytest.raises(TypeError, match="properties must map"):
            pqext.read_table(data, properties="albers")

    @pytest.mark.spec("geography.crs")
    @pytest.mark.parametrize("crs", ["EPSG:3857", "srid:7", "srid:0"])
    def test_geography_requires_a_geographic_crs(self, crs: str) -> None:
        with pytest.raises(GeometryError, match="column 'g': GEOGRAPHY needs a geographic CRS"):
            written(self.PLAIN, geometry={"g": {"crs": crs, "edges": "spherical"}})


class TestRange:
    @pytest.mark.spec("geo.crs.bounds", "geography.range", "geography.crs")
    @pytest.mark.parametrize("place", [(180.1, 0.0), (-181.0, 0.0), (0.0, 90.5), (0.0, -91.0), (math.inf, 0.0)])
    @pytest.mark.parametrize("name", ["geometry", "geography"])
    def test_coordinates_out_of_longitude_and_latitude_range_are_rejected(
        self, name: str, place: tuple[float, float]
    ) -> None:
        table = points_table(FIELDS[name][0], [(180.0, 90.0), (-180.0, -90.0), place])
        with pytest.raises(GeometryError, match=r"row 2: .* must be longitudes") as caught:
            written(table)
        assert caught.value.row == 2

    @pytest.mark.spec("geo.crs.bounds", "geography.range")
    def test_range_check_can_be_disabled_for_geometry_only(self) -> None:
        outside = [(181.0, 0.0), (0.0, 95.0)]
        data = written(points_table(FIELDS["geometry"][0], outside), geometry={"g": {"check_range": False}})
        assert chunk(data).geospatial_statistics.bbox == BoundingBox(0, 181, 0, 95).to_metadata()
        with pytest.raises(GeometryError, match="must be longitudes"):
            written(points_table(FIELDS["geography"][0], outside), geometry={"g": {"check_range": False}})

    @pytest.mark.parametrize("crs", ["EPSG:3857", "srid:0"])
    def test_other_crs_have_no_range(self, crs: str) -> None:
        table = points_table(geo.geometry_field("g", crs), [(1e7, -1e7)])
        assert chunk(written(table)).geospatial_statistics.bbox.xmin == 1e7


UNKNOWN = Bounds()
NULLS = Bounds(null_count=3, num_values=3)


@dataclass(frozen=True)
class Chunk:
    geospatial_statistics: metadata.GeospatialStatistics | None
    known: Bounds = UNKNOWN

    def extension(self, owner: UUID) -> bytes | None:
        return None

    def bounds(self) -> Bounds:
        return self.known


def may_match(logical: metadata.LogicalType, chunk: Chunk, predicate: Any) -> bool:
    node: Any = SimpleNamespace(logical_type=logical, dotted="g", is_leaf=True)
    row_group: Any = SimpleNamespace(chunk=lambda _: chunk, trust_statistics=True, file_property=lambda _: None)
    return HANDLER.may_match(node, row_group, predicate)


def stored(box: BoundingBox | None) -> Chunk:
    return Chunk(metadata.GeospatialStatistics(bbox=box.to_metadata() if box else None, geospatial_types=[]))


class TestPruning:
    FAR = SpatialPredicate("intersects", (50, 50, 60, 60))
    BOX = BoundingBox(0, 1, 0, 1)

    def test_row_group_is_pruned_by_its_box_alone(self) -> None:
        assert not may_match(GEOMETRY, stored(self.BOX), self.FAR)
        assert may_match(GEOMETRY, stored(self.BOX), SpatialPredicate("intersects", (1, 1, 9, 9)))
        assert not may_match(GEOGRAPHY, stored(self.BOX), self.FAR)

    @pytest.mark.spec("geometry.order", "geography.order")
    @pytest.mark.parametrize("logical", [GEOMETRY, GEOGRAPHY])
    def test_binary_bounds_of_other_writers_prune_nothing(self, logical: metadata.LogicalType) -> None:
        lying = Bounds(minimum=b"\0", maximum=b"\0", null_count=0, num_values=3)
        assert may_match(logical, Chunk(None, lying), self.FAR)
        assert may_match(logical, replace(stored(None), known=lying), self.FAR)

    def test_all_null_chunk_does_not_match(self) -> None:
        for operation in get_args(Operation):
            predicate = SpatialPredicate(operation, (0, 0, 1, 1), 1.0 if operation == "dwithin" else None)
            assert not may_match(GEOMETRY, Chunk(None, NULLS), predicate)

    @pytest.mark.parametrize(
        "box",
        [
            BoundingBox(math.nan, 1, 0, 1),
            BoundingBox(0, math.inf, 0, 1),
            BoundingBox(0, 1, 1, 0),
            BoundingBox(math.inf, -math.inf, math.inf, -math.inf),
            BoundingBox(1.7e308, -1.7e308, 0, 1),
        ],
    )
    def test_invalid_box_is_ignored(self, box: BoundingBox) -> None:
        assert may_match(GEOMETRY, stored(box), self.FAR)

    @pytest.mark.spec("geo.box.wraparound_only")
    @pytest.mark.parametrize("crs", ["EPSG:3857", "no such crs", "projjson:missing"])
    def test_wrapping_box_is_valid_only_in_a_geographic_crs(self, crs: str) -> None:
        wrapping = stored(BoundingBox(170, -170, 0, 1))
        elsewhere = SpatialPredicate("intersects", (0, 0, 1, 1))
        assert not may_match(GEOMETRY, wrapping, elsewhere)
        other = metadata.LogicalType(GEOMETRY=metadata.GeometryType(crs=crs))
        assert may_match(other, wrapping, elsewhere)

    def test_query_edges_are_geodesic_on_geography(self) -> None:
        line = SpatialPredicate("intersects", shapely.LineString([(0, 60), (90, 60)]))
        above = BoundingBox(40, 50, 66, 67)
        assert not may_match(GEOMETRY, stored(above), line)
        assert may_match(GEOGRAPHY, stored(above), line)
        assert not may_match(GEOGRAPHY, stored(self.BOX), line)
        assert not may_match(GEOGRAPHY, stored(self.BOX), SpatialPredicate("intersects", shapely.Point(50, 50)))

    def test_unknown_predicates_and_algorithms_prune_nothing(self) -> None:
        assert may_match(GEOMETRY, replace(stored(self.BOX), known=NULLS), "some other question")
        future = metadata.LogicalType(GEOGRAPHY=metadata.GeographyType(algorithm=77))
        assert may_match(future, stored(self.BOX), self.FAR)

    @pytest.mark.spec("geo.box.wraparound")
    @given(
        st.lists(shapes(), min_size=1, max_size=12),
        st.tuples(LONGITUDE, LATITUDE, LONGITUDE, LATITUDE),
        st.sampled_from(["EPSG:3857", None]),
    )
    @settings(max_examples=share(0.4))
    def test_row_groups_that_may_match_contain_every_match(
        self, geometries: list[Any], corners: tuple[float, float, float, float], crs: str | None
    ) -> None:
        xmin, y0, xmax, y1 = corners
        predicate = SpatialPredicate("intersects", (xmin, min(y0, y1), xmax, max(y0, y1)))
        table = pa.table([geo.from_shapely(geometries)], schema=pa.schema([geo.geometry_field("g", crs)]))
        file = opened(written(table, row_group_rows=2))
        leaf = file.schema.leaves[0]
        kept = [group for group in file.row_groups if HANDLER.may_match(leaf, group, predicate)]
        matches = sum(
            predicate.evaluate(file.read(row_groups=[group.index])["g"]).to_pylist().count(True) for group in kept
        )
        assert matches == predicate.evaluate(table["g"]).to_pylist().count(True)


class TestPublicFiles:
    @pytest.mark.spec("geo.crs.srid", "geo.crs.default", "geography.algorithm")
    def test_columns_are_read_with_marks(self, parquet_testing: Path) -> None:
        for name, type in {
            "crs-default": GeospatialType(),
            "crs-srid": GeospatialType("srid:5070"),
            "crs-geography": GeospatialType(None, "spherical"),
            "geography-points": GeospatialType(None, "spherical"),
        }.items():
            file = pqext.open(parquet_testing / "data" / "geospatial" / f"{name}.parquet")
            assert types.type_of(file.arrow_schema.field(file.arrow_schema.names[-1])) == type, name

    def test_inline_crs_is_read_as_its_definition(self, parquet_testing: Path) -> None:
        file = pqext.open(parquet_testing / "data" / "geospatial" / "crs-arbitrary-value.parquet")
        assert types.type_of(file.arrow_schema.field("geometry")) == GeospatialType("EPSG:5070")

    @pytest.mark.parametrize("name", ["geospatial", "geography-points", "geography-polygons", "crs-arbitrary-value"])
    def test_public_files_round_trip(self, parquet_testing: Path, name: str) -> None:
        source = pqext.open(parquet_testing / "data" / "geospatial" / f"{name}.parquet")
        table = source.read()
        copy = opened(written(table))
        assert copy.read().equals(table)
        assert copy.schema.leaves[-1].logical_type is not None
        assert copy.schema.leaves[-1].logical_name == source.schema.leaves[-1].logical_name

    @pytest.mark.spec("geo.box.wraparound", "geography.range")
    @pytest.mark.parametrize("box", [(170, -20, -170, 20), (0, 80, 10, 90), (-180, -90, 180, 90), (10, 10, 11, 11)])
    def test_public_boxes_lose_no_rows(self, parquet_testing: Path, box: tuple[float, float, float, float]) -> None:
        file = pqext.open(parquet_testing / "data" / "geospatial" / "geography-points.parquet")
        predicate = SpatialPredicate("intersects", box)
        leaf = file.schema.leaves[1]
        skipped = [group.index for group in file.row_groups if not HANDLER.may_match(leaf, group, predicate)]
        assert skipped or box[2] - box[0] == 360
        for index in skipped:
            column = file.read(row_groups=[index])["geometry"]
            assert True not in predicate.evaluate(column, "spherical").to_pylist()


class TestDuckDB:
    def test_duckdb_reads_our_geometries(self, tmp_path: Path) -> None:
        duckdb = pytest.importorskip("duckdb")
        target = tmp_path / "points.parquet"
        pqext.write_table(points_table(FIELDS["geometry"][0]), target)
        rows = duckdb.sql(f"select g::varchar from '{target}'").fetchall()
        assert rows == [("POINT (170 1)",), ("POINT (-170 2)",), ("POINT (175 -3)",)]

    def test_duckdb_returns_rows_of_wrapping_boxes(self, tmp_path: Path) -> None:
        duckdb = pytest.importorskip("duckdb", minversion="2.0", reason="DuckDB knows GEOMETRY itself from 2.0 on")
        target = tmp_path / "points.parquet"
        inland = [(0.0, 1.0), (1.0, 2.0), (2.0, -3.0)]
        pqext.write_table(points_table(FIELDS["geometry"][0], POINTS + inland), target, row_group_rows=3)
        assert chunk(target.read_bytes()).geospatial_statistics.bbox.xmin == 170
        for west, east, expected in [(168, 172, [POINTS[0]]), (-172, -168, [POINTS[1]]), (-1, 0.5, [inland[0]])]:
            area = f"POLYGON (({west} -9, {east} -9, {east} 9, {west} 9, {west} -9))"
            found = duckdb.sql(f"select g::varchar from '{target}' where g && '{area}'::geometry").fetchall()
            assert [shapely.from_wkt(text).coords[0] for (text,) in found] == expected
