import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

_Values = NDArray[np.uint8] | NDArray[np.int16] | NDArray[np.int32]

def decode_into(data: Readable, width: int, limit: int, out: _Values) -> int: ...
def encode(values: _Values, width: int) -> bytes: ...
