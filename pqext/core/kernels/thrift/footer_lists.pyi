import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.thrift.reader import StructIndex

def read_row_group_files(groups: StructIndex) -> tuple[list[bytes], list[int], list[int]] | None:
    """Return three lists: the file name, the row count and the offset of the first data page of each row group.

    Return None if the chunks of a row group have no file name, are in several files, or are encrypted, or if the
    metadata of a row group is unusual.
    """

def count_rows(groups: StructIndex) -> int | None:
    """Return the total number of rows of all row groups; None if a count is negative or the metadata is unusual."""

def struct_offsets(index: StructIndex) -> NDArray[np.int64]:
    """Return the offset of each structure of a list in its buffer, and the end of the last structure."""

def nested_struct_offsets(index: StructIndex, position: int, count: int) -> NDArray[np.int64] | None:
    """Return the offsets of the ``count`` structures in the list of one structure; None if they are unknown."""

def equal_bytes(left: NDArray[np.uint8], right: NDArray[np.uint8]) -> bool: ...
