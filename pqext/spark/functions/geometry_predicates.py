"""Spatial predicates between two columns, or between a column and a constant geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import types as T

from pqext.geo.joins.geometry_column import call_shapely
from pqext.geo.predicates.boxes import Operation
from pqext.geo.types import Edges, GeospatialType
from pqext.spark.functions.geometry_arrays import Geometries, geometry_columns
from pqext.spark.functions.udf import GEOMETRIES, ArrowFunction, ColumnOrName, as_column


def st_intersects(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries intersect in X and Y; null if either is null.

    Edges of GEOMETRY are straight lines in the plane, and edges of GEOGRAPHY are on the globe. On the globe, the
    interior of a polygon is its smaller side, and a box extends eastward from xmin to xmax. To skip row groups, filter
    with :func:`pqext.spark.where` or ``read(where=)`` instead.

    Args:
        geometry: A column or its name.
        other: A column or its name, of the same type, or a constant geometry, which is much faster: a box ``(xmin,
            ymin, xmax, ymax)``, WKB as bytes or a shapely geometry, in the coordinates of the column. For two GEOGRAPHY
            columns, the work is done once for each distinct geometry of ``other``: pass the column with fewer as
            ``other``, or use :func:`pqext.spark.spatial_join`.

    Returns:
        A BOOLEAN column.

    Example:
        >>> df.where(st_intersects("geom", (4.0, 50.0, 8.0, 54.0)))  # doctest: +SKIP
    """
    return _relate_argument("st_intersects", "intersects", geometry, other)


def st_disjoint(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries do not intersect. See :func:`st_intersects`.

    Example:
        >>> df.where(st_disjoint("geom", (4.0, 50.0, 8.0, 54.0)))  # doctest: +SKIP
    """
    return _relate_argument("st_disjoint", "disjoint", geometry, other)


def st_within(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether ``geometry`` is in ``other``, and not only on its boundary. See :func:`st_intersects`.

    Example:
        >>> df.where(st_within("geom", shapely.box(4.0, 50.0, 8.0, 54.0)))  # doctest: +SKIP
    """
    return _relate_argument("st_within", "within", geometry, other)


def st_contains(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether ``other`` is in ``geometry``, and not only on its boundary. See :func:`st_intersects`.

    Example:
        >>> df.where(st_contains("geom", shapely.Point(4.9, 52.4)))  # doctest: +SKIP
    """
    return _relate_argument("st_contains", "contains", geometry, other)


def st_covers(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether ``other`` is in ``geometry`` or on its boundary. See :func:`st_intersects`.

    Example:
        >>> df.where(st_covers("parcel", "building"))  # doctest: +SKIP
    """
    return _relate_argument("st_covers", "covers", geometry, other)


def st_coveredby(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether ``geometry`` is in ``other`` or on its boundary. See :func:`st_intersects`.

    Example:
        >>> df.where(st_coveredby("building", "parcel"))  # doctest: +SKIP
    """
    return _relate_argument("st_coveredby", "covered_by", geometry, other)


def st_touches(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries share points, but their interiors do not. See :func:`st_intersects`.

    Example:
        >>> df.where(st_touches("parcel", "flood_zone"))  # doctest: +SKIP
    """
    return _relate_argument("st_touches", "touches", geometry, other)


def st_crosses(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries share interior points that have a lower dimension than one of the geometries.

    Each geometry also has points outside the other. See :func:`st_intersects`.

    Example:
        >>> df.where(st_crosses("road", "parcel"))  # doctest: +SKIP
    """
    return _relate_argument("st_crosses", "crosses", geometry, other)


def st_overlaps(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries of equal dimension overlap in this dimension, and neither covers the other.

    See :func:`st_intersects`.

    Example:
        >>> df.where(st_overlaps("parcel", "flood_zone"))  # doctest: +SKIP
    """
    return _relate_argument("st_overlaps", "overlaps", geometry, other)


def st_equals(geometry: ColumnOrName, other: Any) -> Column:
    """Return whether geometries are the same set of points. See :func:`st_intersects`.

    Example:
        >>> df.where(~st_equals("parcel", "old_parcel"))  # doctest: +SKIP
    """
    return _relate_argument("st_equals", "equals", geometry, other)


def st_intersects_box(geometry: ColumnOrName, xmin: float, ymin: float, xmax: float, ymax: float) -> Column:
    """Return whether a geometry intersects a box, including its border, like :func:`st_intersects` with a polygon.

    A box with ``xmin > xmax`` crosses the antimeridian.

    Example:
        >>> df.where(st_intersects_box("geom", 170.0, -50.0, -170.0, -30.0))  # doctest: +SKIP
    """
    return relate_constant("st_intersects_box", "intersects", geometry, (xmin, ymin, xmax, ymax))


def st_relates(
    geometry: ColumnOrName,
    operation: Operation,
    query: Any,
    distance: float | None = None,
    edges: Edges | None = None,
    crs: str | None = None,
) -> Column:
    """Return whether a spatial predicate holds between a geometry and a constant geometry; null for null.

    Args:
        geometry: A column or its name.
        operation: A predicate of ``pqext.geo``, such as ``touches`` or ``dwithin``.
        query: A box ``(xmin, ymin, xmax, ymax)``, WKB or a shapely geometry.
        distance: The distance of ``dwithin``.
        edges: The edges of WKB; by default the edges of the column's type.
        crs: The CRS of WKB; by default the CRS of the column's type.

    Returns:
        A BOOLEAN column.

    Raises:
        ValueError: If the operation or the distance is invalid.
        TypeError: If the query is not a geometry.

    Example:
        >>> df.where(st_relates("geom", "dwithin", (4.0, 50.0, 8.0, 54.0), distance=1000))  # doctest: +SKIP
    """
    return relate_constant(f"st_{operation}", operation, geometry, query, distance, edges, crs)


def relate_constant(
    name: str,
    operation: Operation,
    geometry: ColumnOrName,
    query: Any,
    distance: Any = None,
    edges: Edges | None = None,
    crs: str | None = None,
) -> Column:
    """Return a column that evaluates a spatial predicate between a column and a constant geometry."""
    from pqext.dataset.expressions.spatial import canonical_distance, canonical_geometry

    shape, metres = canonical_geometry(operation, query), canonical_distance(operation, distance)
    relates = ArrowFunction(name, (GEOMETRIES,), T.BooleanType(), _evaluate_constant)
    return relates(geometry, relation=_Constant(operation, shape, metres, edges, crs))


class _Constant:
    """Predicate with a constant geometry, which plans display in abbreviated form."""

    def __init__(self, operation: Operation, shape: Any, distance: float | None, edges: Any, crs: Any) -> None:
        self.predicate = (operation, shape, distance)
        self.type = (edges, crs)

    def __str__(self) -> str:
        from pqext.dataset.expressions.spatial import geometry_text

        return geometry_text(self.predicate[1])


def _evaluate_constant(array: pa.Array, relation: _Constant) -> pa.Array:
    from pqext.dataset.expressions.spatial import predicate

    column = Geometries.from_arrow(array)
    edges, crs = relation.type
    type = column.type if edges is None else GeospatialType(crs, edges)
    return predicate(*relation.predicate).evaluate(column.wkb, type.edges, type.crs)


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


def _relate_argument(name: str, operation: Operation, geometry: ColumnOrName, other: Any) -> Column:
    if isinstance(other, str | Column):
        return PAIRS[name](as_column(geometry), other)
    return relate_constant(name, operation, geometry, other)


class _PairPredicate:
    """Evaluation of a predicate between two columns."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    def __call__(self, array: pa.Array, other: pa.Array) -> pa.Array:
        import shapely

        left, right = geometry_columns([array, other])
        missing_rows = left.missing | right.missing
        if not left.type.planar:
            return _relate_geographies(self.operation, left, right, missing_rows)
        matches = call_shapely(getattr(shapely, self.operation), left.shapes(), right.shapes())
        return pa.array(matches, mask=missing_rows)


def _relate_geographies(operation: Operation, left: Geometries, right: Geometries, missing_rows: Any) -> pa.Array:
    """Evaluate a predicate once for each distinct geometry of ``right``, on all rows with this geometry."""
    from pqext.geo.predicates.predicate import SpatialPredicate

    matches = np.zeros(len(missing_rows), np.bool_)
    unknown = missing_rows.copy()
    distinct = right.wkb.dictionary_encode()
    codes = distinct.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    queries = Geometries(distinct.dictionary, right.type).shapes()
    for code, query in enumerate(queries):
        rows = np.flatnonzero((codes == code) & ~missing_rows)
        results = SpatialPredicate(operation, query).relate(left.wkb.take(pa.array(rows)), left.type)
        matches[rows] = pc.fill_null(results, False).to_numpy(zero_copy_only=False)
        unknown[rows] = results.is_null().to_numpy(zero_copy_only=False)
    return pa.array(matches, mask=unknown)


PAIRS = {
    name: ArrowFunction(name, (GEOMETRIES, GEOMETRIES), T.BooleanType(), _PairPredicate(operation))
    for name, operation in _OPERATIONS.items()
}
