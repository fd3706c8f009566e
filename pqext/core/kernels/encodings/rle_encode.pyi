import numpy as np
from numpy.typing import NDArray

def encode(values: NDArray[np.uint8] | NDArray[np.int16] | NDArray[np.int32], width: int) -> bytes: ...
