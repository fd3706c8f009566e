# cython: language_level=3, cdivision=True
"""Check every rule of the Variant binary encoding on complete columns.

`accept` passes values that are certainly valid. For all other values this file finds the violated rule. `examine` does
this for shredded columns.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memset

from pqext.variant.kernels.binary cimport (
    BASIC_OBJECT, BASIC_PRIMITIVE, BASIC_SHORT_STRING, FAULT_CHILD_OFFSET, FAULT_CHILD_SIZE, FAULT_DECIMAL_PRECISION,
    FAULT_DECIMAL_SCALE, FAULT_DEPTH, FAULT_FIELD_DUPLICATE, FAULT_FIELD_ID, FAULT_FIELD_ORDER, FAULT_MEMORY,
    FAULT_METADATA_NULL, FAULT_METADATA_OFFSETS, FAULT_METADATA_ORDER, FAULT_METADATA_UTF8, FAULT_STRING_UTF8,
    FAULT_TIME, FAULT_UNKNOWN_TYPE, FAULT_VALUE_NULL, FAULT_VALUE_TRAILING, FAULT_VALUE_TRUNCATED, TYPE_DECIMAL16,
    TYPE_DECIMAL4, TYPE_DECIMAL8, TYPE_STRING, TYPE_TIME_NTZ, Container, Metadata, VariantInput, array_open, binary_at,
    binary_valid, bit_is_set, bytes_compare, container_id, container_offset, metadata_name, metadata_open, object_open,
    read_uint, read_uint64, value_size,
)
from pqext.variant.kernels.scan cimport is_ascii, utf8_fault

include "accept.pxi"


cdef struct Pending:
    # A container whose header has not been inspected.
    const uint8_t *p
    size_t size
    uint32_t depth


cdef struct Work:
    Pending *stack
    size_t count
    size_t capacity
    uint64_t *order         # offset << 32 | child; room for twice as many as children
    size_t order_capacity
    uint32_t max_depth
    bint allow_unknown
    # The last metadata that was found to be valid
    const uint8_t *known
    size_t known_size
    Acceptance acceptance
    const uint8_t *where    # position of a fault
    bint in_metadata


cdef int room_for_order(Work *work, size_t count) noexcept nogil:
    cdef uint64_t *moved
    if count * 2 > work.order_capacity:
        moved = <uint64_t *> realloc(work.order, count * 4 * sizeof(uint64_t))
        if moved == NULL:
            return FAULT_MEMORY
        work.order = moved
        work.order_capacity = count * 4
    return 0


cdef int postpone(Work *work, const uint8_t *p, size_t size, uint32_t depth) noexcept nogil:
    cdef Pending *moved
    if work.count == work.capacity:
        moved = <Pending *> realloc(work.stack, (work.capacity * 2 + 64) * sizeof(Pending))
        if moved == NULL:
            return FAULT_MEMORY
        work.stack = moved
        work.capacity = work.capacity * 2 + 64
    work.stack[work.count].p = p
    work.stack[work.count].size = size
    work.stack[work.count].depth = depth
    work.count += 1
    return 0


cdef uint64_t *merge_sort(uint64_t *source, uint64_t *target, size_t count) noexcept nogil:
    """Sort source[:count]; return the result, which is in source or in target."""
    cdef uint64_t *other
    cdef size_t width = 1, low, middle, high, i, j, k
    while width < count:
        low = 0
        while low < count:
            middle = low + width if low + width < count else count
            high = middle + width if middle + width < count else count
            i = low
            j = middle
            for k in range(low, high):
                if j >= high or (i < middle and source[i] <= source[j]):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
            low = high
        other = source
        source = target
        target = other
        width *= 2
    return source


cdef int check_metadata(const uint8_t *p, size_t n, Metadata *metadata, Work *work) noexcept nogil:
    cdef const uint8_t *name
    cdef const uint8_t *before = NULL
    cdef size_t length, before_length = 0
    cdef uint32_t i, offset, previous = 0
    cdef const uint8_t *offsets
    cdef bint ascii
    cdef int64_t fault
    cdef int status
    work.where = p
    work.in_metadata = True
    status = metadata_open(p, n, metadata)
    if status != 0:
        return status
    offsets = p + 1 + metadata.offset_size
    for i in range(metadata.count + 1):
        work.where = offsets + <size_t> i * <size_t> metadata.offset_size
        offset = read_uint(work.where, metadata.offset_size)
        if offset < previous or (i == 0 and offset != 0):
            return FAULT_METADATA_OFFSETS
        previous = offset
    if previous != metadata.strings_size:
        return FAULT_METADATA_OFFSETS
    ascii = is_ascii(metadata.strings, metadata.strings_size)
    if ascii and not metadata.sorted:
        return 0
    for i in range(metadata.count):
        status = metadata_name(metadata, i, &name, &length)
        if status != 0:
            return status
        work.where = name
        if not ascii:
            fault = utf8_fault(name, length)
            if fault >= 0:
                work.where = name + fault
                return FAULT_METADATA_UTF8
        if metadata.sorted and before != NULL and bytes_compare(before, before_length, name, length) >= 0:
            return FAULT_METADATA_ORDER
        before = name
        before_length = length
    return 0


cdef inline int check_text(const uint8_t *p, size_t n, Work *work) noexcept nogil:
    cdef int64_t fault
    if is_ascii(p, n):
        return 0
    fault = utf8_fault(p, n)
    if fault >= 0:
        work.where = p + fault
        return FAULT_STRING_UTF8
    return 0


cdef int check_primitive(const uint8_t *p, size_t n, Work *work) noexcept nogil:
    """Check the primitive of n bytes at `p`. Return 0 or a fault."""
    cdef int type_id = p[0] >> 2
    cdef int64_t number
    cdef uint64_t high, low
    if type_id == TYPE_STRING:
        return check_text(p + 5, n - 5, work)
    if TYPE_DECIMAL4 <= type_id <= TYPE_DECIMAL16:
        if p[1] > 38:
            return FAULT_DECIMAL_SCALE
        if type_id == TYPE_DECIMAL4:
            number = <int32_t> read_uint(p + 2, 4)
            if number > 999999999 or number < -999999999:
                return FAULT_DECIMAL_PRECISION
        elif type_id == TYPE_DECIMAL8:
            number = <int64_t> read_uint64(p + 2)
            if number > 999999999999999999LL or number < -999999999999999999LL:
                return FAULT_DECIMAL_PRECISION
        else:
            low = read_uint64(p + 2)
            high = read_uint64(p + 10)
            if high >> 63:
                low = ~low + 1
                high = ~high + (low == 0)
            # 10**38 in two halves
            if high > 0x4B3B4CA85A86C47AULL or (high == 0x4B3B4CA85A86C47AULL and low >= 0x098A224000000000ULL):
                return FAULT_DECIMAL_PRECISION
    elif type_id == TYPE_TIME_NTZ and read_uint64(p + 1) >= 86400000000ULL:
        return FAULT_TIME
    return 0


cdef int check_fields(const Metadata *metadata, const Container *object, Work *work) noexcept nogil:
    """Check that ids are in range, and names ascending and unique. Return 0 or a fault."""
    cdef uint32_t i, id, previous = 0
    cdef const uint8_t *name
    cdef const uint8_t *before
    cdef size_t length, before_length
    cdef int order
    for i in range(object.count):
        work.where = object.ids + <size_t> i * <size_t> object.id_size
        id = container_id(object, i)
        if id >= metadata.count:
            return FAULT_FIELD_ID
        if i:
            # The strings of a sorted dictionary, which has been checked, are in the order of their ids.
            if metadata.sorted:
                order = -1 if previous < id else previous > id
            else:
                metadata_name(metadata, previous, &before, &before_length)
                metadata_name(metadata, id, &name, &length)
                order = bytes_compare(before, before_length, name, length)
            if order == 0:
                return FAULT_FIELD_DUPLICATE
            if order > 0:
                return FAULT_FIELD_ORDER
        previous = id
    return 0


cdef int check_container(const Pending *pending, const Metadata *metadata, Work *work) noexcept nogil:
    """Check the header of a container and its children, and postpone nested containers. Return 0 or a fault."""
    cdef Container container
    cdef const uint8_t *p = pending.p
    cdef const uint8_t *child
    cdef uint32_t i, offset, end = 0, depth = pending.depth
    cdef size_t limit, child_size
    cdef int64_t size
    cdef uint64_t *order = NULL
    cdef int status
    cdef bint is_object = p[0] & 3 == BASIC_OBJECT
    work.where = p
    if depth > work.max_depth:
        return FAULT_DEPTH
    status = object_open(p, pending.size, &container) if is_object else array_open(p, pending.size, &container)
    if status != 0:
        return status
    if is_object:
        status = check_fields(metadata, &container, work)
        if status != 0:
            return status
    # Check children in byte order, which may differ from the order of an object's names.
    for i in range(1, container.count):
        if container_offset(&container, i - 1) >= container_offset(&container, i):
            if not is_object:
                work.where = container.offsets + <size_t> i * <size_t> container.offset_size
                return FAULT_CHILD_SIZE
            if room_for_order(work, container.count) != 0:
                return FAULT_MEMORY
            for i in range(container.count):
                work.order[i] = <uint64_t> container_offset(&container, i) << 32 | i
            order = merge_sort(work.order, work.order + container.count, container.count)
            break
    for i in range(container.count):
        offset = <uint32_t> (order[i] >> 32) if order != NULL else container_offset(&container, i)
        if offset >= container.values_size:
            work.where = container.offsets
            return FAULT_CHILD_OFFSET
        child = container.values + offset
        work.where = child
        if offset != end:
            return FAULT_CHILD_SIZE
        if i + 1 == container.count:
            end = <uint32_t> container.values_size
        elif order != NULL:
            end = <uint32_t> (order[i + 1] >> 32)
        else:
            end = container_offset(&container, i + 1)
        if end <= offset or end > container.values_size:
            return FAULT_CHILD_SIZE
        # The child must end at the start of the next child.
        limit = end - offset
        size = value_size(child, limit)
        if size == FAULT_UNKNOWN_TYPE and work.allow_unknown:
            continue
        if size == FAULT_VALUE_TRUNCATED and end != container.values_size:
            return FAULT_CHILD_SIZE  # it overlaps the next child
        if size < 0:
            return <int> size
        child_size = <size_t> size
        if child_size != limit:
            return FAULT_CHILD_SIZE
        if child[0] & 3 == BASIC_SHORT_STRING:
            status = check_text(child + 1, child_size - 1, work)
        elif child[0] & 3 == BASIC_PRIMITIVE:
            status = check_primitive(child, child_size, work)
        else:
            status = postpone(work, child, child_size, depth + 1)
        if status != 0:
            return status
    if container.count == 0 and container.values_size:
        work.where = container.values
        return FAULT_CHILD_SIZE
    return 0


cdef int check_value(const uint8_t *p, size_t n, const Metadata *metadata, Work *work) noexcept nogil:
    """Check the value that must fill the n bytes at `p`. Return 0 or a fault."""
    cdef int64_t size
    cdef int status
    cdef Pending pending
    work.where = p
    work.in_metadata = False
    size = value_size(p, n)
    if size == FAULT_UNKNOWN_TYPE and work.allow_unknown:
        return 0
    if size < 0:
        return <int> size
    if <size_t> size != n:
        work.where = p + size
        return FAULT_VALUE_TRAILING
    if p[0] & 3 == BASIC_SHORT_STRING:
        return check_text(p + 1, n - 1, work)
    if p[0] & 3 == BASIC_PRIMITIVE:
        return check_primitive(p, n, work)
    work.count = 0
    status = postpone(work, p, n, 1)
    while status == 0 and work.count:
        work.count -= 1
        pending = work.stack[work.count]
        status = check_container(&pending, metadata, work)
    return status


cdef int check_row(VariantInput variants, int64_t row, Metadata *metadata, Work *work, int64_t *offset) noexcept nogil:
    """Check a row that is not null. Return 0, or a fault with its *offset in the metadata or the value."""
    cdef const uint8_t *p
    cdef size_t n
    cdef int status
    offset[0] = 0
    work.in_metadata = True
    if not binary_valid(&variants.metadata, row):
        return FAULT_METADATA_NULL
    status = binary_at(&variants.metadata, row, &p, &n)
    if status != 0:
        return status
    if work.known == NULL or n != work.known_size or memcmp(p, work.known, n) != 0:
        work.known = NULL
        status = check_metadata(p, n, metadata, work)
        if status != 0:
            offset[0] = work.where - p
            return status
        work.known = p
        work.known_size = n
    work.in_metadata = False
    if not binary_valid(&variants.value, row):
        return FAULT_VALUE_NULL
    status = binary_at(&variants.value, row, &p, &n)
    if status == 0 and not accept_value(
        &work.acceptance, metadata, p, n, work.max_depth, variants.value.data + variants.value.data_size
    ):
        status = check_value(p, n, metadata, work)
        if status != 0:
            offset[0] = work.where - p
    return status


def first_fault(VariantInput variants, uint32_t max_depth, bint allow_unknown):
    """Return (status, row, offset, whether the offset is in the metadata) of the first fault, or None."""
    cdef Work work
    cdef Metadata metadata
    cdef int64_t row = 0, offset = 0
    cdef int status = 0
    memset(&work, 0, sizeof(Work))
    work.max_depth = max_depth
    work.allow_unknown = allow_unknown
    with nogil:
        while row < variants.length:
            if bit_is_set(variants.validity, variants.offset + row):
                status = check_row(variants, row, &metadata, &work, &offset)
                if status != 0:
                    break
            row += 1
        acceptance_free(&work.acceptance)
        free(work.stack)
        free(work.order)
    if status == 0:
        return None
    return status, row, offset, work.in_metadata


include "examine.pxi"
