"""Keys of places: along a Hilbert curve, as geohash and as quadkey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_accessors import box_sides
from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.udf import GEOMETRIES, ArrowFunction, ColumnOrName

if TYPE_CHECKING:
    _Doubles = NDArray[np.float64]

WORLD = (-180.0, -90.0, 180.0, 90.0)
_MERCATOR_TOP = 85.0511287798066
_BASE32 = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
_BASE4 = np.frombuffer(b"0123", np.uint8)


def st_hilbert(geometry: ColumnOrName, bounds: tuple[float, float, float, float] = WORLD) -> Column:
    """The place of each geometry's centre on a Hilbert curve through ``bounds``, a BIGINT to order rows by.

    Neighbours on the curve are neighbours on the map, so that row groups of sorted rows have small boxes. To lay a
    whole data frame out so, ``df.repartitionByRange(n, st_hilbert("g")).sortWithinPartitions(st_hilbert("g"))``; the
    writer's ``geometry={"g": {"order": "hilbert"}}`` orders the rows of each task, in place of the second step.
    Centres outside ``bounds`` count as on their border. Null on null and on empty geometries.
    """
    return HILBERT(geometry, bounds=tuple(map(float, bounds)))


def st_geohash(geometry: ColumnOrName, precision: int = 9) -> Column:
    """The geohash of each geometry's centre, of ``precision`` characters, 1 to 12.

    Coordinates are longitude and latitude; the centre is that of the box. Null on null, on empty geometries, and where
    the centre is no longitude and latitude.
    """
    return GEOHASH(geometry, precision=_within("precision", precision, 12))


def st_quadkey(geometry: ColumnOrName, zoom: int = 14) -> Column:
    """The quadkey of the Web Mercator tile at ``zoom``, 1 to 29, that holds each geometry's centre.

    Coordinates are longitude and latitude; beyond 85.05 degrees north or south it is the last tile. Null as
    :func:`st_geohash` is.
    """
    return QUADKEY(geometry, zoom=_within("zoom", zoom, 29))


def _within(what: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ValueError(f"{what} is a whole number from 1 to {most}, not {value!r}")
    return value


def _centres(of: Geometries) -> tuple[_Doubles, _Doubles]:
    boxes = Geometries(of.wkb, type(of.type)())  # of the vertices, whatever the edges
    sides = box_sides(boxes)
    x, y = (
        (sides.field(low).to_numpy(zero_copy_only=False) + sides.field(high).to_numpy(zero_copy_only=False)) / 2
        for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    missing = of.missing
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def _hilbert(array: pa.Array, bounds: tuple[float, float, float, float] = WORLD) -> pa.Array:
    from pqext import geo

    xmin, ymin, xmax, ymax = bounds
    x, y = _centres(Geometries.of(array))
    placed = np.isfinite(x) & np.isfinite(y)
    at = geo.hilbert_index(
        np.where(placed, x, xmin), np.where(placed, y, ymin), geo.BoundingBox(xmin, xmax, ymin, ymax)
    )
    # 63 of its 64 bits, so that the order is that of signed integers.
    return pa.array((at >> np.uint64(1)).astype(np.int64), mask=~placed)


def _places(array: pa.Array) -> tuple[_Doubles, _Doubles, NDArray[np.bool_]]:
    """Longitudes and latitudes of the centres, and which rows have none."""
    x, y = _centres(Geometries.of(array))
    placed = (np.abs(x) <= 180) & (np.abs(y) <= 90)
    return np.where(placed, x, 0.0), np.where(placed, y, 0.0), ~placed


def _geohash(array: pa.Array, precision: int = 9) -> pa.Array:
    x, y, missing = _places(array)
    bits = 5 * precision
    for_x, for_y = (bits + 1) // 2, bits // 2
    east, north = _cell((x + 180) / 360, for_x), _cell((y + 90) / 180, for_y)
    turns = np.arange(bits)  # the first bit is of longitude
    high = np.where(turns % 2 == 0, for_x, for_y) - 1 - turns // 2
    whole = np.zeros(len(x), np.uint64)
    for turn in turns.tolist():
        part = north if turn % 2 else east
        whole = (whole << np.uint64(1)) | ((part >> np.uint64(high[turn])) & np.uint64(1))
    return _text(whole, 5, precision, _BASE32, missing)


def _quadkey(array: pa.Array, zoom: int = 14) -> pa.Array:
    x, y, missing = _places(array)
    sine = np.sin(np.radians(np.clip(y, -_MERCATOR_TOP, _MERCATOR_TOP)))
    south = 0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)
    column, row = _cell((x + 180) / 360, zoom), _cell(south, zoom)
    whole = np.zeros(len(x), np.uint64)
    for bit in reversed(range(zoom)):
        digit = ((column >> np.uint64(bit)) & np.uint64(1)) | (((row >> np.uint64(bit)) & np.uint64(1)) << np.uint64(1))
        whole = (whole << np.uint64(2)) | digit
    return _text(whole, 2, zoom, _BASE4, missing)


def _cell(share: _Doubles, bits: int) -> NDArray[np.uint64]:
    """The number of the cell, of 2^bits ones, at each share of the way."""
    return np.clip(np.floor(share * 2.0**bits), 0, 2.0**bits - 1).astype(np.uint64)


def _text(
    numbers: NDArray[np.uint64], bits: int, length: int, digits: NDArray[np.uint8], missing: NDArray[np.bool_]
) -> pa.Array:
    """Numbers as so many digits of so many bits each."""
    shifts = np.uint64(bits) * np.arange(length - 1, -1, -1, dtype=np.uint64)
    text = digits[(numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(length)
    validity = pa.array(~missing).buffers()[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text.tobytes()), validity)


HILBERT = ArrowFunction("st_hilbert", (GEOMETRIES,), T.LongType(), _hilbert)
GEOHASH = ArrowFunction("st_geohash", (GEOMETRIES,), T.StringType(), _geohash)
QUADKEY = ArrowFunction("st_quadkey", (GEOMETRIES,), T.StringType(), _quadkey)
