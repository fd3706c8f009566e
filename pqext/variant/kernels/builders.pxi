# The columns of a shredding schema, handed to Arrow once they are filled.
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free

from pqext.core.kernels.buffer cimport bytes_free, take


cdef void column_free(Column *c) noexcept nogil:
    bytes_free(&c.validity)
    bytes_free(&c.offsets)
    bytes_free(&c.data)


cdef void builders_free(Builder *builders, int64_t count) noexcept nogil:
    """Free the columns of `count` nodes and their array."""
    cdef int64_t i
    if builders != NULL:
        for i in range(count):
            column_free(&builders[i].value)
            column_free(&builders[i].typed)
        free(builders)


cdef int finished(int status) except -1:
    if status != 0:
        raise MemoryError
    return 0


cdef list take_columns(Builder *builders, ShreddingPlan plan, int64_t rows):
    """Extend every column to its full length and take its memory.

    Return for each node of the plan (rows, value count, value validity, value offsets, value data, typed count, typed
    validity, typed offsets, typed data). Buffers that a column of its type does not have are None; so are all buffers
    of a binary or primitive column without values.
    """
    cdef list columns = []
    cdef list lengths = [rows] * plan.node_count
    cdef Builder *b
    cdef const Node *node
    cdef int32_t i, j
    cdef size_t width
    for i in range(plan.node_count):
        node = &plan.nodes[i]
        b = &builders[i]
        rows = lengths[i]
        for j in range(node.first_child, node.first_child + node.child_count):
            lengths[j] = b.typed.end if node.kind == KIND_ARRAY else rows
        value = typed = (None, None, None)
        if b.value.count:
            finished(bytes_zero_to(&b.value.validity, <size_t> ((rows + 7) // 8)))
            finished(column_pad(&b.value, rows))
            value = (take(&b.value.validity), take(&b.value.offsets), take(&b.value.data))
        if b.typed.count or node.kind != KIND_PRIMITIVE:
            finished(bytes_zero_to(&b.typed.validity, <size_t> ((rows + 7) // 8)))
            offsets = data = None
            if node.kind == KIND_ARRAY or node.leaf == LEAF_STRING or node.leaf == LEAF_BINARY:
                finished(column_pad(&b.typed, rows))
                offsets = take(&b.typed.offsets)
            elif node.kind == KIND_PRIMITIVE:
                width = leaf_width(node.leaf)
                finished(bytes_zero_to(&b.typed.data, <size_t> rows * width if width else <size_t> ((rows + 7) // 8)))
            if node.kind == KIND_PRIMITIVE:
                data = take(&b.typed.data)
            typed = (take(&b.typed.validity), offsets, data)
        columns.append((rows, b.value.count, *value, b.typed.count, *typed))
    return columns
