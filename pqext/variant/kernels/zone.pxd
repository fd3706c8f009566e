# cython: language_level=3, cdivision=True
# The offset of a time zone from UTC, at an instant or at a local time.
from libc.stdint cimport int64_t, uint8_t


cdef enum:
    CYCLE = 12622780800         # seconds of 400 years, after which the calendar repeats


cdef struct ZoneTable:
    int64_t count               # number of transitions
    const int64_t *instants     # transitions in seconds since 1970
    const int64_t *clocks       # local second from which the offset after each transition applies
    const int64_t *offsets      # seconds east of UTC before the first transition, and after each transition
    int64_t horizon             # second from which the last 400 years repeat


cdef class Zone:
    cdef ZoneTable table
    cdef object owner           # owner of the arrays


cdef inline int64_t _offset(const ZoneTable *z, const int64_t *starts, int64_t second) noexcept nogil:
    cdef int64_t low = 0, high = z.count, middle
    if second >= z.horizon:
        second = z.horizon - CYCLE + (second - z.horizon) % CYCLE
    while low < high:
        middle = (low + high) >> 1
        if starts[middle] <= second:
            low = middle + 1
        else:
            high = middle
    return z.offsets[low]


cdef inline int64_t offset_of_instant(const ZoneTable *z, int64_t second) noexcept nogil:
    """Return the seconds east of UTC at an instant in seconds since 1970."""
    return _offset(z, z.instants, second)


cdef inline int64_t offset_of_clock(const ZoneTable *z, int64_t second) noexcept nogil:
    """Return the seconds east of UTC at a local time, in seconds as if it were UTC.

    For a time in the gap or overlap of a transition, return the offset before the transition, as Java does.
    """
    return _offset(z, z.clocks, second)


cdef inline uint8_t *write_offset(uint8_t *p, int64_t offset) noexcept nogil:
    """Write an offset as +HH:MM, without its seconds. Return the end of the text."""
    p[0] = c'+'
    if offset < 0:
        p[0] = c'-'
        offset = -offset
    p[1] = <uint8_t> (c'0' + offset // 36000)
    p[2] = <uint8_t> (c'0' + offset // 3600 % 10)
    p[3] = c':'
    p[4] = <uint8_t> (c'0' + offset // 600 % 6)
    p[5] = <uint8_t> (c'0' + offset // 60 % 10)
    return p + 6
