"""Convert edges of GEOGRAPHY to chains of short straight lines, for programs that support planar geometry only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo import crs as crs_
from pqext.geo.coordinates import clamp_shapes, swap_hint
from pqext.geo.predicates.unrolling import TOLERANCE, shift_east, unroll
from pqext.geo.summary import resolve_type
from pqext.geo.wkb import GeometryArray, from_shapely, to_shapely, without_empty_parts

if TYPE_CHECKING:
    from pqext.geo.types import Edges

FINEST = 1e-6
"""Smallest tolerance in degrees, a few times the rounding of inserted vertices."""


def densify(
    geometries: GeometryArray | Sequence[Any] | NDArray[np.object_],
    edges: Edges | None = None,
    crs: Any = None,
    *,
    tolerance: float = TOLERANCE,
    split: bool = True,
) -> NDArray[np.object_]:
    """Return shapely geometries whose planar edges follow the geodesic edges of ``edges``.

    ``geometries`` is an Arrow array of WKB or shapely geometries; None is preserved. ``edges`` and ``crs`` default
    to the extension array, or to spherical edges and OGC:CRS84. Chords deviate from edges by
    at most ``tolerance`` degrees, 1e-6 or more; the default is about a metre. VINCENTY, THOMAS, ANDOYER and KARNEY
    follow the geodesic of the CRS's ellipsoid. Z and M are dropped.

    With ``split``, the result lies within longitudes -180 to 180 and latitudes -90 to 90 and can be compared with boxes
    and geometries there: geometries that cross the antimeridian are split, and the interior of a ring around a pole,
    its smaller side, extends to the pole at every longitude. A geometry then intersects a box that wraps if it
    intersects one of its halves. Geometries that only touch the antimeridian or a pole stay on their side. Without
    ``split``, x continues beyond 180 if a geometry crosses the antimeridian, and areas with a pole repeat every 360
    degrees and end beyond the pole.

    Raises GeometryError if coordinates are out of range, WKB is invalid or the ellipsoid is unknown,
    ValueError for planar edges and if the tolerance is too small.

    >>> import shapely
    >>> (line,) = densify([shapely.LineString([(0, 60), (90, 60)])])
    >>> round(line.bounds[3], 2)
    67.79
    """
    import shapely

    from pqext.geo.predicates.globe import geod_of

    if not tolerance >= FINEST:
        raise ValueError(f"the tolerance must be at least {FINEST} degrees, not {tolerance}")
    if isinstance(geometries, (pa.Array, pa.ChunkedArray)):
        array: GeometryArray = geometries
        type = resolve_type(array, crs, edges)
        if type.planar and edges is None:
            type = resolve_type(array, crs, "spherical")
    else:
        array = from_shapely(geometries)
        type = resolve_type(array, crs, edges or "spherical")
    if type.planar:
        raise ValueError("planar edges need no additional vertices; pass edges= to follow geodesic edges")
    with np.errstate(all="ignore"):  # NaN coordinates cause floating-point warnings in GEOS
        shapes = without_empty_parts(shapely.force_2d(to_shapely(array)))
    corners, rows = shapely.get_coordinates(shapes, return_index=True)
    outside = ~(np.abs(corners) <= (180 + crs_.SLACK, 90 + crs_.SLACK)).all(axis=1)
    if outside.any():
        row = int(rows[outside][0])
        least, most = corners[rows == row].min(axis=0), corners[rows == row].max(axis=0)
        hint = swap_hint((least[0], most[0]), (least[1], most[1]))
        message = f"coordinates are not longitudes and latitudes{hint}; geo.clamp moves them into the range"
        raise GeometryError(message, rule="geography.range", row=row)
    shapes = clamp_shapes(shapes)
    result = np.full(len(shapes), None, dtype=object)
    present = np.flatnonzero(~shapely.is_missing(shapes))
    geod = None if type.edges == "spherical" else geod_of(type)
    try:
        result[present] = unroll(shapes[present], geod, tolerance=tolerance)
        if split:
            west, south, east, north = shapely.bounds(result).T
            for row in np.flatnonzero((west < -180) | (east > 180) | (south < -90) | (north > 90)).tolist():
                result[row] = _wrap_longitudes(result[row])
    except shapely.errors.ShapelyError as error:
        raise GeometryError(f"shapely cannot process the geometries: {error}") from error
    return result


def _wrap_longitudes(shape: Any) -> Any:
    """Move the part of a shape that exceeds the range of longitudes back into it."""
    import shapely

    (west, east), (south, north) = crs_.LONGITUDES, crs_.LATITUDES
    world = shapely.box(west, south, east, north)
    parts = [shapely.intersection(shift_east(shape, 360.0 * turn), world) for turn in range(-2, 3)]
    return shapely.union_all([part for part in parts if not part.is_empty])
