"""Range checks and clamping of longitudes and latitudes.

Coordinates that exceed the range by at most :data:`pqext.geo.crs.SLACK` are treated as rounding errors. Spec:
"Coordinate Reference System" (Geospatial.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo.box import BoundingBox
from pqext.geo.crs import LATITUDES, LONGITUDES, SLACK
from pqext.geo.kernels.boxes import row_boxes
from pqext.geo.kernels.ordinates import take_coordinates, with_coordinates
from pqext.geo.text.arrays import assemble, bit_mask
from pqext.geo.types import array_type, mark_array
from pqext.geo.wkb import GeometryArray, as_columns, binary_chunks, columns, to_iso_wkb

CheckRange: TypeAlias = bool | Literal["clamp"]
"""Whether coordinates out of range raise an error; ``"clamp"`` clamps them instead."""


def within_range(box: BoundingBox, slack: float = SLACK) -> bool:
    """Return whether X and Y are longitudes and latitudes, within a tolerance of ``slack`` degrees."""
    (west, east), (south, north) = LONGITUDES, LATITUDES
    x = west - slack <= box.xmin and box.xmax <= east + slack
    return x and south - slack <= box.ymin and box.ymax <= north + slack


def box_within_range(box: BoundingBox) -> BoundingBox | None:
    """Return the box clamped to the range; None if X and Y are not longitudes and latitudes."""
    if not within_range(box):
        return None
    if within_range(box, 0.0):
        return box
    xmin, xmax = (min(max(x, LONGITUDES[0]), LONGITUDES[1]) for x in (box.xmin, box.xmax))
    ymin, ymax = (min(max(y, LATITUDES[0]), LATITUDES[1]) for y in (box.ymin, box.ymax))
    return replace(box, xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax)


def check(array: GeometryArray) -> None:
    """Raise GeometryError with the row of the first geometry that has coordinates out of range."""
    for column in columns(array):
        values = np.empty((8, len(column)))  # four bounds would stop at the first row with Z or M
        row_boxes(column, values)
        limits = (LONGITUDES, LONGITUDES, LATITUDES, LATITUDES)
        outside = np.zeros(len(column), dtype=bool)
        for line, (low, high) in zip(values, limits, strict=False):
            outside |= (line < low - SLACK) | (line > high + SLACK)
        if outside.any():
            row = int(np.flatnonzero(outside)[0])
            x, y = values[:2, row].tolist(), values[2:4, row].tolist()
            raise GeometryError(
                f"x from {x[0]} to {x[1]}, y from {y[0]} to {y[1]} leave the longitudes -180 to 180 and latitudes "
                '-90 to 90 of a geographic CRS; set the column\'s crs, check_range="clamp" to move them to the ends '
                "of the range, or check_range=False for GEOMETRY",
                rule="geo.crs.bounds",
                row=row,
            )


def clamp_shapes(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Return shapely geometries with X and Y clamped to longitudes and latitudes. Clamped geometries lose Z and M."""
    import shapely

    corners, rows = shapely.get_coordinates(shapes, return_index=True)
    least, most = zip(LONGITUDES, LATITUDES, strict=True)
    beyond = np.unique(rows[((corners < least) | (corners > most)).any(axis=1)])
    if not len(beyond):
        return shapes
    result = shapes.copy()
    result[beyond] = shapely.transform(shapes[beyond], lambda places: np.clip(places, least, most))
    return result


def clamp(array: GeometryArray) -> GeometryArray:
    """Clamp longitudes to -180 to 180 and latitudes to -90 to 90, and return ISO WKB.

    Longitudes do not wrap around: 190 becomes 180. NaN, infinite coordinates, Z and M are unchanged. Returns a
    ``binary`` array, or ``large_binary`` for 2 GiB and more, or an extension array if the input is one. Raises
    GeometryError with the row and byte if WKB is invalid.

    >>> from pqext.geo import from_points, to_wkt
    >>> to_wkt(clamp(from_points([180.00000000000006, 12], [66, 90.5]))).to_pylist()
    ['POINT (180 66)', 'POINT (12 90)']
    """
    chunks = binary_chunks(to_iso_wkb(array))
    made = []
    for chunk, column in zip(chunks, as_columns(chunks), strict=True):
        flat, _ = take_coordinates(column)
        values = np.frombuffer(flat, np.float64).reshape(-1, 3).copy()
        for line, ends in zip(values.T[:2], (LONGITUDES, LATITUDES), strict=True):
            np.clip(line, *ends, out=line, where=np.isfinite(line))
        made.append((len(chunk), bit_mask(chunk), *with_coordinates(column, values)))
    moved = assemble(array, made, (pa.binary(), pa.large_binary()))
    type = array_type(array.type)
    return moved if type is None else mark_array(moved, type)
