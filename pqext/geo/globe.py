"""Exact predicates on the globe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.errors import UnsupportedError
from pqext.geo import planar
from pqext.geo.box import BoundingBox
from pqext.geo.box_answers import BoxTest, Region
from pqext.geo.summary import only_points
from pqext.geo.wkb import summaries

if TYPE_CHECKING:
    from pqext.geo.kernels.wkb import WkbColumn
    from pqext.geo.predicates import SpatialPredicate
    from pqext.geo.types import GeospatialType


def box_test(predicate: SpatialPredicate, type: GeospatialType) -> BoxTest:
    """The test of boxes around geometries on the globe."""
    box, query = predicate.box, predicate.geometry
    if box is None:
        return BoxTest(predicate.operation, None, None, None, 0.0, True)
    is_box = isinstance(query, BoundingBox)
    if (not is_box and query.geom_type not in ("Point", "MultiPoint")) or predicate.distance:
        box = BoundingBox(-180.0, 180.0, -90.0, 90.0)
    outer = Region.of(box, globe=True)
    return BoxTest(predicate.operation, outer, outer if is_box else None, outer, 0.0, True)


def decide(
    predicate: SpatialPredicate, type: GeospatialType, chunk: pa.Array, column: WkbColumn, row: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The answer for each row of ``chunk``, and which are null."""
    types = {code for part in summaries(chunk) for code in part.types}
    has_edges = not isinstance(predicate.geometry, BoundingBox) and predicate.geometry.geom_type not in (
        "Point",
        "MultiPoint",
    )
    if has_edges or not only_points(types) or predicate.distance:
        raise UnsupportedError(
            "exact predicates on edges that are not planar are not computed yet",
            feature=f"predicates on {type.edges} edges",
        )
    return planar.decide(predicate, type, chunk, column, row)
