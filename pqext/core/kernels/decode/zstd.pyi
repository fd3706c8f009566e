from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

class Context:
    def __init__(self, make: int, free: int, decompress: int, is_error: int) -> None: ...
    def unpack_all(self, pages: Sequence[Readable], sizes: Sequence[int], out: NDArray[np.uint8]) -> int: ...
