# Fixed-width bit packing, least significant bit first: what DELTA_BINARY_PACKED and ALP have in common.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset


cdef inline uint64_t load64(const uint8_t *p) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, p, 8)
    return word


cdef inline uint64_t mask_of(int width) noexcept nogil:
    """The lowest `width` bits (0 to 64) set."""
    if width == 0:
        return 0
    return (~<uint64_t> 0) >> (64 - width)


cdef inline uint64_t value_at(const uint8_t *p, uint64_t bit, int width, uint64_t mask) noexcept nogil:
    """The value that starts at `bit`. The caller has proved that 8 bytes from its first one on can be read;
    a value that needs a ninth ends in it, so that byte is part of the packed data."""
    cdef const uint8_t *at = p + (bit >> 3)
    cdef int shift = <int> (bit & 7)
    cdef uint64_t word = load64(at) >> shift
    if shift + width > 64:
        word |= <uint64_t> at[8] << (64 - shift)
    return word & mask


cdef inline Py_ssize_t loadable(size_t size, int width, Py_ssize_t count) noexcept nogil:
    """How many of `count` values of `width` bits can be read by 8-byte loads within `size` bytes."""
    cdef uint64_t safe
    if width == 0:
        return count
    if size < 8:
        return 0
    # The load for value i starts at byte i * width // 8, which must be at most size - 8.
    safe = ((<uint64_t> (size - 8)) * 8 + 7) // <uint64_t> width + 1
    return <Py_ssize_t> safe if safe < <uint64_t> count else count


cdef inline uint64_t last_value_at(
    const uint8_t *p, size_t size, uint64_t bit, int width, uint64_t mask
) noexcept nogil:
    """The value that starts at `bit` and ends within `size` bytes, near their end."""
    cdef uint8_t tail[16]
    cdef size_t at = <size_t> (bit >> 3), left = 0
    if at < size:
        left = size - at
    if left > 16:
        left = 16
    memset(tail, 0, 16)
    if left:
        memcpy(tail, p + at, left)
    return value_at(tail, bit & 7, width, mask)


cdef inline uint8_t *pack(const uint64_t *values, Py_ssize_t count, int width, uint8_t *out) noexcept nogil:
    """Pack `count` values below 2**width into ceil(count * width / 8) bytes; returns the end of them.

    Up to 8 bytes behind the end may be overwritten.
    """
    cdef uint64_t word = 0
    cdef int filled = 0
    cdef Py_ssize_t i
    if width == 0:
        return out
    for i in range(count):
        word |= values[i] << filled
        filled += width
        if filled >= 64:
            memcpy(out, &word, 8)
            out += 8
            filled -= 64
            word = values[i] >> (width - filled) if filled else 0
    memcpy(out, &word, 8)
    return out + (filled + 7) // 8


cdef inline int bits_of(uint64_t value) noexcept nogil:
    """The position of the highest bit set, from 1; 0 for 0."""
    cdef int count = 0
    while value >= 256:
        value >>= 8
        count += 8
    while value:
        value >>= 1
        count += 1
    return count
