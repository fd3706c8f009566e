from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_Bytes = NDArray[np.uint8]

class PageRun:
    size: int
    total: int
    pages: list[_Bytes]
    counts: list[int]
    def __init__(self, pages: Iterable[_Bytes], counts: Iterable[int]) -> None: ...
    def copy_into(self, width: int, out: _Bytes) -> None: ...
