# cython: language_level=3, cdivision=True
"""Convert shredded columns to unshredded variants in one pass."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memmove, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY, BASIC_OBJECT, FAULT_ARROW, FAULT_CHILD_SIZE, FAULT_FIELD_ID, FAULT_MEMORY, FAULT_METADATA_NULL,
    FAULT_VALUE_TRAILING, BinaryColumn, BinaryInput, Container, binary_at, binary_valid, bit_is_set, bytes_compare,
    container_child, container_id, metadata_name, object_open, uint_size, write_uint,
)
from pqext.variant.kernels.binary_write cimport container_head_size, write_array_head, write_object_head
from pqext.variant.kernels.extents cimport Extents, child_extent, whole_extent
from pqext.variant.kernels.leaves cimport append_leaf
from pqext.variant.kernels.shredding cimport (
    FAULT_ARRAY_RESIDUAL, FAULT_BOTH, FAULT_CONFLICT, FAULT_MISSING_ELEMENT, FAULT_NOT_OBJECT, FAULT_OBJECT_RESIDUAL,
    FAULT_TOO_LARGE, KIND_ARRAY, KIND_OBJECT, Column, Dictionary, Node, ShreddingPlan, Source, Sources, bit_set,
    bytes_zero_to, column_bytes, column_end, column_pad, dictionary_extend, dictionary_load, dictionary_order,
)

cdef uint8_t VARIANT_NULL = 0


cdef struct Entry:
    uint32_t id
    uint32_t offset


cdef struct State:
    const Node *nodes
    const Source *sources
    Dictionary dictionary
    Bytes ids          # id of each schema name (by rank) in the dictionary of the row, or -1
    Bytes added        # ranks of names missing from the dictionary of the row, in the order of their new ids
    Extents extents
    Bytes entries
    Bytes out
    bint strict


# --- Names ---------------------------------------------------------------------------------------

cdef inline int64_t _id_of(State *s, int32_t rank) noexcept nogil:
    """Return the id of a schema name in the dictionary of the row; add the name with a new id if it is missing."""
    cdef int64_t *ids = <int64_t *> s.ids.data
    cdef int64_t id
    if ids[rank] < 0:
        id = <int64_t> s.dictionary.metadata.count + <int64_t> (s.added.size // sizeof(int32_t))
        if id > 0xFFFFFFFELL:
            return FAULT_TOO_LARGE
        if bytes_append(&s.added, &rank, sizeof(int32_t)) != 0:
            return FAULT_MEMORY
        ids[rank] = id
    return ids[rank]


# --- Building values during the walk -----------------------------------------------------------------

cdef inline int _open_gap(State *s, size_t at, size_t head) noexcept nogil:
    """Make room for `head` bytes before the bytes written since `at`. Return 0 or a fault."""
    cdef size_t total = s.out.size - at
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    if bytes_reserve(&s.out, head) != 0:
        return FAULT_MEMORY
    memmove(s.out.data + at + head, s.out.data + at, total)
    s.out.size += head
    return 0


cdef struct Open:
    size_t base           # start of its entries, and of its bytes
    size_t at
    bint is_object


cdef inline int open_container(State *s, Open *open, bint is_object, uint32_t count) noexcept nogil:
    open.base = s.entries.size
    open.at = s.out.size
    open.is_object = is_object
    return 0


cdef inline int _note(State *s, uint32_t id, size_t at) noexcept nogil:
    """Record the start of the next field or element, in a container that starts at `at`. Return 0 or a fault."""
    cdef Entry entry
    if s.out.size - at > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    entry.id = id
    entry.offset = <uint32_t> (s.out.size - at)
    return 0 if bytes_append(&s.entries, &entry, sizeof(Entry)) == 0 else FAULT_MEMORY


cdef inline int put_residual(
    State *s, Open *open, uint32_t id, const uint8_t *p, size_t n, const BinaryColumn *column
) noexcept nogil:
    cdef int status = _note(s, id, open.at)
    return status if status != 0 or bytes_append(&s.out, p, n) == 0 else FAULT_MEMORY


cdef inline int begin_field(State *s, ShreddingPlan plan, Open *open, int32_t name) noexcept nogil:
    cdef int64_t id = _id_of(s, name)
    return <int> id if id < 0 else _note(s, <uint32_t> id, open.at)


cdef inline int begin_element(State *s, Open *open) noexcept nogil:
    return _note(s, 0, open.at)


cdef inline int put_value(State *s, const uint8_t *p, size_t n, const BinaryColumn *column) noexcept nogil:
    return 0 if bytes_append(&s.out, p, n) == 0 else FAULT_MEMORY


cdef inline int put_leaf_value(State *s, const Node *node, const Source *source, int64_t row) noexcept nogil:
    return append_leaf(&s.out, node, source, row)


cdef inline int put_null(State *s) noexcept nogil:
    return 0 if bytes_append(&s.out, &VARIANT_NULL, 1) == 0 else FAULT_MEMORY


cdef int close_container(State *s, Open *open) noexcept nogil:
    """Write the head of a container before its children. Return 0 or a fault."""
    cdef uint32_t count = <uint32_t> ((s.entries.size - open.base) // sizeof(Entry)), largest = 0
    cdef size_t total = s.out.size - open.at, i
    cdef const Entry *entries = <const Entry *> (s.entries.data + open.base)
    cdef int id_size = 0, offset_size, status
    cdef uint8_t *p
    cdef uint8_t *offsets
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    if open.is_object:
        for i in range(count):
            if entries[i].id > largest:
                largest = entries[i].id
        id_size = uint_size(largest)
    offset_size = uint_size(<uint32_t> total)
    status = _open_gap(s, open.at, container_head_size(count, id_size, offset_size))
    if status != 0:
        return status
    p = s.out.data + open.at
    if open.is_object:
        p = write_object_head(p, count, id_size, offset_size)
        offsets = p + <size_t> count * <size_t> id_size
        for i in range(count):
            write_uint(p, entries[i].id, id_size)
            p += id_size
    else:
        offsets = write_array_head(p, count, offset_size)
    for i in range(count):
        write_uint(offsets, entries[i].offset, offset_size)
        offsets += offset_size
    write_uint(offsets, <uint32_t> total, offset_size)
    s.entries.size = open.base
    return 0


include "shredded_walk.pxi"


cdef int _copy_metadata(BinaryColumn *metadata, const uint8_t *validity, Column *c, int64_t start, int64_t stop) noexcept nogil:
    """Copy the metadata of rows `start` to `stop` whose bit is set. Return 0 or a fault."""
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int64_t row
    cdef int status
    for row in range(start, stop):
        if not bit_is_set(validity, row):
            continue
        status = binary_at(metadata, row, &p, &n)
        if status == 0:
            status = column_bytes(c, row, p, n)
        if status != 0:
            return status
    return 0


def reconstruct(
    ShreddingPlan plan, BinaryInput metadata, Sources sources, bint strict, bint missing_is_null
):
    """Build the variant of every row.

    Rows whose root group is null are null. Rows without value and typed_value are null if `missing_is_null`, otherwise
    variant nulls. Return (status, row, validity, nulls, offsets, data, metadata offsets, metadata data). The status is
    0, or the fault of the row; the last two items are None if all rows keep their metadata.
    """
    cdef State s
    cdef Column values, extended
    cdef Bytes validity
    cdef int64_t row = 0, rows = metadata.column.length, valid = 0, copied = -1
    cdef const uint8_t *p = NULL
    cdef size_t n = 0, i
    cdef int status = 0
    cdef bint present
    if sources.count != plan.node_count:
        raise ValueError("the columns do not match the plan")
    memset(&s, 0, sizeof(State))
    memset(&values, 0, sizeof(Column))
    memset(&extended, 0, sizeof(Column))
    memset(&validity, 0, sizeof(Bytes))
    s.nodes = plan.nodes
    s.sources = sources.sources
    s.strict = strict
    try:
        if bytes_reserve(&s.ids, (plan.name_count + 1) * sizeof(int64_t)) != 0:
            raise MemoryError
        with nogil:
            status = bytes_zero_to(&validity, <size_t> ((rows + 7) // 8))
            while status == 0 and row < rows:
                if bit_is_set(s.sources[0].group_validity, s.sources[0].group_offset + row):
                    status = FAULT_METADATA_NULL
                    if binary_valid(&metadata.column, row):
                        status = binary_at(&metadata.column, row, &p, &n)
                    if status == 0:
                        status = load_dictionary(&s, plan, p, n)
                    if status != 0:
                        break
                    s.entries.size = 0
                    present = _is_present(&s.sources[0], row)
                    if present:
                        status = _walk(&s, plan, 0, row)
                    elif not missing_is_null:
                        present = True
                        status = put_null(&s)
                    if status != 0:
                        break
                    if present:
                        valid += 1
                        status = bit_set(&validity, row)
                        if status == 0:
                            status = column_end(&values, row, <int64_t> s.out.size)
                    if s.added.size and status == 0:
                        if copied < 0:
                            copied = 0
                        status = _copy_metadata(&metadata.column, validity.data, &extended, copied, row)
                        if status == 0:
                            status = dictionary_extend(
                                &s.dictionary, plan, <const int32_t *> s.added.data,
                                <uint32_t> (s.added.size // sizeof(int32_t)), &extended, row,
                            )
                        copied = row + 1
                        for i in range(s.added.size // sizeof(int32_t)):
                            (<int64_t *> s.ids.data)[(<int32_t *> s.added.data)[i]] = -1
                        s.added.size = 0
                    if status != 0:
                        break
                row += 1
            if status == 0:
                status = column_pad(&values, rows)
            if status == 0 and copied >= 0:
                status = _copy_metadata(&metadata.column, validity.data, &extended, copied, rows)
                if status == 0:
                    status = column_pad(&extended, rows)
        if status != 0:
            return status, row, None, 0, None, None, None, None
        own = copied >= 0
        return (
            0, -1, take(&validity), rows - valid, take(&values.offsets), take(&s.out),
            take(&extended.offsets) if own else None, take(&extended.data) if own else None,
        )
    finally:
        _column_free(&values)
        _column_free(&extended)
        bytes_free(&s.dictionary.ranks)
        bytes_free(&s.ids)
        bytes_free(&s.added)
        bytes_free(&s.extents.sorted)
        bytes_free(&s.entries)
        bytes_free(&s.out)
        bytes_free(&validity)


cdef void _column_free(Column *c) noexcept:
    bytes_free(&c.validity)
    bytes_free(&c.offsets)
    bytes_free(&c.data)
