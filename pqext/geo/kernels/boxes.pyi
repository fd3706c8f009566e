import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Summary:
    """What all rows of a column have in common, every value checked: raises GeometryError with row and byte.

    ``box`` holds xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax, None where a dimension has no value;
    ``types`` the sorted ISO type codes; ``rows`` counts the values that are not null; ``extended`` tells of
    EWKB headers, ``hollow`` of parts or holes without coordinates; ``srids`` has the first two different SRIDs
    other than 0, each with its first row.
    """

    box: tuple[float | None, ...]
    types: list[int]
    rows: int
    extended: bool
    hollow: bool
    srids: list[tuple[int, int]]

    def __init__(self, column: WkbColumn, strict: bool = False) -> None: ...
    def is_of(self, column: WkbColumn) -> bool:
        """Does ``column`` lie in the very memory of the column that was summarized, and has its rows?"""

    def parts(
        self,
        starts: NDArray[np.int64],
        boxes: NDArray[np.float64],
        types: NDArray[np.uint32],
        rows: NDArray[np.int64],
    ) -> None:
        """What the rows of each part have in common: of those from one number in ``starts`` to the next.

        Fills xmin, xmax, ymin, ymax, the lines of ``boxes``, with NaN where a part has no value, its bits
        8 * dims + base in ``types`` and its count of ``rows`` that are not null.
        """

def row_boxes(column: WkbColumn, out: NDArray[np.float64]) -> tuple[int, int]: ...
