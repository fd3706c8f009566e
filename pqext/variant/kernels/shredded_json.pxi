# Convert shredded columns to JSON text, without intermediate binary values.
from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.core.kernels.number_write cimport write_integer
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_ARROW, FAULT_CHILD_SIZE, FAULT_DECIMAL_PRECISION, FAULT_FIELD_ID, FAULT_MEMORY,
    FAULT_METADATA_NULL, FAULT_METADATA_UTF8, FAULT_STRING_UTF8, FAULT_TIME, FAULT_VALUE_TRAILING, BinaryColumn,
    BinaryInput, Container, binary_at, binary_valid, bit_is_set, bytes_compare, container_child, container_id,
    metadata_name, object_open, read_uint, read_uint64,
)
from pqext.variant.kernels.exact cimport has_precision, int128
from pqext.variant.kernels.extents cimport Extents, child_extent, whole_extent
from pqext.variant.kernels.json_print cimport ROOM, TextColumn, put, text_column_row, write_text, write_word
from pqext.variant.kernels.shredding cimport (
    FAULT_ARRAY_RESIDUAL, FAULT_BOTH, FAULT_CONFLICT, FAULT_MISSING_ELEMENT, FAULT_NOT_OBJECT, FAULT_OBJECT_RESIDUAL,
    FAULT_TOO_LARGE, KIND_ARRAY, KIND_OBJECT, LEAF_BINARY, LEAF_BOOLEAN, LEAF_DATE, LEAF_DECIMAL, LEAF_DOUBLE,
    LEAF_FLOAT, LEAF_INT16, LEAF_INT32, LEAF_INT64, LEAF_INT8, LEAF_STRING, LEAF_TIME, LEAF_TIMESTAMP,
    LEAF_TIMESTAMP_NANOS, LEAF_TIMESTAMP_NTZ_NANOS, LEAF_UUID, Dictionary, Node, ShreddingPlan, Source, Sources,
    dictionary_load, dictionary_order,
)
from pqext.variant.kernels.text_write cimport (
    write_date, write_double, write_float, write_stripped_decimal, write_time, write_uuid,
)


cdef struct State:
    const Node *nodes
    const Source *sources
    Dictionary dictionary
    Bytes ids
    Extents extents
    bint strict
    const uint8_t *names_end   # of the buffer that holds the row's metadata
    Bytes names                # `"name":` for each name of the schema, and the start of each
    Bytes name_offsets
    Stack stack
    Bytes out


cdef struct Open:
    bint is_object


# A comma follows each value; the last comma becomes the closing bracket.

cdef inline int open_container(State *s, Open *open, bint is_object, uint32_t count) noexcept nogil:
    open.is_object = is_object
    return put(&s.out, c'{' if is_object else c'[')


cdef inline int close_container(State *s, Open *open) noexcept nogil:
    cdef uint8_t closing = c'}' if open.is_object else c']'
    if s.out.data[s.out.size - 1] == c',':
        s.out.data[s.out.size - 1] = closing
    elif put(&s.out, closing) != 0:
        return FAULT_MEMORY
    return put(&s.out, c',')


cdef inline int begin_field(State *s, ShreddingPlan plan, Open *open, int32_t name) noexcept nogil:
    cdef const uint64_t *offsets = <const uint64_t *> s.name_offsets.data
    if s.out.size > 0x7FFFFFFF:
        return FAULT_TOO_LARGE  # a name of the schema can be long, and occur in every element
    return bytes_append(&s.out, s.names.data + offsets[name], offsets[name + 1] - offsets[name])


cdef inline int begin_element(State *s, Open *open) noexcept nogil:
    return 0


cdef inline int put_null(State *s) noexcept nogil:
    return write_word(&s.out, b"null,", 5)


cdef int put_value(State *s, const uint8_t *p, size_t n, const BinaryColumn *column) noexcept nogil:
    cdef const uint8_t *where = NULL
    cdef int status = write_value(
        &s.out, &s.stack, &s.dictionary.metadata, p, n, column.data + column.data_size, s.names_end, &where
    )
    return status if status != 0 else put(&s.out, c',')


cdef int put_residual(
    State *s, Open *open, uint32_t id, const uint8_t *p, size_t n, const BinaryColumn *column
) noexcept nogil:
    cdef const uint8_t *name = NULL
    cdef size_t length = 0
    cdef int status = metadata_name(&s.dictionary.metadata, id, &name, &length)
    if status == 0:
        status = write_text(&s.out, name, length, s.names_end, FAULT_METADATA_UTF8)
    if status == 0:
        status = put(&s.out, c':')
    return status if status != 0 else put_value(s, p, n, column)


cdef int _put_bytes(State *s, int leaf, const Source *source, int64_t row) noexcept nogil:
    cdef const BinaryColumn *column = &source.typed_bytes
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int status = binary_at(column, row, &p, &n)
    if status != 0:
        return status
    if n > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    if leaf == LEAF_STRING:
        status = write_text(&s.out, p, n, column.data + column.data_size, FAULT_STRING_UTF8)
        return status if status != 0 else put(&s.out, c',')
    status = write_blob(&s.out, p, n, s.stack.display)
    return status if status != 0 else put(&s.out, c',')


cdef int put_leaf_value(State *s, const Node *node, const Source *source, int64_t row) noexcept nogil:
    cdef int64_t index = source.typed_offset + row
    cdef const uint8_t *p = source.typed_data
    cdef int leaf = node.leaf
    cdef uint8_t *to
    cdef int64_t number
    cdef uint64_t bits
    cdef bint display = s.stack.display
    cdef int128 unscaled = 0
    if leaf == LEAF_STRING or leaf == LEAF_BINARY:
        return _put_bytes(s, leaf, source, row)
    if leaf == LEAF_BOOLEAN:
        return write_word(&s.out, b"true,", 5) if bit_is_set(p, index) else write_word(&s.out, b"false,", 6)
    if bytes_reserve(&s.out, ROOM) != 0:
        return FAULT_MEMORY
    to = s.out.data + s.out.size
    if leaf == LEAF_INT64:
        to = write_integer(to, <int64_t> read_uint64(p + index * 8))
    elif leaf == LEAF_INT32:
        to = write_integer(to, <int32_t> read_uint(p + index * 4, 4))
    elif leaf == LEAF_INT16:
        to = write_integer(to, <int16_t> read_uint(p + index * 2, 2))
    elif leaf == LEAF_INT8:
        to = write_integer(to, <int8_t> p[index])
    elif leaf == LEAF_DOUBLE or leaf == LEAF_FLOAT:
        bits = read_uint64(p + index * 8) if leaf == LEAF_DOUBLE else read_uint(p + index * 4, 4)
        if display and is_special(bits, leaf == LEAF_DOUBLE):
            to = write_shown_special(to, bits, leaf == LEAF_DOUBLE, s.out.size != s.stack.start)
        else:
            to = write_double(to, bits) if leaf == LEAF_DOUBLE else write_float(to, <uint32_t> bits)
    elif leaf == LEAF_DECIMAL:
        memcpy(&unscaled, p + index * 16, 16)
        if not has_precision(unscaled, 38):
            return FAULT_DECIMAL_PRECISION
        to = write_stripped_decimal(to, <int64_t> (unscaled >> 64), <uint64_t> unscaled, node.scale)
    else:
        to[0] = c'"'
        to += 1
        if leaf == LEAF_DATE:
            number = <int32_t> read_uint(p + index * 4, 4)
            to = show_date(to, number) if display else write_date(to, number)
        elif leaf == LEAF_UUID:
            to = write_uuid(to, p + index * 16)
        else:
            number = <int64_t> read_uint64(p + index * 8)
            if leaf != LEAF_TIME:
                to = write_instant(
                    to, number, leaf == LEAF_TIMESTAMP_NANOS or leaf == LEAF_TIMESTAMP_NTZ_NANOS,
                    leaf == LEAF_TIMESTAMP or leaf == LEAF_TIMESTAMP_NANOS, display, s.stack.zone,
                )
            elif 0 <= number < 86400000000LL:
                to = write_time(to, number, 1000000, 6)
            else:
                return FAULT_TIME
        to[0] = c'"'
        to += 1
    to[0] = c','
    s.out.size = to + 1 - s.out.data
    return 0


include "shredded_walk.pxi"


cdef int _render_names(State *s, ShreddingPlan plan) noexcept nogil:
    cdef const uint8_t *end = plan.names + plan.name_offsets[plan.name_count]
    cdef uint64_t at = 0
    cdef int32_t rank
    cdef uint32_t start
    cdef int status = bytes_append(&s.name_offsets, &at, sizeof(uint64_t))
    for rank in range(plan.name_count):
        if status != 0:
            break
        start = plan.name_offsets[rank]
        status = write_text(
            &s.names, plan.names + start, plan.name_offsets[rank + 1] - start, end, FAULT_METADATA_UTF8
        )
        if status == 0:
            status = put(&s.names, c':')
        at = s.names.size
        if status == 0:
            status = bytes_append(&s.name_offsets, &at, sizeof(uint64_t))
    return status


cdef int _write_row(State *s, ShreddingPlan plan, const BinaryColumn *metadata, int64_t row) noexcept nogil:
    """Append the JSON of a row whose group is not null. Return 0 or a fault."""
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int status = FAULT_METADATA_NULL
    if binary_valid(metadata, row):
        status = binary_at(metadata, row, &p, &n)
    if status == 0:
        status = load_dictionary(s, plan, p, n)
    if status == 0:
        status = _walk(s, plan, 0, row) if _is_present(&s.sources[0], row) else put_null(s)
    if status == 0:
        s.out.size -= 1  # the comma
    return status


def write_shredded_json(
    ShreddingPlan plan, BinaryInput metadata, Sources sources, int64_t start, int64_t stop, bint display=False,
    Zone zone=None
):
    """Return the JSON of rows `start` to `stop`. Rows whose root group is null are null; missing values are "null".

    `display` is as for `write_json`. Return (rows, validity, offsets, text, 0, 0), with fewer rows than requested if
    32-bit offsets are full. After a fault, the last two items are the fault and its row.
    """
    cdef State s
    cdef TextColumn column
    cdef int64_t row = start
    cdef size_t before
    cdef int status = 0
    cdef bint valid
    if sources.count != plan.node_count:
        raise ValueError("the columns do not match the plan")
    if not 0 <= start <= stop <= metadata.column.length:
        raise ValueError(f"rows {start} to {stop} are out of range for {metadata.column.length} rows")
    memset(&s, 0, sizeof(State))
    memset(&column, 0, sizeof(TextColumn))
    s.stack.display = display
    s.nodes = plan.nodes
    s.stack.zone = NULL if zone is None else &zone.table
    s.sources = sources.sources
    s.names_end = metadata.column.data + metadata.column.data_size
    try:
        with nogil:
            status = bytes_reserve(&s.ids, (<size_t> plan.name_count + 1) * sizeof(int64_t))
            if status == 0:
                status = _render_names(&s, plan)
            while status == 0 and row < stop:
                before = s.out.size
                s.stack.start = before
                valid = bit_is_set(s.sources[0].group_validity, s.sources[0].group_offset + row)
                if valid:
                    status = _write_row(&s, plan, &metadata.column, row)
                    if status == FAULT_TOO_LARGE or (status == 0 and s.out.size > 0x7FFFFFFF):
                        status = 0
                        s.out.size = before
                        break
                    if status != 0:
                        break
                status = text_column_row(&column, valid, s.out.size)
                if status == 0:
                    row += 1
        return row - start, take(&column.validity), take(&column.offsets), take(&s.out), status, row
    finally:
        bytes_free(&s.dictionary.ranks)
        bytes_free(&s.ids)
        bytes_free(&s.extents.sorted)
        bytes_free(&s.names)
        bytes_free(&s.name_offsets)
        bytes_free(&s.out)
        bytes_free(&column.offsets)
        bytes_free(&column.validity)
        free(s.stack.frames)
