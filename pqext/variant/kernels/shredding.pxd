# cython: language_level=3
# The compiled shredding schema, the types of its leaves, and growable Arrow columns, shared by the kernels that shred
# and those that reconstruct.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve
from pqext.variant.kernels.binary cimport (
    FAULT_FIELD_DUPLICATE, FAULT_FIELD_ORDER, FAULT_MEMORY, BinaryColumn, Metadata, bytes_compare, metadata_name,
)


cpdef enum ShreddingFault:
    FAULT_TOO_LARGE = -50         # more than 2^31 - 1 bytes or elements in one column
    FAULT_BOTH = -52              # value and typed_value of a primitive or an array are both set
    FAULT_NOT_OBJECT = -53        # sibling value of a shredded object is not an object
    FAULT_CONFLICT = -54          # a shredded field is also in value
    FAULT_MISSING_ELEMENT = -55   # an array element has neither value nor typed_value
    FAULT_OBJECT_RESIDUAL = -56   # value is an object and its sibling typed_value group is null
    FAULT_ARRAY_RESIDUAL = -57    # value is an array and its sibling typed_value list is null
    FAULT_NAME_MISSING = -58      # the metadata lacks the name of a shredded field
    FAULT_MISSING = -59           # the root has neither value nor typed_value


cpdef enum Kind:
    KIND_UNTYPED = 0
    KIND_PRIMITIVE = 1
    KIND_ARRAY = 2
    KIND_OBJECT = 3


cpdef enum Leaf:
    LEAF_BOOLEAN = 0
    LEAF_INT8 = 1
    LEAF_INT16 = 2
    LEAF_INT32 = 3
    LEAF_INT64 = 4
    LEAF_FLOAT = 5
    LEAF_DOUBLE = 6
    LEAF_DECIMAL = 7
    LEAF_DATE = 8
    LEAF_TIME = 9
    LEAF_TIMESTAMP = 10
    LEAF_TIMESTAMP_NANOS = 11
    LEAF_TIMESTAMP_NTZ = 12
    LEAF_TIMESTAMP_NTZ_NANOS = 13
    LEAF_BINARY = 14
    LEAF_STRING = 15
    LEAF_UUID = 16


cdef struct Node:
    int kind
    int leaf
    int precision
    int scale
    int32_t first_child   # children of an object are contiguous, in the order of their names
    int32_t child_count
    int32_t name          # rank of the node's own name among all names of the schema, -1 without one


cdef struct Column:
    int64_t count        # rows set
    int64_t end          # where the last row set ends, in bytes or elements (columns of variable length)
    Bytes validity
    Bytes offsets
    Bytes data


cdef struct Builder:
    # Output of shredding for one node of the plan.
    Column value
    Column typed


cdef class ShreddingPlan:
    """Shredding schema as arrays: nodes in breadth-first order, and names in byte order with a hash table."""
    cdef Bytes node_bytes
    cdef Bytes name_bytes
    cdef Bytes name_offset_bytes
    cdef Bytes table_bytes
    cdef Node *nodes
    cdef readonly int32_t node_count
    cdef readonly int32_t name_count
    cdef const uint8_t *names
    cdef uint32_t *name_offsets
    cdef int32_t *table
    cdef uint32_t table_mask


cdef struct Source:
    # The columns of one node of the schema; children are as long as a struct parent.
    const uint8_t *group_validity     # validity of the node's group; NULL: no nulls
    int64_t group_offset
    bint has_value
    BinaryColumn value
    bint has_typed
    const uint8_t *typed_validity
    int64_t typed_offset
    const uint8_t *typed_data         # fixed-width values, or bits
    const int32_t *typed_lists        # list offsets
    int64_t elements                  # number of elements of the list's values
    BinaryColumn typed_bytes


cdef class Sources:
    """Owner of the arrays of a shredded variant, whose buffers it exposes as one `Source` per node of the plan."""
    cdef Source *sources
    cdef int32_t count
    cdef list arrays
    cdef const uint8_t *_bits(self, object buffer, object array) except? NULL
    cdef const uint8_t *_data(self, object buffer, object bits) except? NULL


cdef inline uint32_t hash_name(const uint8_t *p, size_t n) noexcept nogil:
    cdef uint64_t h = 0xCBF29CE484222325ULL ^ n
    cdef uint64_t word
    while n >= 8:
        memcpy(&word, p, 8)
        h = (h ^ word) * 0x9E3779B97F4A7C15ULL
        h ^= h >> 29
        p += 8
        n -= 8
    if n:
        word = 0
        memcpy(&word, p, n)
        h = (h ^ word) * 0x9E3779B97F4A7C15ULL
        h ^= h >> 29
    return <uint32_t> (h >> 32) ^ <uint32_t> h


cdef inline int32_t plan_rank(ShreddingPlan plan, const uint8_t *name, size_t length) noexcept nogil:
    """Return the rank of a name in the schema; -1 if it is absent."""
    cdef uint32_t slot = hash_name(name, length) & plan.table_mask
    cdef int32_t rank
    cdef uint32_t start
    while True:
        rank = plan.table[slot]
        if rank < 0:
            return -1
        start = plan.name_offsets[rank]
        if plan.name_offsets[rank + 1] - start == length and (
            length == 0 or memcmp(plan.names + start, name, length) == 0
        ):
            return rank
        slot = (slot + 1) & plan.table_mask


# --- The dictionary of the current row -----------------------------------------------------------

cdef struct Dictionary:
    # Current metadata, and the rank in the schema of the name of each id, or -1.
    Metadata metadata
    bint known
    Bytes ranks


cdef inline int dictionary_open(Dictionary *d, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil:
    """Set `p` as the current metadata. A row that repeats the previous metadata only costs a comparison of bytes."""
    if d.known and d.metadata.size == n and memcmp(d.metadata.data, p, n) == 0:
        return 0
    return dictionary_load(d, plan, p, n)


cdef int dictionary_load(Dictionary *d, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil


cdef int dictionary_extend(
    const Dictionary *d, ShreddingPlan plan, const int32_t *added, uint32_t extra, Column *c, int64_t row
) noexcept nogil


cdef inline int dictionary_order(const Dictionary *d, uint32_t previous, uint32_t next) noexcept nogil:
    """Check that the name of id `next` follows the name of id `previous`. Return 0, or a fault of order or uniqueness.
    """
    cdef const uint8_t *a
    cdef const uint8_t *b
    cdef size_t a_size, b_size
    cdef int status
    if d.metadata.sorted:
        if next > previous:
            return 0
        return FAULT_FIELD_DUPLICATE if next == previous else FAULT_FIELD_ORDER
    status = metadata_name(&d.metadata, previous, &a, &a_size)
    if status != 0:
        return status
    status = metadata_name(&d.metadata, next, &b, &b_size)
    if status != 0:
        return status
    status = bytes_compare(a, a_size, b, b_size)
    if status < 0:
        return 0
    return FAULT_FIELD_DUPLICATE if status == 0 else FAULT_FIELD_ORDER


# --- Growable Arrow columns ----------------------------------------------------------------------
# Rows are set in ascending order; skipped rows are null. Nothing is written for them until a later row is set.

cdef inline size_t leaf_width(int leaf) noexcept nogil:
    """Return the size in bytes of a value of a fixed-width leaf in an Arrow array; 0 for one bit."""
    if leaf == LEAF_BOOLEAN:
        return 0
    if leaf == LEAF_INT8:
        return 1
    if leaf == LEAF_INT16:
        return 2
    if leaf == LEAF_INT32 or leaf == LEAF_FLOAT or leaf == LEAF_DATE:
        return 4
    if leaf == LEAF_DECIMAL or leaf == LEAF_UUID:
        return 16
    return 8


cdef inline int bytes_zero_to(Bytes *b, size_t size) noexcept nogil:
    """Extend `b` to `size` bytes with zeros. Return 0 or FAULT_MEMORY."""
    if size > b.size:
        if bytes_reserve(b, size - b.size) != 0:
            return FAULT_MEMORY
        memset(b.data + b.size, 0, size - b.size)
        b.size = size
    return 0


cdef inline int bit_set(Bytes *b, int64_t row) noexcept nogil:
    cdef size_t index = <size_t> (row >> 3)
    if index == b.size and index < b.capacity:
        b.data[index] = 0
        b.size += 1
    elif index >= b.size and bytes_zero_to(b, index + 1) != 0:
        return FAULT_MEMORY
    b.data[index] |= <uint8_t> (1 << (row & 7))
    return 0


cdef inline int column_mark(Column *c, int64_t row) noexcept nogil:
    c.count += 1
    return bit_set(&c.validity, row)


cdef inline int column_pad(Column *c, int64_t rows) noexcept nogil:
    """Append offsets for rows up to `rows`; new rows are empty. Return 0 or FAULT_MEMORY."""
    cdef int32_t end
    cdef int32_t *offsets
    cdef int64_t i
    cdef int64_t missing = rows + 1 - <int64_t> (c.offsets.size // 4)
    if missing <= 0:
        return 0
    if bytes_reserve(&c.offsets, <size_t> missing * 4) != 0:
        return FAULT_MEMORY
    end = <int32_t> c.end
    offsets = <int32_t *> (c.offsets.data + c.offsets.size)
    for i in range(missing):
        offsets[i] = end
    c.offsets.size += <size_t> missing * 4
    return 0


cdef inline int column_end(Column *c, int64_t row, int64_t end) noexcept nogil:
    """End row `row` at `end`, in bytes or elements; skipped rows are empty. Return 0 or a fault."""
    if end > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    if column_pad(c, row) != 0:
        return FAULT_MEMORY
    c.end = end
    return column_pad(c, row + 1)


cdef inline int column_bytes(Column *c, int64_t row, const uint8_t *p, size_t n) noexcept nogil:
    """Set row `row` of a binary or string column. Return 0 or a fault."""
    cdef int status = column_mark(c, row)
    if status != 0:
        return status
    if bytes_append(&c.data, p, n) != 0:
        return FAULT_MEMORY
    return column_end(c, row, <int64_t> c.data.size)


cdef inline int column_fixed(Column *c, int64_t row, const void *p, size_t width) noexcept nogil:
    """Set row `row` of a column of values of `width` bytes. Return 0 or a fault."""
    cdef int status = column_mark(c, row)
    if status != 0:
        return status
    if bytes_zero_to(&c.data, <size_t> row * width) != 0 or bytes_append(&c.data, p, width) != 0:
        return FAULT_MEMORY
    return 0


cdef void builders_free(Builder *builders, int64_t count) noexcept nogil
cdef list take_columns(Builder *builders, ShreddingPlan plan, int64_t rows)
