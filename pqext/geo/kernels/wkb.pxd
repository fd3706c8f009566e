# A single validated walk over well-known binary, shared by all geometry kernels.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.core.kernels.buffer cimport Bytes


cdef enum:
    MAX_DEPTH = 128  # maximum nesting depth of collections

    # Results of `walk` and `column_row`: 0 is success, NULL_ROW a missing value, higher values are faults of the bytes.
    NULL_ROW = -1
    OFFSETS = 1
    TRUNCATED = 2
    BYTE_ORDER = 3
    TYPE_CODE = 4
    COUNT = 5
    CHILD = 6
    DEPTH = 7
    TRAILING = 8
    RING = 9
    DIMENSIONS = 10
    MEMORY = 11
    SRID = 12
    CURVE = 13

    POINT = 1
    LINE_STRING = 2
    POLYGON = 3
    MULTI_POINT = 4
    MULTI_LINE_STRING = 5
    MULTI_POLYGON = 6
    COLLECTION = 7
    TRIANGLE = 17  # the last of the curves and surfaces that other systems have
    SMALLEST = 9  # size of an empty part: order, code, count
    POINT_XY = 21  # size of the most common value: order, code, x, y


cdef struct Box:
    # x, y, z, m; a dimension without values has low > high.
    double low[4]
    double high[4]


cdef struct Geometry:
    # Result of a walk over one value, in addition to its box.
    int base  # 1 Point ... 7 GeometryCollection
    int dims  # bit 0: Z, bit 1: M
    int extended  # any header in the EWKB form
    int hollow  # any part of a multi geometry or collection, or any hole, without coordinates
    uint32_t srid  # SRID of the headers; 0 (unknown) if no header has one
    size_t at  # byte position of a fault


cdef struct Header:
    # Header of a geometry or of a part.
    int base  # 1 Point ... 7 GeometryCollection
    int dims  # bit 0: Z, bit 1: M
    bint little
    bint extended  # EWKB
    bint has_srid
    uint32_t srid
    size_t size  # bytes


cdef struct Column:
    # An Arrow binary array: all pointers were checked against the buffers when it was made.
    const uint8_t *validity
    const uint8_t *offsets
    const uint8_t *data
    int64_t size  # of data
    int64_t first
    int64_t length
    int wide  # 64-bit offsets


cdef extern from *:
    """
    #include <math.h>
    #define PQEXT_INFINITE ((double) INFINITY)
    #define PQEXT_EWKB_Z 0x80000000u
    #define PQEXT_EWKB_M 0x40000000u
    #define PQEXT_EWKB_SRID 0x20000000u
    #define PQEXT_EWKB_FLAGS 0xE0000000u
    static inline uint32_t pqext_swap32(uint32_t v) {
        return (v >> 24) | ((v >> 8) & 0xFF00u) | ((v << 8) & 0xFF0000u) | (v << 24);
    }
    static inline uint64_t pqext_swap64(uint64_t v) {
        return ((uint64_t) pqext_swap32((uint32_t) v) << 32) | pqext_swap32((uint32_t) (v >> 32));
    }

    #include <string.h>
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    #define PQEXT_PAIR(p) _mm_castsi128_pd(_mm_loadu_si128((const __m128i *) (p)))
    #endif

    #if defined(__GNUC__)
    #define PQEXT_PREFETCH(p) __builtin_prefetch((const void *) ((uintptr_t) (p) + 4096))
    #else
    #define PQEXT_PREFETCH(p)
    #endif

    /* Widen the ranges of x and y, low[2] and high[2], by `count` little-endian pairs that lie `stride` bytes apart,
       four chains at a time, independent of earlier calls. NaN leaves them unchanged. */
    static inline void pqext_widen_pairs(const uint8_t *p, size_t count, size_t stride, double *low, double *high) {
        size_t i = 0;
    #ifdef PQEXT_PAIR
        __m128d low0 = _mm_set1_pd(PQEXT_INFINITE), low1 = low0, low2 = low0, low3 = low0;
        __m128d high0 = _mm_set1_pd(-PQEXT_INFINITE), high1 = high0, high2 = high0, high3 = high0;
        for (; i + 4 <= count; i += 4, p += 4 * stride) {
            PQEXT_PREFETCH(p);
            __m128d a = PQEXT_PAIR(p), b = PQEXT_PAIR(p + stride);
            __m128d c = PQEXT_PAIR(p + 2 * stride), d = PQEXT_PAIR(p + 3 * stride);
            low0 = _mm_min_pd(a, low0); high0 = _mm_max_pd(a, high0);
            low1 = _mm_min_pd(b, low1); high1 = _mm_max_pd(b, high1);
            low2 = _mm_min_pd(c, low2); high2 = _mm_max_pd(c, high2);
            low3 = _mm_min_pd(d, low3); high3 = _mm_max_pd(d, high3);
        }
        for (; i < count; i++, p += stride) {
            __m128d a = PQEXT_PAIR(p);
            low0 = _mm_min_pd(a, low0); high0 = _mm_max_pd(a, high0);
        }
        low0 = _mm_min_pd(_mm_min_pd(low0, low1), _mm_min_pd(low2, low3));
        high0 = _mm_max_pd(_mm_max_pd(high0, high1), _mm_max_pd(high2, high3));
        _mm_storeu_pd(low, _mm_min_pd(low0, _mm_loadu_pd(low)));
        _mm_storeu_pd(high, _mm_max_pd(high0, _mm_loadu_pd(high)));
    #else
        for (; i < count; i++, p += stride) {
            double xy[2];
            int d;
            memcpy(xy, p, 16);
            for (d = 0; d < 2; d++) {
                low[d] = xy[d] < low[d] ? xy[d] : low[d];
                high[d] = xy[d] > high[d] ? xy[d] : high[d];
            }
        }
    #endif
    }

    /* Bits in which the first five bytes of any of `count` values, `stride` bytes apart, differ from `expected`. */
    static inline uint64_t pqext_differing(const uint8_t *p, size_t count, size_t stride, uint64_t expected) {
        uint64_t found = 0, one, two;
        size_t i;
        for (i = 0; i + 2 <= count; i += 2, p += 2 * stride) {
            PQEXT_PREFETCH(p);
            memcpy(&one, p, 8);
            memcpy(&two, p + stride, 8);
            found |= (one ^ expected) | (two ^ expected);
        }
        if (i < count) {
            memcpy(&one, p, 8);
            found |= one ^ expected;
        }
        return found & 0xFFFFFFFFFFULL;
    }
    """
    const double INFINITE "PQEXT_INFINITE"
    const uint32_t EWKB_Z "PQEXT_EWKB_Z"
    const uint32_t EWKB_M "PQEXT_EWKB_M"
    const uint32_t EWKB_SRID "PQEXT_EWKB_SRID"
    const uint32_t EWKB_FLAGS "PQEXT_EWKB_FLAGS"
    uint32_t pqext_swap32(uint32_t v) noexcept nogil
    uint64_t pqext_swap64(uint64_t v) noexcept nogil
    void widen_pairs "pqext_widen_pairs"(
        const uint8_t *p, size_t count, size_t stride, double *low, double *high
    ) noexcept nogil
    uint64_t differing "pqext_differing"(const uint8_t *p, size_t count, size_t stride, uint64_t expected) noexcept nogil


cdef inline void box_clear(Box *box) noexcept nogil:
    cdef int d
    for d in range(4):
        box.low[d] = INFINITE
        box.high[d] = -INFINITE


cdef inline uint32_t load32(const uint8_t *p, bint little) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, p, 4)
    return v if little else pqext_swap32(v)


cdef inline void widen(double value, double *low, double *high) noexcept nogil:
    # A NaN compares false on both lines and so is skipped.
    low[0] = value if value < low[0] else low[0]
    high[0] = value if value > high[0] else high[0]


cdef inline double little_double(const uint8_t *p) noexcept nogil:
    cdef double value
    memcpy(&value, p, 8)  # a WKB double is seldom aligned
    return value


cdef inline double load_double(const uint8_t *p, bint little) noexcept nogil:
    cdef uint64_t bits
    cdef double value
    memcpy(&bits, p, 8)
    if not little:
        bits = pqext_swap64(bits)
    memcpy(&value, &bits, 8)
    return value


cdef inline size_t stride_of(int dims) noexcept nogil:
    """Return the size of one coordinate in bytes."""
    return 16 + 8 * <size_t> ((dims & 1) + (dims >> 1))


cdef inline int read_header(const uint8_t *value, size_t left, Header *header) noexcept nogil:
    """Read the header at `value`, where `left` bytes exist. Return 0, TRUNCATED, BYTE_ORDER, TYPE_CODE or CURVE."""
    cdef uint32_t code, flags
    if left < 5:
        return TRUNCATED
    if value[0] > 1:
        return BYTE_ORDER
    header.little = value[0] == 1
    code = load32(value + 1, header.little)
    header.size = 5
    flags = code & EWKB_FLAGS
    header.extended = flags != 0
    header.has_srid = False
    if flags:
        code &= ~<uint32_t> EWKB_FLAGS
        header.dims = (1 if flags & EWKB_Z else 0) | (2 if flags & EWKB_M else 0)
        header.base = <int> code if code <= TRIANGLE else 0
        if flags & EWKB_SRID:
            header.size = 9
            if left < 9:
                return TRUNCATED
            header.has_srid = True
            header.srid = load32(value + 5, header.little)
    else:
        header.dims = <int> (code // 1000) if code < 4000 else 0
        header.base = <int> (code % 1000) if code < 4000 else 0
    if COLLECTION < header.base <= TRIANGLE:
        return CURVE
    return 0 if POINT <= header.base <= COLLECTION else TYPE_CODE


cdef inline int column_row(const Column *c, int64_t row, const uint8_t **value, size_t *size) noexcept nogil:
    """Find the bytes of a row. Return 0, NULL_ROW, or OFFSETS if the offsets of the array are outside its data."""
    cdef int64_t i = c.first + row
    cdef int64_t start, stop
    cdef int32_t narrow[2]
    cdef int64_t broad[2]
    if c.validity != NULL and not (c.validity[i >> 3] >> (i & 7)) & 1:
        return NULL_ROW
    if c.wide:
        memcpy(broad, c.offsets + 8 * i, 16)
        start = broad[0]
        stop = broad[1]
    else:
        memcpy(narrow, c.offsets + 4 * i, 8)
        start = narrow[0]
        stop = narrow[1]
    if start < 0 or stop < start or stop > c.size:
        return OFFSETS
    value[0] = c.data + start
    size[0] = <size_t> (stop - start)
    return 0


cdef inline uint64_t header(const uint8_t *value) noexcept nogil:
    """Return the byte order and type code of a value of at least 8 bytes as one number."""
    cdef uint64_t head
    memcpy(&head, value, 8)
    return head & 0xFFFFFFFFFFu


cdef inline bint plain_point(const uint8_t *value, size_t size) noexcept nogil:
    """Return whether this is exactly a little-endian XY point."""
    return size == POINT_XY and header(value) == 0x101u


cdef int walk(const uint8_t *value, size_t size, bint strict, Box *box, Geometry *geometry, Bytes *iso) noexcept nogil

cdef class WkbColumn:
    cdef Column c
    cdef Py_buffer views[3]
    cdef int held[3]
    cdef int64_t row

cdef object fault(int status, int64_t row, const Geometry *geometry)
