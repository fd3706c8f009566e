# cython: language_level=3
# The most frequent steps of filling columns from JSON documents, inlined; see `shredding.pxd`.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY
from pqext.variant.kernels.scan cimport copy_far, store64
from pqext.variant.kernels.shredding cimport FAULT_TOO_LARGE, Builder, Column, bit_set, bytes_zero_to, column_pad


cdef enum:
    SPARE = 32      # bytes that may be written after a text


cdef inline int column_set(Column *c, int64_t row) noexcept nogil:
    """Mark a row like `column_mark`, with a function call only in every eighth row."""
    cdef size_t index = <size_t> (row >> 3)
    c.count += 1
    if index < c.validity.size:
        c.validity.data[index] |= <uint8_t> (1 << (row & 7))
        return 0
    return bit_set(&c.validity, row)


cdef inline int column_text(Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Set row `row` of a string column; up to 31 bytes after the text may be read."""
    cdef size_t ends = (<size_t> row + 1) * sizeof(int32_t)
    cdef size_t end = c.data.size + n
    if column_set(c, row) != 0 or bytes_reserve(&c.data, n + SPARE) != 0:
        return FAULT_MEMORY
    if end > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    copy_far(c.data.data + c.data.size, p, n)
    c.data.size = end
    if c.offsets.size != ends and column_pad(c, row) != 0:
        return FAULT_MEMORY
    c.end = <int64_t> end
    if bytes_reserve(&c.offsets, sizeof(int32_t)) != 0:
        return FAULT_MEMORY
    (<int32_t *> (c.offsets.data + ends))[0] = <int32_t> end
    c.offsets.size = ends + sizeof(int32_t)
    return 0


cdef inline int column_word(Column *c, int64_t row, uint64_t word) noexcept nogil:
    """Set row `row` of a column of 8-byte values."""
    cdef size_t start = <size_t> row * 8
    if column_set(c, row) != 0 or (c.data.size != start and bytes_zero_to(&c.data, start) != 0):
        return FAULT_MEMORY
    if bytes_reserve(&c.data, 8) != 0:
        return FAULT_MEMORY
    store64(c.data.data + start, word)
    c.data.size = start + 8
    return 0


cdef inline int column_wide(Column *c, int64_t row, const void *p) noexcept nogil:
    """Set row `row` of a column of 16-byte values."""
    cdef size_t start = <size_t> row * 16
    if column_set(c, row) != 0 or (c.data.size != start and bytes_zero_to(&c.data, start) != 0):
        return FAULT_MEMORY
    if bytes_reserve(&c.data, 16) != 0:
        return FAULT_MEMORY
    memcpy(c.data.data + start, p, 16)
    c.data.size = start + 16
    return 0


cdef inline int reserve_more(Bytes *b, double times) noexcept nogil:
    """Reserve the memory that `b` needs to grow by the factor `times`; very large reservations are skipped."""
    cdef double wanted = (times - 1.0) * <double> b.size
    if wanted > 0x7FFFFFFF:
        return 0
    return bytes_reserve(b, <size_t> wanted + SPARE) if b.size else 0


cdef inline int builders_reserve(Builder *builders, int64_t count, double times) noexcept nogil:
    """Reserve the memory that columns need to grow by the factor `times`, to avoid copies. Return 0 or FAULT_MEMORY."""
    cdef int64_t i
    cdef int j
    cdef Column *c
    for i in range(count):
        for j in range(2):
            c = &builders[i].typed if j else &builders[i].value
            if (
                reserve_more(&c.validity, times) != 0
                or reserve_more(&c.offsets, times) != 0
                or reserve_more(&c.data, times) != 0
            ):
                return FAULT_MEMORY
    return 0
