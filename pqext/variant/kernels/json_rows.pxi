# Columns and lines of JSON text, document by document, and what all that is made of them has in common.
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memchr, memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free
from pqext.variant.kernels.binary cimport FAULT_ARROW, FAULT_MEMORY, binary_at, binary_valid


cdef class JsonOptions:
    def __init__(self, max_depth, max_bytes, duplicates, doubles, stop_at_fault):
        self.options.max_depth = max_depth
        self.options.max_bytes = max_bytes
        self.options.duplicates = duplicates
        self.options.doubles = doubles
        self.stop_at_fault = stop_at_fault

    def tolerant(self):
        """Return a copy of these options that continues after faults."""
        cdef JsonOptions other = JsonOptions.__new__(JsonOptions)
        other.options = self.options
        return other


cdef int next_document(
    Documents *source, const uint8_t **text, size_t *length, int64_t *number, size_t *after
) noexcept nogil:
    """Find the next document: DOCUMENT, with its row or line number and the position after it; NULL_ROW; 0 at the end.
    """
    cdef const uint8_t *found
    cdef const uint8_t *p
    cdef const uint8_t *end
    if source.column != NULL:
        if source.position >= source.stop:
            return 0
        number[0] = source.position
        after[0] = source.position + 1
        if not binary_valid(source.column, source.position):
            return NULL_ROW
        if binary_at(source.column, source.position, text, length) != 0:
            return FAULT_ARROW
        return DOCUMENT
    while source.position < source.stop:
        p = source.lines + source.position
        found = <const uint8_t *> memchr(p, c'\n', source.stop - source.position)
        end = found if found != NULL else source.lines + source.stop
        after[0] = end - source.lines + (found != NULL)
        number[0] = source.line
        text[0] = p
        length[0] = end - p
        # Blank lines contain no document; to the parser, a \r before the \n is white space.
        while p < end and (p[0] == 0x20 or p[0] == 0x0D or p[0] == 0x09):
            p += 1
        if p < end:
            return DOCUMENT
        source.position = after[0]
        source.line += 1
    return 0


cdef int rows_open(Rows *rows) noexcept nogil:
    """Initialise without rows. Return 0 or FAULT_MEMORY; in both cases `rows_free` must be called."""
    cdef int32_t zero = 0
    memset(rows, 0, sizeof(Rows))
    return 0 if bytes_append(&rows.offsets, &zero, sizeof(int32_t)) == 0 else FAULT_MEMORY


cdef void rows_free(Rows *rows) noexcept nogil:
    bytes_free(&rows.metadata)
    bytes_free(&rows.offsets)
    bytes_free(&rows.validity)
    bytes_free(&rows.faults)
    bytes_free(&rows.fault_names)


cdef int rows_fault(Rows *rows, const Parser *ps, int code, int64_t number) noexcept nogil:
    """Record the fault of a document. Return 0 or FAULT_MEMORY."""
    cdef FaultyRow fault
    cdef size_t length
    fault.row = number
    fault.offset = ps.where - ps.text if ps.text != NULL else 0
    fault.name = -1
    fault.name_length = 0
    fault.code = code
    if code == JSON_DUPLICATE:
        length = ps.names.keys[ps.fault_key].length
        fault.name = <int64_t> rows.fault_names.size
        fault.name_length = <int32_t> length
        if bytes_append(&rows.fault_names, key_name(&ps.names, ps.fault_key), length) != 0:
            return FAULT_MEMORY
    return 0 if bytes_append(&rows.faults, &fault, sizeof(FaultyRow)) == 0 else FAULT_MEMORY


cdef list take_faults(Rows *rows):
    """Return the faults as (row or line, byte offset, `JsonFault`, key or None)."""
    cdef const FaultyRow *faults = <const FaultyRow *> rows.faults.data
    cdef list found = []
    cdef size_t i
    for i in range(rows.faults.size // sizeof(FaultyRow)):
        name = None
        if faults[i].name >= 0:
            name = PyBytes_FromStringAndSize(
                <const char *> rows.fault_names.data + faults[i].name, faults[i].name_length
            )
        found.append((faults[i].row, faults[i].offset, faults[i].code, name))
    return found
