import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Longitudes:
    """X intervals of geometries, collected over any number of columns.

    ``first`` and ``last`` bound all intervals. Gaps narrower than ``least`` degrees, or than a cell of 360/4096
    degrees, are ignored.
    """

    def __init__(self, first: float = -180.0, last: float = 180.0, least: float = 0.0) -> None: ...
    @property
    def settled(self) -> bool:
        """Return whether further intervals cannot change the result."""

    def add(self, column: WkbColumn) -> None:
        """Add the planar interval of every geometry. Raises GeometryError if WKB is invalid."""

    def add_intervals(self, west: NDArray[np.float64], east: NDArray[np.float64]) -> None:
        """Add intervals. An interval with ``west > east`` crosses the antimeridian; NaN is skipped."""

    def widest_gap(self) -> tuple[float, float] | None:
        """Return (west, east) of the widest gap between intervals in [-180, 180]; None if there is no gap."""
