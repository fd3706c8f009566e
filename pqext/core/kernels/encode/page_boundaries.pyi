from typing import Any

import numpy as np
from numpy.typing import NDArray

class PageBoundaries:
    """Rows, entries and values of each page of a chunk, and the location of each encoded page."""

    count: int

    @property
    def total_nulls(self) -> int:
        """Number of entries without a value in all pages."""
    def starts(self, what: str) -> NDArray[np.int64]:
        """Return the first row, entry or value of each page, and the end: ``what`` is "rows", "entries" or "values"."""
    def page(self, index: int) -> tuple[int, int, int]:
        """Return the numbers of rows, entries and values of one page."""
    def locate(self, index: int, offset: int, size: int) -> None:
        """Record the offset of a page in its chunk, and its size including the header."""
    def measure(self, offsets: Any, start: int) -> int:
        """Record the total size of the byte arrays of each page, and return the sum.

        ``offsets`` are int32; the first value begins at the offset with index ``start``. Raises ``ValueError`` if the
        offsets do not ascend, or if there are too few.
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
    """Split a chunk into pages of ``page_rows`` rows, or into pages that begin at the rows ``edges``, from 0.

    ``repetition`` and ``definition`` are the levels of all entries. Without repetition levels, each entry is a row.
    Without definition levels, each entry has a value, or no entry has a value if ``values`` is 0. ``highest`` is the
    definition level of values. Raises ``ValueError`` if levels, rows and values contradict each other.
    """
