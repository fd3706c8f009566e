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

    With 4 lines Z and M are left out. ``xmin > xmax`` where a box wraps. Edges run over an ellipsoid with the squared
    eccentricity ``e2`` and ``ratio`` of polar to equatorial axis; ``turn`` bounds, in radians, how far the algorithm
    that draws them misses their direction. Rows whose coordinates are no longitude and latitude are flagged in
    ``outside`` and have no X and Y. Raises GeometryError with the row, without ``outside`` for these too.
    """
