"""Errors of chunked arrays number rows from the start of the array, not of the chunk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
import shapely

import pqext
from pqext import geo, variant

BOX = shapely.box(0, 0, 2, 2)
GEOMETRY = shapely.to_wkb(shapely.box(0, 0, 1, 1))
VALUE = {"metadata": b"\x01\x01\x00\x01a", "value": b"\x02\x01\x00\x00\x02\x0c\x01"}
"""The object ``{"a": 1}``."""
SIZES = (3, 0, 5, 1, 2)
ROWS = (0, 2, 3, 7, 8, 9, 10)

GEOMETRIES: dict[str, Callable[[Any], object]] = {
    "area": geo.area,
    "bounds": geo.bounds,
    "bounds on the sphere": lambda array: geo.bounds(array, "spherical"),
    "buffer": lambda array: geo.buffer(array, 1),
    "cells": lambda array: geo.cells(array, "geohash", 5),
    "centroid": geo.centroid,
    "convex hull": geo.convex_hull,
    "densify": lambda array: geo.densify(array, "spherical"),
    "distance": lambda array: geo.distance(array, BOX),
    "dwithin": lambda array: geo.dwithin(array, BOX, 1),
    "envelope": geo.envelope,
    "geometry type": geo.geometry_type,
    "intersection": lambda array: geo.intersection(array, BOX),
    "intersects": lambda array: geo.intersects(array, BOX),
    "intersects on the sphere": lambda array: geo.intersects(array, BOX, edges="spherical"),
    "is empty": geo.is_empty,
    "is valid": geo.is_valid,
    "length": geo.length,
    "number of points": geo.num_points,
    "orient": geo.orient,
    "simplify": lambda array: geo.simplify(array, 1),
    "statistics": geo.statistics,
    "to_geojson": geo.to_geojson,
    "to_iso_wkb": geo.to_iso_wkb,
    "to_shapely": geo.to_shapely,
    "to_wkt": geo.to_wkt,
    "transform": lambda array: geo.transform(array, "EPSG:4326", "EPSG:3857"),
    "union with itself": lambda array: geo.union(array, array),
    "validate": lambda array: geo.validate(array, on_fault="raise"),
    "within": lambda array: geo.within(array, BOX),
}
VARIANTS: dict[str, Callable[[Any], object]] = {
    "canonical": variant.canonical,
    "delete": lambda array: variant.delete(array, "$.b"),
    "equals": lambda array: variant.equals(array, array),
    "explode": lambda array: variant.explode(array, "$"),
    "hash": variant.hash,
    "infer_schema": variant.infer_schema,
    "merge": lambda array: variant.merge(array, array),
    "shred": lambda array: variant.shred(array, "a BIGINT"),
    "strip_nulls": variant.strip_nulls,
    "to_json": variant.to_json,
    "to_python": variant.to_python,
}
TEXTS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "from_geojson": (geo.from_geojson, '{"type":"Point","coordinates":[1,2]}', "{"),
    "from_wkt": (geo.from_wkt, "POINT (1 2)", "POINT (1"),
    "parse_json": (variant.parse_json, "1", "{"),
}


OTHERS: dict[str, tuple[Callable[[Any], object], Any, Any, pa.DataType]] = {
    "coordinates without an image": (
        lambda array: geo.transform(array, None, "EPSG:32633"),
        shapely.to_wkb(shapely.Point(0, 0)), shapely.to_wkb(shapely.Point(0, 91)), pa.binary(),
    ),
    "value of another type": (
        lambda array: variant.get(array, "$.a", "int64", strict=True),
        VALUE, {**VALUE, "value": b"\x02\x01\x00\x00\x02\x05x"}, variant.variant_type(),
    ),
    "deep value to indent": (
        lambda array: variant.to_json(array, indent=16),
        VALUE, variant.parse_json(pa.array(["[" * 900 + "]" * 900]))[0].as_py(), variant.variant_type(),
    ),
}  # fmt: skip


def chunked(values: list[Any], type: pa.DataType) -> pa.ChunkedArray:
    starts = [sum(SIZES[:at]) for at in range(len(SIZES))]
    return pa.chunked_array(
        [pa.array(values[start : start + size], type) for start, size in zip(starts, SIZES, strict=True)]
    )


def check(call: Callable[[Any], object], good: Any, bad: Any, type: pa.DataType) -> None:
    values = [good] * sum(SIZES)
    call(chunked(values, type))
    for row in ROWS:
        with pytest.raises(pqext.ParquetError) as caught:
            call(chunked([*values[:row], bad, *values[row + 1 :]], type))
        assert caught.value.row == row
        with pytest.raises(pqext.ParquetError) as caught:  # the first of several
            call(chunked([*values[:row], *[bad] * (len(values) - row)], type))
        assert caught.value.row == row


@pytest.mark.parametrize("name", GEOMETRIES)
def test_error_of_a_geometry_has_the_row_of_the_array(name: str) -> None:
    check(GEOMETRIES[name], GEOMETRY, GEOMETRY[:-1], pa.binary())


@pytest.mark.parametrize("name", VARIANTS)
def test_error_of_a_variant_has_the_row_of_the_array(name: str) -> None:
    check(VARIANTS[name], VALUE, {**VALUE, "value": b"\x05"}, variant.variant_type())


@pytest.mark.parametrize("name", TEXTS)
def test_error_of_a_text_has_the_row_of_the_array(name: str) -> None:
    call, good, bad = TEXTS[name]
    check(call, good, bad, pa.string())


@pytest.mark.parametrize("name", OTHERS)
def test_error_of_an_unsuitable_value_has_the_row_of_the_array(name: str) -> None:
    check(*OTHERS[name])
