import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

def fill(listed: Readable, keys: NDArray[np.int64], used: NDArray[np.uint8]) -> None: ...
def holds(
    keys: NDArray[np.int64],
    used: NDArray[np.uint8],
    least: int,
    most: int,
    values: NDArray[np.int32] | NDArray[np.int64],
    bits: NDArray[np.uint8],
) -> None: ...
def look_up(flags: NDArray[np.uint8], indices: NDArray[np.int32], bits: NDArray[np.uint8]) -> None: ...
