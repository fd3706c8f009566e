# cython: language_level=3
"""Check Arrow IPC schema messages before Arrow parses them.

A FlatBuffer refers to its parts by offsets, so any number of offsets may refer to one part, and Arrow builds an object
for each offset. This check builds none, and rejects a message that expands to more than its bytes allow.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    DEPTH = 100
    FIELD = 24  # size in bytes of a field without name, type and children
    TABLE = 8
    OUTSIDE = 1
    DEEP = 2
    LARGE = 3
    OTHER = 4
    SCHEMA = 1
    TIMESTAMP = 10
    UNION = 14

cdef struct Walk:
    const uint8_t *data
    int64_t size
    int64_t budget


cdef inline int spend(Walk *w, int64_t cost) noexcept nogil:
    w.budget -= cost
    return LARGE if w.budget < 0 else 0


cdef inline int read_u32(Walk *w, int64_t at, uint32_t *out) noexcept nogil:
    if at < 0 or at > w.size - 4:
        return OUTSIDE
    memcpy(out, w.data + at, 4)
    return 0


cdef int slot(Walk *w, int64_t table, int number, int64_t *out) noexcept nogil:
    """Find the value of member `number` of a table; 0 if it is absent. Return 0 or a fault."""
    cdef int32_t back
    cdef uint16_t length, offset
    cdef int64_t vtable
    out[0] = 0
    if table < 0 or table > w.size - 4:
        return OUTSIDE
    memcpy(&back, w.data + table, 4)
    vtable = table - back
    if vtable < 0 or vtable > w.size - 4:
        return OUTSIDE
    memcpy(&length, w.data + vtable, 2)
    if 4 + 2 * number + 2 > length:
        return 0
    if vtable + 4 + 2 * number + 2 > w.size:
        return OUTSIDE
    memcpy(&offset, w.data + vtable + 4 + 2 * number, 2)
    if offset:
        out[0] = table + offset
        if out[0] >= w.size:
            return OUTSIDE
    return 0


cdef int follow(Walk *w, int64_t table, int number, int64_t *out) noexcept nogil:
    """Find the target of member `number` of a table; 0 if it is absent. Return 0 or a fault."""
    cdef uint32_t distance
    cdef int status = slot(w, table, number, out)
    if status or out[0] == 0:
        return status
    status = read_u32(w, out[0], &distance)
    if status:
        return status
    out[0] += distance
    return OUTSIDE if out[0] > w.size - 4 else 0


cdef int sized(Walk *w, int64_t table, int number, int each) noexcept nogil:
    """Check a string, or a vector of plain values of `each` bytes. Return 0 or a fault."""
    cdef int64_t at
    cdef uint32_t count
    cdef int status = follow(w, table, number, &at)
    if status or at == 0:
        return status
    status = read_u32(w, at, &count)
    if status:
        return status
    if at + 4 + <int64_t> count * each > w.size:
        return OUTSIDE
    return spend(w, 4 + <int64_t> count * each)


cdef int vector(Walk *w, int64_t table, int number, int64_t *first, int64_t *count) noexcept nogil:
    cdef uint32_t length
    cdef int status = follow(w, table, number, first)
    count[0] = 0
    if status or first[0] == 0:
        return status
    status = read_u32(w, first[0], &length)
    if status:
        return status
    first[0] += 4
    count[0] = length
    return OUTSIDE if first[0] + <int64_t> length * 4 > w.size else 0


cdef int pairs(Walk *w, int64_t table, int number) noexcept nogil:
    """Check custom metadata: a vector of tables of two strings. Return 0 or a fault."""
    cdef int64_t first, count, i, at
    cdef uint32_t distance
    cdef int status = vector(w, table, number, &first, &count)
    for i in range(count):
        if status:
            return status
        at = first + 4 * i
        status = read_u32(w, at, &distance) or spend(w, TABLE)
        if status:
            return status
        status = sized(w, at + distance, 0, 1) or sized(w, at + distance, 1, 1)
    return status


cdef int fields(Walk *w, int64_t table, int number, int depth) noexcept nogil:
    """Check a vector of fields. Return 0 or a fault."""
    cdef int64_t first, count, i, at
    cdef uint32_t distance
    cdef int status = vector(w, table, number, &first, &count)
    if depth > DEPTH and count:
        return DEEP
    for i in range(count):
        if status:
            return status
        at = first + 4 * i
        status = read_u32(w, at, &distance)
        if status:
            return status
        status = one_field(w, at + distance, depth)
    return status


cdef int one_field(Walk *w, int64_t field, int depth) noexcept nogil:
    cdef int64_t at
    cdef uint8_t kind = 0
    cdef int status = spend(w, FIELD) or sized(w, field, 0, 1) or slot(w, field, 2, &at)
    if status:
        return status
    if at:
        kind = w.data[at]
    status = follow(w, field, 3, &at)
    if status == 0 and at:
        if kind == TIMESTAMP:
            status = sized(w, at, 1, 1)
        elif kind == UNION:
            status = sized(w, at, 1, 4)
    return status or fields(w, field, 5, depth + 1) or pairs(w, field, 6)


cdef int schema_of(Walk *w, int64_t *root, int64_t *schema) noexcept nogil:
    """Find the tables of a message and of its schema. Return 0 or a fault."""
    cdef uint32_t first
    cdef int64_t at
    cdef int status = read_u32(w, 0, &first)
    root[0] = first
    if status == 0:
        status = slot(w, root[0], 1, &at)
    if status:
        return status
    if at == 0 or w.data[at] != SCHEMA:
        return OTHER
    status = follow(w, root[0], 2, schema)
    return OTHER if status == 0 and schema[0] == 0 else status


cdef int message(Walk *w) noexcept nogil:
    cdef int64_t root, at
    cdef int status = schema_of(w, &root, &at)
    return status or fields(w, at, 1, 1) or pairs(w, at, 2) or sized(w, at, 3, 8) or pairs(w, root, 4)


cdef int open_walk(Walk *w, const uint8_t[::1] data) except -1:
    """Begin to check the message in `data`; return 0 if it is truncated."""
    cdef uint32_t first, size
    cdef int64_t start = 4
    if data.shape[0] < 8:
        return 0
    memcpy(&first, &data[0], 4)
    memcpy(&size, &data[4], 4)
    if first == 0xFFFFFFFF:
        start = 8
    else:
        size = first
    if size > data.shape[0] - start or size < 4:
        return 0
    w.data = &data[start]
    w.size = size
    w.budget = 2 * w.size
    return 1


def check(const uint8_t[::1] data not None):
    """Return the fault of a message; `None` if Arrow's reader may parse it."""
    cdef Walk w
    cdef int status
    if not open_walk(&w, data):
        return "it is truncated"
    with nogil:
        status = message(&w)
    return _FAULTS[status]


def only(const uint8_t[::1] data not None, positions):
    """Return a copy of the message with only the fields at ascending `positions`; `None` if it lacks these fields.

    The copy must be checked again, because overwritten bytes may also belong to another part.
    """
    cdef Walk w
    cdef int64_t root = 0, schema = 0, first = 0, count = 0, moved, last = -1
    cdef uint32_t distance = 0, kept = 0
    cdef int64_t position
    if not open_walk(&w, data) or schema_of(&w, &root, &schema) or vector(&w, schema, 1, &first, &count):
        return None
    made = bytearray(data)
    cdef uint8_t[::1] copy = made
    cdef uint8_t *out = &copy[0] + (w.data - &data[0])
    for position in positions:
        if position <= last or position >= count:
            return None
        memcpy(&distance, w.data + first + 4 * position, 4)
        moved = distance + 4 * (position - kept)
        if moved >= w.size:
            return None
        distance = <uint32_t> moved
        memcpy(out + first + 4 * kept, &distance, 4)
        kept += 1
        last = position
    if first == 0:
        return None
    memcpy(out + first - 4, &kept, 4)
    return made


_FAULTS = {
    0: None,
    OUTSIDE: "an offset is out of range",
    DEEP: "it nests deeper than 100 levels",
    LARGE: "it refers to the same parts too many times",
    OTHER: "it is not a schema",
}


cdef enum:
    NO_DIGIT = 1 << 24

cdef uint32_t[4][256] DIGITS  # values of base64 digits by position in a group of four


cdef void fill_digits(const uint8_t[::1] alphabet) noexcept:
    cdef int place, i
    for place in range(4):
        for i in range(256):
            DIGITS[place][i] = NO_DIGIT
        for i in range(64):
            DIGITS[place][alphabet[i]] = <uint32_t> i << (18 - 6 * place)


fill_digits(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def from_base64(str text not None):
    """Decode text that consists only of base64 with its padding; return `None` for other text."""
    cdef Py_ssize_t size = 0, padding = 0, i, whole
    cdef const uint8_t *p = <const uint8_t *> PyUnicode_AsUTF8AndSize(text, &size)
    cdef uint32_t value, seen = 0
    cdef uint8_t *out
    if size % 4:
        return None
    if size and p[size - 1] == b"=":
        padding = 2 if p[size - 2] == b"=" else 1
    made = PyBytes_FromStringAndSize(NULL, size // 4 * 3 - padding)
    out = <uint8_t *> PyBytes_AS_STRING(made)
    whole = (size - (4 if padding else 0)) // 4
    for i in range(whole):
        value = DIGITS[0][p[0]] | DIGITS[1][p[1]] | DIGITS[2][p[2]] | DIGITS[3][p[3]]
        seen |= value
        out[0], out[1], out[2] = value >> 16 & 0xFF, value >> 8 & 0xFF, value & 0xFF
        p += 4
        out += 3
    if padding:
        value = DIGITS[0][p[0]] | DIGITS[1][p[1]] | (DIGITS[2][p[2]] if padding == 1 else 0)
        seen |= value
        out[0] = value >> 16 & 0xFF
        if padding == 1:
            out[1] = value >> 8 & 0xFF
    return None if seen & NO_DIGIT else made
