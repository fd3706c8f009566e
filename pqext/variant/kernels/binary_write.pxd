# cython: language_level=3
# Writers for the Variant encoding, to inline. They write heads of containers and strings, and narrowest integers.
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pqext.variant.kernels.binary cimport (
    BASIC_ARRAY,
    BASIC_OBJECT,
    BASIC_SHORT_STRING,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_INT8,
    TYPE_STRING,
    write_uint,
    write_uint64,
)


cdef inline size_t container_head_size(uint32_t count, int id_size, int offset_size) noexcept nogil:
    """Return the number of bytes before the first child; `id_size` is 0 for arrays."""
    return (<size_t> (5 if count > 255 else 2) + <size_t> count * <size_t> id_size
            + (<size_t> count + 1) * <size_t> offset_size)


cdef inline uint8_t *write_object_head(uint8_t *p, uint32_t count, int id_size, int offset_size) noexcept nogil:
    """Write header and element count. Return the position of the field ids, which precede the offsets."""
    cdef int is_large = count > 255
    p[0] = <uint8_t> (BASIC_OBJECT | (offset_size - 1) << 2 | (id_size - 1) << 4 | is_large << 6)
    write_uint(p + 1, count, 4 if is_large else 1)
    return p + (5 if is_large else 2)


cdef inline uint8_t *write_array_head(uint8_t *p, uint32_t count, int offset_size) noexcept nogil:
    """Write header and element count. Return the position of the offsets."""
    cdef int is_large = count > 255
    p[0] = <uint8_t> (BASIC_ARRAY | (offset_size - 1) << 2 | is_large << 4)
    write_uint(p + 1, count, 4 if is_large else 1)
    return p + (5 if is_large else 2)


cdef inline size_t string_value_size(size_t length) noexcept nogil:
    return length + (1 if length < 64 else 5)


cdef inline uint8_t *write_string_head(uint8_t *p, size_t length) noexcept nogil:
    """Write the head of a string in the shorter format. Return the position of its bytes."""
    if length < 64:
        p[0] = <uint8_t> (BASIC_SHORT_STRING | length << 2)
        return p + 1
    p[0] = TYPE_STRING << 2
    write_uint(p + 1, <uint32_t> length, 4)
    return p + 5


cdef inline size_t int_value_size(int64_t v) noexcept nogil:
    if -0x80 <= v <= 0x7F:
        return 2
    if -0x8000 <= v <= 0x7FFF:
        return 3
    if -0x80000000LL <= v <= 0x7FFFFFFF:
        return 5
    return 9


cdef inline uint8_t *write_int(uint8_t *p, int64_t v) noexcept nogil:
    """Write an integer in its narrowest type. Return the end of the value."""
    cdef size_t size = int_value_size(v)
    if size == 2:
        p[0] = TYPE_INT8 << 2
        p[1] = <uint8_t> v
    elif size == 3:
        p[0] = TYPE_INT16 << 2
        write_uint(p + 1, <uint32_t> v, 2)
    elif size == 5:
        p[0] = TYPE_INT32 << 2
        write_uint(p + 1, <uint32_t> v, 4)
    else:
        p[0] = TYPE_INT64 << 2
        write_uint64(p + 1, <uint64_t> v)
    return p + size
