import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable

UNDECIDED: int

_Longs = NDArray[np.int64]
_Offsets = NDArray[np.int32] | NDArray[np.int64]
_Words = NDArray[np.uint64]
_Hashes = NDArray[np.uint32]

def insert_longs(values: _Longs, functions: int, words: _Words) -> None: ...
def insert_bytes(data: Readable, offsets: _Offsets, functions: int, words: _Words) -> None: ...
def query_cells(
    data: Readable, offsets: _Offsets, prefix: Readable, longs: _Longs, text: Readable, ends: _Longs, hashes: _Hashes,
    out: NDArray[np.uint8],
) -> None: ...
def query_payload(data: Readable, longs: _Longs, text: Readable, ends: _Longs, hashes: _Hashes) -> bool: ...
