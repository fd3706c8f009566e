import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

def flag_superseded(
    maps: Readable, data: Readable, offsets: Readable | None, width: int, count: int, keep: NDArray[np.uint8], seed: int
) -> int: ...
