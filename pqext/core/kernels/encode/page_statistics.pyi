from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels import Readable
from pqext.core.kernels.encode.page_boundaries import PageBoundaries

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
def byte_bounds(
    offsets: Any, data: Any, start: int, width: int, is_signed: bool, cuts: PageBoundaries
) -> tuple[list[bytes | None], list[bytes | None]]:
    """Each page's least and greatest byte array, ``None`` for a page without values.

    Value 0 is number ``start`` between int32 ``offsets``, or of the ``width`` bytes each when ``width`` is not 0.
    """

def number_bounds(
    values: Any, start: int, code: str, cuts: PageBoundaries
) -> tuple[list[bytes | None], list[bytes | None], list[int]] | None:
    """PLAIN bytes of each page's least and greatest number, ``None`` for a page without any, and its number of NaN.

    ``values`` is a buffer whose number ``start`` is the first value; ``code`` is their numpy type code: "i4",
    "u4", "i8", "u8", "f4" or "f8". A zero bound of floats has the sign that widens it. ``None`` for unaligned values.
    """
