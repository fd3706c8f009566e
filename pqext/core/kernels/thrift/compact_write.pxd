# Thrift's compact protocol written below the level of declared structures: integers, headers and bytes.
#
# Each function returns 0, or -1 when memory is out, so that a caller may add several results up and compare once.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from pqext.core.kernels.buffer cimport Bytes, bytes_append, bytes_reserve


cdef inline int put_byte(Bytes *b, uint8_t value) noexcept nogil:
    if bytes_reserve(b, 1) != 0:
        return -1
    b.data[b.size] = value
    b.size += 1
    return 0


cdef inline int put_varint(Bytes *b, uint64_t value) noexcept nogil:
    if bytes_reserve(b, 10) != 0:
        return -1
    while value >= 0x80:
        b.data[b.size] = <uint8_t> (value | 0x80)
        b.size += 1
        value >>= 7
    b.data[b.size] = <uint8_t> value
    b.size += 1
    return 0


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)


cdef inline int put_int(Bytes *b, int64_t value) noexcept nogil:
    """Write an integer of 16 to 64 bits; all these sizes have the same encoding."""
    return put_varint(b, zigzag(value))


cdef inline int put_header(Bytes *b, int wire, int id, int *last) noexcept nogil:
    """Write the header of field `id` after field `last`, and set `last` to `id`."""
    cdef int step = id - last[0]
    last[0] = id
    if 0 < step <= 15:
        return put_byte(b, <uint8_t> (step << 4 | wire))
    if put_byte(b, <uint8_t> wire) != 0:
        return -1
    return put_int(b, id)


cdef inline int put_list(Bytes *b, int wire, size_t count) noexcept nogil:
    """Write the header of a list of `count` elements."""
    if count < 15:
        return put_byte(b, <uint8_t> (count << 4 | wire))
    if put_byte(b, <uint8_t> (0xF0 | wire)) != 0:
        return -1
    return put_varint(b, count)


cdef inline int put_binary(Bytes *b, const void *data, size_t size) noexcept nogil:
    """Write bytes after their length."""
    if put_varint(b, size) != 0:
        return -1
    return bytes_append(b, data, size)
