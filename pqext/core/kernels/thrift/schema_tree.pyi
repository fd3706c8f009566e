from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift.reader import StructIndex

class Names(Sequence[str]):
    """The names of schema elements, in the footer's bytes."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int) -> str: ...  # type: ignore[override]
    def find(self, name: bytes, start: int, stop: int) -> int:
        """Return the first element from ``start`` to ``stop`` with this name, or -1."""

def elements(index: StructIndex) -> tuple[Names, int, NDArray[np.int32], NDArray[np.int8], NDArray[np.uint8]]:
    """Names, the first that is not UTF-8 or -1, children, repetition types (-1: none) and whether there is a type."""

def levels(
    children: NDArray[np.int32], repetition: NDArray[np.int8], typed: NDArray[np.uint8], max_depth: int
) -> tuple[str, int, Sequence[memoryview[int]]]:
    """Follow the depth-first list of schema elements with an explicit stack.

    Returns (fault, position of the fault, arrays); the fault is empty when the list is a tree. The arrays, int32
    one an element, contain definition level, repetition level, first leaf, leaf after the last, element after the
    last below; the sixth, one a leaf, its element.
    """
