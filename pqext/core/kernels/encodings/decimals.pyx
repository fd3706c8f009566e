# cython: language_level=3, cdivision=True
"""Convert decimals between big-endian two's complement numbers and Arrow's little-endian words, and check precision."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from pqext.core.base.errors import CorruptFileError

cdef enum:
    OK = 0
    LEAVES = -1
    TOO_LONG = -2
    TOO_LARGE = -3


cdef int widen_one(const uint8_t *p, Py_ssize_t length, uint8_t *out, int width, const uint64_t *bound) noexcept nogil:
    cdef uint8_t fill = 0xFF if length and p[0] & 0x80 else 0
    cdef Py_ssize_t j
    cdef uint64_t words[4]
    cdef uint64_t carry = 1
    cdef int i, count = width // 8
    # Leading bytes beyond the width may only repeat the sign.
    while length > width:
        if p[0] != fill or (p[1] & 0x80) != (fill & 0x80):
            return TOO_LONG
        p += 1
        length -= 1
    memset(out, fill, width)
    for j in range(length):
        out[j] = p[length - 1 - j]
    memcpy(words, out, width)
    if fill:  # the magnitude of a negative number
        for i in range(count):
            words[i] = ~words[i] + carry
            carry = carry and words[i] == 0
    for i in range(count - 1, -1, -1):
        if words[i] != bound[i]:
            return OK if words[i] < bound[i] else TOO_LARGE
    return TOO_LARGE


cdef int widen_all(
    const uint8_t *data, size_t size, const int32_t *offsets, Py_ssize_t length, Py_ssize_t count,
    uint8_t *out, int width, const uint64_t *bound,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef size_t start, stop
    cdef int status
    for i in range(count):
        if offsets != NULL:
            if offsets[i] < 0 or offsets[i] > offsets[i + 1]:
                return LEAVES
            start, stop = offsets[i], offsets[i + 1]
        else:
            start, stop = i * length, (i + 1) * length
        if stop > size:
            return LEAVES
        status = widen_one(data + start, stop - start, out + i * width, width, bound)
        if status != OK:
            return status
    return OK


cdef inline uint64_t load_big_endian(const uint8_t *p) noexcept nogil:
    return (
        <uint64_t> p[0] << 56 | <uint64_t> p[1] << 48 | <uint64_t> p[2] << 40 | <uint64_t> p[3] << 32
        | <uint64_t> p[4] << 24 | <uint64_t> p[5] << 16 | <uint64_t> p[6] << 8 | <uint64_t> p[7]
    )


cdef int widen_fixed(
    const uint8_t *data, int length, Py_ssize_t count, uint8_t *out, const uint64_t *bound
) noexcept nogil:
    """Convert numbers of `length` (1 to 16) bytes each to 16 bytes each."""
    cdef uint64_t low, high, shifted_low, shifted_high
    # A number n is in the range if n + most <= 2 * most without a sign.
    cdef uint64_t most_low = bound[0] - 1, most_high = bound[1] - (bound[0] == 0)
    cdef uint64_t twice_low = most_low << 1, twice_high = most_high << 1 | most_low >> 63
    cdef Py_ssize_t i = 0
    cdef int status, unused = 8 * (8 - length), shift = 8 * (16 - length) if length > 8 else 63
    cdef bint exceeds = False
    cdef const uint8_t *p = data
    while length < 8 and i < count and (i + 1) * length < 8:  # eight bytes that end with the number are not in the data
        status = widen_one(p, length, out + 16 * i, 16, bound)
        if status != OK:
            return status
        p += length
        i += 1
    while i < count:
        low = load_big_endian(p + length - 8)
        if length < 8:
            low = <uint64_t> (<int64_t> (low << unused) >> unused)
            high = <uint64_t> (<int64_t> low >> 63)
        else:
            high = <uint64_t> (<int64_t> load_big_endian(p) >> shift)
        memcpy(out + 16 * i, &low, 8)
        memcpy(out + 16 * i + 8, &high, 8)
        shifted_low = low + most_low
        shifted_high = high + most_high + (shifted_low < low)
        exceeds |= (shifted_high > twice_high) | ((shifted_high == twice_high) & (shifted_low > twice_low))
        p += length
        i += 1
    return TOO_LARGE if exceeds else OK


def widen(const uint8_t[::1] data, offsets, Py_ssize_t length, Py_ssize_t count, precision, uint8_t[::1] out):
    """Convert `count` big-endian numbers to little-endian numbers of 16 or 32 bytes each in `out`.

    They are between consecutive `offsets` (int32) of `data`, or have `length` bytes each if `offsets` is None. An empty
    number is zero. Raises ``CorruptFileError`` for a number of more than `precision` digits.
    """
    cdef const int32_t[::1] ends
    cdef const int32_t *ends_pointer = NULL
    cdef const uint8_t *p = NULL
    cdef uint64_t bound[4]
    cdef int status, digits = precision, width = 32 if digits > 38 else 16
    cdef bytes limit
    if not 1 <= digits <= 76 or count < 0 or length < 0:
        raise ValueError("the precision of decimals must be from 1 to 76")
    if out.shape[0] // width != count or out.shape[0] % width:
        raise ValueError("the output must have one number per slot")
    if not count:
        return
    limit = (10**precision).to_bytes(32, "little")
    memcpy(bound, <const uint8_t *> limit, 32)
    if offsets is not None:
        ends = offsets
        if ends.shape[0] <= count:
            raise ValueError("there must be one more offset than values")
        ends_pointer = &ends[0]
    if data.shape[0]:
        p = &data[0]
    with nogil:
        if ends_pointer == NULL and width == 16 and 0 < length <= 16 and count <= data.shape[0] // length:
            status = widen_fixed(p, <int> length, count, &out[0], bound)
        else:
            status = widen_all(p, data.shape[0], ends_pointer, length, count, &out[0], width, bound)
    if status == LEAVES:
        raise ValueError("a number exceeds the data")
    if status != OK:
        raise CorruptFileError(f"a decimal has more than the {digits} digits of its type")


ctypedef fused stored_integer:
    int32_t
    int64_t


def widen_integers(const stored_integer[::1] stored not None, int64_t most, int64_t[::1] out not None):
    """Widen integers to 16 bytes each in `out`; return False if an absolute value exceeds `most`."""
    cdef Py_ssize_t i, count = stored.shape[0]
    cdef int64_t value
    cdef bint beyond = False
    if out.shape[0] != 2 * count:
        raise ValueError("the output must have 16 bytes per number")
    with nogil:
        for i in range(count):
            value = stored[i]
            beyond |= value > most or value < -most
            out[2 * i] = value
            out[2 * i + 1] = value >> 63
    return not beyond


def quotients(const int64_t[::1] words not None, int64_t most, double divisor, double[::1] out not None):
    """Divide 16-byte numbers that fit into their low words; return False if an absolute value exceeds `most`."""
    cdef Py_ssize_t i, count = out.shape[0]
    cdef int64_t value
    cdef bint beyond = False
    if words.shape[0] != 2 * count:
        raise ValueError("the output must have one quotient per number")
    with nogil:
        for i in range(count):
            value = words[2 * i]
            beyond |= value > most or value < -most
            out[i] = <double> value / divisor
    return not beyond


cdef inline bint fits(const uint8_t *number, int count, const uint64_t *bound) noexcept nogil:
    """Return whether the magnitude of a little-endian number of `count` words is below `bound`."""
    cdef uint64_t words[4]
    cdef uint64_t carry = 1
    cdef int i
    memcpy(words, number, count * 8)
    if words[count - 1] >> 63:
        for i in range(count):
            words[i] = ~words[i] + carry
            carry = carry and words[i] == 0
    for i in range(count - 1, -1, -1):
        if words[i] != bound[i]:
            return words[i] < bound[i]
    return False


def narrow(const uint8_t[::1] words, int width, Py_ssize_t length, precision, uint8_t[::1] out):
    """Convert little-endian numbers of `width` (16 or 32) bytes to big-endian numbers of `length` bytes each in `out`.

    If `length` is 0, only check the numbers. Raises ``ValueError`` for a number of more than `precision` digits.
    `length` bytes must be sufficient for this precision.
    """
    cdef Py_ssize_t count = words.shape[0] // width if width in (16, 32) else -1, i, j, kept
    cdef uint64_t bound[4]
    cdef bint good = True
    cdef bytes limit
    cdef const uint8_t *number
    cdef uint8_t *target
    if count < 0 or words.shape[0] % width or not 1 <= precision <= 76 or length < 0 or out.shape[0] != count * length:
        raise ValueError("the output must have 16 or 32 bytes per number")
    if not count:
        return
    limit = (10**precision).to_bytes(32, "little")
    memcpy(bound, <const uint8_t *> limit, 32)
    if width == 16 and precision > 38:
        raise ValueError("numbers of 16 bytes have at most 38 digits")
    number = &words[0]
    target = &out[0] if length else NULL
    kept = length if length < width else width
    with nogil:
        for i in range(count):
            if not fits(number, width // 8, bound):
                good = False
                break
            if length > width:
                memset(target, 0xFF if number[width - 1] & 0x80 else 0, length - width)
            for j in range(kept):
                target[length - 1 - j] = number[j]
            number += width
            target += length
    if not good:
        raise ValueError(f"a decimal has more than the {precision} digits of its type")
