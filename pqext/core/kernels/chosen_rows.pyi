from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable
from pqext.core.kernels.page_table import PageTable
from pqext.core.kernels.zstd import Context

class Chosen:
    count: int
    scratch: int
    size: int
    def __init__(
        self, table: PageTable, places: NDArray[np.int64], width: int, boolean: bool, highest: int
    ) -> None: ...
    def look(self, packed: bool, zstd: bool, crc32: Callable[[Readable], int] | None) -> bool: ...
    def unpack(self, function: Callable[[Sequence[Readable], Sequence[int]], Sequence[Readable]]) -> None: ...
    def decode(
        self, context: Context | None, dictionary: tuple[int, Readable, Readable | None] | None,
        levels: NDArray[np.int16] | None, validity: NDArray[np.uint8], values: NDArray[np.uint8] | None,
        ends: NDArray[np.int32] | None, taking: Callable[[int], None],
    ) -> tuple[int, Readable] | None: ...
