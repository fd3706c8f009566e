from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.encode.page_boundaries import PageBoundaries

def offset_index(cuts: PageBoundaries, base: int, measured: bool) -> bytes:
    """Serialise the OffsetIndex of pages at locations relative to ``base``; ``measured``: with byte array sizes."""

def column_index(
    cuts: PageBoundaries,
    minima: Sequence[bytes],
    maxima: Sequence[bytes],
    boundary_order: int,
    definition: NDArray[np.int64] | None,
    repetition: NDArray[np.int64] | None,
    nan_counts: Sequence[int] | None,
) -> bytes:
    """A serialised ColumnIndex: bounds of each page, and how often each has each level, one row per page."""

def placed_columns(
    columns: Sequence[bytes],
    column_indexes: Sequence[bytes | None],
    column_start: int,
    offset_indexes: Sequence[bytes | None],
    offset_start: int,
) -> bytes:
    """The list of ColumnChunk structures of a row group with its header.

    ``columns`` are the chunks up to ``meta_data``, without the end of the structure; they get the locations of their
    indexes, which follow each other from ``column_start`` and ``offset_start`` of the file.
    """

def read_page_locations(data: Any, start: int, stop: int, rows: int) -> tuple[list[int], list[int], list[int]] | None:
    """Return the offsets, sizes and first rows of the pages in a serialised OffsetIndex.

    None unless the pages follow each other within the chunk from ``start`` to ``stop`` and its ``rows``.
    """
