import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.page_run import PageRun

SPARE: int

def decompress(run: PageRun, out: NDArray[np.uint8]) -> None: ...
