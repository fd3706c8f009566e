# cython: language_level=3
"""What statistics need of the values and levels of each page: extremes, NaN and level counts (core.statistics).

Pages are given by `starts`: page `i` holds the items from `starts[i]` up to `starts[i + 1]`.
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

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
        raise ValueError("pages and output differ in length")
    if starts[0] < 0 or starts[starts.shape[0] - 1] > items:
        raise ValueError("pages leave the values")
    for i in range(starts.shape[0] - 1):
        if starts[i] > starts[i + 1]:
            raise ValueError("pages overlap")
    return 0


cdef inline Py_ssize_t span(const number *x, Py_ssize_t count, number *low, number *high) noexcept nogil:
    """Least and greatest of the values that are not NaN; returns how many are NaN."""
    cdef Py_ssize_t i = 0, j, nans = 0
    cdef number lows[4]
    cdef number highs[4]
    cdef number value
    while i < count and x[i] != x[i]:
        i += 1
    nans = i
    if i == count:
        return nans
    for j in range(4):  # four chains, since each comparison waits for the one before
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
    """Write each page's least and greatest value that is not NaN, and its number of NaN.

    Nothing is written into `low` and `high` for a page that has no such value.
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
    """Two big-endian two's complement numbers of any length; no bytes are zero."""
    cdef bint a_negative = a_size > 0 and a[0] >= 128, b_negative = b_size > 0 and b[0] >= 128
    cdef uint8_t fill = 255 if a_negative else 0
    if a_negative != b_negative:
        return -1 if a_negative else 1
    while a_size > b_size:  # bytes beyond the other's length count only where they do not repeat the sign
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
    """The first eight bytes as a number that orders as they do, zeros behind a shorter value."""
    cdef uint64_t word = 0
    if end - at >= 8:
        memcpy(&word, at, 8)
        word = big_endian_64(word)
        if size < 8:
            word = word >> (8 * (8 - size)) << (8 * (8 - size)) if size else 0
        return word
    memcpy(&word, at, size if size < 8 else 8)
    return big_endian_64(word)


def byte_extremes(
    const uint8_t[::1] data, const int32_t[::1] offsets, Py_ssize_t width, bint is_signed,
    const int64_t[::1] starts, int64_t[::1] low, int64_t[::1] high,
):
    """Write the positions of each page's least and greatest byte array, -1 for a page without values.

    Values lie between `offsets`, or are `width` bytes each when `width` is not 0. They compare as unsigned bytes,
    or as big-endian two's complement numbers when `is_signed`.
    """
    cdef Py_ssize_t count = data.shape[0] // width if width > 0 else offsets.shape[0] - 1
    cdef Py_ssize_t page, i, at, size, low_at = 0, low_size = 0, high_at = 0, high_size = 0
    cdef Py_ssize_t pages = starts.shape[0] - 1, length = data.shape[0]
    cdef uint64_t word, low_word = 0, high_word = 0
    cdef uint8_t nothing = 0
    cdef const uint8_t *base = &data[0] if length else &nothing
    cdef const uint8_t *end = base + length
    cdef const int32_t *places = &offsets[0] if offsets.shape[0] else NULL
    cdef bint first, bad = False
    if width < 0:
        raise ValueError("a negative width")
    check_starts(starts, count, min(low.shape[0], high.shape[0]))
    with nogil:
        for page in range(pages):
            low[page] = high[page] = -1
            first = True
            for i in range(starts[page], starts[page + 1]):
                if width > 0:
                    at, size = i * width, width
                else:
                    at, size = places[i], <Py_ssize_t> places[i + 1] - places[i]  # check_starts proves the range
                    if at < 0 or size < 0 or at > length - size:
                        bad = True
                        break
                word = prefix(base + at, size, end) if size and (width > 0 or not is_signed) else 0
                if is_signed and width > 0:
                    word ^= <uint64_t> 1 << 63  # of numbers of one width, the sign bit comes first, the other way
                if first:
                    first = False
                    low[page] = high[page] = i
                    low_word = high_word = word
                    low_at = high_at = at
                    low_size = high_size = size
                    continue
                if word < low_word or (word == low_word and (
                    compare_signed(base + at, size, base + low_at, low_size) if is_signed
                    else compare_bytes(base + at, size, base + low_at, low_size)
                ) < 0):
                    low[page], low_word, low_at, low_size = i, word, at, size
                elif word > high_word or (word == high_word and (
                    compare_signed(base + at, size, base + high_at, high_size) if is_signed
                    else compare_bytes(base + at, size, base + high_at, high_size)
                ) > 0):
                    high[page], high_word, high_at, high_size = i, word, at, size
            if bad:
                break
    if bad:
        raise ValueError("a byte array lies outside its buffer")


def level_counts(const int16_t[::1] levels, const int64_t[::1] starts, int highest, int64_t[:, ::1] out):
    """Add to `out`, one row a page, how often each level from 0 to `highest` occurs in it."""
    cdef Py_ssize_t page, i
    cdef bint bad = False
    check_starts(starts, levels.shape[0], out.shape[0])
    if highest < 0 or out.shape[1] != highest + 1:
        raise ValueError("levels and output differ")
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
        raise ValueError(f"a level beyond {highest}")
