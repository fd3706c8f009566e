# cython: language_level=3
"""Statistics of the values and levels of each page: bounds, NaN and level counts (core.statistics).

Page `i` contains the items from `starts[i]` up to `starts[i + 1]`.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.encode.page_boundaries cimport PageBoundaries

cdef extern from *:
    """
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    #define big_endian_64(x) (x)
    #else
    static inline uint64_t big_endian_64(uint64_t x) {
        x = ((x & 0x00FF00FF00FF00FFULL) << 8) | ((x >> 8) & 0x00FF00FF00FF00FFULL);
        x = ((x & 0x0000FFFF0000FFFFULL) << 16) | ((x >> 16) & 0x0000FFFF0000FFFFULL);
        return (x << 32) | (x >> 32);
    }
    #endif
    """
    uint64_t big_endian_64(uint64_t x) nogil

ctypedef fused number:
    uint8_t
    int32_t
    uint32_t
    int64_t
    uint64_t
    float
    double


cdef int check_starts(const int64_t[::1] starts, Py_ssize_t items, Py_ssize_t room) except -1:
    cdef Py_ssize_t i
    if starts.shape[0] < 1 or room < starts.shape[0] - 1:
        raise ValueError("the output must have one row per page")
    if starts[0] < 0 or starts[starts.shape[0] - 1] > items:
        raise ValueError("pages exceed the values")
    for i in range(starts.shape[0] - 1):
        if starts[i] > starts[i + 1]:
            raise ValueError("pages overlap")
    return 0


cdef inline Py_ssize_t span(const number *x, Py_ssize_t count, number *low, number *high) noexcept nogil:
    """Find the minimum and maximum of the values that are not NaN; return the number of NaN."""
    cdef Py_ssize_t i = 0, j, nans = 0
    cdef number lows[4]
    cdef number highs[4]
    cdef number value
    while i < count and x[i] != x[i]:
        i += 1
    nans = i
    if i == count:
        return nans
    for j in range(4):  # four independent chains, because a comparison depends on the previous result
        lows[j] = x[i]
        highs[j] = x[i]
    while i + 4 <= count:
        for j in range(4):
            value = x[i + j]
            lows[j] = value if value < lows[j] else lows[j]
            highs[j] = value if value > highs[j] else highs[j]
            if number is float or number is double:
                nans += value != value
        i += 4
    while i < count:
        value = x[i]
        lows[0] = value if value < lows[0] else lows[0]
        highs[0] = value if value > highs[0] else highs[0]
        nans += value != value
        i += 1
    for j in range(1, 4):
        lows[0] = lows[j] if lows[j] < lows[0] else lows[0]
        highs[0] = highs[j] if highs[j] > highs[0] else highs[0]
    low[0] = lows[0]
    high[0] = highs[0]
    return nans


def extremes(
    const number[::1] values, const int64_t[::1] starts, number[::1] low, number[::1] high, int64_t[::1] nans
):
    """Write the minimum and maximum of each page, ignoring NaN, and the number of NaN.

    `low` and `high` remain unchanged for a page without comparable values.
    """
    cdef Py_ssize_t page, pages = starts.shape[0] - 1
    check_starts(starts, values.shape[0], min(low.shape[0], high.shape[0], nans.shape[0]))
    if pages == 0 or values.shape[0] == 0:
        return
    with nogil:
        for page in range(pages):
            nans[page] = 0
            if starts[page] < starts[page + 1]:
                nans[page] = span(&values[0] + starts[page], starts[page + 1] - starts[page], &low[page], &high[page])


cdef inline int compare_bytes(const uint8_t *a, Py_ssize_t a_size, const uint8_t *b, Py_ssize_t b_size) noexcept nogil:
    cdef Py_ssize_t shared = a_size if a_size < b_size else b_size
    cdef int order = memcmp(a, b, shared) if shared else 0
    if order:
        return order
    return (a_size > b_size) - (a_size < b_size)


cdef inline int compare_signed(const uint8_t *a, Py_ssize_t a_size, const uint8_t *b, Py_ssize_t b_size) noexcept nogil:
    """Compare two big-endian two's complement numbers of any length; an empty number is zero.

    Return a negative, zero or positive number like memcmp.
    """
    cdef bint a_negative = a_size > 0 and a[0] >= 128, b_negative = b_size > 0 and b[0] >= 128
    cdef uint8_t fill = 255 if a_negative else 0
    if a_negative != b_negative:
        return -1 if a_negative else 1
    while a_size > b_size:  # extra leading bytes matter only if they are not sign extension
        if a[0] != fill:
            return -1 if a_negative else 1
        a += 1
        a_size -= 1
    while b_size > a_size:
        if b[0] != fill:
            return 1 if a_negative else -1
        b += 1
        b_size -= 1
    return memcmp(a, b, a_size) if a_size else 0


cdef inline uint64_t prefix(const uint8_t *at, Py_ssize_t size, const uint8_t *end) noexcept nogil:
    """Return the first eight bytes as an integer with the same order, padded with zeros if there are fewer."""
    cdef uint64_t word = 0
    if end - at >= 8:
        memcpy(&word, at, 8)
        word = big_endian_64(word)
        if size < 8:
            word = word >> (8 * (8 - size)) << (8 * (8 - size)) if size else 0
        return word
    memcpy(&word, at, size if size < 8 else 8)
    return big_endian_64(word)


cdef struct Places:
    const uint8_t *data
    Py_ssize_t length       # of `data`
    const int32_t *offsets  # of value 0, unless all are `width` bytes
    Py_ssize_t width
    bint is_signed


cdef bint page_extremes(const Places *x, int64_t first, int64_t last, int64_t *low, int64_t *high) noexcept nogil:
    """Locate the minimum and the maximum of some values, -1 without values; return False for bad offsets."""
    cdef Py_ssize_t i, at, size, low_at = 0, low_size = 0, high_at = 0, high_size = 0, width = x.width
    cdef uint64_t word, low_word = 0, high_word = 0
    cdef const uint8_t *base = x.data
    cdef const uint8_t *end = base + x.length
    cdef bint is_signed = x.is_signed
    low[0] = high[0] = -1
    for i in range(first, last):
        if width > 0:
            at, size = i * width, width
        else:
            at, size = x.offsets[i], <Py_ssize_t> x.offsets[i + 1] - x.offsets[i]
            if at < 0 or size < 0 or at > x.length - size:
                return False
        word = prefix(base + at, size, end) if size and (width > 0 or not is_signed) else 0
        if is_signed and width > 0:
            word ^= <uint64_t> 1 << 63  # in numbers of equal width, flip the leading sign bit
        if i == first:
            low[0] = high[0] = i
            low_word = high_word = word
            low_at = high_at = at
            low_size = high_size = size
            continue
        if word < low_word or (word == low_word and (
            compare_signed(base + at, size, base + low_at, low_size) if is_signed
            else compare_bytes(base + at, size, base + low_at, low_size)
        ) < 0):
            low[0], low_word, low_at, low_size = i, word, at, size
        elif word > high_word or (word == high_word and (
            compare_signed(base + at, size, base + high_at, high_size) if is_signed
            else compare_bytes(base + at, size, base + high_at, high_size)
        ) > 0):
            high[0], high_word, high_at, high_size = i, word, at, size
    return True


def byte_extremes(
    const uint8_t[::1] data, const int32_t[::1] offsets, Py_ssize_t width, bint is_signed,
    const int64_t[::1] starts, int64_t[::1] low, int64_t[::1] high,
):
    """Write the positions of the minimum and maximum byte array of each page, -1 for a page without values.

    Values are between `offsets`, or have `width` bytes each if `width` is not 0. They are compared as unsigned bytes,
    or as big-endian two's complement numbers if `is_signed`.
    """
    cdef Py_ssize_t count = data.shape[0] // width if width > 0 else offsets.shape[0] - 1
    cdef Py_ssize_t page
    cdef uint8_t nothing = 0
    cdef Places places
    cdef bint good = True
    if width < 0:
        raise ValueError("the width must not be negative")
    check_starts(starts, count, min(low.shape[0], high.shape[0]))
    places.length = data.shape[0]
    places.data = &data[0] if places.length else &nothing
    places.offsets = &offsets[0] if offsets.shape[0] else NULL
    places.width, places.is_signed = width, is_signed
    with nogil:
        for page in range(starts.shape[0] - 1):
            good = good and page_extremes(&places, starts[page], starts[page + 1], &low[page], &high[page])
    if not good:
        raise ValueError("a byte array lies outside its buffer")


cdef inline object between(const uint8_t *data, Py_ssize_t start, Py_ssize_t stop):
    return PyBytes_FromStringAndSize(<const char *> data + start, stop - start)


def byte_bounds(object offsets, object data, Py_ssize_t start, Py_ssize_t width, bint is_signed, PageBoundaries cuts):
    """Return (minima, maxima) of the byte arrays in each page, with ``None`` for a page without values.

    Value 0 is number `start` between int32 `offsets`, or among values of `width` bytes each if `width` is not 0.
    """
    cdef Py_buffer places, held
    cdef Places x
    cdef Py_ssize_t page, count = cuts.values[cuts.count]
    cdef int64_t low = -1, high = -1, at
    cdef bint good
    cdef list minima = [None] * cuts.count, maxima = [None] * cuts.count
    cdef uint8_t nothing = 0
    if count == 0:
        return minima, maxima
    if start < 0 or start > 1 << 48 or not 0 <= width <= 1 << 31:
        raise ValueError("the range of values exceeds the column")
    x.length = 0
    x.data, x.offsets, x.width, x.is_signed = &nothing, NULL, width, is_signed
    if data is not None:
        PyObject_GetBuffer(data, &held, PyBUF_SIMPLE)
        x.length = held.len
        if held.len:
            x.data = <const uint8_t *> held.buf
    try:
        if width:
            if start + count > x.length // width:
                raise ValueError("the buffer is shorter than its values")
            x.data += start * width
            x.length -= start * width
        else:
            PyObject_GetBuffer(offsets, &places, PyBUF_SIMPLE)
            x.offsets = <const int32_t *> places.buf + start
            if start + count + 1 > places.len // 4:
                PyBuffer_Release(&places)
                raise ValueError("the buffer is shorter than its values")
        try:
            for page in range(cuts.count):
                if cuts.values[page + 1] - cuts.values[page] < 1024:
                    good = page_extremes(&x, cuts.values[page], cuts.values[page + 1], &low, &high)
                else:
                    with nogil:
                        good = page_extremes(&x, cuts.values[page], cuts.values[page + 1], &low, &high)
                if not good:
                    raise ValueError("a byte array lies outside its buffer")
                if low < 0:
                    continue
                if width:
                    minima[page] = between(x.data, low * width, (low + 1) * width)
                    maxima[page] = between(x.data, high * width, (high + 1) * width)
                else:
                    minima[page] = between(x.data, x.offsets[low], x.offsets[low + 1])
                    maxima[page] = between(x.data, x.offsets[high], x.offsets[high + 1])
        finally:
            if not width:
                PyBuffer_Release(&places)
        return minima, maxima
    finally:
        if data is not None:
            PyBuffer_Release(&held)


cdef int bounds(const number *x, PageBoundaries cuts, list minima, list maxima, list nans) except -1:
    cdef number low = 0, high = 0
    cdef Py_ssize_t page, first, count, unknown
    for page in range(cuts.count):
        first = cuts.values[page]
        count = cuts.values[page + 1] - first
        if count < 4096:
            unknown = span(x + first, count, &low, &high)
        else:
            with nogil:
                unknown = span(x + first, count, &low, &high)
        nans[page] = unknown
        if unknown < count:
            if number is float or number is double:
                # Some readers distinguish -0 from +0: a zero bound covers both.
                if low == 0:
                    low = -<number> 0.0
                if high == 0:
                    high = <number> 0.0
            minima[page] = PyBytes_FromStringAndSize(<char *> &low, sizeof(number))
            maxima[page] = PyBytes_FromStringAndSize(<char *> &high, sizeof(number))
    return 0


def number_bounds(object values, Py_ssize_t start, str code, PageBoundaries cuts):
    """Return (minima, maxima, numbers of NaN) of each page; None if values are not aligned.

    A bound is PLAIN bytes, or ``None`` for a page without numbers. `values` is a buffer whose item `start` is the first
    value; `code` is its numpy type code: "i4", "u4", "i8", "u8", "f4" or "f8". A bound that is zero has the sign that
    includes both zeros.
    """
    cdef Py_buffer held
    cdef const uint8_t *base
    cdef Py_ssize_t width = int(code[1]), count = cuts.values[cuts.count]
    cdef list minima = [None] * cuts.count, maxima = [None] * cuts.count, nans = [0] * cuts.count
    if count == 0:
        return minima, maxima, nans
    PyObject_GetBuffer(values, &held, PyBUF_SIMPLE)
    try:
        if start < 0 or held.len // width - count < start:
            raise ValueError("the buffer is shorter than its values")
        base = <const uint8_t *> held.buf + start * width
        if <size_t> base % width:
            return None
        if code == "i4":
            bounds(<const int32_t *> base, cuts, minima, maxima, nans)
        elif code == "u4":
            bounds(<const uint32_t *> base, cuts, minima, maxima, nans)
        elif code == "i8":
            bounds(<const int64_t *> base, cuts, minima, maxima, nans)
        elif code == "u8":
            bounds(<const uint64_t *> base, cuts, minima, maxima, nans)
        elif code == "f4":
            bounds(<const float *> base, cuts, minima, maxima, nans)
        elif code == "f8":
            bounds(<const double *> base, cuts, minima, maxima, nans)
        else:
            raise ValueError(f"number type {code!r} is not supported")
        return minima, maxima, nans
    finally:
        PyBuffer_Release(&held)


def level_counts(const int16_t[::1] levels, const int64_t[::1] starts, int highest, int64_t[:, ::1] out):
    """Add the number of occurrences of each level from 0 to `highest` to `out`, which has one row per page."""
    cdef Py_ssize_t page, i
    cdef bint bad = False
    check_starts(starts, levels.shape[0], out.shape[0])
    if highest < 0 or out.shape[1] != highest + 1:
        raise ValueError("the output must have one column per level")
    with nogil:
        for page in range(starts.shape[0] - 1):
            for i in range(starts[page], starts[page + 1]):
                if levels[i] < 0 or levels[i] > highest:
                    bad = True
                    break
                out[page, levels[i]] += 1
            if bad:
                break
    if bad:
        raise ValueError(f"a level is outside 0 to {highest}")
