"""Orientation of polygons on writing, in metadata and in `verify`: shapely and S2 judge the rings."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import pqext
from pqext.core.base.errors import GeometryError
from pqext.geo import GeospatialType
from pqext.geo.coordinates import orient_rings
from reference.effort import share
from reference.geometries import LATITUDE, LONGITUDE

GLOBE = GeospatialType(edges="spherical")
CLOCKWISE = shapely.box(0, 0, 2, 1, ccw=False)
HOLE = shapely.Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(1, 1), (2, 1), (2, 2), (1, 2)]])


def wkb(*shapes: Any) -> pa.Array:
    return pa.array([None if shape is None else shapely.to_wkb(shape, flavor="iso") for shape in shapes], pa.binary())


def oriented(shape: Any, type: GeospatialType | None = None) -> Any:
    return shapely.from_wkb(orient_rings(wkb(shape), type)[0].as_py())


def written(array: pa.Array, **options: Any) -> bytes:
    sink = io.BytesIO()
    pqext.write_table(pa.table({"g": array}), sink, **options)
    return sink.getvalue()


def described(data: bytes) -> dict[str, Any]:
    pairs = pqext.open(data).metadata.key_value_metadata or []
    about: dict[str, Any] = json.loads(next(pair.value for pair in pairs if pair.key == "geo"))["columns"]["g"]
    return about


@pytest.mark.spec("geoparquet.orientation")
@given(st.lists(st.tuples(LONGITUDE, LATITUDE), min_size=3, max_size=8, unique=True), st.booleans())
@settings(max_examples=share(1))
def test_planar_rings_turn_as_in_shapely(corners: list[tuple[float, float]], has_z: bool) -> None:
    shape = shapely.Polygon(corners)
    if not shape.is_valid or abs(shape.area) < 1e-6:
        return
    shape = shapely.force_3d(shape, 7.0) if has_z else shape
    for candidate in (shape, shape.reverse()):
        result = oriented(candidate)
        assert result.exterior.is_ccw
        assert shapely.equals_exact(result, candidate if candidate.exterior.is_ccw else candidate.reverse())


@pytest.mark.spec("geoparquet.orientation")
def test_holes_turn_the_other_way_in_all_parts_and_byte_orders() -> None:
    nested = shapely.GeometryCollection([shapely.Point(5, 5), shapely.MultiPolygon([HOLE.reverse(), CLOCKWISE])])
    for big_endian in (False, True):
        data = shapely.to_wkb(nested, byte_order=0 if big_endian else 1)
        polygons = shapely.from_wkb(orient_rings(pa.array([data]))[0].as_py()).geoms[1].geoms
        assert [polygon.exterior.is_ccw for polygon in polygons] == [True, True]
        assert [ring.is_ccw for ring in polygons[0].interiors] == [False]


@pytest.mark.spec("geoparquet.orientation")
def test_oriented_arrays_are_returned_unchanged() -> None:
    line = shapely.LineString([(0, 0), (0, 1), (1, 1), (0, 0)])
    array = wkb(HOLE.reverse().reverse(), None, line, shapely.Polygon(), shapely.Point(1, 2))
    once = orient_rings(array)
    assert orient_rings(once) is once
    flat = wkb(shapely.Polygon([(0, 0), (1, 1), (2, 2), (0, 0)]))
    assert orient_rings(flat) is flat
    chunks = pa.chunked_array([wkb(None, CLOCKWISE).slice(1), wkb(HOLE)])
    result = orient_rings(chunks)
    assert [shapely.from_wkb(value.as_py()).exterior.is_ccw for value in result] == [True, True]


@pytest.mark.spec("geoparquet.orientation")
@pytest.mark.parametrize(
    "shape",
    [
        shapely.Polygon([(179, 0), (-179, 0), (-179, 1), (179, 1)]),
        shapely.Polygon([(x, 80) for x in range(-180, 180, 30)]),
        shapely.Polygon([(x, -80) for x in range(180, -180, -30)]),
        shapely.box(-10, -10, 10, 10),
        shapely.Polygon([(10, 70), (130, 70), (-110, 70)]),
    ],
    ids=["antimeridian", "north pole", "south pole", "equator", "large cap"],
)
def test_rings_on_a_globe_enclose_the_smaller_side_as_in_s2(shape: Any) -> None:
    spherely = pytest.importorskip("spherely")
    for candidate in (shape, shape.reverse()):
        result = oriented(candidate, GLOBE)
        assert shapely.equals_exact(result, shape)
        area = spherely.area(spherely.from_wkt(result.wkt, oriented=True))
        assert area < 2 * np.pi * spherely.EARTH_RADIUS_METERS**2


@pytest.mark.spec("geoparquet.orientation")
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_geography_is_written_and_described_as_counterclockwise(version: str) -> None:
    spherical = {"g": {"edges": "spherical"}}
    data = written(wkb(CLOCKWISE, None, HOLE), geometry=spherical, geoparquet=version)
    assert described(data)["orientation"] == "counterclockwise"
    values = pqext.read_table(data)["g"].to_pylist()
    assert [shapely.from_wkb(value).exterior.is_ccw for value in values if value] == [True, True]
    unchanged = {"g": {"edges": "spherical", "orientation": "unchanged"}}
    kept = written(wkb(CLOCKWISE), geometry=unchanged, geoparquet=version)
    assert "orientation" not in described(kept)
    assert pqext.read_table(kept)["g"].to_pylist() == wkb(CLOCKWISE).to_pylist()


@pytest.mark.spec("geoparquet.orientation")
def test_geometry_keeps_its_rings_by_default() -> None:
    data = written(wkb(CLOCKWISE), geometry={"g": "OGC:CRS84"})
    assert "orientation" not in described(data)
    assert pqext.read_table(data)["g"].to_pylist() == wkb(CLOCKWISE).to_pylist()
    data = written(wkb(CLOCKWISE), geometry={"g": {"orientation": "counterclockwise"}})
    assert described(data)["orientation"] == "counterclockwise"
    assert shapely.from_wkb(pqext.read_table(data)["g"][0].as_py()).exterior.is_ccw
    with pytest.raises(ValueError, match=r"orientation must be .*, not 'left'"):
        written(wkb(CLOCKWISE), geometry={"g": {"orientation": "left"}})


@pytest.mark.spec("geoparquet.orientation", "geoparquet.verified")
def test_verify_finds_clockwise_polygons_in_oriented_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pqext.write_table(pa.table({"g": wkb(HOLE, CLOCKWISE)}), path, geometry={"g": {"orientation": "counterclockwise"}})
    assert not pqext.verify(path).faults
    unchanged = tmp_path / "unchanged.parquet"
    pqext.write_table(
        pa.table({"g": wkb(HOLE, CLOCKWISE)}), unchanged, geometry={"g": "OGC:CRS84"}, geoparquet=False,
        key_value_metadata={"geo": json.dumps({"version": "2.0.0", "primary_column": "g", "columns": {
            "g": {"encoding": "WKB", "geometry_types": ["Polygon"], "orientation": "counterclockwise"}}})},
    )  # fmt: skip
    faults = pqext.verify(unchanged).faults
    # The hole of HOLE turns the same way as its outer ring: both rows contradict the metadata.
    assert [(fault.rule, fault.row) for fault in faults] == [("geoparquet.orientation", row) for row in (0, 1)]


@pytest.mark.spec("geoparquet.orientation")
def test_invalid_bytes_are_an_error_with_their_row() -> None:
    with pytest.raises(GeometryError) as caught:
        orient_rings(pa.array([shapely.to_wkb(HOLE), shapely.to_wkb(HOLE)[:-3]]))
    assert caught.value.row == 1


@pytest.mark.spec("geoparquet.epoch")
def test_an_epoch_is_a_year_of_a_described_column() -> None:
    assert described(written(wkb(HOLE), geometry={"g": {"epoch": 2021.47}}))["epoch"] == 2021.47
    for epoch in ("2021", True, float("nan"), 10**400):
        with pytest.raises(ValueError, match="epoch must be a decimal year"):
            written(wkb(HOLE), geometry={"g": {"epoch": epoch}})
    with pytest.raises(ValueError, match="requires GeoParquet metadata"):
        written(wkb(HOLE), geometry={"g": {"epoch": 2021.0}}, geoparquet=False)
