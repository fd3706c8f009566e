"""The rows of a file in the order of one of its geometry columns: option ``order`` of the writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.geo.layout.curves import order_of, row_boxes
from pqext.geo.layout.cutting import cuts
from pqext.geo.storage import GeometryStorage

if TYPE_CHECKING:
    from pqext.core.schema.annotations import Storage

PAGE_ROWS = 2048
"""Rows of a page at most where rows are ordered: a small query reads whole pages of every column it needs."""


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
