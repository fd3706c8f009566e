# Unsigned LEB128 numbers: headers of runs, and all of the delta encoding's.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t

cdef enum:
    TRUNCATED = -1
    BAD_VARINT = -2


cdef inline int read_leb128(const uint8_t *p, size_t size, size_t *at, int bits, uint64_t *out) noexcept nogil:
    """Read a number of at most `bits` bits, and move `at` after it. Return 0, TRUNCATED or BAD_VARINT."""
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        if at[0] >= size:
            return TRUNCATED
        byte = p[at[0]]
        at[0] += 1
        if bits - shift < 8 and byte >> (bits - shift):
            return BAD_VARINT
        result |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            out[0] = result
            return 0
        shift += 7
