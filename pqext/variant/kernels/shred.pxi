# Variants into the columns of a shredding schema, in one pass.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_CHILD_SIZE, FAULT_FIELD_ID, FAULT_MEMORY, FAULT_METADATA_NULL, FAULT_METADATA_ORDER,
    FAULT_VALUE_TRAILING, BinaryColumn, Container, VariantInput, array_open, binary_at, binary_valid, bit_is_set,
    container_child, container_id, object_open, uint_size, write_uint,
)
from pqext.variant.kernels.binary_write cimport container_head_size, write_object_head
from pqext.variant.kernels.extents cimport Extents, child_extent, whole_extent
from pqext.variant.kernels.leaves cimport NOT_STORED, STORED, put_leaf

cdef uint8_t VARIANT_NULL = 0


cdef struct VariantColumns:
    BinaryColumn metadata
    BinaryColumn value


cdef struct Entry:
    # Field of an object that remains in the residual.
    uint32_t id
    const uint8_t *value
    size_t size


cdef struct State:
    const Node *nodes
    Builder *builders
    Dictionary dictionary
    Extents extents
    Bytes entries
    int coerce
    const uint8_t *fault     # start of the faulty value


# --- Values --------------------------------------------------------------------------------------

cdef int _put_array(
    State *s, const Node *node, Column *c, int64_t row, const uint8_t *start, size_t n
) noexcept nogil:
    cdef Container array
    cdef int64_t first = c.end
    cdef int64_t size
    cdef size_t total = 0, limit = 0
    cdef const uint8_t *p = NULL
    cdef uint32_t i
    cdef int status = array_open(start, n, &array)
    if status == 0:
        status = column_mark(c, row)
    if status == 0:
        status = column_end(c, row, first + array.count)
    if status != 0:
        return status
    for i in range(array.count):
        s.fault = start
        status = container_child(&array, i, &p, &limit)
        if status != 0:
            return status
        size = child_extent(&s.extents, &array, p, limit)
        if size < 0:
            s.fault = p
            return <int> size
        # Overlapping elements could produce far more output than the input has bytes.
        total += <size_t> size
        if total > array.values_size:
            return FAULT_CHILD_SIZE
        status = _put(s, node.first_child, first + i, p, <size_t> size)
        if status != 0:
            return status
    return 0


cdef int _put_object(
    State *s, const Node *node, Builder *b, int64_t row, const uint8_t *start, size_t n
) noexcept nogil:
    cdef Container object
    cdef size_t base = s.entries.size
    cdef size_t total = 0, limit = 0
    cdef const int32_t *ranks = <const int32_t *> s.dictionary.ranks.data
    cdef const uint8_t *p = NULL
    cdef int32_t child = node.first_child
    cdef int32_t stop = node.first_child + node.child_count
    cdef int32_t rank
    cdef uint32_t i, id, previous = 0
    cdef int64_t size
    cdef Entry entry
    cdef int status = object_open(start, n, &object)
    if status == 0:
        status = column_mark(&b.typed, row)
    if status != 0:
        return status
    for i in range(object.count):
        s.fault = start
        id = container_id(&object, i)
        if id >= s.dictionary.metadata.count:
            return FAULT_FIELD_ID
        if i:
            status = dictionary_order(&s.dictionary, previous, id)
            if status != 0:
                return status
        previous = id
        status = container_child(&object, i, &p, &limit)
        if status != 0:
            return status
        size = child_extent(&s.extents, &object, p, limit)
        if size < 0:
            s.fault = p
            return <int> size
        total += <size_t> size
        if total > object.values_size:
            return FAULT_CHILD_SIZE
        # Names of the object and of the node's children ascend, so one pass merges both.
        rank = ranks[id]
        if rank >= 0:
            while child < stop and s.nodes[child].name < rank:
                child += 1
            if child < stop and s.nodes[child].name == rank:
                status = _put(s, child, row, p, <size_t> size)
                if status != 0:
                    return status
                child += 1
                continue
        entry.id = id
        entry.value = p
        entry.size = <size_t> size
        if bytes_append(&s.entries, &entry, sizeof(Entry)) != 0:
            return FAULT_MEMORY
    status = _put_residual(s, &b.value, row, base)
    s.entries.size = base
    return status


cdef int _put_residual(State *s, Column *c, int64_t row, size_t base) noexcept nogil:
    """Encode the fields recorded since `base` as an object; write nothing if there are none. Return 0 or a fault."""
    cdef size_t count = (s.entries.size - base) // sizeof(Entry)
    cdef const Entry *entries = <const Entry *> (s.entries.data + base)
    cdef uint32_t largest = 0
    cdef size_t i, total = 0
    cdef size_t head
    cdef int id_size, offset_size, status
    cdef uint8_t *out
    cdef uint8_t *ids
    cdef uint8_t *offsets
    if count == 0:
        return 0
    for i in range(count):
        total += entries[i].size
        if entries[i].id > largest:
            largest = entries[i].id
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    id_size = uint_size(largest)
    offset_size = uint_size(<uint32_t> total)
    head = container_head_size(<uint32_t> count, id_size, offset_size)
    status = column_mark(c, row)
    if status != 0:
        return status
    if bytes_reserve(&c.data, head + total) != 0:
        return FAULT_MEMORY
    out = c.data.data + c.data.size
    ids = write_object_head(out, <uint32_t> count, id_size, offset_size)
    offsets = ids + count * <size_t> id_size
    out += head
    total = 0
    for i in range(count):
        write_uint(ids, entries[i].id, id_size)
        write_uint(offsets, <uint32_t> total, offset_size)
        memcpy(out, entries[i].value, entries[i].size)
        ids += id_size
        offsets += offset_size
        out += entries[i].size
        total += entries[i].size
    write_uint(offsets, <uint32_t> total, offset_size)
    c.data.size += head + total
    return column_end(c, row, <int64_t> c.data.size)


cdef int _put(State *s, int32_t index, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Store the value of exactly `n` bytes at `p` in node `index`.

    Recursion is as deep as the schema. Return 0 or a fault.
    """
    cdef const Node *node = &s.nodes[index]
    cdef Builder *b = &s.builders[index]
    cdef int status
    s.fault = p
    if node.kind == KIND_PRIMITIVE:
        status = put_leaf(node, s.coerce, &b.typed, row, p, n)
        if status != NOT_STORED:
            return 0 if status == STORED else status
    elif node.kind == KIND_OBJECT and p[0] & 3 == BASIC_OBJECT:
        return _put_object(s, node, b, row, p, n)
    elif node.kind == KIND_ARRAY and p[0] & 3 == BASIC_ARRAY:
        return _put_array(s, node, &b.typed, row, p, n)
    return column_bytes(&b.value, row, p, n)


cdef int _shred_row(
    State *s, ShreddingPlan plan, const VariantColumns *input, int64_t row, const uint8_t **start
) noexcept nogil:
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int64_t size
    cdef int status
    if not binary_valid(&input.metadata, row):
        return FAULT_METADATA_NULL
    status = binary_at(&input.metadata, row, &p, &n)
    if status == 0:
        status = dictionary_open(&s.dictionary, plan, p, n)
    if status == 0 and (p[0] >> 4) & 1 and not s.dictionary.metadata.sorted:
        status = FAULT_METADATA_ORDER  # readers may rely on the flag that would be written
    if status != 0:
        return status
    if not binary_valid(&input.value, row):
        # A required variant that is missing becomes a variant null.
        return column_bytes(&s.builders[0].value, row, &VARIANT_NULL, 1)
    status = binary_at(&input.value, row, &p, &n)
    if status != 0:
        return status
    start[0] = p
    s.fault = p
    size = whole_extent(p, n)
    if size < 0:
        return <int> size
    if <size_t> size != n:
        return FAULT_VALUE_TRAILING
    return _put(s, 0, row, p, n)


def shred(ShreddingPlan plan, VariantInput variants, int coerce):
    """Shred every row; `coerce` is one of the COERCE values of leaves.pxd.

    Return (status, row, offset, validity, columns). The status is 0, or the fault with its row and the offset of the
    faulty value (-1 if it is unknown). `validity` has a bit per row, like all bitmaps here. `columns` has the format of
    `take_columns`.
    """
    cdef State s
    cdef Bytes validity
    cdef VariantColumns input
    cdef int64_t row = 0
    cdef int status = 0
    cdef const uint8_t *start = NULL
    memset(&s, 0, sizeof(State))
    memset(&validity, 0, sizeof(Bytes))
    s.nodes = plan.nodes
    s.coerce = coerce
    input.metadata = variants.metadata
    input.value = variants.value
    s.builders = <Builder *> calloc(plan.node_count, sizeof(Builder))
    if s.builders == NULL:
        raise MemoryError
    try:
        with nogil:
            status = bytes_zero_to(&validity, <size_t> ((variants.length + 7) // 8))
            while status == 0 and row < variants.length:
                if bit_is_set(variants.validity, variants.offset + row):
                    start = NULL
                    s.fault = NULL
                    status = bit_set(&validity, row)
                    if status == 0:
                        status = _shred_row(&s, plan, &input, row, &start)
                    if status != 0:
                        break
                row += 1
        if status != 0:
            offset = s.fault - start if start != NULL and s.fault != NULL else -1
            return status, row, offset, None, None
        return 0, -1, -1, take(&validity), take_columns(s.builders, plan, variants.length)
    finally:
        builders_free(s.builders, plan.node_count)
        bytes_free(&s.dictionary.ranks)
        bytes_free(&s.extents.sorted)
        bytes_free(&s.entries)
        bytes_free(&validity)
