# cython: language_level=3
"""Convert a serialised Thrift footer to a FlatBuffers footer: tables, and differences that tables cannot represent.

Tables are written in the order of the file, each before its targets, so that all offsets point forward; tables with the
same fields share a vtable. Each structure is read back from its tables immediately, and parts that differ from the
original are stored as a difference. A table may therefore omit values that it cannot represent, without loss.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free
from pqext.core.kernels.thrift.compact cimport DONE, I16, I32, I64, STRUCT, TRUE, Cursor, skip_struct
from pqext.core.kernels.flatbuffers.builder cimport (
    TOO_LARGE, Build, Table, begin, copy_number, pad, put_offsets, put_string, put_table_at, put_u32, set_slot,
)
from pqext.core.kernels.flatbuffers.columns cimport BY_BYTES, ENCRYPTED, ORDERED, TEXT, UNUSUAL, put_column, put_pairs
from pqext.core.kernels.flatbuffers.leaves cimport MOST_PATHS, Leaves, find_leaves, free_leaves
from pqext.core.kernels.flatbuffers.tables cimport (
    AS_DECIMAL, AS_GEOGRAPHY, AS_GEOMETRY, AS_INTEGER, AS_TIME, AS_TIMESTAMP, AS_VARIANT, E_CHILDREN, E_ID, E_LENGTH,
    E_LOGICAL, E_NAME, E_ORDER, E_REPETITION, E_TYPE, FIXED, F_CREATOR, F_EXTENSION, F_GROUPS, F_PAIRS, F_ROWS,
    F_SCHEMA, F_VERSION, G_BYTES, G_COLUMNS, G_OFFSET, G_ORDINAL, G_ROWS, G_SORTING, G_STORED, member, to_union,
)
from pqext.core.kernels.flatbuffers.to_thrift cimport put_chunk, put_element, put_file, put_group
from pqext.core.kernels.flatbuffers.thrift_fields cimport (
    OUT_OF_MEMORY, UNUSUAL_FIELDS, Field, Fields, find_field, look, put_bytes, put_difference, scan_struct,
)
from pqext.core.kernels.flatbuffers.thrift_values cimport are_texts, inside, is_utf8, list_of, number, text


cdef enum:
    LONG_PATHS = -42

cdef dict MESSAGES = {
    UNUSUAL: "FlatBuffers tables cannot represent one of its structures",
    UNUSUAL_FIELDS: "FlatBuffers tables cannot represent one of its structures",
    ENCRYPTED: "it declares encryption",
    TOO_LARGE: "it would exceed 2 GiB",
    LONG_PATHS: "the paths of its columns are far larger than the footer",
}

# An empty list, for comparing structures whose lists are replaced.
cdef const uint8_t *EMPTY_LIST = b"\x0c"

cdef struct Pieces:
    Bytes data
    Bytes stops              # ends of the pieces, as uint32


cdef int note(Build *b, Fields *found, Pieces *pieces) noexcept nogil:
    """Store the difference from `b.base`, a structure as its tables represent it, to the structure with these fields.
    """
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
    """Write a member of the union LogicalType. Return DONE or a fault."""
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
        size = 0  # the name is stored as a difference
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


cdef int order_of_bytes(Fields *element) noexcept nogil:
    """Return `BY_BYTES` if values are ordered by their bytes, so that bounds can be truncated, and also `TEXT` for
    text.
    """
    cdef Fields logical
    cdef int64_t value = 0
    cdef int id, order = BY_BYTES
    if number(element, 6, I32, 0, 127, &value):
        if value != 0 and value != 4 and value != 19 and value != 20:
            return 0
        if value != 20:
            order |= TEXT
    if find_field(element, 10) == NULL:
        return order
    if not inside(element, 10, &logical) or logical.count != 1:
        return 0
    id = logical.field[0].id
    if id == 1 or id == 4 or id == 12:
        return order | TEXT
    return order if id == 13 or id == 14 else 0


cdef int put_all(
    Build *b, const uint8_t *data, Py_ssize_t size, Leaves *leaves, Pieces *file, Pieces *elements, Pieces *groups,
    Pieces *chunks, int64_t *extension, int max_depth, uint8_t **orders_of,
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
    orders_of[0] = <uint8_t *> malloc(count)
    if orders_of[0] == NULL:
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
            orders_of[0][leaf] = <uint8_t> (order_of_bytes(&one) | (ORDERED if ordered else 0))
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
            status = put_column(b, at + 4 * j, &one, rows, leaves.types[j], orders_of[0][j])
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
    """Write the number of pieces, the start of each piece, and the pieces; only 0 if all are empty."""
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
    cdef uint8_t *orders_of = NULL
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
                &b, data, size, &leaves, &pieces[0], &pieces[1], &pieces[2], &pieces[3], &extension, max_depth,
                &orders_of,
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
            # Readers reject footers whose paths exceed this size.
            if status == DONE and leaves.paths.size > MOST_PATHS * b.out.size + (1 << 20):
                status = LONG_PATHS
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
        free(orders_of)
        free_leaves(&leaves)
        bytes_free(&b.out)
        bytes_free(&b.base)
        bytes_free(&beside)
        for i in range(4):
            bytes_free(&pieces[i].data)
            bytes_free(&pieces[i].stops)
