import numpy as np
from numpy.typing import NDArray

def encode(values: NDArray[np.uint8] | NDArray[np.int16] | NDArray[np.int32], width: int) -> bytes: ...
def encode_same(level: int, count: int, width: int) -> bytes:
    """``count`` times one level of at most ``width`` bits, as :func:`encode` writes them."""
