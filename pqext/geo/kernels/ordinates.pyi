from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

def take_coordinates(column: WkbColumn) -> tuple[Any, Any]: ...
def with_coordinates(column: WkbColumn, values: NDArray[np.float64]) -> tuple[Any, Any]: ...
def with_oriented_rings(column: WkbColumn, spherical: bool) -> tuple[Any, Any, bool]: ...
