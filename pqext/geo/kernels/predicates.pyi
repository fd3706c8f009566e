import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

def test_box(
    column: WkbColumn,
    west: float,
    east: float,
    south: float,
    north: float,
    out: NDArray[np.uint8],
    strict: bool,
) -> int: ...
