"""Order along a curve that fills the plane, which keeps neighbours together so that boxes stay small.

Hilbert's curve never leaps; the Z-order of Morton does, and is what some other tools sort by.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.core.schema.arrow_check import check_array, check_table
from pqext.core.write.row_order import pick, taken
from pqext.geo.box import BoundingBox
from pqext.geo.kernels.curves import positions
from pqext.geo.summary import row_values
from pqext.geo.types import array_type, type_of
from pqext.geo.wkb import GeometryArray, columns, require_bytes

Curve = Literal["hilbert", "zorder"]
CURVES: tuple[Curve, ...] = get_args(Curve)


def hilbert_index(x: Any, y: Any, bounds: BoundingBox) -> NDArray[np.uint64]:
    """Each point's position on the Hilbert curve of order 32 that fills ``bounds``, from its lower left corner.

    ``x`` and ``y`` are sequences of numbers of one length. Points outside count as at the edge, NaN as at
    the lower end. Raises ValueError when the bounds wrap or are not finite, or the lengths differ.
    """
    return _positions(x, y, bounds, "hilbert")


def zorder_index(x: Any, y: Any, bounds: BoundingBox) -> NDArray[np.uint64]:
    """Each point's position in Z-order (Morton order) within ``bounds``: the bits of y and x in turn.

    Arguments and errors as in :func:`hilbert_index`.
    """
    return _positions(x, y, bounds, "zorder")


def check_curve(curve: Any) -> Curve:
    """``curve``; raises ValueError unless it is the name of one."""
    if curve not in CURVES:
        raise ValueError(f"an order is {' or '.join(map(repr, CURVES))}, not {curve!r}")
    found: Curve = curve
    return found


def _positions(x: Any, y: Any, bounds: BoundingBox, curve: Curve) -> NDArray[np.uint64]:
    if not isinstance(bounds, BoundingBox):
        kind = type(bounds).__name__
        raise TypeError(f"the bounds of a curve are BoundingBox(xmin, xmax, ymin, ymax), not of type {kind}")
    if not bounds.usable or bounds.wraps:
        raise ValueError("the bounds of a curve must be finite and must not wrap")
    for values in (x, y):
        if isinstance(values, pa.Array | pa.ChunkedArray):
            check_array(values)
    xs, ys = (np.ascontiguousarray(values, dtype=np.float64) for values in (x, y))
    out = np.empty(len(xs), dtype=np.uint64)
    positions(curve == "zorder", xs, ys, bounds.xmin, bounds.xmax, bounds.ymin, bounds.ymax, out)
    return out


def sort_indices(array: GeometryArray, bounds: BoundingBox | None = None, curve: Curve = "hilbert") -> pa.UInt64Array:
    """The rows' numbers in the order of the centres of their boxes on a curve, for ``table.take``.

    The curve fills ``bounds``, by default the box around all centres. Empty geometries and nulls come last,
    in their old order. Raises GeometryError with row and byte on bad WKB.

    >>> from pqext.geo import from_points
    >>> sort_indices(from_points([0, 9, 0, 9], [0, 0, 9, 9])).to_pylist()
    [0, 2, 3, 1]
    """
    require_bytes(array)
    type = array_type(array.type)
    planar = type is None or type.planar
    return pa.array(order_of(row_boxes(array), bounds, check_curve(curve), planar), type=pa.uint64())


def sort(
    table: pa.Table, column: str, curve: Curve = "hilbert", bounds: BoundingBox | None = None
) -> pa.Table:
    """``table`` with its rows in the order of geometry ``column`` on a curve, as by :func:`sort_indices`.

    ``column`` is a name, or a dotted path through structs. Rows of one place keep their order; null and empty
    geometries come last. The result is a copy, in chunks; beside it 56 bytes a row are needed for a while. Raises
    KeyError for a column that is not there, GeometryError with row and byte on bad WKB.
    """
    if not isinstance(table, pa.Table):
        raise TypeError(f"sort takes a pyarrow Table, not {type(table).__name__}")
    check_curve(curve)
    check_table(table)
    field, values = pick(table, column)
    marked = type_of(field)
    order = order_of(row_boxes(values), bounds, curve, marked is None or marked.planar)
    return taken(table, order)


def row_boxes(array: GeometryArray) -> NDArray[np.float64]:
    """Lines xmin, xmax, ymin, ymax of the planar box around each row's coordinates; NaN where there are none."""
    parts = [row_values(column)[0][:4] for column in columns(array)]
    return np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0] if parts else np.empty((4, 0))


def order_of(
    boxes: NDArray[np.float64], bounds: BoundingBox | None, curve: Curve, planar: bool
) -> NDArray[np.int64]:
    """The numbers of the rows with such ``boxes`` along the curve; ``planar``: edges run straight in x and y."""
    with np.errstate(invalid="ignore"):  # from one infinity to the other
        x, y = boxes[0] / 2 + boxes[1] / 2, boxes[2] / 2 + boxes[3] / 2
    if not planar:  # edges take the shorter way around, so what spans more than half of it lies across the antimeridian
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
