# cython: language_level=3, cdivision=True
# Decimals of up to 76 digits: 256-bit magnitudes, made from 128-bit numbers and from text, and stored at any width.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t

from pqext.variant.kernels.exact cimport int128, power_of_ten
from pqext.variant.kernels.text cimport trim

cdef extern from *:
    """
    #include "pqext/core/kernels/portable.h"

    /* magnitude * factor + add; is there an overflow? */
    static inline int pqext_wide_step(uint64_t *limbs, uint64_t factor, uint64_t add) {
        for (int i = 0; i < 4; i++) {
            uint64_t high, low = pqext_multiply(limbs[i], factor, &high);
            limbs[i] = low + add;
            add = high + (limbs[i] < low);
        }
        return add != 0;
    }
    """
    bint wide_step "pqext_wide_step"(uint64_t *limbs, uint64_t factor, uint64_t add) noexcept nogil


cdef struct Wide:
    uint64_t[4] limbs     # limbs of the magnitude, lowest first
    bint negative


cdef inline void wide_set(Wide *w, int128 v) noexcept nogil:
    cdef int128 magnitude = -v if v < 0 else v
    w.negative = v < 0
    w.limbs[0] = <uint64_t> magnitude
    w.limbs[1] = <uint64_t> (magnitude >> 64)
    w.limbs[2] = 0
    w.limbs[3] = 0


cdef inline bint wide_shift(Wide *w, int64_t digits) noexcept nogil:
    """Multiply by ten to the `digits`; return False on overflow."""
    if not (w.limbs[0] or w.limbs[1] or w.limbs[2] or w.limbs[3]):
        return True
    if digits > 76:
        return False
    while digits > 0:
        if wide_step(&w.limbs[0], <uint64_t> power_of_ten(18 if digits > 18 else <int> digits), 0):
            return False
        digits -= 18
    return True


cdef inline bint wide_fits(const Wide *w, int precision) noexcept nogil:
    """Return whether the number has at most `precision` (1 to 76) digits."""
    cdef uint64_t[4] bound
    cdef int i
    for i in range(4):
        bound[i] = i == 0
    while precision > 0:
        wide_step(&bound[0], <uint64_t> power_of_ten(18 if precision > 18 else precision), 0)
        precision -= 18
    for i in range(3, -1, -1):
        if w.limbs[i] != bound[i]:
            return w.limbs[i] < bound[i]
    return False


cdef inline void wide_store(const Wide *w, uint64_t *out) noexcept nogil:
    """Store the number as 32 bytes in two's complement; its lower bytes are the number in narrower types."""
    cdef int i
    cdef uint64_t carry = 1
    for i in range(4):
        out[i] = w.limbs[i]
        if w.negative:
            out[i] = ~w.limbs[i] + carry
            carry = carry and out[i] == 0


cdef inline bint wide_from_text(const uint8_t *p, size_t n, int scale, Wide *out) noexcept nogil:
    """Convert the text of a number that `parse_number` accepted to `scale`, rounding ties away from zero.

    Return False if it has too many digits.
    """
    cdef size_t i = 0, start
    cdef int64_t weight = -1, written = 0
    cdef bint up = False, exponent_negative
    cdef uint8_t c
    trim(&p, &n)
    wide_set(out, 0)
    if p[0] == c'-' or p[0] == c'+':
        out.negative = p[0] == c'-'
        i = 1
    start = i
    while i < n and p[i] | 0x20 != c'e':
        i += 1
    if i < n:
        i += 1
        exponent_negative = p[i] == c'-'
        while i < n:
            if c'0' <= p[i] <= c'9' and written < 1000000000:
                written = written * 10 + (p[i] - c'0')
            i += 1
        weight += -written if exponent_negative else written
    i = start
    while i < n and c'0' <= p[i] <= c'9':
        weight += 1
        i += 1
    # `weight` is the power of ten of the next digit.
    i = start
    while i < n:
        c = p[i]
        i += 1
        if c == c'.':
            continue
        if not c'0' <= c <= c'9':
            break
        if weight >= -scale:
            if wide_step(&out.limbs[0], 10, c - c'0'):
                return False
        elif weight == -scale - 1:
            up = c >= c'5'
        weight -= 1
    if weight >= -scale and not wide_shift(out, weight + scale + 1):
        return False
    return not up or not wide_step(&out.limbs[0], 1, 1)
