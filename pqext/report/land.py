"""Coarse outline of the land (about 50 km) as a background for maps, in the CRS of the map."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import shapely

    from pqext.report.projection import Projection

_NARROWEST = 3.0
"""Width in degrees below which a map has no land, because the outline is too coarse."""
_SAMPLES = 33


_EARTH = (6.3e6, 6.5e6)
"""Range of the semi-major axis of ellipsoids of the Earth, in metres."""


@cache
def _world() -> Any:
    """Return the land of the world as polygons in degrees."""
    import shapely

    rings = json.loads(Path(__file__).with_name("land.json").read_text("utf-8"))["rings"]
    outlines = [np.cumsum(np.array(ring).reshape(-1, 2), axis=0) / 10 for ring in rings]
    return shapely.make_valid(shapely.multipolygons(shapely.polygons([shapely.linearrings(ring) for ring in outlines])))


def land(projection: Projection) -> shapely.Geometry | None:
    """Return the land within the extent of a map, in its CRS.

    Return None if there is no land, if the extent is too small, or if the CRS is unknown or is not of the Earth.
    """
    import shapely
    from shapely import affinity

    extent, crs = projection.extent, projection.crs
    bounds = extent.xmin, extent.ymin, extent.xmax, extent.ymax
    if crs is None or (crs.is_geographic and extent.xmax - extent.xmin < _NARROWEST):
        return None
    if crs.ellipsoid is None or not _EARTH[0] < crs.ellipsoid.semi_major_metre < _EARTH[1]:
        return None
    origin = 0.0 if crs.is_geographic else _central_meridian(crs)
    window = bounds if crs.is_geographic else _geographic_bounds(bounds, crs, origin)
    if window is None:
        return None
    # Three copies of the world: the window can contain meridians beyond 180 degrees.
    copies = [affinity.translate(_world(), turn - origin) for turn in (-360, 0, 360)]
    result: Any = shapely.union_all([shapely.clip_by_rect(copy, *window) for copy in copies])
    if not crs.is_geographic:
        result = shapely.segmentize(result, max(window[2] - window[0], window[3] - window[1]) / 100)
        parts = shapely.get_parts(result)
        result = [_transform(part, crs, origin) for part in parts]
        result = shapely.clip_by_rect(shapely.union_all([part for part in result if part is not None]), *bounds)
    result = shapely.simplify(result, 0.5 / projection.scale)
    return None if result.is_empty else result


def _central_meridian(crs: Any) -> float:
    parameters = crs.coordinate_operation.params if crs.coordinate_operation is not None else []
    return next((part.value for part in parameters if part.name.startswith("Longitude of")), 0.0)


def _geographic_bounds(
    bounds: tuple[float, float, float, float], crs: Any, origin: float
) -> tuple[float, float, float, float] | None:
    """Convert an extent to degrees, with longitudes relative to ``origin``; None if the extent is too small."""
    x, y = np.meshgrid(np.linspace(bounds[0], bounds[2], _SAMPLES), np.linspace(bounds[1], bounds[3], _SAMPLES))
    points = np.array(_transformer(crs).transform(x.ravel(), y.ravel(), direction="INVERSE"))
    points = points[:, np.isfinite(points).all(axis=0)]
    if not points.size:
        return None
    longitudes = np.mod(points[0] - origin + 180, 360) - 180
    if max(np.ptp(longitudes), np.ptp(points[1])) < _NARROWEST:
        return None
    edge = 179.9999  # the antimeridian of the projection itself belongs to both sides
    west, east = max(longitudes.min() - 5, -edge), min(longitudes.max() + 5, edge)
    return west, max(points[1].min() - 5, -90.0), east, min(points[1].max() + 5, 90.0)


def _transform(part: Any, crs: Any, origin: float) -> Any:
    import shapely

    coordinates = shapely.get_coordinates(part)
    points = np.column_stack(_transformer(crs).transform(coordinates[:, 0] + origin, coordinates[:, 1]))
    points = points[np.isfinite(points).all(axis=1)]
    return shapely.make_valid(shapely.polygons(points)) if len(points) > 3 and part.geom_type == "Polygon" else None


@cache
def _transformer(crs: Any) -> Any:
    import pyproj

    return pyproj.Transformer.from_crs("OGC:CRS84", crs, always_xy=True)
