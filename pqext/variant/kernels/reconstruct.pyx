# cython: language_level=3, cdivision=True
"""Shredded columns back into whole variants, in one pass."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp, memmove, memset

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_free, bytes_reserve, take
from pqext.variant.kernels.binary cimport *
from pqext.variant.kernels.binary_write cimport *
from pqext.variant.kernels.leaves cimport append_leaf
from pqext.variant.kernels.shredding cimport *

cdef int PRESENT = 1
cdef int MISSING = 0
cdef uint8_t VARIANT_NULL = 0


cdef struct Entry:
    uint32_t id
    uint32_t offset


cdef struct State:
    const Node *nodes
    const Source *sources
    Dictionary dictionary
    Bytes ids          # for each rank of a schema name its id in the row's dictionary, or -1
    Bytes added        # ranks of the names that the row's dictionary lacks, in the order of their new ids
    Bytes entries
    Bytes out
    bint strict


# --- Names ---------------------------------------------------------------------------------------

cdef int _load_dictionary(State *s, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil:
    cdef uint32_t id
    cdef int32_t rank
    cdef int64_t *ids
    cdef const int32_t *ranks
    cdef int status
    if s.dictionary.known and s.dictionary.metadata.size == n and memcmp(s.dictionary.metadata.data, p, n) == 0:
        return 0
    status = dictionary_load(&s.dictionary, plan, p, n)
    if status != 0:
        return status
    memset(s.ids.data, 0xFF, plan.name_count * sizeof(int64_t))
    ids = <int64_t *> s.ids.data
    ranks = <const int32_t *> s.dictionary.ranks.data
    for id in range(s.dictionary.metadata.count):
        rank = ranks[id]
        if rank >= 0 and ids[rank] < 0:
            ids[rank] = id
    return 0


cdef inline int64_t _id_of(State *s, int32_t rank) noexcept nogil:
    """The id of a schema name in the row's dictionary; a name it lacks gets a new one."""
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


cdef inline int _compare(State *s, ShreddingPlan plan, uint32_t id, int32_t rank, int *order) noexcept nogil:
    """Order of the dictionary's name `id`, which is in range, against the schema's name `rank`."""
    cdef const uint8_t *name = NULL
    cdef size_t length = 0
    cdef uint32_t start = plan.name_offsets[rank]
    cdef int64_t other = (<const int64_t *> s.ids.data)[rank]
    cdef int status
    if s.dictionary.metadata.sorted and 0 <= other < s.dictionary.metadata.count:
        order[0] = (id > other) - (id < other)
        return 0
    status = metadata_name(&s.dictionary.metadata, id, &name, &length)
    if status == 0:
        order[0] = bytes_compare(name, length, plan.names + start, plan.name_offsets[rank + 1] - start)
    return status


# --- Values --------------------------------------------------------------------------------------

cdef inline int _open_gap(State *s, size_t at, size_t head) noexcept nogil:
    """Make room for `head` bytes before what was written since `at`."""
    cdef size_t total = s.out.size - at
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    if bytes_reserve(&s.out, head) != 0:
        return FAULT_MEMORY
    memmove(s.out.data + at + head, s.out.data + at, total)
    s.out.size += head
    return 0


cdef inline int _note(State *s, uint32_t id, size_t at) noexcept nogil:
    """Note that the field or element that is written next starts here, in a container that started at `at`."""
    cdef Entry entry
    if s.out.size - at > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    entry.id = id
    entry.offset = <uint32_t> (s.out.size - at)
    return 0 if bytes_append(&s.entries, &entry, sizeof(Entry)) == 0 else FAULT_MEMORY


cdef int _build_object(
    State *s, ShreddingPlan plan, const Node *node, int64_t row, const uint8_t *residual, size_t n
) noexcept nogil:
    cdef size_t base = s.entries.size
    cdef size_t at = s.out.size
    cdef size_t mark, taken = 0, total, i, head
    cdef Container fields
    cdef uint32_t next = 0, id = 0, count, largest = 0
    cdef int32_t child
    cdef int64_t new_id
    cdef int status, order = 0, id_size, offset_size
    cdef const Entry *entries
    cdef uint8_t *p
    cdef uint8_t *offsets
    memset(&fields, 0, sizeof(Container))
    if residual != NULL:
        if n < 1 or residual[0] & 3 != BASIC_OBJECT:
            return FAULT_NOT_OBJECT
        status = object_open(residual, n, &fields)
        if status != 0:
            return status
        if fields.total_size != n:
            return FAULT_VALUE_TRAILING
    for child in range(node.first_child, node.first_child + node.child_count):
        # Fields of the residual that sort before this one come first, so that names and offsets ascend.
        order = -1
        while next < fields.count:
            id = container_id(&fields, next)
            if id >= s.dictionary.metadata.count:
                return FAULT_FIELD_ID
            status = _compare(s, plan, id, s.nodes[child].name, &order)
            if status != 0:
                return status
            if order > 0:
                break
            if order < 0:
                status = _copy_field(s, &fields, next, at, &taken)
            elif s.strict:
                status = FAULT_CONFLICT
            else:
                status = _check_order(s, &fields, next)  # typed_value is right, whatever value says
            if status != 0:
                return status
            next += 1
        mark = s.entries.size
        status = _note(s, 0, at)
        if status != 0:
            return status
        status = _build(s, plan, child, row)
        if status < 0:
            return status
        if status == MISSING:
            s.entries.size = mark
            continue
        new_id = _id_of(s, s.nodes[child].name)
        if new_id < 0:
            return <int> new_id
        (<Entry *> (s.entries.data + mark)).id = <uint32_t> new_id
    while next < fields.count:
        status = _copy_field(s, &fields, next, at, &taken)
        if status != 0:
            return status
        next += 1

    count = <uint32_t> ((s.entries.size - base) // sizeof(Entry))
    total = s.out.size - at
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    entries = <const Entry *> (s.entries.data + base)
    for i in range(count):
        if entries[i].id > largest:
            largest = entries[i].id
    id_size = uint_size(largest)
    offset_size = uint_size(<uint32_t> total)
    head = container_head_size(count, id_size, offset_size)
    status = _open_gap(s, at, head)
    if status != 0:
        return status
    p = write_object_head(s.out.data + at, count, id_size, offset_size)
    offsets = p + <size_t> count * <size_t> id_size
    for i in range(count):
        write_uint(p, entries[i].id, id_size)
        write_uint(offsets, entries[i].offset, offset_size)
        p += id_size
        offsets += offset_size
    write_uint(offsets, <uint32_t> total, offset_size)
    s.entries.size = base
    return PRESENT


cdef inline int _check_order(State *s, const Container *fields, uint32_t index) noexcept nogil:
    cdef uint32_t id = container_id(fields, index)
    if id >= s.dictionary.metadata.count:
        return FAULT_FIELD_ID
    if index == 0:
        return 0
    return dictionary_order(&s.dictionary, container_id(fields, index - 1), id)


cdef int _copy_field(State *s, const Container *fields, uint32_t index, size_t at, size_t *taken) noexcept nogil:
    """Copy a field of the residual; `taken` adds up their sizes, so that overlapping ones are refused."""
    cdef const uint8_t *p = NULL
    cdef size_t limit = 0
    cdef int64_t size
    cdef int status = _check_order(s, fields, index)
    if status == 0:
        status = container_child(fields, index, &p, &limit)
    if status != 0:
        return status
    size = value_size(p, limit)
    if size < 0:
        return <int> size
    taken[0] += <size_t> size
    if taken[0] > fields.values_size:
        return FAULT_CHILD_SIZE
    status = _note(s, container_id(fields, index), at)
    if status != 0:
        return status
    return 0 if bytes_append(&s.out, p, <size_t> size) == 0 else FAULT_MEMORY


cdef int _build_array(State *s, ShreddingPlan plan, const Node *node, const Source *source, int64_t row) noexcept nogil:
    cdef size_t base = s.entries.size
    cdef size_t at = s.out.size
    cdef size_t total, i, head
    cdef int64_t start = source.typed_lists[source.typed_offset + row]
    cdef int64_t stop = source.typed_lists[source.typed_offset + row + 1]
    cdef int64_t element
    cdef uint32_t count
    cdef const Entry *entries
    cdef uint8_t *offsets
    cdef int status, offset_size
    if start < 0 or stop < start or stop > source.elements:
        return FAULT_ARROW
    for element in range(start, stop):
        status = _note(s, 0, at)
        if status != 0:
            return status
        status = _build(s, plan, node.first_child, element)
        if status == MISSING:
            if s.strict:
                return FAULT_MISSING_ELEMENT
            status = 0 if bytes_append(&s.out, &VARIANT_NULL, 1) == 0 else FAULT_MEMORY
        if status < 0:
            return status
    count = <uint32_t> (stop - start)
    total = s.out.size - at
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    offset_size = uint_size(<uint32_t> total)
    head = container_head_size(count, 0, offset_size)
    status = _open_gap(s, at, head)
    if status != 0:
        return status
    offsets = write_array_head(s.out.data + at, count, offset_size)
    entries = <const Entry *> (s.entries.data + base)
    for i in range(count):
        write_uint(offsets, entries[i].offset, offset_size)
        offsets += offset_size
    write_uint(offsets, <uint32_t> total, offset_size)
    s.entries.size = base
    return PRESENT


cdef int _build(State *s, ShreddingPlan plan, int32_t index, int64_t row) noexcept nogil:
    """Append the value of node `index` at `row`: PRESENT, MISSING or a fault. Recursion is as deep as the schema."""
    cdef const Node *node = &s.nodes[index]
    cdef const Source *source = &s.sources[index]
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int64_t size
    cdef int status
    cdef bint typed
    if not bit_is_set(source.group_validity, source.group_offset + row):
        return MISSING
    typed = source.has_typed and bit_is_set(source.typed_validity, source.typed_offset + row)
    if source.has_value and binary_valid(&source.value, row):
        status = binary_at(&source.value, row, &p, &n)
        if status != 0:
            return status
        if typed and s.strict and node.kind != KIND_OBJECT:
            return FAULT_BOTH
    elif not typed:
        return MISSING
    if typed:
        if node.kind == KIND_OBJECT:
            return _build_object(s, plan, node, row, p, n)
        if node.kind == KIND_ARRAY:
            return _build_array(s, plan, node, source, row)
        status = append_leaf(&s.out, node, source, row)
        return PRESENT if status == 0 else status
    size = value_size(p, n)
    if size < 0:
        return <int> size
    if <size_t> size != n:
        return FAULT_VALUE_TRAILING
    if s.strict and node.kind == KIND_OBJECT and p[0] & 3 == BASIC_OBJECT:
        return FAULT_OBJECT_RESIDUAL
    if s.strict and node.kind == KIND_ARRAY and p[0] & 3 == BASIC_ARRAY:
        return FAULT_ARRAY_RESIDUAL
    return PRESENT if bytes_append(&s.out, p, n) == 0 else FAULT_MEMORY


cdef int _copy_metadata(BinaryColumn *metadata, const uint8_t *validity, Column *c, int64_t start, int64_t stop) noexcept nogil:
    """Copy the metadata of rows `start` to `stop` whose bit is set."""
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
    """Build every row's variant.

    Rows whose root group is null are null; so are rows without value and typed_value when
    `missing_is_null`, else these are variant nulls. Returns (status, row, validity, nulls, offsets, data,
    metadata offsets, metadata data): status 0 or the fault and its row; the last two are None when every
    row keeps its metadata.
    """
    cdef State s
    cdef Column values, extended
    cdef Bytes validity
    cdef int64_t row = 0, rows = metadata.column.length, valid = 0, copied = -1
    cdef const uint8_t *p = NULL
    cdef size_t n = 0, i
    cdef int status = 0
    if sources.count != plan.node_count:
        raise ValueError("the columns are not those of the plan")
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
                        status = _load_dictionary(&s, plan, p, n)
                    if status != 0:
                        break
                    s.entries.size = 0
                    status = _build(&s, plan, 0, row)
                    if status == MISSING and not missing_is_null:
                        status = PRESENT if bytes_append(&s.out, &VARIANT_NULL, 1) == 0 else FAULT_MEMORY
                    if status < 0:
                        break
                    if status == PRESENT:
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
        bytes_free(&s.entries)
        bytes_free(&s.out)
        bytes_free(&validity)


cdef void _column_free(Column *c) noexcept:
    bytes_free(&c.validity)
    bytes_free(&c.offsets)
    bytes_free(&c.data)
