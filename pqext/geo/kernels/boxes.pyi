import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Summary:
    """Summary of all rows of a column, fully validated: raises GeometryError with row and byte.

    ``box`` holds xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax, None for dimensions without values;
    ``types`` the sorted ISO type codes; ``rows`` the number of values that are not null; ``extended`` whether there are
    EWKB headers, ``hollow`` whether there are parts or holes without coordinates; ``srids`` the first two distinct
    SRIDs other than 0, each with its first row.
    """

    box: tuple[float | None, ...]
    types: list[int]
    rows: int
    extended: bool
    hollow: bool
    srids: list[tuple[int, int]]

    def __init__(self, column: WkbColumn, strict: bool = False) -> None: ...
    def is_of(self, column: WkbColumn) -> bool:
        """Return whether ``column`` shares the buffers of the summarized column, and has its rows."""

    def parts(
        self,
        starts: NDArray[np.int64],
        boxes: NDArray[np.float64],
        types: NDArray[np.uint32],
        rows: NDArray[np.int64],
    ) -> None:
        """Summarize each segment of rows, from one number in ``starts`` to the next.

        Fills xmin, xmax, ymin, ymax, the rows of ``boxes``, with NaN for segments without values, the bits
        8 * dims + base in ``types``, and the number of ``rows`` that are not null.
        """

def row_boxes(column: WkbColumn, out: NDArray[np.float64]) -> tuple[int, int]: ...
