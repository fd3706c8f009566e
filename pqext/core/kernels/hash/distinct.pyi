from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.buffer import Memory

def index_array(
    first: Any, second: Any, start: int, width: int, limit: int, indices: NDArray[np.int32]
) -> tuple[int, Memory, Memory]:
    """Number the distinct values of an Arrow array in the order of their first occurrence.

    They are those from number ``start`` on of ``width`` bytes each in the buffer ``first``, or, when ``width`` is 0,
    between its int32 offsets in ``second``. Fills ``indices``, one per value, up to the value that would make more than
    ``limit`` bytes of entries. Returns (values indexed, int32 offsets of the entries, their bytes).
    """
