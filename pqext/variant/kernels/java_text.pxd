# cython: language_level=3, cdivision=True
# Floating point as Java writes it, and so Spark: the fewest digits that read back as the same number, at least one
# of them after the point, with an exponent below 0.001 and from 10,000,000. 64 bytes must be free at p.
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.number_write cimport (
    shortest_digits, significant_digits, write_digits, write_pointed,
)


cdef inline uint8_t *_write_java(uint8_t *p, uint64_t digits, int power) noexcept nogil:
    cdef uint8_t[20] text
    cdef int count = significant_digits(&text[0], digits, &power)
    cdef int point = count + power       # digits before the decimal point
    if -3 < point <= 7:
        return write_pointed(p, &text[0], count, point)
    p[0] = text[0]
    p[1] = c'.'
    p += 2
    if count > 1:
        memcpy(p, &text[1], count - 1)
        p += count - 1
    else:
        p[0] = c'0'
        p += 1
    p[0] = c'E'
    p += 1
    point -= 1
    if point < 0:
        p[0] = c'-'
        p += 1
        point = -point
    return write_digits(p, <uint64_t> point)


cdef inline uint8_t *_least(uint8_t *p, uint64_t fraction, uint64_t unit, int power) noexcept nogil:
    """Write one of the smallest numbers, `fraction` times `unit * 10 ** power`: Java prefers two digits to one digit.
    """
    cdef uint64_t value = fraction * unit, step = 1
    while value // step >= 100:
        step *= 10
        power += 1
    value = (value + step // 2) // step
    return _write_java(p, value, power)


cdef inline uint8_t *_write_number(
    uint8_t *p, bint negative, uint64_t fraction, int exponent, int width, int bias, uint64_t unit, int power
) noexcept nogil:
    """Write a number with `width` bits of fraction; its smallest value is `unit * 10 ** power`.

    Return the end of the text.
    """
    cdef int special = 2 * bias + 1, found
    cdef uint64_t digits
    if exponent == special and fraction:
        memcpy(p, b"NaN", 3)
        return p + 3
    if negative:
        p[0] = c'-'
        p += 1
    if exponent == special:
        memcpy(p, b"Infinity", 8)
        return p + 8
    if exponent == 0 and fraction == 0:
        memcpy(p, b"0.0", 3)
        return p + 3
    digits = shortest_digits(fraction, exponent, width, bias, &found)
    if exponent == 0 and fraction < 20 and (digits < 10 or digits % 10 == 0):
        return _least(p, fraction, unit, power)
    return _write_java(p, digits, found)


cdef inline uint8_t *write_java_double(uint8_t *p, uint64_t bits) noexcept nogil:
    return _write_number(
        p, bits >> 63, bits & 0xFFFFFFFFFFFFFULL, <int> (bits >> 52) & 0x7FF, 52, 1023, 49406564584124654ULL, -340
    )


cdef inline uint8_t *write_java_float(uint8_t *p, uint32_t bits) noexcept nogil:
    return _write_number(p, bits >> 31, bits & 0x7FFFFF, (bits >> 23) & 0xFF, 23, 127, 14012984643248171ULL, -61)
