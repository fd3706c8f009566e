# cython: language_level=3
"""Split a sequence of boxes so that the boxes around the parts are small in total."""
from libc.math cimport INFINITY
from libc.stdint cimport int64_t


def cheapest_cuts(
    const double[:, ::1] boxes not None,
    double width,
    double height,
    double extra,
    int64_t least,
    int64_t most,
    double[::1] costs not None,
    int64_t[::1] starts not None,
):
    """Split n boxes into parts of `least` to `most` boxes (only the last may be shorter), by dynamic programming.

    The cost of k boxes is (width of the part + `width`) * (height of the part + `height`) * (k + `extra`). `boxes` has
    the rows xmin, xmax, ymin, ymax, which are inverted if missing. Entry i of `starts` (n + 1 entries, like `costs`) is
    the start of the last part if only the first i boxes are split.
    """
    cdef int64_t n = boxes.shape[1], stop, start, k
    cdef double x0, x1, y0, y1, w, h, cost
    if boxes.shape[0] != 4 or costs.shape[0] != n + 1 or starts.shape[0] != n + 1 or least < 1 or most < least:
        raise ValueError("boxes must have 4 rows, and costs and starts one element more than there are boxes")
    with nogil:
        costs[0] = 0.0
        starts[0] = 0
        for stop in range(1, n + 1):
            costs[stop] = INFINITY
            starts[stop] = stop - 1
            x0 = y0 = INFINITY
            x1 = y1 = -INFINITY
            for k in range(1, most + 1):
                start = stop - k
                if start < 0:
                    break
                x0 = min(x0, boxes[0, start])
                x1 = max(x1, boxes[1, start])
                y0 = min(y0, boxes[2, start])
                y1 = max(y1, boxes[3, start])
                if k < least and stop < n:
                    continue
                w = x1 - x0 if x1 > x0 else 0.0
                h = y1 - y0 if y1 > y0 else 0.0
                cost = costs[start] + (w + width) * (h + height) * (<double> k + extra)
                if cost < costs[stop]:
                    costs[stop] = cost
                    starts[stop] = start
