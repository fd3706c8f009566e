# cython: language_level=3, cdivision=True
"""The value at a path of every variant, cast to one type, in one pass."""
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memcmp, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, take
from pqext.variant.kernels.binary cimport *
from pqext.variant.kernels.cast cimport *
from pqext.variant.kernels.exact cimport LEAF_BINARY, LEAF_STRING, leaf_width
from pqext.variant.kernels.shredding cimport Column, bytes_zero_to, column_bytes, column_pad
from pqext.variant.kernels.text cimport text_open
from pqext.variant.kernels.text_write cimport fill_powers

if text_open() != 0:
    raise MemoryError
fill_powers()


cpdef enum Target:
    TARGET_VARIANT = TARGET_VARIANT_LEAF

# --- Paths ---------------------------------------------------------------------------------------

cdef struct Step:
    bint is_index
    uint32_t index
    const uint8_t *name
    size_t length
    int64_t id           # of the name in the current dictionary, when that is sorted; its size when it is absent


cdef class PathSteps:
    """The steps of a path for the kernel."""
    cdef Bytes step_bytes
    cdef list names
    cdef int count

    def __init__(self, path):
        cdef Step step
        cdef bytes name
        self.names = []
        self.count = len(path)
        for part in path:
            memset(&step, 0, sizeof(Step))
            if isinstance(part, str):
                name = part.encode("utf-8", "surrogatepass")
                self.names.append(name)
                step.name = <const uint8_t *> name
                step.length = len(name)
            else:
                step.is_index = True
                step.index = part
            if bytes_append(&self.step_bytes, &step, sizeof(Step)) != 0:
                raise MemoryError

    def __dealloc__(self):
        bytes_free(&self.step_bytes)


cdef inline int _field_by_id(const Container *c, uint32_t id, const uint8_t **p, size_t *limit) noexcept nogil:
    """Find a field by its id in a sorted dictionary, where ids ascend as names do."""
    cdef uint32_t low = 0, high = c.count, middle, other
    cdef int status
    while low < high:
        middle = low + (high - low) // 2
        other = container_id(c, middle)
        if other == id:
            status = container_child(c, middle, p, limit)
            return 1 if status == 0 else status
        if other < id:
            low = middle + 1
        else:
            high = middle
    return 0


cdef int _find(
    const Step *steps, int count, const Metadata *m, const uint8_t **p, size_t *n
) noexcept nogil:
    """Follow the path from the value at `p`: 1 with the value there, 0 when there is none, or a fault."""
    cdef Container container
    cdef size_t limit = n[0]
    cdef int64_t size
    cdef int i, status
    for i in range(count):
        if limit < 1:
            return FAULT_VALUE_TRUNCATED
        if steps[i].is_index:
            if p[0][0] & 3 != BASIC_ARRAY:
                return 0
            status = array_open(p[0], limit, &container)
            if status != 0:
                return status
            if steps[i].index >= container.count:
                return 0
            status = container_child(&container, steps[i].index, p, &limit)
            if status != 0:
                return status
            continue
        if p[0][0] & 3 != BASIC_OBJECT:
            return 0
        status = object_open(p[0], limit, &container)
        if status != 0:
            return status
        if not m.sorted:
            status = object_field(&container, m, steps[i].name, steps[i].length, p, &limit)
        elif steps[i].id == m.count:
            return 0
        else:
            status = _field_by_id(&container, <uint32_t> steps[i].id, p, &limit)
        if status != 1:
            return status
    size = value_size(p[0], limit)
    if size < 0:
        return <int> size
    n[0] = <size_t> size
    return 1


cdef int _open(Metadata *m, bint *known, Step *steps, int count, const uint8_t *p, size_t n) noexcept nogil:
    """Make `p` the current metadata and look up the names of the path in it."""
    cdef int status, i
    if known[0] and m.size == n and memcmp(m.data, p, n) == 0:
        return 0
    known[0] = False
    status = metadata_open(p, n, m)
    if status != 0:
        return status
    if m.sorted:
        for i in range(count):
            if not steps[i].is_index:
                steps[i].id = metadata_find(m, steps[i].name, steps[i].length)
                if steps[i].id < 0:
                    return <int> steps[i].id
    known[0] = True
    return 0


def get(BinaryInput metadata, BinaryInput value, object groups, PathSteps path, int leaf, int precision, int scale):
    """Cast the value at `path` of every row.

    `groups`: (bitmap buffer, offset) of the struct's validity, or None. Null rows and rows whose value is
    null are null. Returns (status, row, validity, nulls, offsets, data, failures, json): `failures` is
    (how many values did not cast, the first one's row, its header byte); `json` is (validity, offsets, data) of
    a binary column of the objects and arrays asked as text, which are null so far; None when there are none.
    """
    cdef Wanted wanted
    cdef Column out, nested
    cdef Metadata m
    cdef bint known = False
    cdef Step *steps = <Step *> path.step_bytes.data
    cdef const uint8_t *p = NULL
    cdef const uint8_t *validity = NULL
    cdef int64_t validity_offset = 0, row = 0, rows = value.column.length
    cdef int64_t failures = 0, first_failure = -1
    cdef int first_header = 0
    cdef size_t n = 0, width
    cdef int status = 0
    if metadata.column.length != rows:
        raise ValueError("metadata and value differ in length")
    if groups is not None:
        bitmap, validity_offset = groups
        if bitmap.size * 8 < validity_offset + rows:
            raise ValueError("the array's validity buffer is too short")
        validity = <const uint8_t *> <uintptr_t> bitmap.address
    wanted.leaf = leaf
    wanted.precision = precision
    wanted.scale = scale
    memset(&out, 0, sizeof(Column))
    memset(&nested, 0, sizeof(Column))
    memset(&m, 0, sizeof(Metadata))
    try:
        with nogil:
            while row < rows:
                if bit_is_set(validity, validity_offset + row) and binary_valid(&value.column, row):
                    status = FAULT_METADATA_NULL
                    if binary_valid(&metadata.column, row):
                        status = binary_at(&metadata.column, row, &p, &n)
                    if status == 0:
                        status = _open(&m, &known, steps, path.count, p, n)
                    if status == 0:
                        status = binary_at(&value.column, row, &p, &n)
                    if status != 0:
                        break
                    status = _find(steps, path.count, &m, &p, &n)
                    if status < 0:
                        break
                    if status == 1:
                        status = cast_value(&wanted, &out, row, p, n)
                        if status < 0:
                            break
                        if status == CAST_FAILED:
                            failures += 1
                            if first_failure < 0:
                                first_failure = row
                                first_header = p[0]
                        elif status == CAST_JSON:
                            status = column_bytes(&nested, row, p, n)
                            if status != 0:
                                break
                row += 1
            if status > 0:
                status = 0
            if status == 0:
                status = bytes_zero_to(&out.validity, <size_t> ((rows + 7) // 8))
            if status == 0 and nested.count:
                status = column_pad(&nested, rows)
                if status == 0:
                    status = bytes_zero_to(&nested.validity, <size_t> ((rows + 7) // 8))
            if status == 0:
                if leaf == LEAF_STRING or leaf == LEAF_BINARY or leaf == TARGET_VARIANT:
                    status = column_pad(&out, rows)
                else:
                    width = leaf_width(leaf)
                    status = bytes_zero_to(&out.data, <size_t> rows * width if width else <size_t> ((rows + 7) // 8))
        if status != 0:
            return status, row, None, 0, None, None, None, None
        return (
            0, -1, take(&out.validity), rows - out.count, take(&out.offsets), take(&out.data),
            (failures, first_failure, first_header),
            (take(&nested.validity), take(&nested.offsets), take(&nested.data)) if nested.count else None,
        )
    finally:
        bytes_free(&out.validity)
        bytes_free(&out.offsets)
        bytes_free(&out.data)
        bytes_free(&nested.validity)
        bytes_free(&nested.offsets)
        bytes_free(&nested.data)
