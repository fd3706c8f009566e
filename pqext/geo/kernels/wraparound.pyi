import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Longitudes:
    """The x intervals of geometries, gathered over any number of columns."""

    def add(self, column: WkbColumn) -> None:
        """Enter the planar interval of every geometry; raises GeometryError on bytes that are no geometry."""

    def add_intervals(self, west: NDArray[np.float64], east: NDArray[np.float64]) -> None:
        """Enter intervals; ``west > east`` crosses the antimeridian, NaN is no interval."""

    def widest_gap(self) -> tuple[float, float] | None:
        """West and east end of the widest stretch of [-180, 180] that no geometry's interval covers."""
