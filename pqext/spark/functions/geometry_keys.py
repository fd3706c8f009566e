"""Spatial keys of geometries: positions on a Hilbert curve, geohashes and quadkeys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.spark.functions.geometry_arrays import Geometries
from pqext.spark.functions.udf import GEOMETRIES, ArrowFunction, ColumnOrName

if TYPE_CHECKING:
    _Doubles = NDArray[np.float64]

WORLD = (-180.0, -90.0, 180.0, 90.0)
_MERCATOR_TOP = 85.0511287798066
_BASE32 = np.frombuffer(b"0123456789bcdefghjkmnpqrstuvwxyz", np.uint8)
_BASE4 = np.frombuffer(b"0123", np.uint8)


def st_hilbert(geometry: ColumnOrName, bounds: tuple[float, float, float, float] = WORLD) -> Column:
    """Return the position of the centre of each geometry's bounding box on a Hilbert curve, as BIGINT.

    Neighbours on the curve are neighbours on the map, so row groups of sorted rows have small bounding boxes. Order a
    data frame with ``df.repartitionByRange(n, st_hilbert("g")).sortWithinPartitions(st_hilbert("g"))``, or with
    :func:`pqext.spark.layout`. The writer's ``geometry={"g": {"order": "hilbert"}}`` orders the rows of each task only.
    The curve fills ``bounds``; centres outside are moved to the border. Null for null and for empty geometries.
    """
    return HILBERT(geometry, bounds=tuple(map(float, bounds)))


def st_geohash(geometry: ColumnOrName, precision: int = 9) -> Column:
    """Return the geohash of the centre of each geometry's bounding box, with ``precision`` characters from 1 to 12.

    Coordinates must be longitude and latitude. Null for null, for empty geometries and for other coordinates.
    """
    return GEOHASH(geometry, precision=_check_range("precision", precision, 12))


def st_quadkey(geometry: ColumnOrName, zoom: int = 14) -> Column:
    """Return the quadkey of the Web Mercator tile at ``zoom``, 1 to 29, of the centre of each bounding box.

    Coordinates must be longitude and latitude. Latitudes beyond 85.05 degrees are in the outermost tiles. Null as in
    :func:`st_geohash`.
    """
    return QUADKEY(geometry, zoom=_check_range("zoom", zoom, 29))


def _check_range(name: str, value: Any, maximum: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
        raise ValueError(f"{name} must be an integer from 1 to {maximum}, not {value!r}")
    return value


def _centres(column: Geometries) -> tuple[_Doubles, _Doubles]:
    from pqext import geo

    sides = geo.bounds(column.wkb)  # planar bounds of the vertices
    x, y = (
        (sides.field(low).to_numpy(zero_copy_only=False) + sides.field(high).to_numpy(zero_copy_only=False)) / 2
        for low, high in (("xmin", "xmax"), ("ymin", "ymax"))
    )
    missing = column.missing
    return np.where(missing, np.nan, x), np.where(missing, np.nan, y)


def _hilbert(array: pa.Array, bounds: tuple[float, float, float, float] = WORLD) -> pa.Array:
    from pqext import geo

    xmin, ymin, xmax, ymax = bounds
    x, y = _centres(Geometries.from_arrow(array))
    is_valid = np.isfinite(x) & np.isfinite(y)
    index = geo.hilbert_index(
        np.where(is_valid, x, xmin), np.where(is_valid, y, ymin), geo.BoundingBox(xmin, xmax, ymin, ymax)
    )
    # 63 of the 64 bits, because BIGINT is signed.
    return pa.array((index >> np.uint64(1)).astype(np.int64), mask=~is_valid)


def _degrees(array: pa.Array) -> tuple[_Doubles, _Doubles, NDArray[np.bool_]]:
    """Return the longitudes and latitudes of the centres, and a mask of rows without a valid centre."""
    x, y = _centres(Geometries.from_arrow(array))
    is_valid = (np.abs(x) <= 180) & (np.abs(y) <= 90)
    return np.where(is_valid, x, 0.0), np.where(is_valid, y, 0.0), ~is_valid


def _geohash(array: pa.Array, precision: int = 9) -> pa.Array:
    x, y, missing = _degrees(array)
    bits = 5 * precision
    x_bits, y_bits = (bits + 1) // 2, bits // 2
    east, north = _cell((x + 180) / 360, x_bits), _cell((y + 90) / 180, y_bits)
    positions = np.arange(bits)  # bits of longitude and latitude alternate
    shifts = np.where(positions % 2 == 0, x_bits, y_bits) - 1 - positions // 2
    codes = np.zeros(len(x), np.uint64)
    for position in positions.tolist():
        axis = north if position % 2 else east
        codes = (codes << np.uint64(1)) | ((axis >> np.uint64(shifts[position])) & np.uint64(1))
    return _text(codes, 5, precision, _BASE32, missing)


def _quadkey(array: pa.Array, zoom: int = 14) -> pa.Array:
    x, y, missing = _degrees(array)
    sine = np.sin(np.radians(np.clip(y, -_MERCATOR_TOP, _MERCATOR_TOP)))
    south = 0.5 - np.log((1 + sine) / (1 - sine)) / (4 * np.pi)
    column, row = _cell((x + 180) / 360, zoom), _cell(south, zoom)
    codes = np.zeros(len(x), np.uint64)
    for bit in reversed(range(zoom)):
        digit = ((column >> np.uint64(bit)) & np.uint64(1)) | (((row >> np.uint64(bit)) & np.uint64(1)) << np.uint64(1))
        codes = (codes << np.uint64(2)) | digit
    return _text(codes, 2, zoom, _BASE4, missing)


def _cell(fraction: _Doubles, bits: int) -> NDArray[np.uint64]:
    """Return the index of the cell that contains each fraction, on an axis with 2^bits cells."""
    return np.clip(np.floor(fraction * 2.0**bits), 0, 2.0**bits - 1).astype(np.uint64)


def _text(
    numbers: NDArray[np.uint64], bits: int, length: int, digits: NDArray[np.uint8], missing: NDArray[np.bool_]
) -> pa.Array:
    """Format numbers as ``length`` digits of ``bits`` bits each."""
    shifts = np.uint64(bits) * np.arange(length - 1, -1, -1, dtype=np.uint64)
    text = digits[(numbers[:, None] >> shifts) & np.uint64((1 << bits) - 1)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(length)
    validity = pa.array(~missing).buffers()[1]
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(text.tobytes()), validity)


HILBERT = ArrowFunction("st_hilbert", (GEOMETRIES,), T.LongType(), _hilbert)
GEOHASH = ArrowFunction("st_geohash", (GEOMETRIES,), T.StringType(), _geohash)
QUADKEY = ArrowFunction("st_quadkey", (GEOMETRIES,), T.StringType(), _quadkey)
