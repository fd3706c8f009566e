"""Order rows along a space-filling curve, and split them into row groups and pages with small bounding boxes.

Consecutive positions on the Hilbert curve are neighbors. The Z-order (Morton) curve, which other tools use, has jumps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.schema.arrow_check import check_array, check_table
from pqext.core.schema.data_frames import drop_row_ranges
from pqext.core.write.row_order import find_column, take_positions
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.curves import positions
from pqext.geo.kernels.cutting import cheapest_cuts
from pqext.geo.storage import Curve, GeometryStorage
from pqext.geo.summary import row_values
from pqext.geo.types import array_type, type_of
from pqext.geo.wkb import GeometryArray, columns, require_bytes

if TYPE_CHECKING:
    from pqext.core.schema.annotations import Storage

CURVES: tuple[Curve, ...] = get_args(Curve)


def hilbert_index(x: Any, y: Any, bounds: BoundingBox) -> NDArray[np.uint64]:
    """Return the position of each point on the Hilbert curve of order 32 that fills ``bounds``.

    The curve starts in the lower left corner.

    ``x`` and ``y`` are sequences of numbers of the same length. Points outside are moved to the edge, NaN to the lower
    bound. Raises ValueError if the bounds wrap or are not finite, values are not numbers, or the lengths differ, and
    TypeError if ``bounds`` is not a :class:`BoundingBox`.

    >>> from pqext.geo import BoundingBox
    >>> corners = hilbert_index([0, 0, 1, 1], [0, 1, 1, 0], BoundingBox(xmin=0, xmax=1, ymin=0, ymax=1))
    >>> [int(corner) >> 62 for corner in corners]  # the quarter of the curve in which each corner lies
    [0, 1, 2, 3]
    """
    return _positions(x, y, bounds, "hilbert")


def zorder_index(x: Any, y: Any, bounds: BoundingBox) -> NDArray[np.uint64]:
    """Return the position of each point in Z-order (Morton order) within ``bounds``, interleaving the bits of y and x.

    Arguments and errors as in :func:`hilbert_index`.

    >>> from pqext.geo import BoundingBox
    >>> corners = zorder_index([0, 1, 0, 1], [0, 0, 1, 1], BoundingBox(xmin=0, xmax=1, ymin=0, ymax=1))
    >>> [int(corner) >> 62 for corner in corners]  # the quarter of the curve in which each corner lies
    [0, 1, 2, 3]
    """
    return _positions(x, y, bounds, "zorder")


def check_curve(curve: Any) -> Curve:
    """Return ``curve``. Raises ValueError unless it is the name of a curve."""
    if curve not in CURVES:
        raise ValueError(f"an order must be {' or '.join(map(repr, CURVES))}, not {curve!r}")
    result: Curve = curve
    return result


def _positions(x: Any, y: Any, bounds: BoundingBox, curve: Curve) -> NDArray[np.uint64]:
    if not isinstance(bounds, BoundingBox):
        kind = type(bounds).__name__
        raise TypeError(f"the bounds of a curve must be a BoundingBox(xmin, xmax, ymin, ymax), not {kind}")
    if not bounds.usable or bounds.wraps:
        raise ValueError("the bounds of a curve must be finite and must not wrap")
    for values in (x, y):
        if isinstance(values, pa.Array | pa.ChunkedArray):
            check_array(values)
    try:
        xs, ys = (np.ascontiguousarray(values, dtype=np.float64) for values in (x, y))
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise ValueError(f"the coordinates of points on a curve must be numbers: {error}") from None
    out = np.empty(len(xs), dtype=np.uint64)
    positions(curve == "zorder", xs, ys, bounds.xmin, bounds.xmax, bounds.ymin, bounds.ymax, out)
    return out


def sort_indices(array: GeometryArray, bounds: BoundingBox | None = None, curve: Curve = "hilbert") -> pa.UInt64Array:
    """Return the row numbers, ordered by the centres of the rows' boxes along a curve, for ``table.take``.

    The curve fills ``bounds``, by default the box around all centres. Empty geometries and nulls come last, in their
    original order. Raises GeometryError with the row and byte if WKB is invalid.

    >>> from pqext.geo import from_points
    >>> sort_indices(from_points([0, 9, 0, 9], [0, 0, 9, 9])).to_pylist()
    [0, 2, 3, 1]
    """
    require_bytes(array)
    type = array_type(array.type)
    planar = type is None or type.planar
    return pa.array(curve_order(row_boxes(array), bounds, check_curve(curve), planar), type=pa.uint64())


def sort(
    table: pa.Table, column: str, curve: Curve = "hilbert", bounds: BoundingBox | None = None
) -> pa.Table:
    """Sort the rows of ``table`` along a curve over geometry ``column``; see :func:`sort_indices`.

    ``column`` is a name, or a dotted path through structs. Equal positions keep their order; null and empty geometries
    come last. The result is a chunked copy. Sorting needs another 56 bytes per row. Raises KeyError if the column does
    not exist, GeometryError with row and byte if WKB is invalid.

    >>> from pqext.geo import from_points
    >>> table = pa.table({"id": [0, 1, 2, 3], "geometry": from_points([0, 9, 0, 9], [0, 0, 9, 9])})
    >>> sort(table, "geometry")["id"].to_pylist()
    [0, 2, 3, 1]
    """
    if not isinstance(table, pa.Table):
        raise TypeError(f"sort requires a pyarrow Table, not {type(table).__name__}")
    check_curve(curve)
    check_table(table)
    field, values = find_column(table, column)
    marked = type_of(field)
    order = curve_order(row_boxes(values), bounds, curve, marked is None or marked.planar)
    metadata = drop_row_ranges(table.schema.metadata)
    return take_positions(table.replace_schema_metadata(metadata or None), order)


def row_boxes(array: GeometryArray) -> NDArray[np.float64]:
    """Return the planar box of each row as arrays xmin, xmax, ymin, ymax; NaN for rows without coordinates."""
    parts = [row_values(column)[0][:4] for column in columns(array)]
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0] if parts else np.empty((4, 0))


def curve_order(
    boxes: NDArray[np.float64], bounds: BoundingBox | None, curve: Curve, planar: bool
) -> NDArray[np.int64]:
    """Return the row numbers in the order of ``boxes`` along the curve. Rows without a finite box are last.

    Edges are straight in x and y if ``planar``; otherwise they follow the shorter arc.
    """
    with np.errstate(invalid="ignore"):  # from minus infinity to infinity
        x, y = boxes[0] / 2 + boxes[1] / 2, boxes[2] / 2 + boxes[3] / 2
    if not planar:  # edges are the shorter arcs, so a box wider than half of the globe lies across the antimeridian
        across = boxes[1] - boxes[0] > 180
        x[across] += np.where(x[across] > 0, -180, 180)
    known = np.isfinite(x) & np.isfinite(y)
    placed = np.flatnonzero(known)
    if len(placed) < len(x):
        x, y = x[placed], y[placed]
    if bounds is None and len(placed):
        bounds = BoundingBox(float(x.min()), float(x.max()), float(y.min()), float(y.max()))
    if bounds is None:
        return np.arange(len(known))
    order = np.argsort(_positions(x, y, bounds, curve), kind="stable")
    if len(placed) == len(known):
        return order
    return np.concatenate([placed[order], np.flatnonzero(~known)])


_STEPS = 64
"""Number of candidate end positions within the maximum rows of a segment."""
_EXTRA = 1.0
"""Fixed cost of a segment, as a share of the maximum rows. It prevents needlessly small pages."""
PAGE_ROWS = 2048
"""Maximum rows of a page in ordered files. Small queries read complete pages of every column."""


def split_rows(
    boxes: NDArray[np.float64], max_count: int, order: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Split rows into segments with small boxes, and return the first row of each segment.

    Segments have at most ``max_count`` rows. All segments but the last have at least about half as many.

    ``boxes`` has rows xmin, xmax, ymin, ymax and a column per row, NaN for rows without a box; ``order`` lists the rows
    in the order of splitting. The segments minimize the rows read by queries of the size of a typical segment's box,
    anywhere in the plane.
    """
    rows = boxes.shape[1]
    step = max(1, max_count // _STEPS)
    firsts = np.arange(0, rows, step)
    if rows <= max_count:
        return firsts[:1]
    most = max_count // step
    blocks = np.empty((4, len(firsts)))
    for line, (reduce, missing) in enumerate(((np.fmin, np.inf), (np.fmax, -np.inf)) * 2):
        result = reduce.reduceat(boxes[line] if order is None else boxes[line][order], firsts)
        blocks[line] = np.where(np.isfinite(result), result, missing)
    width, height = _typical_size(blocks, most)
    costs, starts = np.empty(len(firsts) + 1), np.empty(len(firsts) + 1, dtype=np.int64)
    cheapest_cuts(blocks, width, height, _EXTRA * most, (most + 1) // 2, most, costs, starts)
    chosen: list[int] = []
    at = len(firsts)
    while at:
        at = int(starts[at])
        chosen.append(at)
    return np.array(chosen[::-1]) * step


def _typical_size(blocks: NDArray[np.float64], limit: int) -> tuple[float, float]:
    """Return the median width and height of boxes around ``limit`` blocks each; 1 if no box has an extent."""
    firsts = np.arange(0, blocks.shape[1], limit)
    sides = []
    for low, high in ((0, 1), (2, 3)):
        side = np.maximum.reduceat(blocks[high], firsts) - np.minimum.reduceat(blocks[low], firsts)
        side = side[np.isfinite(side) & (side > 0)]
        sides.append(float(np.median(side)) if len(side) else 1.0)
    return sides[0], sides[1]


class OrdersRows:
    """Row ordering for the handler; see :class:`pqext.core.schema.annotations.RowLayoutHandler`."""

    def orders_rows(self, storage: Storage) -> bool:
        """Return whether the column's option names a curve."""
        return GeometryStorage.from_storage(storage).order is not None

    def row_groups(
        self, storage: Storage, values: pa.ChunkedArray, max_count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the row numbers in the order of the curve, and the position of the first row of each row group."""
        boxes = row_boxes(GeometryStorage.from_storage(storage).wkb(values))
        order = _order(storage, boxes)
        return order, split_rows(boxes, max_count, order)

    def pages(
        self, storage: Storage, values: pa.ChunkedArray, max_count: int, sort: bool
    ) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the row order of a row group (None without ``sort``) and the position of the first row of each page.

        Pages have at most :data:`PAGE_ROWS` rows.
        """
        boxes = row_boxes(GeometryStorage.from_storage(storage).wkb(values))
        order = _order(storage, boxes) if sort else None
        return order, split_rows(boxes, min(max_count, PAGE_ROWS), order)


def _order(storage: Storage, boxes: NDArray[np.float64]) -> NDArray[np.int64]:
    chosen = GeometryStorage.from_storage(storage)
    return curve_order(boxes, None, chosen.order or "hilbert", chosen.type.planar)
