import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift.reader import StructIndex

def read_row_group_files(groups: StructIndex) -> tuple[list[bytes], list[int], list[int]] | None:
    """Return the file name, the row count and the offset of the first data page of each row group.

    None if a row group has chunks in several files, in none, or encrypted.
    """

def count_rows(groups: StructIndex) -> int | None:
    """Return the rows of all row groups together; None if a count is negative or a row group unusual."""

def struct_offsets(index: StructIndex) -> NDArray[np.int64]:
    """Return the offset of each structure of a list in its buffer, and the end of the last."""

def nested_struct_offsets(index: StructIndex, position: int, count: int) -> NDArray[np.int64] | None:
    """Return the offsets of the ``count`` structures in the list of one structure; None if they are unknown."""

def equal_bytes(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> bool: ...
