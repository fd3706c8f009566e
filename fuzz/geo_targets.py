"""Fuzz target for the geometry code: WKB, WKT, GeoJSON, and the metadata of geometry columns.

In addition to raising no unexpected errors, the formats must agree: a geometry that is valid in one format converts to
all others and back unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from pqext import geo
from pqext.core.base.errors import ParquetError
from pqext.geo import crs, page_boxes
from pqext.geo.kernels.ordinates import take_coordinates, with_coordinates
from pqext.geo.types import GeospatialType
from pqext.geo.wkb import columns

PROPERTIES = {"p": '{"type": "GeographicCRS"}'}


def geometry(data: bytes) -> None:
    """Read a byte that selects the format, then WKB, WKT, GeoJSON, features or column metadata."""
    if data:
        with suppress(ParquetError):
            (_wkb, _wkt, _geojson, _features, _column_metadata)[data[0] % 5](data[1:])


def _wkb(data: bytes) -> None:
    array = pa.array([None, data], pa.binary())
    if not _accepts(geo.statistics, array):
        for function in (geo.bounds, geo.to_iso_wkb, geo.to_wkt, _validate, geo.to_geojson):
            assert not _accepts(function, array), f"{function.__name__} accepts invalid WKB"
        return
    iso = geo.to_iso_wkb(array) if _is_valid(array) else array
    geo.bounds(iso)
    with suppress(ParquetError):
        geo.bounds(iso, "spherical")
    (column,) = columns(array)
    flat, _ = take_coordinates(column)
    again, _ = with_coordinates(column, np.frombuffer(flat, np.float64).reshape(-1, 3).copy())
    if bytes(again) != data:  # a signalling NaN may become a quiet one
        assert len(bytes(again)) == len(data)
    with suppress(ParquetError):
        geo.to_geojson(array)
    if _is_valid(array):
        text = geo.to_wkt(array)
        assert geo.to_wkt(geo.from_wkt(text)).to_pylist()[1] is not None


def _is_valid(array: pa.Array) -> bool:
    return _accepts(_validate, array)


def _validate(array: pa.Array) -> None:
    geo.validate(array, on_fault="raise")


def _accepts(function: Callable[[pa.Array], Any], array: pa.Array) -> bool:
    try:
        function(array)
    except ParquetError:
        return False
    return True


def _wkt(data: bytes) -> None:
    geometries = geo.from_wkt(pa.array([data.decode("latin-1")]))
    geo.validate(geometries, on_fault="raise")
    text = geo.to_wkt(geo.from_wkt(geo.to_wkt(geometries)))
    assert geo.to_wkt(geo.from_wkt(text)).equals(text)


def _geojson(data: bytes) -> None:
    geometries = geo.from_geojson(pa.array([data.decode("latin-1")]))
    geo.validate(geometries, on_fault="raise")
    assert geo.from_geojson(geo.to_geojson(geometries)).equals(geometries)


def _features(data: bytes) -> None:
    with suppress(ValueError):  # pyarrow rejects the JSON
        table = geo.read_geojson(b"{" + data)
        table.validate(full=True)
        geo.validate(table.column(0), on_fault="raise")


def _column_metadata(data: bytes) -> None:
    text = data.decode("latin-1")
    for parse in (
        lambda: GeospatialType.from_extension_metadata(data).extension_metadata(),
        lambda: crs.to_geoarrow(crs.inline_crs(text, {**PROPERTIES, "q": text})),
        lambda: page_boxes.decode(data[1:], data[0] % 8 if data else 0),
    ):
        with suppress(ParquetError):
            parse()
