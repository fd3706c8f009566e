from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

_Number = TypeVar("_Number", np.uint8, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64)
_Positions = NDArray[np.int64]

def extremes(
    values: NDArray[_Number], starts: _Positions, low: NDArray[_Number], high: NDArray[_Number], nans: _Positions
) -> None: ...
def byte_extremes(
    data: Readable,
    offsets: NDArray[np.int32],
    width: int,
    is_signed: bool,
    starts: _Positions,
    low: _Positions,
    high: _Positions,
) -> None: ...
def level_counts(levels: NDArray[np.int16], starts: _Positions, highest: int, out: _Positions) -> None: ...
