# cython: language_level=3
"""Columns and lines of JSON text to the Variant binary encoding.

`json_document` parses a document to a tape, every node of which knows its encoded size; one walk over the
tape writes the value.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memset

from pqext.core.kernels.buffer cimport Bytes, Memory, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    FAULT_ARROW,
    FAULT_MEMORY,
    TYPE_DECIMAL16,
    BinaryColumn,
    BinaryInput,
    binary_at,
    binary_valid,
    write_uint,
)
from pqext.variant.kernels.binary_write cimport write_array_head, write_object_head, write_string_head
from pqext.variant.kernels.json_document cimport (
    JSON_DUPLICATE,
    MARGIN,
    NODE_ARRAY,
    NODE_DECIMAL,
    NODE_FIXED,
    NODE_OBJECT,
    NODE_STRING,
    Node,
    Parser,
    parse_row,
    parser_close,
    parser_open,
)
from pqext.variant.kernels.json_dictionaries cimport merge_sort
from pqext.variant.kernels.json_names cimport Dictionary, key_name, sorting_room
from pqext.variant.kernels.json_text cimport append_digit
from pqext.variant.kernels.scan cimport copy_over, store64


cdef enum:
    DOCUMENT = 1
    NULL_ROW = 2
    FIRST_ROWS = 64     # after which the size of the output is foreseen


# --- Emission ------------------------------------------------------------------------------------

cdef int write_fields(Parser *ps, const Node *node, uint8_t *ids, uint8_t *offsets) noexcept nogil:
    """Write the ids and offsets of an object in a row whose keys have ranks; 0 or FAULT_MEMORY."""
    cdef const Node *child = node + 1
    cdef uint64_t *ordered
    cdef uint32_t *starts
    cdef uint32_t i, at = 0
    cdef size_t id_size = ps.id_size, offset_size = node.header
    if sorting_room(&ps.names, <size_t> node.length * 2) != 0:
        return FAULT_MEMORY
    # Behind the two halves that sorting takes there is room for the children's offsets.
    starts = <uint32_t *> (ps.names.sorting + 2 * <size_t> node.length)
    for i in range(node.length):
        ps.names.sorting[i] = <uint64_t> ps.names.keys[child.key].rank << 32 | i
        starts[i] = at
        at += child.size
        child += child.span
    ordered = merge_sort(&ps.names, node.length, False)
    for i in range(node.length):
        write_uint(ids + i * id_size, <uint32_t> (ordered[i] >> 32), id_size)
        write_uint(offsets + i * offset_size, starts[<uint32_t> ordered[i]], offset_size)
    write_uint(offsets + node.length * offset_size, at, offset_size)
    return 0


cdef inline void write_offsets(const Parser *ps, const Node *node, uint8_t *offsets) noexcept nogil:
    """Write the offsets of an object that has a shape."""
    cdef const uint16_t *order = ps.names.orders + ps.names.shapes[node.payload].order
    cdef const Node *child = node + 1
    cdef uint32_t i, at = 0
    cdef size_t offset_size = node.header
    if offset_size == 1:
        for i in range(node.length):
            offsets[order[i]] = <uint8_t> at
            at += child.size
            child += child.span
    elif offset_size == 2:
        for i in range(node.length):
            write_uint(offsets + 2 * <size_t> order[i], at, 2)
            at += child.size
            child += child.span
    else:
        for i in range(node.length):
            write_uint(offsets + offset_size * order[i], at, offset_size)
            at += child.size
            child += child.span
    write_uint(offsets + offset_size * node.length, at, offset_size)


cdef inline uint8_t *write_array(const Node *node, uint8_t *p) noexcept nogil:
    """Write the head and the offsets of an array; returns where its elements go."""
    cdef const Node *child = node + 1
    cdef uint32_t i, at = 0
    cdef int offset_size = node.header
    p = write_array_head(p, node.length, offset_size)
    for i in range(node.length):
        write_uint(p, at, offset_size)
        p += offset_size
        at += child.size
        child += child.span
    write_uint(p, at, offset_size)
    return p + offset_size


cdef inline uint8_t *write_decimal16(const Node *node, uint8_t *p) noexcept nogil:
    cdef const uint8_t *text = <const uint8_t *> node.payload
    cdef uint64_t high = 0, low = 0
    cdef uint32_t i
    for i in range(node.length):
        if c'0' <= text[i] <= c'9':
            append_digit(&high, &low, text[i] - c'0')
    if text[0] == c'-':
        low = ~low + 1
        high = ~high + (low == 0)
    p[0] = TYPE_DECIMAL16 << 2
    p[1] = node.scale
    store64(p + 2, low)
    store64(p + 10, high)
    return p + 18


cdef int emit(Parser *ps, uint8_t *p) noexcept nogil:
    """Write the tape at p, where the root's size and MARGIN bytes are free; 0 or FAULT_MEMORY."""
    cdef const Node *node = ps.tape
    cdef const Node *end = ps.tape + ps.tape_size
    cdef uint8_t *ids
    cdef size_t id_size = ps.id_size, size
    while node < end:
        if node.kind == NODE_FIXED:
            p[0] = node.header
            store64(p + 1, node.payload)
            p += node.size
        elif node.kind == NODE_STRING:
            p = write_string_head(p, node.length)
            copy_over(p, <const uint8_t *> node.payload, node.length)
            p += node.length
        elif node.kind == NODE_DECIMAL:
            p[0] = node.header
            p[1] = node.scale
            store64(p + 2, node.payload)
            p += node.size
        elif node.kind == NODE_OBJECT:
            size = node.length * id_size
            ids = write_object_head(p, node.length, id_size, node.header)
            p = ids + size + (<size_t> node.length + 1) * <size_t> node.header
            if ps.names.shapeless:
                if write_fields(ps, node, ids, ids + size) != 0:
                    return FAULT_MEMORY
            else:
                copy_over(ids, ps.names.dictionary_ids.data + ps.names.shapes[node.payload].ids, size)
                write_offsets(ps, node, ids + size)
        elif node.kind == NODE_ARRAY:
            p = write_array(node, p)
        else:
            p = write_decimal16(node, p)
        node += 1
    return 0


# --- Columns -------------------------------------------------------------------------------------

cdef struct FaultyRow:
    int64_t row          # row of the column, or line
    int64_t offset
    int64_t name         # offset of a key in fault_names, or -1
    int32_t name_length
    int32_t code


cdef struct Source:
    # Either a column or a buffer of lines.
    const BinaryColumn *column
    const uint8_t *lines
    size_t lines_size
    size_t position      # row or byte that comes next
    int64_t line         # number of the line at position


cdef struct Output:
    Bytes metadata
    Bytes value
    int32_t *metadata_offsets
    int32_t *value_offsets
    uint8_t *validity
    int64_t rows
    int64_t capacity     # rows that there is room for; a multiple of 8
    int64_t nulls
    Bytes faults
    Bytes fault_names


cdef int next_document(
    Source *source, const uint8_t **text, size_t *length, int64_t *number, size_t *after
) noexcept nogil:
    """The next document: DOCUMENT, with its row or line number and the position after it; NULL_ROW; or 0 at the end."""
    cdef const uint8_t *found
    cdef size_t start, stop
    if source.column != NULL:
        if source.position >= <size_t> source.column.length:
            return 0
        number[0] = source.position
        after[0] = source.position + 1
        if not binary_valid(source.column, source.position):
            return NULL_ROW
        if binary_at(source.column, source.position, text, length) != 0:
            return FAULT_ARROW
        return DOCUMENT
    while source.position < source.lines_size:
        start = source.position
        found = <const uint8_t *> memchr(source.lines + start, c'\n', source.lines_size - start)
        stop = found - source.lines if found != NULL else source.lines_size
        after[0] = stop + 1 if found != NULL else stop
        number[0] = source.line
        text[0] = source.lines + start
        # Lines of nothing but space hold no document; a \r before the \n is space to the parser.
        while start < stop and (source.lines[start] == 0x20 or source.lines[start] == 0x0D or source.lines[start] == 0x09):
            start += 1
        if start < stop:
            length[0] = stop - (text[0] - source.lines)
            return DOCUMENT
        source.position = after[0]
        source.line += 1
    return 0


cdef int more_rows(Output *out) noexcept nogil:
    """Make room for further rows; 0 or FAULT_MEMORY."""
    cdef int64_t capacity = out.capacity * 2 if out.capacity else 1024
    cdef void *moved
    moved = realloc(out.metadata_offsets, (capacity + 1) * sizeof(int32_t))
    if moved == NULL:
        return FAULT_MEMORY
    out.metadata_offsets = <int32_t *> moved
    moved = realloc(out.value_offsets, (capacity + 1) * sizeof(int32_t))
    if moved == NULL:
        return FAULT_MEMORY
    out.value_offsets = <int32_t *> moved
    moved = realloc(out.validity, capacity >> 3)
    if moved == NULL:
        return FAULT_MEMORY
    out.validity = <uint8_t *> moved
    memset(out.validity + (out.capacity >> 3), 0, (capacity - out.capacity) >> 3)
    out.capacity = capacity
    return 0


cdef inline void end_row(Output *out, bint valid) noexcept nogil:
    """Complete the row whose metadata and value have been written, or that is null."""
    if valid:
        out.validity[out.rows >> 3] |= <uint8_t> (1 << (out.rows & 7))
    else:
        out.nulls += 1
    out.rows += 1
    out.metadata_offsets[out.rows] = <int32_t> out.metadata.size
    out.value_offsets[out.rows] = <int32_t> out.value.size


cdef int note_fault(Parser *ps, Output *out, int code, int64_t number) noexcept nogil:
    cdef FaultyRow fault
    fault.row = number
    fault.offset = ps.where - ps.text if ps.text != NULL else 0
    fault.name = -1
    fault.name_length = 0
    fault.code = code
    if code == JSON_DUPLICATE:
        fault.name = <int64_t> out.fault_names.size
        fault.name_length = <int32_t> ps.names.keys[ps.fault_key].length
        if bytes_append(&out.fault_names, key_name(&ps.names, ps.fault_key), ps.names.keys[ps.fault_key].length) != 0:
            return FAULT_MEMORY
    return bytes_append(&out.faults, &fault, sizeof(FaultyRow))


cdef int reserve_rest(const Source *source, Output *out) noexcept nogil:
    """Reserve what all rows will take if the rest is like the first: to grow is to copy."""
    cdef double whole = <double> (source.lines_size if source.column == NULL else source.column.length)
    cdef double times = 1.05 * whole / <double> (source.position + 1)
    cdef double value = times * <double> out.value.size
    cdef double metadata = times * <double> out.metadata.size
    if value > 0x7FFFFFFF or metadata > 0x7FFFFFFF:
        return 0
    if bytes_reserve(&out.value, <size_t> value) != 0 or bytes_reserve(&out.metadata, <size_t> metadata) != 0:
        return FAULT_MEMORY
    return 0


cdef int parse_all(Parser *ps, Source *source, Output *out, bint stop_at_fault) noexcept nogil:
    """Parse documents until the source ends, a fault stops, or 32-bit offsets are full; 0 or a negative `Fault`."""
    cdef const uint8_t *text
    cdef size_t length, after
    cdef int64_t number
    cdef int kind, status
    cdef const Dictionary *dictionary
    cdef uint32_t size
    if more_rows(out) != 0:
        return FAULT_MEMORY
    out.metadata_offsets[0] = 0
    out.value_offsets[0] = 0
    while True:
        kind = next_document(source, &text, &length, &number, &after)
        if kind <= 0:
            return kind
        if out.rows == out.capacity and more_rows(out) != 0:
            return FAULT_MEMORY
        if kind == NULL_ROW:
            end_row(out, False)
        else:
            status = parse_row(ps, text, length)
            if status < 0:
                return status
            if status == 0:
                dictionary = ps.names.current
                size = ps.tape[0].size
                if out.value.size + size > 0x7FFFFFFF or out.metadata.size + dictionary.size > 0x7FFFFFFF:
                    return 0
                if bytes_reserve(&out.value, <size_t> size + MARGIN) != 0:
                    return FAULT_MEMORY
                if emit(ps, out.value.data + out.value.size) != 0:
                    return FAULT_MEMORY
                out.value.size += size
                if bytes_reserve(&out.metadata, <size_t> dictionary.size + MARGIN) != 0:
                    return FAULT_MEMORY
                copy_over(
                    out.metadata.data + out.metadata.size,
                    ps.names.dictionary_bytes.data + dictionary.bytes,
                    dictionary.size,
                )
                out.metadata.size += dictionary.size
                end_row(out, True)
                if out.rows == FIRST_ROWS and reserve_rest(source, out) != 0:
                    return FAULT_MEMORY
            else:
                if note_fault(ps, out, status, number) != 0:
                    return FAULT_MEMORY
                if stop_at_fault:
                    return 0
                end_row(out, False)
        source.position = after
        source.line += 1


cdef Memory adopt(void **array, size_t size):
    """Move an array into a `Memory`."""
    cdef Bytes owned
    owned.data = <uint8_t *> array[0]
    owned.size = size
    owned.capacity = size
    array[0] = NULL
    return take(&owned)


cdef object run(Source *source, uint32_t max_depth, int duplicates, uint64_t seed, bint stop_at_fault):
    cdef Parser ps
    cdef Output out
    cdef int status
    cdef int64_t i, count
    cdef const FaultyRow *faults
    memset(&out, 0, sizeof(Output))
    with nogil:
        status = parser_open(&ps, max_depth, duplicates, seed)
        if status == 0:
            status = parse_all(&ps, source, &out, stop_at_fault)
        parser_close(&ps)
    try:
        if status == FAULT_MEMORY:
            raise MemoryError("out of memory while parsing JSON")
        if status < 0:
            return status
        count = <int64_t> (out.faults.size // sizeof(FaultyRow))
        faults = <const FaultyRow *> out.faults.data
        found = []
        for i in range(count):
            name = None
            if faults[i].name >= 0:
                name = PyBytes_FromStringAndSize(
                    <const char *> out.fault_names.data + faults[i].name, faults[i].name_length
                )
            found.append((faults[i].row, faults[i].offset, faults[i].code, name))
        return (
            out.rows,
            out.nulls,
            adopt(<void **> &out.validity, (out.rows + 7) >> 3),
            adopt(<void **> &out.metadata_offsets, (out.rows + 1) * sizeof(int32_t)),
            take(&out.metadata),
            adopt(<void **> &out.value_offsets, (out.rows + 1) * sizeof(int32_t)),
            take(&out.value),
            found,
            source.position,
            source.line,
        )
    finally:
        free(out.metadata_offsets)
        free(out.value_offsets)
        free(out.validity)
        bytes_free(&out.metadata)
        bytes_free(&out.value)
        bytes_free(&out.faults)
        bytes_free(&out.fault_names)


def parse_column(BinaryInput column, size_t start, uint32_t max_depth, int duplicates, uint64_t seed,
                 bint stop_at_fault):
    """Parse rows `start` and on of a column of JSON texts.

    Gives a negative `Fault`, or (rows, nulls, validity, metadata offsets, metadata, value offsets, value,
    faults, next row, _). It stops before a row for which 32-bit offsets do not suffice, and at a fault
    when asked to. A fault is (row, byte offset, `JsonFault`, key or None).
    """
    cdef Source source
    memset(&source, 0, sizeof(Source))
    source.column = &column.column
    source.position = start
    return run(&source, max_depth, duplicates, seed, stop_at_fault)


def parse_lines(const uint8_t[::1] lines, size_t start, int64_t line, uint32_t max_depth, int duplicates,
                uint64_t seed, bint stop_at_fault):
    """As `parse_column` for text of one document a line, from byte `start`, which is on line number `line`.

    Gives lines for rows in faults, and last the byte and the line number where the next call goes on.
    """
    cdef Source source
    memset(&source, 0, sizeof(Source))
    source.lines = &lines[0] if lines.shape[0] else NULL
    source.lines_size = lines.shape[0]
    source.position = start
    source.line = line
    return run(&source, max_depth, duplicates, seed, stop_at_fault)
