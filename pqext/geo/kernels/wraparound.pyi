import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Longitudes:
    """The x intervals of geometries, gathered over any number of columns.

    ``first`` and ``last`` are where they lie at most; gaps narrower than ``least`` degrees, or than a cell of
    360/4096, do not count.
    """

    def __init__(self, first: float = -180.0, last: float = 180.0, least: float = 0.0) -> None: ...
    @property
    def settled(self) -> bool:
        """Return whether no gap can remain, whatever is entered."""

    def add(self, column: WkbColumn) -> None:
        """Enter the planar interval of every geometry; raises GeometryError if WKB is invalid."""

    def add_intervals(self, west: NDArray[np.float64], east: NDArray[np.float64]) -> None:
        """Enter intervals; ``west > east`` crosses the antimeridian, NaN is skipped."""

    def widest_gap(self) -> tuple[float, float] | None:
        """West and east end of the widest stretch of [-180, 180] that no geometry's interval covers."""
