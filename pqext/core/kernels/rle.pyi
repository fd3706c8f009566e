import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable
from pqext.core.kernels.page_run import PageRun

_Values = NDArray[np.uint8] | NDArray[np.int16] | NDArray[np.int32]

def decode_into(data: Readable, width: int, limit: int, out: _Values) -> int: ...
def decode_run(run: PageRun, width: int, limit: int, out: _Values) -> None: ...
def look_up_run(
    run: PageRun, values: Readable, value_width: int, entries: int, out: NDArray[np.uint8]
) -> None: ...
def decode_flags(run: PageRun, out: NDArray[np.uint8], ones: NDArray[np.int64]) -> None: ...
