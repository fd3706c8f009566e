from typing import Any

import numpy as np
from numpy.typing import NDArray

class WkbColumn:
    """An Arrow binary array as the geometry kernels see it; its buffers stay referenced.

    ``first`` is the slice's offset, ``wide`` true for 64-bit offsets; errors count rows from ``row``.
    """

    def __init__(
        self, validity: Any, offsets: Any, data: Any, first: int, length: int, wide: bool, row: int = 0
    ) -> None: ...
    def __len__(self) -> int: ...

class Summary:
    """What all rows of a column have in common.

    ``box`` holds xmin, xmax, ymin, ymax, zmin, zmax, mmin, mmax, None where a dimension has no value;
    ``types`` the sorted ISO type codes; ``rows`` counts the values that are not null; ``extended`` tells of
    EWKB headers; ``srid_row`` is the first row with an SRID, or -1, ``srid`` its SRID, ``srids_differ``
    whether a later row has another.
    """

    box: tuple[float | None, ...]
    types: list[int]
    rows: int
    extended: bool
    srid_row: int
    srid: int
    srids_differ: bool

def summarize(column: WkbColumn, strict: bool = False) -> Summary: ...
def row_boxes(column: WkbColumn, out: NDArray[np.float64]) -> tuple[int, int]: ...
def to_iso(column: WkbColumn) -> tuple[Any, Any]: ...
