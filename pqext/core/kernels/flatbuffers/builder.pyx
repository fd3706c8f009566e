# cython: language_level=3
"""Write tables, vectors and strings of FlatBuffers in order.

Each precedes its targets, so that all offsets point forward. Tables with the same fields share a vtable.
"""
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from pqext.core.kernels.buffer cimport bytes_reserve
from pqext.core.kernels.thrift.compact cimport DONE
from pqext.core.kernels.flatbuffers.builder cimport MOST_BYTES, TOO_LARGE, VTABLES, Build, Table, put_u32, refer
from pqext.core.kernels.flatbuffers.tables cimport u16_at
from pqext.core.kernels.flatbuffers.thrift_fields cimport OUT_OF_MEMORY, put_byte, put_bytes


cdef int pad(Build *b, int64_t multiple) noexcept nogil:
    while b.out.size % multiple:
        if put_byte(&b.out, 0) != DONE:
            return OUT_OF_MEMORY
    return DONE if b.out.size <= MOST_BYTES else TOO_LARGE


cdef int64_t put_table(Build *b, Table *t) noexcept nogil:
    """Write a table; return its offset or a fault."""
    cdef uint16_t vtable[102]
    cdef int slot, size, at = 4, i
    cdef bint wide = False
    cdef int64_t found = -1, place
    cdef int32_t back
    cdef int vsize = 4 + 2 * t.slots
    memset(vtable, 0, vsize)
    for i in range(4):
        size = 8 >> i
        for slot in range(t.slots):
            if t.size[slot] == size:
                wide = wide or size == 8
                vtable[2 + slot] = <uint16_t> at
                at += size
    vtable[0], vtable[1] = <uint16_t> vsize, <uint16_t> at
    for i in range(b.known - 1, -1, -1):
        # The last vtable may be shorter: its first field is its size.
        if u16_at(b.out.data + b.vtables[i]) == vsize and memcmp(b.out.data + b.vtables[i], vtable, vsize) == 0:
            found = b.vtables[i]
            break
    if found < 0:
        if pad(b, 2) != DONE:
            return OUT_OF_MEMORY
        found = b.out.size
        if put_bytes(&b.out, vtable, vsize) != DONE:
            return OUT_OF_MEMORY
        if b.known < VTABLES:
            b.vtables[b.known] = found
            b.known += 1
    if pad(b, 4) != DONE:
        return TOO_LARGE if b.out.size > MOST_BYTES else OUT_OF_MEMORY
    if wide and (b.out.size + 4) % 8 and put_u32(b, 0) != DONE:
        return OUT_OF_MEMORY
    place = b.out.size
    back = <int32_t> (place - found)
    if bytes_reserve(&b.out, at) != 0:
        return OUT_OF_MEMORY
    memcpy(b.out.data + place, &back, 4)
    for slot in range(t.slots):
        if t.size[slot]:
            t.place[slot] = place + vtable[2 + slot]
            memcpy(b.out.data + t.place[slot], &t.value[slot], t.size[slot])  # little-endian
    b.out.size += at
    return place


cdef int64_t put_table_at(Build *b, Table *t, int64_t reference) noexcept nogil:
    """Write a table, and set the offset at `reference` to it. Return the position of the table or a fault."""
    cdef int64_t place = put_table(b, t)
    cdef uint32_t distance
    if place >= 0:
        distance = <uint32_t> (place - reference)
        memcpy(b.out.data + reference, &distance, 4)
    return place


cdef int put_string(Build *b, int64_t place, const uint8_t *text, Py_ssize_t size, bint ends) noexcept nogil:
    """Write a string, or without a terminator a vector of bytes, as the target of the offset at `place`."""
    if size > MOST_BYTES or pad(b, 4) != DONE:
        return TOO_LARGE
    refer(b, place)
    if put_u32(b, <uint32_t> size) != DONE or put_bytes(&b.out, text, size) != DONE:
        return OUT_OF_MEMORY
    return put_byte(&b.out, 0) if ends else DONE


cdef int64_t put_offsets(Build *b, int64_t place, int64_t count) noexcept nogil:
    """Reserve a vector of offsets that are set later; return the position of the first offset."""
    cdef int64_t first
    if count > MOST_BYTES // 4 or pad(b, 4) != DONE:
        return TOO_LARGE
    refer(b, place)
    if put_u32(b, <uint32_t> count) != DONE or bytes_reserve(&b.out, 4 * count) != 0:
        return OUT_OF_MEMORY
    first = b.out.size
    memset(b.out.data + first, 0, 4 * count)
    b.out.size += 4 * count
    return first
