"""Query polygons that the globe reads otherwise than the plane: wide edges, or an outline around more than half of it.

An edge of GEOGRAPHY is the shortest way, so one of 180 degrees of longitude or more runs the other way around than on a
map, and the inside of a ring is the smaller side. A query box is the region between its meridians and parallels,
however wide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pqext.geo.box import BoundingBox
from pqext.geo.predicates.unrolled import area_below, explode

_POLE = 90 - 1e-12


def mismatch(query: Any) -> str:
    """Describe how a query polygon differs on the globe from what it is on a map, and what to pass instead.

    Returns:
        The description, empty for a query whose polygons are the same on both, and for boxes, lines and points.
    """
    import shapely

    if isinstance(query, BoundingBox):
        return ""
    parts, _ = explode(np.array([query], dtype=object))
    polygons = parts[shapely.get_type_id(parts) == 3]
    bounds = shapely.bounds(polygons)
    is_wide = bounds[:, 2] - bounds[:, 0] >= 180  # of an empty polygon NaN, which is not
    for polygon, box in zip(polygons[is_wide].tolist(), bounds[is_wide].tolist(), strict=True):
        x, y = shapely.get_coordinates(polygon.exterior).T
        at_pole = (np.abs(y[:-1]) >= _POLE) & (np.abs(y[1:]) >= _POLE)  # which has no length on the globe
        if (np.abs(np.diff(x))[~at_pole] >= 180).any():
            how = "edges of 180 degrees of longitude or more, which run the shorter way around the globe"
        elif abs(area_below(x, y)) > 2 * np.pi:
            how = "an outline around more than half of the globe, and the smaller side of it is its inside"
        else:
            continue
        sides = ", ".join(f"{side:.10g}" for side in box)
        return (
            f"a query polygon has {how}: pass the box ({sides}) for all between its meridians and parallels, or split "
            "a polygon that crosses the antimeridian there"
        )
    return ""
