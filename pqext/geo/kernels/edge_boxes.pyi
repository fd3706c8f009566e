import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

def edge_boxes(
    column: WkbColumn,
    out: NDArray[np.float64],
    e2: float,
    ratio: float,
    turn: float,
    outside: NDArray[np.uint8] | None = None,
) -> tuple[int, int]:
    """Fill ``out`` as :func:`pqext.geo.kernels.boxes.row_boxes` does, with boxes around whole edges.

    With 4 rows Z and M are omitted. ``xmin > xmax`` if a box wraps. Edges lie on an ellipsoid with the squared
    eccentricity ``e2`` and ``ratio`` of polar to equatorial axis; ``turn`` bounds the error of the algorithm in the
    azimuth of edges, in radians. Rows whose coordinates are out of range are flagged in
    ``outside`` and have no X and Y. Raises GeometryError with the row; without ``outside`` also for these rows.
    """
