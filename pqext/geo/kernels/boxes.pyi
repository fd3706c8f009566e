import numpy as np
from numpy.typing import NDArray

from pqext.geo.kernels.wkb import WkbColumn

class Summary:
    """What all rows of a column have in common.

    ``box`` holds xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax, None where a dimension has no value;
    ``types`` the sorted ISO type codes; ``rows`` counts the values that are not null; ``extended`` tells of
    EWKB headers; ``srids`` has the first two different SRIDs other than 0, each with its first row.
    """

    box: tuple[float | None, ...]
    types: list[int]
    rows: int
    extended: bool
    srids: list[tuple[int, int]]

def summarize(column: WkbColumn, strict: bool = False) -> Summary: ...
def summarize_parts(
    column: WkbColumn,
    starts: NDArray[np.int64],
    boxes: NDArray[np.float64],
    types: NDArray[np.uint32],
    rows: NDArray[np.int64],
) -> Summary: ...
def row_boxes(column: WkbColumn, out: NDArray[np.float64]) -> tuple[int, int]: ...
