# cython: language_level=3, cdivision=True
# Dates, times of day, time zones and timestamps from text, in the forms that Spark reads.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t

from pqext.variant.kernels.text cimport trim
from pqext.variant.kernels.text_write cimport floor_divide


cdef enum:
    HOUR_NANOS = 3600000000000


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


cdef inline bint _clock(const uint8_t *p, size_t n, size_t *at, bint hour_alone, int64_t *nanos) noexcept nogil:
    """Parse h:m[:s[.f]] as nanoseconds since midnight; digits of the fraction beyond the ninth are dropped."""
    cdef int64_t hours, minutes = 0, seconds = 0, digit
    cdef int64_t unit = 100_000_000
    nanos[0] = 0
    if not _digits(p, n, at, 1, 2, &hours):
        return False
    if at[0] < n and p[at[0]] == c':':
        at[0] += 1
        if not _digits(p, n, at, 1, 2, &minutes):
            return False
        if at[0] < n and p[at[0]] == c':':
            at[0] += 1
            if not _digits(p, n, at, 1, 2, &seconds):
                return False
            if at[0] < n and p[at[0]] == c'.':
                at[0] += 1
                while _digits(p, n, at, 1, 1, &digit):
                    nanos[0] += digit * unit
                    unit //= 10
    elif not hour_alone:
        return False
    if hours > 23 or minutes > 59 or seconds > 59:
        return False
    nanos[0] += ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000
    return True


cdef inline bint _zone(const uint8_t *p, size_t n, int64_t *seconds) noexcept nogil:
    """Parse a zone: Z, or an offset h, hh, h:m, hh:mm, hhmm, hh:mm:ss or hhmmss after an optional UTC, GMT or UT.

    An empty zone is UTC. Names are in capitals, as in Java.
    """
    cdef int64_t hours, minutes = 0, rest = 0
    cdef int64_t sign
    cdef size_t at = 0
    cdef bint colon
    trim(&p, &n)
    seconds[0] = 0
    if n == 0 or (n == 1 and p[0] == c'Z'):
        return True
    if n >= 3 and ((p[0] == c'U' and p[1] == c'T' and p[2] == c'C') or (p[0] == c'G' and p[1] == c'M' and p[2] == c'T')):
        at = 3
    elif n >= 2 and p[0] == c'U' and p[1] == c'T':
        at = 2
    if at == n:
        return True
    if p[at] != c'+' and p[at] != c'-':
        return False
    sign = -1 if p[at] == c'-' else 1
    at += 1
    if not _digits(p, n, &at, 1, 2, &hours):
        return False
    if at < n:
        colon = p[at] == c':'
        at += colon
        if not _digits(p, n, &at, 1 if colon else 2, 2, &minutes):
            return False
        if at < n:
            if colon != (p[at] == c':'):
                return False
            at += colon
            if not _digits(p, n, &at, 2, 2, &rest):
                return False
    if minutes > 59 or rest > 59:
        return False
    seconds[0] = hours * 3600 + minutes * 60 + rest
    if seconds[0] > 18 * 3600:
        return False
    seconds[0] *= sign
    return at == n


cdef inline bint parse_time(const uint8_t *p, size_t n, int64_t *nanos) noexcept nogil:
    """Parse a time of day, optionally preceded by T or followed by AM or PM."""
    cdef size_t at = 0, digits = 0
    cdef int half = 0     # 1 for AM, 2 for PM
    trim(&p, &n)
    if n >= 2 and p[n - 1] | 0x20 == c'm' and (p[n - 2] | 0x20 == c'a' or p[n - 2] | 0x20 == c'p'):
        half = 1 if p[n - 2] | 0x20 == c'a' else 2
        n -= 2
        trim(&p, &n)
    elif n and p[0] == c'T':
        at = 1
    if not _clock(p, n, &at, False, nanos) or at != n:
        return False
    if half:
        if not HOUR_NANOS <= nanos[0] < 13 * HOUR_NANOS:
            return False
        nanos[0] = nanos[0] % (12 * HOUR_NANOS) + (12 * HOUR_NANOS if half == 2 else 0)
    return True


cdef inline bint _date(const uint8_t *p, size_t n, size_t *at, bint *whole, int64_t *day) noexcept nogil:
    """Parse [+-]y[y..]-m-d with a year of four to seven digits; day and month are optional."""
    cdef int64_t y, m = 1, d = 1
    cdef bint negative = False
    whole[0] = False
    if n and (p[0] == c'-' or p[0] == c'+'):
        negative = p[0] == c'-'
        at[0] = 1
    if not _digits(p, n, at, 4, 7, &y):
        return False
    if negative:
        y = -y
    if at[0] < n and p[at[0]] == c'-':
        at[0] += 1
        if not _digits(p, n, at, 1, 2, &m):
            return False
        if at[0] < n and p[at[0]] == c'-':
            at[0] += 1
            if not _digits(p, n, at, 1, 2, &d):
                return False
            whole[0] = True
    if not (1 <= m <= 12 and 1 <= d <= days_in_month(y, <int> m)):
        return False
    day[0] = days_from_civil(y, <int> m, <int> d)
    return True


cdef inline bint parse_date(const uint8_t *p, size_t n, int64_t *day) noexcept nogil:
    """Parse a date; text after a T or a blank that follows a complete date is ignored, as in Spark."""
    cdef size_t at = 0
    cdef bint whole = False
    trim(&p, &n)
    return _date(p, n, &at, &whole, day) and (at == n or (whole and (p[at] == c'T' or p[at] == c' ')))


cdef inline bint parse_timestamp(
    const uint8_t *p, size_t n, int64_t *day, int64_t *nanos, bint *has_zone, int64_t *offset
) noexcept nogil:
    """Parse an ISO 8601 date with optional time of day and zone: days since 1970, nanoseconds of the day, offset from
    UTC.
    """
    cdef size_t at = 0
    cdef bint whole = False
    trim(&p, &n)
    nanos[0] = 0
    offset[0] = 0
    has_zone[0] = False
    if not _date(p, n, &at, &whole, day):
        return False
    if at == n:
        return True
    if not whole or (p[at] != c'T' and p[at] != c' '):
        return False
    at += 1
    if not _clock(p, n, &at, True, nanos):
        return False
    has_zone[0] = at < n
    return _zone(p + at, n - at, offset)
