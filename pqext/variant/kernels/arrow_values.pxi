# Rows of Arrow columns, nested in any way, as variants.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pqext.core.kernels.buffer cimport bytes_free
from pqext.variant.kernels.binary cimport (
    FAULT_ARROW, FAULT_METADATA_NULL, FAULT_METADATA_UTF8, FAULT_VALUE_NULL, BinaryColumn, BinaryInput, binary_at,
    binary_valid, bit_is_set,
)
from pqext.variant.kernels.edit cimport (
    NO_NAME, PIECE_ARRAY, PIECE_OBJECT, Composer, Names, Written, begin, composer_free, composer_next, end, intern_name,
    open_row_names, put_leaf, put_null, put_value, write_null, write_row, written_free, written_take,
)
from pqext.variant.kernels.scan cimport utf8_fault

from pqext.variant import faults


cpdef enum Form:
    FORM_LEAF = 0           # encoded primitives
    FORM_VARIANT = 1
    FORM_STRUCT = 2
    FORM_LIST = 3
    FORM_MAP = 4


cdef struct Part:
    int form
    const uint8_t *validity     # NULL: no nulls
    int64_t offset
    const int32_t *offsets32    # lists and maps: one of both is set, or neither if lists have `width` elements
    const int64_t *offsets64
    int64_t width
    int64_t length              # number of children of lists and maps
    BinaryColumn bytes          # leaves; keys of maps; values of variants
    BinaryColumn metadata
    Names names
    int first
    int count
    uint32_t name


cdef class ArrowRows:
    """Tree of columns, parents first (`pqext.variant.conversion.columns`)."""
    cdef Part *parts
    cdef int count
    cdef Composer c
    cdef bint keep_nulls
    cdef list held

    def __cinit__(self, list described, bint keep_nulls):
        cdef Part *part
        cdef int64_t name
        cdef bytes text
        cdef BinaryInput column
        memset(&self.c, 0, sizeof(Composer))
        self.keep_nulls = keep_nulls
        self.held = described
        self.count = len(described)
        self.parts = <Part *> calloc(self.count, sizeof(Part))
        if self.parts == NULL:
            raise MemoryError
        part = self.parts
        for form, field, validity, offset, offsets, wide, width, length, columns, first, count in described:
            part.form = form
            part.offset = offset
            part.first = first
            part.count = count
            part.width = width
            part.length = length
            part.name = NO_NAME
            if field is not None:
                text = field
                name = intern_name(&self.c, <const uint8_t *> text, len(text))
                if name < 0:
                    raise MemoryError
                part.name = <uint32_t> name
            if validity is not None:
                part.validity = <const uint8_t *> <uintptr_t> validity.address
            if offsets is not None and wide:
                part.offsets64 = <const int64_t *> <uintptr_t> offsets.address
            elif offsets is not None:
                part.offsets32 = <const int32_t *> <uintptr_t> offsets.address
            if columns:
                column = columns[0]
                part.bytes = column.column
            if len(columns) > 1:
                column = columns[1]
                part.metadata = column.column
            part += 1

    def __dealloc__(self):
        cdef int i
        composer_free(&self.c)
        if self.parts != NULL:
            for i in range(self.count):
                bytes_free(&self.parts[i].names.ids)
        free(self.parts)

    cdef int bounds(self, const Part *part, int64_t row, int64_t *start, int64_t *stop) noexcept nogil:
        """Find the elements of a list or map in `start` and `stop`. Return 0 or FAULT_ARROW."""
        if part.offsets32 != NULL:
            start[0] = part.offsets32[part.offset + row]
            stop[0] = part.offsets32[part.offset + row + 1]
        elif part.offsets64 != NULL:
            start[0] = part.offsets64[part.offset + row]
            stop[0] = part.offsets64[part.offset + row + 1]
        else:
            start[0] = (part.offset + row) * part.width
            stop[0] = start[0] + part.width
        return 0 if 0 <= start[0] <= stop[0] <= part.length else FAULT_ARROW

    cdef bint is_null(self, const Part *part, int64_t row) noexcept nogil:
        return not bit_is_set(part.validity, part.offset + row)

    cdef int put(self, Part *part, int64_t row) noexcept nogil:
        """Add the value of a row that is not null. Return 0 or a fault."""
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        cdef int64_t start = 0, stop = 0, i, name
        cdef int status, k
        cdef Part *child
        if part.form == FORM_LEAF:
            status = binary_at(&part.bytes, row, &p, &n)
            return status if status != 0 else put_leaf(&self.c, p, n)
        if part.form == FORM_VARIANT:
            status = FAULT_METADATA_NULL
            if binary_valid(&part.metadata, row):
                status = binary_at(&part.metadata, row, &p, &n)
            if status == 0:
                status = open_row_names(&part.names, p, n)
            if status == 0:
                status = FAULT_VALUE_NULL
                if binary_valid(&part.bytes, row):
                    status = binary_at(&part.bytes, row, &p, &n)
            return status if status != 0 else put_value(&self.c, &part.names, p, n, 0)
        if part.form == FORM_STRUCT:
            status = begin(&self.c, PIECE_OBJECT)
            k = part.first
            while status == 0 and k < part.first + part.count:
                child = self.parts + k
                k += 1
                if not self.is_null(child, row):
                    self.c.next_name = child.name
                    status = self.put(child, row)
                elif self.keep_nulls:
                    self.c.next_name = child.name
                    status = put_null(&self.c)
            return status if status != 0 else end(&self.c, True)
        status = self.bounds(part, row, &start, &stop)
        child = self.parts + part.first
        if status == 0:
            status = begin(&self.c, PIECE_ARRAY if part.form == FORM_LIST else PIECE_OBJECT)
        if status != 0:
            return status
        for i in range(start, stop):
            if part.form == FORM_MAP:
                if self.is_null(child, i) and not self.keep_nulls:
                    continue
                status = binary_at(&part.bytes, i, &p, &n)
                if status == 0 and utf8_fault(p, n) >= 0:
                    status = FAULT_METADATA_UTF8
                if status != 0:
                    return status
                name = intern_name(&self.c, p, n)
                if name < 0:
                    return <int> name
                self.c.next_name = <uint32_t> name
            status = put_null(&self.c) if self.is_null(child, i) else self.put(child, i)
            if status != 0:
                return status
        return end(&self.c, False)

    def rows(self, int64_t start, int64_t stop, int64_t first_row):
        """Return rows from `start` up to `stop`, or until columns with 32-bit offsets are full, in the format of
        `edit`.
        """
        cdef Written w
        cdef int64_t row = start
        cdef int status = 0
        memset(&w, 0, sizeof(Written))
        try:
            with nogil:
                while row < stop:
                    if self.is_null(self.parts, row):
                        status = write_null(&w)
                    else:
                        composer_next(&self.c)
                        status = self.put(self.parts, row)
                        if status == 0:
                            status = write_row(&self.c, &w)
                    if status != 0:
                        break
                    row += 1
            if status < 0:
                raise faults.error(status, row=first_row + row)
            return written_take(&w)
        finally:
            written_free(&w)
