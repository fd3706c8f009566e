# Bit-packed integers, least significant bit first: the packing of the hybrid, delta and ALP encodings.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

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
    """`count` values of 1 to 32 bits from `size` bytes, which must hold them all.

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
