# Values of the fields of a serialised Thrift structure, if they have the expected type.
from libc.stdint cimport int64_t, uint64_t, uint8_t

from pqext.core.kernels.thrift.compact cimport (
    BINARY, DONE, FALSE, LIST, STRUCT, Cursor, read_list, read_size, read_varint, unzigzag,
)
from pqext.core.kernels.flatbuffers.thrift_fields cimport Field, Fields, find_field, look, scan_struct


cdef inline bint number(Fields *fields, int id, int wire, int64_t least, int64_t most, int64_t *value) noexcept nogil:
    """Read the number in a field; return whether it is present and from `least` to `most`."""
    cdef Field *field = find_field(fields, id)
    cdef Cursor c
    cdef uint64_t raw = 0
    if field == NULL or field.wire != wire:
        return False
    look(&c, field.start, field.stop)
    if read_varint(&c, &raw) != DONE:
        return False
    value[0] = unzigzag(raw)
    return least <= value[0] <= most


cdef inline bint text(Fields *fields, int id, const uint8_t **start, Py_ssize_t *size) noexcept nogil:
    cdef Field *field = find_field(fields, id)
    cdef Cursor c
    if field == NULL or field.wire != BINARY:
        return False
    look(&c, field.start, field.stop)
    if read_size(&c, size) != DONE:
        return False
    start[0] = c.p
    return True


cdef inline bint is_utf8(const uint8_t *p, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t i = 0, more
    cdef uint8_t low, high
    while i < size:
        if p[i] < 0x80:
            i += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= p[i] <= 0xDF:
            more = 1
        elif 0xE0 <= p[i] <= 0xEF:
            more = 2
            low = 0xA0 if p[i] == 0xE0 else 0x80
            high = 0x9F if p[i] == 0xED else 0xBF
        elif 0xF0 <= p[i] <= 0xF4:
            more = 3
            low = 0x90 if p[i] == 0xF0 else 0x80
            high = 0x8F if p[i] == 0xF4 else 0xBF
        else:
            return False
        if more >= size - i or not low <= p[i + 1] <= high:
            return False
        if (more > 1 and p[i + 2] & 0xC0 != 0x80) or (more > 2 and p[i + 3] & 0xC0 != 0x80):
            return False
        i += more + 1
    return True


cdef inline bint list_of(Fields *fields, int id, int wire, Cursor *c, Py_ssize_t *count) noexcept nogil:
    """Open a cursor at the first element of the list in a field; return whether the field is such a list."""
    cdef Field *field = find_field(fields, id)
    cdef int element = 0
    if field == NULL or field.wire != LIST:
        return False
    look(c, field.start, field.stop)
    return read_list(c, &element, count) == DONE and (element == wire or count[0] == 0)


cdef inline bint inside(Fields *fields, int id, Fields *inner) noexcept nogil:
    """Index the fields of the structure in a field; return whether the field is a structure."""
    cdef Field *field = find_field(fields, id)
    cdef Cursor c
    if field == NULL or field.wire != STRUCT:
        return False
    look(&c, field.start, field.stop)
    return scan_struct(&c, field.start, inner) != NULL


cdef inline bint are_texts(Fields *fields, int id) noexcept nogil:
    """Return whether a field is key-value metadata that is all text."""
    cdef Cursor c
    cdef Py_ssize_t count = 0, size = 0, i
    cdef Fields pair
    cdef const uint8_t *start = NULL
    if not list_of(fields, id, STRUCT, &c, &count):
        return False
    for i in range(count):
        c.p = scan_struct(&c, c.p, &pair)
        if c.p == NULL or not text(&pair, 1, &start, &size) or not is_utf8(start, size):
            return False
        if find_field(&pair, 2) != NULL and (not text(&pair, 2, &start, &size) or not is_utf8(start, size)):
            return False
    return True
