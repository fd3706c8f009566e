# cython: language_level=3, cdivision=True
# A variant value cast to one type and put into a column of that type, as Spark's variant_get casts it.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pqext.variant.kernels.binary cimport (
    BASIC_PRIMITIVE, FAULT_STRING_UTF8, FAULT_TIME, FAULT_UNKNOWN_TYPE, TYPE_BINARY, TYPE_DATE, TYPE_DOUBLE, TYPE_FALSE,
    TYPE_FLOAT, TYPE_NULL, TYPE_TIMESTAMP, TYPE_TIMESTAMP_NANOS, TYPE_TIMESTAMP_NTZ, TYPE_TIMESTAMP_NTZ_NANOS,
    TYPE_TIME_NTZ, TYPE_TRUE, TYPE_UUID, is_string, read_uint, read_uint64, string_open,
)
from pqext.variant.kernels.cast_put cimport (
    CAST_FAILED, CAST_JSON, CAST_NULL, DAY_NANOS, SECOND, TARGET_FIXED, TARGET_VARIANT, Wanted, done,
    instant_of, is_floating_target, is_integer_target, local_of, put_bool, put_days, put_decimal, put_floating, put_instant, put_integer,
    put_seconds, put_text, put_time, put_wide,
)
from pqext.variant.kernels.exact cimport exact_open, int128, is_exact_type, power_of_ten
from pqext.variant.kernels.java_text cimport write_java_double, write_java_float
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport (
    LEAF_BINARY, LEAF_BOOLEAN, LEAF_DATE, LEAF_DECIMAL, LEAF_FLOAT, LEAF_STRING, LEAF_TIME, LEAF_TIMESTAMP,
    LEAF_TIMESTAMP_NTZ, LEAF_UUID, Column, column_bytes, column_fixed,
)
from pqext.variant.kernels.text cimport (
    Number, exact_to_floating, is_suffixed, isfinite, number_to_floating, parse_bool, parse_hexadecimal, parse_number,
    trim,
)
from pqext.variant.kernels.text_times cimport parse_date, parse_time, parse_timestamp
from pqext.variant.kernels.text_write cimport write_date, write_decimal, write_double, write_time, write_uuid
from pqext.variant.kernels.wide cimport Wide, wide_from_text


cdef inline int _cast_exact(const Wanted *w, Column *c, int64_t row, int128 unscaled, int scale) noexcept nogil:
    cdef uint8_t text[64]
    cdef uint8_t *end
    if is_integer_target(w):
        return put_integer(w, c, row, unscaled // power_of_ten(scale) if scale else unscaled)
    if is_floating_target(w):
        return put_floating(w, c, row, exact_to_floating(unscaled, scale, w.leaf == LEAF_FLOAT))
    if w.leaf == LEAF_DECIMAL:
        return put_decimal(w, c, row, unscaled, -scale)
    if w.leaf == LEAF_BOOLEAN:
        return put_bool(c, row, unscaled != 0)
    if w.leaf == LEAF_STRING:
        # Without trailing zeros, so that equal numbers have the same text.
        while scale > 0 and unscaled % 10 == 0:
            unscaled = unscaled // 10
            scale -= 1
        end = write_decimal(text, <int64_t> (unscaled >> 64), <uint64_t> unscaled, scale)
        return done(column_bytes(c, row, text, <size_t> (end - text)))
    if w.leaf == LEAF_TIMESTAMP:
        return put_seconds(w, c, row, unscaled, scale)
    return CAST_FAILED


cdef inline int _cast_number(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Cast the text of a number to a decimal."""
    cdef Number number
    cdef Wide wide
    if not parse_number(p, n, &number) or number.special or number.far:
        return CAST_FAILED
    if not number.dropped:
        return put_decimal(w, c, row, number.mantissa, number.exponent)
    return put_wide(w, c, row, &wide) if wide_from_text(p, n, w.scale, &wide) else CAST_FAILED


cdef inline int _cast_floating(const Wanted *w, Column *c, int64_t row, double v, bint narrow) noexcept nogil:
    cdef uint8_t text[64]
    cdef uint64_t bits
    cdef uint32_t bits32
    cdef float small = <float> v
    if is_floating_target(w):
        return put_floating(w, c, row, v)
    if w.leaf == LEAF_BOOLEAN:
        return put_bool(c, row, v != 0.0)
    memcpy(&bits, &v, 8)
    if w.leaf == LEAF_STRING:
        if narrow:
            memcpy(&bits32, &small, 4)
            return done(column_bytes(c, row, text, <size_t> (write_java_float(text, bits32) - text)))
        return done(column_bytes(c, row, text, <size_t> (write_java_double(text, bits) - text)))
    if not isfinite(v):
        return CAST_FAILED
    if is_integer_target(w):
        return put_integer(w, c, row, <int128> v) if -2e19 < v < 2e19 else CAST_FAILED
    if w.leaf == LEAF_DECIMAL:
        # A double is cast as the decimal of its shortest text, as in Spark.
        return _cast_number(w, c, row, text, <size_t> (write_double(text, bits) - text))
    if w.leaf == LEAF_TIMESTAMP:
        return put_instant(w, c, row, <int128> (v * 1e6) * 1000) if -1e13 < v < 1e13 else CAST_FAILED
    return CAST_FAILED


cdef inline int _cast_instant(const Wanted *w, Column *c, int64_t row, int128 nanos, bint utc) noexcept nogil:
    cdef uint8_t text[64]
    cdef uint8_t *end
    cdef int128 clock = local_of(w, nanos) if utc else nanos
    cdef int128 day = clock // DAY_NANOS - (clock % DAY_NANOS < 0)
    if w.leaf == LEAF_TIMESTAMP:
        return put_instant(w, c, row, nanos if utc else instant_of(w, nanos))
    if w.leaf == LEAF_TIMESTAMP_NTZ:
        return put_instant(w, c, row, clock)
    if w.leaf == LEAF_DATE:
        return put_days(w, c, row, day)
    if w.leaf == LEAF_TIME:
        return put_time(w, c, row, <int64_t> (clock - day * DAY_NANOS))
    if w.leaf == LEAF_STRING:
        end = write_date(text, <int64_t> day)
        end[0] = c' '
        end = write_time(end + 1, <int64_t> (clock - day * DAY_NANOS), SECOND, 9)
        return done(column_bytes(c, row, text, <size_t> (end - text)))
    if not utc:
        return CAST_FAILED
    if is_integer_target(w):
        return put_integer(w, c, row, nanos // SECOND - (nanos % SECOND < 0))
    if is_floating_target(w):
        return put_floating(w, c, row, exact_to_floating(nanos, 9, False))
    return put_decimal(w, c, row, nanos, -9) if w.leaf == LEAF_DECIMAL else CAST_FAILED


cdef inline int _hex(uint8_t c) noexcept nogil:
    if c'0' <= c <= c'9':
        return c - c'0'
    c |= 0x20
    return c - c'a' + 10 if c'a' <= c <= c'f' else -1


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
    cdef int64_t day = 0, nanos = 0, offset = 0
    cdef bint has_zone = False
    cdef uint8_t uuid[16]
    cdef double v = 0.0
    cdef bint flag = False
    if w.leaf == LEAF_STRING:
        if utf8_fault(p, n) >= 0:
            return FAULT_STRING_UTF8
        return done(column_bytes(c, row, p, n))
    if w.leaf == LEAF_BINARY:
        return done(column_bytes(c, row, p, n))
    if w.leaf == TARGET_FIXED:
        return done(column_fixed(c, row, p, n)) if n == <size_t> w.width else CAST_FAILED
    if w.leaf == LEAF_BOOLEAN:
        return put_bool(c, row, flag) if parse_bool(p, n, &flag) else CAST_FAILED
    if w.leaf == LEAF_UUID:
        return done(column_fixed(c, row, uuid, 16)) if _parse_uuid(p, n, uuid) else CAST_FAILED
    if w.leaf == LEAF_TIME:
        return put_time(w, c, row, nanos) if parse_time(p, n, &nanos) else CAST_FAILED
    if w.leaf == LEAF_DATE:
        return put_days(w, c, row, day) if parse_date(p, n, &day) else CAST_FAILED
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NTZ:
        if not parse_timestamp(p, n, &day, &nanos, &has_zone, &offset):
            return CAST_FAILED
        if w.leaf == LEAF_TIMESTAMP_NTZ:  # local time
            return put_instant(w, c, row, <int128> day * DAY_NANOS + nanos)
        if not has_zone:
            return put_instant(w, c, row, instant_of(w, <int128> day * DAY_NANOS + nanos))
        return put_instant(w, c, row, <int128> day * DAY_NANOS + nanos - <int128> offset * SECOND)
    if w.leaf == LEAF_DECIMAL:
        return _cast_number(w, c, row, p, n)
    if is_floating_target(w):
        if not parse_number(p, n - is_suffixed(p, n), &number):
            if not parse_hexadecimal(p, n, w.leaf == LEAF_FLOAT, &v):
                return CAST_FAILED
            return put_floating(w, c, row, v)
        return put_floating(w, c, row, number_to_floating(&number, p, n, w.leaf == LEAF_FLOAT))
    if is_integer_target(w) and _is_integer(p, n) and parse_number(p, n, &number):
        return CAST_FAILED if number.exponent else put_integer(w, c, row, number.mantissa)
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


cdef inline int _cast_bytes(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    if w.leaf == LEAF_BINARY or (w.leaf == LEAF_STRING and utf8_fault(p, n) < 0):
        return done(column_bytes(c, row, p, n))
    if (w.leaf == TARGET_FIXED or w.leaf == LEAF_UUID) and n == <size_t> w.width:
        return done(column_fixed(c, row, p, n))
    return CAST_FAILED


cdef inline int cast_value(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Cast the value of exactly `n` bytes at `p` into the column. Return one of CAST_*, or a fault."""
    cdef const uint8_t *text = NULL
    cdef size_t length = 0
    cdef int type_id, status, scale = 0
    cdef int128 unscaled = 0
    cdef int64_t v
    cdef double wide
    cdef float narrow
    cdef uint8_t text_of[64]
    if w.leaf == TARGET_VARIANT:
        return done(column_bytes(c, row, p, n))
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
        if w.leaf == LEAF_STRING:
            return put_text(c, row, b"true", 4) if type_id == TYPE_TRUE else put_text(c, row, b"false", 5)
        # Booleans are cast as numbers, but not as seconds.
        return CAST_FAILED if w.leaf == LEAF_TIMESTAMP else _cast_exact(w, c, row, type_id == TYPE_TRUE, 0)
    if type_id == TYPE_DOUBLE:
        memcpy(&wide, p + 1, 8)
        return _cast_floating(w, c, row, wide, False)
    if type_id == TYPE_FLOAT:
        memcpy(&narrow, p + 1, 4)
        return _cast_floating(w, c, row, narrow, True)
    if type_id == TYPE_DATE:
        v = <int32_t> read_uint(p + 1, 4)
        if w.leaf == LEAF_DATE:
            return put_days(w, c, row, v)
        if w.leaf == LEAF_TIMESTAMP:
            return put_instant(w, c, row, instant_of(w, <int128> v * DAY_NANOS))
        if w.leaf == LEAF_TIMESTAMP_NTZ:
            return put_instant(w, c, row, <int128> v * DAY_NANOS)
        if w.leaf == LEAF_STRING:
            return done(column_bytes(c, row, text_of, <size_t> (write_date(text_of, v) - text_of)))
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
            return put_time(w, c, row, v * 1000)
        if w.leaf == LEAF_STRING:
            return done(column_bytes(c, row, text_of, <size_t> (write_time(text_of, v, 1000000, 6) - text_of)))
        return CAST_FAILED
    if type_id == TYPE_BINARY:
        status = string_open(p, n, &text, &length)
        return status if status != 0 else _cast_bytes(w, c, row, text, length)
    if type_id != TYPE_UUID:
        return FAULT_UNKNOWN_TYPE
    if w.leaf == LEAF_UUID:
        return done(column_fixed(c, row, p + 1, 16))
    if w.leaf == LEAF_STRING:
        return done(column_bytes(c, row, text_of, <size_t> (write_uuid(text_of, p + 1) - text_of)))
    return CAST_FAILED
