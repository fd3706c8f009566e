from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pqext.core.kernels.encode.page_boundaries import PageBoundaries

def offset_index(cuts: PageBoundaries, base: int, measured: bool) -> bytes:
    """Serialise the OffsetIndex of pages in a chunk at ``base``, with the sizes of byte arrays if ``measured``."""

def column_index(
    cuts: PageBoundaries,
    minima: Sequence[bytes],
    maxima: Sequence[bytes],
    boundary_order: int,
    definition: NDArray[np.int64] | None,
    repetition: NDArray[np.int64] | None,
    nan_counts: Sequence[int] | None,
) -> bytes:
    """Serialise the ColumnIndex. ``definition`` and ``repetition`` have a row of level counts for each page."""

def placed_columns(
    columns: Sequence[bytes],
    column_indexes: Sequence[bytes | None],
    column_start: int,
    offset_indexes: Sequence[bytes | None],
    offset_start: int,
) -> bytes:
    """Serialise the list of the ColumnChunk structures of a row group, and add the locations of their indexes.

    ``columns`` are serialised chunks up to ``meta_data``, without the end of the structure. Column indexes are
    consecutive from offset ``column_start`` of the file, and offset indexes from ``offset_start``.
    """

def read_page_locations(data: Any, start: int, stop: int, rows: int) -> tuple[list[int], list[int], list[int]] | None:
    """Return the offsets, sizes and first rows of the pages in a serialised OffsetIndex.

    Return None if the index is unusual, or if the pages are not in order within the chunk, which extends from ``start``
    to ``stop`` and has ``rows`` rows.
    """
