# cython: language_level=3, cdivision=True
# Numbers from text, for the casts of variant values; `text_times` has dates and times.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pqext.variant.kernels.exact cimport int128
from pqext.variant.kernels.text_write cimport write_decimal

cdef extern from * nogil:
    """
    #include <float.h>
    #include <math.h>
    #include <stdint.h>
    #include <string.h>
    #include "pqext/core/kernels/portable.h"
    /* m * 10**k for k from -27 to 27, where a wider floating point makes it plain how the result is rounded. */
    static inline int pqext_nearest(uint64_t m, int k, double *out) {
    #if LDBL_MANT_DIG == 64
        static const long double tens[28] = {
            1e0L, 1e1L, 1e2L, 1e3L, 1e4L, 1e5L, 1e6L, 1e7L, 1e8L, 1e9L, 1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L,
            1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L
        };
        /* Both operands are exact; the quotient or product is rounded to 64 bits, 11 more than a double has. */
        long double v = k < 0 ? (long double) m / tens[-k] : (long double) m * tens[k];
        uint64_t bits;
        memcpy(&bits, &v, 8);
        *out = (double) v;
        return (bits & 0x7FF) != 0x400;
    #else
        static const double tens[23] = {
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
            1e19, 1e20, 1e21, 1e22
        };
        if (m > 1ULL << 53 || k < -22 || k > 22) return 0;
        *out = k < 0 ? (double) m / tens[-k] : (double) m * tens[k];
        return 1;
    #endif
    }
    /* Is a double within the range of normal floats, and not halfway between two of them? */
    static inline int pqext_rounds_once(double v) {
        uint64_t bits;
        memcpy(&bits, &v, 8);
        return fabs(v) >= 1.1754943508222875e-38 && (bits & 0x1FFFFFFF) != 0x10000000;
    }
    """
    double strtod_c "pqext_strtod"(const char *s)
    float strtof_c "pqext_strtof"(const char *s)
    bint nearest "pqext_nearest"(uint64_t m, int k, double *out)
    bint rounds_once "pqext_rounds_once"(double v)
    double copysign(double v, double sign)
    double NAN
    double INFINITY
    bint isfinite(double v)
    bint isnan(double v)


cdef struct Number:
    # Parsed number: mantissa times ten to the exponent, or a special floating-point value.
    int128 mantissa
    int64_t exponent
    bint negative
    bint dropped      # whether digits beyond the 38th are not all zero
    bint special
    bint far          # whether the written exponent exceeds 32 bits
    double value      # value of a special


cdef inline bint is_space(uint8_t c) noexcept nogil:
    return c <= 0x20


cdef inline void trim(const uint8_t **p, size_t *n) noexcept nogil:
    while n[0] and is_space(p[0][0]):
        p[0] += 1
        n[0] -= 1
    while n[0] and is_space(p[0][n[0] - 1]):
        n[0] -= 1


cdef inline bint is_word(const uint8_t *p, size_t n, const char *word) noexcept nogil:
    """Return whether the text is `word`, which is in lower case, ignoring case."""
    cdef size_t i = 0
    cdef uint8_t c
    while i < n and word[i]:
        c = p[i]
        if c'A' <= c <= c'Z':
            c += 32
        if c != <uint8_t> word[i]:
            return False
        i += 1
    return i == n and not word[i]


cdef inline bint parse_bool(const uint8_t *p, size_t n, bint *out) noexcept nogil:
    trim(&p, &n)
    out[0] = is_word(p, n, b"true") or is_word(p, n, b"t") or is_word(p, n, b"yes") or is_word(p, n, b"y") \
        or is_word(p, n, b"1")
    return out[0] or is_word(p, n, b"false") or is_word(p, n, b"f") or is_word(p, n, b"no") \
        or is_word(p, n, b"n") or is_word(p, n, b"0")


cdef inline bint parse_number(const uint8_t *p, size_t n, Number *out) noexcept nogil:
    """Parse a decimal number with optional sign, point and exponent, or NaN, Inf or Infinity.

    Surrounding blanks are allowed.
    """
    cdef size_t i = 0
    cdef bint negative = False, any_digit = False, point = False, exponent_negative = False
    cdef int digits = 0
    cdef int64_t exponent = 0, written = 0
    cdef uint8_t c
    trim(&p, &n)
    out.mantissa = 0
    out.exponent = 0
    out.dropped = False
    out.special = False
    out.far = False
    if n and (p[0] == c'-' or p[0] == c'+'):
        negative = p[0] == c'-'
        i = 1
    out.negative = negative
    if is_word(p + i, n - i, b"nan"):
        # Spark accepts the word in any case, but with a sign only in Java's spelling.
        out.special = True
        out.value = NAN
        return i == 0 or p[i + 1] == c'a'
    if is_word(p + i, n - i, b"inf") or is_word(p + i, n - i, b"infinity"):
        out.special = True
        out.value = -INFINITY if negative else INFINITY
        return True
    while i < n:
        c = p[i]
        if c == c'.' and not point:
            point = True
        elif c'0' <= c <= c'9':
            any_digit = True
            if digits < 38:
                out.mantissa = out.mantissa * 10 + (c - c'0')
                if out.mantissa:
                    digits += 1
                exponent -= point
            else:
                out.dropped = out.dropped or c != c'0'
                exponent += not point
        else:
            break
        i += 1
    if not any_digit:
        return False
    if i < n and (p[i] == c'e' or p[i] == c'E'):
        i += 1
        if i < n and (p[i] == c'-' or p[i] == c'+'):
            exponent_negative = p[i] == c'-'
            i += 1
        any_digit = False
        while i < n and c'0' <= p[i] <= c'9':
            any_digit = True
            if written < 1000000000:
                written = written * 10 + (p[i] - c'0')
            i += 1
        if not any_digit:
            return False
        out.far = written > 0x7FFFFFFF
        exponent += -written if exponent_negative else written
    if i != n:
        return False
    out.exponent = exponent
    if negative:
        out.mantissa = -out.mantissa
    return True


cdef inline bint is_suffixed(const uint8_t *p, size_t n) noexcept nogil:
    """Return whether the text ends in d or f after a digit or a point, as Java literals may."""
    trim(&p, &n)
    if n < 2 or (p[n - 2] != c'.' and not c'0' <= p[n - 2] <= c'9'):
        return False
    return p[n - 1] == c'd' or p[n - 1] == c'D' or p[n - 1] == c'f' or p[n - 1] == c'F'


cdef inline double number_to_floating(const Number *number, const uint8_t *p, size_t n, bint narrow) noexcept nogil:
    """Return the nearest double (or float, if `narrow`) of a parsed number. Its text `p` is used beyond 38 digits."""
    cdef char text[72]
    cdef char *copy
    cdef double value
    cdef int128 magnitude = number.mantissa if number.mantissa >= 0 else -number.mantissa
    cdef uint8_t *digits
    if number.special:
        return number.value
    if number.mantissa == 0 and not number.dropped:
        return copysign(0.0, -1.0 if number.negative else 1.0)
    if magnitude >> 64 == 0 and -27 <= number.exponent <= 27 and not number.dropped:
        if nearest(<uint64_t> magnitude, <int> number.exponent, &value) and (not narrow or rounds_once(value)):
            return -value if number.mantissa < 0 else value
    if not number.dropped:
        digits = write_decimal(
            <uint8_t *> text, <int64_t> (number.mantissa >> 64), <uint64_t> number.mantissa, 0
        )
        snprintf(<char *> digits, 30, b"e%lld", <long long> number.exponent)
        return strtof_c(text) if narrow else strtod_c(text)
    copy = <char *> malloc(n + 1)
    if copy == NULL:
        return NAN
    memcpy(copy, p, n)
    copy[n] = 0
    value = strtof_c(copy) if narrow else strtod_c(copy)
    free(copy)
    return value


cdef inline double exact_to_floating(int128 unscaled, int scale, bint narrow) noexcept nogil:
    cdef Number number
    if scale == 0 and <int64_t> unscaled == unscaled:
        return <double> <float> <int64_t> unscaled if narrow else <double> <int64_t> unscaled
    number.mantissa = unscaled
    number.exponent = -scale
    number.negative = False
    number.dropped = False
    number.special = False
    return number_to_floating(&number, NULL, 0, narrow)


cdef inline double exact_to_double(int128 unscaled, int scale) noexcept nogil:
    return exact_to_floating(unscaled, scale, False)


cdef inline bint parse_hexadecimal(const uint8_t *p, size_t n, bint narrow, double *out) noexcept nogil:
    """Parse a hexadecimal floating-point number with a binary exponent, such as 0x1.8p3, as Java does."""
    cdef char text[72]
    cdef size_t i = 0, start
    cdef bint any_digit = False, point = False
    trim(&p, &n)
    if is_suffixed(p, n):
        n -= 1
    if n >= sizeof(text):
        return False
    memcpy(text, p, n)
    text[n] = 0
    if i < n and (p[i] == c'-' or p[i] == c'+'):
        i += 1
    if n - i < 4 or p[i] != c'0' or p[i + 1] | 0x20 != c'x':
        return False
    i += 2
    while i < n and (c'0' <= p[i] <= c'9' or c'a' <= p[i] | 0x20 <= c'f' or (p[i] == c'.' and not point)):
        point = point or p[i] == c'.'
        any_digit = any_digit or p[i] != c'.'
        i += 1
    if not any_digit or i == n or p[i] | 0x20 != c'p':
        return False
    i += 1
    if i < n and (p[i] == c'-' or p[i] == c'+'):
        i += 1
    start = i
    while i < n and c'0' <= p[i] <= c'9':
        i += 1
    if i != n or i == start:
        return False
    out[0] = strtof_c(text) if narrow else strtod_c(text)
    return True
