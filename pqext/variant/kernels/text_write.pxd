# cython: language_level=3
# Numbers, dates and times as text. Each writer appends at p, where 64 bytes must be free, and returns the end.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pqext.variant.kernels.binary cimport read_uint, read_uint64


cdef extern from * nogil:
    """
    #include <stdint.h>
    #if defined(_MSC_VER)
    #include <intrin.h>
    #endif

    /* 10**k for k from -292 to 324 as 128 bits rounded up, the top bit set; filled when the module is loaded. */
    #define PQEXT_FIRST_POWER (-292)
    #define PQEXT_LAST_POWER 324
    static uint64_t pqext_powers[PQEXT_LAST_POWER - PQEXT_FIRST_POWER + 1][2];

    static const uint64_t pqext_tens[19] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL, 1000000000ULL,
        10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL, 100000000000000ULL,
        1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL, 1000000000000000000ULL,
    };

    static inline uint64_t pqext_multiply(uint64_t a, uint64_t b, uint64_t *high) {
    #if defined(_MSC_VER)
        return _umul128(a, b, high);
    #else
        unsigned __int128 product = (unsigned __int128) a * b;
        *high = (uint64_t) (product >> 64);
        return (uint64_t) product;
    #endif
    }
    """
    const uint64_t *POWERS_OF_TEN "pqext_tens"
    const int FIRST_POWER "PQEXT_FIRST_POWER"
    const int LAST_POWER "PQEXT_LAST_POWER"
    uint64_t[617][2] POWERS "pqext_powers"
    uint64_t multiply "pqext_multiply"(uint64_t a, uint64_t b, uint64_t *high)


cdef inline void fill_powers():
    """To be called once by every module that writes floating point."""
    for k in range(FIRST_POWER, LAST_POWER + 1):
        # ceil(10**k / 2**e) with e such that the result has 128 bits.
        if k >= 0:
            bits = (10**k).bit_length()
            scaled = -(-(10**k) >> (bits - 128)) if bits > 128 else 10**k << (128 - bits)
        else:
            bits = (10**-k).bit_length()
            scaled = -(-(1 << (bits + 127)) // 10**-k)
        POWERS[k - FIRST_POWER][0] = <uint64_t> (scaled >> 64)
        POWERS[k - FIRST_POWER][1] = <uint64_t> (scaled & 0xFFFFFFFFFFFFFFFF)


# --- Integers and decimals -----------------------------------------------------------------------

cdef inline int digit_count(uint64_t v) noexcept nogil:
    """Decimal digits of v, at least 1."""
    cdef int count = 1
    while v >= 10000:
        v = v // 10000
        count += 4
    return count + (v >= 10) + (v >= 100) + (v >= 1000)


cdef inline uint8_t *write_digits(uint8_t *p, uint64_t v) noexcept nogil:
    cdef int count = digit_count(v)
    cdef uint8_t *at = p + count
    cdef uint32_t pair
    while v >= 100:
        pair = <uint32_t> (v % 100)
        v = v // 100
        at -= 2
        at[0] = <uint8_t> (c'0' + pair // 10)
        at[1] = <uint8_t> (c'0' + pair % 10)
    at[-1] = <uint8_t> (c'0' + v % 10)
    if v >= 10:
        at[-2] = <uint8_t> (c'0' + v // 10)
    return p + count


cdef inline uint8_t *write_padded(uint8_t *p, uint32_t v, int width) noexcept nogil:
    """The last `width` digits of v, with zeros in front."""
    cdef int i
    for i in range(width - 1, -1, -1):
        p[i] = <uint8_t> (c'0' + v % 10)
        v = v // 10
    return p + width


cdef inline uint8_t *write_integer(uint8_t *p, int64_t v) noexcept nogil:
    if v < 0:
        p[0] = c'-'
        return write_digits(p + 1, 0 - <uint64_t> v)
    return write_digits(p, <uint64_t> v)


cdef inline uint8_t *write_decimal(uint8_t *p, int64_t high, uint64_t low, int scale) noexcept nogil:
    """A 128-bit integer with `scale` digits (at most 38) after the point."""
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
        # With a digit before the point and of 64 bits: write it without the point, then make room for that.
        count = digit_count(low)
        write_digits(p, low)
        if scale == 0:
            return p + count
        memmove(p + count - scale + 1, p + count - scale, scale)
        p[count - scale] = c'.'
        return p + count + 1
    # At most 39 digits, from the last.
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
    """The same without zeros at the end of its fraction: equal numbers have equal text."""
    p = write_decimal(p, high, low, scale)
    if scale:
        while p[-1] == c'0':
            p -= 1
        if p[-1] == c'.':
            p -= 1
    return p


# --- Floating point: the shortest digits that read back as the same number, and of these the nearest. ------
# The method is Raffaele Giulietti's: among the multiples of a power of ten that is just below the distance
# of neighbouring floats, at most a few lie between the bounds that round to the float, and the products
# that decide it need no more than 128 bits when the last bit keeps whether anything was cut off.

cdef inline uint64_t _to_odd(uint64_t high, uint64_t low, uint64_t c) noexcept nogil:
    """The top 64 bits of high:low * c, with the last bit set when any bit below them is."""
    cdef uint64_t carry, upper, middle
    multiply(low, c, &carry)
    middle = multiply(high, c, &upper) + carry
    upper += middle < carry
    return upper | (middle > 1)


cdef inline uint64_t _to_odd32(uint64_t power, uint64_t c) noexcept nogil:
    cdef uint64_t upper
    cdef uint64_t lower = multiply(power, c, &upper)
    return (upper & 0xFFFFFFFFU) | ((lower >> 32) > 1)


cdef inline uint64_t shortest_digits(
    uint64_t fraction, int exponent, int fraction_bits, int bias, int *power
) noexcept nogil:
    """The decimal significand of the float with these fields, not zero and finite; times 10 ** power."""
    cdef uint64_t c = fraction, low, middle, high, s, tens, g_high, g_low, half
    cdef int q = 1 - bias - fraction_bits
    cdef int k, h, index
    cdef bint below_is_closer = fraction == 0 and exponent > 1
    cdef bint odd, u, w
    if exponent:
        c |= 1ULL << fraction_bits
        q = exponent - bias - fraction_bits
    odd = c & 1
    # floor(log10(2**q)), or of 3/4 of it where the neighbour below is closer; floor(log2(10**-k)).
    k = (q * 1262611 - (524031 if below_is_closer else 0)) >> 22
    h = q + ((-k * 1741647) >> 19) + 1
    index = -k - FIRST_POWER
    g_high = POWERS[index][0]
    g_low = POWERS[index][1]
    if fraction_bits == 52:
        low = _to_odd(g_high, g_low, (4 * c - 2 + below_is_closer) << h)
        middle = _to_odd(g_high, g_low, (4 * c) << h)
        high = _to_odd(g_high, g_low, (4 * c + 2) << h)
    else:
        g_high += g_low != 0
        low = _to_odd32(g_high, (4 * c - 2 + below_is_closer) << h)
        middle = _to_odd32(g_high, (4 * c) << h)
        high = _to_odd32(g_high, (4 * c + 2) << h)
    low += odd
    high -= odd
    s = middle >> 2
    power[0] = k
    if s >= 10:
        tens = s // 10
        u = low <= 40 * tens
        w = 40 * tens + 40 <= high
        if u != w:
            power[0] = k + 1
            return tens + w
    u = low <= 4 * s
    w = 4 * s + 4 <= high
    if u != w:
        return s + w
    half = 4 * s + 2
    return s + (middle > half or (middle == half and s & 1 != 0))


cdef inline uint8_t *write_shortest(uint8_t *p, uint64_t digits, int power) noexcept nogil:
    """digits * 10 ** power as Python writes floats: with a point, or with an exponent when far from 1."""
    cdef uint8_t[20] text
    cdef int count, point, i
    while digits % 10 == 0:
        digits = digits // 10
        power += 1
    count = <int> (write_digits(&text[0], digits) - &text[0])
    point = count + power       # digits before the decimal point
    if -4 < point <= 16:
        if point <= 0:
            p[0] = c'0'
            p[1] = c'.'
            p += 2
            for i in range(-point):
                p[i] = c'0'
            memcpy(p - point, &text[0], count)
            return p - point + count
        if point >= count:
            memcpy(p, &text[0], count)
            for i in range(count, point):
                p[i] = c'0'
            p[point] = c'.'
            p[point + 1] = c'0'
            return p + point + 2
        memcpy(p, &text[0], point)
        p[point] = c'.'
        memcpy(p + point + 1, &text[point], count - point)
        return p + count + 1
    p[0] = text[0]
    p += 1
    if count > 1:
        p[0] = c'.'
        memcpy(p + 1, &text[1], count - 1)
        p += count
    point -= 1
    p[0] = c'e'
    p[1] = c'-' if point < 0 else c'+'
    if point < 0:
        point = -point
    return write_padded(p + 2, point, 3 if point > 99 else 2)


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
    """For positive b."""
    cdef int64_t q
    if a >= 0:
        return <int64_t> (<uint64_t> a // <uint64_t> b)
    q = <int64_t> ((0 - <uint64_t> a) // <uint64_t> b)
    return -q - (<uint64_t> q * <uint64_t> b != 0 - <uint64_t> a)


cdef inline uint8_t *write_date(uint8_t *p, int64_t days) noexcept nogil:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, ISO 8601, years of at least four digits."""
    # Counted from 1 March of year 0, so that a leap day ends its year; an era has 400 years.
    cdef int64_t shifted = days + 719468
    cdef int64_t era = floor_divide(shifted, 146097)
    cdef uint32_t day = <uint32_t> (shifted - era * 146097)
    cdef uint32_t year_of_era = (day - day // 1460 + day // 36524 - day // 146096) // 365
    cdef uint32_t day_of_year = day - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    cdef uint32_t month = (5 * day_of_year + 2) // 153
    cdef int64_t year = era * 400 + year_of_era + (month >= 10)
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
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
    """A time within a day; the fraction, of up to `digits` digits, without zeros at its end."""
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


cdef inline uint8_t *write_timestamp(uint8_t *p, int64_t ticks, bint nanoseconds, bint utc) noexcept nogil:
    cdef int64_t ticks_per_second = 1000000000 if nanoseconds else 1000000
    cdef int64_t ticks_per_day = 86400 * ticks_per_second
    cdef int64_t days = floor_divide(ticks, ticks_per_day)
    p = write_date(p, days)
    p[0] = c' '
    # The product may leave int64 on the way to a difference that does not.
    ticks = <int64_t> (<uint64_t> ticks - <uint64_t> days * <uint64_t> ticks_per_day)
    p = write_time(p + 1, ticks, ticks_per_second, 9 if nanoseconds else 6)
    if utc:
        memcpy(p, b"+00:00", 6)
        p += 6
    return p


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
    """Base64 with padding: (n + 2) / 3 * 4 bytes must be free."""
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
