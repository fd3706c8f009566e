"""The target of the geometry code: WKB, WKT, GeoJSON, and what a file says of its geometry columns.

Beside what every target holds, the forms agree with each other: what one of them takes is taken by all, and equal.
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
    """A byte for the form, then WKB, WKT, GeoJSON, features, or what describes a column."""
    if data:
        with suppress(ParquetError):
            (_wkb, _wkt, _geojson, _features, _described)[data[0] % 5](data[1:])


def _wkb(data: bytes) -> None:
    array = pa.array([None, data], pa.binary())
    if not _takes(geo.statistics, array):
        for read in (geo.bounds, geo.to_iso_wkb, geo.to_wkt, _validate, geo.to_geojson):
            assert not _takes(read, array), f"{read.__name__} takes what has no structure"
        return
    iso = geo.to_iso_wkb(array) if _valid(array) else array
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
    if _valid(array):
        text = geo.to_wkt(array)
        assert geo.to_wkt(geo.from_wkt(text)).to_pylist()[1] is not None


def _valid(array: pa.Array) -> bool:
    return _takes(_validate, array)


def _validate(array: pa.Array) -> None:
    geo.validate(array, on_fault="raise")


def _takes(read: Callable[[pa.Array], Any], array: pa.Array) -> bool:
    try:
        read(array)
    except ParquetError:
        return False
    return True


def _wkt(data: bytes) -> None:
    made = geo.from_wkt(pa.array([data.decode("latin-1")]))
    geo.validate(made, on_fault="raise")
    text = geo.to_wkt(geo.from_wkt(geo.to_wkt(made)))
    assert geo.to_wkt(geo.from_wkt(text)).equals(text)


def _geojson(data: bytes) -> None:
    made = geo.from_geojson(pa.array([data.decode("latin-1")]))
    geo.validate(made, on_fault="raise")
    assert geo.from_geojson(geo.to_geojson(made)).equals(made)


def _features(data: bytes) -> None:
    with suppress(ValueError):  # pyarrow's words for JSON that it does not take
        table = geo.read_geojson(b"{" + data)
        table.validate(full=True)
        geo.validate(table.column(0), on_fault="raise")


def _described(data: bytes) -> None:
    text = data.decode("latin-1")
    for read in (
        lambda: GeospatialType.from_extension_metadata(data).extension_metadata(),
        lambda: crs.to_geoarrow(crs.inlined(text, {**PROPERTIES, "q": text})),
        lambda: page_boxes.decode(data[1:], data[0] % 8 if data else 0),
    ):
        with suppress(ParquetError):
            read()
