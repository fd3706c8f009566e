"""Exact predicates on GEOGRAPHY. The column's edge algorithm applies to the edges of the rows and of the query.

Longitudes are angles: -180 and 180 are the same meridian, and a pole is one point for intersections. A query box is the
region between two meridians and two parallels, eastward from its xmin. Rows that their boxes do not decide are
evaluated on the unrolled globe (:mod:`pqext.geo.predicates.unrolling`), where results may be wrong within a metre of a
border.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError
from pqext.geo import crs as crs_
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import clamp_shapes
from pqext.geo.predicates import distance, planar
from pqext.geo.predicates.boxes import Answer, Boxes, BoxTest, Region
from pqext.geo.predicates.geodesic_chains import Border, TooManyVerticesError
from pqext.geo.predicates.planar import evaluate_distinct
from pqext.geo.predicates.unrolling import BEYOND_POLE, WINDOW, shift_east, unite, unroll
from pqext.geo.summary import bounds, row_values
from pqext.geo.wkb import from_shapely, geos_shapes

if TYPE_CHECKING:
    from pyproj import Geod

    from pqext.geo.kernels.wkb import WkbColumn
    from pqext.geo.predicates.boxes import Operation
    from pqext.geo.predicates.query import SpatialQuestion
    from pqext.geo.types import GeospatialType

_Shapes = NDArray[np.object_]
_Flags = NDArray[np.bool_]

MOST_VERTICES = 1 << 22
"""Maximum number of vertices inserted into a row, or into several rows together; about a gigabyte and some seconds."""

_FARTHEST = 1e6
"""Largest longitude of a query, in degrees: beyond it, doubles do not resolve a tenth of a millimetre."""

_WORLD = BoundingBox(-180.0, 180.0, -90.0, 90.0)


def box_test(predicate: SpatialQuestion, type: GeospatialType) -> BoxTest:
    """Return a test that evaluates the predicate on boxes around geometries on the globe."""
    query, operation = predicate.geometry, predicate.operation
    if predicate.box is None:
        return BoxTest(operation, None, None, None, 0.0, True)
    is_box = isinstance(query, BoundingBox)
    known = query if is_box else _query_box(query, type)
    outer = Region.from_box(known or _WORLD, globe=True)
    reach = outer
    if operation == "dwithin":
        try:
            reach = distance.widen(outer, predicate.distance or 0.0, geod_of(type))
        except GeometryError:  # distances are unknown without an ellipsoid
            reach = Region.from_box(_WORLD, globe=True)
    inner = outer if known is not None and (is_box or query.geom_type == "Point") else None
    return BoxTest(operation, outer, inner, reach, predicate.distance or 0.0, True)


def _query_box(query: Any, type: GeospatialType) -> BoundingBox | None:
    """Return the box of the query, with edges of ``type``; None if it cannot be computed."""
    try:
        result = bounds(from_shapely([query]), type.edges, type.crs)[0].as_py()
    except GeometryError:
        return None
    return BoundingBox(result["xmin"], result["xmax"], result["ymin"], result["ymax"])


def decide(
    predicate: SpatialQuestion, test: BoxTest, type: GeospatialType, chunk: pa.Array, column: WkbColumn, row: int
) -> tuple[_Flags, _Flags]:
    """Evaluate the predicate for each row of ``chunk``; return masks of the matches and of the rows without a result.

    Rows without a result are nulls and geometries whose coordinates are out of range. ``column`` has the same rows as
    ``chunk``, and ``row`` is the number of the first row, for errors.
    """
    if predicate.operation == "disjoint":
        twin = replace(predicate, operation="intersects")
        answers, null = decide(twin, box_test(twin, type), type, chunk, column, row)
        return ~answers, null
    null = chunk.is_null().to_numpy(zero_copy_only=False)
    outside = np.zeros(len(column), dtype=np.uint8)
    sides = row_values(column, type, outside)[0][:4]
    null = null | (outside != 0)  # coordinates are not on the globe, so the result is unknown
    empty = np.isnan(sides[0]) | np.isnan(sides[2])
    verdicts = test.answers(Boxes(*sides))
    verdicts[empty | null] = Answer.MAYBE if predicate.box is None and predicate.operation == "equals" else Answer.NO
    verdicts[null] = Answer.NO
    answers = verdicts == Answer.YES
    numbers = np.flatnonzero(verdicts == Answer.MAYBE)
    if len(numbers):

        def decide_exactly(values: pa.Array, rows: NDArray[np.int64]) -> _Flags:
            return evaluate_exactly(predicate, type, clamp_shapes(geos_shapes(values, rows)))

        candidates = chunk.take(pa.array(numbers))
        of_points = _evaluate_points(predicate, type, candidates)
        if of_points is None:
            of_points = evaluate_distinct(candidates, numbers + row, decide_exactly)
        answers[numbers] = of_points
    return answers, null


def evaluate_exactly(predicate: SpatialQuestion, type: GeospatialType, rows: _Shapes) -> _Flags:
    """Evaluate the predicate for each shape.

    Raises LimitError if the edges of a shape require more than :data:`MOST_VERTICES` vertices.
    """
    import shapely

    if predicate.box is None:
        return planar.evaluate("equals", rows, predicate.private_geometry)
    answers = np.zeros(len(rows), dtype=np.bool_)
    corners, whose = shapely.get_coordinates(rows, return_index=True)
    left = np.setdiff1d(np.arange(len(rows)), whose[np.isnan(corners).any(axis=1)])  # NaN edges intersect nothing
    geod = None if type.edges == "spherical" else geod_of(type)
    try:
        requested = predicate.private_geometry
        query = _unrolled_query(predicate, type)
        if query.is_empty or not len(left):
            return answers
        if not isinstance(requested, BoundingBox) and np.isnan(shapely.get_coordinates(requested)).any():
            return answers
        if not (np.abs(shapely.get_coordinates(query)) <= _FARTHEST).all():
            raise GeometryError("the query's coordinates are not longitudes and latitudes", rule="geography.range")
        try:
            border = predicate.unrolled((type, "border"), lambda _: Border(query))
            placed = _unroll_rows(predicate.operation, rows[left], query, geod, border)
        except TooManyVerticesError:
            if len(rows) == 1:
                raise
            middle = len(rows) // 2
            return np.concatenate([evaluate_exactly(predicate, type, half) for half in (rows[:middle], rows[middle:])])
        there = ~shapely.is_empty(placed)  # nothing remains of a polygon whose holes are larger than its shell
        if there.any():
            answers[left[there]] = _evaluate_near_query(predicate, type, placed[there], query)
        return answers
    except shapely.errors.ShapelyError as error:
        raise GeometryError(f"shapely cannot evaluate the predicate: {error}") from error


def _evaluate_points(predicate: SpatialQuestion, type: GeospatialType, chunk: pa.Array) -> _Flags | None:
    """Evaluate the predicate for points by their coordinates.

    Returns None if a row is not a point, and for operations and queries that need shapes.
    """
    import shapely

    function = planar.POINT_FUNCTIONS.get(predicate.operation)
    points = None if function is None or isinstance(predicate.geometry, BoundingBox) else planar.points_of(chunk)
    if function is None or points is None or np.isnan(shapely.get_coordinates(predicate.private_geometry)).any():
        return None
    query = _unrolled_query(predicate, type)
    west, south, east, north = shapely.bounds(query).tolist()
    if not (east - west < 359 and max(abs(west), abs(east)) <= _FARTHEST and south > -90 and north < 90):
        return None  # the query may repeat, or contain a pole, which has every longitude
    x, y = (np.clip(values, *limits) for values, limits in zip(points, (crs_.LONGITUDES, crs_.LATITUDES), strict=True))
    x = x - 360.0 * np.round((x - (west + east) / 2) / 360)
    shapely.prepare(query)
    answers: _Flags = getattr(shapely, function)(query, x, y)
    return answers


def _unrolled_query(predicate: SpatialQuestion, type: GeospatialType) -> Any:
    """Return the unrolled query, which the calling thread may prepare."""
    geod = None if type.edges == "spherical" else geod_of(type)
    return predicate.unrolled(type, lambda query: unroll_query(query, geod))


def _unroll_rows(
    operation: Operation, rows: _Shapes, query: Any, geod: Geod | None, border: Border | None = None
) -> _Shapes:
    """Unroll rows around the centre of the query. Edges are followed precisely only near the border of the query."""
    import shapely

    west, _, east, _ = shapely.bounds(query).tolist()
    middle = (west + east) / 2
    if operation == "dwithin":
        return unroll(rows, geod, middle, max_vertices=MOST_VERTICES)
    placed = unroll(rows, geod, middle, max_vertices=MOST_VERTICES, border=border or Border(query))
    if operation != "intersects":  # the only operation that GEOS evaluates on rings that cross themselves
        invalid = np.flatnonzero(~shapely.is_valid(placed))
        placed[invalid] = unroll(rows[invalid], geod, middle, max_vertices=MOST_VERTICES)
    return placed


def _evaluate_near_query(predicate: SpatialQuestion, type: GeospatialType, rows: _Shapes, query: Any) -> _Flags:
    """Evaluate the predicate for shapes that are unrolled around the centre of the query."""
    if predicate.operation != "dwithin":
        return _evaluate_unrolled(predicate.operation, rows, query)
    answers = intersects(rows, query)
    left = np.flatnonzero(~answers)
    answers[left] = distance.is_near(rows[left], query, predicate.distance or 0.0, geod_of(type))
    return answers


def geod_of(type: GeospatialType) -> Geod:
    """Return the ellipsoid of the column's CRS. Raises GeometryError if the ellipsoid is unknown."""
    from pyproj import Geod

    result = Geod(ellps="WGS84") if type.crs is None else crs_.parse(type.crs).get_geod()
    if result is None:
        message = f"the CRS {type.crs} has no ellipsoid; use a geographic CRS such as OGC:CRS84"
        raise GeometryError(message, rule="geography.crs")
    return result


def unroll_query(query: Any, geod: Geod | None) -> Any:
    """Unroll the query around its own centre."""
    import shapely

    if not isinstance(query, BoundingBox):
        item = np.array([query], dtype=object)
        (result,) = unroll(item, geod)
        west, _, east, _ = shapely.bounds(result).tolist()
        if west < -180 or east > 180:
            (result,) = unroll(item, geod, (west + east) / 2)
        return result
    xmin, xmax = query.xmin, query.xmax + (360.0 if query.wraps else 0.0)
    south, north = query.ymin, query.ymax
    if xmax - xmin >= 360:
        xmin = xmin if abs(xmin) <= _FARTHEST else -180.0
        xmax = xmin + 360
        south, north = (-BEYOND_POLE if south <= -90 else south), (BEYOND_POLE if north >= 90 else north)
    return planar.rectangle(xmin, south, xmax, north)


def _evaluate_unrolled(operation: Operation, rows: _Shapes, query: Any) -> _Flags:
    """Evaluate ``operation`` between each row and the query, both unrolled."""
    import shapely

    if operation == "intersects":
        return intersects(rows, query)
    sides, around = shapely.bounds(rows), shapely.bounds(query)
    wide = sides[:, 2] - sides[:, 0] + around[2] - around[0] >= 359
    answers = np.zeros(len(rows), dtype=np.bool_)
    if not wide.all():
        answers[~wide] = planar.evaluate(operation, rows[~wide], query)
    if wide.any():
        answers[wide] = _evaluate_repeated(operation, rows[wide], query)
    return answers


def intersects(rows: _Shapes, query: Any) -> _Flags:
    """Return a mask of the unrolled rows that intersect the unrolled query, shifted by any number of full turns."""
    import shapely

    sides, around = shapely.bounds(rows), shapely.bounds(query)
    answers: _Flags = ((sides[:, 3] >= 90) & (around[3] >= 90)) | ((sides[:, 1] <= -90) & (around[1] <= -90))
    farthest = max(sides[:, 2].max() - around[0], around[2] - sides[:, 0].min())
    for number in range(int(farthest // 360) + 1):
        for turn in (360.0 * number, -360.0 * number)[: 2 if number else 1]:
            meets = (sides[:, 2] >= around[0] + turn) & (sides[:, 0] <= around[2] + turn)
            left = np.flatnonzero(~answers & meets)
            if len(left):
                answers[left] = planar.evaluate("intersects", rows[left], shift_east(query, turn))
    return answers


def _evaluate_repeated(operation: Operation, rows: _Shapes, query: Any) -> _Flags:
    """Evaluate ``operation`` on shapes that may intersect when shifted by 360 degrees.

    Copies of ``rows`` or ``query``, or of both, are shifted by multiples of 360 degrees.
    """
    import shapely

    sides = np.vstack([shapely.bounds(rows), shapely.bounds(query)])
    turns = int((sides[:, 2] - sides[:, 0]).max() // 360) + 1

    def repeat(shapes: _Shapes) -> _Shapes:
        extent = shapely.bounds(shapes)
        whole = extent[:, 2] - extent[:, 0] >= WINDOW[2] - WINDOW[0]
        copies = np.column_stack([shift_east(shapes[~whole], 360.0 * turn) for turn in range(-turns, turns + 1)])
        areas = shapely.get_dimensions(shapes[~whole]) == 2
        once = np.asarray(shapely.geometrycollections(copies))
        once[areas] = shapely.clip_by_rect(unite(copies[areas], axis=1), *WINDOW)
        result = shapes.copy()
        result[~whole] = once
        return result

    related = planar.evaluate

    (queries,) = repeat(np.array([query], dtype=object))
    match operation:
        case "within" | "covered_by":
            return related(operation, rows, queries)
        case "contains" | "covers":
            return related(operation, repeat(rows), query)
        case "equals":
            return related("covered_by", rows, queries) & related("covers", repeat(rows), query)
        case "touches":
            return related("touches", repeat(rows), queries)
        case "overlaps":
            return related("overlaps", rows, queries) & ~related("covers", repeat(rows), query)
    larger = shapely.get_dimensions(rows) > shapely.get_dimensions(query)
    crossing: _Flags = np.where(larger, related("crosses", repeat(rows), query), related("crosses", rows, queries))
    return crossing
