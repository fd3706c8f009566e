"""Bounding boxes of rows and statistics of columns.

Spec: "Statistics", "Bounding Box", "Geospatial Types" (000 §5.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.errors import GeometryError, UnsupportedError
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.boxes import Summary, row_boxes
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.kernels.wraparound import Longitudes
from pqext.geo.types import Edges, GeospatialType, array_type
from pqext.geo.wkb import GeometryArray, binary_chunks, columns, like_input, require_bytes, summaries

if TYPE_CHECKING:
    from pqext.core.metadata import GeospatialStatistics

BOUNDS = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
BOUNDS_TYPE = pa.struct([pa.field(name, pa.float64()) for name in BOUNDS])

_WITHOUT_EDGES = frozenset({1, 4})  # Point and MultiPoint
# In the kernel's mask of type codes, where a type has bit 8 * dims + type: those with x, y, z, m; without edges.
_HOLDING = (0xFFFFFFFF, 0xFFFFFFFF, 0xFF00FF00, 0xFFFF0000)
_EDGELESS = 0x12121212


def resolve_type(array: GeometryArray, crs: Any, edges: Edges | None) -> GeospatialType:
    """``crs`` and ``edges`` as a type; where they are None, what the array's extension type says.

    Raises TypeError when the array holds no bytes, GeometryError for GEOGRAPHY in a CRS that is known not to
    be geographic.
    """
    require_bytes(array)
    marked = array_type(array.type) or GeospatialType()
    found = GeospatialType(marked.crs if crs is None else crs_.normalize(crs), edges or marked.edges)
    if not found.planar and crs_.is_geographic(found.crs) is False:
        raise GeometryError(f"GEOGRAPHY needs a geographic CRS, not {found.crs}", rule="geography.crs")
    return found


def only_points(types: Iterable[int]) -> bool:
    """Are these the type codes of geometries without edges?"""
    return all(code % 1000 in _WITHOUT_EDGES for code in types)


def bounds(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """The box of every row, as structs ``xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax`` of doubles.

    Null rows give null; a dimension without values, as in an empty geometry, gives null bounds. A row's box
    is planar and never wraps. ``edges`` and ``crs`` default to what an extension array says, else to planar
    edges and OGC:CRS84. Raises GeometryError with row and byte on bad WKB, UnsupportedError for edges that
    are not planar.
    """
    type = resolve_type(array, crs, edges)
    parts = [_bounds(chunk, column, type) for chunk, column in zip(binary_chunks(array), columns(array), strict=True)]
    return like_input(array, parts, BOUNDS_TYPE)


def _bounds(chunk: pa.Array, column: WkbColumn, type: GeospatialType) -> pa.StructArray:
    values, types, absent = row_values(column)
    if not type.planar and types & ~_EDGELESS:
        raise UnsupportedError(
            "boxes around edges that are not planar are not computed yet", feature=f"bounds of {type.edges} edges"
        )
    null = chunk.is_null() if chunk.null_count else None
    missing = pa.nulls(len(chunk), pa.float64())
    children = []
    for index in range(8):
        if not _HOLDING[index // 2] & types:
            children.append(missing)
        elif absent >> index // 2 & 1:
            children.append(pa.array(values[index], mask=np.isnan(values[index])))
        else:
            children.append(pa.array(values[index]))
    return pa.StructArray.from_arrays(children, fields=list(BOUNDS_TYPE), mask=null)


def row_values(column: WkbColumn) -> tuple[NDArray[np.float64], int, int]:
    """Bounds by row, one line a bound: 4 lines, or 8 where there is Z or M; NaN where there is no value.

    With them the kernel's masks of type codes and of the dimensions that some row is without.
    """
    values = np.empty((4, len(column)))
    types, absent = row_boxes(column, values)
    if types & (_HOLDING[2] | _HOLDING[3]):
        values = np.empty((8, len(column)))
        types, absent = row_boxes(column, values)
    return values, types, absent


def statistics(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeospatialStatistics:
    """One box and the type codes of all rows, as a column chunk's metadata holds them.

    The box is left out when X or Y has no value or a coordinate is infinite, and for edges that are not
    planar unless there are only points. In a geographic CRS it wraps around the antimeridian when that is
    smaller: across a stretch of X that no single geometry's planar extent covers. ``geospatial_types`` is
    empty when there are no geometries. Arguments and errors as in :func:`bounds`.
    """
    return describe(array, resolve_type(array, crs, edges), summaries(array))


def describe(array: GeometryArray, type: GeospatialType, parts: Sequence[Summary]) -> GeospatialStatistics:
    """The statistics of an array whose ``parts`` are known already: see :func:`statistics`."""
    from pqext.core.metadata import GeospatialStatistics

    types = sorted({code for part in parts for code in part.types})
    box = bounding_box(parts)
    if box is not None and not type.planar and not (only_points(types) and within_range(box)):
        box = None
    if box is not None and type.geographic and box.width > 180 and within_range(box):
        longitudes = Longitudes()
        for column in columns(array):
            longitudes.add(column)
        box = box.wrapped(longitudes.widest_gap())
    return GeospatialStatistics(bbox=box.to_metadata() if box else None, geospatial_types=types)


def bounding_box(parts: Iterable[Summary]) -> BoundingBox | None:
    """The planar box around several parts of a column; None without X or Y, or with an infinite bound."""
    ranges = np.array([part.box for part in parts], dtype=np.float64)  # None becomes NaN
    if not len(ranges):
        return None
    box = np.empty(8)
    box[::2], box[1::2] = np.fmin.reduce(ranges[:, ::2]), np.fmax.reduce(ranges[:, 1::2])
    if np.isnan(box[:4]).any() or np.isinf(box).any():
        return None
    xmin, xmax, ymin, ymax, *optional = box.tolist()
    return BoundingBox(xmin, xmax, ymin, ymax, *(None if value != value else value for value in optional))


def within_range(box: BoundingBox) -> bool:
    """Are X and Y longitudes and latitudes?"""
    (west, east), (south, north) = crs_.LONGITUDES, crs_.LATITUDES
    return west <= box.xmin and box.xmax <= east and south <= box.ymin and box.ymax <= north


def merge(statistics: Iterable[GeospatialStatistics | None], crs: Any = None) -> GeospatialStatistics:
    """The statistics of several column chunks together; what one of them does not know, the whole does not.

    In a geographic CRS boxes on both sides of the antimeridian become one that wraps, if that is smaller.
    """
    from pqext.core.metadata import GeospatialStatistics

    geographic = crs_.is_geographic(crs_.normalize(crs)) is True
    parts = list(statistics)
    boxes = [BoundingBox.from_metadata(part.bbox) if part and part.bbox else None for part in parts]
    types = [part.geospatial_types if part and part.geospatial_types else [] for part in parts]
    known = bool(types) and all(types)
    box: BoundingBox | None = None
    if boxes and all(one is not None and one.usable for one in boxes):
        # From west to east, so that neighbours meet before the widest gap decides.
        ordered = sorted((one for one in boxes if one is not None), key=lambda one: one.xmin)
        box = ordered[0]
        for one in ordered[1:]:
            box = box.union(one, longitudes=geographic)
    return GeospatialStatistics(
        bbox=box.to_metadata() if box else None,
        geospatial_types=sorted({code for part in types for code in part}) if known else [],
    )
