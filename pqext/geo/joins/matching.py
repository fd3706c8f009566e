"""Find pairs of rows from two geometry columns that satisfy a predicate, or are nearest to each other.

A grid (for points) or a tree of boxes finds candidates. They are evaluated exactly with prepared geometries of the
right side.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.errors import GeometryError, LimitError
from pqext.core.base.suggestions import did_you_mean, join_names
from pqext.core.base.threads import ThreadLocalValue
from pqext.geo.crs import LATITUDES, LONGITUDES
from pqext.geo.joins.geometry_column import GeometryColumn, call_shapely
from pqext.geo.predicates.planar import POINT_FUNCTIONS, points_of
from pqext.geo.predicates.query import as_distance
from pqext.geo.summary import bounds

if TYPE_CHECKING:
    from pqext.geo.predicates.boxes import Operation

Rows = NDArray[np.int64]
Sides = NDArray[np.float64]
"""Boxes of shape (rows, 4): xmin, ymin, xmax, ymax; NaN for rows without a box."""

INVERSE = {
    "intersects": "intersects", "within": "contains", "contains": "within", "touches": "touches",
    "crosses": "crosses", "overlaps": "overlaps", "covers": "covered_by", "covered_by": "covers", "equals": "equals",
}  # fmt: skip
"""Shapely predicate to evaluate with the sides swapped, because the prepared right side must be the first argument."""
_MAX_CELLS = 1 << 20
_PAIRS = 1 << 20
"""Number of candidates evaluated in one call."""
_NEAR_THE_SEAM = 1e-6
_NEAR_POLE = 89.0  # degrees


@dataclass(frozen=True)
class Condition:
    """Join condition ``left operation right``.

    The ``distance`` of ``dwithin`` is in units of the CRS, or metres for GEOGRAPHY.
    """

    operation: Operation
    distance: float | None = None

    @classmethod
    def from_arguments(cls, predicate: Any, distance: Any) -> Condition:
        """Create a condition from the arguments of a join.

        Raises ValueError if the predicate is unknown or the distance is out of range, and TypeError if a distance is
        missing, or passed to a predicate other than ``dwithin``.
        """
        if predicate not in (*INVERSE, "dwithin"):
            names = [*INVERSE, "dwithin"]
            hint = did_you_mean(str(predicate), names) or f"; the predicates are {join_names(names)}"
            if predicate == "disjoint":
                hint = ": nearly all pairs are disjoint; how='anti' returns the rows that intersect no other row"
            raise ValueError(f"{predicate!r} is not a join predicate{hint}")
        return cls(predicate, as_distance(predicate, distance))


def sides_of(geometries: GeometryColumn, condition: Condition | None = None) -> Sides:
    """Return the bounds xmin, ymin, xmax, ymax of each row, extended by the distance of the condition.

    On the globe, boxes near the antimeridian or a pole span all longitudes, so that geometries that intersect always
    have boxes that intersect.
    """
    boxes = bounds(geometries.wkb, geometries.type.edges, geometries.type.crs)
    names = ("xmin", "ymin", "xmax", "ymax")
    sides = np.column_stack([boxes.field(name).to_numpy(zero_copy_only=False) for name in names]).astype(np.float64)
    sides[geometries.missing | np.isnan(sides).any(axis=1)] = np.nan
    reach = condition.distance if condition is not None else None
    if geometries.type.planar:
        if reach:
            sides += np.array([-reach, -reach, reach, reach])
            sides = np.nextafter(sides, np.array([-np.inf, -np.inf, np.inf, np.inf]))
        return sides
    if reach:
        sides = _widen_sides(sides, reach, geometries)
    around = (
        (sides[:, 0] > sides[:, 2]) | (sides[:, 0] <= -180 + _NEAR_THE_SEAM) | (sides[:, 2] >= 180 - _NEAR_THE_SEAM)
    )
    around |= (sides[:, 1] <= -90 + _NEAR_THE_SEAM) | (sides[:, 3] >= 90 - _NEAR_THE_SEAM)
    sides[around, 0], sides[around, 2] = -180.0, 180.0
    return sides


def _widen_sides(sides: Sides, metres: float, geometries: GeometryColumn) -> Sides:
    from pqext.geo.predicates.boxes import Region
    from pqext.geo.predicates.distance import widen
    from pqext.geo.predicates.globe import geod_of

    geod = geod_of(geometries.type)
    result = sides.copy()
    for row in np.flatnonzero(~np.isnan(sides[:, 0])).tolist():
        xmin, ymin, xmax, ymax = sides[row].tolist()
        region = Region(xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax, wraps=xmin > xmax, globe=True)
        region = widen(region, metres, geod)
        result[row] = region.xmin, region.ymin, region.xmax, region.ymax
    return result


class Matcher:
    """Index over the rows of the right side, to find matches of left rows."""

    def __init__(self, right: GeometryColumn, condition: Condition) -> None:
        self.right, self.condition = right, condition
        self.sides = sides_of(right, condition)
        self._grid: _Grid | None = None
        self._tree: Any = None
        self._shapes = ThreadLocalValue(self._prepared_shapes)
        self._unrolled = ThreadLocalValue(self._unrolled_shapes)

    def pairs(self, left: GeometryColumn) -> tuple[Rows, Rows]:
        """Return the left and the right row numbers of matching pairs, ordered by left row."""
        points = self._left_points(left)
        if points is not None:
            retained, x, y = points
            left_rows, right_rows = self._match_points(x, y)
            return retained[left_rows], right_rows
        left_rows, right_rows = self._match_boxes(left)
        order = np.lexsort((right_rows, left_rows))
        return left_rows[order], right_rows[order]

    def shapes(self) -> Any:
        """Return the prepared shapes of the right side, private to the calling thread."""
        return self._shapes.get()

    def _prepared_shapes(self) -> Any:
        import shapely

        shapes = self.right.shapes()
        shapely.prepare(shapes)
        return shapes

    def _unrolled_shapes(self) -> tuple[Any, Sides]:
        """Return the prepared unrolled shapes of the right side and the longitudes of their centres.

        The centre is NaN if a shape cannot be compared with points unrolled around it: near a pole, or wider than half
        a turn.
        """
        import shapely

        from pqext.geo.predicates.globe import MOST_VERTICES, geod_of
        from pqext.geo.predicates.unrolling import unroll

        shapes = self.right.shapes()
        xmin, ymin, xmax, ymax = shapely.bounds(shapes).T
        is_simple = (xmin >= -180) & (xmax <= 180) & (xmax - xmin < 179) & (ymin > -_NEAR_POLE) & (ymax < _NEAR_POLE)
        corners, rows = shapely.get_coordinates(shapes, return_index=True)
        is_simple[rows[np.isnan(corners).any(axis=1)]] = False
        unrolled, centres = np.full(len(shapes), None, dtype=object), np.full(len(shapes), np.nan)
        geod = None if self.right.type.edges == "spherical" else geod_of(self.right.type)
        with suppress(LimitError, GeometryError):  # of all shapes together
            unrolled[is_simple] = call_shapely(unroll, shapes[is_simple], geod, max_vertices=MOST_VERTICES)
            west, _, east, _ = shapely.bounds(unrolled).T
            centres = (west + east) / 2
        shapely.prepare(unrolled)
        return unrolled, centres

    def _left_points(self, left: GeometryColumn) -> tuple[Rows, Any, Any] | None:
        """Return the rows of the left side that are not null, with their X and Y.

        Returns None if they are not all points or the grid cannot be used.
        """
        if not self.right.type.planar or self.condition.operation not in POINT_FUNCTIONS:
            return None
        retained = np.flatnonzero(~left.missing)
        result = points_of(left.wkb.take(pa.array(retained)) if len(retained) < len(left.wkb) else left.wkb)
        if result is None:
            return None
        if self._grid is None:
            self._grid = _Grid(self.sides)
        return (retained, *result) if self._grid.usable else None

    def _match_points(self, x: Any, y: Any) -> tuple[Rows, Rows]:
        import shapely

        assert self._grid is not None
        holds = getattr(shapely, POINT_FUNCTIONS[self.condition.operation])
        left_rows, right_rows = self._grid.candidates(x, y)
        held = np.zeros(len(left_rows), np.bool_)
        for part in np.split(_sort_order(right_rows), range(_PAIRS, len(left_rows), _PAIRS)):
            held[part] = call_shapely(holds, self.shapes()[right_rows[part]], x[left_rows[part]], y[left_rows[part]])
        return left_rows[held], right_rows[held]

    def _match_boxes(self, left: GeometryColumn) -> tuple[Rows, Rows]:
        import shapely

        if self._tree is None:
            self._tree = shapely.STRtree(box_shapes(self.sides))
        left_rows, right_rows = self._tree.query(box_shapes(sides_of(left)))
        if not left.type.planar:
            return self._match_on_globe(left, left_rows, right_rows)
        shapes = left.shapes()
        held = np.zeros(len(left_rows), np.bool_)
        for start in range(0, len(left_rows), _PAIRS):
            part = slice(start, start + _PAIRS)
            theirs, mine = self.shapes()[right_rows[part]], shapes[left_rows[part]]
            if self.condition.operation == "dwithin":
                held[part] = call_shapely(shapely.dwithin, theirs, mine, self.condition.distance)
            else:
                held[part] = call_shapely(getattr(shapely, INVERSE[self.condition.operation]), theirs, mine)
        return left_rows[held], right_rows[held]

    def _match_on_globe(self, left: GeometryColumn, left_rows: Rows, right_rows: Rows) -> tuple[Rows, Rows]:
        """Evaluate candidate pairs on the globe: all points in one call, other geometries in a call per right row."""
        from pqext.geo.predicates.predicate import SpatialPredicate

        order = np.argsort(right_rows, kind="stable")
        left_rows, right_rows = left_rows[order], right_rows[order]
        held, is_open = self._match_globe_points(left, left_rows, right_rows)
        numbers = np.flatnonzero(is_open)
        ends = np.flatnonzero(np.diff(right_rows[numbers], prepend=-1, append=-1))
        for start, stop in pairwise(ends.tolist()):
            part = numbers[start:stop]
            shape = self.shapes()[right_rows[part[0]]]
            question = SpatialPredicate(self.condition.operation, shape, self.condition.distance)
            rows = left.wkb.take(pa.array(left_rows[part]))
            answers = question.relate(rows, left.type)
            held[part] = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
        return left_rows[held], right_rows[held]

    def _match_globe_points(
        self, left: GeometryColumn, left_rows: Rows, right_rows: Rows
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Match candidate pairs of points by their coordinates.

        Returns a mask of the matching pairs, and a mask of the pairs that must be evaluated as shapes.
        """
        import shapely

        held, is_open = np.zeros(len(left_rows), np.bool_), np.ones(len(left_rows), np.bool_)
        function = POINT_FUNCTIONS.get(self.condition.operation)
        points = None if function is None else points_of(left.wkb)
        if function is None or points is None:
            return held, is_open
        x, y = np.clip(points[0], *LONGITUDES), np.clip(points[1], *LATITUDES)
        shapes, centres = self._unrolled.get()
        is_open = np.isnan(centres[right_rows])
        for part in np.split(np.flatnonzero(~is_open), range(_PAIRS, len(left_rows), _PAIRS)):
            mine, theirs = left_rows[part], right_rows[part]
            near = x[mine] - 360.0 * np.round((x[mine] - centres[theirs]) / 360)
            held[part] = call_shapely(getattr(shapely, function), shapes[theirs], near, y[mine])
        return held, is_open


def _sort_order(numbers: Rows) -> Rows:
    """Return the permutation that sorts row numbers."""
    most = int(numbers.max(initial=0))
    narrow = numbers.astype(np.uint16) if most < 1 << 16 else numbers  # numpy sorts these by radix
    return np.argsort(narrow, kind="stable")


def box_shapes(sides: Sides) -> Any:
    """Return boxes as shapely geometries. Rows without a box are None."""
    import shapely

    return np.where(np.isnan(sides[:, 0]), None, shapely.box(*sides.T))


class _Grid:
    """Index of boxes by the grid cells that they touch, to find the boxes that contain points."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        rows = np.flatnonzero(np.isfinite(sides).all(axis=1))
        self.count = int(np.clip(2 * np.sqrt(len(rows)), 1, 1024))
        self.usable = len(rows) > 0
        if not self.usable:
            return
        boxes = sides[rows]
        self.low = boxes[:, :2].min(axis=0)
        with np.errstate(all="ignore"):
            span = boxes[:, 2:].max(axis=0) - self.low
            self.scale = np.where(span > 0, self.count / span, 0.0)
        first, last = self._cells(boxes[:, :2]), self._cells(boxes[:, 2:])
        wide, high = (last - first + 1).T
        each = wide * high
        self.usable = bool(each.sum() <= max(_MAX_CELLS, 16 * len(rows)))
        if not self.usable:
            return
        whose = np.repeat(np.arange(len(rows)), each)
        step = np.arange(len(whose)) - np.repeat(np.cumsum(each) - each, each)
        cells = (first[whose, 1] + step // wide[whose]) * self.count + first[whose, 0] + step % wide[whose]
        order = np.argsort(cells, kind="stable")
        self.items = rows[whose[order]]
        self.starts = np.searchsorted(cells[order], np.arange(self.count**2 + 1))

    def _cells(self, corners: NDArray[np.float64]) -> NDArray[np.int64]:
        with np.errstate(all="ignore"):
            result = np.clip(np.floor((corners - self.low) * self.scale), 0, self.count - 1)
        return np.asarray(np.nan_to_num(result), np.int64)  # NaN if a span is infinite or tiny

    def candidates(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Rows, Rows]:
        """Return pairs of a point and a box that contains it, as two arrays of indexes in ascending order."""
        placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        column, row = self._cells(np.column_stack([x[placed], y[placed]])).T
        cell = row * self.count + column
        begin, counts = self.starts[cell], self.starts[cell + 1] - self.starts[cell]
        which = np.repeat(np.arange(len(cell)), counts)
        step = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        left_rows, right_rows = placed[which], self.items[begin[which] + step]
        px, py = x[left_rows], y[left_rows]
        xmin, ymin, xmax, ymax = self.sides[right_rows].T
        held = (px >= xmin) & (px <= xmax) & (py >= ymin) & (py <= ymax)
        return left_rows[held], right_rows[held]


class Nearest:
    """Index over planar geometries of the right side, to find the geometries nearest to left rows."""

    def __init__(self, right: GeometryColumn, k: int, max_distance: float | None) -> None:
        import shapely

        self.right, self.max_distance = right, max_distance
        self._tree = ThreadLocalValue(self._spatial_index)
        shapes = self.shapes
        self.count = int((~(shapely.is_missing(shapes) | shapely.is_empty(shapes))).sum())
        self.k = min(k, self.count)

    def _spatial_index(self) -> Any:
        import shapely

        return shapely.STRtree(self.right.shapes())

    @property
    def tree(self) -> Any:
        """Tree of the right side's shapes, private to the calling thread."""
        return self._tree.get()

    @property
    def shapes(self) -> Any:
        return self.tree.geometries

    def pairs(self, left: GeometryColumn) -> tuple[Rows, Rows, NDArray[np.float64]]:
        """Return left rows, right rows and distances: the ``k`` nearest right rows of each left row, nearest first.

        Of equally distant rows of the right side, earlier rows come first.
        """
        import shapely

        shapes = left.shapes()
        if not self.count or not len(shapes):
            return np.array([], np.int64), np.array([], np.int64), np.array([])
        (left_rows, right_rows), distances = call_shapely(
            self.tree.query_nearest, shapes, max_distance=self.max_distance, return_distance=True, all_matches=True
        )
        if self.k > 1 and len(left_rows):  # empty if all coordinates are infinite
            left_rows, right_rows = self._find_candidates(shapes, left_rows, distances)
            distances = call_shapely(shapely.distance, shapes[left_rows], self.shapes[right_rows])
        order = np.lexsort((right_rows, distances, left_rows))
        left_rows, right_rows, distances = left_rows[order], right_rows[order], distances[order]
        starts = np.searchsorted(left_rows, left_rows)
        retained = np.arange(len(left_rows)) - starts < self.k
        return left_rows[retained], right_rows[retained], distances[retained]

    def _find_candidates(self, shapes: Any, left_rows: Rows, distances: NDArray[np.float64]) -> tuple[Rows, Rows]:
        """Return row pairs that include the ``k`` nearest right rows of each left row, within ``max_distance``.

        ``distances`` are the distances to the nearest rows. Circles grow until they contain enough rows.
        """
        rows, firsts = np.unique(left_rows, return_index=True)
        radius = distances[firsts] * np.sqrt(self.k) + self._spacing() * np.sqrt(self.k)
        limit = np.inf if self.max_distance is None else self.max_distance
        result: list[tuple[Rows, Rows]] = []
        while len(rows):
            radius = np.minimum(radius, limit)
            near, right_rows = call_shapely(self.tree.query, shapes[rows], predicate="dwithin", distance=radius)
            enough = (np.bincount(near, minlength=len(rows)) >= self.k) | (radius >= limit)
            is_done = enough[near]
            result.append((rows[near[is_done]], right_rows[is_done]))
            rows, radius = rows[~enough], radius[~enough] * 2
        return np.concatenate([pair[0] for pair in result]), np.concatenate([pair[1] for pair in result])

    def _spacing(self) -> float:
        """Estimate the distance between neighbouring shapes. The estimate is never 0."""
        import shapely

        xmin, ymin, xmax, ymax = shapely.total_bounds(self.shapes).tolist()
        across = max(xmax - xmin, ymax - ymin)
        return across / float(np.sqrt(self.count)) or 1.0


def add_unmatched_rows(count: int, left_rows: Rows, right_rows: Rows) -> tuple[Rows, pa.Array]:
    """Add the unmatched left rows to the pairs of rows, and sort the pairs by left row.

    ``count`` is the number of left rows. The right row of an unmatched left row is null.
    """
    unmatched = np.setdiff1d(np.arange(count), left_rows)
    all_left = np.concatenate([left_rows, unmatched])
    order = np.argsort(all_left, kind="stable")
    all_right = np.concatenate([right_rows, np.zeros(len(unmatched), np.int64)])
    is_unmatched = np.concatenate([np.zeros(len(left_rows), np.bool_), np.ones(len(unmatched), np.bool_)])
    return all_left[order], pa.array(all_right[order], pa.int64(), mask=is_unmatched[order])
