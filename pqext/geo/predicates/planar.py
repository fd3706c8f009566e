"""Exact predicates in the plane. Edges are straight lines, regardless of the CRS.

A query box that wraps has two parts: one from its xmin eastward, and one up to its xmax. A predicate is evaluated once
per distinct geometry if rows repeat a few geometries, because a few bytes of a file can encode one large geometry in
millions of rows, and an exact predicate can take milliseconds per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.buffers import numbers
from pqext.core.base.errors import GeometryError
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.predicates import test_box
from pqext.geo.summary import row_values
from pqext.geo.wkb import columns, geos_shapes

if TYPE_CHECKING:
    from pqext.geo.kernels.wkb import WkbColumn
    from pqext.geo.predicates.boxes import BoxTest, Operation, Region
    from pqext.geo.predicates.query import SpatialQuestion
    from pqext.geo.types import GeospatialType

NO, YES, MAYBE, NULL = 0, 1, 2, 3
"""Results of the kernel for a row."""

# By operation, shapely's predicate with the query first: shapely prepares its first argument.
_TURNED = {
    "intersects": "intersects",
    "within": "contains",
    "contains": "within",
    "touches": "touches",
    "crosses": "crosses",
    "overlaps": "overlaps",
    "covers": "covered_by",
    "covered_by": "covers",
    "equals": "equals",
}
_POINTS = 0x02020202  # in the kernel's mask of type codes, with bit 8 * dims + type
# By operation, shapely's function of a query and the coordinates of points.
POINT_FUNCTIONS = {"intersects": "intersects_xy", "covered_by": "intersects_xy", "within": "contains_xy"}

# Result for a row inside the query's box, or in its interior if the boundary matters.
_HELD = {
    "intersects": True,
    "covered_by": True,
    "within": True,
    "touches": False,
    "crosses": False,
    "overlaps": False,
}
_TO_THE_BOUNDARY = frozenset({"intersects", "covered_by"})

_MIN_SAMPLE = 32
"""Maximum number of rows that are evaluated individually, and the minimum size of a sample."""
_SAMPLE = 1024
_SHARE = 16
"""Reciprocal of the share of rows in the sample, which has at most ``_SAMPLE`` rows."""
_MOST_DISTINCT = 0.9
"""Share of distinct byte strings in the sample above which most rows are assumed to be distinct."""


def decide(
    predicate: SpatialQuestion, test: BoxTest, type: GeospatialType, chunk: pa.Array, column: WkbColumn, row: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Evaluate the predicate for each row of ``chunk``; return masks of the matches and of the nulls.

    ``column`` has the same rows as ``chunk``, and ``row`` is the number of the first row, for errors.
    """
    operation = predicate.operation if predicate.operation != "disjoint" else "intersects"
    reach, query = test.reach, predicate.private_geometry
    verdicts = np.zeros(len(chunk), dtype=np.uint8)
    if reach is None:  # everything is infinitely far from an empty query
        reach_box = (math.inf, math.inf, math.inf, math.inf)
    else:
        reach_box = (reach.xmin, reach.xmax, reach.ymin, reach.ymax)
    test_box(column, *reach_box, verdicts, operation not in _TO_THE_BOUNDARY)
    null = verdicts == NULL
    if isinstance(query, BoundingBox) and operation in _HELD:
        answers, left = (verdicts == YES) & _HELD[operation], verdicts == MAYBE
    else:
        left = ((verdicts == YES) | (verdicts == MAYBE)) if reach is not None else (operation == "equals") & ~null
        answers = np.zeros(len(chunk), dtype=np.bool_)
    numbers = np.flatnonzero(left)
    if len(numbers):
        candidates = chunk.take(pa.array(numbers))
        answers[numbers] = _evaluate_exactly(operation, query, predicate.distance, candidates, numbers + row)
    return np.logical_not(answers) if predicate.operation == "disjoint" else answers, null


def _evaluate_exactly(
    operation: Operation, query: Any, distance: float | None, chunk: pa.Array, rows: NDArray[np.int64]
) -> NDArray[np.bool_]:
    import shapely

    points = points_of(chunk)
    if points is not None and operation in POINT_FUNCTIONS and not isinstance(query, BoundingBox):
        shapely.prepare(query)
        return _call(getattr(shapely, POINT_FUNCTIONS[operation]), query, *points)
    if points is not None:
        return _evaluate_shapes(operation, query, distance, shapely.points(*points), rows)

    def decide(values: pa.Array, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        return _evaluate_shapes(operation, query, distance, geos_shapes(values, numbers), numbers)

    return evaluate_distinct(chunk, rows, decide)


def _evaluate_shapes(
    operation: Operation, query: Any, distance: float | None, geometries: NDArray[np.object_],
    numbers: NDArray[np.int64],
) -> NDArray[np.bool_]:  # fmt: skip
    """Evaluate the query for geometries with these row numbers. Raises GeometryError with the first row that fails."""
    import shapely

    if isinstance(query, BoundingBox):
        query = polygon(query, shapely.total_bounds(geometries))
    try:
        return evaluate(operation, geometries, query, distance)
    except GeometryError as error:
        if not np.isnan(shapely.get_coordinates(query)).any():
            raise _locate_error(error, operation, query, distance, geometries, numbers) from error
        raise


def _locate_error(
    error: GeometryError, operation: Operation, query: Any, distance: float | None,
    geometries: NDArray[np.object_], numbers: NDArray[np.int64],
) -> GeometryError:  # fmt: skip
    """Return ``error`` with the row that causes it, found by bisection, and the reason if a vertex is NaN."""
    import shapely

    while len(geometries) > 1:
        half = len(geometries) // 2
        try:
            evaluate(operation, geometries[:half], query, distance)
            geometries, numbers = geometries[half:], numbers[half:]
        except GeometryError:
            geometries, numbers = geometries[:half], numbers[:half]
    reason = error.reason
    if np.isnan(shapely.get_coordinates(geometries)).any():
        reason = f"a vertex has a NaN coordinate: {reason}"
    return GeometryError(reason, row=int(numbers[0]))


def points_of(chunk: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the X and Y coordinates of the non-null rows; None if any of them is not a point."""
    (column,) = columns(chunk)
    values, types, _ = row_values(column)
    return None if types & ~_POINTS else (values[0], values[2])


def evaluate(
    operation: Operation, rows: NDArray[np.object_], query: Any, distance: float | None = None
) -> NDArray[np.bool_]:
    """Return whether ``operation`` holds between each row and the query. ``disjoint`` is not supported.

    ``query`` is prepared in place, so it must be private to the calling thread and not the user's own object. Raises
    GeometryError if shapely fails, for example for polygons that cross themselves.
    """
    import shapely

    shapely.prepare(query)
    if operation == "dwithin":
        return _is_near(query, rows, distance)
    return _call(getattr(shapely, _TURNED[operation]), query, rows)


def _is_near(query: Any, rows: NDArray[np.object_], distance: float | None) -> NDArray[np.bool_]:
    """Return whether each row lies within ``distance`` of the query.

    GEOS misses lines and rings of zero length in rows and in prepared queries; they are evaluated again, unprepared.
    """
    import shapely

    answers = _call(shapely.dwithin, query, rows, distance)
    left = np.flatnonzero(~answers)
    if len(left) and shapely.is_valid(query):
        kinds = shapely.get_type_id(rows[left])
        left = left[(kinds != 0) & (kinds != 4) & ~((kinds == 3) & (shapely.area(rows[left]) > 0))]
        left = left[~shapely.is_valid(rows[left])]
    if len(left):
        unprepared = shapely.from_wkb(shapely.to_wkb(query))
        answers[left] = _call(shapely.dwithin, rows[left], unprepared, distance)
    return answers


def _call(function: Any, *arguments: Any) -> NDArray[np.bool_]:
    import shapely

    try:
        answers: NDArray[np.bool_] = function(*arguments)
        return answers
    except shapely.errors.ShapelyError as error:
        raise GeometryError(f"shapely cannot evaluate the predicate: {error}") from error


def widen(region: Region, distance: float) -> Region:
    """Return a region that contains all points within ``distance`` of ``region``, with a margin."""
    margin = distance * (1 + 1e-12)

    def move_outward(bound: float, shift: float) -> float:
        return math.nextafter(bound + shift, math.copysign(math.inf, shift)) if margin else bound

    xmin, xmax = move_outward(region.xmin, -margin), move_outward(region.xmax, margin)
    wraps = region.wraps
    if wraps and xmin <= xmax:
        xmin, xmax, wraps = -math.inf, math.inf, False
    return replace(
        region, xmin=xmin, xmax=xmax, ymin=move_outward(region.ymin, -margin), ymax=move_outward(
            region.ymax, margin
        ), wraps=wraps
    )


def polygon(box: BoundingBox, extent: NDArray[np.float64]) -> Any:
    """Return the box as a shapely geometry; a wrapping box has two parts that reach beyond the bounds ``extent``."""
    import shapely

    if not box.wraps:
        return rectangle(box.xmin, box.ymin, box.xmax, box.ymax)
    west, east = min(-180.0, extent[0]) - 1, max(180.0, extent[2]) + 1
    parts = [rectangle(box.xmin, box.ymin, east, box.ymax), rectangle(west, box.ymin, box.xmax, box.ymax)]
    return shapely.MultiPolygon(parts) if box.ymin < box.ymax else shapely.MultiLineString(parts)


def rectangle(xmin: float, ymin: float, xmax: float, ymax: float) -> Any:
    """Return the rectangle as a polygon, or as a line or a point if it has no area."""
    import shapely

    if xmin < xmax and ymin < ymax:
        return shapely.box(xmin, ymin, xmax, ymax)
    if xmin == xmax and ymin == ymax:
        return shapely.Point(xmin, ymin)
    return shapely.LineString([(xmin, ymin), (xmax, ymax)])


def evaluate_distinct(
    chunk: pa.Array, rows: NDArray[np.int64], decide: Callable[[pa.Array, NDArray[np.int64]], NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    """Evaluate ``decide`` on each distinct value of a binary array without nulls, and return a result for each row.

    ``rows`` contains the row number of each value. ``decide`` is called with values and the number of the first row of
    each value. If there are few duplicates, it is called with all values.
    """
    if not _may_have_duplicates(chunk):
        return decide(chunk, rows)
    encoded = chunk.dictionary_encode()
    codes = encoded.indices.to_numpy()
    first = np.empty(len(encoded.dictionary), dtype=np.int64)
    first[codes[::-1]] = rows[::-1]
    answers: NDArray[np.bool_] = decide(encoded.dictionary, first)[codes]
    return answers


def _may_have_duplicates(chunk: pa.Array) -> bool:
    """Return whether a random sample suggests that there are far fewer distinct values than rows."""
    count = len(chunk)
    if count < _MIN_SAMPLE:
        return False
    drawn = chunk.take(pa.array(np.unique(np.random.default_rng().integers(0, count, _sample_size(count)))))
    return _count_bytes(drawn.unique()) <= _MOST_DISTINCT * _count_bytes(drawn)


def _sample_size(count: int) -> int:
    return min(_SAMPLE, max(_MIN_SAMPLE, count // _SHARE))


def _count_bytes(chunk: pa.Array) -> int:
    """Return the total size in bytes of the values of a binary array."""
    width = np.int64 if pa.types.is_large_binary(chunk.type) else np.int32
    ends = numbers(chunk.buffers()[1], width, chunk.offset, len(chunk) + 1)
    return int(ends[-1] - ends[0])
