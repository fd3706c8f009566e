"""`verify` finds geometries that are none, and boxes and type codes that do not tell the truth."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyproj
import pytest
import shapely

import pqext
from pqext import geo
from pqext.core.base.limits import DEFAULT_LIMITS
from pqext.core.footer.reading import read_footer
from pqext.core.footer.thrift_footer import serialise_footer
from pqext.core.format.extension.framing import frame
from pqext.core.format.extension.structure import set_extension
from pqext.core.format.metadata import (
    BoundingBox,
    ColumnMetaData,
    GeographyType,
    GeometryType,
    GeospatialStatistics,
    LogicalType,
    Statistics,
)
from pqext.core.io.sources.locations import open_source
from pqext.core.schema.annotations import PAGE_BOXES
from pqext.geo import page_boxes
from pqext.verification import Report, verify
from reference import wkb as twin

POINTS = geo.from_points([1.0, 2.0, None, 3.0], [10.0, 20.0, 0.0, 30.0])


def written(values: pa.Array, crs: Any = None, edges: Any = "planar", **options: Any) -> bytes:
    sink = io.BytesIO()
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    schema = pa.schema([geo.geometry_field("g", crs, edges).with_type(values.type)])
    pqext.write_table(pa.table([values], schema), sink, **options)
    return sink.getvalue()


def altered(data: bytes, change: Callable[[ColumnMetaData], None]) -> bytes:
    footer = read_footer(open_source(data), DEFAULT_LIMITS)
    for group in footer.metadata.row_groups:
        metadata = group.columns[0].meta_data
        assert metadata is not None
        change(metadata)
    return data[: footer.offset] + serialise_footer(footer.metadata)


def boxed(*bounds: float | None, types: list[int] | None = None) -> Callable[[ColumnMetaData], None]:
    def change(metadata: ColumnMetaData) -> None:
        names = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
        box = BoundingBox(**dict(zip(names, bounds, strict=False)))  # type: ignore[arg-type]
        metadata.geospatial_statistics = GeospatialStatistics(bbox=box, geospatial_types=types)

    return change


def geometry_faults(data: bytes | Path) -> list[tuple[str, int | None]]:
    report = verify(data, checks=["geometries"])
    assert "geometries" in report.checks
    return [(fault.rule, fault.row) for fault in report.faults]


def test_correct_files_have_no_faults() -> None:
    lines = geo.from_shapely([shapely.LineString([(0, 60), (90, 60)]), shapely.LineString([(170, 0), (-170, 5)]), None])
    many = geo.from_points(np.linspace(-179, 179, 500), np.linspace(-80, 80, 500), np.arange(500))
    nested = pa.array([[b.as_py() for b in POINTS], [], None, [None]], pa.list_(geo.geometry_field("element")))
    for data in (
        written(POINTS), written(POINTS, 3857), written(POINTS, edges="spherical"), written(lines, edges="spherical"),
        written(lines, edges="karney"), written(many, page_rows=64, row_group_rows=250), written(many[:0]),
        written(pa.nulls(3, pa.binary())), written(geo.from_points([170.0, -170.0], [0.0, 1.0])),
        written(geo.from_wkt(pa.array(["POINT EMPTY", "POINT M (1 2 3)", "GEOMETRYCOLLECTION Z (POINT Z (1 2 3))"]))),
        written(many, page_rows=50, edges="spherical"),
    ):
        report = verify(data)
        assert report.ok, report
    sink = io.BytesIO()
    pqext.write_table(pa.table({"l": nested, "s": pa.array([{"g": b"x"}] * 4)}), sink)
    assert verify(sink.getvalue()).ok


@pytest.mark.spec("geo.box.geography", "geo.pruning.trust")
@pytest.mark.parametrize("edges", ["spherical", "karney"])
def test_vertex_only_boxes_of_geography_are_detected(edges: Any) -> None:
    lines = geo.from_shapely([shapely.LineString([(0, 60), (10, 60)]), shapely.LineString([(0, 60), (90, 60)])])
    theirs = altered(written(lines, edges=edges), boxed(0, 90, 60, 60, types=[2]))
    assert geometry_faults(theirs) == [("geo.box.contains", 0)]
    geod = pyproj.Geod(ellps="sphere" if edges == "spherical" else "WGS84")
    top = max(latitude for _, latitude in geod.npts(0, 60, 90, 60, 999))
    wide = altered(written(lines, edges=edges), boxed(0, 90, 60, top, types=[2]))
    low = altered(written(lines, edges=edges), boxed(0, 90, 60, top - 0.01, types=[2]))
    assert geometry_faults(low) == [("geo.box.contains", 1)]
    assert geometry_faults(wide) == []
    summit = pqext.col("g").intersects((44, 67.7, 46, 68))
    assert len(pqext.read_table(theirs, filter=summit)) == 0
    assert len(pqext.read_table(theirs, filter=summit, trust_statistics=False)) == 1
    assert len(pqext.read_table(wide, filter=summit)) == 1


@pytest.mark.spec("geo.box.contains", "geo.box.wraparound")
@pytest.mark.parametrize(
    ("bounds", "row"),
    [
        ((1, 3, 10, 30), None),
        ((-50, 50, -50, 50), None),
        ((1, 2.5, 10, 30), 3),
        ((1.5, 3, 10, 30), 0),
        ((1, 3, 10, 19), 1),
        ((1, 3, 11, 30), 0),
        ((170, 3, 10, 30), None),
        ((170, 2, 10, 30), 3),
        ((2, 1.5, 10, 30), None),
        ((2.5, 1.5, 10, 30), 1),
    ],
)
def test_box_must_contain_its_data_and_may_be_wider(bounds: tuple[float, ...], row: int | None) -> None:
    expected = [] if row is None else [("geo.box.contains", row)]
    assert geometry_faults(altered(written(POINTS), boxed(*bounds, types=[1]))) == expected
    wraps = bounds[0] > bounds[1]
    planar = [("geo.box.wraparound_only", None)] if wraps else expected
    assert geometry_faults(altered(written(POINTS, "EPSG:3857"), boxed(*bounds, types=[1]))) == planar


@pytest.mark.spec("geo.box.contains", "geo.box.xy")
def test_invalid_boxes_and_z_and_m_ranges_are_checked() -> None:
    infinite, nan = float("inf"), float("nan")
    for bounds in ((1, infinite, 10, 30), (nan, 3, 10, 30), (1, 3, 30, 10)):
        assert geometry_faults(altered(written(POINTS), boxed(*bounds, types=[1]))) == [("geo.box.xy", None)]
    high = geo.from_wkt(pa.array(["POINT ZM (1 2 3 4)", "POINT ZM (1 2 5 6)"]))
    around = (1.0, 1.0, 2.0, 2.0)
    for zm, row in (((3, 5, 4, 6), None), ((None,) * 4, None), ((3, 4, 4, 6), 1), ((3, 5, 5, 6), 0)):
        assert geometry_faults(altered(written(high), boxed(*around, *zm, types=[3001]))) == (
            [] if row is None else [("geo.box.contains", row)]
        )
    line = written(geo.from_shapely([shapely.LineString([(0, 60), (90, 60)])]), edges="spherical")
    for north, rows in ((67.7924, []), (67.7, [("geo.box.contains", 0)])):
        assert geometry_faults(altered(line, boxed(0, 90, 60, north, types=[2]))) == rows


@pytest.mark.spec("geo.types.several", "geo.types.codes", "geo.types.unique", "geo.types.unknown")
@pytest.mark.parametrize(
    ("types", "rules"),
    [
        ([1, 2], []), ([1, 2, 7], []), ([], []), (None, []), ([1], ["geo.types.several"]),
        ([1, 2, 2], ["geo.types.unique"]), ([1, 2, 8], ["geo.types.codes"]), ([1001, 2], ["geo.types.several"]),
    ],
)  # fmt: skip
def test_type_list_contains_every_type_once(types: list[int] | None, rules: list[str]) -> None:
    array = geo.from_wkt(pa.array(["POINT (1 2)", "LINESTRING (1 2, 3 4)"]))
    assert [rule for rule, _ in geometry_faults(altered(written(array), boxed(1, 3, 2, 4, types=types)))] == rules


@pytest.mark.spec("geometry.order", "geography.order")
def test_minimum_and_maximum_are_reported() -> None:
    def bound(metadata: ColumnMetaData) -> None:
        metadata.statistics = Statistics(min_value=b"\x01", max_value=b"\x02", null_count=1)

    for edges, rule in (("planar", "geometry.order"), ("spherical", "geography.order")):
        assert geometry_faults(altered(written(POINTS, edges=edges), bound)) == [(rule, None)]


def foreign(values: list[bytes | None], type: pa.DataType | None = None) -> bytes:
    """Bytes as pyarrow writes them, whatever they are, annotated afterwards."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"g": pa.array(values, type or pa.binary())}), sink, write_statistics=False)
    data = sink.getvalue()
    footer = read_footer(open_source(data), DEFAULT_LIMITS)
    footer.metadata.schema[1].logicalType = (
        LogicalType(GEOMETRY=GeometryType()) if type is None else LogicalType(GEOGRAPHY=GeographyType())
    )
    return data[: footer.offset] + serialise_footer(footer.metadata)


@pytest.mark.spec("geo.wkb.iso", "geo.wkb.bounded", "geo.wkb.rings", "geo.wkb.ewkb")
def test_every_invalid_geometry_is_named_with_row_and_byte() -> None:
    point = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)]))
    ring = twin.encode(twin.Geometry(twin.POLYGON, 0, [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]]))
    ewkb = twin.encode(twin.Geometry(twin.POINT, 0, [(1.0, 2.0)], extended=True, srid=4326))
    values = [point, b"", None, point[:-1], ring, b"\x02" + point[1:], point, ewkb, ewkb, point + b"!"]
    report = verify(foreign(values), checks=["geometries"])
    assert [(fault.rule, fault.row, fault.offset) for fault in report.faults] == [
        ("geo.wkb.bounded", 1, 0), ("geo.wkb.bounded", 3, 5), ("geo.wkb.rings", 4, 9), ("geo.wkb.byte_order", 5, 0),
        ("geo.wkb.bounded", 9, 21), ("geo.wkb.iso", 7, None),
    ]  # fmt: skip
    assert report.faults[0].part == "value"
    assert "is truncated" in report.faults[0].message
    assert all(count.advice for count in report.counts)
    many = verify(foreign([b""] * 1000), checks=["geometries"], limit=3)
    assert (many.total, len(many.faults)) == (1000, 3)


@pytest.mark.spec("geography.range")
def test_invalid_geography_coordinates_are_named_with_their_row() -> None:
    values = geo.from_points([1.0, 181.0, 2.0, 3.0], [0.0, 0.0, -91.0, 0.0]).to_pylist()
    assert geometry_faults(foreign(values, pa.large_binary())) == [("geography.range", 1), ("geography.range", 2)]
    assert geometry_faults(foreign(values)) == []


def test_nested_rows_are_numbered_within_the_file() -> None:
    good, bad = POINTS[0].as_py(), b"\x01"
    lists = pa.array([[good], [], None, [good, None, bad], [bad]], pa.list_(pa.binary()))
    sink = io.BytesIO()
    pq.write_table(pa.table({"g": lists}), sink, row_group_size=2, write_statistics=False)
    data = sink.getvalue()
    footer = read_footer(open_source(data), DEFAULT_LIMITS)
    footer.metadata.schema[3].logicalType = LogicalType(GEOMETRY=GeometryType())
    assert geometry_faults(data[: footer.offset] + serialise_footer(footer.metadata)) == [
        ("geo.wkb.bounded", 3), ("geo.wkb.bounded", 4),
    ]  # fmt: skip


@pytest.mark.spec("geo.page_boxes.contain", "geo.page_boxes.without", "geo.page_boxes.damaged")
def test_page_boxes_are_checked_like_chunk_boxes() -> None:
    array = geo.from_points([float(x) if x >= 8 else None for x in range(32)], [1.0] * 32)
    data = written(array, page_rows=8)
    chunk = pqext.open(data).row_groups[0].chunk(0)
    boxes = page_boxes.read(chunk)
    assert boxes is not None
    assert geometry_faults(data) == []

    def stored(payload: bytes) -> bytes:
        return altered(data, lambda metadata: set_extension(metadata, frame(payload, PAGE_BOXES), replace=True))

    narrow = boxes.xmax.copy()
    narrow[2] = 20.0
    for changed, expected in (
        ({"xmax": narrow}, ("geo.page_boxes.contain", 21)),
        ({"nulls": boxes.nulls | np.array([False, True, False, False])}, ("geo.page_boxes.without", None)),
    ):
        payload = page_boxes.encode(page_boxes.PageBoxes(**{
            name: changed.get(name, getattr(boxes, name)) for name in page_boxes.PageBoxes.__slots__
        }))  # fmt: skip
        assert payload is not None
        assert geometry_faults(stored(payload)) == [expected]
    assert geometry_faults(stored(b"\x01")) == [("geo.page_boxes.damaged", None)]


@pytest.mark.spec("geoparquet.bbox", "geoparquet.covering")
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_geoparquet_boxes_contain_their_data(shift: float) -> None:
    names = ("xmin", "ymin", "xmax", "ymax")
    boxes = [dict(zip(names, (x + shift, 0.0, x + shift, 0.0), strict=True)) for x in (1.0, 2.0)]
    about = {"encoding": "WKB", "bbox": [1 + shift, 0, -9, 2 + shift, 0, 9]}
    about["covering"] = {"bbox": {name: ["b", name] for name in names}}
    points = pa.array(shapely.to_wkb(shapely.points([1.0, 2.0], [0.0, 0.0])))
    table = pa.table({"g": points, "b": pa.array(boxes)})
    sink = io.BytesIO()
    text = json.dumps({"primary_column": "g", "columns": {"g": about}})
    pq.write_table(table.replace_schema_metadata({"geo": text}), sink)
    coverings = [("geoparquet.covering", 0), ("geoparquet.covering", 1)]
    assert geometry_faults(sink.getvalue()) == ([("geoparquet.bbox", 0), *coverings] if shift else [])


@pytest.mark.skipif("PARQUET_TEST_DATA" not in os.environ, reason="PARQUET_TEST_DATA names no folder")
@pytest.mark.parametrize("name", [
    "crs-arbitrary-value", "crs-default", "crs-geography", "crs-srid", "geography-points", "geography-polygons",
    "geospatial",
])  # fmt: skip
def test_public_files_are_valid(name: str) -> None:
    report: Report = verify(
        Path(os.environ["PARQUET_TEST_DATA"]) / "data" / "geospatial" / f"{name}.parquet", checks=["geometries"]
    )
    assert report.ok, report
