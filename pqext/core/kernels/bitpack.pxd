# Bit-packed integers, least significant bit first: the packing of the hybrid, delta and ALP encodings.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t pqext_load64(const uint8_t *p) { uint64_t word; memcpy(&word, p, 8); return word; }

    /* Eight values of W bits: where they fit a word one load serves all, else each has its own. W is a constant in
       every use, so that shifts and masks are too. Reads up to 7 bytes beyond the group's W. */
    #define PQEXT_UNPACK8(W)                                                                        \\
        for (; groups > 0; groups--, p += W, out += 8) {                                            \\
            if (W <= 8) {                                                                           \\
                uint64_t word = pqext_load64(p);                                                    \\
                for (int i = 0; i < 8; i++)                                                         \\
                    out[i] = (uint32_t)(word >> (i * (W <= 8 ? W : 0))) & (uint32_t)((1ull << W) - 1); \\
            } else {                                                                                \\
                for (int i = 0; i < 8; i++)                                                         \\
                    out[i] = (uint32_t)(pqext_load64(p + (i * W >> 3)) >> (i * W & 7)) & (uint32_t)((1ull << W) - 1); \\
            }                                                                                       \\
        }                                                                                           \\
        break;

    static void pqext_unpack_groups(const uint8_t *p, ptrdiff_t groups, int width, uint32_t *out) {
        switch (width) {
    #define PQEXT_CASE(W) case W: PQEXT_UNPACK8(W)
        PQEXT_CASE(1) PQEXT_CASE(2) PQEXT_CASE(3) PQEXT_CASE(4) PQEXT_CASE(5) PQEXT_CASE(6) PQEXT_CASE(7)
        PQEXT_CASE(8) PQEXT_CASE(9) PQEXT_CASE(10) PQEXT_CASE(11) PQEXT_CASE(12) PQEXT_CASE(13) PQEXT_CASE(14)
        PQEXT_CASE(15) PQEXT_CASE(16) PQEXT_CASE(17) PQEXT_CASE(18) PQEXT_CASE(19) PQEXT_CASE(20) PQEXT_CASE(21)
        PQEXT_CASE(22) PQEXT_CASE(23) PQEXT_CASE(24) PQEXT_CASE(25) PQEXT_CASE(26) PQEXT_CASE(27) PQEXT_CASE(28)
        PQEXT_CASE(29) PQEXT_CASE(30) PQEXT_CASE(31) PQEXT_CASE(32)
    #undef PQEXT_CASE
        }
    }
    """
    uint64_t load64 "pqext_load64"(const uint8_t *p) noexcept nogil
    void unpack_groups "pqext_unpack_groups"(const uint8_t *p, Py_ssize_t groups, int width, uint32_t *out) noexcept nogil


cdef inline void unpack(const uint8_t *p, size_t size, int width, Py_ssize_t count, uint32_t *out) noexcept nogil:
    """Unpack `count` values of 1 to 32 bits from `size` bytes, which must contain all of them.

    `out` must have room for `count` rounded up to a multiple of eight.
    """
    cdef Py_ssize_t groups = (count + 7) // 8, whole = 0, i
    cdef size_t at, bit, left
    cdef uint64_t word
    cdef int j
    # A group's last load starts 7 * width // 8 bytes into it and takes eight.
    if size >= <size_t> (7 * width // 8 + 8):
        whole = <Py_ssize_t> ((size - (7 * width // 8 + 8)) // <size_t> width) + 1
        if whole > groups:
            whole = groups
        unpack_groups(p, whole, width, out)
    for i in range(whole * 8, count):
        bit = <size_t> i * width
        at = bit >> 3
        word = 0
        left = size - at
        for j in range(8 if left > 8 else <int> left):
            word |= <uint64_t> p[at + j] << (8 * j)
        out[i] = <uint32_t> ((word >> (bit & 7)) & ((<uint64_t> 1 << width) - 1))


# Values of up to 64 bits, one at a time.

cdef inline uint64_t mask_of(int width) noexcept nogil:
    """Return a mask of the lowest `width` bits (0 to 64)."""
    if width == 0:
        return 0
    return (~<uint64_t> 0) >> (64 - width)


cdef inline uint64_t value_at(const uint8_t *p, uint64_t bit, int width, uint64_t mask) noexcept nogil:
    """Return the value of `width` bits at `bit`.

    The caller has checked that 8 bytes can be read from the byte that contains `bit`. A value that extends into a ninth
    byte ends in that byte, so the ninth byte can also be read.
    """
    cdef const uint8_t *at = p + (bit >> 3)
    cdef int shift = <int> (bit & 7)
    cdef uint64_t word = load64(at) >> shift
    if shift + width > 64:
        word |= <uint64_t> at[8] << (64 - shift)
    return word & mask


cdef inline Py_ssize_t loadable(size_t size, int width, Py_ssize_t count) noexcept nogil:
    """Return how many of the `count` values of `width` bits can be read with 8-byte loads within `size` bytes."""
    cdef uint64_t safe
    if width == 0:
        return count
    if size < 8:
        return 0
    # Usually bytes follow the last value, and no division is needed to know.
    if <uint64_t> count * <uint64_t> width <= <uint64_t> (size - 8) * 8:
        return count
    # The load for value i starts at byte i * width // 8, which must be at most size - 8.
    safe = ((<uint64_t> (size - 8)) * 8 + 7) // <uint64_t> width + 1
    return <Py_ssize_t> safe if safe < <uint64_t> count else count


cdef inline uint64_t last_value_at(
    const uint8_t *p, size_t size, uint64_t bit, int width, uint64_t mask
) noexcept nogil:
    """Return the value that starts at `bit` and ends within `size` bytes, without reading beyond them."""
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
    """Pack `count` values below 2**width into ceil(count * width / 8) bytes; return the end of these bytes.

    Up to 8 bytes after the end may be overwritten.
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
    """Return the number of bits in `value` up to its highest bit that is set; 0 for 0."""
    cdef int count = 0
    while value >= 256:
        value >>= 8
        count += 8
    while value:
        value >>= 1
        count += 1
    return count
