# Values of the tape in the Variant binary encoding, in one walk: every node knows its encoded size.
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from pqext.variant.kernels.binary cimport FAULT_MEMORY, TYPE_DECIMAL16, write_uint
from pqext.variant.kernels.binary_write cimport write_array_head, write_object_head, write_string_head
from pqext.variant.kernels.json_text cimport append_digit
from pqext.variant.kernels.scan cimport copy_far, copy_over, store64


cdef int write_fields(Parser *ps, const TapeNode *node, uint8_t *ids, uint8_t *offsets) noexcept nogil:
    """Write the ids and offsets of an object in a row whose keys have ranks. Return 0 or FAULT_MEMORY."""
    cdef const TapeNode *child = node + 1
    cdef uint64_t *ordered
    cdef uint32_t *starts
    cdef uint32_t i, at = 0
    cdef size_t id_size = ps.id_size, offset_size = node.header
    if sorting_room(&ps.names, <size_t> node.length * 2) != 0:
        return FAULT_MEMORY
    # The offsets of the children are stored after the two halves that sorting uses.
    starts = <uint32_t *> (ps.names.sorting + 2 * <size_t> node.length)
    for i in range(node.length):
        ps.names.sorting[i] = <uint64_t> ps.names.keys[child.key].rank << 32 | i
        starts[i] = at
        at += child.size
        child += child.span
    ordered = merge_sort(&ps.names, node.length, False)
    for i in range(node.length):
        write_uint(ids + i * id_size, <uint32_t> (ordered[i] >> 32), id_size)
        write_uint(offsets + i * offset_size, starts[<uint32_t> ordered[i]], offset_size)
    write_uint(offsets + node.length * offset_size, at, offset_size)
    return 0


cdef inline void write_offsets(const Parser *ps, const TapeNode *node, uint8_t *offsets) noexcept nogil:
    """Write the offsets of an object that has a shape."""
    cdef const uint16_t *order = ps.names.orders + ps.names.shapes[node.payload].order
    cdef const TapeNode *child = node + 1
    cdef uint32_t i, at = 0
    cdef size_t offset_size = node.header
    if offset_size == 1:
        for i in range(node.length):
            offsets[order[i]] = <uint8_t> at
            at += child.size
            child += child.span
    elif offset_size == 2:
        for i in range(node.length):
            write_uint(offsets + 2 * <size_t> order[i], at, 2)
            at += child.size
            child += child.span
    else:
        for i in range(node.length):
            write_uint(offsets + offset_size * order[i], at, offset_size)
            at += child.size
            child += child.span
    write_uint(offsets + offset_size * node.length, at, offset_size)


cdef inline uint8_t *write_array(const TapeNode *node, uint8_t *p) noexcept nogil:
    """Write the head and the offsets of an array. Return the position of its elements."""
    cdef const TapeNode *child = node + 1
    cdef uint32_t i, at = 0
    cdef int offset_size = node.header
    p = write_array_head(p, node.length, offset_size)
    for i in range(node.length):
        write_uint(p, at, offset_size)
        p += offset_size
        at += child.size
        child += child.span
    write_uint(p, at, offset_size)
    return p + offset_size


cdef uint8_t *write_decimal16(const TapeNode *node, uint8_t *p) noexcept nogil:
    cdef const uint8_t *text = <const uint8_t *> node.payload
    cdef uint64_t high = 0, low = 0
    cdef uint32_t i
    for i in range(node.length):
        if c'0' <= text[i] <= c'9':
            append_digit(&high, &low, text[i] - c'0')
    if text[0] == c'-':
        low = ~low + 1
        high = ~high + (low == 0)
    p[0] = TYPE_DECIMAL16 << 2
    p[1] = node.scale
    store64(p + 2, low)
    store64(p + 10, high)
    return p + 18


cdef int emit(Parser *ps, const TapeNode *node, uint8_t *p) noexcept nogil:
    """Write the value of a node at `p`, where its size and MARGIN bytes are free. Return 0 or FAULT_MEMORY."""
    cdef const TapeNode *end = node + node.span
    cdef uint8_t *ids
    cdef size_t id_size = ps.id_size, size
    while node < end:
        if node.kind <= NODE_DECIMAL:
            # The data of other types is at the position of a decimal's scale.
            p[0] = node.header
            p[1] = node.scale
            store64(p + 1 + (node.kind == NODE_DECIMAL), node.payload)
            p += node.size
        elif node.kind == NODE_STRING:
            p = write_string_head(p, node.length)
            copy_far(p, <const uint8_t *> node.payload, node.length)
            p += node.length
        elif node.kind == NODE_OBJECT:
            size = node.length * id_size
            ids = write_object_head(p, node.length, id_size, node.header)
            p = ids + size + (<size_t> node.length + 1) * <size_t> node.header
            if ps.names.shapeless:
                if write_fields(ps, node, ids, ids + size) != 0:
                    return FAULT_MEMORY
            else:
                copy_over(ids, ps.names.dictionary_ids.data + ps.names.shapes[node.payload].ids, size)
                write_offsets(ps, node, ids + size)
        elif node.kind == NODE_ARRAY:
            p = write_array(node, p)
        else:
            p = write_decimal16(node, p)
        node += 1
    return 0
