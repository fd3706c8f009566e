from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift.reader import StructIndex

class Names(Sequence[str]):
    """Names of schema elements, in the bytes of the footer."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int) -> str: ...  # type: ignore[override]
    def find(self, name: bytes, start: int, stop: int) -> int:
        """Return the first element from ``start`` up to ``stop`` with this name, or -1."""

def elements(index: StructIndex) -> tuple[Names, int, NDArray[np.int32], NDArray[np.int8], NDArray[np.uint8]]:
    """Read the schema elements.

    Return (names, position of the first name that is not UTF-8 or -1, numbers of children, repetition types or -1,
    flags of the elements that have a type).
    """

def levels(
    children: NDArray[np.int32], repetition: NDArray[np.int8], typed: NDArray[np.uint8], max_depth: int
) -> tuple[str, int, Sequence[memoryview[int]]]:
    """Compute the levels and leaves of schema elements, which are listed depth-first.

    Return (fault, position of the fault, arrays). The fault is empty if the elements form a tree. Five int32 arrays
    have an item per element: the definition level, the repetition level, the first leaf, the end of the leaves, and the
    end of the descendants. The sixth array has an item per leaf: the position of its element.
    """
