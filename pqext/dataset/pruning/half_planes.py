"""Prune by bounding boxes: conditions on coordinates of geometries imply that they intersect a half-plane.

``st_x(geom) >= 5`` is true only of points with X of at least 5, and ``st_xmin(geom) <= 5`` only of geometries with a
vertex whose X is at most 5. A row group or page whose box is outside cannot match. The converse is not true: other
geometries intersect the half-plane as well. A point with NaN as X has a Y, although it intersects nothing.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import TYPE_CHECKING

from pqext.dataset.expressions import Column, Comparison, SpatialValue

if TYPE_CHECKING:
    from pqext.geo.predicates.predicate import SpatialPredicate

_ACROSS = frozenset({"st_x", "st_xmin", "st_xmax"})
_ALONG = frozenset({"st_y", "st_ymin", "st_ymax"})
_MOST = sys.float_info.max


def half_plane(condition: Comparison) -> tuple[Column, SpatialPredicate] | None:
    """Return the column and the predicate that a comparison of a planar coordinate with a number implies.

    None for other conditions, and for numbers beyond doubles.
    """
    operand, value = condition.operand, condition.value
    if not isinstance(operand, SpatialValue) or operand.function not in _ACROSS | _ALONG:
        return None
    (column,) = operand.arguments
    if not isinstance(column, Column) or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if not -_MOST < value < _MOST or condition.operator == "!=":
        return None
    low = -_MOST if condition.operator in ("<", "<=") else math.nextafter(float(value), -math.inf)
    high = _MOST if condition.operator in (">", ">=") else math.nextafter(float(value), math.inf)
    from pqext.geo.predicates.predicate import HalfPlane

    is_across = operand.function in _ACROSS
    box = (low, -_MOST, high, _MOST) if is_across else (-_MOST, low, _MOST, high)
    return column, HalfPlane("intersects", box)
