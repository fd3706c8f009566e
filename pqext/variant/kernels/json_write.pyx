# cython: language_level=3, cdivision=True
"""Convert variants to JSON text without recursion, and check their bytes.

`shredded_json` writes the same text from shredded columns; `json_indent` indents it over several lines.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int16_t, int32_t, int64_t, int8_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_free, bytes_reserve, take
from pqext.core.kernels.number_write cimport write_integer
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, BASIC_SHORT_STRING, FAULT_CHILD_SIZE, FAULT_DECIMAL_SCALE, FAULT_MEMORY,
    FAULT_METADATA_NULL, FAULT_METADATA_UTF8, FAULT_STRING_UTF8, FAULT_TIME, FAULT_UNKNOWN_TYPE, FAULT_VALUE_TRAILING,
    TYPE_BINARY, TYPE_DATE, TYPE_DECIMAL16, TYPE_DECIMAL4, TYPE_DOUBLE, TYPE_FALSE, TYPE_FLOAT, TYPE_INT16, TYPE_INT32,
    TYPE_INT64, TYPE_INT8, TYPE_NULL, TYPE_STRING, TYPE_TIMESTAMP, TYPE_TIMESTAMP_NANOS, TYPE_TIMESTAMP_NTZ,
    TYPE_TIMESTAMP_NTZ_NANOS, TYPE_TIME_NTZ, TYPE_TRUE, TYPE_UUID, Container, Metadata, VariantInput, array_open,
    binary_at, binary_valid, bit_is_set, container_child, container_id, metadata_name, metadata_open, object_open,
    read_uint, read_uint64, value_size,
)
from pqext.variant.kernels.display_write cimport show_bytes, show_date, show_special, show_timestamp
from pqext.variant.kernels.json_print cimport ROOM, TextColumn, put, text_column_row, write_text, write_word
from pqext.variant.kernels.shredding cimport FAULT_TOO_LARGE
from pqext.variant.kernels.text_write cimport (
    write_base64, write_date, write_double, write_float, write_stripped_decimal, write_time, write_timestamp,
    write_uuid,
)
from pqext.variant.kernels.zone cimport Zone, ZoneTable


cdef struct Frame:
    Container container
    uint32_t next           # next child
    size_t used             # bytes of the previous children


cdef struct Stack:
    Frame *frames
    size_t depth
    size_t capacity
    bint display            # values have the text of columns of their types, see `display_write`
    size_t start            # of the row's text
    const ZoneTable *zone   # time zone of instants; NULL for UTC


cdef int push(Stack *stack, const Container *container) noexcept nogil:
    cdef Frame *moved
    if stack.depth == stack.capacity:
        moved = <Frame *> realloc(stack.frames, (stack.capacity * 2 + 16) * sizeof(Frame))
        if moved == NULL:
            return FAULT_MEMORY
        stack.frames = moved
        stack.capacity = stack.capacity * 2 + 16
    stack.frames[stack.depth].container = container[0]
    stack.frames[stack.depth].next = 0
    stack.frames[stack.depth].used = 0
    stack.depth += 1
    return 0


cdef inline int write_blob(Bytes *out, const uint8_t *p, size_t n, bint display) noexcept nogil:
    """Write a binary value as a string."""
    if display:
        if put(out, c'"') != 0 or show_bytes(out, p, n, True) != 0:
            return FAULT_MEMORY
        return put(out, c'"')
    if bytes_reserve(out, (n + 2) // 3 * 4 + 2) != 0:
        return FAULT_MEMORY
    out.data[out.size] = c'"'
    out.size = write_base64(out.data + out.size + 1, p, n) - out.data
    return put(out, c'"')


cdef inline bint is_special(uint64_t bits, bint wide) noexcept nogil:
    """Return whether the bits of a double (`wide`) or float are NaN or an infinity."""
    return (bits >> 52 & 0x7FF) == 0x7FF if wide else (bits >> 23 & 0xFF) == 0xFF


cdef inline uint8_t *write_shown_special(uint8_t *to, uint64_t bits, bint wide, bint quoted) noexcept nogil:
    """Write NaN or an infinity in the format for display. Return the end of the text."""
    if wide:
        return show_special(to, bits >> 63, bits & 0xFFFFFFFFFFFFFULL != 0, quoted)
    return show_special(to, bits >> 31, bits & 0x7FFFFF != 0, quoted)


cdef inline uint8_t *write_instant(
    uint8_t *to, int64_t ticks, bint nanoseconds, bint utc, bint display, const ZoneTable *zone
) noexcept nogil:
    if display:
        return show_timestamp(to, ticks, 1000000000 if nanoseconds else 1000000, 9 if nanoseconds else 6, utc)
    return write_timestamp(to, ticks, nanoseconds, utc, zone)


cdef int write_primitive(
    Bytes *out, const Stack *stack, const uint8_t *p, size_t n, const uint8_t *readable
) noexcept nogil:
    """Write the primitive at `p`, whose size according to `value_size` is `n`. Return 0 or a fault."""
    cdef int type_id = p[0] >> 2
    cdef uint8_t *start
    cdef uint8_t *to
    cdef int64_t number
    cdef uint64_t bits
    cdef bint quoted
    cdef bint display = stack.display
    if type_id == TYPE_NULL:
        return write_word(out, b"null", 4)
    if type_id == TYPE_TRUE:
        return write_word(out, b"true", 4)
    if type_id == TYPE_FALSE:
        return write_word(out, b"false", 5)
    if type_id == TYPE_STRING:
        return write_text(out, p + 5, n - 5, readable, FAULT_STRING_UTF8)
    if type_id == TYPE_BINARY:
        return write_blob(out, p + 5, n - 5, display)
    if bytes_reserve(out, ROOM) != 0:
        return FAULT_MEMORY
    start = out.data + out.size
    to = start
    if display and (type_id == TYPE_DOUBLE or type_id == TYPE_FLOAT):
        bits = read_uint64(p + 1) if type_id == TYPE_DOUBLE else read_uint(p + 1, 4)
        if is_special(bits, type_id == TYPE_DOUBLE):
            out.size = write_shown_special(to, bits, type_id == TYPE_DOUBLE, out.size != stack.start) - out.data
            return 0
    quoted = not (TYPE_INT8 <= type_id <= TYPE_DECIMAL16 or type_id == TYPE_FLOAT)
    if quoted:
        to[0] = c'"'
        to += 1
    if type_id == TYPE_INT8:
        to = write_integer(to, <int8_t> p[1])
    elif type_id == TYPE_INT16:
        to = write_integer(to, <int16_t> read_uint(p + 1, 2))
    elif type_id == TYPE_INT32:
        to = write_integer(to, <int32_t> read_uint(p + 1, 4))
    elif type_id == TYPE_INT64:
        to = write_integer(to, <int64_t> read_uint64(p + 1))
    elif type_id == TYPE_DOUBLE:
        to = write_double(to, read_uint64(p + 1))
    elif type_id == TYPE_FLOAT:
        to = write_float(to, read_uint(p + 1, 4))
    elif TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16:
        if p[1] > 38:
            return FAULT_DECIMAL_SCALE
        if type_id == TYPE_DECIMAL16:
            number = <int64_t> read_uint64(p + 10)
            bits = read_uint64(p + 2)
        else:
            number = <int32_t> read_uint(p + 2, 4) if type_id == TYPE_DECIMAL4 else <int64_t> read_uint64(p + 2)
            bits = <uint64_t> number
            number = -1 if number < 0 else 0
        to = write_stripped_decimal(to, number, bits, p[1])
    elif type_id == TYPE_DATE:
        number = <int32_t> read_uint(p + 1, 4)
        to = show_date(to, number) if display else write_date(to, number)
    elif type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NTZ or (
        TYPE_TIMESTAMP_NANOS <= type_id <= TYPE_TIMESTAMP_NTZ_NANOS
    ):
        to = write_instant(
            to, <int64_t> read_uint64(p + 1), type_id >= TYPE_TIMESTAMP_NANOS,
            type_id == TYPE_TIMESTAMP or type_id == TYPE_TIMESTAMP_NANOS, display, stack.zone,
        )
    elif type_id == TYPE_TIME_NTZ:
        number = <int64_t> read_uint64(p + 1)
        if number < 0 or number >= 86400000000LL:
            return FAULT_TIME
        to = write_time(to, number, 1000000, 6)
    elif type_id == TYPE_UUID:
        to = write_uuid(to, p + 1)
    else:
        return FAULT_UNKNOWN_TYPE
    if quoted:
        to[0] = c'"'
        to += 1
    out.size += to - start
    return 0


cdef int write_value(
    Bytes *out, Stack *stack, const Metadata *metadata, const uint8_t *p, size_t n, const uint8_t *readable,
    const uint8_t *names_end, const uint8_t **where
) noexcept nogil:
    """Write the JSON of the value that must fill the n bytes at `p`. Return 0, or a fault at *where.

    The buffers of the value and of the metadata end at `readable` and `names_end`.
    """
    cdef Container container
    cdef Frame *frame
    cdef const uint8_t *name
    cdef size_t length, limit = n
    cdef int64_t size
    cdef int status, basic
    stack.depth = 0
    where[0] = p
    size = value_size(p, n)
    if size >= 0 and <size_t> size != n:
        return FAULT_VALUE_TRAILING
    while True:
        where[0] = p
        size = value_size(p, limit)
        if size < 0:
            return <int> size
        basic = p[0] & 3
        if stack.depth:
            # Children must fill their container, so no byte is read twice at any nesting.
            frame = &stack.frames[stack.depth - 1]
            frame.used += <size_t> size
            if frame.used > frame.container.values_size:
                return FAULT_CHILD_SIZE
        if basic == BASIC_OBJECT or basic == BASIC_ARRAY:
            status = object_open(p, limit, &container) if basic == BASIC_OBJECT else array_open(p, limit, &container)
            if status == 0:
                status = push(stack, &container)
            if status == 0:
                status = put(out, c'{' if basic == BASIC_OBJECT else c'[')
        elif basic == BASIC_SHORT_STRING:
            status = write_text(out, p + 1, <size_t> size - 1, readable, FAULT_STRING_UTF8)
        else:
            status = write_primitive(out, stack, p, <size_t> size, readable)
        if status != 0:
            return status
        while stack.depth:
            frame = &stack.frames[stack.depth - 1]
            if frame.next < frame.container.count:
                break
            if frame.used != frame.container.values_size:
                return FAULT_CHILD_SIZE
            if put(out, c'}' if frame.container.ids != NULL else c']') != 0:
                return FAULT_MEMORY
            stack.depth -= 1
        if stack.depth == 0:
            return 0
        if frame.next and put(out, c',') != 0:
            return FAULT_MEMORY
        if frame.container.ids != NULL:
            status = metadata_name(metadata, container_id(&frame.container, frame.next), &name, &length)
            if status == 0:
                status = write_text(out, name, length, names_end, FAULT_METADATA_UTF8)
            if status == 0:
                status = put(out, c':')
            if status == 0 and out.size > 0x7FFFFFFF:
                status = FAULT_TOO_LARGE  # a name can be as long as the metadata, and occur in every object
            if status != 0:
                return status
        status = container_child(&frame.container, frame.next, &p, &limit)
        if status != 0:
            return status
        frame.next += 1


cdef int write_row(
    VariantInput variants, int64_t row, Bytes *out, Stack *stack, int64_t *offset
) noexcept nogil:
    """Append the JSON of a row that is not null. Return 0, or a fault at *offset of the value (-1: of the metadata)."""
    cdef Metadata metadata
    cdef const uint8_t *p
    cdef const uint8_t *where
    cdef size_t n
    cdef int status
    offset[0] = -1
    if not binary_valid(&variants.metadata, row):
        return FAULT_METADATA_NULL
    status = binary_at(&variants.metadata, row, &p, &n)
    if status == 0:
        status = metadata_open(p, n, &metadata)
    if status != 0:
        return status
    if not binary_valid(&variants.value, row):
        return write_word(out, b"null", 4)
    status = binary_at(&variants.value, row, &p, &n)
    if status == 0:
        status = write_value(
            out, stack, &metadata, p, n, variants.value.data + variants.value.data_size,
            variants.metadata.data + variants.metadata.data_size, &where,
        )
        if status != 0:
            offset[0] = where - p
    return status


def write_json(VariantInput variants, int64_t start, int64_t stop, bint display=False, Zone zone=None):
    """Return the JSON of rows `start` to `stop`, with instants in `zone`.

    With `display`, nested values have the text of columns of their type, and a row that is NaN or an infinity is `nan`,
    `inf` or `-inf`, which is not JSON.

    Return (rows, validity, offsets, text, 0, 0, 0), with fewer rows than requested if 32-bit offsets are full. After a
    fault, the last three items are the `Fault`, its row, and its offset in the value (-1: in the metadata).
    """
    cdef TextColumn column
    cdef Bytes text
    cdef Stack stack
    cdef int64_t row = start, offset = -1
    cdef size_t before
    cdef int status = 0
    cdef bint valid
    memset(&column, 0, sizeof(TextColumn))
    memset(&text, 0, sizeof(Bytes))
    memset(&stack, 0, sizeof(Stack))
    stack.display = display
    stack.zone = NULL if zone is None else &zone.table
    if not 0 <= start <= stop <= variants.length:
        raise ValueError(f"rows {start} to {stop} are out of range for {variants.length} rows")
    with nogil:
        while row < stop:
            before = text.size
            stack.start = before
            valid = bit_is_set(variants.validity, variants.offset + row)
            if valid:
                status = write_row(variants, row, &text, &stack, &offset)
                if status == FAULT_TOO_LARGE or (status == 0 and text.size > 0x7FFFFFFF):
                    status = 0
                    text.size = before
                    break
                if status != 0:
                    break
            status = text_column_row(&column, valid, text.size)
            if status != 0:
                break
            row += 1
        free(stack.frames)
    try:
        return row - start, take(&column.validity), take(&column.offsets), take(&text), status, row, offset
    finally:
        bytes_free(&text)
        bytes_free(&column.offsets)
        bytes_free(&column.validity)


include "shredded_json.pxi"
include "json_indent.pxi"
