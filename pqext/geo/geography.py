"""Bounding boxes of GEOGRAPHY, around geodesic edges, with longitudes on a circle.

An edge spans the longitudes between its ends along the shorter arc. Its extreme latitude has a closed form on the
sphere, which also bounds the latitude on an ellipsoid for all algorithms. -180 and 180 are the same meridian, and a
pole has every longitude; a box that touches either contains both representations. The interior of a ring is its smaller
side. The rules and their proofs are in ``specs/geospatial.md``. Spec: "Bounding Box", "Edge Interpolation Algorithm"
(Geospatial.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.edge_boxes import edge_boxes
from pqext.geo.kernels.wraparound import Longitudes

if TYPE_CHECKING:
    from pqext.geo.kernels.wkb import WkbColumn
    from pqext.geo.types import GeospatialType

Bounds = NDArray[np.float64]
"""Boxes as an array with rows xmin, xmax, ymin, ymax. Missing values are NaN; xmin > xmax if a box wraps."""

FLATTENING = 1 / 298.257223563
"""Flattening of WGS84, the ellipsoid of the default CRS."""

TURNS = {"spherical": 0.0, "karney": 0.0, "vincenty": 1e-9, "thomas": 1e-7, "andoyer": 1.5e-5}
"""Maximum error in radians of the azimuth of an edge of at most 90 degrees on an Earth-like ellipsoid, by algorithm;
see ``geo.edges.algorithm_errors`` in ``specs/geospatial.md``."""


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
    flattening = FLATTENING if crs is None else _flattening(crs)
    # Errors of the series grow with the square of the flattening, and with its cube outside their intended range.
    turn = TURNS[edges] * max(1.0, abs(flattening) / FLATTENING) ** 3
    if turn > 0.01:
        raise GeometryError(f"{edges} edges do not support the flattening of CRS {crs}", rule="geography.crs")
    return Globe(flattening * (2 - flattening), 1 - flattening, turn)


def _flattening(crs: str) -> float:
    ellipsoid = crs_.parse(crs).ellipsoid
    if ellipsoid is None or not ellipsoid.semi_major_metre > 0 or not ellipsoid.semi_minor_metre > 0:
        raise GeometryError(f"the CRS {crs} has no ellipsoid", rule="geography.crs")
    return float(1 - ellipsoid.semi_minor_metre / ellipsoid.semi_major_metre)


def edge_values(
    column: WkbColumn, globe: Globe, lines: int = 4, outside: NDArray[np.uint8] | None = None
) -> tuple[Bounds, int, int]:
    """Return the bounds of each row around geodesic edges, like :func:`pqext.geo.summary.row_values`.

    Raises GeometryError with the row if WKB is invalid or coordinates are out of range. If ``outside`` is passed, rows
    out of range are flagged in it instead, and have no X and Y. ``lines`` is 4 or 8, the number of rows of the bounds.
    """
    values = np.empty((lines, len(column)))
    types, absent = edge_boxes(column, values, globe.e2, globe.ratio, globe.turn, outside)
    return values, types, absent


def enclosing_box(parts: list[Bounds]) -> BoundingBox | None:
    """Return the box around boxes of longitudes and latitudes; None if no box has X, or no box has Y.

    The box excludes the widest gap in longitude, if that makes it clearly narrower.
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
