import numpy as np
from numpy.typing import NDArray

def nearest(
    segments: NDArray[np.float64],
    offsets: NDArray[np.int64],
    query: NDArray[np.float64],
    blocks: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
