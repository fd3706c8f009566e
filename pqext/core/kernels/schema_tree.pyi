from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift import StructIndex

def elements(
    index: StructIndex,
) -> tuple[list[str | None], NDArray[np.int32], NDArray[np.int8], NDArray[np.uint8]]:
    """Names (None where one is not UTF-8), children, repetition types (-1: none) and whether there is a type."""

def levels(
    children: NDArray[np.int32], repetition: NDArray[np.int8], typed: NDArray[np.uint8], max_depth: int
) -> tuple[str, int, Sequence[memoryview[int]]]:
    """Follow the depth-first list of schema elements with an explicit stack.

    Returns (fault, position of the fault, arrays); the fault is empty when the list is a tree. The arrays, int32
    one an element, hold definition level, repetition level, first leaf, leaf behind the last, element behind the
    last below; the sixth, one a leaf, its element.
    """
