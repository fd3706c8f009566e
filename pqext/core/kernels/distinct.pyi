import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable
from pqext.core.kernels.buffer import Memory

def index_fixed(values: Readable, width: int, limit: int, indices: NDArray[np.int32]) -> tuple[int, Memory, Memory]: ...
def index_byte_arrays(
    data: Readable, offsets: NDArray[np.int32], limit: int, indices: NDArray[np.int32]
) -> tuple[int, Memory, Memory]: ...
