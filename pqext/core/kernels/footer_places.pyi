import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift import StructIndex

def places(index: StructIndex) -> NDArray[np.int64]:
    """Where the structures of a list begin in their buffer, and where the last ends."""

def places_within(index: StructIndex, position: int, count: int) -> NDArray[np.int64] | None:
    """The same of the list of ``count`` structures within one of them; None where its places are not known."""

def same_bytes(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Are they equal?"""
