"""Estimate the distance from a geometry to its nearest rows, using the bounding boxes of row groups.

The estimates only determine what is read first. The rows that were read prove that they are the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pqext.core.read.row_group import RowGroup
from pqext.dataset.expressions import Column
from pqext.dataset.expressions.spatial import query_of
from pqext.dataset.pruning.binding import find

if TYPE_CHECKING:
    from pqext.dataset.expressions.spatial import Geometry
    from pqext.geo.box import BoundingBox

_SLACK = 2.0
"""The first radius, as a multiple of the radius that contains enough rows at the mean density."""
_GROWTH = 4.0
"""The ratio of a radius to the previous radius."""
_TRIALS = 3
_DEGREE = 111_320.0
"""Metres in a degree of latitude."""


def distance_to_group(column: Column, geometry: Geometry, group: RowGroup) -> float | None:
    """Return the approximate distance from a row group's box to a geometry.

    Return None if the box is unknown or the geometry is empty or not finite. The distance is in units of the
    coordinates, or in metres for GEOGRAPHY. A box that crosses the antimeridian counts as covering all longitudes.
    """
    box = _box(column, group)
    query = _query_box(geometry)
    if box is None or query is None:
        return None
    x, y = _unit_lengths(column, group, query)
    across = 0.0 if box.xmin > box.xmax else max(0.0, box.xmin - query[2], query[0] - box.xmax)
    return math.hypot(x * across, y * max(0.0, box.ymin - query[3], query[1] - box.ymax))


def search_radii(column: Column, geometry: Geometry, groups: Sequence[RowGroup], rows: int) -> Iterator[float]:
    """Yield increasing radii around a geometry. With evenly distributed rows, the first radius contains ``rows`` rows.

    Yield nothing if the boxes of row groups are unknown, or if the row groups have at most ``rows`` rows in total.
    """
    query = _query_box(geometry)
    if query is None or sum(group.num_rows for group in groups) <= rows:
        return
    distances = [(distance_to_group(column, geometry, group), number) for number, group in enumerate(groups)]
    known = sorted((distance, number) for distance, number in distances if distance is not None)
    total, radius = 0, 0.0
    for distance, number in known:
        if total >= rows and distance > radius:
            break
        group, box = groups[number], _box(column, groups[number])
        if box is None or group.num_rows <= 0:
            continue
        x, y = _unit_lengths(column, group, query)
        width = x * (360.0 if box.xmin > box.xmax else box.xmax - box.xmin)
        height = y * (box.ymax - box.ymin)
        share = min(1.0, rows / group.num_rows)
        spread = math.sqrt(width * height * share) if width and height else max(width, height) * share
        radius, total = max(radius, distance + _SLACK * spread), total + group.num_rows
    for _ in range(_TRIALS if known else 0):
        if 0 < radius < math.inf:
            yield radius
        radius *= _GROWTH


def _box(column: Column, group: RowGroup) -> BoundingBox | None:
    """Return the box of a column in a row group; None if the statistics contain no usable box."""
    from pqext.geo.box import BoundingBox

    try:
        chunk = group.chunk(find(group.schema, column))
    except (TypeError, ValueError):  # reading the rows reports the error
        return None
    statistics = chunk.geospatial_statistics if chunk.node.is_leaf else None
    if statistics is None or statistics.bbox is None:
        return None
    box = BoundingBox.from_metadata(statistics.bbox)
    return box if box.usable else None


@lru_cache(maxsize=16)
def _query_box(geometry: Geometry) -> tuple[float, float, float, float] | None:
    """Return the bounds of a geometry; None if it is empty or not finite."""
    bounds = geometry if isinstance(geometry, tuple) else tuple(map(float, query_of(geometry).bounds))
    return bounds if len(bounds) == 4 and all(map(math.isfinite, bounds)) else None


def _unit_lengths(column: Column, group: RowGroup, query: tuple[float, float, float, float]) -> tuple[float, float]:
    """Return the length of one degree of longitude and latitude in metres for GEOGRAPHY; otherwise 1 and 1."""
    if find(group.schema, column).logical_name != "GEOGRAPHY":
        return 1.0, 1.0
    return _DEGREE * math.cos(math.radians(min(89.0, max(abs(query[1]), abs(query[3]))))), _DEGREE
