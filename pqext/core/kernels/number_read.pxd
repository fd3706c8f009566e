# cython: language_level=3
# Decimal text to the nearest double: a significand of 64 bits and a power of ten by one or two multiplications
# (Lemire, "Number parsing at a gigabyte per second", 2021), anything else by the C library.
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from * nogil:
    """
    #include <string.h>
    #include "pqext/core/kernels/portable.h"
    #include "pqext/core/kernels/powers.h"

    /* All integers up to here are doubles. */
    static const uint64_t pqext_max_exact = 1ULL << 53;
    static const double pqext_exact_powers[23] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
        1e19, 1e20, 1e21, 1e22,
    };

    /* The double nearest to w * 10^power into *out; 0 where this way does not say (zero, subnormals, overflow, ties
       that 128 bits do not settle). */
    static inline int pqext_nearest_double(uint64_t w, int64_t power, double *out) {
        const uint64_t *five;
        uint64_t low, high, mantissa, bits;
        int zeros, top;
        int64_t exponent;
        if (w == 0 || power < PQEXT_LEAST_POWER || power > 308) return 0;
        five = pqext_powers[power - PQEXT_LEAST_POWER];
        zeros = 63 - pqext_highest_bit(w);
        w <<= zeros;
        low = pqext_multiply(w, five[0], &high);
        if ((high & 0x1FF) == 0x1FF) {
            uint64_t more;
            pqext_multiply(w, five[1], &more);
            low += more;
            if (low < more) high++;
        }
        if (low == 0xFFFFFFFFFFFFFFFFULL && (power < -27 || power > 55)) return 0;
        top = (int) (high >> 63);
        mantissa = high >> (top + 9);
        exponent = ((217706 * power) >> 16) + 63 + top - zeros + 1023;
        if (exponent <= 0) return 0;
        /* Exactly between two doubles: to the even one. */
        if (low <= 1 && power >= -4 && power <= 23 && (mantissa & 3) == 1 && mantissa << (top + 9) == high)
            mantissa &= ~1ULL;
        mantissa += mantissa & 1;
        mantissa >>= 1;
        if (mantissa >= 1ULL << 53) {
            mantissa = 1ULL << 52;
            exponent++;
        }
        if (exponent >= 0x7FF) return 0;
        bits = (uint64_t) exponent << 52 | (mantissa & ~(1ULL << 52));
        memcpy(out, &bits, 8);
        return 1;
    }
    """
    double strtod_c "pqext_strtod"(const char *s)
    const uint64_t MAX_EXACT "pqext_max_exact"
    const double *EXACT_POWERS "pqext_exact_powers"
    bint nearest_double "pqext_nearest_double"(uint64_t w, int64_t power, double *out)


cdef enum:
    READABLE_DIGITS = 770   # of further digits only matters whether any is not zero


cdef inline double _read_slowly(const uint8_t *p, const uint8_t *end, int64_t exponent) noexcept nogil:
    """Convert the digits of [p, end), which may include a point, times ten to the `exponent`.

    Supports any number of digits.
    """
    cdef char[READABLE_DIGITS + 32] text
    cdef int count = 0, i
    cdef bint rest = False
    while p < end:
        if p[0] == c'.':
            p += 1
            continue
        if count or p[0] != c'0':
            if count < READABLE_DIGITS:
                text[count] = <char> p[0]
                count += 1
            else:
                rest |= p[0] != c'0'
                exponent += 1
        p += 1
    if rest:
        text[count - 1] = c'1' if text[count - 1] == c'0' else text[count - 1]
    if count == 0:
        return 0.0
    # For all exponents beyond 9,999 the result is zero or infinite.
    text[count] = c'e'
    text[count + 1] = c'-' if exponent < 0 else c'+'
    exponent = -exponent if exponent < 0 else exponent
    exponent = exponent if exponent < 9999 else 9999
    for i in range(4):
        text[count + 5 - i] = <char> (c'0' + exponent % 10)
        exponent = exponent // 10
    text[count + 6] = 0
    return strtod_c(text)


cdef inline const uint8_t *read_double(const uint8_t *p, const uint8_t *end, bint json, double *out) noexcept nogil:
    """Read the number at `p` as the nearest double into `out`.

    Return the end of its text; NULL if it is invalid or infinite.

    A number has digits, an optional point and an optional exponent. With `json`, it must not have a plus sign or a
    leading zero, and a point must have digits on both sides.
    """
    cdef const uint8_t *digits
    cdef const uint8_t *stop
    cdef uint64_t low = 0
    cdef int64_t precision = 0, fraction = 0, exponent = 0
    cdef bint negative = False, below = False, point = False
    cdef double value = 0.0
    if p < end and (p[0] == c'-' or (p[0] == c'+' and not json)):
        negative = p[0] == c'-'
        p += 1
    digits = p
    while p < end and c'0' <= p[0] <= c'9':
        if precision or p[0] != c'0':
            precision += 1
            if precision <= 19:
                low = low * 10 + <uint64_t> (p[0] - c'0')
        p += 1
    if json and (p == digits or (digits[0] == c'0' and p - digits > 1)):
        return NULL
    if p < end and p[0] == c'.':
        point = True
        p += 1
        stop = p
        while p < end and c'0' <= p[0] <= c'9':
            if precision or p[0] != c'0':
                precision += 1
                if precision <= 19:
                    low = low * 10 + <uint64_t> (p[0] - c'0')
            p += 1
        fraction = p - stop
        if json and fraction == 0:
            return NULL
    stop = p
    if stop - digits == point:
        return NULL
    if p < end and (p[0] | 0x20) == c'e':
        p += 1
        if p < end and (p[0] == c'+' or p[0] == c'-'):
            below = p[0] == c'-'
            p += 1
        if p == end or not c'0' <= p[0] <= c'9':
            return NULL
        while p < end and c'0' <= p[0] <= c'9':
            if exponent < 1000000000000LL:
                exponent = exponent * 10 + (p[0] - c'0')
            p += 1
        if below:
            exponent = -exponent
    exponent -= fraction
    if precision <= 19 and low <= MAX_EXACT and -22 <= exponent <= 22:
        # Both operands are exact, so that the result is rounded once.
        value = <double> low
        value = value / EXACT_POWERS[-exponent] if exponent < 0 else value * EXACT_POWERS[exponent]
    elif precision > 19 or not nearest_double(low, exponent, &value):
        value = _read_slowly(digits, stop, exponent)
        if value - value != 0.0:
            return NULL
    out[0] = -value if negative else value
    return p
