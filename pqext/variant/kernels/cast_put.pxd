# cython: language_level=3, cdivision=True
# Targets of casts, and the functions that append to a column of the target type.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from pqext.variant.kernels.exact cimport has_precision, int128, multiply_overflows, power_of_ten
from pqext.variant.kernels.shredding cimport (
    LEAF_BINARY, LEAF_DOUBLE, LEAF_FLOAT, LEAF_INT64, LEAF_INT8, LEAF_STRING, Column, bit_set, column_bytes,
    column_fixed, column_mark,
)
from pqext.variant.kernels.wide cimport Wide, wide_fits, wide_set, wide_shift, wide_store
from pqext.variant.kernels.zone cimport ZoneTable, offset_of_clock, offset_of_instant

cdef extern from * nogil:
    """
    #include <stdint.h>
    #include <string.h>
    /* A double as a 16-bit float, ties to even. */
    static inline uint16_t pqext_half(double v) {
        uint64_t bits, significand, rest, halfway;
        int exponent, shift;
        uint16_t sign, out;
        memcpy(&bits, &v, 8);
        sign = (uint16_t) (bits >> 48 & 0x8000);
        exponent = (int) (bits >> 52 & 0x7FF) - 1023;
        significand = bits & 0xFFFFFFFFFFFFFULL;
        if (exponent == 1024) return sign | 0x7C00 | (significand ? 0x200 : 0);
        if (exponent > 15) return sign | 0x7C00;
        if (exponent < -25) return sign;
        /* Normal numbers keep 10 bits after the leading one, which the exponent's own bits absorb. */
        significand |= 1ULL << 52;
        shift = exponent >= -14 ? 42 : 42 + (-14 - exponent);
        out = (uint16_t) (significand >> shift);
        if (exponent >= -14) out = (uint16_t) (out + ((exponent + 14) << 10));
        rest = significand & ((1ULL << shift) - 1);
        halfway = 1ULL << (shift - 1);
        if (rest > halfway || (rest == halfway && (out & 1))) out++;
        return sign | out;
    }
    """
    uint16_t half_of "pqext_half"(double v)


cdef enum:
    # Targets in addition to the leaves of shredding.pxd, whose timestamps and times have the requested unit.
    TARGET_UINT8 = 20
    TARGET_UINT16 = 21
    TARGET_UINT32 = 22
    TARGET_UINT64 = 23
    TARGET_HALF = 24
    TARGET_FIXED = 25       # binary of a fixed size
    TARGET_NULL = 26
    TARGET_VARIANT = 100


cdef enum:
    CAST_NULL = 0
    CAST_DONE = 1
    CAST_FAILED = 2
    CAST_JSON = 3           # an object or array requested as text

    SECOND = 1000000000
    DAY_NANOS = 86400000000000


cdef struct Wanted:
    int leaf          # of shredding.pxd or Target
    int precision     # of decimals
    int scale
    int width         # bytes of a value in Arrow; 0 for bits and for variable length
    int64_t unit      # nanoseconds of a tick, of times and timestamps
    const ZoneTable *zone   # of casts between instants and local times; NULL for UTC


cdef inline bint is_variable(const Wanted *w) noexcept nogil:
    """Return whether the column has offsets."""
    return w.leaf == LEAF_STRING or w.leaf == LEAF_BINARY or w.leaf == TARGET_VARIANT


cdef inline bint is_integer_target(const Wanted *w) noexcept nogil:
    return LEAF_INT8 <= w.leaf <= LEAF_INT64 or TARGET_UINT8 <= w.leaf <= TARGET_UINT64


cdef inline bint is_floating_target(const Wanted *w) noexcept nogil:
    return w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT or w.leaf == TARGET_HALF


cdef inline int done(int status) noexcept nogil:
    return CAST_DONE if status == 0 else status


cdef inline int put_integer(const Wanted *w, Column *c, int64_t row, int128 v) noexcept nogil:
    cdef int bits = w.width * 8
    cdef int128 least = 0, most
    if TARGET_UINT8 <= w.leaf <= TARGET_UINT64:
        most = (<int128> 1 << bits) - 1
    else:
        least = -(<int128> 1 << (bits - 1))
        most = -least - 1
    # Arrow arrays are little-endian: the lowest bytes are the number in a narrower type.
    return done(column_fixed(c, row, &v, <size_t> w.width)) if least <= v <= most else CAST_FAILED


cdef inline int put_bool(Column *c, int64_t row, bint v) noexcept nogil:
    cdef int status = column_mark(c, row)
    if status == 0 and v:
        status = bit_set(&c.data, row)
    return done(status)


cdef inline int put_floating(const Wanted *w, Column *c, int64_t row, double v) noexcept nogil:
    cdef float narrow
    cdef uint16_t half
    if w.leaf == LEAF_DOUBLE:
        return done(column_fixed(c, row, &v, 8))
    if w.leaf == LEAF_FLOAT:
        narrow = <float> v
        return done(column_fixed(c, row, &narrow, 4))
    half = half_of(v)
    return done(column_fixed(c, row, &half, 2))


cdef inline int put_text(Column *c, int64_t row, const char *text, size_t n) noexcept nogil:
    return done(column_bytes(c, row, <const uint8_t *> text, n))


cdef inline int put_wide(const Wanted *w, Column *c, int64_t row, const Wide *v) noexcept nogil:
    cdef uint64_t[4] stored
    if not wide_fits(v, w.precision):
        return CAST_FAILED
    wide_store(v, &stored[0])
    return done(column_fixed(c, row, &stored[0], <size_t> w.width))


cdef inline int put_decimal(
    const Wanted *w, Column *c, int64_t row, int128 mantissa, int64_t exponent
) noexcept nogil:
    """Store mantissa * 10**exponent at the scale of the column, rounding ties away from zero."""
    cdef Wide wide
    cdef int64_t shift = exponent + w.scale
    cdef int128 factor, v, rest
    if shift >= 0:
        if w.width <= 16 and shift <= 38 and not multiply_overflows(mantissa, power_of_ten(<int> shift), &v):
            return done(column_fixed(c, row, &v, <size_t> w.width)) if has_precision(v, w.precision) else CAST_FAILED
        wide_set(&wide, mantissa)
        return put_wide(w, c, row, &wide) if wide_shift(&wide, shift) else CAST_FAILED
    v = 0
    if shift >= -38:
        factor = power_of_ten(<int> -shift)
        v = mantissa // factor
        rest = mantissa % factor
        if rest < 0:
            rest = -rest
        if rest >= factor - rest:
            v += -1 if mantissa < 0 else 1
    if w.width <= 16:
        return done(column_fixed(c, row, &v, <size_t> w.width)) if has_precision(v, w.precision) else CAST_FAILED
    wide_set(&wide, v)
    return put_wide(w, c, row, &wide)


cdef inline int put_days(const Wanted *w, Column *c, int64_t row, int128 days) noexcept nogil:
    """Store a date as days or as milliseconds."""
    cdef int32_t small = <int32_t> days
    cdef int64_t millis
    if small != days:
        return CAST_FAILED
    if w.width == 4:
        return done(column_fixed(c, row, &small, 4))
    millis = <int64_t> small * 86400000
    return done(column_fixed(c, row, &millis, 8))


cdef inline int put_instant(const Wanted *w, Column *c, int64_t row, int128 nanos) noexcept nogil:
    """Store nanoseconds since 1970, rounded down to the unit of the column."""
    cdef int128 v = nanos // w.unit - (nanos % w.unit < 0)
    cdef int64_t stored = <int64_t> v
    return done(column_fixed(c, row, &stored, 8)) if stored == v else CAST_FAILED


cdef inline int64_t _second(int128 nanos) noexcept nogil:
    return <int64_t> (nanos // SECOND - (nanos % SECOND < 0))


cdef inline int128 local_of(const Wanted *w, int128 nanos) noexcept nogil:
    """Return the local time of an instant, in nanoseconds as if it were UTC."""
    if w.zone == NULL:
        return nanos
    return nanos + <int128> offset_of_instant(w.zone, _second(nanos)) * SECOND


cdef inline int128 instant_of(const Wanted *w, int128 nanos) noexcept nogil:
    """Return the instant of a local time."""
    if w.zone == NULL:
        return nanos
    return nanos - <int128> offset_of_clock(w.zone, _second(nanos)) * SECOND


cdef inline int put_seconds(const Wanted *w, Column *c, int64_t row, int128 unscaled, int scale) noexcept nogil:
    """Store an exact number of seconds since 1970, truncated towards zero to the unit of the column, as in Spark."""
    cdef int128 per_second = SECOND // w.unit
    cdef int128 whole = unscaled // power_of_ten(scale)
    cdef int128 part = unscaled % power_of_ten(scale)
    cdef int64_t stored
    if not -10000000000000000000.0 < <double> whole < 10000000000000000000.0:
        return CAST_FAILED
    if scale > 18:
        part = part // power_of_ten(scale - 18)
        scale = 18
    whole = whole * per_second + part * per_second // power_of_ten(scale)
    stored = <int64_t> whole
    return done(column_fixed(c, row, &stored, 8)) if stored == whole else CAST_FAILED


cdef inline int put_time(const Wanted *w, Column *c, int64_t row, int64_t nanos) noexcept nogil:
    """Store a time of day, truncated to the unit of the column."""
    cdef int64_t v = nanos // w.unit
    cdef int32_t small = <int32_t> v
    return done(column_fixed(c, row, &small, 4) if w.width == 4 else column_fixed(c, row, &v, 8))
