"""Rules for coordinates: ranges of longitudes and latitudes, and the orientation of polygon rings.

Coordinates that exceed the range by at most :data:`pqext.geo.crs.SLACK` are treated as rounding errors. Outer rings are
counterclockwise for readers that place the interior of a GEOGRAPHY polygon to the left of its rings, such as S2. Spec:
"Coordinate Reference System" (Geospatial.md), "orientation" (GeoParquet 2.0).
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
from pqext.geo.kernels.ordinates import take_coordinates, with_coordinates, with_oriented_rings
from pqext.geo.types import GeospatialType, array_type, mark_array
from pqext.geo.wkb import GeometryArray, as_columns, assemble, binary_chunks, bit_mask, columns, to_iso_wkb

CheckRange: TypeAlias = bool | Literal["clamp"]
"""Whether coordinates out of range raise an error; ``"clamp"`` clamps them instead."""
_POLYGONAL = (3, 6, 7)
"""WKB codes of geometry types that can contain rings."""


def within_range(box: BoundingBox, slack: float = SLACK) -> bool:
    """Return whether X and Y of a box are longitudes and latitudes, within a tolerance of ``slack`` degrees."""
    (west, east), (south, north) = LONGITUDES, LATITUDES
    x = west - slack <= box.xmin and box.xmax <= east + slack
    return x and south - slack <= box.ymin and box.ymax <= north + slack


def box_within_range(box: BoundingBox) -> BoundingBox | None:
    """Return a box clamped to longitudes and latitudes; None if it exceeds them by more than the tolerance."""
    if not within_range(box):
        return None
    if within_range(box, 0.0):
        return box
    xmin, xmax = (min(max(x, LONGITUDES[0]), LONGITUDES[1]) for x in (box.xmin, box.xmax))
    ymin, ymax = (min(max(y, LATITUDES[0]), LATITUDES[1]) for y in (box.ymin, box.ymax))
    return replace(box, xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax)


def swap_hint(x: tuple[float, float], y: tuple[float, float]) -> str:
    """Return a hint if Y exceeds the latitudes and X and Y would be in range if they were swapped; otherwise empty.

    >>> swap_hint((45, 46), (170, 171))
    '; if x and y are swapped, pass longitudes as x and latitudes as y'
    """
    farthest_x, farthest_y = max(map(abs, x)), max(map(abs, y))
    is_swapped = farthest_x <= LATITUDES[1] and LATITUDES[1] + SLACK < farthest_y <= LONGITUDES[1] + SLACK
    return "; if x and y are swapped, pass longitudes as x and latitudes as y" if is_swapped else ""


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
                f"x from {x[0]} to {x[1]}, y from {y[0]} to {y[1]}: coordinates in a geographic CRS must be longitudes "
                f"from -180 to 180 and latitudes from -90 to 90{swap_hint((x[0], x[1]), (y[0], y[1]))}; correct the "
                'column\'s crs, clamp coordinates with check_range="clamp", or write GEOMETRY with check_range=False',
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


def has_polygons(codes: tuple[int, ...] | list[int]) -> bool:
    """Return whether geometries with these WKB type codes can contain rings."""
    return any(code % 1000 in _POLYGONAL for code in codes)


def orient_rings(array: GeometryArray, type: GeospatialType | None = None) -> GeometryArray:
    """Return WKB with counterclockwise outer rings and clockwise holes.

    In a plane, the signed area determines the direction of a ring. On a globe, the interior of a ring is the smaller of
    its two sides, also across the antimeridian and around a pole. Rings without area are unchanged. The first
    coordinate of a ring remains the first.

    Args:
        array: Geometries as WKB, of n rows.
        type: Type of the geometries. By default the type of ``array``, or planar if it has none.

    Returns:
        n rows of ``binary``, or ``large_binary`` from 2 GiB, with the extension type of ``array``; ``array`` itself if
        nothing changes.

    Raises:
        GeometryError: With the row and byte, if WKB is invalid.

    Example:
        >>> from pqext.geo import from_wkt, to_wkt
        >>> to_wkt(orient_rings(from_wkt(["POLYGON ((0 0, 0 1, 1 1, 0 0))"]))).to_pylist()
        ['POLYGON ((0 0, 1 1, 0 1, 0 0))']
    """
    known = array_type(array.type)
    type = type or known or GeospatialType()
    chunks = binary_chunks(array)
    results = [with_oriented_rings(column, not type.planar) for column in as_columns(chunks)]
    if not any(is_reversed for _, _, is_reversed in results):
        return array
    made = [
        (len(chunk), bit_mask(chunk), data, offsets) for chunk, (data, offsets, _) in zip(chunks, results, strict=True)
    ]
    oriented = assemble(array, made, (pa.binary(), pa.large_binary()))
    return oriented if known is None else mark_array(oriented, known)


def orients(orientation: str | None, type: GeospatialType, is_described: bool) -> bool:
    """Return whether polygons must be written with counterclockwise outer rings.

    By default, GEOGRAPHY is oriented if GeoParquet metadata can declare the orientation. "unchanged" preserves all
    rings.

    Raises:
        ValueError: If the orientation is unknown.
    """
    if orientation not in (None, "counterclockwise", "unchanged"):
        raise ValueError(f'orientation must be "counterclockwise" or "unchanged", not {orientation!r}')
    return orientation == "counterclockwise" or (orientation is None and is_described and not type.planar)
