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
    """Return (minima, maxima) of the byte arrays in each page, with ``None`` for a page without values.

    The first value is item ``start`` of ``data``. Items are between int32 ``offsets``, or have ``width`` bytes each if
    ``width`` is not 0.
    """

def number_bounds(
    values: Any, start: int, code: str, cuts: PageBoundaries
) -> tuple[list[bytes | None], list[bytes | None], list[int]] | None:
    """Return (minima, maxima, numbers of NaN) of each page; ``None`` if values are not aligned.

    Bounds are PLAIN bytes, or ``None`` for a page without numbers. The first value is item ``start`` of the buffer
    ``values``. ``code`` is the numpy type code: "i4", "u4", "i8", "u8", "f4" or "f8". A bound that is zero has the sign
    that includes both zeros.
    """
