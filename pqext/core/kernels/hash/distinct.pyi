from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.buffer import Memory

def index_array(
    first: Any, second: Any, start: int, width: int, limit: int, indices: NDArray[np.int32]
) -> tuple[int, Memory, Memory]:
    """Number the distinct values of an Arrow array in the order of their first occurrence.

    The first value is item ``start`` of the buffer ``first``. Items have ``width`` bytes each. If ``width`` is 0, items
    are the int32 offsets of byte arrays in ``second``. Fill ``indices``, one per value, up to the value with which the
    entries would exceed ``limit`` bytes. Return (number of indexed values, int32 offsets of the entries, bytes of the
    entries).
    """
