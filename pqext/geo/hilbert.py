"""Order along a Hilbert curve, which keeps neighbours together so that boxes of row groups and pages stay small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pqext.geo.box import BoundingBox
from pqext.geo.kernels.hilbert import hilbert_positions
from pqext.geo.summary import row_values
from pqext.geo.wkb import GeometryArray, columns


def hilbert_index(x: Any, y: Any, bounds: BoundingBox) -> NDArray[np.uint64]:
    """Each point's position on the Hilbert curve of order 32 that fills ``bounds``, from its lower left corner.

    ``x`` and ``y`` are sequences of numbers of one length. Points outside count as at the edge, NaN as at
    the lower end. Raises ValueError when the bounds wrap or are not finite, or the lengths differ.
    """
    if not bounds.usable or bounds.wraps:
        raise ValueError("the bounds of a Hilbert curve must be finite and must not wrap")
    xs, ys = (np.ascontiguousarray(values, dtype=np.float64) for values in (x, y))
    out = np.empty(len(xs), dtype=np.uint64)
    hilbert_positions(xs, ys, bounds.xmin, bounds.xmax, bounds.ymin, bounds.ymax, out)
    return out


def sort_indices(array: GeometryArray, bounds: BoundingBox | None = None) -> pa.UInt64Array:
    """The rows' numbers in Hilbert order of the centres of their boxes, for ``table.take``.

    The curve fills ``bounds``, by default the box around all centres. Empty geometries and nulls come last,
    in their old order. Raises GeometryError with row and byte on bad WKB.
    """
    parts = [row_values(column)[0][:4] for column in columns(array)]
    values = np.concatenate(parts, axis=1) if parts else np.empty((4, 0))
    x, y = values[0] / 2 + values[1] / 2, values[2] / 2 + values[3] / 2
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    rest = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
    x, y = x[placed], y[placed]
    if bounds is None and len(placed):
        bounds = BoundingBox(float(x.min()), float(x.max()), float(y.min()), float(y.max()))
    order = placed if bounds is None else placed[np.argsort(hilbert_index(x, y, bounds), kind="stable")]
    return pa.array(np.concatenate([order, rest]), type=pa.uint64())
