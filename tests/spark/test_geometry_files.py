"""Geometry files cross between Spark's native Parquet and pqext: values, CRS, and what the footer says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyproj
import pytest
import shapely
from pyspark.sql import functions as F
from pyspark.sql import types as T
from spark.sessions import native_geometry

import pqext
from pqext import geo
from pqext.core.base.errors import UnsupportedError
from pqext.geo.types import GeospatialType, type_of
from pqext.spark import read, where
from pqext.spark.base.types import crs_of_srid, file_schema, spark_schema, srid_of_crs
from pqext.verification import verify

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
TEXTS = ["POINT (1 2)", None, SQUARE, "POINT Z (1 2 3)", "LINESTRING (170 -10, 175 10)", "POINT EMPTY"]
VALUES = geo.from_wkt(pa.array(TEXTS))


def without_id(crs: str) -> str:
    definition = pyproj.CRS(crs).to_json_dict()
    definition.pop("id")
    return json.dumps(definition)


@pytest.mark.parametrize(
    ("crs", "srid"),
    [
        (None, 4326), ("EPSG:4326", 4326), ("epsg:3857", 3857), ("SRID:0", 0), ("srid:4326", 4326), ("EPSG:5070", 5070),
        (without_id("OGC:CRS84"), 4326), (without_id("EPSG:3857"), 3857), (without_id("EPSG:5070"), None),
        ("projjson:x", None), ("srid:", None), ("EPSG:" + "9" * 30, None), ("OGC:CRS27", None), ("nonsense", None),
        ("{", None),
    ],
)  # fmt: skip
def test_crs_has_its_spark_srid(crs: str | None, srid: int | None) -> None:
    assert srid_of_crs(crs) == srid
    for known in (4326, 3857, 0):
        assert srid_of_crs(crs_of_srid(known)) == known


def test_type_with_any_srid_is_rejected_with_a_remedy() -> None:
    for type in (T.GeometryType("ANY"), T.GeographyType("ANY")):
        with pytest.raises(UnsupportedError, match=r"set it with st_setsrid\(g, 4326\)"):
            file_schema(T.StructType([T.StructField("g", type)]))


def test_types_without_a_spark_equivalent_are_read_as_marked_wkb() -> None:
    for crs, edges in (("EPSG:5070", "planar"), ("EPSG:4269", "spherical"), (None, "karney")):
        schema = spark_schema(pa.schema([geo.geometry_field("g", crs, edges)]))
        assert schema["g"].dataType == T.BinaryType()
        assert type_of(file_schema(schema).field("g")) == GeospatialType(crs, edges)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GEOMETRY in three systems and GEOGRAPHY, as pqext writes them for Spark's own reader."""
    path = tmp_path_factory.mktemp("ours") / "geometries.parquet"
    fields = [
        geo.geometry_field("lonlat"), geo.geometry_field("metres", 3857), geo.geometry_field("unknown", "SRID:0"),
        geo.geometry_field("globe", None, "spherical"),
    ]  # fmt: skip
    pqext.write_table(pa.table([VALUES] * 4, pa.schema(fields)), path, profile="spark")
    return path


@native_geometry
def test_spark_natively_reads_our_values_and_crs(spark: Any, ours: Path) -> None:
    frame = spark.read.parquet(str(ours))
    assert [field.dataType for field in frame.schema] == [
        T.GeometryType(4326), T.GeometryType(3857), T.GeometryType(0), T.GeographyType(4326),
    ]  # fmt: skip
    names = frame.columns
    rows = frame.select(*(F.st_asbinary(n).alias(n) for n in names), *(F.st_srid(n).alias("s" + n) for n in names))
    found = rows.collect()
    for name, srid in zip(names, (4326, 3857, 0, 4326), strict=True):
        values = [None if row[name] is None else bytes(row[name]) for row in found]
        assert sorted(values, key=repr) == sorted(VALUES.to_pylist(), key=repr)
        assert {row["s" + name] for row in found if row[name] is not None} == {srid}


@native_geometry
def test_native_spark_values_crs_and_statistics_are_read(spark: Any, ours: Path, tmp_path: Path) -> None:
    out = tmp_path / "native"
    spark.read.parquet(str(ours)).coalesce(1).write.parquet(str(out))
    (path,) = out.glob("*.parquet")
    with pqext.open(path) as file:
        table = file.read()
        types = [type_of(field) for field in table.schema]
        chunks = [file.row_groups[0].chunk(file.schema.find(name)) for name in table.column_names]
        boxes = [chunk.geospatial_statistics for chunk in chunks]
    assert [type and type.crs for type in types] == [None, "EPSG:3857", "srid:0", None]
    assert [type and type.edges for type in types] == ["planar"] * 3 + ["spherical"]
    for name in table.column_names:
        assert sorted(table[name].to_pylist(), key=repr) == sorted(VALUES.to_pylist(), key=repr)
    expected = geo.statistics(VALUES)
    for found in boxes[:3]:
        assert found is not None
        assert expected.bbox is not None
        assert found.bbox is not None
        for bound in ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax"):
            assert getattr(found.bbox, bound) == getattr(expected.bbox, bound)
        assert sorted(found.geospatial_types or []) == expected.geospatial_types
    # Minima and maxima that the format forbids are all that is wrong, and no reason for us to lose a row.
    report = verify(path, checks=["geometries"])
    assert {count.rule for count in report.counts} <= {"geometry.order", "geography.order"}
    kept = pqext.read_table(path, columns=["lonlat"], filter=pqext.col("lonlat").intersects((2.0, 1.0, 3.0, 3.0)))
    assert geo.to_wkt(kept["lonlat"]).to_pylist() == [SQUARE]


def test_data_source_returns_the_same_types(spark: Any, ours: Path) -> None:
    frame = read(spark, str(ours))
    assert [field.dataType for field in frame.schema] == [
        T.GeometryType(4326), T.GeometryType(3857), T.GeometryType(0), T.GeographyType(4326),
    ]  # fmt: skip
    values = [row[0] and bytes(row[0]) for row in frame.select(F.st_asbinary("metres")).collect()]
    assert sorted(values, key=repr) == sorted(VALUES.to_pylist(), key=repr)


def test_parquet_java_reads_our_boxes_types_and_crs(spark: Any, ours: Path, tmp_path: Path) -> None:
    wrapping = tmp_path / "wrapping.parquet"
    lines = geo.from_wkt(pa.array(["LINESTRING (170 60, -100 60)", "POINT ZM (175 1 2 3)"]))
    pqext.write_table(pa.table([lines], pa.schema([geo.geometry_field("globe", None, "karney")])), wrapping)
    java, hadoop = spark._jvm, spark._jvm.org.apache.parquet.hadoop
    found: dict[str, Any] = {}
    for path, names in ((ours, ["lonlat", "metres", "unknown", "globe"]), (wrapping, ["globe"])):
        place = java.org.apache.hadoop.fs.Path(str(path))
        source = hadoop.util.HadoopInputFile.fromPath(place, spark.sparkContext._jsc.hadoopConfiguration())
        reader = hadoop.ParquetFileReader.open(source)
        try:
            footer = reader.getFooter()
            chunks = footer.getBlocks().get(0).getColumns()
            for column, name in enumerate(names):
                seen = chunks.get(column).getGeospatialStatistics()
                box = seen.getBoundingBox()
                bounds = [box.getXMin(), box.getXMax(), box.getYMin(), box.getYMax(), box.getZMin(), box.getZMax()]
                types = sorted(seen.getGeospatialTypes().getTypes())
                marks = footer.getFileMetaData().getSchema().getType(name).getLogicalTypeAnnotation()
                found[f"{path.stem} {name}"] = (bounds, types, marks.toString())
        finally:
            reader.close()
    plane = ([0, 175, -10, 10, 3, 3], [1, 2, 3, 1001])
    assert found["geometries lonlat"] == (*plane, "GEOMETRY")
    assert found["geometries metres"] == (*plane, "GEOMETRY(EPSG:3857)")
    assert found["geometries unknown"] == (*plane, "GEOMETRY(SRID:0)")
    assert found["geometries globe"] == (*plane, "GEOGRAPHY")
    (xmin, xmax, ymin, ymax, *z), types, marks = found["wrapping globe"]
    assert (xmin, xmax, ymin, z, types) == (170, -100, 1, [2, 2], [2, 3001])
    assert ymax == pytest.approx(geo.bounds(lines, "karney")[0]["ymax"].as_py())
    assert marks == "GEOGRAPHY(OGC:CRS84,KARNEY)"


def test_measures_filter_rows_and_compute_columns(spark: Any, tmp_path: Path) -> None:
    shapes = [shapely.box(0, 0, 2, 2), shapely.Point(5, 5), None, shapely.box(0, 0, 9, 9)]
    wkb = geo.to_iso_wkb(geo.from_shapely(shapes))
    table = pa.table({"id": range(4), "flat": wkb, "globe": wkb, "bytes": wkb})
    path = str(tmp_path / "measures.parquet")
    pqext.write_table(table, path, geometry={"flat": 4326, "globe": {"edges": "spherical"}})
    columns = ["id", ("area", pqext.col("flat").st_area()), ("centre", pqext.col("flat").st_centroid())]
    frame = read(spark, path, columns=columns, where="st_area(flat) > 3")
    assert frame.schema["centre"].dataType.srid == 4326
    rows = frame.orderBy("id").collect()
    assert [(row["id"], row["area"]) for row in rows] == [(0, 4.0), (3, 81.0)]
    centres = [shapely.from_wkb(bytes(row["centre"].wkb)) for row in rows]
    assert centres == [shapely.Point(1, 1), shapely.Point(4.5, 4.5)]
    frame = read(spark, path)
    metres = geo.area(wkb, "spherical").to_pylist()
    for condition, matches in (
        ("st_area(flat) > 3 and id < 3", [0]), ("st_area(bytes) = 81", [3]),
        (f"st_area(globe) = {metres[3]!r}D", [3]), ("st_x(st_centroid(flat)) > 4 or flat is null", [1, 2, 3]),
    ):
        found = where(frame, condition)
        assert sorted(row["id"] for row in found.select("id").collect()) == matches, condition
