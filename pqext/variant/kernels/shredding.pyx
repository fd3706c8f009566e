# cython: language_level=3
"""The compiled form of a shredding schema, and a row's dictionary seen through it."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint32_t
from libc.string cimport memset

from pqext.core.kernels.buffer cimport bytes_append, bytes_free, bytes_reserve
from pqext.variant.kernels.binary cimport FAULT_MEMORY, FAULT_METADATA_ORDER, bytes_compare, metadata_name, metadata_open


cdef int _append(Bytes *b, const void *p, size_t n) except -1:
    if bytes_append(b, p, n) != 0:
        raise MemoryError
    return 0


cdef class ShreddingPlan:
    def __init__(self, nodes, names):
        """`nodes`: (kind, leaf, precision, scale, first_child, child_count, name) a node; `names`: UTF-8, ascending."""
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
        # Merging by id trusts the flag, so the flag is checked.
        if d.metadata.sorted and id and bytes_compare(previous, previous_length, name, length) >= 0:
            return FAULT_METADATA_ORDER
        previous = name
        previous_length = length
        ranks[id] = plan_rank(plan, name, length)
    d.known = True
    return 0
