# cython: language_level=3
# Numbers, dates and times as text. Each writer appends at p, where 64 bytes must be free, and returns the end.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pqext.core.kernels.number_write cimport (
    POWERS_OF_TEN, digit_count, shortest_digits, write_digits, write_padded, write_shortest,
)
from pqext.variant.kernels.zone cimport ZoneTable, offset_of_instant, write_offset


# --- Integers and decimals -----------------------------------------------------------------------

cdef inline uint8_t *write_decimal(uint8_t *p, int64_t high, uint64_t low, int scale) noexcept nogil:
    """Write a 128-bit integer with `scale` digits (at most 38) after the point. Return the end of the text."""
    cdef uint8_t[40] digits
    cdef uint32_t[4] limbs
    cdef uint64_t rest
    cdef int count = 0, i
    if high < 0:
        p[0] = c'-'
        p += 1
        low = ~low + 1
        high = <int64_t> (~<uint64_t> high + (low == 0))
    limbs[0] = <uint32_t> (<uint64_t> high >> 32)
    limbs[1] = <uint32_t> high
    limbs[2] = <uint32_t> (low >> 32)
    limbs[3] = <uint32_t> low
    if high == 0 and scale <= 18 and low >= POWERS_OF_TEN[scale]:
        # With a digit before the point and at most 64 bits: write it without the point, then insert the point.
        count = digit_count(low)
        write_digits(p, low)
        if scale == 0:
            return p + count
        memmove(p + count - scale + 1, p + count - scale, scale)
        p[count - scale] = c'.'
        return p + count + 1
    # At most 39 digits, in reverse.
    while count <= scale or limbs[0] | limbs[1] | limbs[2] | limbs[3]:
        if limbs[0] | limbs[1]:
            rest = 0
            for i in range(4):
                rest = rest << 32 | limbs[i]
                limbs[i] = <uint32_t> (rest // 10)
                rest = rest % 10
        else:
            low = <uint64_t> limbs[2] << 32 | limbs[3]
            rest = low % 10
            low = low // 10
            limbs[2] = <uint32_t> (low >> 32)
            limbs[3] = <uint32_t> low
        digits[count] = <uint8_t> (c'0' + rest)
        count += 1
    while count > 0:
        count -= 1
        p[0] = digits[count]
        p += 1
        if count == scale and scale:
            p[0] = c'.'
            p += 1
    return p


cdef inline uint8_t *write_stripped_decimal(uint8_t *p, int64_t high, uint64_t low, int scale) noexcept nogil:
    """Write a decimal without trailing zeros in its fraction, so that equal numbers have equal text."""
    p = write_decimal(p, high, low, scale)
    if scale:
        while p[-1] == c'0':
            p -= 1
        if p[-1] == c'.':
            p -= 1
    return p


# --- Floating point ------------------------------------------------------------------------------

cdef inline uint8_t *_write_special(uint8_t *p, bint negative, uint64_t fraction, bint finite) noexcept nogil:
    if finite:
        memcpy(p, b"-0.0", 4)
        if negative:
            return p + 4
        memcpy(p, b"0.0", 3)
        return p + 3
    if fraction:
        memcpy(p, b'"NaN"', 5)
        return p + 5
    p[0] = c'"'
    p += 1
    if negative:
        p[0] = c'-'
        p += 1
    memcpy(p, b'Infinity"', 9)
    return p + 9


cdef inline uint8_t *write_double(uint8_t *p, uint64_t bits) noexcept nogil:
    cdef uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL, digits
    cdef int exponent = <int> (bits >> 52) & 0x7FF, power
    if exponent == 0x7FF or (exponent == 0 and fraction == 0):
        return _write_special(p, bits >> 63, fraction, exponent == 0)
    if bits >> 63:
        p[0] = c'-'
        p += 1
    digits = shortest_digits(fraction, exponent, 52, 1023, &power)
    return write_shortest(p, digits, power)


cdef inline uint8_t *write_float(uint8_t *p, uint32_t bits) noexcept nogil:
    cdef uint32_t fraction = bits & 0x7FFFFF
    cdef int exponent = (bits >> 23) & 0xFF, power
    cdef uint64_t digits
    if exponent == 0xFF or (exponent == 0 and fraction == 0):
        return _write_special(p, bits >> 31, fraction, exponent == 0)
    if bits >> 31:
        p[0] = c'-'
        p += 1
    digits = shortest_digits(fraction, exponent, 23, 127, &power)
    return write_shortest(p, digits, power)


# --- Dates and times -----------------------------------------------------------------------------

cdef inline int64_t floor_divide(int64_t a, int64_t b) noexcept nogil:
    """Divide rounding down; b is positive."""
    cdef int64_t q
    if a >= 0:
        return <int64_t> (<uint64_t> a // <uint64_t> b)
    q = <int64_t> ((0 - <uint64_t> a) // <uint64_t> b)
    return -q - (<uint64_t> q * <uint64_t> b != 0 - <uint64_t> a)


cdef inline int64_t civil_date(int64_t days, uint32_t *month, uint32_t *day) noexcept nogil:
    """Return the year of a number of days since 1970-01-01 in the proleptic Gregorian calendar; set month and day."""
    # Counted from 1 March of year 0, so that a leap day ends its year; an era has 400 years.
    cdef int64_t shifted = days + 719468
    cdef int64_t era = floor_divide(shifted, 146097)
    cdef uint32_t day_of_era = <uint32_t> (shifted - era * 146097)
    cdef uint32_t year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
    ) // 365
    cdef uint32_t day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    cdef uint32_t shifted_month = (5 * day_of_year + 2) // 153
    day[0] = day_of_year - (153 * shifted_month + 2) // 5 + 1
    month[0] = shifted_month + 3 if shifted_month < 10 else shifted_month - 9
    return era * 400 + year_of_era + (shifted_month >= 10)


cdef inline uint8_t *write_date(uint8_t *p, int64_t days) noexcept nogil:
    """Write days since 1970-01-01 as an ISO 8601 date (proleptic Gregorian) with a year of at least four digits."""
    cdef uint32_t month, day
    cdef int64_t year = civil_date(days, &month, &day)
    if year < 0:
        p[0] = c'-'
        p += 1
        year = -year
    elif year > 9999:
        p[0] = c'+'
        p += 1
    p = write_padded(p, <uint32_t> year, 4) if year <= 9999 else write_digits(p, <uint64_t> year)
    p[0] = c'-'
    p = write_padded(p + 1, month, 2)
    p[0] = c'-'
    return write_padded(p + 1, day, 2)


cdef inline uint8_t *write_time(uint8_t *p, int64_t ticks, int64_t ticks_per_second, int digits) noexcept nogil:
    """Write a time of day with a fraction of up to `digits` digits without trailing zeros. Return the end of the text.
    """
    cdef uint32_t seconds = <uint32_t> (<uint64_t> ticks // <uint64_t> ticks_per_second)
    cdef uint32_t fraction = <uint32_t> (<uint64_t> ticks % <uint64_t> ticks_per_second)
    p = write_padded(p, seconds // 3600, 2)
    p[0] = c':'
    p = write_padded(p + 1, seconds // 60 % 60, 2)
    p[0] = c':'
    p = write_padded(p + 1, seconds % 60, 2)
    if fraction:
        p[0] = c'.'
        p = write_padded(p + 1, fraction, digits)
        while p[-1] == c'0':
            p -= 1
    return p


cdef inline uint8_t *write_timestamp(
    uint8_t *p, int64_t ticks, bint nanoseconds, bint utc, const ZoneTable *zone
) noexcept nogil:
    """Write a timestamp; an instant (`utc`) as local time of `zone` (NULL: UTC) with its offset. Return the end of the
    text.
    """
    cdef int64_t ticks_per_second = 1000000000 if nanoseconds else 1000000
    cdef int64_t ticks_per_day = 86400 * ticks_per_second
    cdef int64_t days = floor_divide(ticks, ticks_per_day)
    cdef int64_t offset = 0
    # The product may overflow int64 even if the difference does not.
    ticks = <int64_t> (<uint64_t> ticks - <uint64_t> days * <uint64_t> ticks_per_day)
    if utc and zone != NULL:
        offset = offset_of_instant(zone, days * 86400 + ticks // ticks_per_second)
        ticks += offset * ticks_per_second
        if ticks < 0:
            days -= 1
            ticks += ticks_per_day
        elif ticks >= ticks_per_day:
            days += 1
            ticks -= ticks_per_day
    p = write_date(p, days)
    p[0] = c' '
    p = write_time(p + 1, ticks, ticks_per_second, 9 if nanoseconds else 6)
    return write_offset(p, offset) if utc else p


# --- Bytes ---------------------------------------------------------------------------------------

cdef inline uint8_t *write_uuid(uint8_t *p, const uint8_t *data) noexcept nogil:
    cdef const char *hexadecimal = b"0123456789abcdef"
    cdef int i
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            p[0] = c'-'
            p += 1
        p[0] = <uint8_t> hexadecimal[data[i] >> 4]
        p[1] = <uint8_t> hexadecimal[data[i] & 15]
        p += 2
    return p


cdef inline uint8_t *write_base64(uint8_t *p, const uint8_t *data, size_t n) noexcept nogil:
    """Write base64 with padding, for which (n + 2) / 3 * 4 bytes must be free. Return the end of the text."""
    cdef const char *alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    cdef uint32_t v
    while n >= 3:
        v = <uint32_t> data[0] << 16 | <uint32_t> data[1] << 8 | data[2]
        p[0] = <uint8_t> alphabet[v >> 18]
        p[1] = <uint8_t> alphabet[v >> 12 & 63]
        p[2] = <uint8_t> alphabet[v >> 6 & 63]
        p[3] = <uint8_t> alphabet[v & 63]
        p += 4
        data += 3
        n -= 3
    if n:
        v = <uint32_t> data[0] << 16 | (<uint32_t> data[1] << 8 if n == 2 else 0)
        p[0] = <uint8_t> alphabet[v >> 18]
        p[1] = <uint8_t> alphabet[v >> 12 & 63]
        p[2] = <uint8_t> alphabet[v >> 6 & 63] if n == 2 else c'='
        p[3] = c'='
        p += 4
    return p
