"""Boxes of GEOGRAPHY: around edges as they run over a sphere or an ellipsoid, on the circle of longitudes.

Between the longitudes of its ends, the shorter way round, an edge rises to a latitude that is known in closed form on
the sphere and bounded by that form on an ellipsoid, whatever algorithm draws it. -180 and 180 are one meridian and a
pole has every longitude: a box that touches one of them holds both forms of it. The smaller side of a ring is its
inside. The rules and their proofs are in ``specs/geospatial.md``. Spec: "Bounding Box", "Edge Interpolation
Algorithm" (000 §5.1).
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
"""Boxes as columns of lines xmin, xmax, ymin, ymax; NaN where there is no value, xmin > xmax where one wraps."""

FLATTENING = 1 / 298.257223563
"""Of WGS84, the ellipsoid of a CRS that is not named."""

TURNS = {"spherical": 0.0, "karney": 0.0, "vincenty": 1e-9, "thomas": 1e-7, "andoyer": 1.5e-5}
"""How far, in radians, an algorithm may miss the direction of an edge of at most 90 degrees on an ellipsoid as flat as
the Earth; see ``geo.edges.algorithm_errors`` in ``specs/geospatial.md``."""


@dataclass(frozen=True, slots=True)
class Globe:
    """What edges run over: squared eccentricity, ``ratio`` of polar to equatorial axis; 0 and 1 for a sphere.

    ``turn`` bounds, in radians, how far the algorithm misses the direction of an edge.
    """

    e2: float = 0.0
    ratio: float = 1.0
    turn: float = 0.0


def globe_of(type: GeospatialType) -> Globe:
    """The globe of a GEOGRAPHY type. Raises GeometryError when its edges need an ellipsoid and its CRS has none."""
    return _globe(type.edges, type.crs)


@lru_cache(maxsize=256)
def _globe(edges: str, crs: str | None) -> Globe:
    if edges == "spherical":
        return Globe()
    flattening = FLATTENING if crs is None else _flattening(crs)
    # Errors of the series grow with the square of the flattening, and one order faster beyond what they were made for.
    turn = TURNS[edges] * max(1.0, abs(flattening) / FLATTENING) ** 3
    if turn > 0.01:
        raise GeometryError(f"{edges} draws no edges on an ellipsoid as flat as that of {crs}", rule="geography.crs")
    return Globe(flattening * (2 - flattening), 1 - flattening, turn)


def _flattening(crs: str) -> float:
    ellipsoid = crs_.parse(crs).ellipsoid
    if ellipsoid is None or not ellipsoid.semi_major_metre > 0 or not ellipsoid.semi_minor_metre > 0:
        raise GeometryError(f"the CRS {crs} has no ellipsoid", rule="geography.crs")
    return float(1 - ellipsoid.semi_minor_metre / ellipsoid.semi_major_metre)


def edge_values(
    column: WkbColumn, globe: Globe, lines: int = 4, outside: NDArray[np.uint8] | None = None
) -> tuple[Bounds, int, int]:
    """Bounds by row as :func:`pqext.geo.summary.row_values` gives them, around whole edges; 4 or 8 lines.

    Raises GeometryError with the row on bad WKB and on coordinates that are no longitude and latitude; such rows are
    flagged in ``outside`` instead where that is given, and have no X and Y.
    """
    values = np.empty((lines, len(column)))
    types, absent = edge_boxes(column, values, globe.e2, globe.ratio, globe.turn, outside)
    return values, types, absent


def around(parts: list[Bounds]) -> BoundingBox | None:
    """The box around boxes in longitudes and latitudes; None without X or Y.

    It leaves out the widest stretch of the circle of longitudes that no box covers, if it gets clearly narrower.
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
    return box.wrapped(longitudes.widest_gap())
