"""Boxes around the results of functions, from boxes around their arguments.

A predicate on a computed geometry, such as ``st_intersects(st_buffer(geom, 10), ...)``, prunes row groups and pages by
these boxes. Boxes are arrays of four rows, xmin, xmax, ymin and ymax, with a column for each box. They may be larger
than necessary, never smaller; NaN stands for an unknown box. Boxes that wrap around the antimeridian are passed as NaN.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.geo import crs as crs_
from pqext.geo.summary import bounds
from pqext.geo.transformation import cached_transformer
from pqext.geo.types import GeospatialType

Sides: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-12
"""Relative error of constructions, thousands of times the error of a double."""
_CURVES = 1.02
"""Factor on the distance of a buffer, because GEOS simplifies lines by up to 1 % of the distance first."""
_STEPS = np.linspace(0, 1, 9)
"""Positions along each side of a box at which coordinates are transformed."""
_HEIGHT = 1e5
"""A height at which a transformation shows whether X and Y depend on Z."""


def keep_boxes(sides: Sides, type: GeospatialType, *constants: Any) -> Sides:
    """Return boxes around results that lie within the boxes of their arguments, such as centroids."""
    return _widen(sides, 0.0)


def widen_boxes(sides: Sides, type: GeospatialType, distance: float, *constants: Any) -> Sides:
    """Return boxes around results that extend up to ``distance`` beyond their arguments."""
    return _widen(sides, abs(distance) * _CURVES)


def extend_boxes(sides: Sides, type: GeospatialType, other: bytes | tuple[float, float, float, float]) -> Sides:
    """Return boxes around unions with ``other``, WKB or a box ``(xmin, ymin, xmax, ymax)``."""
    if isinstance(other, bytes):
        box = bounds(pa.array([other], pa.binary()))[0].as_py()
        corners = (box[side] for side in ("xmin", "ymin", "xmax", "ymax"))
        xmin, ymin, xmax, ymax = (np.nan if side is None else side for side in corners)
    else:
        xmin, ymin, xmax, ymax = other
    low, high = np.array([[xmin], [ymin]]), np.array([[xmax], [ymax]])
    result = np.empty_like(sides)
    result[0::2], result[1::2] = np.minimum(sides[0::2], low), np.maximum(sides[1::2], high)
    return _widen(result, 0.0)


def transform_boxes(sides: Sides, type: GeospatialType, crs: str) -> Sides:
    """Return boxes around geometries transformed to ``crs``.

    A lattice of points in each box is transformed. The box around them is widened on each side by the largest
    difference between neighbours. A box is unknown if PROJ rejects one of its points, or if X or Y depends on Z.
    """
    transformer = cached_transformer(crs_.resolve(type.crs), crs_.resolve(crs))
    low, size = sides[0::2], sides[1::2] - sides[0::2]
    x = (low[0] + size[0] * _STEPS[:, None, None]) + np.zeros((1, len(_STEPS), 1))
    y = (low[1] + size[1] * _STEPS[None, :, None]) + np.zeros((len(_STEPS), 1, 1))
    flat = np.stack(transformer.transform(x.ravel(), y.ravel()))
    high = np.stack(transformer.transform(x.ravel(), y.ravel(), np.full(x.size, _HEIGHT))[:2])
    result = np.full_like(sides, np.nan)
    for side, values in enumerate(np.where(flat == high, flat, np.nan).reshape(2, *x.shape)):
        values[~np.isfinite(values)] = np.nan
        gap = np.maximum(*(np.abs(np.diff(values, axis=axis)).max(axis=(0, 1)) for axis in (0, 1)))
        result[2 * side], result[2 * side + 1] = values.min(axis=(0, 1)) - gap, values.max(axis=(0, 1)) + gap
    result[:, np.isnan(result).any(axis=0)] = np.nan
    return _widen(result, 0.0)


def _widen(sides: Sides, distance: float) -> Sides:
    """Return boxes widened on each side by ``distance`` and the rounding error of constructions."""
    margin = distance + _ROUNDING * np.abs(sides).max(axis=0)
    widened: Sides = sides + np.array([[-1.0], [1.0], [-1.0], [1.0]]) * margin
    return widened
