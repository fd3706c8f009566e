# cython: language_level=3
# Little-endian ISO WKB appended to growing memory, and the number that each row of an array is made of.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve


cdef inline void store_code(uint8_t *p, int base, int dims) noexcept nogil:
    cdef uint32_t code = <uint32_t> (1000 * dims + base)
    p[0] = 1
    memcpy(p + 1, &code, 4)


cdef inline int append_header(Bytes *out, int base, int dims) noexcept nogil:
    """Append byte order and type code. Return 0, or -1 if memory is exhausted."""
    if bytes_reserve(out, 5) != 0:
        return -1
    store_code(out.data + out.size, base, dims)
    out.size += 5
    return 0


cdef inline int append_count(Bytes *out) noexcept nogil:
    """Reserve room for a count, which `store_count` fills later. Return 0, or -1 if memory is exhausted."""
    cdef uint32_t none = 0
    return bytes_append(out, &none, 4)


cdef inline int store_count(Bytes *out, size_t at, uint64_t count) noexcept nogil:
    """Store a count. Return 0, or -1 if it exceeds the range of WKB."""
    cdef uint32_t narrow = <uint32_t> count
    memcpy(out.data + at, &narrow, 4)
    return 0 if narrow == count else -1


cdef inline int append_empty_point(Bytes *out, int dims) noexcept nogil:
    cdef uint64_t nan = 0x7FF8000000000000ULL
    cdef int i
    for i in range(2 + (dims & 1) + (dims >> 1)):
        if bytes_append(out, &nan, 8) != 0:
            return -1
    return 0


cdef inline bint closed_ring(const Bytes *out, size_t start, uint64_t count, size_t stride) noexcept nogil:
    """Return whether the ring at byte `start` is empty, or has at least four coordinates and ends at the first."""
    cdef double first[2]
    cdef double last[2]
    if count == 0:
        return True
    if count < 4:
        return False
    memcpy(first, out.data + start, 16)
    memcpy(last, out.data + start + (count - 1) * stride, 16)
    return (
        (first[0] == last[0] or (first[0] != first[0] and last[0] != last[0]))
        and (first[1] == last[1] or (first[1] != first[1] and last[1] != last[1]))
    )


cdef inline int begin_offsets(Bytes *offsets, int64_t rows) noexcept nogil:
    """Reserve memory for the offsets of `rows` values, and append the first offset."""
    cdef int64_t none = 0
    if bytes_reserve(offsets, <size_t> (8 * (rows + 1))) != 0:
        return -1
    return bytes_append(offsets, &none, 8)
