# The walk over the columns of a shredded variant, row by row: the values that are set, and the order of an object's
# fields, some in `value` (the residual) and some in `typed_value`.
#
# Included by kernels that build output, after the definitions of:
#
#   State    nodes, sources, dictionary, extents, ids and strict as below, and whatever else
#   Open     an object or array that is being built
#   open_container(State *, Open *, bint is_object, uint32_t count of an array)
#   put_residual(State *, Open *, uint32_t id, const uint8_t *p, size_t n, const BinaryColumn *)  a field of `value`
#   begin_field(State *, ShreddingPlan, Open *, int32_t name)   called before its value is built
#   begin_element(State *, Open *)                              likewise
#   put_value(State *, const uint8_t *p, size_t n, const BinaryColumn *)                a complete value of n bytes
#   put_leaf_value(State *, const Node *, const Source *, int64_t row)                   a typed value
#   put_null(State *)
#   close_container(State *, Open *)
#
# Each returns 0 or a fault. `ids` has the id of each schema name (by rank) in the dictionary of the row, or -1; initial
# ids are set by `load_dictionary`.


cdef int load_dictionary(State *s, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil:
    """Set `p` as the metadata of the row. Return 0 or a fault."""
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


cdef inline int _compare(State *s, ShreddingPlan plan, uint32_t id, int32_t rank, int *order) noexcept nogil:
    """Compare the dictionary's name `id`, which is in range, with the schema's name `rank`. Return 0 or a fault."""
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


cdef inline int _check_order(State *s, const Container *fields, uint32_t index) noexcept nogil:
    cdef uint32_t id = container_id(fields, index)
    if id >= s.dictionary.metadata.count:
        return FAULT_FIELD_ID
    if index == 0:
        return 0
    return dictionary_order(&s.dictionary, container_id(fields, index - 1), id)


cdef int _walk_residual(
    State *s, Open *open, const Container *fields, uint32_t index, const BinaryColumn *column, size_t *taken
) noexcept nogil:
    """Build a field of the residual; `taken` sums the sizes of fields, to reject overlapping fields.

    Return 0 or a fault.
    """
    cdef const uint8_t *p = NULL
    cdef size_t limit = 0
    cdef int64_t size
    cdef int status = _check_order(s, fields, index)
    if status == 0:
        status = container_child(fields, index, &p, &limit)
    if status != 0:
        return status
    size = child_extent(&s.extents, fields, p, limit)
    if size < 0:
        return <int> size
    taken[0] += <size_t> size
    if taken[0] > fields.values_size:
        return FAULT_CHILD_SIZE
    return put_residual(s, open, container_id(fields, index), p, <size_t> size, column)


cdef inline bint _is_present(const Source *source, int64_t row) noexcept nogil:
    return bit_is_set(source.group_validity, source.group_offset + row) and (
        (source.has_typed and bit_is_set(source.typed_validity, source.typed_offset + row))
        or (source.has_value and binary_valid(&source.value, row))
    )


cdef int _walk_object(
    State *s, ShreddingPlan plan, const Node *node, const Source *source, int64_t row, const uint8_t *residual, size_t n
) noexcept nogil:
    cdef Open open
    cdef size_t taken = 0
    cdef Container fields
    cdef uint32_t next = 0, id = 0
    cdef int32_t child
    cdef int status, order = 0
    memset(&fields, 0, sizeof(Container))
    if residual != NULL:
        if n < 1 or residual[0] & 3 != BASIC_OBJECT:
            return FAULT_NOT_OBJECT
        status = object_open(residual, n, &fields)
        if status != 0:
            return status
        if fields.total_size != n:
            return FAULT_VALUE_TRAILING
    status = open_container(s, &open, True, 0)
    if status != 0:
        return status
    for child in range(node.first_child, node.first_child + node.child_count):
        # Residual fields that sort before this field precede it, so that names ascend.
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
                status = _walk_residual(s, &open, &fields, next, &source.value, &taken)
            elif s.strict:
                status = FAULT_CONFLICT
            else:
                status = _check_order(s, &fields, next)  # typed_value takes precedence over value
            if status != 0:
                return status
            next += 1
        if not _is_present(&s.sources[child], row):
            continue
        status = begin_field(s, plan, &open, s.nodes[child].name)
        if status == 0:
            status = _walk(s, plan, child, row)
        if status != 0:
            return status
    while next < fields.count:
        status = _walk_residual(s, &open, &fields, next, &source.value, &taken)
        if status != 0:
            return status
        next += 1
    return close_container(s, &open)


cdef int _walk_array(State *s, ShreddingPlan plan, const Node *node, const Source *source, int64_t row) noexcept nogil:
    cdef Open open
    cdef int64_t start = source.typed_lists[source.typed_offset + row]
    cdef int64_t stop = source.typed_lists[source.typed_offset + row + 1]
    cdef int64_t element
    cdef int status
    if start < 0 or stop < start or stop > source.elements:
        return FAULT_ARROW
    status = open_container(s, &open, False, <uint32_t> (stop - start))
    for element in range(start, stop):
        if status == 0:
            status = begin_element(s, &open)
        if status == 0:
            if _is_present(&s.sources[node.first_child], element):
                status = _walk(s, plan, node.first_child, element)
            elif s.strict:
                status = FAULT_MISSING_ELEMENT
            else:
                status = put_null(s)
        if status != 0:
            break
    return close_container(s, &open) if status == 0 else status


cdef int _walk(State *s, ShreddingPlan plan, int32_t index, int64_t row) noexcept nogil:
    """Build the value of node `index` at `row`, which is present.

    Recursion is as deep as the schema. Return 0 or a fault.
    """
    cdef const Node *node = &s.nodes[index]
    cdef const Source *source = &s.sources[index]
    cdef const uint8_t *p = NULL
    cdef size_t n = 0
    cdef int64_t size
    cdef int status
    cdef bint typed = source.has_typed and bit_is_set(source.typed_validity, source.typed_offset + row)
    if source.has_value and binary_valid(&source.value, row):
        status = binary_at(&source.value, row, &p, &n)
        if status != 0:
            return status
        if typed and s.strict and node.kind != KIND_OBJECT:
            return FAULT_BOTH
    if typed:
        if node.kind == KIND_OBJECT:
            return _walk_object(s, plan, node, source, row, p, n)
        if node.kind == KIND_ARRAY:
            return _walk_array(s, plan, node, source, row)
        return put_leaf_value(s, node, source, row)
    size = whole_extent(p, n)
    if size < 0:
        return <int> size
    if <size_t> size != n:
        return FAULT_VALUE_TRAILING
    if s.strict and node.kind == KIND_OBJECT and p[0] & 3 == BASIC_OBJECT:
        return FAULT_OBJECT_RESIDUAL
    if s.strict and node.kind == KIND_ARRAY and p[0] & 3 == BASIC_ARRAY:
        return FAULT_ARRAY_RESIDUAL
    return put_value(s, p, n, &source.value)
