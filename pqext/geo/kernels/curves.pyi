import numpy as np
from numpy.typing import NDArray

def positions(
    zorder: bool,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    xmin: float,
    xmax: float,
    ymin: float,
    ymax: float,
    out: NDArray[np.uint64],
) -> None: ...
