"""Prune by bounding boxes: comparisons of coordinates and distances imply spatial predicates on a column.

``st_x(geom) >= 5`` is true only of points whose X is at least 5, and ``st_xmin(geom) <= 5`` only of geometries with a
vertex whose X is at most 5: both intersect a half-plane. ``st_distance(geom, p) < 3`` is true only of geometries within
a distance of 3 from ``p``. A row group or page whose box lies outside cannot match. The converse is not true: other
geometries may also intersect the half-plane. A point whose X is NaN has a valid Y although it intersects nothing.

Predicates on computed geometries are tested with boxes around the results. For ``st_intersects(st_buffer(geom, 3), p)``
these are larger by 3 on each side.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pqext.dataset.expressions import Column, Comparison, Operand, Spatial, SpatialValue
from pqext.dataset.expressions.spatial import query_of
from pqext.dataset.expressions.spatial_functions import spatial_function

if TYPE_CHECKING:
    from pqext.dataset.expressions.spatial import Geometry
    from pqext.geo.functions.table import GeometryFunction
    from pqext.geo.predicates.predicate import SpatialPredicate

_ACROSS = frozenset({"st_x", "st_xmin", "st_xmax"})
_ALONG = frozenset({"st_y", "st_ymin", "st_ymax"})
_MOST = sys.float_info.max


def implied_predicate(condition: Comparison) -> tuple[Column, SpatialPredicate] | None:
    """Return a column and a spatial predicate implied by a comparison of a coordinate or distance with a number.

    Return None for other conditions, and for numbers that do not fit into a double.
    """
    operand, value = condition.operand, condition.value
    if not isinstance(operand, SpatialValue) or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not -_MOST < value < _MOST or condition.operator == "!=":
        return None
    if operand.function == "st_distance":
        return _distance_predicate(operand, float(value)) if condition.operator in ("<", "<=", "==") else None
    if operand.function not in _ACROSS | _ALONG or not isinstance(operand.arguments[0], Column):
        return None
    low = -_MOST if condition.operator in ("<", "<=") else math.nextafter(float(value), -math.inf)
    high = _MOST if condition.operator in (">", ">=") else math.nextafter(float(value), math.inf)
    from pqext.geo.predicates.predicate import HalfPlane

    is_across = operand.function in _ACROSS
    box = (low, -_MOST, high, _MOST) if is_across else (-_MOST, low, _MOST, high)
    return operand.arguments[0], HalfPlane("intersects", box)


def result_predicate(condition: Spatial) -> SpatialPredicate | None:
    """Convert a condition on computed geometries to a predicate that the boxes of the input column can disprove.

    Return None if boxes cannot disprove the condition, because the geometries are computed from several columns or an
    empty result may match.
    """
    functions: list[tuple[GeometryFunction, tuple[Any, ...]]] = []
    operand = condition.operand
    while isinstance(operand, SpatialValue):
        if len(operand.operands) != 1:
            return None
        constants = tuple(item for item in operand.arguments if not isinstance(item, Operand))
        functions.insert(0, (spatial_function(operand.function), constants))
        (operand,) = operand.operands
    from pqext.geo.functions.result_predicate import ResultPredicate, prunes

    query = query_of(condition.geometry)
    result = ResultPredicate(condition.operation, query, condition.distance, functions=tuple(functions))
    return result if prunes(result, [function for function, _ in functions]) else None


def distance_arguments(operand: Operand) -> tuple[Column, Geometry] | None:
    """Return the column and the constant geometry of an ``st_distance`` operand; None for other operands."""
    if not isinstance(operand, SpatialValue) or operand.function != "st_distance":
        return None
    match operand.arguments:
        case (Column() as column, bytes() | tuple() as geometry) | (bytes() | tuple() as geometry, Column() as column):
            return column, geometry
    return None


def _distance_predicate(operand: SpatialValue, distance: float) -> tuple[Column, SpatialPredicate] | None:
    from pqext.geo.predicates.predicate import MeasuredDistance

    arguments = distance_arguments(operand)
    if arguments is None or distance < 0:  # no distance is negative, but the rows must be read to report errors in them
        return None
    column, geometry = arguments
    try:
        return column, MeasuredDistance("dwithin", query_of(geometry), math.nextafter(distance, math.inf))
    except ValueError:  # coordinates are NaN or infinite, so distances are undefined
        return None
