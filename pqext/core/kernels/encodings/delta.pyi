import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

_Values = NDArray[np.int32] | NDArray[np.int64]

def decode_into(data: Readable, out: _Values, exact: bool = False) -> int: ...
def encode(values: _Values) -> Readable: ...
