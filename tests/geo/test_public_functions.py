"""What is public in `pqext.geo`: documented, and errors that say what to do instead."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo
from pqext.core.base.errors import GeometryError

POINTS = geo.from_points([1.0, 2.0], [3.0, 4.0])
SHAPES = [shapely.Point(1, 3), shapely.Point(2, 4)]


@pytest.mark.parametrize("name", geo.__all__)
def test_public_functions_have_docstrings(name: str) -> None:
    assert getattr(geo, name).__doc__


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (SHAPES, "list; geo.from_shapely converts"),
        (np.array(SHAPES), "ndarray; geo.from_shapely converts"),
        (geopandas.GeoSeries(SHAPES), "GeoSeries; geo.from_shapely converts"),
        (pa.array(["POINT (1 2)"]), "string; geo.from_wkt converts"),
        (pa.table({"g": POINTS}), "Table; pass a column"),
        (pa.array([1.0]), "double$"),
    ],
)
def test_value_that_is_not_a_wkb_array_is_rejected_with_a_remedy(wrong: Any, hint: str) -> None:
    asked = (geo.bounds, geo.statistics, geo.to_wkt, geo.validate, lambda array: geo.intersects(array, (0, 0, 1, 1)))
    for ask in asked:
        with pytest.raises(TypeError, match=f"an Arrow array of WKB values, not {hint}"):
            ask(wrong)


def test_shapely_geometries_are_accepted_in_any_sequence() -> None:
    for several in (SHAPES, tuple(SHAPES), np.array(SHAPES), geopandas.GeoSeries(SHAPES)):
        assert geo.from_shapely(several).equals(POINTS)
    with pytest.raises(TypeError, match="not Point; put a single geometry into a list"):
        geo.from_shapely(SHAPES[0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"geo\.from_wkt converts WKT"):
        geo.from_shapely(["POINT (1 2)"])


@pytest.mark.parametrize(
    ("x", "kind"), [(1.0, TypeError), (["a"], ValueError), (np.zeros((2, 2)), ValueError), ([10**400], ValueError)]
)
def test_coordinates_must_be_sequences_of_numbers(x: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"coordinates? (must be sequences of numbers|is out of the range)") as caught:
        geo.from_points(x, [1.0])
    assert not isinstance(caught.value, pa.ArrowException)


def test_statistics_box_is_accepted_as_a_query() -> None:
    box = geo.statistics(geo.from_points([179.0, -179.0], [0.0, 1.0])).bbox
    assert geo.intersects(geo.from_points([180.0, 0.0], [0.5, 0.5]), box).to_pylist() == [True, False]
    assert pqext.col("g").intersects(box) == pqext.col("g").intersects((179, 0, -179, 1))


def test_object_like_a_statistics_box_needs_all_bounds() -> None:
    for box in (SimpleNamespace(xmin=0.0), SimpleNamespace(xmin=None, xmax=1.0, ymin=0.0, ymax=1.0)):
        for ask in (lambda query: geo.intersects(POINTS, query), pqext.col("g").intersects):
            with pytest.raises(TypeError, match="a query box must be four numbers"):
                ask(box)


def test_filter_accepts_one_geometry() -> None:
    with pytest.raises(TypeError, match="a shapely geometry, not GeoSeries"):
        pqext.col("g").intersects(geopandas.GeoSeries(SHAPES))


def test_named_wkb_column_is_converted_to_a_geometry_for_geopandas() -> None:
    frame = geo.to_geopandas(pa.table({"n": [1, 2], "g": POINTS.storage}), "g")
    assert frame.geometry.tolist() == SHAPES
    assert frame.crs is None
    with pytest.raises(ValueError, match="no geometry column"):
        geo.to_geopandas(pa.table({"n": [1, 2], "g": POINTS.storage}), "n")


def test_similar_names_are_suggested() -> None:
    with pytest.raises(GeometryError, match="did you mean 'spherical'"):
        geo.bounds(POINTS, "spherial")  # type: ignore[arg-type]
    assert geo.from_wkt(["POINT (1 3)", "POINT (2 4)"]).equals(POINTS)
    with pytest.raises(TypeError, match="an Arrow array of strings or a list of strings, not str"):
        geo.from_wkt("POINT (1 2)")
    with pytest.raises(TypeError, match=r"BoundingBox\(xmin, xmax, ymin, ymax\), not tuple"):
        geo.hilbert_index([1.0], [2.0], (0, 0, 3, 3))  # type: ignore[arg-type]
