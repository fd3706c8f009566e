# Thrift's compact protocol below the level of declared structures: wire types, integers, headers, and skipping.
#
# Pointers are used throughout: every read is preceded by a comparison with `end`, and every count from the
# input by one with the bytes that are left.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t, uint64_t

# Wire types of the compact protocol.
cdef enum:
    STOP = 0
    TRUE = 1
    FALSE = 2
    BYTE = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12
    UUID = 13

cdef enum:
    DONE = 0
    TRUNCATED = -1
    BAD_VARINT = -2
    BAD_TYPE = -3
    BAD_COUNT = -4
    BAD_ID = -5
    TOO_DEEP = -6
    TOO_MANY = -7
    TOO_MUCH = -8

# Maximum C recursion, regardless of the limits.
cdef enum:
    DEPTH_CAP = 1000

cdef struct Cursor:
    const uint8_t *start
    const uint8_t *p
    const uint8_t *end
    int64_t base
    int64_t elements      # remaining part of max_elements
    int64_t max_elements
    int64_t objects       # remaining part of max_objects; skipping builds none
    int64_t max_objects
    int max_depth
    int status
    PyObject *path        # path of the file, for errors; owned by `Data`
    const int64_t *noted  # start of each structure of an indexed list, and the end of the last
    Py_ssize_t noted_count


cdef inline int read_varint(Cursor *c, uint64_t *value) noexcept nogil:
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while c.p < c.end:
        byte = c.p[0]
        c.p += 1
        if shift == 63 and byte > 1:
            return BAD_VARINT
        result |= (<uint64_t> (byte & 0x7F)) << shift
        if byte < 0x80:
            value[0] = result
            return DONE
        shift += 7
    return TRUNCATED


cdef inline int read_size(Cursor *c, Py_ssize_t *size) noexcept nogil:
    """Read a length in bytes or elements, which cannot exceed the number of remaining bytes. Return DONE or a fault."""
    cdef uint64_t value
    cdef int status = read_varint(c, &value)
    if status == DONE:
        if value > <uint64_t> (c.end - c.p):
            return BAD_COUNT
        size[0] = <Py_ssize_t> value
    return status


cdef inline int64_t unzigzag(uint64_t value) noexcept nogil:
    return <int64_t> ((value >> 1) ^ (0 - (value & 1)))


cdef inline int read_list(Cursor *c, int *wire, Py_ssize_t *count) noexcept nogil:
    cdef int status
    if c.p >= c.end:
        return TRUNCATED
    wire[0] = c.p[0] & 15
    count[0] = c.p[0] >> 4
    if wire[0] > UUID:
        return BAD_TYPE
    c.p += 1
    if count[0] == 15:
        status = read_size(c, count)
        if status != DONE:
            return status
    elif count[0] > c.end - c.p:
        return BAD_COUNT
    c.elements -= count[0]
    return TOO_MANY if c.elements < 0 else DONE


cdef inline int read_header(Cursor *c, int *wire, int *id) noexcept nogil:
    """Read a field header; `id` is the id of the previous field, and is updated. Wire type STOP ends the structure."""
    cdef uint8_t byte
    cdef uint64_t value
    cdef int status
    if c.p >= c.end:
        return TRUNCATED
    byte = c.p[0]
    c.p += 1
    wire[0] = byte & 15
    if byte == STOP:
        return DONE
    if wire[0] == STOP or wire[0] > UUID:
        return BAD_TYPE
    if byte >> 4:
        id[0] += byte >> 4
    else:
        status = read_varint(c, &value)
        if status != DONE:
            return status
        if value > 0xFFFF:
            return BAD_ID
        id[0] = <int> unzigzag(value)
    if id[0] > 32767:
        return BAD_ID
    c.elements -= 1
    return TOO_MANY if c.elements < 0 else DONE


cdef inline const uint8_t *stop_at(Cursor *c, const uint8_t *p, int status) noexcept nogil:
    c.p = p
    c.status = status
    return NULL


# The skipping functions keep the position in a register: they accept it and return the position after the skipped
# value, or NULL with the position and the reason in the cursor.

cdef inline const uint8_t *skip_varint(Cursor *c, const uint8_t *p) noexcept nogil:
    cdef const uint8_t *ninth = c.end if c.end - p < 9 else p + 9
    while p < ninth:
        p += 1
        if p[-1] < 0x80:
            return p
    if p == c.end:
        return stop_at(c, p, TRUNCATED)
    return p + 1 if p[0] <= 1 else stop_at(c, p, BAD_VARINT)


cdef inline const uint8_t *skip_fixed(Cursor *c, const uint8_t *p, Py_ssize_t size) noexcept nogil:
    if size > c.end - p:
        return stop_at(c, p, TRUNCATED)
    return p + size


cdef inline const uint8_t *skip_binary(Cursor *c, const uint8_t *p) noexcept nogil:
    cdef uint64_t size
    if p < c.end and p[0] < 0x80:
        size = p[0]
        p += 1
    else:
        c.p = p
        c.status = read_varint(c, &size)
        if c.status != DONE:
            return NULL
        p = c.p
    if size > <uint64_t> (c.end - p):
        return stop_at(c, p, TRUNCATED)
    return p + size


cdef inline const uint8_t *skip_struct(Cursor *c, const uint8_t *p, int depth) noexcept nogil:
    cdef uint8_t byte, wire
    cdef const uint8_t *start
    cdef int64_t fields = 0
    if depth >= c.max_depth:
        return stop_at(c, p, TOO_DEEP)
    while p != NULL:
        if p >= c.end:
            return stop_at(c, p, TRUNCATED)
        byte = p[0]
        p += 1
        if byte == STOP:
            c.elements -= fields
            return p if c.elements >= 0 else stop_at(c, p, TOO_MANY)
        fields += 1
        wire = byte & 15
        if byte < 16:
            # An id of 16 bits takes at most three bytes, and only two bits of the third can be set.
            start = p
            p = skip_varint(c, p)
            if p == NULL:
                break
            if p - start > 3 or (p - start == 3 and p[-1] > 3):
                return stop_at(c, start, BAD_ID)
        if I16 <= wire <= I64:
            p = skip_varint(c, p)
        elif wire == BINARY:
            p = skip_binary(c, p)
        elif wire > FALSE:
            p = skip_value(c, p, wire, depth + 1)
        elif wire == STOP:
            return stop_at(c, p, BAD_TYPE)
    return NULL


cdef inline const uint8_t *skip_values(Cursor *c, const uint8_t *p, int wire, Py_ssize_t count, int depth) noexcept nogil:
    """Skip `count` elements of a list, in which a boolean takes a byte. Return their end, or NULL."""
    cdef Py_ssize_t i = 0
    if wire <= BYTE:
        return stop_at(c, p, BAD_TYPE) if count and wire == STOP else skip_fixed(c, p, count)
    for i in range(count):
        if wire == STRUCT and p < c.end and p[0] == STOP and depth < c.max_depth:
            p += 1  # millions of empty structures are cheap to send, so they are cheap to skip
            continue
        p = skip_value(c, p, wire, depth)
        if p == NULL:
            break
    return p


cdef inline const uint8_t *skip_value(Cursor *c, const uint8_t *p, int wire, int depth) noexcept nogil:
    cdef Py_ssize_t count = 0
    cdef int element = 0
    if I16 <= wire <= I64:
        return skip_varint(c, p)
    if wire == BINARY:
        return skip_binary(c, p)
    if wire == STRUCT:
        return skip_struct(c, p, depth)
    if wire == LIST or wire == SET:
        if depth >= c.max_depth:
            return stop_at(c, p, TOO_DEEP)
        c.p = p
        c.status = read_list(c, &element, &count)
        return skip_values(c, c.p, element, count, depth + 1) if c.status == DONE else NULL
    if wire == MAP:
        return skip_map(c, p, depth)
    if wire == BYTE:
        return skip_fixed(c, p, 1)
    if wire == DOUBLE:
        return skip_fixed(c, p, 8)
    if wire == UUID:
        return skip_fixed(c, p, 16)
    return stop_at(c, p, BAD_TYPE)


cdef inline const uint8_t *skip_map(Cursor *c, const uint8_t *p, int depth) noexcept nogil:
    cdef Py_ssize_t count = 0, i
    cdef int types
    if depth >= c.max_depth:
        return stop_at(c, p, TOO_DEEP)
    c.p = p
    c.status = read_size(c, &count)
    if c.status != DONE:
        return NULL
    p = c.p
    if count == 0:
        return p
    if p >= c.end:
        return stop_at(c, p, TRUNCATED)
    types = p[0]
    p += 1
    c.elements -= 2 * count
    if c.elements < 0:
        return stop_at(c, p, TOO_MANY)
    for i in range(count):
        p = skip_values(c, p, types >> 4, 1, depth + 1)
        if p != NULL:
            p = skip_values(c, p, types & 15, 1, depth + 1)
        if p == NULL:
            break
    return p
