# cython: language_level=3, cdivision=True
# A variant value cast to one type and put into a column of that type.
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.variant.kernels.binary cimport *
from pqext.variant.kernels.exact cimport *
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport Column, bit_set, column_bytes, column_fixed, column_mark
from pqext.variant.kernels.text cimport *
from pqext.variant.kernels.text_write cimport (
    write_date,
    write_decimal,
    write_double,
    write_float,
    write_time,
    write_uuid,
)


cdef enum:
    TARGET_VARIANT_LEAF = 100    # beside the leaves of exact.pxd

    CAST_NULL = 0
    CAST_DONE = 1
    CAST_FAILED = 2
    CAST_JSON = 3     # an object or array asked as text

cdef enum:
    DAY_NANOS = 86400000000000
    SECOND = 1000000000


cdef struct Wanted:
    int leaf
    int precision
    int scale


cdef inline int _done(int status) noexcept nogil:
    return CAST_DONE if status == 0 else status


cdef inline int _put_integer(const Wanted *w, Column *c, int64_t row, int128 v) noexcept nogil:
    cdef int8_t i8 = <int8_t> v
    cdef int16_t i16 = <int16_t> v
    cdef int32_t i32 = <int32_t> v
    cdef int64_t i64 = <int64_t> v
    if w.leaf == LEAF_INT64:
        return _done(column_fixed(c, row, &i64, 8)) if i64 == v else CAST_FAILED
    if w.leaf == LEAF_INT32 or w.leaf == LEAF_DATE:
        return _done(column_fixed(c, row, &i32, 4)) if i32 == v else CAST_FAILED
    if w.leaf == LEAF_INT16:
        return _done(column_fixed(c, row, &i16, 2)) if i16 == v else CAST_FAILED
    return _done(column_fixed(c, row, &i8, 1)) if i8 == v else CAST_FAILED


cdef inline int _put_bool(Column *c, int64_t row, bint v) noexcept nogil:
    cdef int status = column_mark(c, row)
    if status == 0 and v:
        status = bit_set(&c.data, row)
    return _done(status)


cdef inline int _put_floating(const Wanted *w, Column *c, int64_t row, double v) noexcept nogil:
    cdef float narrow = <float> v
    if w.leaf == LEAF_FLOAT:
        return _done(column_fixed(c, row, &narrow, 4))
    return _done(column_fixed(c, row, &v, 8))


cdef inline int _put_text(Column *c, int64_t row, const char *text, size_t n) noexcept nogil:
    return _done(column_bytes(c, row, <const uint8_t *> text, n))


cdef inline int _put_instant(const Wanted *w, Column *c, int64_t row, int128 nanos) noexcept nogil:
    """Nanoseconds since 1970, rounded down to the column's unit."""
    cdef int128 v = nanos
    cdef int64_t stored
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NTZ:
        v = nanos // 1000 - (nanos % 1000 < 0)
    stored = <int64_t> v
    return _done(column_fixed(c, row, &stored, 8)) if stored == v else CAST_FAILED


cdef inline int _cast_exact(const Wanted *w, Column *c, int64_t row, int128 unscaled, int scale) noexcept nogil:
    cdef uint8_t text[64]
    cdef uint8_t *end
    cdef int128 v = 0
    if LEAF_INT8 <= w.leaf <= LEAF_INT64:
        return _put_integer(w, c, row, unscaled // power_of_ten(scale) if scale else unscaled)
    if w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT:
        return _put_floating(w, c, row, exact_to_double(unscaled, scale))
    if w.leaf == LEAF_DECIMAL:
        if not round_half_up(unscaled, -scale, False, w.scale, &v) or not has_precision(v, w.precision):
            return CAST_FAILED
        return _done(column_fixed(c, row, &v, 16))
    if w.leaf == LEAF_BOOLEAN:
        return _put_bool(c, row, unscaled != 0)
    if w.leaf == LEAF_STRING:
        # Without zeros at the end, so that equal numbers have one text.
        while scale > 0 and unscaled % 10 == 0:
            unscaled = unscaled // 10
            scale -= 1
        end = write_decimal(text, <int64_t> (unscaled >> 64), <uint64_t> unscaled, scale)
        return _done(column_bytes(c, row, text, <size_t> (end - text)))
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NANOS:
        # Seconds since 1970, as Spark casts them.
        if multiply_overflows(unscaled, SECOND, &v):
            return CAST_FAILED
        return _put_instant(w, c, row, v // power_of_ten(scale) - (v % power_of_ten(scale) < 0))
    return CAST_FAILED


cdef inline int _put_shortest(Column *c, int64_t row, double v, bint narrow) noexcept nogil:
    """The shortest text that reads back as the same double (float, when narrow)."""
    cdef uint8_t text[64]
    cdef uint8_t *end
    cdef float small = <float> v
    cdef uint32_t bits32
    cdef uint64_t bits
    if narrow:
        memcpy(&bits32, &small, 4)
        end = write_float(text, bits32)
    else:
        memcpy(&bits, &v, 8)
        end = write_double(text, bits)
    return _done(column_bytes(c, row, text, <size_t> (end - text)))


cdef inline int _cast_floating(const Wanted *w, Column *c, int64_t row, double v, bint narrow) noexcept nogil:
    cdef Number number
    cdef int128 wide = 0
    cdef uint8_t text[64]
    cdef uint64_t bits
    if w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT:
        return _put_floating(w, c, row, v)
    if w.leaf == LEAF_BOOLEAN:
        return _put_bool(c, row, v != 0.0)
    if w.leaf == LEAF_STRING:
        if isnan(v):
            return _put_text(c, row, b"NaN", 3)
        if not isfinite(v):
            return _put_text(c, row, b"Infinity", 8) if v > 0 else _put_text(c, row, b"-Infinity", 9)
        return _put_shortest(c, row, v, narrow)
    if not isfinite(v):
        return CAST_FAILED
    if LEAF_INT8 <= w.leaf <= LEAF_INT64:
        if not -9.3e18 < v < 9.3e18:
            return CAST_FAILED
        return _put_integer(w, c, row, <int128> v)
    if w.leaf == LEAF_DECIMAL:
        # A double is the decimal of its shortest text, as Spark has it.
        memcpy(&bits, &v, 8)
        parse_number(text, <size_t> (write_double(text, bits) - text), &number)
        if not round_half_up(number.mantissa, number.exponent, number.half, w.scale, &wide) or not has_precision(wide, w.precision):
            return CAST_FAILED
        return _done(column_fixed(c, row, &wide, 16))
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NANOS:
        if not -1e13 < v < 1e13:
            return CAST_FAILED
        return _put_instant(w, c, row, <int128> (v * 1e6) * 1000)
    return CAST_FAILED


cdef inline int _cast_instant(const Wanted *w, Column *c, int64_t row, int128 nanos, bint utc) noexcept nogil:
    cdef uint8_t text[64]
    cdef uint8_t *end
    cdef int128 day = nanos // DAY_NANOS - (nanos % DAY_NANOS < 0)
    cdef int128 seconds
    cdef int128 v = 0
    if LEAF_TIMESTAMP <= w.leaf <= LEAF_TIMESTAMP_NTZ_NANOS:
        return _put_instant(w, c, row, nanos)
    if w.leaf == LEAF_DATE:
        return _put_integer(w, c, row, day)
    if w.leaf == LEAF_STRING:
        end = write_date(text, <int64_t> day)
        end[0] = c' '
        end = write_time(end + 1, <int64_t> (nanos - day * DAY_NANOS), SECOND, 9)
        return _done(column_bytes(c, row, text, <size_t> (end - text)))
    if not utc:
        return CAST_FAILED
    if LEAF_INT8 <= w.leaf <= LEAF_INT64:
        seconds = nanos // SECOND - (nanos % SECOND < 0)
        return _put_integer(w, c, row, seconds)
    if w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT:
        return _put_floating(w, c, row, exact_to_double(nanos, 9))
    if w.leaf == LEAF_DECIMAL:
        if not round_half_up(nanos, -9, False, w.scale, &v) or not has_precision(v, w.precision):
            return CAST_FAILED
        return _done(column_fixed(c, row, &v, 16))
    return CAST_FAILED


cdef inline int _hex(uint8_t c) noexcept nogil:
    if c'0' <= c <= c'9':
        return c - c'0'
    if c'a' <= c <= c'f':
        return c - c'a' + 10
    if c'A' <= c <= c'F':
        return c - c'A' + 10
    return -1


cdef inline bint _parse_uuid(const uint8_t *p, size_t n, uint8_t *out) noexcept nogil:
    cdef size_t i, at = 0
    cdef int high, low
    trim(&p, &n)
    if n != 36:
        return False
    for i in range(16):
        if i == 4 or i == 6 or i == 8 or i == 10:
            if p[at] != c'-':
                return False
            at += 1
        high = _hex(p[at])
        low = _hex(p[at + 1])
        if high < 0 or low < 0:
            return False
        out[i] = <uint8_t> (high << 4 | low)
        at += 2
    return True


cdef inline int _cast_string(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    cdef Number number
    cdef int128 wide = 0
    cdef int64_t day = 0, nanos = 0, zone = 0
    cdef uint8_t uuid[16]
    cdef bint flag = False
    if w.leaf == LEAF_STRING:
        if utf8_fault(p, n) >= 0:
            return FAULT_STRING_UTF8
        return _done(column_bytes(c, row, p, n))
    if w.leaf == LEAF_BINARY:
        return _done(column_bytes(c, row, p, n))
    if w.leaf == LEAF_BOOLEAN:
        return _put_bool(c, row, flag) if parse_bool(p, n, &flag) else CAST_FAILED
    if w.leaf == LEAF_UUID:
        return _done(column_fixed(c, row, uuid, 16)) if _parse_uuid(p, n, uuid) else CAST_FAILED
    if w.leaf == LEAF_TIME:
        if not parse_time(p, n, &nanos):
            return CAST_FAILED
        nanos //= 1000
        return _done(column_fixed(c, row, &nanos, 8))
    if w.leaf == LEAF_DATE or LEAF_TIMESTAMP <= w.leaf <= LEAF_TIMESTAMP_NTZ_NANOS:
        if not parse_timestamp(p, n, &day, &nanos, &zone):
            return CAST_FAILED
        if w.leaf == LEAF_DATE:
            return _put_integer(w, c, row, day)
        if w.leaf == LEAF_TIMESTAMP_NTZ or w.leaf == LEAF_TIMESTAMP_NTZ_NANOS:
            zone = 0   # what the clock showed
        return _put_instant(w, c, row, <int128> day * DAY_NANOS + nanos - <int128> zone * SECOND)
    if not parse_number(p, n, &number):
        return CAST_FAILED
    if w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT:
        return _put_floating(w, c, row, number_to_double(&number, p, n))
    if number.special:
        return CAST_FAILED
    if w.leaf == LEAF_DECIMAL:
        if not round_half_up(number.mantissa, number.exponent, number.half, w.scale, &wide) or not has_precision(wide, w.precision):
            return CAST_FAILED
        return _done(column_fixed(c, row, &wide, 16))
    if _is_integer(p, n):
        return CAST_FAILED if number.exponent else _put_integer(w, c, row, number.mantissa)
    return CAST_FAILED


cdef inline bint _is_integer(const uint8_t *p, size_t n) noexcept nogil:
    cdef size_t i = 0
    trim(&p, &n)
    if n and (p[0] == c'-' or p[0] == c'+'):
        i = 1
    if i == n:
        return False
    while i < n:
        if not c'0' <= p[i] <= c'9':
            return False
        i += 1
    return True


cdef inline int cast_value(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Cast the value of exactly `n` bytes at `p` into the column: one of CAST_*, or a fault."""
    cdef const uint8_t *text = NULL
    cdef size_t length = 0
    cdef int type_id, status, scale = 0
    cdef int128 unscaled = 0
    cdef int64_t v
    cdef double wide
    cdef float narrow
    cdef uint8_t text_of[64]
    if w.leaf == TARGET_VARIANT_LEAF:
        return _done(column_bytes(c, row, p, n))
    if is_string(p):
        status = string_open(p, n, &text, &length)
        return status if status != 0 else _cast_string(w, c, row, text, length)
    if p[0] & 3 != BASIC_PRIMITIVE:
        return CAST_JSON if w.leaf == LEAF_STRING else CAST_FAILED
    type_id = p[0] >> 2
    if is_exact_type(type_id):
        status = exact_open(p, n, &unscaled, &scale)
        return status if status != 0 else _cast_exact(w, c, row, unscaled, scale)
    if type_id == TYPE_NULL:
        return CAST_NULL
    if type_id == TYPE_TRUE or type_id == TYPE_FALSE:
        if w.leaf == LEAF_BOOLEAN:
            return _put_bool(c, row, type_id == TYPE_TRUE)
        if w.leaf == LEAF_STRING:
            return _put_text(c, row, b"true", 4) if type_id == TYPE_TRUE else _put_text(c, row, b"false", 5)
        if LEAF_INT8 <= w.leaf <= LEAF_DECIMAL:
            return _cast_exact(w, c, row, type_id == TYPE_TRUE, 0)
        return CAST_FAILED
    if type_id == TYPE_DOUBLE:
        memcpy(&wide, p + 1, 8)
        return _cast_floating(w, c, row, wide, False)
    if type_id == TYPE_FLOAT:
        memcpy(&narrow, p + 1, 4)
        return _cast_floating(w, c, row, narrow, True)
    if type_id == TYPE_DATE:
        v = <int32_t> read_uint(p + 1, 4)
        if w.leaf == LEAF_DATE:
            return _put_integer(w, c, row, v)
        if LEAF_TIMESTAMP <= w.leaf <= LEAF_TIMESTAMP_NTZ_NANOS:
            return _put_instant(w, c, row, <int128> v * DAY_NANOS)
        if w.leaf == LEAF_STRING:
            return _done(column_bytes(c, row, text_of, <size_t> (write_date(text_of, v) - text_of)))
        return CAST_FAILED
    if type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NTZ:
        v = <int64_t> read_uint64(p + 1)
        return _cast_instant(w, c, row, <int128> v * 1000, type_id == TYPE_TIMESTAMP)
    if type_id == TYPE_TIMESTAMP_NANOS or type_id == TYPE_TIMESTAMP_NTZ_NANOS:
        v = <int64_t> read_uint64(p + 1)
        return _cast_instant(w, c, row, v, type_id == TYPE_TIMESTAMP_NANOS)
    if type_id == TYPE_TIME_NTZ:
        v = <int64_t> read_uint64(p + 1)
        if not 0 <= v < DAY_NANOS // 1000:
            return FAULT_TIME
        if w.leaf == LEAF_TIME:
            return _done(column_fixed(c, row, &v, 8))
        if w.leaf == LEAF_STRING:
            return _done(column_bytes(c, row, text_of, <size_t> (write_time(text_of, v, 1000000, 6) - text_of)))
        return CAST_FAILED
    if type_id == TYPE_BINARY:
        status = string_open(p, n, &text, &length)
        if status != 0:
            return status
        if w.leaf == LEAF_BINARY or (w.leaf == LEAF_STRING and utf8_fault(text, length) < 0):
            return _done(column_bytes(c, row, text, length))
        return CAST_FAILED
    # What is left is a UUID: value_size knows no other type.
    if w.leaf == LEAF_UUID:
        return _done(column_fixed(c, row, p + 1, 16))
    if w.leaf == LEAF_STRING:
        return _done(column_bytes(c, row, text_of, <size_t> (write_uuid(text_of, p + 1) - text_of)))
    return CAST_FAILED
