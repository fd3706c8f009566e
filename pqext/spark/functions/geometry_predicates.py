"""How geometries lie to each other, or to one geometry for all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.geo.predicates.boxes import Operation
from pqext.geo.types import Edges
from pqext.spark.functions.geometry_arrays import Geometries, both, of_shapes
from pqext.spark.functions.udf import GEOMETRIES, ArrowFunction, ColumnOrName, as_column


def st_intersects(one: ColumnOrName, other: Any) -> Column:
    """Do both share a point?

    ``other`` is a column or its name, or one geometry for all rows, which is much quicker: a box ``(xmin, ymin, xmax,
    ymax)``, WKB as bytes or a shapely geometry, in the column's coordinates. Null where one is null. Looks at X and Y
    only. Edges of GEOMETRY are straight lines in the plane, those of GEOGRAPHY run on the globe, where the inside of a
    polygon is its smaller side and a box is all eastward from xmin to xmax; both columns must be of one of them.
    Between two GEOGRAPHY columns the work is done once for each different geometry of ``other``: give the side with
    fewer as ``other``, or use :func:`pqext.spark.spatial_join`.

    To skip row groups, filter by :func:`pqext.spark.where` or ``read(where=)``; columns cannot do that.
    """
    return _asked("st_intersects", "intersects", one, other)


def st_disjoint(one: ColumnOrName, other: Any) -> Column:
    """Do both share no point? See :func:`st_intersects`."""
    return _asked("st_disjoint", "disjoint", one, other)


def st_within(one: ColumnOrName, other: Any) -> Column:
    """Does ``one`` lie in ``other``, and not only on its boundary? See :func:`st_intersects`."""
    return _asked("st_within", "within", one, other)


def st_contains(one: ColumnOrName, other: Any) -> Column:
    """Does ``other`` lie in ``one``, and not only on its boundary? See :func:`st_intersects`."""
    return _asked("st_contains", "contains", one, other)


def st_covers(one: ColumnOrName, other: Any) -> Column:
    """Does ``other`` lie in ``one``, its boundary included? See :func:`st_intersects`."""
    return _asked("st_covers", "covers", one, other)


def st_coveredby(one: ColumnOrName, other: Any) -> Column:
    """Does ``one`` lie in ``other``, its boundary included? See :func:`st_intersects`."""
    return _asked("st_coveredby", "covered_by", one, other)


def st_touches(one: ColumnOrName, other: Any) -> Column:
    """Do both share points of their boundaries, and none inside? See :func:`st_intersects`."""
    return _asked("st_touches", "touches", one, other)


def st_crosses(one: ColumnOrName, other: Any) -> Column:
    """Does ``one`` lie partly in ``other`` and partly outside, sharing less than its dimension?

    See :func:`st_intersects`.
    """
    return _asked("st_crosses", "crosses", one, other)


def st_overlaps(one: ColumnOrName, other: Any) -> Column:
    """Do both, of one dimension, share some of their points but not all? See :func:`st_intersects`."""
    return _asked("st_overlaps", "overlaps", one, other)


def st_equals(one: ColumnOrName, other: Any) -> Column:
    """Are both the same set of points? See :func:`st_intersects`."""
    return _asked("st_equals", "equals", one, other)


def st_intersects_box(geometry: ColumnOrName, xmin: float, ymin: float, xmax: float, ymax: float) -> Column:
    """Does a geometry share a point with a box? :func:`st_intersects` with the box's sides as arguments.

    Exact, borders included. A box with ``xmin > xmax`` crosses the antimeridian.
    """
    return of_one("st_intersects_box", "intersects", geometry, (xmin, ymin, xmax, ymax))


def st_relates(
    geometry: ColumnOrName,
    operation: Operation,
    query: Any,
    distance: float | None = None,
    edges: Edges | None = None,
    crs: str | None = None,
) -> Column:
    """Does a geometry stand so to ``query``? Null on null.

    ``operation`` is one of ``pqext.geo``'s, such as ``touches``, or ``dwithin`` with its ``distance``; ``query`` a box
    ``(xmin, ymin, xmax, ymax)``, WKB or a shapely geometry. ``edges`` and ``crs`` are those of the column's type by
    default, and can be told of WKB. Exact. Raises ``ValueError`` or ``TypeError`` for anything else.
    """
    return of_one(f"st_{operation}", operation, geometry, query, distance, edges, crs)


def of_one(
    name: str,
    operation: Operation,
    geometry: ColumnOrName,
    query: Any,
    distance: Any = None,
    edges: Edges | None = None,
    crs: str | None = None,
) -> Column:
    """The question about one geometry for all rows."""
    from pqext.dataset.expressions.spatial import canonical_distance, canonical_geometry

    shape, metres = canonical_geometry(operation, query), canonical_distance(operation, distance)
    relates = ArrowFunction(name, (GEOMETRIES,), T.BooleanType(), _relates)
    return relates(geometry, question=_Question(operation, shape, metres, edges, crs))


class _Question:
    """What each row is asked, which plans show in short."""

    def __init__(self, operation: Operation, shape: Any, distance: float | None, edges: Any, crs: Any) -> None:
        self.asked = (operation, shape, distance)
        self.type = (edges, crs)

    def __str__(self) -> str:
        from pqext.dataset.expressions.spatial import geometry_text

        return geometry_text(self.asked[1])


def _relates(array: pa.Array, question: _Question) -> pa.Array:
    from pqext.dataset.expressions.spatial import predicate

    of = Geometries.of(array)
    edges, crs = question.type
    told = edges is not None
    return predicate(*question.asked).evaluate(of.wkb, edges or of.type.edges, crs if told else of.type.crs)


_OPERATIONS: dict[str, Operation] = {
    "st_intersects": "intersects",
    "st_disjoint": "disjoint",
    "st_within": "within",
    "st_contains": "contains",
    "st_covers": "covers",
    "st_coveredby": "covered_by",
    "st_touches": "touches",
    "st_crosses": "crosses",
    "st_overlaps": "overlaps",
    "st_equals": "equals",
}


def _asked(name: str, operation: Operation, one: ColumnOrName, other: Any) -> Column:
    if isinstance(other, str | Column):
        return PAIRS[name](as_column(one), other)
    return of_one(name, operation, one, other)


def _pairs(operation: Operation) -> Any:
    """The kernel of a question about two columns."""
    return _Pairs(operation)


class _Pairs:
    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __call__(self, one: pa.Array, other: pa.Array) -> pa.Array:
        import shapely

        left, right, planar = both(f"st_{self.operation}", one, other)
        missing = left.missing | right.missing
        if not planar:
            return _on_the_globe(self.operation, left, right, missing)
        answers = of_shapes(getattr(shapely, self.operation), left.shapes(), right.shapes())
        return pa.array(answers, mask=missing)


def _on_the_globe(operation: Operation, left: Geometries, right: Geometries, missing: Any) -> pa.Array:
    """One question for each different geometry on the right, to all rows beside it."""
    from pqext.geo.predicates.predicate import SpatialPredicate

    found = pa.array(np.zeros(len(missing), np.bool_)).to_numpy(zero_copy_only=False).copy()
    unknown = missing.copy()
    different = right.wkb.dictionary_encode()
    which = different.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    queries = Geometries(different.dictionary, right.type).shapes()
    for number, query in enumerate(queries):
        rows = np.flatnonzero((which == number) & ~missing)
        answers = SpatialPredicate(operation, query).relate(left.wkb.take(pa.array(rows)), left.type)
        found[rows] = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
        unknown[rows] = answers.is_null().to_numpy(zero_copy_only=False)
    return pa.array(found, mask=unknown)


PAIRS = {
    name: ArrowFunction(name, (GEOMETRIES, GEOMETRIES), T.BooleanType(), _pairs(operation))
    for name, operation in _OPERATIONS.items()
}
