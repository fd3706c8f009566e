# cython: language_level=3
# Extents of values of unknown primitive types: to the next child by offset, or to the end of the container.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort

from pqext.core.kernels.buffer cimport Bytes, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY, FAULT_UNKNOWN_TYPE, Container, container_offset, value_size


cdef struct Extents:
    # Sorted offsets of the most recent container. Must be zeroed before use; the caller frees `sorted`.
    const uint8_t *offsets
    uint32_t count
    int offset_size
    Bytes sorted


cdef inline int _compare_offsets(const void *a, const void *b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t *> a)[0]
    cdef uint32_t y = (<const uint32_t *> b)[0]
    return (x > y) - (x < y)


cdef inline int64_t _distance_to_next(Extents *e, const Container *c, size_t at, size_t limit) noexcept nogil:
    cdef uint32_t *offsets
    cdef size_t low = 0, high = c.count, middle
    cdef uint32_t i
    if e.offsets != c.offsets or e.count != c.count or e.offset_size != c.offset_size:
        # Sorted once per container, so that a container of unknown values does not take quadratic time.
        e.offsets = NULL
        e.sorted.size = 0
        if bytes_reserve(&e.sorted, <size_t> c.count * sizeof(uint32_t) + 1) != 0:
            return FAULT_MEMORY
        offsets = <uint32_t *> e.sorted.data
        for i in range(c.count):
            offsets[i] = container_offset(c, i)
        qsort(offsets, c.count, sizeof(uint32_t), _compare_offsets)
        e.offsets = c.offsets
        e.count = c.count
        e.offset_size = c.offset_size
    offsets = <uint32_t *> e.sorted.data
    while low < high:
        middle = low + (high - low) // 2
        if offsets[middle] > at:
            high = middle
        else:
            low = middle + 1
    if low < c.count and offsets[low] - at < limit:
        return <int64_t> (offsets[low] - at)
    return <int64_t> limit


cdef inline int64_t child_extent(Extents *e, const Container *c, const uint8_t *p, size_t limit) noexcept nogil:
    """Return the size in bytes of the child at `p`, `limit` bytes before the end of the container, or a fault."""
    cdef int64_t size = value_size(p, limit)
    return size if size != FAULT_UNKNOWN_TYPE else _distance_to_next(e, c, <size_t> (p - c.values), limit)


cdef inline int64_t whole_extent(const uint8_t *p, size_t n) noexcept nogil:
    """Return the size in bytes of the value that must fill the n bytes at `p`, or a fault."""
    cdef int64_t size = value_size(p, n)
    return size if size != FAULT_UNKNOWN_TYPE else <int64_t> n
