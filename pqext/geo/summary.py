"""Bounding boxes of rows and statistics of columns.

A geodesic edge spans the longitudes between its ends along the shorter arc. Its extreme latitude has a closed form on
the sphere, which also bounds the latitude on an ellipsoid for all algorithms. -180 and 180 are the same meridian, and a
pole has every longitude; a box that touches either contains both representations. The interior of a ring is its smaller
side. The rules and their proofs are in ``specs/geospatial.md``. Spec: "Statistics", "Bounding Box", "Geospatial Types",
"Edge Interpolation Algorithm" (Geospatial.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.core.base.suggestions import excerpt
from pqext.core.schema.types.geometries import crs_label
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import box_within_range, within_range
from pqext.geo.kernels.boxes import Summary, row_boxes
from pqext.geo.kernels.edge_boxes import edge_boxes
from pqext.geo.kernels.edges import WORTH_WRAPPING
from pqext.geo.kernels.wkb import WkbColumn
from pqext.geo.kernels.wraparound import Longitudes
from pqext.geo.types import Edges, GeospatialType, array_type
from pqext.geo.wkb import GeometryArray, binary_chunks, columns, match_chunking, require_bytes, summaries

if TYPE_CHECKING:
    from pqext.core.format.metadata import GeospatialStatistics

Bounds = NDArray[np.float64]
"""Boxes as an array with rows xmin, xmax, ymin, ymax. Missing values are NaN; xmin > xmax if a box wraps."""

_FLATTENING = 1 / 298.257223563
"""Flattening of WGS84, the ellipsoid of the default CRS."""

TURNS = {"spherical": 0.0, "karney": 0.0, "vincenty": 1e-9, "thomas": 1e-7, "andoyer": 1.5e-5}
"""Maximum error in radians of the azimuth of an edge of at most 90 degrees on an Earth-like ellipsoid, by algorithm;
see ``geo.edges.algorithm_errors`` in ``specs/geospatial.md``."""

BOUNDS = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
BOUNDS_TYPE = pa.struct([pa.field(name, pa.float64()) for name in BOUNDS])

_WITHOUT_EDGES = frozenset({1, 4})  # Point and MultiPoint
# In the kernel's mask of type codes, where a type has bit 8 * dims + type: those with x, y, z, m.
_HOLDING = (0xFFFFFFFF, 0xFFFFFFFF, 0xFF00FF00, 0xFFFF0000)

_PIECE = 4096  # rows

PLANE = GeospatialType()


@dataclass(frozen=True, slots=True)
class Globe:
    """Ellipsoid of revolution: its squared eccentricity, and the ``ratio`` of polar to equatorial axis.

    A sphere has 0 and 1.

    ``turn`` bounds the error of the algorithm in the azimuth of an edge, in radians.
    """

    e2: float = 0.0
    ratio: float = 1.0
    turn: float = 0.0


def globe_of(type: GeospatialType) -> Globe:
    """Return the globe of a GEOGRAPHY type.

    Edges other than spherical use the ellipsoid of the CRS. Raises GeometryError if the CRS has no ellipsoid, or the
    edge algorithm does not support its flattening.
    """
    return _globe(type.edges, type.crs)


@lru_cache(maxsize=256)
def _globe(edges: str, crs: str | None) -> Globe:
    if edges == "spherical":
        return Globe()
    flattening = _FLATTENING if crs is None else _flattening(crs)
    # Errors of the series grow with the square of the flattening, and with its cube outside their intended range.
    turn = TURNS[edges] * max(1.0, abs(flattening) / _FLATTENING) ** 3
    if turn > 0.01:
        raise GeometryError(f"{edges} edges do not support the flattening of CRS {crs}", rule="geography.crs")
    return Globe(flattening * (2 - flattening), 1 - flattening, turn)


def _flattening(crs: str) -> float:
    ellipsoid = crs_.parse(crs).ellipsoid
    if ellipsoid is None or not ellipsoid.semi_major_metre > 0 or not ellipsoid.semi_minor_metre > 0:
        message = f"the CRS {crs} has no ellipsoid; use a geographic CRS such as OGC:CRS84"
        raise GeometryError(message, rule="geography.crs")
    return float(1 - ellipsoid.semi_minor_metre / ellipsoid.semi_major_metre)


def _edge_values(
    column: WkbColumn, globe: Globe, lines: int = 4, outside: NDArray[np.uint8] | None = None
) -> tuple[Bounds, int, int]:
    """Return the bounds of each row, including the interior of geodesic edges, in the format of :func:`row_values`.

    Raises GeometryError with the row if WKB is invalid or coordinates are out of range. If ``outside`` is passed, rows
    out of range are flagged in it instead, and have no X and Y. ``lines`` is 4 or 8, the number of rows of the bounds.
    """
    values = np.empty((lines, len(column)))
    types, absent = edge_boxes(column, values, globe.e2, globe.ratio, globe.turn, outside)
    return values, types, absent


def enclosing_box(parts: list[Bounds]) -> BoundingBox | None:
    """Return the box around boxes of longitudes and latitudes; None if no box has X, or no box has Y.

    The box wraps around the widest gap in longitude if that makes it clearly narrower.
    """
    values = [part[:4, ~np.isnan(part[0])] for part in parts]
    latitudes = np.concatenate([np.empty((2, 0)), *(part[2:4, ~np.isnan(part[2])] for part in parts)], axis=1)
    if not any(part.shape[1] for part in values) or not latitudes.shape[1]:
        return None
    longitudes = Longitudes()
    west, east = 180.0, -180.0
    for xmin, xmax, *_ in values:
        longitudes.add_intervals(np.ascontiguousarray(xmin), np.ascontiguousarray(xmax))
        west, east = min(west, xmin.min(initial=180.0)), max(east, xmax.max(initial=-180.0))
        if (xmin > xmax).any():
            west, east = -180.0, 180.0
    box = BoundingBox(float(west), float(east), float(latitudes[0].min()), float(latitudes[1].max()))
    return box.wrap_around(longitudes.widest_gap())


def resolve_type(array: GeometryArray, crs: Any, edges: Edges | None) -> GeospatialType:
    """Return ``crs`` and ``edges`` as a type; values that are None come from the array's extension type.

    Raises TypeError if the array is not binary, and GeometryError for GEOGRAPHY in a CRS that is known not to be
    geographic.
    """
    require_bytes(array)
    marked = array_type(array.type) or GeospatialType()
    found = GeospatialType(marked.crs if crs is None else crs_.normalize(crs), edges or marked.edges)
    if not found.planar and crs_.is_geographic(found.crs) is False:
        problem = f"GEOGRAPHY needs a geographic CRS, not {excerpt(crs_label(found.crs))}"
        raise GeometryError(problem, rule="geography.crs")
    return found


def only_points(types: Iterable[int]) -> bool:
    """Return whether geometries with these type codes have no edges."""
    return all(code % 1000 in _WITHOUT_EDGES for code in types)


def bounds(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return the box of every row, as structs ``xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax`` of doubles.

    Null rows are null. A dimension without values, as in an empty geometry, has null bounds. With planar edges, boxes
    never wrap. Otherwise the box contains the complete geodesic edges, and wraps, with xmin > xmax, if the row crosses
    the antimeridian or comes near it from both sides; the rules are in ``specs/geospatial.md``. ``edges`` and ``crs``
    default to the extension array, or to planar edges and OGC:CRS84. Raises GeometryError with row and byte if WKB is
    invalid, and, unless edges are planar, with the row if coordinates are out of range, which :func:`pqext.geo.clamp`
    fixes, or if the ellipsoid of the CRS is unknown. Coordinates out of range by up to 1e-9 degrees are treated as the
    limit.

    >>> from pqext.geo import from_shapely
    >>> import shapely
    >>> line = from_shapely([shapely.LineString([(0, 60), (90, 60)])])
    >>> round(bounds(line, "spherical")[0]["ymax"].as_py(), 2)
    67.79
    """
    type = resolve_type(array, crs, edges)
    parts = [_bounds(chunk, column, type) for chunk, column in zip(binary_chunks(array), columns(array), strict=True)]
    return match_chunking(array, parts, BOUNDS_TYPE)


def _bounds(chunk: pa.Array, column: WkbColumn, type: GeospatialType) -> pa.StructArray:
    values, types, absent = row_values(column, type)
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


def row_values(
    column: WkbColumn, type: GeospatialType = PLANE, outside: NDArray[np.uint8] | None = None
) -> tuple[Bounds, int, int]:
    """Return the bounds of each row: 4 array rows, or 8 if there is Z or M; NaN without values.

    Also returns the kernel's masks of type codes and of the dimensions that some row lacks. Bounds contain the edges of
    ``type`` and may have xmin > xmax. ``outside`` is as in :func:`_edge_values`.
    """
    globe = None if type.planar else globe_of(type)
    for lines in (4, 8):
        if globe is not None:
            values, types, absent = _edge_values(column, globe, lines, outside)
        else:
            values = np.empty((lines, len(column)))
            types, absent = row_boxes(column, values)
        if not types & (_HOLDING[2] | _HOLDING[3]):
            break
    return values, types, absent


def statistics(array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeospatialStatistics:
    """Return the box and the type codes of all rows, as stored in the metadata of a column chunk.

    The box is omitted if X or Y has no value or a coordinate is infinite, and, unless edges are planar, if a coordinate
    is out of range or the ellipsoid is unknown. It contains complete edges, as in :func:`bounds`. In a geographic CRS
    it wraps around the antimeridian if that is smaller, across a gap in X that no single geometry covers.
    ``geospatial_types`` is empty if there are no geometries. Other arguments and errors are as in :func:`bounds`.

    >>> from pqext.geo import from_points
    >>> box = statistics(from_points([178, -175], [-17, -16])).bbox
    >>> box.xmin, box.xmax, box.ymin, box.ymax  # wraps around the antimeridian
    (178.0, -175.0, -17.0, -16.0)
    """
    return describe(array, resolve_type(array, crs, edges), summaries(array))


@dataclass(frozen=True)
class EdgeBoxes:
    """Boxes of the rows in each chunk of a GEOGRAPHY array, including edges. They are computed once, on first use."""

    array: GeometryArray
    type: GeospatialType

    @cached_property
    def parts(self) -> list[Bounds]:
        """Boxes of each chunk. Raises GeometryError for coordinates out of range and if the ellipsoid is unknown."""
        globe = globe_of(self.type)
        return [_edge_values(column, globe)[0] for column in columns(self.array)]


def describe(
    array: GeometryArray, type: GeospatialType, parts: Sequence[Summary], edges: EdgeBoxes | None = None
) -> GeospatialStatistics:
    """Combine the summaries of an array's chunks into its statistics; see :func:`statistics`."""
    from pqext.core.format.metadata import GeospatialStatistics

    types = sorted({code for part in parts for code in part.types})
    box = bounding_box(parts)
    if box is not None and not type.planar:
        box = _geography_box(box, array, types, edges or EdgeBoxes(array, type))
    elif box is not None and type.geographic and box.width > 180 and within_range(box, 0.0):
        box = _wrap_box(box, array)
    return GeospatialStatistics(bbox=box.to_metadata() if box else None, geospatial_types=types)


def _wrap_box(box: BoundingBox, array: GeometryArray) -> BoundingBox:
    """Return the box that excludes the widest gap in x, if it is clearly smaller.

    Chunks from all parts of the array are added alternately, because a missing gap then shows early.
    """
    # A narrower gap is useless; the margin allows for rounding errors.
    longitudes = Longitudes(box.xmin, box.xmax, 360 - box.width + WORTH_WRAPPING - 1e-9)
    starts = range(0, len(array), _PIECE)
    stride = next(step for step in (int(len(starts) * 0.618) | 1, 1) if gcd(step, len(starts)) == 1)
    for turn in range(len(starts)):
        for column in columns(array.slice(starts[turn * stride % len(starts)], _PIECE)):
            longitudes.add(column)
        if longitudes.settled:
            break
    return box.wrap_around(longitudes.widest_gap())


def is_planar_on_globe(planar: BoundingBox, points: bool) -> bool:
    """Return whether the planar box is also the bounding box on the globe.

    This holds for points away from the poles and the antimeridian.
    """
    touches = planar.xmin == -180 or planar.xmax == 180 or planar.ymin < -89.9 or planar.ymax > 89.9
    return points and not touches


def _geography_box(
    planar: BoundingBox, array: GeometryArray, types: Sequence[int], edges: EdgeBoxes
) -> BoundingBox | None:
    """Return the box of GEOGRAPHY for coordinates with the box ``planar``, or None if it is unknown."""
    inside = box_within_range(planar)
    if inside is None:
        return None
    planar = inside
    if is_planar_on_globe(planar, all(code % 1000 == 1 for code in types)):
        return _wrap_box(planar, array) if planar.width > 180 else planar
    try:
        box = enclosing_box(edges.parts)
    except GeometryError:
        return None
    return box and replace(planar, xmin=box.xmin, xmax=box.xmax, ymin=box.ymin, ymax=box.ymax)


def bounding_box(parts: Iterable[Summary]) -> BoundingBox | None:
    """Return the planar box around several parts of a column; None if there is no X or Y, or a bound is infinite."""
    ranges = np.array([part.box for part in parts], dtype=np.float64)  # None becomes NaN
    if not len(ranges):
        return None
    box = np.empty(8)
    box[::2], box[1::2] = np.fmin.reduce(ranges[:, ::2]), np.fmax.reduce(ranges[:, 1::2])
    if np.isnan(box[:4]).any() or np.isinf(box).any():
        return None
    xmin, xmax, ymin, ymax, *optional = box.tolist()
    return BoundingBox(xmin, xmax, ymin, ymax, *(None if value != value else value for value in optional))


def merge(statistics: Iterable[GeospatialStatistics | None], crs: Any = None) -> GeospatialStatistics:
    """Merge the statistics of several column chunks. A value that one chunk does not state is unknown in the result.

    In a geographic CRS the box wraps around the antimeridian if that is smaller, across the widest gap in X that no
    chunk's box covers.

    >>> from pqext.geo import from_points, from_wkt
    >>> chunks = [from_points([1, 2], [3, 4]), from_wkt(["LINESTRING (5 6, 7 8)"])]
    >>> merged = merge(statistics(chunk) for chunk in chunks)
    >>> merged.bbox.xmin, merged.bbox.xmax, merged.geospatial_types  # 1 is Point, 2 is LineString
    (1.0, 7.0, [1, 2])
    """
    from pqext.core.format.metadata import GeospatialStatistics

    geographic = crs_.is_geographic(crs_.normalize(crs)) is True
    parts = list(statistics)
    boxes = [BoundingBox.from_metadata(part.bbox) for part in parts if part and part.bbox]
    types = [part.geospatial_types if part and part.geospatial_types else [] for part in parts]
    known = bool(types) and all(types)
    box = union(boxes, geographic) if len(boxes) == len(parts) else None
    return GeospatialStatistics(
        bbox=box.to_metadata() if box else None,
        geospatial_types=sorted({code for part in types for code in part}) if known else [],
    )


def union(boxes: Sequence[BoundingBox], geographic: bool) -> BoundingBox | None:
    """Return the box around several boxes.

    The result wraps if that is narrower and ``geographic`` is True. Returns None if there are no boxes, if a box is not
    usable, or if a box wraps and ``geographic`` is False.
    """
    if not boxes or not all(box.usable and (geographic or not box.wraps) for box in boxes):
        return None
    values = np.array([[getattr(box, name) for name in BOUNDS] for box in boxes], dtype=np.float64).T  # None is NaN
    low, high = np.fmin.reduce(values[::2], axis=1), np.fmax.reduce(values[1::2], axis=1)
    x, y, z, m = ((None, None) if a != a else (a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))
    box = BoundingBox(*x, *y, *z, *m)
    if geographic and (np.abs(values[:2]) <= 180).all():
        wrapped = enclosing_box([values])
        return wrapped and replace(box, xmin=wrapped.xmin, xmax=wrapped.xmax)
    if any(part.wraps for part in boxes):  # with x beyond the longitudes
        return replace(box, xmin=min(-180.0, values[:2].min()), xmax=max(180.0, values[:2].max()))
    return box
