import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

def widen(
    data: Readable, offsets: Readable | None, length: int, count: int, precision: int, out: NDArray[np.uint8]
) -> None: ...
def narrow(words: Readable, width: int, length: int, precision: int, out: NDArray[np.uint8]) -> None: ...
