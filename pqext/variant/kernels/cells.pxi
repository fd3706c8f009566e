# Cells: positions of values within encoded values, from which nested types are built.
#
# Cells are located by a path, cast, and opened into the cells of their elements or fields, without copying values.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_ARROW, FAULT_CHILD_SIZE, FAULT_FIELD_DUPLICATE, FAULT_FIELD_ORDER, FAULT_MEMORY,
    FAULT_METADATA_NULL, FAULT_METADATA_UTF8, TYPE_NULL, BinaryInput, Container, Metadata, array_open, binary_at,
    binary_valid, bit_is_set, bytes_compare, container_child, container_id, metadata_name, object_open,
)
from pqext.variant.kernels.cast_put cimport Wanted
from pqext.variant.kernels.cast_result cimport Result, pad, put_value, result_free, result_take
from pqext.variant.kernels.find cimport Step, child_size, find_value, open_names
from pqext.variant.kernels.scan cimport utf8_fault
from pqext.variant.kernels.shredding cimport (
    FAULT_TOO_LARGE, Column, bytes_zero_to, column_bytes, column_mark, column_pad,
)

cdef struct Cell:
    const uint8_t *p        # NULL if there is no value
    size_t n                # its exact size
    const uint8_t *start    # start of the enclosing encoded value
    int64_t row             # row of its metadata


cdef class Cells:
    """Values, as positions in the bytes of encoded values."""
    cdef BinaryInput metadata
    cdef object owner       # of the bytes
    cdef Bytes cells
    cdef readonly int64_t count
    cdef int64_t first_row

    def __dealloc__(self):
        bytes_free(&self.cells)

    cdef Cells _child(self):
        cdef Cells child = Cells.__new__(Cells)
        child.metadata = self.metadata
        child.owner = self.owner
        child.first_row = self.first_row
        return child

    cdef inline int _append(self, const uint8_t *p, size_t n, const uint8_t *start, int64_t row) noexcept nogil:
        cdef Cell cell
        cell.p = p
        cell.n = n
        cell.start = start
        cell.row = row
        self.count += 1
        return 0 if bytes_append(&self.cells, &cell, sizeof(Cell)) == 0 else FAULT_MEMORY

    cdef inline int _open(self, int64_t row, Metadata *m, bint *known, Step *steps, int count) noexcept nogil:
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        cdef int status = FAULT_METADATA_NULL
        if binary_valid(&self.metadata.column, row):
            status = binary_at(&self.metadata.column, row, &p, &n)
        return status if status != 0 else open_names(m, known, steps, count, p, n)

    @staticmethod
    def of(BinaryInput metadata, BinaryInput value, object groups, object rows, PathSteps path, int64_t first_row):
        """Return the cells at `path`.

        `rows` is an int64 buffer with the metadata row of each value; None if they are equal.

        The other arguments are those of `get`.
        """
        cdef Cells cells = Cells.__new__(Cells)
        cdef int64_t i = 0, at = 0, count = value.column.length, validity_offset = 0
        cdef const uint8_t *validity = bitmap_of(groups, count, &validity_offset)
        cdef const int64_t *mapped = NULL
        cdef Metadata m
        cdef bint known = False
        cdef const uint8_t *p = NULL
        cdef const uint8_t *start = NULL
        cdef size_t n = 0
        cdef int status = 0
        cdef Step *steps = <Step *> path.step_bytes.data
        cells.metadata = metadata
        cells.owner = value
        cells.first_row = first_row
        memset(&m, 0, sizeof(Metadata))
        if rows is None:
            if metadata.column.length != count:
                raise ValueError("metadata and value must have the same length")
        else:
            if rows.size < count * 8:
                raise ValueError("there must be one row per value")
            mapped = <const int64_t *> <uintptr_t> rows.address
        with nogil:
            if bytes_reserve(&cells.cells, <size_t> count * sizeof(Cell)) != 0:
                status = FAULT_MEMORY
            while i < count and status >= 0:
                at = mapped[i] if mapped != NULL else i
                if not 0 <= at < metadata.column.length:
                    status = FAULT_ARROW
                    break
                status = 0
                p = NULL
                start = NULL
                if bit_is_set(validity, validity_offset + i) and binary_valid(&value.column, i):
                    status = cells._open(at, &m, &known, steps, path.count)
                    if status == 0:
                        status = binary_at(&value.column, i, &p, &n)
                        start = p
                    if status == 0:
                        status = find_value(steps, path.count, &m, &p, &n)
                        if status < 0:
                            break
                if status >= 0:
                    status = cells._append(p if status == 1 else NULL, n, start, at)
                    i += 1
        if status < 0:
            raise_fault(status, first_row + at, start, p)
        return cells

    def find(self, PathSteps path):
        """Return the cells at `path` within these cells."""
        cdef Cells found = self._child()
        cdef Cell *cell = <Cell *> self.cells.data
        cdef Step *steps = <Step *> path.step_bytes.data
        cdef Metadata m
        cdef bint known = False
        cdef const uint8_t *p = NULL
        cdef size_t n = 0
        cdef int64_t i, last = -1
        cdef int status = 0
        memset(&m, 0, sizeof(Metadata))
        with nogil:
            for i in range(self.count):
                status = 0
                p = cell.p
                n = cell.n
                if p != NULL:
                    if cell.row != last:
                        status = self._open(cell.row, &m, &known, steps, path.count)
                        last = cell.row
                    if status == 0:
                        status = find_value(steps, path.count, &m, &p, &n)
                if status < 0:
                    break
                status = found._append(p if status == 1 else NULL, n, cell.start, cell.row)
                if status < 0:
                    break
                cell += 1
        if status < 0:
            raise_fault(status, self.first_row + cell.row, cell.start, p)
        return found

    def cast(self, object described, Zone zone=None):
        """Cast the values of the cells like `get`. The row of the first failure is its metadata row."""
        cdef Wanted wanted
        cdef Result result
        cdef Cell *cell = <Cell *> self.cells.data
        cdef int64_t i
        cdef int status = 0
        describe(&wanted, described, zone)
        memset(&result, 0, sizeof(Result))
        try:
            with nogil:
                for i in range(self.count):
                    if cell.p != NULL:
                        status = put_value(&result, &wanted, i, cell.p, cell.n)
                        if status < 0:
                            break
                    cell += 1
                if status == 0:
                    status = pad(&result.out, self.count, &wanted)
                if status == 0 and result.nested.count:
                    status = pad(&result.nested, self.count, &wanted)
            if status < 0:
                raise_fault(status, self.first_row + cell.row, cell.start, cell.p)
            if result.failures:
                result.first_failure = (<Cell *> self.cells.data)[result.first_failure].row
            return result_take(&result, self.count)
        finally:
            result_free(&result)

    def open(self, bint arrays, bint objects, bint children):
        """Return the elements of cells that are arrays, and the fields of cells that are objects, as requested.

        The result is (validity, nulls, offsets, keys, cells, failures): int32 offsets of the children of each cell, and
        `keys`, (validity, offsets, data) of field names, which are null for elements. Without `children`, only the
        validity is computed. Cells of other types are null, and a failure unless they are a variant null.
        """
        cdef Cells found = self._child()
        cdef Cell *cell = <Cell *> self.cells.data
        cdef Metadata m
        cdef bint known = False, wanted
        cdef int64_t i, last = -1, failures = 0, first_failure = 0
        cdef int32_t end
        cdef int basic, status = 0
        cdef Column valid, keys
        cdef Bytes offsets
        cdef const uint8_t *fault = NULL
        memset(&m, 0, sizeof(Metadata))
        memset(&valid, 0, sizeof(Column))
        memset(&keys, 0, sizeof(Column))
        memset(&offsets, 0, sizeof(Bytes))
        try:
            with nogil:
                for i in range(self.count):
                    end = <int32_t> found.count
                    if children and bytes_append(&offsets, &end, 4) != 0:
                        status = FAULT_MEMORY
                    if status == 0 and cell.p != NULL:
                        basic = cell.p[0] & 3
                        wanted = (arrays and basic == BASIC_ARRAY) or (objects and basic == BASIC_OBJECT)
                        if wanted:
                            status = column_mark(&valid, i)
                            if status == 0 and children and objects and cell.row != last:
                                status = self._open(cell.row, &m, &known, NULL, 0)
                                last = cell.row
                            if status == 0 and children:
                                fault = cell.p
                                status = found._open_cell(cell, &m, &keys, &fault)
                        elif cell.p[0] != TYPE_NULL:
                            if failures == 0:
                                first_failure = cell.row
                            failures += 1
                    if status != 0:
                        break
                    cell += 1
                end = <int32_t> found.count
                if status == 0 and children and bytes_append(&offsets, &end, 4) != 0:
                    status = FAULT_MEMORY
                if status == 0:
                    status = bytes_zero_to(&valid.validity, <size_t> ((self.count + 7) // 8))
                if status == 0 and objects and children:
                    status = bytes_zero_to(&keys.validity, <size_t> ((found.count + 7) // 8))
                if status == 0 and objects and children:
                    status = column_pad(&keys, found.count)
            if status != 0:
                raise_fault(status, self.first_row + cell.row, cell.start, fault)
            return (
                take(&valid.validity), self.count - valid.count, take(&offsets),
                (take(&keys.validity), take(&keys.offsets), take(&keys.data)), found, (failures, first_failure),
            )
        finally:
            bytes_free(&valid.validity)
            bytes_free(&keys.validity)
            bytes_free(&keys.offsets)
            bytes_free(&keys.data)
            bytes_free(&offsets)

    cdef int _open_cell(
        self, const Cell *cell, const Metadata *m, Column *keys, const uint8_t **fault
    ) noexcept nogil:
        """Append the children of a container, which must fill it: otherwise values that share bytes could expand
        without limit.
        """
        cdef Container c
        cdef bint is_object = cell.p[0] & 3 == BASIC_OBJECT
        cdef int status = object_open(cell.p, cell.n, &c) if is_object else array_open(cell.p, cell.n, &c)
        cdef size_t total = 0, limit = 0, length = 0, previous_length = 0
        cdef const uint8_t *p = NULL
        cdef const uint8_t *name = NULL
        cdef const uint8_t *previous = NULL
        cdef int64_t size
        cdef uint32_t i
        if status != 0:
            return status
        if c.count > c.values_size:
            return FAULT_CHILD_SIZE
        if self.count + c.count > 0x7FFFFFFF:
            return FAULT_TOO_LARGE
        for i in range(c.count):
            if is_object:
                status = metadata_name(m, container_id(&c, i), &name, &length)
                if status == 0 and utf8_fault(name, length) >= 0:
                    status = FAULT_METADATA_UTF8
                if status == 0 and i:
                    status = bytes_compare(previous, previous_length, name, length)
                    status = 0 if status < 0 else FAULT_FIELD_DUPLICATE if status == 0 else FAULT_FIELD_ORDER
                previous = name
                previous_length = length
                if status == 0:
                    status = column_bytes(keys, self.count, name, length)
                if status != 0:
                    return status
            status = container_child(&c, i, &p, &limit)
            if status != 0:
                return status
            size = child_size(&c, p, limit)
            if size < 0:
                fault[0] = p
                return <int> size
            total += <size_t> size
            if total > c.values_size:
                return FAULT_CHILD_SIZE
            if self._append(p, <size_t> size, cell.start, cell.row) != 0:
                return FAULT_MEMORY
        return 0 if total == c.values_size else FAULT_CHILD_SIZE

    def rows(self):
        """Return the metadata row of each cell, as int64."""
        cdef Bytes rows
        cdef Cell *cell = <Cell *> self.cells.data
        cdef int64_t i
        cdef int status = 0
        memset(&rows, 0, sizeof(Bytes))
        try:
            with nogil:
                for i in range(self.count):
                    if bytes_append(&rows, &cell.row, 8) != 0:
                        status = FAULT_MEMORY
                        break
                    cell += 1
            if status != 0:
                raise MemoryError
            return take(&rows)
        finally:
            bytes_free(&rows)
