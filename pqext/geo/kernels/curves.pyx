# cython: language_level=3
"""Positions along curves of order 32 that fill a rectangle: Hilbert curve and Z-order (Morton)."""
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t


cdef inline uint32_t grid(double value, double low, double scale) noexcept nogil:
    """Return the cell of a coordinate on an axis of 2^32 cells, clamped to the ends; 0 for NaN."""
    cdef double cell = (value - low) * scale
    if not cell >= 0.0:
        return 0
    if cell >= 4294967295.0:
        return 4294967295u
    return <uint32_t> cell


cdef uint16_t STEPS[4][256]
"""Table by state and four bits each of x and y: eight bits of the position, then two bits of the next state."""


cdef uint16_t four_levels(uint32_t state, uint32_t x, uint32_t y) noexcept nogil:
    """Descend four levels of quadrants, mirroring and swapping the axes with the orientation of the curve.

    Bit 0 of the state: the axes are mirrored; bit 1: they are swapped.
    """
    cdef uint32_t d = 0, mirror = state & 1, swap = state >> 1, bit_x, bit_y, held
    cdef int level
    for level in range(3, -1, -1):
        bit_x = ((x >> level) & 1) ^ mirror
        bit_y = ((y >> level) & 1) ^ mirror
        held = (bit_x ^ bit_y) & swap
        bit_x ^= held
        bit_y ^= held
        d = (d << 2) | ((3 * bit_x) ^ bit_y)
        # In quadrants with y = 0 the axes of the curve are swapped; with x = 1 they are also mirrored.
        mirror ^= bit_x & (bit_y ^ 1)
        swap ^= bit_y ^ 1
    return <uint16_t> (d << 2 | swap << 1 | mirror)


cdef void fill_steps() noexcept nogil:
    cdef uint32_t state, cell
    for state in range(4):
        for cell in range(256):
            STEPS[state][cell] = four_levels(state, cell >> 4, cell & 15)


fill_steps()


cdef inline uint64_t hilbert(uint32_t x, uint32_t y) noexcept nogil:
    cdef uint64_t d = 0
    cdef uint32_t entry = 0
    cdef int shift
    for shift in range(28, -1, -4):
        entry = STEPS[entry & 3][((x >> shift) & 15) << 4 | ((y >> shift) & 15)]
        d = (d << 8) | (entry >> 2)
    return d


cdef inline uint64_t spread(uint64_t bits) noexcept nogil:
    """Spread the 32 bits of a number to the even bits of 64."""
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
    """Write the position of each point on the curve that fills the bounds. Points outside are moved to the edge."""
    cdef int64_t i, n = x.shape[0]
    # Halves, because the distance of the bounds may exceed the largest double.
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
