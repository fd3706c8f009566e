"""Corners of the boxes around geometries, as Iceberg has them, held against the coordinates."""

from __future__ import annotations

import io
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from table_metrics.tables import written

import pqext
from pqext import geo, table_metrics
from pqext.core.base.errors import GeometryError
from pqext.core.format.metadata import BoundingBox, FileMetaData, GeospatialStatistics
from reference.effort import share


def column(geometries: list[Any], **marks: Any) -> pa.Table:
    raws = [None if one is None else shapely.to_wkb(one, flavor="iso") for one in geometries]
    field = geo.geometry_field("g", **marks)
    return pa.table([pa.array(raws, pa.binary())], schema=pa.schema([field]))


def corners(file: bytes, exact: bool = False) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    found = table_metrics.iceberg(file, exact)
    low, high = found.lower_bounds.get(1), found.upper_bounds.get(1)
    if low is None or high is None:
        assert low is high
        return None
    return struct.unpack(f"<{len(low) // 8}d", low), struct.unpack(f"<{len(high) // 8}d", high)


def wkt(*texts: str | None) -> list[Any]:
    return [None if text is None else shapely.from_wkt(text) for text in texts]


@pytest.mark.spec("metrics.iceberg.geo")
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("texts", "low", "high"),
    [
        (["POINT (1 2)", None, "LINESTRING (-3 4, 5 0)"], (-3, 0), (5, 4)),
        (["POINT Z (1 2 3)", "POINT Z (0 5 -7)"], (0, 2, -7), (1, 5, 3)),
        (["POINT M (1 2 3)", "POINT (0 0)"], (0, 0, math.nan, 3), (1, 2, math.nan, 3)),
        (["POINT ZM (1 2 3 4)", "POINT (0 0)"], (0, 0, 3, 4), (1, 2, 3, 4)),
    ],
)
def test_corners_have_the_occurring_dimensions(
    texts: list[str | None], low: tuple[float, ...], high: tuple[float, ...], exact: bool
) -> None:
    found = corners(written(column(wkt(*texts)), row_group_rows=2), exact)
    assert found is not None
    assert np.array_equal(found[0], low, equal_nan=True)
    assert np.array_equal(found[1], high, equal_nan=True)


@pytest.mark.spec("metrics.iceberg.geo")
@pytest.mark.parametrize("exact", [False, True])
def test_box_requires_x_and_y(exact: bool) -> None:
    for texts in ([None], ["POINT EMPTY"], ["POINT (NaN NaN)"], []):
        file = written(column(wkt(*texts)))
        found = table_metrics.iceberg(file, exact)
        assert (found.lower_bounds, found.upper_bounds) == ({}, {})
        assert found.types == {1: "geometry"}
        assert found.null_value_counts == {1: texts.count(None)}
    assert corners(written(column(wkt("POINT (1 NaN)", "POINT (3 4)"))), exact) == ((1, 4), (3, 4))


COORDINATES = st.tuples(st.floats(-180, 180), st.floats(-90, 90))
LINES = st.lists(COORDINATES, min_size=2, max_size=4).map(shapely.LineString)
SHAPES = st.none() | COORDINATES.map(shapely.Point) | LINES


@pytest.mark.spec("metrics.iceberg.geo", "metrics.exact")
@settings(max_examples=share(2.0))
@given(st.lists(SHAPES, max_size=8), st.booleans(), st.sampled_from([1, 3, 100]))
def test_geometry_box_matches_its_coordinates(
    shapes: list[Any], exact: bool, row_group_rows: int
) -> None:
    found = corners(written(column(shapes, crs="EPSG:32632"), row_group_rows=row_group_rows), exact)
    places = shapely.get_coordinates([one for one in shapes if one is not None])
    assert found == ((tuple(places.min(axis=0)), tuple(places.max(axis=0))) if len(places) else None)


@pytest.mark.spec("metrics.iceberg.geometry-wraps")
def test_geometry_box_never_wraps() -> None:
    file = written(column([shapely.Point(179, 1), shapely.Point(-179, 2)]))
    with pqext.open(file) as opened:
        box = opened.row_groups[0].chunk(0).geospatial_statistics.bbox
        assert box.xmin > box.xmax  # Parquet lets it
    assert corners(file) is None
    assert corners(file, exact=True) == ((-179, 1), (179, 2))


@pytest.mark.spec("metrics.iceberg.geography-wraps")
@pytest.mark.parametrize("exact", [False, True])
def test_geography_box_may_wrap_and_contains_full_edges(exact: bool) -> None:
    rows = [shapely.Point(179, 1), shapely.LineString([(-179, 60), (-170, 60)])]
    found = corners(written(column(rows, edges="spherical"), row_group_rows=1), exact)
    assert found is not None
    (west, south), (east, north) = found
    assert (west, south, east) == (179, 1, -170)
    assert 60.04 < north < 60.2  # a great circle rises above the parallel of its ends


def with_statistics(file: bytes, *told: GeospatialStatistics | None) -> bytes:
    """The file with other statistics of the first column of each row group."""

    def change(footer: FileMetaData) -> None:
        for group, statistics in zip(footer.row_groups, told, strict=True):
            metadata = group.columns[0].meta_data
            assert metadata is not None
            metadata.geospatial_statistics = statistics

    sink = io.BytesIO()
    pqext.rewrite_footer(file, change, sink)
    return sink.getvalue()


def box_statistics(types: list[int] | None, *box: float, **dimensions: float) -> GeospatialStatistics:
    xmin, xmax, ymin, ymax = box
    bbox = BoundingBox(xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax, **dimensions)
    return GeospatialStatistics(bbox=bbox, geospatial_types=types)


@pytest.mark.spec("metrics.iceberg.geography-wraps")
@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((0, 2, 0, 2), ((0, 0), (2, 2))), ((0, 200, 0, 2), None), ((0, 2, -91, 2), None), ((0, 2, 2, 0), None),
        ((0, math.inf, 0, 2), None), ((0, 180 + 1e-10, 0, 2), ((0, 0), (180, 2))),
    ],
)  # fmt: skip
def test_box_out_of_geographic_range_is_invalid_for_geography(box: tuple[float, ...], expected: Any) -> None:
    file = written(column([shapely.Point(1, 1)], edges="spherical"))
    assert corners(with_statistics(file, box_statistics([1], *box))) == expected


@pytest.mark.spec("metrics.footer")
def test_row_group_without_a_box_leaves_the_file_without_a_box() -> None:
    file = written(column(wkt("POINT (1 2)", "POINT (3 4)", None)), row_group_rows=1)
    box, other = box_statistics([1], 1, 1, 2, 2), box_statistics([1], 3, 3, 4, 4)
    assert corners(with_statistics(file, box, other, None)) == ((1, 2), (3, 4))  # nulls need no box
    assert corners(with_statistics(file, box, None, None)) is None
    assert corners(with_statistics(file, box, GeospatialStatistics(geospatial_types=[1]), None)) is None


@pytest.mark.spec("metrics.footer")
def test_row_group_with_possible_z_but_no_range_omits_z() -> None:
    file = written(column(wkt("POINT Z (1 2 3)", "POINT Z (3 4 5)")), row_group_rows=1)
    box = box_statistics([1001], 1, 1, 2, 2, zmin=3, zmax=3)
    assert corners(with_statistics(file, box, box_statistics([1], 3, 3, 4, 4))) == ((1, 2, 3), (3, 4, 3))
    assert corners(with_statistics(file, box, box_statistics([1001], 3, 3, 4, 4))) == ((1, 2), (3, 4))
    assert corners(with_statistics(file, box, box_statistics(None, 3, 3, 4, 4))) == ((1, 2), (3, 4))
    assert corners(with_statistics(file, box, box_statistics([1001], 3, 3, 4, 4, zmin=9, zmax=5))) == ((1, 2), (3, 4))


def test_invalid_geometries_are_errors_that_name_file_column_and_row(tmp_path: Path) -> None:
    good, bad = shapely.to_wkb(shapely.Point(1, 2)), b"\x01\x01\x00\x00\x00\x00"
    table = column([shapely.Point(1, 2)] * 3 + [None])
    path = tmp_path / "broken.parquet"
    pqext.write_table(table, path, row_group_rows=2, compression="uncompressed", dictionary=False)
    raw = path.read_bytes()
    at = raw.rfind(good)
    path.write_bytes(raw[:at] + b"\x09" + bad[1:] + raw[at + len(bad) :])
    assert table_metrics.iceberg(path).record_count == 4
    with pytest.raises(GeometryError, match=r"row 2.*broken\.parquet.*column g") as caught:
        table_metrics.iceberg(path, exact=True)
    assert (caught.value.path, caught.value.column, caught.value.row) == (str(path), "g", 2)


def test_column_declared_by_geoparquet_alone_has_binary_bounds() -> None:
    table = column([shapely.Point(1, 2), shapely.Point(0, 2)])
    plain = pa.table({"g": table["g"].cast(pa.binary())})
    noted = written(table, geoparquet=True)
    with pqext.open(noted) as opened:
        key_values = {pair.key: pair.value for pair in opened.metadata.key_value_metadata or ()}
    file = written(plain, key_value_metadata={"geo": key_values["geo"]})
    found = table_metrics.iceberg(file, mode="full", exact=True)
    assert found.types == {1: "binary"}
    assert found.lower_bounds[1] == min(plain["g"].to_pylist())
