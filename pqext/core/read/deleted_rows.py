"""Divide the deleted rows of a file among its row groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pqext.core.base.errors import CorruptFileError

if TYPE_CHECKING:
    from pqext.core.read.row_group import RowGroup


def rows_by_group(
    positions: NDArray[np.int64], row_groups: Sequence[RowGroup], path: str | None
) -> dict[int, NDArray[np.int64]]:
    """Divide the row numbers ``positions`` of a file among the row groups. The results are numbered within their row
    group.

    Raises ``CorruptFileError`` if ``positions`` do not ascend or exceed the file.
    """
    ends = np.cumsum([0, *(group.num_rows for group in row_groups)])
    if len(positions) and (positions[0] < 0 or positions[-1] >= ends[-1] or bool((np.diff(positions) <= 0).any())):
        raise CorruptFileError(
            f"the table deletes row {positions[-1] if positions[0] >= 0 else positions[0]}, but the file has "
            f"{ends[-1]} rows: the file or its delete file was replaced; reload the table",
            path=path,
        )
    cuts = np.searchsorted(positions, ends)
    return {
        index: positions[start:stop] - ends[index]
        for index, (start, stop) in enumerate(pairwise(cuts))
        if start < stop
    }


def exclude_rows(rows: Sequence[range], deleted_rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row numbers in ``rows`` that are not in ``deleted_rows``."""
    first, stop = rows[0].start, rows[-1].stop
    flags = np.zeros(stop - first, np.bool_)
    for part in rows:
        flags[part.start - first : part.stop - first] = True
    flags[deleted_rows[np.searchsorted(deleted_rows, first) : np.searchsorted(deleted_rows, stop)] - first] = False
    return np.flatnonzero(flags) + np.int64(first)
