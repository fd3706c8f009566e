# cython: language_level=3
# Integers and floating point as text. Each writer appends at p, where 64 bytes must be free, and returns the end.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef extern from * nogil:
    """
    #include <stdint.h>
    #include "pqext/core/kernels/portable.h"
    #include "pqext/core/kernels/powers.h"

    static const uint64_t pqext_tens[19] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL, 1000000000ULL,
        10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL, 100000000000000ULL,
        1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL, 1000000000000000000ULL,
    };
    """
    const uint64_t *POWERS_OF_TEN "pqext_tens"
    const int LEAST_POWER "PQEXT_LEAST_POWER"
    const uint64_t[667][2] POWERS "pqext_powers"
    uint64_t multiply "pqext_multiply"(uint64_t a, uint64_t b, uint64_t *high)


# --- Integers -------------------------------------------------------------------------------------

cdef inline int digit_count(uint64_t v) noexcept nogil:
    """Return the number of decimal digits of v, at least 1."""
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
    """Write the last `width` digits of v, padded with zeros. Return the end of the text."""
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


# --- Floating point: the shortest digits that read back as the same number, and among them the nearest. ------
# The method is Raffaele Giulietti's: among the multiples of a power of ten that is just below the distance
# of neighbouring floats, at most a few lie between the bounds that round to the float, and the products
# that decide it need no more than 128 bits when the last bit keeps whether anything was cut off.

cdef inline uint64_t _to_odd(uint64_t high, uint64_t low, uint64_t c) noexcept nogil:
    """Return the top 64 bits of high:low * c, with the last bit set if any lower bit is set."""
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
    """Return the shortest decimal significand of the finite, nonzero float with these fields, and its `power` of ten.
    """
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
    index = -k - LEAST_POWER
    g_high = POWERS[index][0]
    g_low = POWERS[index][1] + (-k < -27 or -k > 55)    # rounded up; no low half is all ones
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


cdef inline int significant_digits(uint8_t *text, uint64_t digits, int *power) noexcept nogil:
    """Write the digits of a nonzero digits * 10 ** power; add trailing zeros to `power`; return the digit count."""
    while digits % 10 == 0:
        digits = digits // 10
        power[0] += 1
    return <int> (write_digits(text, digits) - text)


cdef inline uint8_t *write_pointed(uint8_t *p, const uint8_t *text, int count, int point) noexcept nogil:
    """Write `count` digits with a point after the first `point`, which may be negative, and digits on both sides.

    Return the end of the text.
    """
    cdef int i
    if point <= 0:
        p[0] = c'0'
        p[1] = c'.'
        p += 2
        for i in range(-point):
            p[i] = c'0'
        memcpy(p - point, text, count)
        return p - point + count
    if point >= count:
        memcpy(p, text, count)
        for i in range(count, point):
            p[i] = c'0'
        p[point] = c'.'
        p[point + 1] = c'0'
        return p + point + 2
    memcpy(p, text, point)
    p[point] = c'.'
    memcpy(p + point + 1, &text[point], count - point)
    return p + count + 1


cdef inline uint8_t *write_shortest(uint8_t *p, uint64_t digits, int power) noexcept nogil:
    """Write digits * 10 ** power as Python formats floats: with a point, or with an exponent if far from 1.

    Return the end of the text.
    """
    cdef uint8_t[20] text
    cdef int count = significant_digits(&text[0], digits, &power)
    cdef int point = count + power       # digits before the decimal point
    if -4 < point <= 16:
        return write_pointed(p, &text[0], count, point)
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


cdef inline uint8_t *write_plain(uint8_t *p, double value, int decimals) noexcept nogil:
    """Write the shortest text that reads back as a finite number, without ".0". Return the end of the text.

    With `decimals` from 0 to 18, round the digits of this text to that number, halves away from zero: 2.675 is 2.68
    with two decimals.
    """
    cdef uint64_t bits, digits, step
    cdef int power, drop
    memcpy(&bits, &value, 8)
    if bits << 1 == 0:
        memcpy(p, b"-0.0", 4)
        if decimals < 0 and bits:
            return p + 4
        p[0] = c'0'
        return p + 1
    digits = shortest_digits(bits & 0xFFFFFFFFFFFFFULL, <int> (bits >> 52) & 0x7FF, 52, 1023, &power)
    drop = -decimals - power
    if decimals >= 0 and drop > 0:
        step = POWERS_OF_TEN[drop] if drop < 19 else 0
        digits = digits // step + (digits % step >= step - step // 2) if step else 0
        power = -decimals
        if digits == 0:
            p[0] = c'0'
            return p + 1
    if bits >> 63:
        p[0] = c'-'
        p += 1
    p = write_shortest(p, digits, power)
    return p - 2 if p[-2] == c'.' and p[-1] == c'0' else p
