# cython: language_level=3
# Numbers and strings of JSON text: what they mean, and whether they are well formed.
#
# The text ends with a margin of zeros, which occur in no JSON: loops that search stop there, and loads of
# 8 and 16 bytes stay within the allocation.
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pqext.core.kernels.number_read cimport EXACT_POWERS, MAX_EXACT, nearest_double, strtod_c
from pqext.variant.kernels.binary cimport TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_DOUBLE
from pqext.variant.kernels.json_parse cimport (
    JSON_CONTROL, JSON_END, JSON_ESCAPE, JSON_LEADING_ZERO, JSON_NUMBER, JSON_RANGE, JSON_SURROGATE, JSON_UNTERMINATED,
    NODE_DECIMAL, NODE_DECIMAL16, NODE_FIXED, Parser, TapeNode,
)
from pqext.variant.kernels.scan cimport find_special, highest_bit, load64, lowest_bit


cdef extern from * nogil:
    """
    #include <stdint.h>

    static const uint64_t pqext_powers_of_ten[20] = {
        1ULL, 10ULL, 100ULL, 1000ULL, 10000ULL, 100000ULL, 1000000ULL, 10000000ULL, 100000000ULL, 1000000000ULL,
        10000000000ULL, 100000000000ULL, 1000000000000ULL, 10000000000000ULL, 100000000000000ULL,
        1000000000000000ULL, 10000000000000000ULL, 100000000000000000ULL, 1000000000000000000ULL,
        10000000000000000000ULL,
    };

    /* high:low = high:low * 10 + digit, 128 bits wide */
    static inline void pqext_append_digit(uint64_t *high, uint64_t *low, unsigned digit) {
        uint64_t a = (*low & 0xFFFFFFFFULL) * 10 + digit;
        uint64_t b = (*low >> 32) * 10 + (a >> 32);
        *low = b << 32 | (a & 0xFFFFFFFFULL);
        *high = *high * 10 + (b >> 32);
    }
    """
    const uint64_t *POWERS_OF_TEN "pqext_powers_of_ten"
    void append_digit "pqext_append_digit"(uint64_t *high, uint64_t *low, unsigned int digit)


# --- Numbers -------------------------------------------------------------------------------------

cdef inline int digit_count(uint64_t word) noexcept nogil:
    """Return the number of leading bytes of the word that are decimal digits."""
    cdef uint64_t v = word ^ 0x3030303030303030ULL
    cdef uint64_t others = ((v + 0x7676767676767676ULL) | v) & 0x8080808080808080ULL
    return lowest_bit(others) >> 3 if others else 8


cdef inline uint64_t digits_value(uint64_t word, int count) noexcept nogil:
    """Return the number in the first `count` (1 to 8) digits of the word."""
    # As eight digits with leading zeros; neighbours are combined to 2, then 4, then 8 digits.
    cdef uint64_t v = (word ^ 0x3030303030303030ULL) << (64 - 8 * count)
    v = v * 10 + (v >> 8)
    return (
        (v & 0x000000FF000000FFULL) * (100 + (1000000ULL << 32))
        + ((v >> 16) & 0x000000FF000000FFULL) * (1 + (10000ULL << 32))
    ) >> 32


cdef inline void set_int(TapeNode *node, uint64_t magnitude, bint negative) noexcept nogil:
    """Set a node to an integer; `magnitude` is at most 2**63, and 2**63 only if `negative`."""
    # -2**(n-1) is as short as 2**(n-1) - 1. Whether 1, 2, 4 or 8 bytes suffice depends on the topmost byte with
    # a bit of the number or its sign; the digits of the constants are the sizes and types by that byte.
    cdef uint64_t folded = magnitude - (negative and magnitude != 0)
    cdef int top = highest_bit(folded << 1 | 1) >> 3 << 2
    node.kind = NODE_FIXED
    node.payload = 0 - magnitude if negative else magnitude
    node.header = <uint8_t> ((0x66665543U >> top & 0xF) << 2)
    node.size = 0x99995532U >> top & 0xF


cdef inline void set_double(TapeNode *node, double value) noexcept nogil:
    node.kind = NODE_FIXED
    node.header = TYPE_DOUBLE << 2
    node.size = 9
    memcpy(&node.payload, &value, 8)


cdef inline const uint8_t *number_fault(Parser *ps, const uint8_t *where, int fault) noexcept nogil:
    ps.where = where
    ps.number_fault = fault if where < ps.end else <int> JSON_END
    return NULL


cdef inline const uint8_t *parse_long_number(Parser *ps, const uint8_t *start, TapeNode *node) noexcept nogil:
    """Parse a number of any length from its first character. Return its end, or NULL if it is invalid.

    If it is invalid, ps.where and ps.number_fault are set. Up to 38 digits with at most 38 after the point stay exact,
    unless there is an exponent, or a point and `ps.doubles` is set. Negative zero with a point is the double -0.0,
    because decimals have no negative zero.
    """
    cdef const uint8_t *p = start
    cdef const uint8_t *digits
    cdef bint negative = p[0] == c'-'
    cdef bint exact = True, exponent_negative = False
    cdef uint64_t high = 0, low = 0
    cdef uint32_t precision = 0, fraction = 0
    cdef int64_t exponent = 0, scale10
    cdef double value
    p += negative
    digits = p
    while c'0' <= p[0] <= c'9':
        if precision or p[0] != c'0':
            precision += 1
            if precision <= 38:
                append_digit(&high, &low, p[0] - c'0')
        p += 1
    if p == digits:
        return number_fault(ps, p, JSON_NUMBER)
    if digits[0] == c'0' and p - digits > 1:
        return number_fault(ps, digits, JSON_LEADING_ZERO)
    if p[0] == c'.':
        exact = not ps.doubles
        p += 1
        digits = p
        while c'0' <= p[0] <= c'9':
            if precision or p[0] != c'0':
                precision += 1
                if precision <= 38:
                    append_digit(&high, &low, p[0] - c'0')
            p += 1
        fraction = <uint32_t> (p - digits)
        if fraction == 0:
            return number_fault(ps, p, JSON_NUMBER)
    if p[0] == c'e' or p[0] == c'E':
        exact = False
        p += 1
        if p[0] == c'+' or p[0] == c'-':
            exponent_negative = p[0] == c'-'
            p += 1
        digits = p
        while c'0' <= p[0] <= c'9':
            if exponent < 1000000:
                exponent = exponent * 10 + (p[0] - c'0')
            p += 1
        if p == digits:
            return number_fault(ps, p, JSON_NUMBER)
        if exponent_negative:
            exponent = -exponent
    node.span = 1
    if exact and precision <= 38 and fraction <= 38:
        if fraction == 0 and high == 0 and low <= <uint64_t> INT64_MAX + negative:
            set_int(node, low, negative)
            return p
        if negative and fraction and precision == 0:
            set_double(node, -0.0)  # decimals have no negative zero
            return p
        node.scale = <uint8_t> fraction
        if fraction <= 9 and high == 0 and low <= 999999999ULL:
            node.kind = NODE_DECIMAL
            node.header = TYPE_DECIMAL4 << 2
            node.size = 6
            node.payload = 0 - low if negative else low
        elif fraction <= 18 and high == 0 and low <= 999999999999999999ULL:
            node.kind = NODE_DECIMAL
            node.header = TYPE_DECIMAL8 << 2
            node.size = 10
            node.payload = 0 - low if negative else low
        else:
            node.kind = NODE_DECIMAL16
            node.size = 18
            node.payload = <uint64_t> start
            node.length = <uint32_t> (p - start)
        return p
    scale10 = exponent - fraction
    if precision <= 19 and low <= MAX_EXACT and -22 <= scale10 <= 22:
        # Both operands are exact, so the result is rounded only once.
        value = <double> low
        value = value / EXACT_POWERS[-scale10] if scale10 < 0 else value * EXACT_POWERS[scale10]
        if negative:
            value = -value
    elif precision <= 19 and nearest_double(low, scale10, &value):
        if negative:
            value = -value
    else:
        value = strtod_c(<const char *> start)
        if value - value != 0.0:
            return number_fault(ps, start, JSON_RANGE)
    set_double(node, value)
    return p


cdef inline const uint8_t *parse_number(Parser *ps, const uint8_t *start, TapeNode *node) noexcept nogil:
    """Parse a number like `parse_long_number`, with a fast path for up to 19 digits without an exponent."""
    cdef const uint8_t *p = start
    cdef bint negative = p[0] == c'-'
    cdef uint64_t word, value
    cdef double number
    cdef int count, digits, fraction
    p += negative
    word = load64(p)
    count = digit_count(word)
    if count == 0 or (p[0] == c'0' and count > 1):
        return parse_long_number(ps, start, node)
    value = digits_value(word, count)
    p += count
    digits = count
    while count == 8:
        word = load64(p)
        count = digit_count(word)
        digits += count
        if digits > 19:
            return parse_long_number(ps, start, node)
        if count:
            value = value * POWERS_OF_TEN[count] + digits_value(word, count)
            p += count
    node.span = 1
    if p[0] == c'.':
        p += 1
        fraction = 0
        count = 8
        while count == 8:
            word = load64(p)
            count = digit_count(word)
            fraction += count
            digits += count
            if digits > 19:
                return parse_long_number(ps, start, node)
            if count:
                value = value * POWERS_OF_TEN[count] + digits_value(word, count)
                p += count
        if fraction == 0 or fraction > 18 or p[0] | 0x20 == c'e' or value > 999999999999999999ULL:
            return parse_long_number(ps, start, node)
        if ps.doubles:
            if value <= MAX_EXACT:
                # Both operands are exact, so the result is rounded only once.
                number = <double> value / EXACT_POWERS[fraction]
            elif not nearest_double(value, -fraction, &number):
                return parse_long_number(ps, start, node)
            set_double(node, -number if negative else number)
            return p
        if negative and value == 0:
            set_double(node, -0.0)
            return p
        node.kind = NODE_DECIMAL
        node.scale = <uint8_t> fraction
        if fraction <= 9 and value <= 999999999ULL:
            node.header = TYPE_DECIMAL4 << 2
            node.size = 6
        else:
            node.header = TYPE_DECIMAL8 << 2
            node.size = 10
        node.payload = 0 - value if negative else value
        return p
    if p[0] | 0x20 == c'e' or value > <uint64_t> INT64_MAX:
        return parse_long_number(ps, start, node)
    set_int(node, value, negative)
    return p


# --- Strings -------------------------------------------------------------------------------------

cdef inline int hex_digit(uint8_t c) noexcept nogil:
    if c'0' <= c <= c'9':
        return c - c'0'
    c |= 0x20
    if c'a' <= c <= c'f':
        return c - c'a' + 10
    return -1


cdef inline int32_t hex4(const uint8_t *p) noexcept nogil:
    """Parse four hexadecimal digits; return -1 if a character is not a digit."""
    cdef int32_t v = 0
    cdef int i, digit
    for i in range(4):
        digit = hex_digit(p[i])
        if digit < 0:
            return -1
        v = v << 4 | digit
    return v


cdef inline int unescape(Parser *ps, uint8_t **position, size_t *length) noexcept nogil:
    """Resolve the escapes of the string that starts at *position in place, from its first backslash.

    Set the length of the text, and move *position to the closing quote. Return 0 or a `JsonFault`.
    """
    cdef uint8_t *start = position[0]
    cdef uint8_t *p = <uint8_t *> find_special(start)
    cdef uint8_t *to = p
    cdef uint8_t *plain
    cdef int32_t code, low
    cdef uint8_t c
    while p[0] != c'"':
        if p[0] != c'\\':
            ps.where = p
            return JSON_UNTERMINATED if p >= ps.end else JSON_CONTROL
        c = p[1]
        if c == c'u':
            code = hex4(p + 2)
            if code < 0:
                ps.where = p
                return JSON_ESCAPE
            if 0xD800 <= code < 0xE000:
                low = hex4(p + 8) if code < 0xDC00 and p[6] == c'\\' and p[7] == c'u' else -1
                if not 0xDC00 <= low < 0xE000:
                    ps.where = p
                    return JSON_SURROGATE
                code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00))
                p += 6
            p += 6
            if code < 0x80:
                to[0] = <uint8_t> code
                to += 1
            elif code < 0x800:
                to[0] = <uint8_t> (0xC0 | code >> 6)
                to[1] = <uint8_t> (0x80 | (code & 0x3F))
                to += 2
            elif code < 0x10000:
                to[0] = <uint8_t> (0xE0 | code >> 12)
                to[1] = <uint8_t> (0x80 | (code >> 6 & 0x3F))
                to[2] = <uint8_t> (0x80 | (code & 0x3F))
                to += 3
            else:
                to[0] = <uint8_t> (0xF0 | code >> 18)
                to[1] = <uint8_t> (0x80 | (code >> 12 & 0x3F))
                to[2] = <uint8_t> (0x80 | (code >> 6 & 0x3F))
                to[3] = <uint8_t> (0x80 | (code & 0x3F))
                to += 4
        else:
            if c == c'n':
                to[0] = c'\n'
            elif c == c'"' or c == c'\\' or c == c'/':
                to[0] = c
            elif c == c't':
                to[0] = c'\t'
            elif c == c'r':
                to[0] = c'\r'
            elif c == c'b':
                to[0] = 0x08
            elif c == c'f':
                to[0] = 0x0C
            else:
                ps.where = p
                return JSON_UNTERMINATED if p + 1 >= ps.end else JSON_ESCAPE
            to += 1
            p += 2
        plain = p
        p = <uint8_t *> find_special(p)
        if p > plain:
            memmove(to, plain, p - plain)
            to += p - plain
    length[0] = to - start
    position[0] = p
    return 0


cdef inline int parse_string(Parser *ps, uint8_t **position, const uint8_t **text, size_t *length) noexcept nogil:
    """Parse the string whose opening quote is at *position, and move after the closing quote.

    Return 0 or a `JsonFault`.
    """
    cdef uint8_t *start = position[0] + 1
    cdef uint8_t *stop = <uint8_t *> find_special(start)
    cdef int status = 0
    text[0] = start
    length[0] = stop - start
    if stop[0] == c'\\':
        stop = start
        status = unescape(ps, &stop, length)
    elif stop[0] != c'"':
        ps.where = stop
        status = JSON_UNTERMINATED if stop >= ps.end else JSON_CONTROL
    position[0] = stop + 1
    return status
