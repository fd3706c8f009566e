"""Which rows of two sets of geometries belong together: by a predicate, or by distance.

Candidates are found by boxes, through a grid for points and a tree of boxes for all else, then tried exactly with the
geometries of the right side prepared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pqext.core.base.threads import PerThread
from pqext.geo.predicates.planar import points_of
from pqext.spark.functions.geometry_arrays import Geometries, call_shapely

if TYPE_CHECKING:
    from pqext.geo.predicates.boxes import Operation

Rows = NDArray[np.int64]
Sides = NDArray[np.float64]
"""Boxes, one per line: xmin, ymin, xmax, ymax; NaN for missing boxes."""

TURNED = {
    "intersects": "intersects", "within": "contains", "contains": "within", "touches": "touches",
    "crosses": "crosses", "overlaps": "overlaps", "covers": "covered_by", "covered_by": "covers", "equals": "equals",
}  # fmt: skip
"""By predicate of left and right, shapely's with the right side, which is prepared, first."""
_OF_POINTS = {"intersects": "intersects_xy", "covered_by": "intersects_xy", "within": "contains_xy"}
_MOST_CELLS = 1 << 20
_PAIRS = 1 << 20
"""Candidates that are tried at a time."""
_NEAR_THE_SEAM = 1e-6


@dataclass(frozen=True)
class Condition:
    """``left operation right``, or within ``distance`` of each other: in the CRS's unit, in metres for GEOGRAPHY."""

    operation: Operation
    distance: float | None = None


def sides_of(geometries: Geometries, condition: Condition | None = None) -> Sides:
    """The boxes of the rows, with all that lies within the condition's distance.

    On the globe a box that comes near the antimeridian or a pole goes all around, so that boxes of what meets there
    meet as well.
    """
    from pqext import geo

    boxes = geo.bounds(geometries.wkb, geometries.type.edges, geometries.type.crs)
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
        sides = _widened(sides, reach, geometries)
    around = (
        (sides[:, 0] > sides[:, 2]) | (sides[:, 0] <= -180 + _NEAR_THE_SEAM) | (sides[:, 2] >= 180 - _NEAR_THE_SEAM)
    )
    around |= (sides[:, 1] <= -90 + _NEAR_THE_SEAM) | (sides[:, 3] >= 90 - _NEAR_THE_SEAM)
    sides[around, 0], sides[around, 2] = -180.0, 180.0
    return sides


def _widened(sides: Sides, metres: float, geometries: Geometries) -> Sides:
    from pqext.geo.predicates.boxes import Region
    from pqext.geo.predicates.distance import widened
    from pqext.geo.predicates.globe import geod_of

    geod = geod_of(geometries.type)
    result = sides.copy()
    for row in np.flatnonzero(~np.isnan(sides[:, 0])).tolist():
        xmin, ymin, xmax, ymax = sides[row].tolist()
        region = Region(xmin=xmin, xmax=xmax, ymin=ymin, ymax=ymax, wraps=xmin > xmax, globe=True)
        region = widened(region, metres, geod)
        result[row] = region.xmin, region.ymin, region.xmax, region.ymax
    return result


class Matcher:
    """The geometries of the right side, ready to be asked which of them belong to rows of the left."""

    def __init__(self, right: Geometries, condition: Condition) -> None:
        self.right, self.condition = right, condition
        self.sides = sides_of(right, condition)
        self._grid: _Grid | None = None
        self._tree: Any = None
        self._shapes = PerThread(self._prepared)

    def pairs(self, left: Geometries) -> tuple[Rows, Rows]:
        """Rows of the left and the right side that belong together, by rows of the left."""
        points = self._points(left)
        if points is not None:
            retained, x, y = points
            item, other = self._of_points(x, y)
            return retained[item], other
        item, other = self._of_boxes(left)
        order = np.lexsort((other, item))
        return item[order], other[order]

    def shapes(self) -> Any:
        """The right side's shapes, prepared and private to the calling thread."""
        return self._shapes.get()

    def _prepared(self) -> Any:
        import shapely

        shapes = self.right.shapes()
        shapely.prepare(shapes)
        return shapes

    def _points(self, left: Geometries) -> tuple[Rows, Any, Any] | None:
        """The rows of the left side that are not null, with X and Y, if these are points that the grid can find."""
        if not self.right.type.planar or self.condition.operation not in _OF_POINTS:
            return None
        retained = np.flatnonzero(~left.missing)
        result = points_of(left.wkb.take(pa.array(retained)) if len(retained) < len(left.wkb) else left.wkb)
        if result is None:
            return None
        if self._grid is None:
            self._grid = _Grid(self.sides)
        return (retained, *result) if self._grid.usable else None

    def _of_points(self, x: Any, y: Any) -> tuple[Rows, Rows]:
        import shapely

        assert self._grid is not None
        holds = getattr(shapely, _OF_POINTS[self.condition.operation])
        item, other = self._grid.candidates(x, y)
        held = np.zeros(len(item), np.bool_)
        for part in np.split(_by_value(other), range(_PAIRS, len(item), _PAIRS)):  # each geometry is asked all at once
            held[part] = call_shapely(holds, self.shapes()[other[part]], x[item[part]], y[item[part]])
        return item[held], other[held]

    def _of_boxes(self, left: Geometries) -> tuple[Rows, Rows]:
        import shapely

        if self._tree is None:
            self._tree = shapely.STRtree(boxes_of(self.sides))
        item, other = self._tree.query(boxes_of(sides_of(left)))
        if not left.type.planar:
            return self._on_the_globe(left, item, other)
        shapes = left.shapes()
        held = np.zeros(len(item), np.bool_)
        for start in range(0, len(item), _PAIRS):
            part = slice(start, start + _PAIRS)
            theirs, mine = self.shapes()[other[part]], shapes[item[part]]
            if self.condition.operation == "dwithin":
                held[part] = call_shapely(shapely.dwithin, theirs, mine, self.condition.distance)
            else:
                held[part] = call_shapely(getattr(shapely, TURNED[self.condition.operation]), theirs, mine)
        return item[held], other[held]

    def _on_the_globe(self, left: Geometries, left_rows: Rows, right_rows: Rows) -> tuple[Rows, Rows]:
        """One question for each geometry of the right side, to the rows whose boxes meet its own."""
        from pqext.geo.predicates.predicate import SpatialPredicate

        order = np.argsort(right_rows, kind="stable")
        left_rows, right_rows = left_rows[order], right_rows[order]
        held = np.zeros(len(left_rows), np.bool_)
        ends = np.flatnonzero(np.diff(right_rows, prepend=-1, append=-1))
        for start, stop in pairwise(ends.tolist()):
            shape = self.shapes()[right_rows[start]]
            question = SpatialPredicate(self.condition.operation, shape, self.condition.distance)
            rows = left.wkb.take(pa.array(left_rows[start:stop]))
            answers = question.relate(rows, left.type)
            held[start:stop] = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
        return left_rows[held], right_rows[held]


def _by_value(numbers: Rows) -> Rows:
    """Return the positions that sort the row numbers."""
    most = int(numbers.max(initial=0))
    narrow = numbers.astype(np.uint16) if most < 1 << 16 else numbers  # numpy sorts these by radix
    return np.argsort(narrow, kind="stable")


def boxes_of(sides: Sides) -> Any:
    """Return the boxes as shapely geometries, None for missing boxes."""
    import shapely

    return np.where(np.isnan(sides[:, 0]), None, shapely.box(*sides.T))


class _Grid:
    """Boxes by the cells of a grid that they touch, to find those that hold points."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        rows = np.flatnonzero(np.isfinite(sides).all(axis=1))
        self.count = int(np.clip(2 * np.sqrt(len(rows)), 1, 1024))
        self.usable = len(rows) > 0
        if not self.usable:
            return
        boxes = sides[rows]
        self.low = boxes[:, :2].min(axis=0)
        span = boxes[:, 2:].max(axis=0) - self.low
        with np.errstate(all="ignore"):
            self.scale = np.where(span > 0, self.count / span, 0.0)
        if not (np.isfinite(self.scale).all() and np.isfinite(span).all()):
            self.usable = False
            return
        first, last = self._cells(boxes[:, :2]), self._cells(boxes[:, 2:])
        wide, high = (last - first + 1).T
        each = wide * high
        self.usable = bool(each.sum() <= max(_MOST_CELLS, 16 * len(rows)))
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
        return np.asarray(np.nan_to_num(result), np.int64)  # an infinite way across boxes without width is NaN

    def candidates(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[Rows, Rows]:
        """Points, and the boxes that hold them: both ascend, the boxes of each point."""
        placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        column, row = self._cells(np.column_stack([x[placed], y[placed]])).T
        cell = row * self.count + column
        begin, counts = self.starts[cell], self.starts[cell + 1] - self.starts[cell]
        which = np.repeat(np.arange(len(cell)), counts)
        step = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        item, other = placed[which], self.items[begin[which] + step]
        px, py = x[item], y[item]
        xmin, ymin, xmax, ymax = self.sides[other].T
        held = (px >= xmin) & (px <= xmax) & (py >= ymin) & (py <= ymax)
        return item[held], other[held]


class Nearest:
    """The geometries of the right side, ready to be asked which are nearest to rows of the left, in the plane."""

    def __init__(self, right: Geometries, k: int, most: float | None) -> None:
        import shapely

        self.right, self.k, self.most = right, k, most
        self._tree = PerThread(self._indexed)
        shapes = self.shapes
        self.there = int((~(shapely.is_missing(shapes) | shapely.is_empty(shapes))).sum())

    def _indexed(self) -> Any:
        import shapely

        return shapely.STRtree(self.right.shapes())

    @property
    def tree(self) -> Any:
        """The index of the right side's shapes, which measures distances to them: private to the calling thread."""
        return self._tree.get()

    @property
    def shapes(self) -> Any:
        return self.tree.geometries

    def pairs(self, left: Geometries) -> tuple[Rows, Rows, NDArray[np.float64]]:
        """Rows of both sides with their distance: for each of the left the ``k`` nearest, the nearest first.

        Of several as near the first ones, in the order of the right side.
        """
        import shapely

        shapes = left.shapes()
        if not self.there or not len(shapes):
            return np.array([], np.int64), np.array([], np.int64), np.array([])
        (item, other), away = call_shapely(
            self.tree.query_nearest, shapes, max_distance=self.most, return_distance=True, all_matches=True
        )
        if self.k > 1 and len(item):  # nothing is near coordinates that are infinite
            item, other = self._candidates_around(shapes, item, away)
            away = call_shapely(shapely.distance, shapes[item], self.shapes[other])
        order = np.lexsort((other, away, item))
        item, other, away = item[order], other[order], away[order]
        starts = np.searchsorted(item, item)
        retained = np.arange(len(item)) - starts < self.k
        return item[retained], other[retained], away[retained]

    def _candidates_around(self, shapes: Any, left_rows: Rows, away: NDArray[np.float64]) -> tuple[Rows, Rows]:
        """For each row of the left at least its ``k`` nearest, by circles that grow until they hold as many."""
        rows, firsts = np.unique(left_rows, return_index=True)
        requested = min(self.k, self.there)
        radius = away[firsts] * np.sqrt(self.k) + self._spacing() * np.sqrt(self.k)
        limit = np.inf if self.most is None else self.most
        results: list[tuple[Rows, Rows]] = []
        while len(rows):
            radius = np.minimum(radius, limit)
            near, other = call_shapely(self.tree.query, shapes[rows], predicate="dwithin", distance=radius)
            enough = (np.bincount(near, minlength=len(rows)) >= requested) | (radius >= limit)
            used = enough[near]
            results.append((rows[near[used]], other[used]))
            rows, radius = rows[~enough], radius[~enough] * 2
        return np.concatenate([pair[0] for pair in results]), np.concatenate([pair[1] for pair in results])

    def _spacing(self) -> float:
        """Estimate the distance between neighbouring geometries; never 0."""
        import shapely

        xmin, ymin, xmax, ymax = shapely.total_bounds(self.shapes).tolist()
        across = max(xmax - xmin, ymax - ymin)
        return across / float(np.sqrt(self.there)) or 1.0
