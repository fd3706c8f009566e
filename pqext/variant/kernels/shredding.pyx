# cython: language_level=3, cdivision=True
"""Compiled shredding schema, and the dictionary of a row in terms of the schema.

`shred` stores variants in the columns of a schema, which `builders` passes to Arrow.
"""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free, bytes_reserve
from pqext.variant.kernels.binary cimport (
    FAULT_MEMORY, BinaryInput, Metadata, bytes_compare, metadata_name, metadata_open, uint_size,
    write_uint,
)


cdef int _append(Bytes *b, const void *p, size_t n) except -1:
    if bytes_append(b, p, n) != 0:
        raise MemoryError
    return 0


cdef class ShreddingPlan:
    def __init__(self, nodes, names):
        """Compile `nodes`, (kind, leaf, precision, scale, first_child, child_count, name) each, and ascending UTF-8
        `names`.
        """
        cdef Node node
        cdef bytes name
        cdef uint32_t slot, size = 2
        cdef int32_t rank
        for node.kind, node.leaf, node.precision, node.scale, node.first_child, node.child_count, node.name in nodes:
            _append(&self.node_bytes, &node, sizeof(Node))
        self.node_count = len(nodes)
        self.nodes = <Node *> self.node_bytes.data
        slot = 0
        _append(&self.name_offset_bytes, &slot, sizeof(uint32_t))
        for name in names:
            _append(&self.name_bytes, <const uint8_t *> name, len(name))
            slot = <uint32_t> self.name_bytes.size
            _append(&self.name_offset_bytes, &slot, sizeof(uint32_t))
        self.name_count = len(names)
        while size < 2 * self.name_count:
            size *= 2
        self.table_mask = size - 1
        if bytes_reserve(&self.table_bytes, size * sizeof(int32_t)) != 0 or bytes_reserve(&self.name_bytes, 1) != 0:
            raise MemoryError
        memset(self.table_bytes.data, 0xFF, size * sizeof(int32_t))
        self.table = <int32_t *> self.table_bytes.data
        self.names = self.name_bytes.data
        self.name_offsets = <uint32_t *> self.name_offset_bytes.data
        for rank in range(self.name_count):
            name = names[rank]
            slot = hash_name(<const uint8_t *> name, len(name)) & self.table_mask
            while self.table[slot] >= 0:
                slot = (slot + 1) & self.table_mask
            self.table[slot] = rank

    def __dealloc__(self):
        bytes_free(&self.node_bytes)
        bytes_free(&self.name_bytes)
        bytes_free(&self.name_offset_bytes)
        bytes_free(&self.table_bytes)


cdef int dictionary_load(Dictionary *d, ShreddingPlan plan, const uint8_t *p, size_t n) noexcept nogil:
    cdef const uint8_t *name = NULL
    cdef const uint8_t *previous = NULL
    cdef size_t length = 0, previous_length = 0
    cdef uint32_t id
    cdef int32_t *ranks
    cdef int status
    d.known = False
    status = metadata_open(p, n, &d.metadata)
    if status != 0:
        return status
    d.ranks.size = 0
    if bytes_reserve(&d.ranks, <size_t> d.metadata.count * sizeof(int32_t) + 1) != 0:
        return FAULT_MEMORY
    ranks = <int32_t *> d.ranks.data
    for id in range(d.metadata.count):
        status = metadata_name(&d.metadata, id, &name, &length)
        if status != 0:
            return status
        # Merging by id relies on the sorted flag, so the flag is verified.
        if d.metadata.sorted and id and bytes_compare(previous, previous_length, name, length) >= 0:
            d.metadata.sorted = False
        previous = name
        previous_length = length
        ranks[id] = plan_rank(plan, name, length)
    d.known = True
    return 0


cdef int dictionary_extend(
    const Dictionary *d, ShreddingPlan plan, const int32_t *added, uint32_t extra, Column *c, int64_t row
) noexcept nogil:
    """Write the metadata with the added names (ranks) after the existing names, so that ids are unchanged."""
    cdef const Metadata *m = &d.metadata
    cdef uint32_t count = m.count + extra
    cdef uint64_t total = 0
    cdef uint32_t i, start
    cdef const uint8_t *name = NULL
    cdef const uint8_t *previous = NULL
    cdef size_t length = 0, previous_length = 0, head
    cdef uint8_t *out
    cdef uint8_t *strings
    cdef int size, status
    cdef bint ascending = True
    for i in range(count):
        if i < m.count:
            status = metadata_name(m, i, &name, &length)
            if status != 0:
                return status
        else:
            start = plan.name_offsets[added[i - m.count]]
            name = plan.names + start
            length = plan.name_offsets[added[i - m.count] + 1] - start
        if i and bytes_compare(previous, previous_length, name, length) >= 0:
            ascending = False
        previous = name
        previous_length = length
        total += length
    if total > 0x7FFFFFFF:
        return FAULT_TOO_LARGE
    size = uint_size(<uint32_t> total if total > count else count)
    head = 1 + (<size_t> count + 2) * <size_t> size
    status = column_mark(c, row)
    if status != 0:
        return status
    if bytes_reserve(&c.data, head + total) != 0:
        return FAULT_MEMORY
    out = c.data.data + c.data.size
    strings = out + head
    out[0] = <uint8_t> (1 | (16 if ascending else 0) | (size - 1) << 6)
    write_uint(out + 1, count, size)
    out += 1 + size
    total = 0
    for i in range(count):
        write_uint(out, <uint32_t> total, size)
        out += size
        if i < m.count:
            metadata_name(m, i, &name, &length)
        else:
            start = plan.name_offsets[added[i - m.count]]
            name = plan.names + start
            length = plan.name_offsets[added[i - m.count] + 1] - start
        memcpy(strings + total, name, length)
        total += length
    write_uint(out, <uint32_t> total, size)
    c.data.size += head + total
    return column_end(c, row, <int64_t> c.data.size)


cdef class Sources:
    def __cinit__(self, nodes):
        """Retain the arrays of `nodes`: (group, value, typed, leaf width) for each node of the plan, with arrays or
        None.

        `group` is the struct of the node, for its validity; `value` is a binary array. `typed` is a struct, a `list`, a
        binary or string array, or a primitive array with `leaf width` bits per value.
        """
        cdef Source *source
        cdef BinaryInput binary
        self.arrays = []
        self.count = len(nodes)
        self.sources = <Source *> calloc(self.count + 1, sizeof(Source))
        if self.sources == NULL:
            raise MemoryError
        for i, (group, value, typed, width) in enumerate(nodes):
            source = &self.sources[i]
            for child in (value, typed):
                if child is not None and group is not None and len(child) < len(group):
                    raise ValueError("the children of the struct are shorter than the struct")
            self.arrays.append((group, value, typed))
            if group is not None and group.null_count:
                source.group_validity = self._bits(group.buffers()[0], group)
                source.group_offset = group.offset
            if value is not None:
                binary = BinaryInput(value)
                self.arrays.append(binary)
                source.value = binary.column
                source.has_value = True
            if typed is None:
                continue
            source.has_typed = True
            buffers = typed.buffers()
            source.typed_offset = typed.offset
            if typed.null_count:
                source.typed_validity = self._bits(buffers[0], typed)
            if width == "list":
                source.typed_lists = <const int32_t *> self._data(buffers[1], (typed.offset + len(typed) + 1) * 32)
                source.elements = len(typed.values)
                if len(typed) == 0:
                    source.elements = 0
            elif width == "bytes":
                binary = BinaryInput(typed)
                self.arrays.append(binary)
                source.typed_bytes = binary.column
            elif width:
                source.typed_data = self._data(buffers[1], (typed.offset + len(typed)) * width)

    cdef const uint8_t *_bits(self, object buffer, object array) except? NULL:
        return self._data(buffer, array.offset + len(array))

    cdef const uint8_t *_data(self, object buffer, object bits) except? NULL:
        if buffer is None or buffer.size * 8 < bits:
            if buffer is None and bits <= 32:
                return NULL  # an empty list array may lack offsets
            raise ValueError("a buffer of the array is too short")
        self.arrays.append(buffer)
        return <const uint8_t *> <uintptr_t> buffer.address

    def __dealloc__(self):
        free(self.sources)


include "builders.pxi"
include "shred.pxi"
