"""Spatial predicates: an exact evaluation on rows, and an evaluation on boxes with the results no, yes and maybe.

A kernel compares each row with boxes around and in the query; shapely decides the rest. All predicates ignore Z and M.
A row without X or Y, such as an empty geometry, intersects nothing. The result is null for null, and for a GEOGRAPHY
whose coordinates are out of range by more than 1e-9 degrees. Other writers store such values, and filters exclude them
whether they test for intersection or for disjointness. Edges of GEOMETRY are straight lines in the plane, whatever its
CRS (:mod:`pqext.geo.predicates.planar`). Edges of GEOGRAPHY, and of its query, are interpolated by the column's
algorithm (:mod:`pqext.geo.predicates.globe`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.base.errors import warn
from pqext.geo.box import BoundingBox
from pqext.geo.coordinates import swap_hint
from pqext.geo.predicates import globe, planar
from pqext.geo.predicates.boxes import Answer, Boxes, BoxTest, Region
from pqext.geo.predicates.query import Query, SpatialQuestion, as_box
from pqext.geo.predicates.unrolling import equator_area, explode
from pqext.geo.summary import resolve_type
from pqext.geo.types import Edges, GeospatialType
from pqext.geo.wkb import GeometryArray, binary_chunks, columns, match_chunking

PLANE = GeospatialType()
_POLE = 90 - 1e-12
_ROUNDING = 1e-12
"""Bound of the relative error of planar distances, thousands of times the precision of a double."""


@dataclass(frozen=True, slots=True)
class SpatialPredicate(SpatialQuestion):
    """The relation ``operation`` between each row and ``geometry``, such as intersects, within or touches.

    ``geometry`` becomes a :class:`BoundingBox` unless it is a shapely geometry. ``dwithin`` requires a ``distance``, in
    units of the coordinates for GEOMETRY and in metres on the ellipsoid for GEOGRAPHY; other operations do not accept
    one. Raises ValueError or TypeError if the operation is unknown, or the query or distance is invalid.
    """

    _tests: dict[GeospatialType, BoxTest] = field(init=False, repr=False, compare=False, default_factory=dict)

    @property
    def keeps_empty(self) -> bool:
        """Whether a geometry without X or Y can satisfy the predicate."""
        return self.operation == "disjoint" or (self.operation == "equals" and self.box is None)

    def for_types(self, types: Sequence[int] | None) -> SpatialPredicate:
        """Return the predicate for a column with geometries of these WKB type codes; ``types`` is None if unknown."""
        return self

    def answer(self, box: BoundingBox, type: GeospatialType = PLANE) -> Answer:
        """Evaluate the predicate on the box around geometries of a column of ``type``.

        See :mod:`pqext.geo.predicates.boxes`.
        """
        if self.operation != "disjoint" and self.box_test(type).is_far_from(box):
            return Answer.NO
        xmin, xmax, ymin, ymax = np.array([[box.xmin], [box.xmax], [box.ymin], [box.ymax]], dtype=np.float64)
        return Answer(int(self.answers(xmin, xmax, ymin, ymax, type)[0]))

    def answers(
        self,
        xmin: NDArray[np.float64],
        xmax: NDArray[np.float64],
        ymin: NDArray[np.float64],
        ymax: NDArray[np.float64],
        type: GeospatialType = PLANE,
    ) -> NDArray[np.uint8]:
        """Evaluate the predicate on boxes. Returns an :class:`Answer` for each, as an integer.

        A box wraps if ``xmin > xmax``.
        """
        with np.errstate(over="ignore"):  # widths may overflow
            return self.box_test(type).answers(Boxes(xmin, xmax, ymin, ymax))

    def may_match(self, box: BoundingBox, type: GeospatialType = PLANE) -> bool:
        """Return whether a geometry within ``box`` can satisfy the predicate. ``False`` is definitive."""
        return self.answer(box, type) != Answer.NO

    def may_match_boxes(
        self,
        xmin: NDArray[np.float64],
        xmax: NDArray[np.float64],
        ymin: NDArray[np.float64],
        ymax: NDArray[np.float64],
        type: GeospatialType = PLANE,
    ) -> NDArray[np.bool_]:
        """Return a mask of the boxes that may contain a match. For the arguments, see :meth:`answers`."""
        result: NDArray[np.bool_] = self.answers(xmin, xmax, ymin, ymax, type) != Answer.NO
        return result

    def box_test(self, type: GeospatialType) -> BoxTest:
        """Return the test of boxes in a column of ``type``."""
        if type not in self._tests:
            self._tests[type] = self._box_test(type)
        return self._tests[type]

    def _box_test(self, type: GeospatialType) -> BoxTest:
        if not type.planar:
            return globe.box_test(self, type)
        distance = self.distance or 0.0
        if self.box is None:
            return BoxTest(self.operation, None, None, None, distance, type.geographic)
        outer = Region.from_box(self.box, globe=False)
        is_box = isinstance(self.geometry, BoundingBox) or self.geometry.geom_type == "Point"
        reach = planar.widen(outer, distance) if self.operation == "dwithin" else outer
        return BoxTest(self.operation, outer, outer if is_box else None, reach, distance, type.geographic)

    def evaluate(self, array: GeometryArray, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
        """Evaluate the predicate on every row; return booleans.

        The result is null for null and, unless edges are planar, for coordinates out of range. ``edges`` and ``crs``
        default to the extension array, or to planar edges and OGC:CRS84. Raises GeometryError with row and byte if WKB
        is invalid, and for distances on GEOGRAPHY in an unknown CRS. Warns if a query polygon has edges of 180 degrees
        or covers more than half of the globe, unless edges are planar.
        """
        type = resolve_type(array, crs, edges)
        if not type.planar:
            self.warn_of_mismatch()
        return self.relate(array, type)

    def warn_of_mismatch(self, column: str | None = None) -> None:
        """Warn if the query is a polygon whose area on the globe differs from its area on a map."""
        if line := mismatch(self.private_geometry):
            warn(f"{'GEOGRAPHY' if column is None else f'GEOGRAPHY column {column}'}: {line}", UserWarning)

    def warn_of_swapped_axes(self, column: str) -> None:
        """Warn if the query is out of range for a geographic ``column`` and would be in range with X and Y swapped."""
        box = self.box
        if box is not None and (hint := swap_hint((box.xmin, box.xmax), (box.ymin, box.ymax))):
            latitude = max(box.ymin, box.ymax, key=abs)
            warn(f"column {column}: the query has the latitude {latitude:.10g}{hint}", UserWarning)

    def relate(self, array: GeometryArray, type: GeospatialType) -> GeometryArray:
        """Evaluate the predicate on every row of a column of ``type``, like :meth:`evaluate` but without warnings."""
        decide = planar.decide if type.planar else globe.decide
        test = self.box_test(type)
        parts = []
        row = 0
        for chunk, column in zip(binary_chunks(array), columns(array), strict=True):
            with np.errstate(all="ignore"):  # GEOS may overflow doubles or compute with NaN
                answers, null = decide(self, test, type, chunk, column, row)
            parts.append(pa.array(answers, mask=null))
            row += len(chunk)
        return match_chunking(array, parts, pa.bool_())


class HalfPlane(SpatialPredicate):
    """Predicate ``intersects`` with a box that bounds only X or only Y.

    A geometry that has only this coordinate may also satisfy the predicate.
    """

    __slots__ = ()

    @property
    def keeps_empty(self) -> bool:
        """Whether a geometry without X or Y, which has no box, can satisfy the predicate."""
        return True


class MeasuredDistance(SpatialPredicate):
    """Predicate ``dwithin`` for distances that GEOS computes in doubles. Boxes are widened by the rounding error."""

    __slots__ = ()

    def answer(self, box: BoundingBox, type: GeospatialType = PLANE) -> Answer:
        """Evaluate the predicate on the box around geometries of a column of ``type``."""
        xmin, xmax, ymin, ymax = np.array([[box.xmin], [box.xmax], [box.ymin], [box.ymax]], dtype=np.float64)
        return Answer(int(self.answers(xmin, xmax, ymin, ymax, type)[0]))

    def answers(
        self,
        xmin: NDArray[np.float64],
        xmax: NDArray[np.float64],
        ymin: NDArray[np.float64],
        ymax: NDArray[np.float64],
        type: GeospatialType = PLANE,
    ) -> NDArray[np.uint8]:
        """Return the :class:`Answer` for each of several boxes, as integers."""
        if type.planar:
            scale = np.maximum(np.maximum(abs(xmin), abs(xmax)), np.maximum(abs(ymin), abs(ymax)))
            if self.box is not None:
                scale = np.maximum(scale, max(map(abs, (self.box.xmin, self.box.xmax, self.box.ymin, self.box.ymax))))
            margin = np.where(xmin <= xmax, _ROUNDING * scale, np.nan)  # boxes that wrap cannot prune
            xmin, xmax, ymin, ymax = xmin - margin, xmax + margin, ymin - margin, ymax + margin
        return super().answers(xmin, xmax, ymin, ymax, type)


def intersects(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row intersects ``query``.

    The result is null for null and, unless edges are planar, for coordinates out of range.

    ``query`` is a box ``(xmin, ymin, xmax, ymax)`` or :class:`BoundingBox`, which wraps around the antimeridian with
    xmin > xmax, or a shapely geometry in the CRS of the array. ``edges`` and ``crs`` default to the extension array, or
    to planar edges and OGC:CRS84; with other edges, rows and query are geometries on the globe, or on the ellipsoid of
    ``crs``. A box is then the region eastward from xmin to xmax, however wide, between two parallels. The edges of a
    polygon are then the shortest paths between its vertices, and its interior is its smaller side, even for a polygon
    from ``shapely.box``. Raises GeometryError with the row and byte if WKB is invalid, and ValueError or TypeError if
    the query is invalid. Warns if a polygon covers a different area on the globe than on a map.

    >>> from pqext.geo import from_points
    >>> intersects(from_points([178, -175, 0], [-17, -16, 0]), (170, -20, -170, -10)).to_pylist()
    [True, True, False]
    """
    return SpatialPredicate("intersects", query).evaluate(array, edges, crs)


def disjoint(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row is disjoint from ``query``. See :func:`intersects`.

    >>> from pqext.geo import from_points
    >>> disjoint(from_points([1, 5], [1, 5]), (0, 0, 2, 2)).to_pylist()
    [False, True]
    """
    return SpatialPredicate("disjoint", query).evaluate(array, edges, crs)


def within(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row is within ``query``, and not only on its boundary. See :func:`intersects`.

    >>> from pqext.geo import from_points
    >>> within(from_points([1, 2, 5], [1, 2, 5]), (0, 0, 2, 2)).to_pylist()  # the second point is a corner
    [True, False, False]
    """
    return SpatialPredicate("within", query).evaluate(array, edges, crs)


def contains(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row contains ``query``, and not only on its boundary. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> import shapely
    >>> contains(from_wkt(["POLYGON ((0 0, 4 0, 0 4, 0 0))", "POINT (0 0)"]), shapely.Point(1, 1)).to_pylist()
    [True, False]
    """
    return SpatialPredicate("contains", query).evaluate(array, edges, crs)


def touches(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row and ``query`` intersect but their interiors do not. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> touches(from_wkt(["LINESTRING (2 1, 4 1)", "LINESTRING (1 1, 4 1)"]), (0, 0, 2, 2)).to_pylist()
    [True, False]
    """
    return SpatialPredicate("touches", query).evaluate(array, edges, crs)


def crosses(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row crosses ``query``, like a line that lies partly in a polygon. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> crosses(from_wkt(["LINESTRING (1 1, 4 1)", "LINESTRING (0 1, 1 1)"]), (0, 0, 2, 2)).to_pylist()
    [True, False]
    """
    return SpatialPredicate("crosses", query).evaluate(array, edges, crs)


def overlaps(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row and ``query`` overlap partially, in the same dimension. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> overlaps(from_wkt(["POLYGON ((1 1, 4 1, 1 4, 1 1))", "LINESTRING (1 1, 4 1)"]), (0, 0, 2, 2)).to_pylist()
    [True, False]
    """
    return SpatialPredicate("overlaps", query).evaluate(array, edges, crs)


def covers(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row covers ``query``: no point of ``query`` is outside the row. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> import shapely
    >>> covers(from_wkt(["POLYGON ((0 0, 4 0, 0 4, 0 0))"]), shapely.Point(0, 0)).to_pylist()  # the point is a corner
    [True]
    """
    return SpatialPredicate("covers", query).evaluate(array, edges, crs)


def covered_by(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether ``query`` covers each row: no point of the row is outside ``query``. See :func:`intersects`.

    >>> from pqext.geo import from_points
    >>> covered_by(from_points([1, 2, 5], [1, 2, 5]), (0, 0, 2, 2)).to_pylist()  # the second point is a corner
    [True, True, False]
    """
    return SpatialPredicate("covered_by", query).evaluate(array, edges, crs)


def equals(array: GeometryArray, query: Query, edges: Edges | None = None, crs: Any = None) -> GeometryArray:
    """Return whether each row and ``query`` are the same set of points. See :func:`intersects`.

    >>> from pqext.geo import from_wkt
    >>> import shapely
    >>> equals(from_wkt(["LINESTRING (2 0, 1 0, 0 0)"]), shapely.LineString([(0, 0), (2, 0)])).to_pylist()
    [True]
    """
    return SpatialPredicate("equals", query).evaluate(array, edges, crs)


def dwithin(
    array: GeometryArray, query: Query, distance: float, edges: Edges | None = None, crs: Any = None
) -> GeometryArray:
    """Return whether each row is within ``distance`` of ``query``.

    The distance is in units of the coordinates for GEOMETRY, which are degrees if its CRS is geographic, and in metres
    on the ellipsoid of ``crs`` for GEOGRAPHY (``edges``). See :func:`intersects`.

    >>> from pqext.geo import from_points
    >>> import shapely
    >>> dwithin(from_points([0, 3], [0, 4]), shapely.Point(0, 0), 1).to_pylist()
    [True, False]
    >>> dwithin(from_points([0, 3], [0, 4]), shapely.Point(0, 0), 600_000, "spherical").to_pylist()
    [True, True]
    """
    return SpatialPredicate("dwithin", query, distance).evaluate(array, edges, crs)


def intersects_box(
    array: GeometryArray, box: Query, edges: Edges | None = None, crs: Any = None
) -> GeometryArray:
    """Return whether each row intersects the box ``(xmin, ymin, xmax, ymax)`` or :class:`BoundingBox`.

    If xmin > xmax, the box wraps around the antimeridian. Other arguments and errors are as in :func:`intersects`.

    >>> from pqext.geo import from_points
    >>> intersects_box(from_points([178, -175, 0], [-17, -16, 0]), (170, -20, -170, -10)).to_pylist()
    [True, True, False]
    """
    return SpatialPredicate("intersects", as_box(box)).evaluate(array, edges, crs)


def mismatch(query: Any) -> str:
    """Describe how a query polygon on the globe differs from its shape on a map, and suggest a different query.

    The description is empty if the shapes are equal, and for boxes, lines and points.

    Returns:
        The description. It is empty if the polygons are the same on both, and for boxes, lines and points.
    """
    import shapely

    if isinstance(query, BoundingBox):
        return ""
    parts, _ = explode(np.array([query], dtype=object))
    polygons = parts[shapely.get_type_id(parts) == 3]
    bounds = shapely.bounds(polygons)
    is_wide = bounds[:, 2] - bounds[:, 0] >= 180  # NaN for an empty polygon, so the comparison is False
    for polygon, box in zip(polygons[is_wide].tolist(), bounds[is_wide].tolist(), strict=True):
        x, y = shapely.get_coordinates(polygon.exterior).T
        at_pole = (np.abs(y[:-1]) >= _POLE) & (np.abs(y[1:]) >= _POLE)  # has no length on the globe
        if (np.abs(np.diff(x))[~at_pole] >= 180).any():
            problem = "edges of 180 degrees of longitude or more, which run the shorter way around the globe"
        elif abs(equator_area(x, y)) > 2 * np.pi:
            problem = "an outline around more than half of the globe, whose smaller side is its inside"
        else:
            continue
        sides = ", ".join(f"{side:.10g}" for side in box)
        return (
            f"a query polygon has {problem}: pass the box ({sides}) to query everything between its meridians and "
            "parallels, or split a polygon that crosses the antimeridian at the antimeridian"
        )
    return ""
