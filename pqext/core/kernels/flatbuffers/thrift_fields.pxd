# The fields of one serialised Thrift structure, what of them differs from another's, and putting the two together.
#
# A difference is itself a serialised structure: it holds the fields of the one that the other has not or has otherwise,
# structures within both again as differences, and as field 0, a list of i16, the ids that the other has alone.
from libc.stdint cimport int64_t, uint8_t, uint64_t, INT64_MAX
from libc.string cimport memcmp, memcpy

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.core.kernels.thrift.compact cimport (
    DONE, FALSE, I16, LIST, STOP, STRUCT, UUID, Cursor, read_list, read_varint, skip_value, unzigzag,
)

cdef enum:
    FIELDS = 64        # a structure of more is not looked into
    NESTED = 8         # structures within structures that are compared field by field
    OUT_OF_MEMORY = -20
    UNUSUAL_FIELDS = -21

cdef struct Field:
    int id
    int wire
    const uint8_t *start
    const uint8_t *stop

cdef struct Fields:
    int count
    Field field[64]


cdef inline void look(Cursor *c, const uint8_t *data, const uint8_t *end) noexcept nogil:
    """Open a cursor over bytes that have no limit except their length."""
    c.start = c.p = data
    c.end = end
    c.base = 0
    c.elements = c.max_elements = INT64_MAX
    c.objects = c.max_objects = INT64_MAX
    c.max_depth = 64
    c.status = DONE
    c.path = NULL
    c.noted = NULL
    c.noted_count = 0


cdef inline Field *find_field(Fields *fields, int id) noexcept nogil:
    cdef int i
    for i in range(fields.count):
        if fields.field[i].id == id:
            return &fields.field[i]
    return NULL


cdef inline const uint8_t *scan_struct(Cursor *c, const uint8_t *p, Fields *out) noexcept nogil:
    """Index the fields of the structure at `p`; return its end, or NULL if it is corrupt or repeats a field."""
    cdef int id = 0, last = -1, wire
    cdef uint8_t byte
    cdef uint64_t raw = 0
    cdef Field *field
    out.count = 0
    while True:
        if p >= c.end:
            return NULL
        byte = p[0]
        p += 1
        if byte == STOP:
            return p
        wire = byte & 15
        if wire == STOP or wire > UUID or out.count == FIELDS:
            return NULL
        if byte >> 4:
            id += byte >> 4
        else:
            c.p = p
            if read_varint(c, &raw) != DONE or raw > 0xFFFF:
                return NULL
            id = <int> unzigzag(raw)
            p = c.p
        if id > 32767 or (id <= last and find_field(out, id) != NULL):
            return NULL
        last = id if id > last else last
        field = &out.field[out.count]
        field.id, field.wire, field.start = id, wire, p
        if wire > FALSE:
            p = skip_value(c, p, wire, 1)
            if p == NULL:
                return NULL
        field.stop = p
        out.count += 1


cdef inline int put_byte(Bytes *b, uint8_t value) noexcept nogil:
    if bytes_reserve(b, 1) != 0:
        return OUT_OF_MEMORY
    b.data[b.size] = value
    b.size += 1
    return DONE


cdef inline int put_bytes(Bytes *b, const void *data, size_t size) noexcept nogil:
    return DONE if bytes_append(b, data, size) == 0 else OUT_OF_MEMORY


cdef inline int put_varint(Bytes *b, uint64_t value) noexcept nogil:
    if bytes_reserve(b, 10) != 0:
        return OUT_OF_MEMORY
    while value > 0x7F:
        b.data[b.size] = <uint8_t> (value | 0x80)
        b.size += 1
        value >>= 7
    b.data[b.size] = <uint8_t> value
    b.size += 1
    return DONE


cdef inline int put_zigzag(Bytes *b, int64_t value) noexcept nogil:
    return put_varint(b, (<uint64_t> value << 1) ^ <uint64_t> (value >> 63))


cdef inline int put_header(Bytes *b, int *last, int id, int wire) noexcept nogil:
    cdef int distance = id - last[0]
    last[0] = id
    if 0 < distance < 16:
        return put_byte(b, <uint8_t> (distance << 4 | wire))
    if put_byte(b, <uint8_t> wire) != DONE:
        return OUT_OF_MEMORY
    return put_varint(b, <uint64_t> (((id << 1) ^ (id >> 31)) & 0xFFFF))


cdef inline int put_number(Bytes *b, int *last, int id, int wire, int64_t value) noexcept nogil:
    if put_header(b, last, id, wire) != DONE:
        return OUT_OF_MEMORY
    return put_zigzag(b, value)


cdef inline int put_list(Bytes *b, int wire, uint64_t count) noexcept nogil:
    if count < 15:
        return put_byte(b, <uint8_t> (count << 4 | wire))
    if put_byte(b, <uint8_t> (0xF0 | wire)) != DONE:
        return OUT_OF_MEMORY
    return put_varint(b, count)


cdef inline int put_field(Bytes *b, int *last, const Field *field) noexcept nogil:
    if put_header(b, last, field.id, field.wire) != DONE:
        return OUT_OF_MEMORY
    return put_bytes(b, field.start, field.stop - field.start)


cdef inline bint same_field(const Field *a, const Field *b) noexcept nogil:
    cdef Py_ssize_t size = a.stop - a.start
    return a.wire == b.wire and size == b.stop - b.start and (size == 0 or memcmp(a.start, b.start, size) == 0)


cdef inline int put_difference(Fields *base, Fields *target, Bytes *out, int depth) noexcept nogil:
    """Write the difference from `base` to `target`; write nothing if they are equal. Return DONE or a fault."""
    cdef size_t begin = out.size, mark, begin_inner
    cdef int last = 0, i, gone = 0, status, before
    cdef Field *mine
    cdef Field *theirs
    cdef Fields inner_base, inner_target
    cdef Cursor c
    for i in range(base.count):
        gone += find_field(target, base.field[i].id) == NULL
    if gone:
        if put_byte(out, LIST) != DONE or put_byte(out, 0) != DONE or put_list(out, I16, gone) != DONE:
            return OUT_OF_MEMORY
        for i in range(base.count):
            if find_field(target, base.field[i].id) == NULL and put_zigzag(out, base.field[i].id) != DONE:
                return OUT_OF_MEMORY
    for i in range(target.count):
        theirs = &target.field[i]
        if theirs.id == 0:
            return UNUSUAL_FIELDS
        mine = find_field(base, theirs.id)
        if mine != NULL and same_field(mine, theirs):
            continue
        if mine == NULL or mine.wire != STRUCT or theirs.wire != STRUCT or depth == NESTED:
            if put_field(out, &last, theirs) != DONE:
                return OUT_OF_MEMORY
            continue
        look(&c, mine.start, mine.stop)
        if scan_struct(&c, mine.start, &inner_base) == NULL:
            return UNUSUAL_FIELDS
        look(&c, theirs.start, theirs.stop)
        if scan_struct(&c, theirs.start, &inner_target) == NULL:
            return UNUSUAL_FIELDS
        before, mark = last, out.size
        if put_header(out, &last, theirs.id, STRUCT) != DONE:
            return OUT_OF_MEMORY
        begin_inner = out.size
        status = put_difference(&inner_base, &inner_target, out, depth + 1)
        if status != DONE:
            return status
        if out.size == begin_inner:
            last, out.size = before, mark
    return DONE if out.size == begin else put_byte(out, STOP)


cdef inline bint is_gone(Fields *piece, int id) noexcept nogil:
    """Return whether a difference removes the field `id`."""
    cdef Field *gone = find_field(piece, 0)
    cdef Cursor c
    cdef int wire = 0
    cdef Py_ssize_t count = 0, i
    cdef uint64_t raw = 0
    if gone == NULL or gone.wire != LIST:
        return False
    look(&c, gone.start, gone.stop)
    if read_list(&c, &wire, &count) != DONE or wire != I16:
        return False
    for i in range(count):
        if read_varint(&c, &raw) != DONE:
            return False
        if unzigzag(raw) == id:
            return True
    return False


cdef inline int rank(const Field *field) noexcept nogil:
    """Return the rank of a field in its structure: extensions, whose ids may be negative, are last."""
    return field.id if field.id >= 0 else field.id + 0x10000


cdef inline int put_added(Fields *base, Fields *piece, int *done, int before, Bytes *out, int *last) noexcept nogil:
    """Write the fields of a difference that `base` lacks and that precede field `before`."""
    cdef Field *other
    while done[0] < piece.count:
        other = &piece.field[done[0]]
        if rank(other) >= before:
            return DONE
        done[0] += 1
        if other.id != 0 and find_field(base, other.id) == NULL and put_field(out, last, other) != DONE:
            return OUT_OF_MEMORY
    return DONE


cdef inline int put_together(Fields *base, Fields *piece, Bytes *out, int depth) noexcept nogil:
    """Write `base` with a difference applied to it. Return DONE or a fault."""
    cdef int last = 0, i, status, added = 0
    cdef Field *mine
    cdef Field *other
    cdef Fields inner_base, inner_piece
    cdef Cursor c
    for i in range(base.count):
        mine = &base.field[i]
        if put_added(base, piece, &added, rank(mine), out, &last) != DONE:
            return OUT_OF_MEMORY
        other = find_field(piece, mine.id)
        if other == NULL:
            if not is_gone(piece, mine.id) and put_field(out, &last, mine) != DONE:
                return OUT_OF_MEMORY
        elif mine.wire != STRUCT or other.wire != STRUCT or depth == NESTED:
            if put_field(out, &last, other) != DONE:
                return OUT_OF_MEMORY
        else:
            look(&c, mine.start, mine.stop)
            if scan_struct(&c, mine.start, &inner_base) == NULL:
                return UNUSUAL_FIELDS
            look(&c, other.start, other.stop)
            if scan_struct(&c, other.start, &inner_piece) == NULL:
                return UNUSUAL_FIELDS
            if put_header(out, &last, mine.id, STRUCT) != DONE:
                return OUT_OF_MEMORY
            status = put_together(&inner_base, &inner_piece, out, depth + 1)
            if status != DONE:
                return status
    if put_added(base, piece, &added, 0x20000, out, &last) != DONE:
        return OUT_OF_MEMORY
    return put_byte(out, STOP)
