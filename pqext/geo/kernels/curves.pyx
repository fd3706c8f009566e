# cython: language_level=3
"""Positions along curves of order 32 that fill a rectangle: Hilbert's, and the Z-order of Morton."""
from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef inline uint32_t grid(double value, double low, double scale) noexcept nogil:
    """The cell of a coordinate on an axis of 2^32 cells, clamped to the ends; NaN is in the first."""
    cdef double cell = (value - low) * scale
    if not cell >= 0.0:
        return 0
    if cell >= 4294967295.0:
        return 4294967295u
    return <uint32_t> cell


cdef inline uint64_t hilbert(uint32_t x, uint32_t y) noexcept nogil:
    """Descend the quadrants from the largest, mirroring and swapping the axes as the curve turns.

    `mirror` and `swap` are masks of all ones or zeros: what has been done to the axes so far.
    """
    cdef uint64_t d = 0
    cdef uint32_t mirror = 0, swap = 0, bit_x, bit_y, held
    cdef int level
    for level in range(31, -1, -1):
        bit_x = ((x ^ mirror) >> level) & 1
        bit_y = ((y ^ mirror) >> level) & 1
        held = (bit_x ^ bit_y) & (swap & 1)
        bit_x ^= held
        bit_y ^= held
        d = (d << 2) | ((3 * bit_x) ^ bit_y)
        # In the quadrants with y = 0 the curve's axes are swapped, in the one with x = 1 mirrored besides.
        mirror ^= -(bit_x & (bit_y ^ 1))
        swap ^= -(bit_y ^ 1)
    return d


cdef inline uint64_t spread(uint64_t bits) noexcept nogil:
    """The 32 bits of a number at the even places of 64."""
    bits = (bits | (bits << 16)) & 0x0000FFFF0000FFFFu
    bits = (bits | (bits << 8)) & 0x00FF00FF00FF00FFu
    bits = (bits | (bits << 4)) & 0x0F0F0F0F0F0F0F0Fu
    bits = (bits | (bits << 2)) & 0x3333333333333333u
    return (bits | (bits << 1)) & 0x5555555555555555u


def positions(
    bint zorder,
    const double[::1] x not None,
    const double[::1] y not None,
    double xmin,
    double xmax,
    double ymin,
    double ymax,
    uint64_t[::1] out not None,
):
    """Write each point's position on the curve that fills the bounds; points outside count at the edge."""
    cdef int64_t i, n = x.shape[0]
    # Halves, because the bounds may be further apart than the largest double.
    cdef double width = xmax / 2 - xmin / 2, height = ymax / 2 - ymin / 2
    cdef double scale_x = 2147483648.0 / width if width > 0 else 0.0
    cdef double scale_y = 2147483648.0 / height if height > 0 else 0.0
    cdef uint32_t cell_x, cell_y
    if y.shape[0] != n or out.shape[0] != n:
        raise ValueError("x, y and the output must have the same length")
    with nogil:
        for i in range(n):
            cell_x = grid(x[i], xmin, scale_x)
            cell_y = grid(y[i], ymin, scale_y)
            out[i] = (spread(cell_x) | (spread(cell_y) << 1)) if zorder else hilbert(cell_x, cell_y)
