# cython: language_level=3
"""Find the nearest points of chains of short segments in space."""
from libc.math cimport sqrt
from libc.stdint cimport int64_t


cdef enum:
    BLOCK = 32  # segments of the query that are skipped together


cdef inline double dot(const double *a, const double *b) noexcept nogil:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


cdef inline double share(double value) noexcept nogil:
    return 0.0 if not (value > 0) else 1.0 if value > 1 else value


cdef double between(const double *a, const double *b, double *s, double *t) noexcept nogil:
    """Return the squared distance of two segments of six numbers each, and the position of the nearest point along
    each.
    """
    cdef double[3] u, v, w
    cdef double uu, uv, vv, uw, vw, det, total = 0.0, one
    cdef int i
    for i in range(3):
        u[i] = a[3 + i] - a[i]
        v[i] = b[3 + i] - b[i]
        w[i] = a[i] - b[i]
    uu, uv, vv, uw, vw = dot(u, u), dot(u, v), dot(v, v), dot(u, w), dot(v, w)
    det = uu * vv - uv * uv
    # Nearest points of the two lines, then the nearest point of each segment. Also correct for zero length.
    s[0] = share((uv * vw - vv * uw) / det) if det > 1e-12 * uu * vv else 0.0
    t[0] = share((uv * s[0] + vw) / vv) if vv > 0 else 0.0
    s[0] = share((uv * t[0] - uw) / uu) if uu > 0 else 0.0
    for i in range(3):
        one = w[i] + s[0] * u[i] - t[0] * v[i]
        total += one * one
    return total


def nearest(
    const double[:, ::1] segments not None, const int64_t[::1] offsets not None, const double[:, ::1] query not None,
    const double[:, ::1] blocks not None, double[:, ::1] out not None,
):
    """Write the nearest points of each row and the query: the segment and the position along it, for both.

    The segments of a row are those from its offset to the next, each with two ends of three coordinates. `blocks` has
    the centre and radius of a sphere around every 32 segments of the query. Rows without segments are unchanged.
    """
    cdef int64_t rows = offsets.shape[0] - 1, row, i, j, m = query.shape[0], best_i, best_j
    cdef int64_t block, stop, count = (m + BLOCK - 1) // BLOCK
    cdef double best, found, away, half, x, y, z, s = 0, t = 0, best_s = 0, best_t = 0
    cdef const double *a
    cdef const double *b
    if blocks.shape[0] != count or blocks.shape[1] != 4:
        raise ValueError("the query must have one sphere for each 32 segments")
    if rows < 0 or out.shape[0] != rows or out.shape[1] != 4 or segments.shape[1] != 6 or query.shape[1] != 6:
        raise ValueError("segments must have six numbers each, and the output four numbers per row")
    for row in range(rows):
        if offsets[row] < 0 or offsets[row] > offsets[row + 1] or offsets[row + 1] > segments.shape[0]:
            raise ValueError("offsets must ascend and lie within the segments")
    if m == 0:
        return
    with nogil:
        for row in range(rows):
            best = -1.0
            best_i = best_j = 0
            for i in range(offsets[row], offsets[row + 1]):
                a = &segments[i, 0]
                x, y, z = (a[0] + a[3]) / 2, (a[1] + a[4]) / 2, (a[2] + a[5]) / 2
                half = sqrt((a[0] - x) * (a[0] - x) + (a[1] - y) * (a[1] - y) + (a[2] - z) * (a[2] - z))
                for block in range(count):
                    b = &blocks[block, 0]
                    away = sqrt((b[0] - x) * (b[0] - x) + (b[1] - y) * (b[1] - y) + (b[2] - z) * (b[2] - z))
                    away -= b[3] + half
                    if best >= 0 and away > 0 and away * away > best:
                        continue
                    stop = min(m, (block + 1) * BLOCK)
                    for j in range(block * BLOCK, stop):
                        b = &query[j, 0]
                        found = between(a, b, &s, &t)
                        if best < 0 or found < best:
                            best, best_i, best_j, best_s, best_t = found, i, j, s, t
            if best >= 0:
                out[row, 0] = <double> best_i
                out[row, 1] = best_s
                out[row, 2] = <double> best_j
                out[row, 3] = best_t
