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
    """Fill ``out`` like :func:`pqext.geo.kernels.boxes.row_boxes`, with boxes that include the interior of edges.

    If a box wraps, ``xmin > xmax``. With 4 rows, Z and M are omitted. Edges are on an ellipsoid with squared
    eccentricity ``e2``, and ``ratio`` is the polar divided by the equatorial axis. ``turn`` bounds the error of the
    algorithm in the azimuth of edges, in radians. Rows whose coordinates are out of range are flagged in ``outside``
    and have no X and Y. Raises GeometryError with the row if WKB is invalid, or if coordinates are out of range and
    ``outside`` is None.
    """
