import numpy as np
from numpy.typing import NDArray

def cheapest_cuts(
    boxes: NDArray[np.float64],
    width: float,
    height: float,
    extra: float,
    least: int,
    most: int,
    costs: NDArray[np.float64],
    starts: NDArray[np.int64],
) -> None: ...
