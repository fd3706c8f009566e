# cython: language_level=3
"""Convert column chunks of a serialised Thrift footer to tables of FlatBuffers, with the bounds that these support."""
from libc.stdint cimport int32_t, int64_t, int8_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

from pqext.core.kernels.thrift.compact cimport DONE, DOUBLE, I32, I64, STRUCT, TRUE, Cursor, read_varint, unzigzag
from pqext.core.kernels.flatbuffers.builder cimport (
    Build, Table, begin, copy_number, put_offsets, put_string, put_table_at, set_slot,
)
from pqext.core.kernels.flatbuffers.columns cimport BY_BYTES, ENCRYPTED, ORDERED, TEXT, UNUSUAL
from pqext.core.kernels.flatbuffers.tables cimport (
    BYTE_ARRAY, C_METADATA, FIXED, FLOAT, FLOAT64, INT32, INT64, M_ALL_DICTIONARY, M_BLOOM, M_CODEC, M_DATA,
    M_DICTIONARY, M_GEO, M_INDEX, M_PAIRS, M_STATISTICS, M_STORED, M_UNPACKED, M_VALUES, S_DISTINCT, S_HI8, S_LENGTH,
    S_LO4, S_LO8, S_NULLS, S_PREFIX, S_TO_MAX,
)
from pqext.core.kernels.flatbuffers.thrift_fields cimport Field, Fields, find_field, scan_struct
from pqext.core.kernels.flatbuffers.thrift_values cimport are_texts, inside, list_of, number, text


cdef int put_pairs(Build *b, Table *t, int slot, Fields *fields, int id) noexcept nogil:
    """Write key-value metadata that is all text; `t` already has a slot for it. Return DONE or a fault."""
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


cdef void set_suffix(Table *t, int shift, const uint8_t *suffix, Py_ssize_t size, bint exact) noexcept nogil:
    """Set the suffix slots of a bound to a number of `size` bytes, most significant first."""
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


cdef inline bint follows(uint8_t byte) noexcept nogil:
    """Return whether `byte` is a continuation byte of UTF-8."""
    return byte & 0xC0 == 0x80


cdef inline Py_ssize_t raised(uint8_t *cut, Py_ssize_t kept, bint is_text) noexcept nogil:
    """Increment the last character that is not the maximum; return the number of bytes retained, which may be 0."""
    while kept:
        if is_text and cut[kept - 1] != 0x7F and cut[kept - 1] != 0xBF:
            break
        if not is_text and cut[kept - 1] != 0xFF:
            break
        while is_text and kept and follows(cut[kept - 1]):
            kept -= 1
        if kept:
            kept -= 1
    if kept:
        cut[kept - 1] += 1
    return kept


cdef void set_bytes_bound(
    Table *t, int shift, const uint8_t *suffix, Py_ssize_t size, bint exact, int order, bint is_fixed
) noexcept nogil:
    """Write the suffix of a bound: exact, or truncated if the values have no fixed length."""
    cdef uint8_t cut[16]
    cdef Py_ssize_t kept = 16
    if size <= 16:
        if exact or size:  # a length of 0 cannot be negative
            set_suffix(t, shift, suffix, size, exact)
        return
    if is_fixed or not order & BY_BYTES:
        return
    memcpy(cut, suffix, 16)
    if order & TEXT:
        while kept and follows(suffix[kept]):
            kept -= 1
    if shift:
        kept = raised(cut, kept, order & TEXT)
    if kept:
        set_suffix(t, shift, cut, kept, False)


cdef int put_statistics(
    Build *b, int64_t reference, Fields *found, int type, int order
) noexcept nogil:
    cdef Table t
    cdef const uint8_t *bound[2]
    cdef const uint8_t *prefix = NULL
    cdef Py_ssize_t size[2]
    cdef Py_ssize_t common = 0
    cdef bint held[2]
    cdef bint exact
    cdef Field *flag
    cdef int i, shift
    cdef int64_t place
    cdef uint32_t lo4
    cdef uint64_t lo8
    begin(&t)
    copy_number(found, 3, I64, &t, S_NULLS, 8)
    copy_number(found, 4, I64, &t, S_DISTINCT, 8)
    size[0] = size[1] = 0
    bound[0] = bound[1] = NULL
    held[0] = order & ORDERED and text(found, 6, &bound[0], &size[0])
    held[1] = order & ORDERED and text(found, 5, &bound[1], &size[1])
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
        # Without a flag, bounds are exact for numbers, and possibly truncated for byte arrays.
        flag = find_field(found, 7 if i else 8)
        exact = flag.wire == TRUE if flag != NULL else type != BYTE_ARRAY and type != FIXED
        if (type == INT32 or type == FLOAT) and size[i] == 4:
            memcpy(&lo4, bound[i], 4)
            set_slot(&t, S_LO4 + shift, 4, lo4)
            set_slot(&t, S_LENGTH + shift, 1, <uint8_t> <int8_t> (4 if exact else -4))
        elif (type == INT64 or type == FLOAT64) and size[i] == 8:
            memcpy(&lo8, bound[i], 8)
            set_slot(&t, S_LO8 + shift, 8, lo8)
            set_slot(&t, S_LENGTH + shift, 1, <uint8_t> <int8_t> (8 if exact else -8))
        elif type == BYTE_ARRAY or type == FIXED:
            set_bytes_bound(&t, shift, bound[i] + common, size[i] - common, exact, order, type == FIXED)
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
    """Return whether the encoding statistics state that every data page is dictionary-encoded."""
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
    Build *b, int64_t reference, Fields *chunk, int64_t rows, int type, int order
) noexcept nogil:
    """Write a ColumnChunk and its nested structures, for a leaf whose values have this `order`. Return DONE or a fault.
    """
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
            order = 0
        status = put_statistics(b, t.place[M_STATISTICS], &statistics, type, order)
    if status == DONE and t.size[M_BLOOM]:
        begin(&bloom)
        copy_number(&found, 14, I64, &bloom, 0, 8)
        copy_number(&found, 15, I32, &bloom, 1, 4)
        place = put_table_at(b, &bloom, t.place[M_BLOOM])
        status = DONE if place >= 0 else <int> place
    if status == DONE and t.size[M_GEO]:
        status = put_geo(b, t.place[M_GEO], &geo)
    return status
