"""Spatial predicates: on rows exactly, on the box of a row group as "cannot match" or "may match".

A row is tried against the query's box in a kernel; only where that does not settle it, shapely decides. Both
look at X and Y only. A row without X or Y, such as an empty geometry, meets nothing; null gives null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.errors import GeometryError, UnsupportedError
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.predicates import test_box
from pqext.geo.summary import only_points, resolve_type
from pqext.geo.types import Edges
from pqext.geo.wkb import GeometryArray, binary_chunks, build, columns, like_input, summaries

Operation = Literal["intersects", "within", "contains", "disjoint"]
Query: TypeAlias = Any
"""A box, as :class:`BoundingBox` or ``(xmin, ymin, xmax, ymax)``, or a shapely geometry."""

_YES, _MAYBE, _NULL = 1, 2, 3


def as_box(box: Query) -> BoundingBox:
    """``box`` as a :class:`BoundingBox`; a sequence is ``(xmin, ymin, xmax, ymax)``, as everywhere in this field.

    Raises ValueError unless the bounds are finite and y is in order; xmin > xmax wraps around the
    antimeridian, and is allowed between longitudes only.
    """
    if isinstance(box, BoundingBox):
        found = box
    else:
        try:
            xmin, ymin, xmax, ymax = (float(value) for value in box)
        except OverflowError:
            raise ValueError(f"a query box needs finite bounds, not {box}") from None
        found = BoundingBox(xmin, xmax, ymin, ymax)
    if not found.usable:
        raise ValueError(
            f"a query box needs finite bounds and ymin <= ymax, and xmin > xmax between longitudes only: {found}"
        )
    return found


@dataclass(frozen=True, slots=True)
class SpatialPredicate:
    """``operation`` between each row and ``geometry``: row intersects, is within, contains, is disjoint from it.

    ``geometry`` becomes a :class:`BoundingBox` unless it is a shapely geometry. Raises ValueError or
    TypeError on an unknown operation or a query that is neither.
    """

    operation: Operation
    geometry: Query
    box: BoundingBox | None = field(init=False, repr=False, compare=False)
    """The query's box; None when the query is an empty geometry."""

    def __post_init__(self) -> None:
        if self.operation not in get_args(Operation):
            raise ValueError(f"unknown spatial operation {self.operation!r}")
        if isinstance(self.geometry, (BoundingBox, tuple, list)):
            object.__setattr__(self, "geometry", as_box(self.geometry))
        elif not hasattr(self.geometry, "geom_type"):
            raise TypeError(f"a query is a box or a shapely geometry, not {type(self.geometry).__name__}")
        box = self.geometry
        if not isinstance(box, BoundingBox):
            box = None if box.is_empty else as_box(box.bounds)
        object.__setattr__(self, "box", box)

    @property
    def has_edges(self) -> bool:
        """Does the query's meaning depend on how edges run? A box lies along the axes, a point has none."""
        return not isinstance(self.geometry, BoundingBox) and self.geometry.geom_type not in ("Point", "MultiPoint")

    def may_match(self, box: BoundingBox) -> bool:
        """Can a geometry within ``box`` satisfy the predicate? ``False`` is a proof."""
        if self.operation == "disjoint" or not box.usable:
            return True
        query = self.box
        if query is None:
            return False
        return box.contains(query) if self.operation == "contains" else box.intersects(query)

    def evaluate(self, array: GeometryArray, edges: Edges | None = None) -> GeometryArray:
        """The answer for every row, as booleans.

        ``edges`` defaults to what an extension array says, else planar. Raises GeometryError with row and
        byte on bad WKB, UnsupportedError where edges that are not planar would decide.
        """
        found = resolve_type(array, None, edges)
        types = {code for part in summaries(array) for code in part.types} if not found.planar else set()
        if not found.planar and (self.has_edges or not only_points(types)):
            raise UnsupportedError(
                "exact predicates on edges that are not planar are not computed yet",
                feature=f"predicates on {found.edges} edges",
            )
        parts = []
        row = 0
        for chunk, column in zip(binary_chunks(array), columns(array), strict=True):
            verdicts = np.zeros(len(chunk), dtype=np.uint8)
            box = self.box
            if box is not None:
                test_box(column, box.xmin, box.xmax, box.ymin, box.ymax, verdicts)
            elif chunk.null_count:
                verdicts[chunk.is_null().to_numpy(zero_copy_only=False)] = _NULL
            parts.append(pa.array(self._decide(chunk, verdicts, row), mask=verdicts == _NULL))
            row += len(chunk)
        return like_input(array, parts, pa.bool_())

    def _decide(self, chunk: pa.Array, verdicts: NDArray[np.uint8], row: int) -> NDArray[np.bool_]:
        """Settle what the boxes leave open: ``verdicts`` says of each row's box no, within, perhaps or null."""
        answers = np.zeros(len(verdicts), dtype=np.bool_)
        left = np.isin(verdicts, (_YES, _MAYBE))
        if isinstance(self.geometry, BoundingBox) and self.operation in ("intersects", "disjoint"):
            answers, left = verdicts == _YES, verdicts == _MAYBE
        numbers = np.flatnonzero(left)
        if len(numbers):
            values = chunk.take(pa.array(numbers)).to_numpy(zero_copy_only=False)
            answers[numbers] = self._exact(build(values, numbers + row))
        return np.logical_not(answers) if self.operation == "disjoint" else answers

    def _exact(self, rows: NDArray[np.object_]) -> NDArray[np.bool_]:
        """Shapely's answer for every row; the first argument of its predicates is the prepared one."""
        import shapely

        query = self.geometry
        if isinstance(query, BoundingBox):
            query = _polygon(query, shapely.total_bounds(rows))
        shapely.prepare(query)
        try:
            answers: NDArray[np.bool_]
            if self.operation == "within":
                answers = shapely.contains(query, rows)
            elif self.operation == "contains":
                answers = shapely.within(query, rows)
            else:
                answers = shapely.intersects(query, rows)
            return answers
        except shapely.errors.ShapelyError as error:
            raise GeometryError(f"shapely cannot decide the predicate: {error}") from error


def _polygon(box: BoundingBox, around: NDArray[np.float64]) -> Any:
    """The box as a shapely geometry: a wrapping one in two parts, which reach beyond the bounds ``around``."""
    import shapely

    if not box.wraps:
        return _rectangle(box.xmin, box.ymin, box.xmax, box.ymax)
    west, east = min(-180.0, around[0]) - 1, max(180.0, around[2]) + 1
    parts = [_rectangle(box.xmin, box.ymin, east, box.ymax), _rectangle(west, box.ymin, box.xmax, box.ymax)]
    return shapely.MultiPolygon(parts) if box.ymin < box.ymax else shapely.MultiLineString(parts)


def _rectangle(xmin: float, ymin: float, xmax: float, ymax: float) -> Any:
    """A box without area is a line or a point: as a polygon it would be invalid."""
    import shapely

    if xmin < xmax and ymin < ymax:
        return shapely.box(xmin, ymin, xmax, ymax)
    if xmin == xmax and ymin == ymax:
        return shapely.Point(xmin, ymin)
    return shapely.LineString([(xmin, ymin), (xmax, ymax)])


def intersects(array: GeometryArray, query: Query, edges: Edges | None = None) -> GeometryArray:
    """Has each row a point in common with ``query``? See :class:`SpatialPredicate` for arguments and errors."""
    return SpatialPredicate("intersects", query).evaluate(array, edges)


def within(array: GeometryArray, query: Query, edges: Edges | None = None) -> GeometryArray:
    """Does each row lie in ``query``, not only on its boundary? See :class:`SpatialPredicate`."""
    return SpatialPredicate("within", query).evaluate(array, edges)


def contains(array: GeometryArray, query: Query, edges: Edges | None = None) -> GeometryArray:
    """Does ``query`` lie in each row, not only on its boundary? See :class:`SpatialPredicate`."""
    return SpatialPredicate("contains", query).evaluate(array, edges)


def disjoint(array: GeometryArray, query: Query, edges: Edges | None = None) -> GeometryArray:
    """Has each row no point in common with ``query``? See :class:`SpatialPredicate`."""
    return SpatialPredicate("disjoint", query).evaluate(array, edges)


def intersects_box(array: GeometryArray, box: Query, edges: Edges | None = None) -> GeometryArray:
    """Has each row a point in common with the box, ``(xmin, ymin, xmax, ymax)`` or :class:`BoundingBox`?

    With xmin > xmax the box wraps around the antimeridian.
    """
    return SpatialPredicate("intersects", as_box(box)).evaluate(array, edges)
