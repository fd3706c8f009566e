"""The row order of a file by one of its geometry columns (the writer option ``order``), and boundaries of row groups
and pages that keep their boxes small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.geo.kernels.cutting import cheapest_cuts
from pqext.geo.layout.curves import order_of, row_boxes
from pqext.geo.storage import GeometryStorage

if TYPE_CHECKING:
    from pqext.core.schema.annotations import Storage

_STEPS = 64
"""Places among the most rows of a part where it may end."""
_EXTRA = 1.0
"""What a part costs beyond its rows, as a share of the most rows: pages are not to be smaller than they need be."""
PAGE_ROWS = 2048
"""Rows of a page at most where rows are ordered: a small query reads whole pages of every column it needs."""


def cuts(
    boxes: NDArray[np.float64], at_most: int, order: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The first rows of parts of ``at_most`` rows, and about half as many at least but for the last.

    ``boxes`` are lines xmin, xmax, ymin, ymax, one column a row, NaN where a row has none; ``order`` numbers the rows
    in the order in which they are cut. The parts are those for
    which a query of the size of a typical part's box, anywhere in the plane, reads the fewest rows.
    """
    rows = boxes.shape[1]
    step = max(1, at_most // _STEPS)
    firsts = np.arange(0, rows, step)
    if rows <= at_most:
        return firsts[:1]
    most = at_most // step
    blocks = np.empty((4, len(firsts)))
    for line, (reduce, missing) in enumerate(((np.fmin, np.inf), (np.fmax, -np.inf)) * 2):
        found = reduce.reduceat(boxes[line] if order is None else boxes[line][order], firsts)
        blocks[line] = np.where(np.isfinite(found), found, missing)
    width, height = _typical(blocks, most)
    costs, starts = np.empty(len(firsts) + 1), np.empty(len(firsts) + 1, dtype=np.int64)
    cheapest_cuts(blocks, width, height, _EXTRA * most, (most + 1) // 2, most, costs, starts)
    chosen: list[int] = []
    at = len(firsts)
    while at:
        at = int(starts[at])
        chosen.append(at)
    return np.array(chosen[::-1]) * step


def _typical(blocks: NDArray[np.float64], most: int) -> tuple[float, float]:
    """Median width and height of the boxes around ``most`` blocks each; 1 where there are none, or points only."""
    firsts = np.arange(0, blocks.shape[1], most)
    sides = []
    for low, high in ((0, 1), (2, 3)):
        side = np.maximum.reduceat(blocks[high], firsts) - np.minimum.reduceat(blocks[low], firsts)
        side = side[np.isfinite(side) & (side > 0)]
        sides.append(float(np.median(side)) if len(side) else 1.0)
    return sides[0], sides[1]


class OrdersRows:
    """What makes the handler one that arranges rows: see :class:`pqext.core.schema.annotations.ArrangesRows`."""

    def orders_rows(self, storage: Storage) -> bool:
        """Does the column's option name a curve?"""
        return GeometryStorage.of(storage).order is not None

    def row_groups(
        self, storage: Storage, values: pa.ChunkedArray, at_most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows along the curve that fills the column's extent, cut where the boxes of row groups stay small."""
        boxes = row_boxes(GeometryStorage.of(storage).wkb(values))
        order = _order(storage, boxes)
        return order, cuts(boxes, at_most, order)

    def pages(
        self, storage: Storage, values: pa.ChunkedArray, at_most: int, sort: bool
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """The order of the rows of a row group and the ends of its pages, of :data:`PAGE_ROWS` rows at most."""
        boxes = row_boxes(GeometryStorage.of(storage).wkb(values))
        order = _order(storage, boxes) if sort else None
        return order, cuts(boxes, min(at_most, PAGE_ROWS), order)


def _order(storage: Storage, boxes: NDArray[np.float64]) -> NDArray[np.int64]:
    chosen = GeometryStorage.of(storage)
    return order_of(boxes, None, chosen.order or "hilbert", chosen.type.planar)
