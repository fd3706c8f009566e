from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift import StructIndex

def chunk_places(chunks: StructIndex, leaves: Sequence[tuple[int, int, bytes]]) -> NDArray[np.int64]: ...
