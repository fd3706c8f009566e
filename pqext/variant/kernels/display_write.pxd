# cython: language_level=3, cdivision=True
# Values as DuckDB casts them to VARCHAR. Each function appends at p, where 64 bytes must be free, and returns the end.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_reserve
from pqext.core.kernels.number_write cimport write_digits, write_integer, write_padded
from pqext.variant.kernels.text_write cimport civil_date, floor_divide


cdef enum:
    BLOB_STEP = 4096        # bytes of a binary value per reservation


cdef inline uint8_t *show_date(uint8_t *p, int64_t days) noexcept nogil:
    """Write days since 1970-01-01 as a date; "(BC)" follows years before 1. Return the end of the text."""
    cdef uint32_t month, day
    cdef int64_t year = civil_date(days, &month, &day)
    cdef bint before_christ = year < 1
    if before_christ:
        year = 1 - year
    p = write_padded(p, <uint32_t> year, 4) if year <= 9999 else write_digits(p, <uint64_t> year)
    p[0] = c'-'
    p = write_padded(p + 1, month, 2)
    p[0] = c'-'
    p = write_padded(p + 1, day, 2)
    if before_christ:
        memcpy(p, b" (BC)", 5)
        p += 5
    return p


cdef inline uint8_t *show_clock(
    uint8_t *p, uint64_t ticks, uint64_t ticks_per_second, int digits
) noexcept nogil:
    """Write hours (possibly more than a day), minutes, seconds and a fraction without trailing zeros. Return the end.
    """
    cdef uint64_t seconds = ticks // ticks_per_second
    cdef uint32_t fraction = <uint32_t> (ticks % ticks_per_second)
    cdef uint64_t hours = seconds // 3600
    p = write_padded(p, <uint32_t> hours, 2) if hours < 100 else write_digits(p, hours)
    p[0] = c':'
    p = write_padded(p + 1, <uint32_t> (seconds // 60 % 60), 2)
    p[0] = c':'
    p = write_padded(p + 1, <uint32_t> (seconds % 60), 2)
    if fraction:
        p[0] = c'.'
        p = write_padded(p + 1, fraction, digits)
        while p[-1] == c'0':
            p -= 1
    return p


cdef inline uint8_t *show_timestamp(
    uint8_t *p, int64_t ticks, int64_t ticks_per_second, int digits, bint utc
) noexcept nogil:
    cdef int64_t ticks_per_day = 86400 * ticks_per_second
    cdef int64_t days = floor_divide(ticks, ticks_per_day)
    p = show_date(p, days)
    p[0] = c' '
    # The product may overflow int64 even if the difference does not.
    p = show_clock(
        p + 1, <uint64_t> ticks - <uint64_t> days * <uint64_t> ticks_per_day, <uint64_t> ticks_per_second, digits
    )
    if utc:
        memcpy(p, b"+00", 3)
        p += 3
    return p


cdef inline uint8_t *_show_unit(uint8_t *p, const uint8_t *start, int64_t value, const char *unit, size_t n) noexcept nogil:
    if value == 0:
        return p
    if p != start:
        p[0] = c' '
        p += 1
    p = write_integer(p, value)
    p[0] = c' '
    memcpy(p + 1, unit, n)
    p += 1 + n
    if value != 1 and value != -1:
        p[0] = c's'
        p += 1
    return p


cdef inline uint8_t *show_interval(
    uint8_t *p, int32_t months, int32_t days, int64_t ticks, int64_t ticks_per_second, int digits
) noexcept nogil:
    cdef const uint8_t *start = p
    p = _show_unit(p, start, months // 12, b"year", 4)
    p = _show_unit(p, start, months % 12, b"month", 5)
    p = _show_unit(p, start, days, b"day", 3)
    if ticks == 0 and p != start:
        return p
    if p != start:
        p[0] = c' '
        p += 1
    if ticks < 0:
        p[0] = c'-'
        p += 1
    return show_clock(p, -<uint64_t> ticks if ticks < 0 else <uint64_t> ticks, <uint64_t> ticks_per_second, digits)


cdef inline int show_bytes(Bytes *out, const uint8_t *data, size_t n, bint escaped) noexcept nogil:
    """Write printable ASCII unchanged, and all other bytes as \\xAB; 0, or -1 if memory is exhausted.

    `escaped`: double backslashes, as within a JSON string.
    """
    cdef const char *hexadecimal = b"0123456789ABCDEF"
    cdef uint8_t *p = NULL
    cdef size_t i
    cdef uint8_t c
    for i in range(n):
        if i % BLOB_STEP == 0:
            if p != NULL:
                out.size = p - out.data
            if bytes_reserve(out, BLOB_STEP * 5 + 64) != 0:
                return -1
            p = out.data + out.size
        c = data[i]
        if 32 <= c <= 126 and c != c'\\' and c != c'"' and c != c"'":
            p[0] = c
            p += 1
            continue
        p[0] = c'\\'
        p += 1
        if escaped:
            p[0] = c'\\'
            p += 1
        p[0] = c'x'
        p[1] = <uint8_t> hexadecimal[c >> 4]
        p[2] = <uint8_t> hexadecimal[c & 15]
        p += 3
    if p != NULL:
        out.size = p - out.data
    return 0


cdef inline uint8_t *show_special(uint8_t *p, bint negative, bint is_nan, bint quoted) noexcept nogil:
    """Write NaN or an infinity, in quotes for JSON, which does not have these numbers. Return the end of the text."""
    if quoted:
        p[0] = c'"'
        p += 1
    if negative and not is_nan:
        p[0] = c'-'
        p += 1
    memcpy(p, b"nan" if is_nan else b"inf", 3)
    p += 3
    if quoted:
        p[0] = c'"'
        p += 1
    return p
