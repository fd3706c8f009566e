# cython: language_level=3
"""Convert columns and lines of JSON text to Variant binary encoding, or to the columns of a shredding schema.

`json_document` parses a document to a tape, `json_emit` writes its value, and `json_rows` writes the rest of a row;
`json_shred` stores a document in columns instead. They are included in this module, with `json_names`,
`json_dictionaries` and `json_routes`, because separate compilation takes longer.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport FAULT_MEMORY, BinaryInput
from pqext.variant.kernels.json_columns cimport reserve_more

include "json_names.pxi"
include "json_dictionaries.pxi"
include "json_document.pxi"
include "json_emit.pxi"
include "json_rows.pxi"


cdef struct Values:
    Bytes data
    Bytes offsets       # 32 bits each


cdef inline int end_value(Values *values) noexcept nogil:
    cdef int32_t end = <int32_t> values.data.size
    return 0 if bytes_append(&values.offsets, &end, sizeof(int32_t)) == 0 else FAULT_MEMORY


cdef int reserve_rest(const Documents *source, size_t first, Rows *rows, Values *values) noexcept nogil:
    """Reserve the memory for all rows, assuming that the remaining rows are like the first ones, to avoid copies."""
    cdef double times = growth(source, first)
    if reserve_more(&values.data, times) != 0 or reserve_more(&rows.metadata, times) != 0:
        return FAULT_MEMORY
    return 0


cdef int parse_all(Parser *ps, Documents *source, Rows *rows, Values *values, bint stop_at_fault) noexcept nogil:
    """Parse documents until the source ends, a fault stops parsing, or 32-bit offsets are full.

    Return 0 or a negative `Fault`.
    """
    cdef const uint8_t *text
    cdef size_t length, after, first = source.position
    cdef int64_t number
    cdef int kind, status = end_value(values)
    cdef uint32_t size
    if status != 0:
        return status
    while True:
        kind = next_document(source, &text, &length, &number, &after)
        if kind <= 0:
            return kind
        if kind == NULL_ROW:
            status = rows_end(rows, False)
        else:
            status = parse_row(ps, text, length)
            if status == 0:
                size = ps.tape[0].size
                if values.data.size + size > 0x7FFFFFFF or not metadata_fits(rows, ps):
                    return 0
                if bytes_reserve(&values.data, <size_t> size + MARGIN) != 0:
                    return FAULT_MEMORY
                if emit(ps, ps.tape, values.data.data + values.data.size) != 0 or rows_metadata(rows, ps) != 0:
                    return FAULT_MEMORY
                values.data.size += size
                status = rows_end(rows, True)
                if (rows.count == FIRST_ROWS or rows.count == MORE_ROWS) and reserve_rest(source, first, rows, values) != 0:
                    return FAULT_MEMORY
            elif status > 0:
                status = rows_fault(rows, ps, status, number)
                if status != 0 or stop_at_fault:
                    return status
                status = rows_end(rows, False)
        if status == 0:
            status = end_value(values)
        if status != 0:
            return status
        source.position = after
        source.line += 1


cdef object parse_documents(Documents *source, JsonOptions options, uint64_t seed):
    cdef Parser ps
    cdef Rows rows
    cdef Values values
    cdef int status
    memset(&values, 0, sizeof(Values))
    try:
        with nogil:
            status = rows_open(&rows)
            if status == 0:
                status = parser_open(&ps, &options.options, seed)
                if status == 0:
                    status = parse_all(&ps, source, &rows, &values, options.stop_at_fault)
                parser_close(&ps)
        if status == FAULT_MEMORY:
            raise MemoryError("out of memory while parsing JSON")
        if status < 0:
            return status
        return (
            rows.count,
            rows.nulls,
            take(&rows.validity),
            take(&rows.offsets),
            take(&rows.metadata),
            take(&values.offsets),
            take(&values.data),
            take_faults(&rows),
            source.position,
            source.line,
        )
    finally:
        bytes_free(&values.data)
        bytes_free(&values.offsets)
        rows_free(&rows)


def parse_column(BinaryInput column, size_t start, size_t stop, JsonOptions options, uint64_t seed):
    """Parse rows `start` to `stop` of a column of JSON strings.

    Return a negative `Fault`, or (rows, nulls, validity, metadata offsets, metadata, value offsets, value, faults, next
    row, _). Parsing stops before a row that exceeds 32-bit offsets, and at a fault if the options require it. A fault
    is (row, byte offset, `JsonFault`, key or None).
    """
    cdef Documents source
    memset(&source, 0, sizeof(Documents))
    source.column = &column.column
    source.position = start
    source.stop = min(stop, <size_t> column.column.length)
    return parse_documents(&source, options, seed)


def parse_lines(const uint8_t[::1] lines, size_t start, int64_t line, JsonOptions options, uint64_t seed):
    """Parse text of one document per line like `parse_column`, from byte `start` in line number `line`.

    Faults contain lines instead of rows. The last items are the byte and line number at which the next call continues.
    """
    cdef Documents source
    memset(&source, 0, sizeof(Documents))
    source.lines = &lines[0] if lines.shape[0] else NULL
    source.stop = lines.shape[0]
    source.position = start
    source.line = line
    return parse_documents(&source, options, seed)


include "json_shred.pxi"
