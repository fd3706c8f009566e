# cython: language_level=3, cdivision=True
"""The value at a path of every variant, cast to one type, in one pass."""
from cpython.mem cimport PyMem_Free
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset, strlen

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, take
from pqext.variant.kernels.binary cimport *
from pqext.variant.kernels.exact cimport *
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport (
    Column,
    bit_set,
    bytes_zero_to,
    column_bytes,
    column_fixed,
    column_mark,
    column_pad,
)
from pqext.variant.kernels.text cimport *

cdef extern from "Python.h":
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *kind) except NULL

if text_open() != 0:
    raise MemoryError

cpdef enum Target:
    TARGET_VARIANT = 100   # beside the leaves of exact.pxd

cdef int CAST_NULL = 0
cdef int CAST_DONE = 1
cdef int CAST_FAILED = 2
cdef int CAST_JSON = 3     # an object or array asked as text

cdef int64_t DAY_NANOS = 86_400_000_000_000
cdef int64_t SECOND = 1_000_000_000


cdef struct Wanted:
    int leaf
    int precision
    int scale


# --- Casts ---------------------------------------------------------------------------------------

cdef inline int _done(int status) noexcept nogil:
    return CAST_DONE if status == 0 else status


cdef int _put_integer(const Wanted *w, Column *c, int64_t row, int128 v) noexcept nogil:
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


cdef int _put_instant(const Wanted *w, Column *c, int64_t row, int128 nanos) noexcept nogil:
    """Nanoseconds since 1970, rounded down to the column's unit."""
    cdef int128 v = nanos
    cdef int64_t stored
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NTZ:
        v = nanos // 1000 - (nanos % 1000 < 0)
    stored = <int64_t> v
    return _done(column_fixed(c, row, &stored, 8)) if stored == v else CAST_FAILED


cdef int _cast_exact(const Wanted *w, Column *c, int64_t row, int128 unscaled, int scale) noexcept nogil:
    cdef char text[96]
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
        return _put_text(c, row, text, <size_t> write_decimal(text, unscaled, scale))
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NANOS:
        # Seconds since 1970, as Spark casts them.
        if multiply_overflows(unscaled, SECOND, &v):
            return CAST_FAILED
        return _put_instant(w, c, row, v // power_of_ten(scale) - (v % power_of_ten(scale) < 0))
    return CAST_FAILED


cdef int _format_floating(double v, bint narrow, Column *c, int64_t row) noexcept with gil:
    """The shortest text that reads back as the same double (float, when narrow)."""
    cdef char *text = NULL
    cdef int digits = 6
    cdef double shorter
    cdef int status
    try:
        while narrow and digits <= 9:
            # The double nearest to a text of so few digits has that text as its own shortest one.
            text = PyOS_double_to_string(v, c'g', digits, 0, NULL)
            shorter = strtod_c(text)
            PyMem_Free(text)
            if <float> shorter == <float> v:
                v = shorter
                break
            digits += 1
        text = PyOS_double_to_string(v, c'r', 0, 2, NULL)
    except MemoryError:
        return FAULT_MEMORY
    status = _put_text(c, row, text, strlen(text))
    PyMem_Free(text)
    return status


cdef int _double_as_decimal(double v, Number *out) noexcept with gil:
    """The decimal of a double's shortest text."""
    cdef char *text
    try:
        text = PyOS_double_to_string(v, c'r', 0, 0, NULL)
    except MemoryError:
        return FAULT_MEMORY
    parse_number(<const uint8_t *> text, strlen(text), out)
    PyMem_Free(text)
    return 0


cdef int _cast_floating(const Wanted *w, Column *c, int64_t row, double v, bint narrow) noexcept nogil:
    cdef Number number
    cdef int128 wide = 0
    cdef int status
    if w.leaf == LEAF_DOUBLE or w.leaf == LEAF_FLOAT:
        return _put_floating(w, c, row, v)
    if w.leaf == LEAF_BOOLEAN:
        return _put_bool(c, row, v != 0.0)
    if w.leaf == LEAF_STRING:
        if isnan(v):
            return _put_text(c, row, b"NaN", 3)
        if not isfinite(v):
            return _put_text(c, row, b"Infinity", 8) if v > 0 else _put_text(c, row, b"-Infinity", 9)
        return _format_floating(v, narrow, c, row)
    if not isfinite(v):
        return CAST_FAILED
    if LEAF_INT8 <= w.leaf <= LEAF_INT64:
        if not -9.3e18 < v < 9.3e18:
            return CAST_FAILED
        return _put_integer(w, c, row, <int128> v)
    if w.leaf == LEAF_DECIMAL:
        status = _double_as_decimal(v, &number)
        if status != 0:
            return status
        if not round_half_up(number.mantissa, number.exponent, number.half, w.scale, &wide) or not has_precision(wide, w.precision):
            return CAST_FAILED
        return _done(column_fixed(c, row, &wide, 16))
    if w.leaf == LEAF_TIMESTAMP or w.leaf == LEAF_TIMESTAMP_NANOS:
        if not -1e13 < v < 1e13:
            return CAST_FAILED
        return _put_instant(w, c, row, <int128> (v * 1e6) * 1000)
    return CAST_FAILED


cdef int _cast_instant(const Wanted *w, Column *c, int64_t row, int128 nanos, bint utc) noexcept nogil:
    cdef char text[80]
    cdef int128 day = nanos // DAY_NANOS - (nanos % DAY_NANOS < 0)
    cdef int128 seconds
    cdef int128 v = 0
    cdef int size
    if LEAF_TIMESTAMP <= w.leaf <= LEAF_TIMESTAMP_NTZ_NANOS:
        return _put_instant(w, c, row, nanos)
    if w.leaf == LEAF_DATE:
        return _put_integer(w, c, row, day)
    if w.leaf == LEAF_STRING:
        size = write_date(text, <int64_t> day)
        text[size] = c' '
        size += 1 + write_clock(text + size + 1, <int64_t> (nanos - day * DAY_NANOS))
        return _put_text(c, row, text, <size_t> size)
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


cdef bint _parse_uuid(const uint8_t *p, size_t n, uint8_t *out) noexcept nogil:
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


cdef int _cast_string(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
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


cdef bint _is_integer(const uint8_t *p, size_t n) noexcept nogil:
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


cdef int _cast(const Wanted *w, Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Cast the value of exactly `n` bytes at `p` into the column: one of CAST_*, or a fault."""
    cdef const uint8_t *text = NULL
    cdef size_t length = 0
    cdef int type_id, status, scale = 0
    cdef int128 unscaled = 0
    cdef int64_t v
    cdef double wide
    cdef float narrow
    cdef char printed[48]
    if w.leaf == TARGET_VARIANT:
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
            return _put_text(c, row, printed, <size_t> write_date(printed, v))
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
            return CAST_FAILED
        if w.leaf == LEAF_TIME:
            return _done(column_fixed(c, row, &v, 8))
        if w.leaf == LEAF_STRING:
            return _put_text(c, row, printed, <size_t> write_clock(printed, v * 1000))
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
        for scale in range(16):
            snprintf(printed + length, 4, b"%02x", <int> p[1 + scale])
            length += 2
            if scale == 3 or scale == 5 or scale == 7 or scale == 9:
                printed[length] = c'-'
                length += 1
        return _put_text(c, row, printed, length)
    return CAST_FAILED


# --- Paths ---------------------------------------------------------------------------------------

cdef struct Step:
    bint is_index
    uint32_t index
    const uint8_t *name
    size_t length
    int64_t id           # of the name in the current dictionary, when that is sorted; its size when it is absent


cdef class PathSteps:
    """The steps of a path for the kernel."""
    cdef Bytes step_bytes
    cdef list names
    cdef int count

    def __init__(self, path):
        cdef Step step
        cdef bytes name
        self.names = []
        self.count = len(path)
        for part in path:
            memset(&step, 0, sizeof(Step))
            if isinstance(part, str):
                name = part.encode("utf-8", "surrogatepass")
                self.names.append(name)
                step.name = <const uint8_t *> name
                step.length = len(name)
            else:
                step.is_index = True
                step.index = part
            if bytes_append(&self.step_bytes, &step, sizeof(Step)) != 0:
                raise MemoryError

    def __dealloc__(self):
        bytes_free(&self.step_bytes)


cdef inline int _field_by_id(const Container *c, uint32_t id, const uint8_t **p, size_t *limit) noexcept nogil:
    """Find a field by its id in a sorted dictionary, where ids ascend as names do."""
    cdef uint32_t low = 0, high = c.count, middle, other
    cdef int status
    while low < high:
        middle = low + (high - low) // 2
        other = container_id(c, middle)
        if other == id:
            status = container_child(c, middle, p, limit)
            return 1 if status == 0 else status
        if other < id:
            low = middle + 1
        else:
            high = middle
    return 0


cdef int _find(
    const Step *steps, int count, const Metadata *m, const uint8_t **p, size_t *n
) noexcept nogil:
    """Follow the path from the value at `p`: 1 with the value there, 0 when there is none, or a fault."""
    cdef Container container
    cdef size_t limit = n[0]
    cdef int64_t size
    cdef int i, status
    for i in range(count):
        if limit < 1:
            return FAULT_VALUE_TRUNCATED
        if steps[i].is_index:
            if p[0][0] & 3 != BASIC_ARRAY:
                return 0
            status = array_open(p[0], limit, &container)
            if status != 0:
                return status
            if steps[i].index >= container.count:
                return 0
            status = container_child(&container, steps[i].index, p, &limit)
            if status != 0:
                return status
            continue
        if p[0][0] & 3 != BASIC_OBJECT:
            return 0
        status = object_open(p[0], limit, &container)
        if status != 0:
            return status
        if not m.sorted:
            status = object_field(&container, m, steps[i].name, steps[i].length, p, &limit)
        elif steps[i].id == m.count:
            return 0
        else:
            status = _field_by_id(&container, <uint32_t> steps[i].id, p, &limit)
        if status != 1:
            return status
    size = value_size(p[0], limit)
    if size < 0:
        return <int> size
    n[0] = <size_t> size
    return 1


cdef int _open(Metadata *m, bint *known, Step *steps, int count, const uint8_t *p, size_t n) noexcept nogil:
    """Make `p` the current metadata and look up the names of the path in it."""
    cdef int status, i
    if known[0] and m.size == n and memcmp(m.data, p, n) == 0:
        return 0
    known[0] = False
    status = metadata_open(p, n, m)
    if status != 0:
        return status
    if m.sorted:
        for i in range(count):
            if not steps[i].is_index:
                steps[i].id = metadata_find(m, steps[i].name, steps[i].length)
                if steps[i].id < 0:
                    return <int> steps[i].id
    known[0] = True
    return 0


def get(BinaryInput metadata, BinaryInput value, object groups, PathSteps path, int leaf, int precision, int scale):
    """Cast the value at `path` of every row.

    `groups`: (bitmap buffer, offset) of the struct's validity, or None. Null rows and rows whose value is
    null are null. Returns (status, row, validity, nulls, offsets, data, failures, json): `failures` is
    (how many values did not cast, the first one's row, its header byte); `json` is (rows, offsets, data) of
    the objects and arrays asked as text, null so far, as buffers of 64-bit row numbers and of a binary array.
    """
    cdef Wanted wanted
    cdef Column out, nested
    cdef Bytes nested_rows
    cdef Metadata m
    cdef bint known = False
    cdef Step *steps = <Step *> path.step_bytes.data
    cdef const uint8_t *p = NULL
    cdef const uint8_t *validity = NULL
    cdef int64_t validity_offset = 0, row = 0, rows = value.column.length
    cdef int64_t failures = 0, first_failure = -1, nested_count = 0
    cdef int first_header = 0
    cdef size_t n = 0, width
    cdef int status = 0
    if metadata.column.length != rows:
        raise ValueError("metadata and value differ in length")
    if groups is not None:
        bitmap, validity_offset = groups
        if bitmap.size * 8 < validity_offset + rows:
            raise ValueError("the array's validity buffer is too short")
        validity = <const uint8_t *> <uintptr_t> bitmap.address
    wanted.leaf = leaf
    wanted.precision = precision
    wanted.scale = scale
    memset(&out, 0, sizeof(Column))
    memset(&nested, 0, sizeof(Column))
    memset(&nested_rows, 0, sizeof(Bytes))
    memset(&m, 0, sizeof(Metadata))
    try:
        with nogil:
            while row < rows:
                if bit_is_set(validity, validity_offset + row) and binary_valid(&value.column, row):
                    status = FAULT_METADATA_NULL
                    if binary_valid(&metadata.column, row):
                        status = binary_at(&metadata.column, row, &p, &n)
                    if status == 0:
                        status = _open(&m, &known, steps, path.count, p, n)
                    if status == 0:
                        status = binary_at(&value.column, row, &p, &n)
                    if status != 0:
                        break
                    status = _find(steps, path.count, &m, &p, &n)
                    if status < 0:
                        break
                    if status == 1:
                        status = _cast(&wanted, &out, row, p, n)
                        if status < 0:
                            break
                        if status == CAST_FAILED:
                            failures += 1
                            if first_failure < 0:
                                first_failure = row
                                first_header = p[0]
                        elif status == CAST_JSON:
                            if (
                                bytes_append(&nested_rows, &row, 8) != 0
                                or column_bytes(&nested, nested_count, p, n) != 0
                            ):
                                status = FAULT_MEMORY
                                break
                            nested_count += 1
                row += 1
            if status > 0:
                status = 0
            if status == 0:
                status = bytes_zero_to(&out.validity, <size_t> ((rows + 7) // 8))
            if status == 0:
                status = column_pad(&nested, nested_count)
            if status == 0:
                if leaf == LEAF_STRING or leaf == LEAF_BINARY or leaf == TARGET_VARIANT:
                    status = column_pad(&out, rows)
                else:
                    width = leaf_width(leaf)
                    status = bytes_zero_to(&out.data, <size_t> rows * width if width else <size_t> ((rows + 7) // 8))
        if status != 0:
            return status, row, None, 0, None, None, None, None
        return (
            0, -1, take(&out.validity), rows - out.count, take(&out.offsets), take(&out.data),
            (failures, first_failure, first_header),
            (take(&nested_rows), take(&nested.offsets), take(&nested.data), nested_count),
        )
    finally:
        bytes_free(&out.validity)
        bytes_free(&out.offsets)
        bytes_free(&out.data)
        bytes_free(&nested.validity)
        bytes_free(&nested.offsets)
        bytes_free(&nested.data)
        bytes_free(&nested_rows)
