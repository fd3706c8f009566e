# Faults in the rows of a variant column, shredded or not: all faults, or the first of each row.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_ARROW, FAULT_DECIMAL_PRECISION, FAULT_MEMORY, FAULT_METADATA_NULL,
    FAULT_METADATA_OFFSETS, FAULT_STRING_UTF8, FAULT_TIME, FAULT_UNKNOWN_TYPE, FAULT_VALUE_NULL, FAULT_VALUE_TRAILING,
    BinaryColumn, BinaryInput, Container, Metadata, binary_at, binary_valid, bit_is_set, container_id, metadata_open,
    object_open, read_uint, value_size,
)
from pqext.variant.kernels.exact cimport has_precision, int128
from pqext.variant.kernels.scan cimport is_ascii, utf8_fault
from pqext.variant.kernels.shredding cimport (
    FAULT_ARRAY_RESIDUAL, FAULT_BOTH, FAULT_CONFLICT, FAULT_MISSING, FAULT_MISSING_ELEMENT, FAULT_NAME_MISSING,
    FAULT_NOT_OBJECT, FAULT_OBJECT_RESIDUAL, KIND_ARRAY, KIND_OBJECT, KIND_UNTYPED, LEAF_DECIMAL, LEAF_STRING,
    LEAF_TIME, Dictionary, Node, ShreddingPlan, Source, Sources, dictionary_load,
)

cdef enum:
    MISSING = 0
    PRESENT = 1
    ENOUGH = 2        # the result for the row is final

    PART_METADATA = 0
    PART_VALUE = 1
    PART_TYPED = 2
    PART_RESIDUAL = 3  # the sibling value of the object that contains the field

    KINDS = 64        # statuses are the negatives of the numbers below

cdef int64_t DAY_MICROS = 86400000000


cdef struct Found:
    # One fault; pqext/variant/validation.py reads it as a record of the same fields.
    int64_t row
    int64_t offset    # byte within the part, -1 where the fault is not at a byte
    int32_t node
    int32_t status
    int64_t part


cdef struct State:
    const Node *nodes
    const Source *sources
    Work work
    Dictionary dictionary
    Metadata metadata
    bint known                  # the metadata equals that of the previous row, and is valid
    Bytes present               # for each rank of a schema name, whether it is in the dictionary of the row
    Bytes found
    int64_t counts[KINDS]
    int64_t total
    int64_t most
    int64_t row
    bint full
    bint first_only


cdef inline int _note(State *s, int32_t node, int status, int part, int64_t offset) noexcept nogil:
    """Record a fault. Return PRESENT, ENOUGH if the rest of the row is not checked, or FAULT_MEMORY."""
    cdef Found found
    if status == FAULT_MEMORY or status == FAULT_ARROW:
        return status
    s.counts[-status] += 1
    s.total += 1
    if s.total <= s.most:
        found.row = s.row
        found.offset = offset
        found.node = node
        found.status = status
        found.part = part
        if bytes_append(&s.found, &found, sizeof(Found)) != 0:
            return FAULT_MEMORY
    return ENOUGH if s.first_only else PRESENT


cdef int _open_metadata(State *s, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil:
    """Return PRESENT if the metadata is valid; otherwise record its fault and return MISSING."""
    cdef size_t offset = 0
    cdef uint32_t id
    cdef int32_t rank
    cdef int status
    if s.known and s.metadata.size == n and memcmp(s.metadata.data, p, n) == 0:
        return PRESENT
    s.known = False
    if not s.full:
        status = metadata_open(p, n, &s.metadata)
        if status == 0 and read_uint(s.metadata.strings - s.metadata.offset_size, s.metadata.offset_size) != (
            s.metadata.strings_size
        ):
            status = FAULT_METADATA_OFFSETS
            offset = <size_t> (s.metadata.strings - s.metadata.offset_size - p)
    else:
        status = check_metadata(p, n, &s.metadata, &s.work)
        offset = <size_t> (s.work.where - p)
        if status == 0 and plan.name_count:
            status = dictionary_load(&s.dictionary, plan, p, n)
            if status == 0:
                memset(s.present.data, 0, <size_t> plan.name_count)
                for id in range(s.metadata.count):
                    rank = (<const int32_t *> s.dictionary.ranks.data)[id]
                    if rank >= 0:
                        s.present.data[rank] = 1
    if status == 0:
        s.known = True
        return PRESENT
    status = _note(s, 0, status, PART_METADATA, <int64_t> offset)
    return status if status < 0 else MISSING


cdef int _check_value(State *s, int32_t node, const uint8_t *p, size_t n) noexcept nogil:
    """Check one encoded value by itself. Return PRESENT, ENOUGH or FAULT_MEMORY."""
    cdef size_t offset = 0
    cdef int64_t size
    cdef int status = 0
    if s.full:
        if accept_value(&s.work.acceptance, &s.metadata, p, n, s.work.max_depth, p + n):
            return PRESENT
        status = check_value(p, n, &s.metadata, &s.work)
        offset = <size_t> (s.work.where - p)
    else:
        size = value_size(p, n)
        if size >= 0 and <size_t> size != n:
            status = FAULT_VALUE_TRAILING
            offset = <size_t> size
        elif size < 0 and size != FAULT_UNKNOWN_TYPE:
            status = <int> size
    return PRESENT if status == 0 else _note(s, node, status, PART_VALUE, <int64_t> offset)


cdef int _check_residual(State *s, int32_t index, const uint8_t *p, size_t n) noexcept nogil:
    """Check the sibling value of a shredded object: an object without any of the shredded fields."""
    cdef const Node *node = &s.nodes[index]
    cdef Container fields
    cdef uint32_t i, id
    cdef int32_t rank, low, high, middle
    cdef int status
    if n < 1:
        return PRESENT  # already recorded
    if p[0] & 3 != BASIC_OBJECT:
        return _note(s, index, FAULT_NOT_OBJECT, PART_VALUE, 0)
    if not s.full or object_open(p, n, &fields) != 0:
        return PRESENT
    for i in range(fields.count):
        id = container_id(&fields, i)
        if id >= s.metadata.count:
            return PRESENT
        rank = (<const int32_t *> s.dictionary.ranks.data)[id]
        if rank < 0:
            continue
        low = node.first_child
        high = low + node.child_count
        while low < high:
            middle = low + (high - low) // 2
            if s.nodes[middle].name < rank:
                low = middle + 1
            else:
                high = middle
        if low < node.first_child + node.child_count and s.nodes[low].name == rank:
            status = _note(
                s, low, FAULT_CONFLICT, PART_RESIDUAL, fields.ids - p + <int64_t> i * <int64_t> fields.id_size
            )
            if status != PRESENT:
                return status
    return PRESENT


cdef int _check_leaf(State *s, int32_t index, int64_t row) noexcept nogil:
    """Check a typed value whose range the type of the column does not limit."""
    cdef const Node *node = &s.nodes[index]
    cdef const Source *source = &s.sources[index]
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int128 unscaled = 0
    cdef int64_t number
    cdef int status
    if node.leaf == LEAF_STRING:
        status = binary_at(&source.typed_bytes, row, &p, &n)
        if status != 0:
            return status
        number = -1 if is_ascii(p, n) else utf8_fault(p, n)
        return PRESENT if number < 0 else _note(s, index, FAULT_STRING_UTF8, PART_TYPED, number)
    if node.leaf == LEAF_TIME:
        memcpy(&number, source.typed_data + (source.typed_offset + row) * 8, 8)
        return PRESENT if 0 <= number < DAY_MICROS else _note(s, index, FAULT_TIME, PART_TYPED, -1)
    if node.leaf == LEAF_DECIMAL:
        memcpy(&unscaled, source.typed_data + (source.typed_offset + row) * 16, 16)
        if not has_precision(unscaled, node.precision):
            return _note(s, index, FAULT_DECIMAL_PRECISION, PART_TYPED, -1)
    return PRESENT


cdef int _check_elements(State *s, ShreddingPlan plan, int32_t index, int64_t row) noexcept nogil:
    cdef const Source *source = &s.sources[index]
    cdef int32_t child = s.nodes[index].first_child
    cdef int64_t start = source.typed_lists[source.typed_offset + row]
    cdef int64_t stop = source.typed_lists[source.typed_offset + row + 1]
    cdef int64_t element
    cdef int status
    if start < 0 or stop < start or stop > source.elements:
        return FAULT_ARROW
    for element in range(start, stop):
        status = _walk(s, plan, child, element)
        if status == MISSING:
            status = _note(s, child, FAULT_MISSING_ELEMENT, PART_TYPED, -1)
        if status != PRESENT:
            return status
    return PRESENT


cdef int _check_fields(State *s, ShreddingPlan plan, int32_t index, int64_t row) noexcept nogil:
    cdef const Node *node = &s.nodes[index]
    cdef int32_t child
    cdef int status
    for child in range(node.first_child, node.first_child + node.child_count):
        status = _walk(s, plan, child, row)
        if status == PRESENT and s.full and not s.present.data[s.nodes[child].name]:
            status = _note(s, child, FAULT_NAME_MISSING, PART_METADATA, -1)
        if status < 0 or status == ENOUGH:
            return status
    return PRESENT


cdef int _walk(State *s, ShreddingPlan plan, int32_t index, int64_t row) noexcept nogil:
    """Check node `index` at `row`. Return PRESENT, MISSING, ENOUGH or a fault of the arrays. Recurses with the schema.
    """
    cdef const Node *node = &s.nodes[index]
    cdef const Source *source = &s.sources[index]
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int status = PRESENT
    cdef bint typed, valued
    if not bit_is_set(source.group_validity, source.group_offset + row):
        return MISSING
    typed = source.has_typed and bit_is_set(source.typed_validity, source.typed_offset + row)
    valued = source.has_value and binary_valid(&source.value, row)
    if valued:
        status = binary_at(&source.value, row, &p, &n)
        if status == 0:
            status = _check_value(s, index, p, n)
        if status != PRESENT:
            return status
        if typed and node.kind != KIND_OBJECT:
            status = _note(s, index, FAULT_BOTH, PART_VALUE, 0)
        elif typed:
            status = _check_residual(s, index, p, n)
        elif n and node.kind == KIND_OBJECT and p[0] & 3 == BASIC_OBJECT:
            status = _note(s, index, FAULT_OBJECT_RESIDUAL, PART_VALUE, 0)
        elif n and node.kind == KIND_ARRAY and p[0] & 3 == BASIC_ARRAY:
            status = _note(s, index, FAULT_ARRAY_RESIDUAL, PART_VALUE, 0)
        if status != PRESENT:
            return status
    if not typed:
        return PRESENT if valued else MISSING
    if node.kind == KIND_OBJECT:
        return _check_fields(s, plan, index, row)
    if node.kind == KIND_ARRAY:
        return _check_elements(s, plan, index, row)
    return _check_leaf(s, index, row) if s.full else PRESENT


cdef int _check_row(State *s, ShreddingPlan plan, BinaryColumn *metadata, int64_t row) noexcept nogil:
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int status
    if not binary_valid(metadata, row):
        return _note(s, 0, FAULT_METADATA_NULL, PART_METADATA, -1)
    status = binary_at(metadata, row, &p, &n)
    if status != 0:
        return status
    status = _open_metadata(s, plan, p, n)
    if status != PRESENT:
        return status
    status = _walk(s, plan, 0, row)
    if status == MISSING:
        status = <int> FAULT_VALUE_NULL if s.nodes[0].kind == KIND_UNTYPED else <int> FAULT_MISSING
        status = _note(s, 0, status, PART_VALUE, -1)
    return status


def examine(
    ShreddingPlan plan, BinaryInput metadata, Sources sources, bint full, bint first_only, int64_t most, bint stop,
    uint32_t max_depth, bint allow_unknown,
):
    """Check every row whose root group is not null.

    Return (records, counts): the first `most` faults as bytes of `Found`, and the number of faults by status.
    `first_only` ends a row at its first fault, and `stop` ends all checks after `most` faults. Raises ValueError for
    Arrow offsets outside their data.
    """
    cdef State s
    cdef int64_t row = 0, rows = metadata.column.length
    cdef int status = 0
    cdef int kind
    if sources.count != plan.node_count:
        raise ValueError("the columns do not match the plan")
    memset(&s, 0, sizeof(State))
    s.nodes = plan.nodes
    s.sources = sources.sources
    s.full = full
    s.first_only = first_only
    s.most = most
    s.work.max_depth = max_depth
    s.work.allow_unknown = allow_unknown
    try:
        if bytes_reserve(&s.present, <size_t> plan.name_count + 1) != 0:
            raise MemoryError
        with nogil:
            while row < rows:
                if bit_is_set(s.sources[0].group_validity, s.sources[0].group_offset + row):
                    s.row = row
                    status = _check_row(&s, plan, &metadata.column, row)
                    if status < 0 or (stop and s.total >= most):
                        break
                row += 1
        if status == FAULT_MEMORY:
            raise MemoryError
        if status < 0:
            raise ValueError("the Arrow offsets of the array lie outside its data")
        counts = {-kind: s.counts[kind] for kind in range(KINDS) if s.counts[kind]}
        return take(&s.found), counts
    finally:
        acceptance_free(&s.work.acceptance)
        free(s.work.stack)
        free(s.work.order)
        bytes_free(&s.dictionary.ranks)
        bytes_free(&s.present)
        bytes_free(&s.found)
