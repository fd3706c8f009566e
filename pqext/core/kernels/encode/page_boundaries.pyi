from typing import Any

import numpy as np
from numpy.typing import NDArray

class PageBoundaries:
    """Which rows, entries and values each page of a chunk holds, one after another, and later where each page lies."""

    count: int

    @property
    def total_nulls(self) -> int:
        """Entries without a value in all pages."""
    def starts(self, what: str) -> NDArray[np.int64]:
        """Where pages begin in "rows", "entries" or "values", and last where the chunk ends: count + 1 numbers."""
    def page(self, index: int) -> tuple[int, int, int]:
        """Rows, entries and values of one page."""
    def locate(self, index: int, offset: int, size: int) -> None:
        """Record the location of a page in its chunk, header included."""
    def measure(self, offsets: Any, start: int) -> int:
        """Note the bytes of each page's byte arrays, which lie between int32 ``offsets`` from the one at ``start``.

        Returns their sum. Raises ``ValueError`` if the offsets do not ascend or are too few.
        """

def split_pages(
    rows: int,
    page_rows: int,
    edges: NDArray[np.int64] | None,
    entries: int,
    repetition: NDArray[np.int16] | None,
    definition: NDArray[np.int16] | None,
    highest: int,
    values: int,
) -> PageBoundaries:
    """Pages of ``page_rows`` rows each, or those between ``edges``: the rows at which pages begin, 0 first.

    ``repetition`` and ``definition`` are the levels of all entries, ``None`` where all are the same; then each entry is
    a row, and each has a value, or none where ``values`` is 0. ``highest`` is the definition level of values. Raises
    ``ValueError`` when levels, rows and values contradict one another.
    """
