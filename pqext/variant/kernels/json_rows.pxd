# cython: language_level=3
# What parsing a column or lines of JSON has in common whatever is made of it: documents one after the other, and
# of each row its metadata, whether it is null, and what was wrong with it.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY, BinaryColumn
from pqext.variant.kernels.json_document cimport MARGIN, Parser, ParserOptions
from pqext.variant.kernels.json_names cimport Dictionary
from pqext.variant.kernels.scan cimport copy_over


cdef enum:
    DOCUMENT = 1
    NULL_ROW = 2
    FIRST_ROWS = 64     # after which the size of the output is foreseen, and again after
    MORE_ROWS = 2048


cdef struct FaultyRow:
    int64_t row          # row of the column, or line
    int64_t offset
    int64_t name         # offset of a key in fault_names, or -1
    int32_t name_length
    int32_t code


cdef struct Documents:
    # Either a column or a buffer of lines.
    const BinaryColumn *column
    const uint8_t *lines
    size_t position      # row or byte that comes next
    size_t stop          # row or byte before which the last document begins
    int64_t line         # number of the line at position


cdef struct Rows:
    Bytes metadata
    Bytes offsets        # of the metadata, 32 bits each
    Bytes validity
    int64_t count
    int64_t nulls
    Bytes faults
    Bytes fault_names


cdef class JsonOptions:
    """How documents are parsed."""
    cdef ParserOptions options
    cdef bint stop_at_fault


cdef int next_document(
    Documents *source, const uint8_t **text, size_t *length, int64_t *number, size_t *after
) noexcept nogil
cdef int rows_open(Rows *rows) noexcept nogil
cdef void rows_free(Rows *rows) noexcept nogil
cdef int rows_fault(Rows *rows, const Parser *ps, int code, int64_t number) noexcept nogil
cdef list take_faults(Rows *rows)


cdef inline int rows_end(Rows *rows, bint valid) noexcept nogil:
    """Complete the row whose metadata has been written, or that is null; 0 or FAULT_MEMORY."""
    cdef int32_t end = <int32_t> rows.metadata.size
    cdef uint8_t zero = 0
    if rows.count & 7 == 0 and bytes_append(&rows.validity, &zero, 1) != 0:
        return FAULT_MEMORY
    if valid:
        rows.validity.data[rows.count >> 3] |= <uint8_t> (1 << (rows.count & 7))
    else:
        rows.nulls += 1
    rows.count += 1
    return 0 if bytes_append(&rows.offsets, &end, sizeof(int32_t)) == 0 else FAULT_MEMORY


cdef inline int rows_metadata(Rows *rows, const Parser *ps) noexcept nogil:
    """Write the metadata of the document just parsed; 0 or FAULT_MEMORY."""
    cdef const Dictionary *dictionary = ps.names.current
    if bytes_reserve(&rows.metadata, <size_t> dictionary.size + MARGIN) != 0:
        return FAULT_MEMORY
    copy_over(
        rows.metadata.data + rows.metadata.size, ps.names.dictionary_bytes.data + dictionary.bytes, dictionary.size
    )
    rows.metadata.size += dictionary.size
    return 0


cdef inline bint metadata_fits(const Rows *rows, const Parser *ps) noexcept nogil:
    return rows.metadata.size + ps.names.current.size <= 0x7FFFFFFF


cdef inline double growth(const Documents *source, size_t first) noexcept nogil:
    """How many times what the documents from `first` to the present one took all will take if the rest is alike."""
    cdef const BinaryColumn *column = source.column
    cdef double start, now, end
    if column == NULL:
        start = <double> first
        now = <double> source.position
        end = <double> source.stop
    elif column.offsets32 != NULL:
        start = column.offsets32[column.offset + <int64_t> first]
        now = column.offsets32[column.offset + <int64_t> source.position]
        end = column.offsets32[column.offset + <int64_t> source.stop]
    else:
        start = <double> column.offsets64[column.offset + <int64_t> first]
        now = <double> column.offsets64[column.offset + <int64_t> source.position]
        end = <double> column.offsets64[column.offset + <int64_t> source.stop]
    if column != NULL and end > <double> column.data_size:
        end = <double> column.data_size
    return 1.05 * (end - start) / (now - start) if end > now > start else 1.0
