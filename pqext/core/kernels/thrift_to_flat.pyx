# cython: language_level=3
"""A serialised Thrift footer as a FlatBuffers footer: its tables, and what these cannot say.

Tables are written in the order of the file, each before what it refers to, so that all offsets point forward; tables
with the same fields share a vtable. Each structure is read back from its tables at once, and what would then be
another than it was is kept as a difference. So a table may leave out what it cannot say: nothing gets lost by that.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, int8_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve
from pqext.core.kernels.compact cimport (
    BINARY, DONE, DOUBLE, FALSE, I16, I32, I64, LIST, STRUCT, TRUE, Cursor, read_list, read_size, read_varint,
    skip_struct, unzigzag,
)
from pqext.core.kernels.flat_tables cimport *
from pqext.core.kernels.flat_to_thrift cimport (
    Leaves, find_leaves, free_leaves, put_chunk, put_element, put_file, put_group,
)
from pqext.core.kernels.thrift_fields cimport (
    OUT_OF_MEMORY, UNUSUAL_FIELDS, Field, Fields, find_field, look, put_byte, put_bytes, put_difference, scan_struct,
)

cdef enum:
    UNUSUAL = -40      # a structure that has no place in the tables
    ENCRYPTED = -41
    TOO_LARGE = -42
    MOST_BYTES = 0x7FFFFFFF
    VTABLES = 64       # that are remembered

cdef dict MESSAGES = {
    UNUSUAL: "its structures are not those of an ordinary footer",
    UNUSUAL_FIELDS: "its structures are not those of an ordinary footer",
    ENCRYPTED: "it speaks of encryption",
    TOO_LARGE: "it would take more than 2 GiB",
}

# A list without elements, as structures are compared that others stand in for.
cdef const uint8_t *EMPTY_LIST = b"\x0c"

cdef struct Table:
    int slots
    uint8_t size[100]        # bytes of each slot, 0 for those that are absent
    uint64_t value[100]
    int64_t place[100]       # where each was written

cdef struct Build:
    Bytes out
    Bytes base
    int64_t vtables[64]
    int known

cdef struct Pieces:
    Bytes data
    Bytes stops              # of each piece, as uint32


cdef inline void begin(Table *t) noexcept nogil:
    t.slots = 0
    memset(t.size, 0, sizeof(t.size))


cdef inline void set_slot(Table *t, int slot, int size, uint64_t value) noexcept nogil:
    t.size[slot] = <uint8_t> size
    t.value[slot] = value
    t.slots = slot + 1 if slot >= t.slots else t.slots


cdef inline int pad(Build *b, int64_t multiple) noexcept nogil:
    while b.out.size % multiple:
        if put_byte(&b.out, 0) != DONE:
            return OUT_OF_MEMORY
    return DONE if b.out.size <= MOST_BYTES else TOO_LARGE


cdef inline int put_u32(Build *b, uint32_t value) noexcept nogil:
    return put_bytes(&b.out, &value, 4)


cdef inline void refer(Build *b, int64_t place) noexcept nogil:
    """Let the offset at `place` lead to what is written next."""
    cdef uint32_t distance = <uint32_t> (<int64_t> b.out.size - place)
    memcpy(b.out.data + place, &distance, 4)


cdef int64_t put_table(Build *b, Table *t) noexcept nogil:
    """Write a table; its place, or what is wrong."""
    cdef uint16_t vtable[102]
    cdef int slot, size, at = 4, i
    cdef bint wide = False
    cdef int64_t found = -1, place
    cdef int32_t back
    cdef int vsize = 4 + 2 * t.slots
    memset(vtable, 0, vsize)
    for i in range(4):
        size = 8 >> i
        for slot in range(t.slots):
            if t.size[slot] == size:
                wide = wide or size == 8
                vtable[2 + slot] = <uint16_t> at
                at += size
    vtable[0], vtable[1] = <uint16_t> vsize, <uint16_t> at
    for i in range(b.known - 1, -1, -1):
        if memcmp(b.out.data + b.vtables[i], vtable, vsize) == 0:
            found = b.vtables[i]
            break
    if found < 0:
        if pad(b, 2) != DONE:
            return OUT_OF_MEMORY
        found = b.out.size
        if put_bytes(&b.out, vtable, vsize) != DONE:
            return OUT_OF_MEMORY
        if b.known < VTABLES:
            b.vtables[b.known] = found
            b.known += 1
    if pad(b, 4) != DONE:
        return TOO_LARGE if b.out.size > MOST_BYTES else OUT_OF_MEMORY
    if wide and (b.out.size + 4) % 8 and put_u32(b, 0) != DONE:
        return OUT_OF_MEMORY
    place = b.out.size
    back = <int32_t> (place - found)
    if bytes_reserve(&b.out, at) != 0:
        return OUT_OF_MEMORY
    memcpy(b.out.data + place, &back, 4)
    for slot in range(t.slots):
        if t.size[slot]:
            t.place[slot] = place + vtable[2 + slot]
            memcpy(b.out.data + t.place[slot], &t.value[slot], t.size[slot])  # little-endian
    b.out.size += at
    return place


cdef int put_string(Build *b, int64_t place, const uint8_t *text, Py_ssize_t size, bint ends) noexcept nogil:
    """A string, or without its end a vector of bytes, to which the offset at `place` leads."""
    if size > MOST_BYTES or pad(b, 4) != DONE:
        return TOO_LARGE
    refer(b, place)
    if put_u32(b, <uint32_t> size) != DONE or put_bytes(&b.out, text, size) != DONE:
        return OUT_OF_MEMORY
    return put_byte(&b.out, 0) if ends else DONE


cdef int64_t put_offsets(Build *b, int64_t place, int64_t count) noexcept nogil:
    """A vector of offsets that are still to be set: the place of the first."""
    cdef int64_t first
    if count > MOST_BYTES // 4 or pad(b, 4) != DONE:
        return TOO_LARGE
    refer(b, place)
    if put_u32(b, <uint32_t> count) != DONE or bytes_reserve(&b.out, 4 * count) != 0:
        return OUT_OF_MEMORY
    first = b.out.size
    memset(b.out.data + first, 0, 4 * count)
    b.out.size += 4 * count
    return first


cdef inline bint number(Fields *fields, int id, int wire, int64_t least, int64_t most, int64_t *value) noexcept nogil:
    """The number of a field, if it is there and within bounds."""
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


cdef inline void copy_number(Fields *fields, int id, int wire, Table *t, int slot, int size) noexcept nogil:
    cdef int64_t value = 0, most = (<int64_t> 1 << (8 * size - 1)) - 1 if size < 8 else 0x7FFFFFFFFFFFFFFF
    if number(fields, id, wire, -most - 1, most, &value):
        set_slot(t, slot, size, <uint64_t> value)


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


cdef bint is_utf8(const uint8_t *p, Py_ssize_t size) noexcept nogil:
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
    """A cursor at the first element of a list of a field."""
    cdef Field *field = find_field(fields, id)
    cdef int element = 0
    if field == NULL or field.wire != LIST:
        return False
    look(c, field.start, field.stop)
    return read_list(c, &element, count) == DONE and (element == wire or count[0] == 0)


cdef inline bint inside(Fields *fields, int id, Fields *inner) noexcept nogil:
    """The fields of a structure in a field."""
    cdef Field *field = find_field(fields, id)
    cdef Cursor c
    if field == NULL or field.wire != STRUCT:
        return False
    look(&c, field.start, field.stop)
    return scan_struct(&c, field.start, inner) != NULL


cdef int put_pairs(Build *b, Table *t, int slot, Fields *fields, int id) noexcept nogil:
    """Key-value metadata, where all of it is text; `t` is written already and keeps the place."""
    cdef Cursor c
    cdef Py_ssize_t count = 0, size = 0, i
    cdef Fields pair
    cdef Table one
    cdef const uint8_t *start = NULL
    cdef int64_t first, place
    cdef int key, status
    if t.size[slot] == 0:
        return DONE
    list_of(fields, id, STRUCT, &c, &count)
    first = put_offsets(b, t.place[slot], count)
    if first < 0:
        return <int> first
    for i in range(count):
        c.p = scan_struct(&c, c.p, &pair)
        begin(&one)
        set_slot(&one, 0, 4, 0)
        if find_field(&pair, 2) != NULL:
            set_slot(&one, 1, 4, 0)
        place = put_table_at(b, &one, first + 4 * i)
        if place < 0:
            return <int> place
        for key in range(2):
            if one.size[key]:
                text(&pair, key + 1, &start, &size)
                status = put_string(b, one.place[key], start, size, True)
                if status != DONE:
                    return status
    return DONE


cdef int64_t put_table_at(Build *b, Table *t, int64_t reference) noexcept nogil:
    """Write a table to which the offset at `reference` leads."""
    cdef int64_t place = put_table(b, t)
    cdef uint32_t distance
    if place >= 0:
        distance = <uint32_t> (place - reference)
        memcpy(b.out.data + reference, &distance, 4)
    return place


cdef bint are_texts(Fields *fields, int id) noexcept nogil:
    """Is a field key-value metadata of nothing but text?"""
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


cdef int note(Build *b, Fields *found, Pieces *pieces) noexcept nogil:
    """Keep what makes `b.base`, a structure as its tables say it, the one whose fields these are."""
    cdef Cursor c
    cdef Fields base
    cdef int status
    cdef uint32_t stop
    look(&c, b.base.data, b.base.data + b.base.size)
    if scan_struct(&c, b.base.data, &base) == NULL:
        return UNUSUAL_FIELDS
    status = put_difference(&base, found, &pieces.data, 0)
    if status != DONE:
        return status
    if pieces.data.size > <size_t> 0xFFFFFFFF:
        return TOO_LARGE
    stop = <uint32_t> pieces.data.size
    return put_bytes(&pieces.stops, &stop, 4)


cdef int put_logical(Build *b, int64_t reference, int kind, Fields *about) noexcept nogil:
    """A member of the union LogicalType."""
    cdef Table t
    cdef Fields unit
    cdef Field *flag
    cdef const uint8_t *start = NULL
    cdef Py_ssize_t size = 0
    cdef int64_t place, value = 0
    begin(&t)
    if kind == AS_DECIMAL:
        copy_number(about, 1, I32, &t, 0, 4)
        copy_number(about, 2, I32, &t, 1, 4)
    elif kind == AS_TIME or kind == AS_TIMESTAMP:
        flag = find_field(about, 1)
        if flag != NULL and flag.wire == TRUE:
            set_slot(&t, 0, 1, 1)
        if inside(about, 2, &unit) and unit.count and 1 <= unit.field[0].id <= 3:
            set_slot(&t, 1, 1, unit.field[0].id - 1)
    elif kind == AS_INTEGER:
        flag = find_field(about, 1)
        if flag != NULL and flag.stop - flag.start == 1:
            set_slot(&t, 0, 1, flag.start[0])
        flag = find_field(about, 2)
        if flag != NULL and flag.wire == TRUE:
            set_slot(&t, 1, 1, 1)
    elif kind == AS_VARIANT:
        flag = find_field(about, 1)
        if flag != NULL and flag.stop - flag.start == 1:
            set_slot(&t, 0, 1, flag.start[0])
    elif kind == AS_GEOMETRY or kind == AS_GEOGRAPHY:
        if text(about, 1, &start, &size) and is_utf8(start, size):
            set_slot(&t, 0, 4, 0)
        if kind == AS_GEOGRAPHY and number(about, 2, I32, 0, 127, &value):
            set_slot(&t, 1, 1, value)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    return put_string(b, t.place[0], start, size, True) if start != NULL and t.size[0] == 4 else DONE


cdef int put_schema_element(Build *b, int64_t reference, Fields *found, bint ordered) noexcept nogil:
    cdef Table t, empty
    cdef Fields logical, about
    cdef const uint8_t *name = NULL
    cdef Py_ssize_t size = 0
    cdef int64_t value = 0, place
    cdef int kind = 0, status
    begin(&t)
    if number(found, 1, I32, 0, FIXED, &value):
        set_slot(&t, E_TYPE, 1, value)
    copy_number(found, 2, I32, &t, E_LENGTH, 4)
    if number(found, 3, I32, 0, 2, &value):
        set_slot(&t, E_REPETITION, 1, value)
    if not text(found, 4, &name, &size):
        return UNUSUAL
    if not is_utf8(name, size):
        size = 0  # the name stands beside
    set_slot(&t, E_NAME, 4, 0)
    copy_number(found, 5, I32, &t, E_CHILDREN, 4)
    copy_number(found, 9, I32, &t, E_ID, 4)
    if inside(found, 10, &logical) and logical.count == 1 and inside(&logical, logical.field[0].id, &about):
        kind = to_union(logical.field[0].id)
    if kind:
        set_slot(&t, E_LOGICAL, 1, kind)
        set_slot(&t, E_LOGICAL + 1, 4, 0)
    if ordered:
        set_slot(&t, E_ORDER, 1, 1)
        set_slot(&t, E_ORDER + 1, 4, 0)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    status = put_string(b, t.place[E_NAME], name, size, True)
    if status == DONE and kind:
        status = put_logical(b, t.place[E_LOGICAL + 1], kind, &about)
    if status == DONE and ordered:
        begin(&empty)
        place = put_table_at(b, &empty, t.place[E_ORDER + 1])
        status = DONE if place >= 0 else <int> place
    return status


cdef void set_suffix(Table *t, int shift, const uint8_t *suffix, Py_ssize_t size, bint exact) noexcept nogil:
    """A number of so many bytes, the highest first."""
    cdef uint64_t lo8 = 0, hi8 = 0
    cdef Py_ssize_t i
    for i in range(size):
        hi8 = hi8 << 8 | lo8 >> 56
        lo8 = lo8 << 8 | suffix[i]
    if size:
        set_slot(t, S_LO8 + shift, 8, lo8)
    if size > 8:
        set_slot(t, S_HI8 + shift, 8, hi8)
    set_slot(t, S_LENGTH + shift, 1, <uint8_t> <int8_t> (size if exact else -size))


cdef void set_bytes_bound(
    Table *t, int shift, const uint8_t *suffix, Py_ssize_t size, bint exact, bint may_cut
) noexcept nogil:
    """What stands behind the prefix of a bound: as it is, or a shorter bound that is one of it too."""
    cdef uint8_t cut[16]
    cdef Py_ssize_t kept = 16
    if size <= 16:
        if exact or size:  # a length of 0 cannot be negative
            set_suffix(t, shift, suffix, size, exact)
        return
    if not may_cut:
        return
    memcpy(cut, suffix, 16)
    if shift:
        while kept and cut[kept - 1] == 0xFF:
            kept -= 1
        if kept == 0:
            return  # nothing shorter is above it
        cut[kept - 1] += 1
    set_suffix(t, shift, cut, kept, False)


cdef bint is_false(Fields *fields, int id) noexcept nogil:
    cdef Field *field = find_field(fields, id)
    return field != NULL and field.wire == FALSE


cdef int put_statistics(
    Build *b, int64_t reference, Fields *found, int type, bint ordered, bint may_cut
) noexcept nogil:
    cdef Table t
    cdef const uint8_t *bound[2]
    cdef const uint8_t *prefix = NULL
    cdef Py_ssize_t size[2]
    cdef Py_ssize_t common = 0
    cdef bint held[2]
    cdef bint exact
    cdef int i, shift
    cdef int64_t place
    cdef uint32_t lo4
    cdef uint64_t lo8
    begin(&t)
    copy_number(found, 3, I64, &t, S_NULLS, 8)
    copy_number(found, 4, I64, &t, S_DISTINCT, 8)
    size[0] = size[1] = 0
    bound[0] = bound[1] = NULL
    held[0] = ordered and text(found, 6, &bound[0], &size[0])
    held[1] = ordered and text(found, 5, &bound[1], &size[1])
    if (type == BYTE_ARRAY or type == FIXED) and held[0] and held[1]:
        while common < size[0] and common < size[1] and bound[0][common] == bound[1][common]:
            common += 1
        prefix = bound[0]
        if common:
            set_slot(&t, S_PREFIX, 4, 0)
    for i in range(2):
        if not held[i]:
            continue
        shift = S_TO_MAX if i else 0
        exact = not is_false(found, 7 if i else 8)
        if (type == INT32 or type == FLOAT) and size[i] == 4:
            memcpy(&lo4, bound[i], 4)
            set_slot(&t, S_LO4 + shift, 4, lo4)
            set_slot(&t, S_LENGTH + shift, 1, <uint8_t> <int8_t> (4 if exact else -4))
        elif (type == INT64 or type == FLOAT64) and size[i] == 8:
            memcpy(&lo8, bound[i], 8)
            set_slot(&t, S_LO8 + shift, 8, lo8)
            set_slot(&t, S_LENGTH + shift, 1, <uint8_t> <int8_t> (8 if exact else -8))
        elif type == BYTE_ARRAY or type == FIXED:
            set_bytes_bound(&t, shift, bound[i] + common, size[i] - common, exact, may_cut)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    return put_string(b, t.place[S_PREFIX], prefix, common, False) if common else DONE


cdef int put_geo(Build *b, int64_t reference, Fields *found) noexcept nogil:
    cdef Table t, box
    cdef Fields sides
    cdef Cursor c
    cdef Py_ssize_t count = 0, i
    cdef uint64_t raw = 0, side
    cdef int64_t place
    cdef int j
    cdef bint boxed = inside(found, 1, &sides)
    begin(&t)
    if boxed:
        set_slot(&t, 0, 4, 0)
    if list_of(found, 2, I32, &c, &count):
        set_slot(&t, 1, 4, 0)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    if boxed:
        begin(&box)
        for j in range(sides.count):
            if 1 <= sides.field[j].id <= 8 and sides.field[j].wire == DOUBLE:
                memcpy(&side, sides.field[j].start, 8)
                set_slot(&box, sides.field[j].id - 1, 8, side)
        place = put_table_at(b, &box, t.place[0])
        if place < 0:
            return <int> place
    if t.size[1]:
        place = put_offsets(b, t.place[1], count)
        if place < 0:
            return <int> place
        for i in range(count):
            if read_varint(&c, &raw) != DONE:
                return UNUSUAL
            (<uint32_t *> (b.out.data + place))[i] = <uint32_t> <int32_t> unzigzag(raw)
    return DONE


cdef bint all_dictionary(Fields *found) noexcept nogil:
    """Do the encoding statistics say that every data page refers to the dictionary?"""
    cdef Cursor c
    cdef Py_ssize_t count = 0, i
    cdef Fields one
    cdef int64_t kind = 0, encoding = 0
    cdef bint seen = False
    if not list_of(found, 13, STRUCT, &c, &count):
        return False
    for i in range(count):
        c.p = scan_struct(&c, c.p, &one)
        if c.p == NULL or not number(&one, 1, I32, 0, 127, &kind) or not number(&one, 2, I32, 0, 127, &encoding):
            return False
        if kind == 0 or kind == 3:
            if encoding != 2 and encoding != 8:
                return False
            seen = True
    return seen


cdef int put_column(
    Build *b, int64_t reference, Fields *chunk, int64_t rows, int type, bint ordered, bint may_cut
) noexcept nogil:
    """ColumnChunk and all below it."""
    cdef Fields found, statistics, geo
    cdef Table t, bloom
    cdef int64_t value = 0, place
    cdef int status = DONE
    if find_field(chunk, 8) != NULL or find_field(chunk, 9) != NULL:
        return ENCRYPTED
    if not inside(chunk, 3, &found):
        return UNUSUAL
    begin(&t)
    set_slot(&t, C_METADATA, 4, 0)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    reference = t.place[C_METADATA]
    begin(&t)
    if number(&found, 4, I32, -128, 127, &value):
        set_slot(&t, M_CODEC, 1, value)
    if number(&found, 5, I64, <int64_t> 1 << 63, 0x7FFFFFFFFFFFFFFF, &value) and value != rows:
        set_slot(&t, M_VALUES, 8, value)
    copy_number(&found, 6, I64, &t, M_UNPACKED, 8)
    copy_number(&found, 7, I64, &t, M_STORED, 8)
    if are_texts(&found, 8):
        set_slot(&t, M_PAIRS, 4, 0)
    copy_number(&found, 9, I64, &t, M_DATA, 8)
    copy_number(&found, 10, I64, &t, M_INDEX, 8)
    copy_number(&found, 11, I64, &t, M_DICTIONARY, 8)
    if inside(&found, 12, &statistics):
        set_slot(&t, M_STATISTICS, 4, 0)
    if all_dictionary(&found):
        set_slot(&t, M_ALL_DICTIONARY, 1, 1)
    if find_field(&found, 14) != NULL:
        set_slot(&t, M_BLOOM, 4, 0)
    if inside(&found, 17, &geo):
        set_slot(&t, M_GEO, 4, 0)
    place = put_table_at(b, &t, reference)
    if place < 0:
        return <int> place
    status = put_pairs(b, &t, M_PAIRS, &found, 8)
    if status == DONE and t.size[M_STATISTICS]:
        if not number(&found, 1, I32, type, type, &value):
            ordered = False
        status = put_statistics(b, t.place[M_STATISTICS], &statistics, type, ordered, may_cut)
    if status == DONE and t.size[M_BLOOM]:
        begin(&bloom)
        copy_number(&found, 14, I64, &bloom, 0, 8)
        copy_number(&found, 15, I32, &bloom, 1, 4)
        place = put_table_at(b, &bloom, t.place[M_BLOOM])
        status = DONE if place >= 0 else <int> place
    if status == DONE and t.size[M_GEO]:
        status = put_geo(b, t.place[M_GEO], &geo)
    return status


cdef int put_sorting(Build *b, Table *t, Fields *found) noexcept nogil:
    cdef Cursor c
    cdef Py_ssize_t count = 0, i
    cdef Fields one
    cdef Table key
    cdef Field *flag
    cdef int64_t first, place
    cdef int id
    if t.size[G_SORTING] == 0:
        return DONE
    list_of(found, 4, STRUCT, &c, &count)
    first = put_offsets(b, t.place[G_SORTING], count)
    if first < 0:
        return <int> first
    for i in range(count):
        c.p = scan_struct(&c, c.p, &one)
        if c.p == NULL:
            return UNUSUAL
        begin(&key)
        copy_number(&one, 1, I32, &key, 0, 4)
        for id in range(2, 4):
            flag = find_field(&one, id)
            if flag != NULL and flag.wire == TRUE:
                set_slot(&key, id - 1, 1, 1)
        place = put_table_at(b, &key, first + 4 * i)
        if place < 0:
            return <int> place
    return DONE


cdef bint bytes_compare(Fields *element) noexcept nogil:
    """Are values of this column in the order of their bytes, so that a shorter bound is one?"""
    cdef Fields logical
    cdef int64_t value = 0
    cdef int id
    if number(element, 6, I32, 0, 127, &value) and value != 0 and value != 4 and value != 19 and value != 20:
        return False
    if find_field(element, 10) == NULL:
        return True
    if not inside(element, 10, &logical) or logical.count != 1:
        return False
    id = logical.field[0].id
    return id == 1 or id == 4 or id == 12 or id == 13 or id == 14


cdef int put_all(
    Build *b, const uint8_t *data, Py_ssize_t size, Leaves *leaves, Pieces *file, Pieces *elements, Pieces *groups,
    Pieces *chunks, int64_t *extension, int max_depth, uint8_t **cuts,
) noexcept nogil:
    cdef Cursor c, inner, orders
    cdef Fields found, one
    cdef Field *field
    cdef Table t, row
    cdef Py_ssize_t count = 0, listed = 0, columns = 0, i, j
    cdef int64_t root, first, place, rows = 0, leaf = 0, begin_at, at
    cdef const uint8_t *start = NULL
    cdef Py_ssize_t length = 0
    cdef int64_t children = 0
    cdef bint ordered, listed_orders
    cdef int status
    look(&c, data, data + size)
    if scan_struct(&c, data, &found) != data + size:
        return UNUSUAL
    if find_field(&found, 8) != NULL or find_field(&found, 9) != NULL:
        return ENCRYPTED
    begin(&t)
    copy_number(&found, 1, I32, &t, F_VERSION, 4)
    copy_number(&found, 3, I64, &t, F_ROWS, 8)
    set_slot(&t, F_SCHEMA, 4, 0)
    set_slot(&t, F_GROUPS, 4, 0)
    if are_texts(&found, 5):
        set_slot(&t, F_PAIRS, 4, 0)
    if text(&found, 6, &start, &length) and is_utf8(start, length):
        set_slot(&t, F_CREATOR, 4, 0)
    set_slot(&t, F_EXTENSION, 4, 0)
    if put_u32(b, 0) != DONE:
        return OUT_OF_MEMORY
    root = put_table_at(b, &t, 0)
    if root < 0:
        return <int> root
    extension[0] = t.place[F_EXTENSION]
    status = put_pairs(b, &t, F_PAIRS, &found, 5)
    if status == DONE and t.size[F_CREATOR]:
        status = put_string(b, t.place[F_CREATOR], start, length, True)
    if status != DONE:
        return status

    # The schema.
    listed_orders = list_of(&found, 7, STRUCT, &orders, &listed)
    if not list_of(&found, 2, STRUCT, &c, &count) or count == 0:
        return UNUSUAL
    first = put_offsets(b, t.place[F_SCHEMA], count)
    if first < 0:
        return <int> first
    cuts[0] = <uint8_t *> malloc(count)
    if cuts[0] == NULL:
        return OUT_OF_MEMORY
    for i in range(count):
        c.p = scan_struct(&c, c.p, &one)
        if c.p == NULL:
            return UNUSUAL
        ordered = False
        children = 0
        if i and not (number(&one, 5, I32, -0x80000000, 0x7FFFFFFF, &children) and children):
            if listed_orders and leaf < listed and orders.p < orders.end:
                begin_at = <int64_t> orders.p
                orders.p = skip_struct(&orders, orders.p, 1)
                if orders.p == NULL:
                    return UNUSUAL
                ordered = <int64_t> orders.p - begin_at == 3 and memcmp(orders.p - 3, b"\x1c\x00\x00", 3) == 0
            cuts[0][leaf] = bytes_compare(&one) | ordered << 1
            leaf += 1
        status = put_schema_element(b, first + 4 * i, &one, ordered)
        if status != DONE:
            return status
        b.base.size = 0
        status = put_element(b.out.data, member(b.out.data, first - 4, i), &b.base)
        if status == DONE:
            status = note(b, &one, elements)
        if status != DONE:
            return status
    status = find_leaves(b.out.data, first - 4, max_depth, 0x7FFFFFFFFFFFFFFF, leaves)
    if status != DONE:
        return UNUSUAL if status != OUT_OF_MEMORY else status

    # The row groups.
    if not list_of(&found, 4, STRUCT, &c, &count):
        return UNUSUAL
    begin_at = put_offsets(b, t.place[F_GROUPS], count)
    if begin_at < 0:
        return <int> begin_at
    for i in range(count):
        c.p = scan_struct(&c, c.p, &one)
        if c.p == NULL or not list_of(&one, 1, STRUCT, &inner, &columns) or columns != leaves.count:
            return UNUSUAL
        if not number(&one, 3, I64, <int64_t> 1 << 63, 0x7FFFFFFFFFFFFFFF, &rows):
            return UNUSUAL
        begin(&row)
        set_slot(&row, G_COLUMNS, 4, 0)
        copy_number(&one, 2, I64, &row, G_BYTES, 8)
        copy_number(&one, 3, I64, &row, G_ROWS, 8)
        if list_of(&one, 4, STRUCT, &orders, &listed):
            set_slot(&row, G_SORTING, 4, 0)
        copy_number(&one, 5, I64, &row, G_OFFSET, 8)
        copy_number(&one, 6, I64, &row, G_STORED, 8)
        copy_number(&one, 7, I16, &row, G_ORDINAL, 2)
        place = put_table_at(b, &row, begin_at + 4 * i)
        if place < 0:
            return <int> place
        status = put_sorting(b, &row, &one)
        if status != DONE:
            return status
        at = put_offsets(b, row.place[G_COLUMNS], columns)
        if at < 0:
            return <int> at
        field = find_field(&one, 1)
        field.start, field.stop = EMPTY_LIST, EMPTY_LIST + 1
        b.base.size = 0
        status = put_group(b.out.data, place, &b.base)
        if status == DONE:
            status = note(b, &one, groups)
        for j in range(columns):
            if status != DONE:
                break
            inner.p = scan_struct(&inner, inner.p, &one)
            if inner.p == NULL:
                return UNUSUAL
            status = put_column(
                b, at + 4 * j, &one, rows, leaves.types[j], cuts[0][j] >> 1, cuts[0][j] & 1
            )
            if status == DONE:
                b.base.size = 0
                status = put_chunk(b.out.data, member(b.out.data, at - 4, j), rows, leaves, j, True, &b.base)
            if status == DONE:
                status = note(b, &one, chunks)
        if status != DONE:
            return status
    for i in range(2, 5, 2):
        field = find_field(&found, <int> i)
        field.start, field.stop = EMPTY_LIST, EMPTY_LIST + 1
    b.base.size = 0
    status = put_file(b.out.data, root, &b.base)
    return note(b, &found, file) if status == DONE else status


cdef int gather(Pieces *pieces, Bytes *out) noexcept nogil:
    """The number of pieces, where each begins, and the pieces; 0 where all are empty."""
    cdef uint32_t count = <uint32_t> (pieces.stops.size // 4) if pieces.data.size else 0, zero = 0
    if put_bytes(out, &count, 4) != DONE:
        return OUT_OF_MEMORY
    if count == 0:
        return DONE
    if put_bytes(out, &zero, 4) != DONE or put_bytes(out, pieces.stops.data, pieces.stops.size) != DONE:
        return OUT_OF_MEMORY
    return put_bytes(out, pieces.data.data, pieces.data.size)


def convert(bytes serialised not None, int max_depth):
    cdef Build b
    cdef Leaves leaves
    cdef Pieces pieces[4]        # the file, elements, row groups, column chunks
    cdef Bytes beside
    cdef int64_t extension = 0
    cdef uint8_t *cuts = NULL
    cdef int status, i
    cdef uint32_t words[2]
    cdef const uint8_t *data = <const uint8_t *> PyBytes_AS_STRING(serialised)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(serialised)
    memset(&b, 0, sizeof(b))
    memset(&leaves, 0, sizeof(leaves))
    memset(pieces, 0, sizeof(pieces))
    memset(&beside, 0, sizeof(beside))
    try:
        with nogil:
            status = put_all(
                &b, data, size, &leaves, &pieces[0], &pieces[1], &pieces[2], &pieces[3], &extension, max_depth, &cuts
            )
            if status == DONE:
                words[0], words[1] = 1, <uint32_t> pieces[0].data.size
                status = put_bytes(&beside, words, 8)
            if status == DONE:
                status = put_bytes(&beside, pieces[0].data.data, pieces[0].data.size)
            for i in range(1, 4):
                if status == DONE:
                    status = gather(&pieces[i], &beside)
            if status == DONE:
                status = pad(&b, 4)
        if status == OUT_OF_MEMORY:
            raise MemoryError
        if status != DONE:
            raise ValueError(f"the footer cannot be written as FlatBuffers: {MESSAGES[status]}")
        return (
            PyBytes_FromStringAndSize(<const char *> b.out.data, b.out.size),
            PyBytes_FromStringAndSize(<const char *> beside.data, beside.size),
            extension,
        )
    finally:
        free(cuts)
        free_leaves(&leaves)
        bytes_free(&b.out)
        bytes_free(&b.base)
        bytes_free(&beside)
        for i in range(4):
            bytes_free(&pieces[i].data)
            bytes_free(&pieces[i].stops)
