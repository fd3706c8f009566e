# cython: language_level=3, cdivision=True
# Numbers, dates and times from text, for the casts of variant values.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pqext.variant.kernels.exact cimport int128, multiply_overflows, power_of_ten
from pqext.variant.kernels.text_write cimport floor_divide, write_decimal

cdef extern from * nogil:
    """
    #include <locale.h>
    #include <math.h>
    #include <stdlib.h>
    #if defined(__APPLE__)
    #include <xlocale.h>
    #endif
    static locale_t pqext_text_locale;
    static int pqext_text_open(void) {
        if (!pqext_text_locale) pqext_text_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
        return pqext_text_locale ? 0 : -1;
    }
    static inline double pqext_text_strtod(const char *s) { return strtod_l(s, NULL, pqext_text_locale); }
    """
    int text_open "pqext_text_open"()
    double strtod_c "pqext_text_strtod"(const char *s)
    double NAN
    double INFINITY
    bint isfinite(double v)
    bint isnan(double v)


cdef struct Number:
    # A parsed number: mantissa times ten to the exponent; or one of the special values of floating point.
    int128 mantissa
    int64_t exponent
    bint dropped      # digits beyond the 38th were not all zero
    bint half         # the 39th digit was 5 or more
    bint special
    double value      # of a special


cdef inline bint is_space(uint8_t c) noexcept nogil:
    return c <= 0x20


cdef inline void trim(const uint8_t **p, size_t *n) noexcept nogil:
    while n[0] and is_space(p[0][0]):
        p[0] += 1
        n[0] -= 1
    while n[0] and is_space(p[0][n[0] - 1]):
        n[0] -= 1


cdef inline bint is_word(const uint8_t *p, size_t n, const char *word) noexcept nogil:
    """Is this `word`, which is in lower case, in any case?"""
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
    """A decimal number with optional sign, point and exponent, or NaN, Inf, Infinity; blanks around are allowed."""
    cdef size_t i = 0
    cdef bint negative = False, any_digit = False, point = False, exponent_negative = False
    cdef int digits = 0
    cdef int64_t exponent = 0, written = 0
    cdef uint8_t c
    trim(&p, &n)
    out.mantissa = 0
    out.exponent = 0
    out.dropped = False
    out.half = False
    out.special = False
    if n and (p[0] == c'-' or p[0] == c'+'):
        negative = p[0] == c'-'
        i = 1
    if is_word(p + i, n - i, b"nan"):
        out.special = True
        out.value = NAN
        return i == 0
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
                if digits == 38:
                    out.half = c >= c'5'
                    digits += 1
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
            if written < 1000000:
                written = written * 10 + (p[i] - c'0')
            i += 1
        if not any_digit:
            return False
        exponent += -written if exponent_negative else written
    if i != n:
        return False
    out.exponent = exponent
    if negative:
        out.mantissa = -out.mantissa
    return True


cdef inline bint round_half_up(int128 mantissa, int64_t exponent, bint half, int scale, int128 *out) noexcept nogil:
    """mantissa * 10**exponent at `scale`, ties away from zero; False when it overflows 128 bits.

    `half` says that at least half a unit of the mantissa, which then has 38 digits, was left out: that counts
    only when the mantissa's last digit is the result's.
    """
    cdef int64_t shift = exponent + scale
    cdef int128 factor, rest
    if mantissa == 0:
        out[0] = 0
        return True
    if shift == 0:
        out[0] = mantissa + ((-1 if mantissa < 0 else 1) if half else 0)
        return True
    if shift > 0:
        return shift <= 38 and not multiply_overflows(mantissa, power_of_ten(<int> shift), out)
    if shift < -38:
        out[0] = 0
        return True
    factor = power_of_ten(<int> -shift)
    out[0] = mantissa // factor
    rest = mantissa % factor
    if rest < 0:
        rest = -rest
    if rest >= factor - rest:
        out[0] += -1 if mantissa < 0 else 1
    return True


cdef inline double number_to_double(const Number *number, const uint8_t *p, size_t n) noexcept nogil:
    """The nearest double of a parsed number, whose text `p` is needed when it has more than 38 digits."""
    cdef char text[72]
    cdef char *copy
    cdef double value
    cdef int128 magnitude = number.mantissa if number.mantissa >= 0 else -number.mantissa
    cdef uint8_t *digits
    if number.special:
        return number.value
    if magnitude <= (<int128> 1 << 53) and -22 <= number.exponent <= 22 and not number.dropped:
        # Both operands are exact, so that the result is rounded once.
        value = <double> <int64_t> number.mantissa
        if number.exponent < 0:
            return value / <double> <int64_t> power_of_ten(<int> -number.exponent) if number.exponent >= -18 \
                else value / (1e18 * <double> <int64_t> power_of_ten(<int> (-18 - number.exponent)))
        return value * <double> <int64_t> power_of_ten(<int> number.exponent) if number.exponent <= 18 \
            else value * (1e18 * <double> <int64_t> power_of_ten(<int> (number.exponent - 18)))
    if not number.dropped:
        digits = write_decimal(
            <uint8_t *> text, <int64_t> (number.mantissa >> 64), <uint64_t> number.mantissa, 0
        )
        snprintf(<char *> digits, 30, b"e%lld", <long long> number.exponent)
        return strtod_c(text)
    copy = <char *> malloc(n + 1)
    if copy == NULL:
        return NAN
    memcpy(copy, p, n)
    copy[n] = 0
    value = strtod_c(copy)
    free(copy)
    return value


cdef inline double exact_to_double(int128 unscaled, int scale) noexcept nogil:
    cdef Number number
    number.mantissa = unscaled
    number.exponent = -scale
    number.dropped = False
    number.special = False
    return number_to_double(&number, NULL, 0)


# --- Dates and times -----------------------------------------------------------------------------

cdef inline int64_t days_from_civil(int64_t y, int m, int d) noexcept nogil:
    cdef int64_t era, year_of_era, day_of_year
    y -= m <= 2
    era = floor_divide(y, 400)
    year_of_era = y - era * 400
    day_of_year = (153 * (m + (-3 if m > 2 else 9)) + 2) // 5 + d - 1
    return era * 146097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719468


cdef inline int days_in_month(int64_t y, int m) noexcept nogil:
    if m == 2:
        return 29 if (y % 4 == 0 and y % 100 != 0) or y % 400 == 0 else 28
    return 30 if m == 4 or m == 6 or m == 9 or m == 11 else 31


cdef inline bint _digits(const uint8_t *p, size_t n, size_t *at, int least, int most, int64_t *out) noexcept nogil:
    cdef int count = 0
    out[0] = 0
    while at[0] < n and count < most and c'0' <= p[at[0]] <= c'9':
        out[0] = out[0] * 10 + (p[at[0]] - c'0')
        at[0] += 1
        count += 1
    return count >= least


cdef inline bint _clock(const uint8_t *p, size_t n, size_t *at, int64_t *nanos) noexcept nogil:
    """hh:mm[:ss[.f]] as nanoseconds since midnight; of a fraction, digits beyond the ninth are dropped."""
    cdef int64_t hours, minutes, seconds = 0, digit
    cdef int64_t unit = 100_000_000
    if not _digits(p, n, at, 1, 2, &hours) or at[0] >= n or p[at[0]] != c':':
        return False
    at[0] += 1
    if not _digits(p, n, at, 1, 2, &minutes):
        return False
    nanos[0] = 0
    if at[0] < n and p[at[0]] == c':':
        at[0] += 1
        if not _digits(p, n, at, 1, 2, &seconds):
            return False
        if at[0] < n and p[at[0]] == c'.':
            at[0] += 1
            if not _digits(p, n, at, 1, 1, &digit):
                return False
            while True:
                nanos[0] += digit * unit
                unit //= 10
                if not _digits(p, n, at, 1, 1, &digit):
                    break
    if hours > 23 or minutes > 59 or seconds > 59:
        return False
    nanos[0] += ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000
    return True


cdef inline bint _zone(const uint8_t *p, size_t n, size_t *at, int64_t *seconds) noexcept nogil:
    """Z, UTC, GMT or an offset as hh, hh:mm or hhmm; nothing is UTC."""
    cdef int64_t hours, minutes = 0
    cdef int64_t sign
    seconds[0] = 0
    while at[0] < n and p[at[0]] == c' ':
        at[0] += 1
    if at[0] == n:
        return True
    if is_word(p + at[0], n - at[0], b"z") or is_word(p + at[0], n - at[0], b"utc") \
            or is_word(p + at[0], n - at[0], b"gmt"):
        at[0] = n
        return True
    if p[at[0]] != c'+' and p[at[0]] != c'-':
        return False
    sign = -1 if p[at[0]] == c'-' else 1
    at[0] += 1
    if not _digits(p, n, at, 1, 2, &hours):
        return False
    if at[0] < n and p[at[0]] == c':':
        at[0] += 1
        if not _digits(p, n, at, 2, 2, &minutes):
            return False
    elif at[0] < n and not _digits(p, n, at, 2, 2, &minutes):
        return False
    if hours > 18 or minutes > 59:
        return False
    seconds[0] = sign * (hours * 3600 + minutes * 60)
    return at[0] == n


cdef inline bint parse_time(const uint8_t *p, size_t n, int64_t *nanos) noexcept nogil:
    cdef size_t at = 0
    trim(&p, &n)
    return _clock(p, n, &at, nanos) and at == n


cdef inline bint parse_timestamp(
    const uint8_t *p, size_t n, int64_t *day, int64_t *nanos, int64_t *zone
) noexcept nogil:
    """An ISO 8601 date with an optional time of day and zone: days since 1970, nanoseconds of the day, UTC offset."""
    cdef size_t at = 0
    cdef int64_t y, m = 1, d = 1
    cdef bint negative = False
    trim(&p, &n)
    nanos[0] = 0
    zone[0] = 0
    if n and (p[0] == c'-' or p[0] == c'+'):
        negative = p[0] == c'-'
        at = 1
    if not _digits(p, n, &at, 4, 6, &y):
        return False
    if negative:
        y = -y
    if at < n and p[at] == c'-':
        at += 1
        if not _digits(p, n, &at, 1, 2, &m):
            return False
        if at < n and p[at] == c'-':
            at += 1
            if not _digits(p, n, &at, 1, 2, &d):
                return False
    if not (1 <= m <= 12 and 1 <= d <= days_in_month(y, <int> m)):
        return False
    day[0] = days_from_civil(y, <int> m, <int> d)
    if at == n:
        return True
    if p[at] != c'T' and p[at] != c' ' and p[at] != c't':
        return False
    at += 1
    return _clock(p, n, &at, nanos) and _zone(p, n, &at, zone)
