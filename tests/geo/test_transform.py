"""Coordinates in another reference system: as pyproj has them, x before y, with Z and M kept."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from pqext import geo
from pqext.core.base.errors import GeometryError
from reference import geometry_text as text_twin
from reference import wkb
from reference.effort import share
from reference.geometries import trees


def moved(geometry: wkb.Geometry, transformer: pyproj.Transformer) -> wkb.Geometry:
    """By recursion, a coordinate at a time."""

    def transform_point(value: tuple[float, ...]) -> tuple[float, ...]:
        if not all(map(math.isfinite, value[:2])):
            return value
        has_z = geometry.dims & 1 and math.isfinite(value[2])
        width = 3 if has_z else 2
        return (*transformer.transform(*value[:width]), *value[width:])

    if geometry.base in (wkb.POINT, wkb.LINE_STRING):
        content = [transform_point(value) for value in geometry.content]
    elif geometry.base == wkb.POLYGON:
        content = [[transform_point(value) for value in ring] for ring in geometry.content]
    else:
        content = [moved(child, transformer) for child in geometry.content]
    return wkb.Geometry(geometry.base, geometry.dims, content, geometry.little)


@pytest.mark.spec("geo.transform", "geo.axis_order")
@settings(max_examples=share(0.6))
@given(
    st.lists(st.one_of(st.none(), trees(st.one_of(st.floats(-20, 50), st.just(math.nan)))), max_size=4),
    st.sampled_from(["EPSG:3857", "EPSG:4326", "EPSG:4979", "EPSG:32633"]),
)
def test_every_coordinate_matches_pyproj(geometries: list[wkb.Geometry | None], target: str) -> None:
    transformer = pyproj.Transformer.from_crs("OGC:CRS84", target, always_xy=True)
    array = pa.array([None if g is None else wkb.encode(g) for g in geometries], pa.binary())
    padded = pa.concat_arrays([pa.array([b"no geometry", None]), array]).slice(2)
    found = geo.to_wkt(geo.transform(padded, None, target)).to_pylist()
    assert found == [None if g is None else text_twin.to_wkt(moved(g, transformer)) for g in geometries]


def test_transformed_column_matches_shapely_and_round_trips() -> None:
    generator = np.random.default_rng(5)
    rings = generator.uniform(-60, 60, (50, 1, 2)) + np.array([[0, 0], [1, 0], [1, 1], [0, 0]])
    polygons = shapely.polygons(rings)
    transformer = pyproj.Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True)
    expected = shapely.transform(polygons, lambda x, y: transformer.transform(x, y), interleaved=False)
    chunked = pa.chunked_array([geo.from_shapely(polygons[:20]), geo.from_shapely(polygons[20:])])
    there = geo.transform(chunked, None, 3857)
    assert there.num_chunks == 2
    assert shapely.equals_identical(geo.to_shapely(there), expected).all()
    assert shapely.equals_exact(geo.to_shapely(geo.transform(there, 3857, None)), polygons, tolerance=1e-9).all()


@pytest.mark.spec("geo.axis_order", "geo.wkb.ewkb")
def test_x_is_first_in_every_crs_and_the_srid_is_removed() -> None:
    ewkb = wkb.encode(wkb.Geometry(wkb.POINT, 0, [(10.0, 50.0)], extended=True, srid=4326))
    there = geo.transform(pa.array([ewkb]), 4326, "EPSG:4269")
    assert geo.to_wkt(there, 4).to_pylist() == ["POINT (10 50)"]
    assert there[0].as_py()[:5] == b"\x01\x01\x00\x00\x00"
    metres = geo.transform(geo.from_points([0.0], [0.0]), pyproj.CRS("EPSG:4326"), "projjson:p", properties={
        "p": pyproj.CRS("EPSG:3857").to_json(),
    })  # fmt: skip
    assert geo.to_wkt(metres, 3).to_pylist() == ["POINT (0 0)"]


@pytest.mark.spec("geo.transform")
def test_values_that_cannot_be_transformed_are_rejected() -> None:
    array = pa.chunked_array([geo.from_points([0.0, 1.0], [0.0, 0.0]), geo.from_points([0.0, 0.0], [0.0, 91.0])])
    with pytest.raises(GeometryError, match=r"\(0\.0, 91\.0\) cannot be transformed") as raised:
        geo.transform(array, None, "EPSG:32633")
    assert raised.value.row == 3
    for crs in ("nowhere", "srid:0", "projjson:missing", "{"):
        with pytest.raises(GeometryError):
            geo.transform(array, None, crs)
        with pytest.raises(GeometryError):
            geo.transform(array, crs, None)
    with pytest.raises(GeometryError, match=r"from CRS 'IAU_2015:30100' to CRS 'EPSG:3857': .*celestial body"):
        geo.transform(array, "IAU_2015:30100", "EPSG:3857")  # from the Moon to the Earth
    with pytest.raises(GeometryError, match="row 0"):
        geo.transform(pa.array([b"no geometry"]), None, 3857)
    with pytest.raises(TypeError, match="an Arrow array of WKB"):
        geo.transform(pa.array(["POINT (1 2)"]), None, 3857)


def test_first_row_that_cannot_be_transformed_is_named_with_and_without_z() -> None:
    points = [shapely.Point(1, 2), shapely.Point(0, 91), shapely.Point(0, 92, 5)]
    for shapes in (points, [points[0], points[2], points[1]]):
        with pytest.raises(GeometryError, match="cannot be transformed") as raised:
            geo.transform(geo.from_shapely(shapes), "OGC:CRS84", "EPSG:3857")
        assert raised.value.row == 1


def test_crs_functions_are_public() -> None:
    assert geo.crs.equal("EPSG:4326", None)
    assert geo.crs.is_geographic("EPSG:3857") is False
    assert geo.crs.parse("srid:3857").to_epsg() == 3857
