# Write tables, vectors and strings of FlatBuffers in order: each precedes its targets.
from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from pqext.core.kernels.buffer cimport Bytes
from pqext.core.kernels.flatbuffers.thrift_fields cimport Fields, put_bytes
from pqext.core.kernels.flatbuffers.thrift_values cimport number

cdef enum:
    TOO_LARGE = -42
    MOST_BYTES = 0x7FFFFFFF
    VTABLES = 64       # maximum number of vtables to reuse

cdef struct Table:
    int slots
    uint8_t size[100]        # size of each slot in bytes, 0 if it is absent
    uint64_t value[100]
    int64_t place[100]       # position of each written slot

cdef struct Build:
    Bytes out
    Bytes base
    int64_t vtables[64]
    int known


cdef inline void begin(Table *t) noexcept nogil:
    t.slots = 0
    memset(t.size, 0, sizeof(t.size))


cdef inline void set_slot(Table *t, int slot, int size, uint64_t value) noexcept nogil:
    t.size[slot] = <uint8_t> size
    t.value[slot] = value
    t.slots = slot + 1 if slot >= t.slots else t.slots


cdef inline int put_u32(Build *b, uint32_t value) noexcept nogil:
    return put_bytes(&b.out, &value, 4)


cdef inline void refer(Build *b, int64_t place) noexcept nogil:
    """Set the offset at `place` to the next byte that is written."""
    cdef uint32_t distance = <uint32_t> (<int64_t> b.out.size - place)
    memcpy(b.out.data + place, &distance, 4)


cdef inline void copy_number(Fields *fields, int id, int wire, Table *t, int slot, int size) noexcept nogil:
    cdef int64_t value = 0, most = (<int64_t> 1 << (8 * size - 1)) - 1 if size < 8 else 0x7FFFFFFFFFFFFFFF
    if number(fields, id, wire, -most - 1, most, &value):
        set_slot(t, slot, size, <uint64_t> value)


cdef int pad(Build *b, int64_t multiple) noexcept nogil
cdef int64_t put_table(Build *b, Table *t) noexcept nogil
cdef int64_t put_table_at(Build *b, Table *t, int64_t reference) noexcept nogil
cdef int put_string(Build *b, int64_t place, const uint8_t *text, Py_ssize_t size, bint ends) noexcept nogil
cdef int64_t put_offsets(Build *b, int64_t place, int64_t count) noexcept nogil
