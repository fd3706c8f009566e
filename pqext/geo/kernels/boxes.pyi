import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Summary:
    """Summary of all rows of a column, which are validated. Raises GeometryError with the row and byte.

    ``box`` contains xmin, xmax, ymin, ymax, zmin, zmax, mmin and mmax, with None for dimensions without values.
    ``types`` are the sorted ISO type codes, and ``rows`` is the number of values that are not null. ``extended`` is
    true if any header is EWKB, and ``hollow`` if any part or hole has no coordinates. ``srids`` are the first two
    distinct SRIDs other than 0, each with its first row.
    """

    box: tuple[float | None, ...]
    types: list[int]
    rows: int
    extended: bool
    hollow: bool
    srids: list[tuple[int, int]]

    def __init__(self, column: WkbColumn, strict: bool = False) -> None: ...
    def is_of(self, column: WkbColumn) -> bool:
        """Return whether ``column`` has the same buffers and rows as the summarized column."""

    def parts(
        self,
        starts: NDArray[np.int64],
        boxes: NDArray[np.float64],
        types: NDArray[np.uint32],
        rows: NDArray[np.int64],
    ) -> None:
        """Summarize each segment of rows, from one number in ``starts`` to the next.

        Fill the rows xmin, xmax, ymin and ymax of ``boxes``, with NaN for segments without values; ``types`` with the
        bits 8 * dims + base; and ``rows`` with the number of rows that are not null.
        """

def row_boxes(column: WkbColumn, out: NDArray[np.float64]) -> tuple[int, int]: ...
