import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

_Values = NDArray[np.float32] | NDArray[np.float64]

def powers() -> tuple[list[float], list[float], list[float], list[float]]: ...
def decode_into(data: Readable, out: _Values) -> None: ...
def encode(values: _Values) -> Readable: ...
