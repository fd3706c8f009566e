# cython: language_level=3
# Following a path from value to value.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_UNKNOWN_TYPE, FAULT_VALUE_TRAILING, FAULT_VALUE_TRUNCATED, Container, Metadata,
    array_open, bytes_compare, container_child, container_id, container_offset, metadata_find, metadata_name,
    metadata_open, object_field, object_open, value_size,
)


cdef struct Step:
    bint is_index
    int64_t index        # counted from the end if negative
    const uint8_t *name
    size_t length
    int64_t id           # of the name in the current dictionary, when that is sorted; its size when it is absent


cdef inline int _field_by_id(const Container *c, uint32_t id, const uint8_t **p, size_t *limit) noexcept nogil:
    """Find a field by its id in a sorted dictionary, in which ids have the order of names.

    Return 1, 0 if it is absent, or a fault.
    """
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


cdef inline int64_t child_size(const Container *c, const uint8_t *p, size_t limit) noexcept nogil:
    """Return the size of the child at `p`, `limit` bytes before the end of the container.

    An unknown primitive extends to the next child.
    """
    cdef int64_t size = value_size(p, limit)
    cdef size_t next = limit, at = <size_t> (p - c.values), other
    cdef uint32_t i
    if size != FAULT_UNKNOWN_TYPE:
        return size
    for i in range(c.count):
        other = container_offset(c, i)
        if other > at and other - at < next:
            next = other - at
    return <int64_t> next


cdef inline int find_value(
    const Step *steps, int count, const Metadata *m, const uint8_t **p, size_t *n
) noexcept nogil:
    """Follow the path from the value of `n` bytes at `p`: 1 with the value, 0 if it is missing, or a fault.

    After a fault, `p` is the value that has the fault.
    """
    cdef Container container
    cdef const uint8_t *at
    cdef size_t limit = n[0]
    cdef int64_t size, index
    cdef int i, status
    for i in range(count):
        if limit < 1:
            return FAULT_VALUE_TRUNCATED
        at = p[0]
        if steps[i].is_index:
            if at[0] & 3 != BASIC_ARRAY:
                return 0
            status = array_open(at, limit, &container)
            if status == 0 and i == 0 and container.total_size != limit:
                status = FAULT_VALUE_TRAILING
            if status != 0:
                return status
            index = steps[i].index
            if index < 0:
                index += container.count
            if index < 0 or index >= container.count:
                return 0
            status = container_child(&container, <uint32_t> index, p, &limit)
            if status != 0:
                return status
            continue
        if at[0] & 3 != BASIC_OBJECT:
            return 0
        status = object_open(at, limit, &container)
        if status == 0 and i == 0 and container.total_size != limit:
            status = FAULT_VALUE_TRAILING
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
    if count:
        size = child_size(&container, p[0], limit)
    else:
        size = value_size(p[0], limit)
        if size == FAULT_UNKNOWN_TYPE:
            size = <int64_t> limit
        elif size >= 0 and <size_t> size != limit:
            return FAULT_VALUE_TRAILING
    if size < 0:
        return <int> size
    n[0] = <size_t> size
    return 1


cdef inline bint names_ascend(const Metadata *m) noexcept nogil:
    """Return whether the names of a dictionary ascend as its flag states. Some writers set the flag on unsorted names.
    """
    cdef const uint8_t *name = NULL
    cdef const uint8_t *before = NULL
    cdef size_t length = 0, before_length = 0
    cdef uint32_t id
    for id in range(m.count):
        if metadata_name(m, id, &name, &length) != 0:
            return False
        if id and bytes_compare(before, before_length, name, length) >= 0:
            return False
        before, before_length = name, length
    return True


cdef inline int open_names(
    Metadata *m, bint *known, Step *steps, int count, const uint8_t *p, size_t n
) noexcept nogil:
    """Set `p` as the current metadata, and look up the names of the path in it. Return 0 or a fault."""
    cdef int status, i
    if known[0] and m.size == n and (m.data == p or memcmp(m.data, p, n) == 0):
        return 0
    known[0] = False
    status = metadata_open(p, n, m)
    if status != 0:
        return status
    m.sorted = m.sorted and names_ascend(m)
    if m.sorted:
        for i in range(count):
            if not steps[i].is_index:
                steps[i].id = metadata_find(m, steps[i].name, steps[i].length)
                if steps[i].id < 0:
                    return <int> steps[i].id
    known[0] = True
    return 0
